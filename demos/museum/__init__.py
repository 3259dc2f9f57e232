"""Demos · Museum: fifteen real mistakes, each with the check that catches it."""
