"""A model for tests of the pipeline."""
