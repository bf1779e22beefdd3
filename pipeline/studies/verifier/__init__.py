"""Verifier-guided generation: query complexity, backtracking and a walk on the prefix tree (Li 2025, chapter 3)."""
