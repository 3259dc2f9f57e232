"""Demos · Laboratory: the scale d_k^-a, to be moved and measured."""
