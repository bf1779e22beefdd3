"""Encoder-decoders that translate in parallel or word by word."""
