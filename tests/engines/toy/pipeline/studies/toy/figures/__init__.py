"""Figures of the toy study."""
