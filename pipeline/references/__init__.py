"""Frozen reference sets: how one is made, and how its results are read."""
