"""Demos · Tasks: toy tasks, each trained to its pass mark beside an ablation."""
