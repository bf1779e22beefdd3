"""Closed forms of the optimal attention over a frozen value matrix (Li 2025, section 2.1, second stage)."""
