"""Demos · First: one gradient three ways, and what √d_k does to gradients."""
