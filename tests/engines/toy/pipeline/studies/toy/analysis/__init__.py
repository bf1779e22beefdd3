"""Analyses of the toy study."""
