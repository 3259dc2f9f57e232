"""Demos · Tasks: toy tasks, each trained to pass, beside a version with one part taken out."""
