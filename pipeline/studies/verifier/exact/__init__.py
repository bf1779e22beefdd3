"""Samplers that a verifier or a value guides, in exact numbers: rejection, backtracking, the walk of
Algorithm 2."""
