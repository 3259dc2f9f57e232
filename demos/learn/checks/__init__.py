"""Demos · Learn: the checks, one for each exercise, with its chapter and its three hints."""
