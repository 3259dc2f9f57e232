"""Demos · Live: examples, definitions and exercises that run in the reader's own browser."""
