"""What the theory of the study writes down: losses of exponential families with all derivatives."""
