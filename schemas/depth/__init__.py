"""Tables of the depth study."""
