"""Tables of the study topic."""
