"""Figures of the theory of sparse parity."""
