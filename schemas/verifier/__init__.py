"""Tables of the study verifier."""
