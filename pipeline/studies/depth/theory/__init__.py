"""Theorems of the depth study, executed."""
