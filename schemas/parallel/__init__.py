"""Tables of the study parallel."""
