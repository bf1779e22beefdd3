"""What the theory of the study writes down: laws of the grammars, and networks with chosen weights."""
