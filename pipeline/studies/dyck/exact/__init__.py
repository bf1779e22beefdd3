"""What the theory of the study writes down: the pruning of random networks to a target."""
