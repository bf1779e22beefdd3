"""Closed forms of the optimal value matrix under uniform attention (Li 2025, section 2.1, first stage)."""
