"""What the theory of the study writes down: optima of both stages in closed form."""
