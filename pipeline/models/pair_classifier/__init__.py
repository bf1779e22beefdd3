"""Classifiers that tell a point and its successor from a point and noise (Liu 2024, section 2.1.1.2)."""
