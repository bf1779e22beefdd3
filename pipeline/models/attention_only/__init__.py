"""Attention-only Transformers with ReLU or softmax scores."""
