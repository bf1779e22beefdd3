"""Sandglass: a data-versioned pipeline that reproduces the sandbox studies of how Transformers learn."""
