"""The study automata."""
