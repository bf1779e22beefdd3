"""Tables of the study selfsup."""
