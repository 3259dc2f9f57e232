"""Demos · Site: the project as linked pages."""
