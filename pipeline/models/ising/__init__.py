"""Ising models whose parameters are trained."""
