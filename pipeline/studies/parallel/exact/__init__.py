"""Exact laws of the study: formulas and enumerations that theory, analyses and tests share."""
