"""Demos · Speed: what a step costs, beside NumPy by hand, beside PyTorch, and on many machines."""
