"""Demos · Texts: the five texts about attention from which this project grew."""
