"""The study selfsup."""
