"""The study topic."""
