"""Tables of the study automata."""
