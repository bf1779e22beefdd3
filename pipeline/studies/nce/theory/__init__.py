"""Lemmas and theorems of the NCE study, executed."""
