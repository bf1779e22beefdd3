"""Models of the study topic: Transformers of one layer that read documents without positions."""
