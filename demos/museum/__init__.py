"""Demos · Museum: sixteen real mistakes, each with the check that catches it."""
