"""Tables of the NCE study."""
