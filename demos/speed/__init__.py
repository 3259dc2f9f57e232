"""Demos · Speed: what a step costs, beside NumPy written by hand and beside PyTorch."""
