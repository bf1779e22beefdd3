"""A study to test the pipeline with."""
