"""Theory of the toy study."""
