"""Models with a leading replica axis."""
