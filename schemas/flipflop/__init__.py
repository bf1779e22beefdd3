"""Tables of the study flipflop."""
