"""Tables of the toy study."""
