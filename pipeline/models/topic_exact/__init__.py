"""Closed forms of the one-layer transformer on topic models (Li 2025, section 2.1)."""
