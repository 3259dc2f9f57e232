"""Demos · The source texts: what each prints, and the same numbers from our own code."""
