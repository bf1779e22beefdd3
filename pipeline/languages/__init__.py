"""Data-generating processes, one module per family of languages."""
