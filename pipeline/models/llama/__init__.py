"""Decoders of the Llama shape, and how text is drawn from them."""
