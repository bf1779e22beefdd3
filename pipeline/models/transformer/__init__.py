"""Causal Transformers: the decoder, the layer of the theory, and pruning."""
