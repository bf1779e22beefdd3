"""The study parallel."""
