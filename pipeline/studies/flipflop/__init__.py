"""The study flipflop."""
