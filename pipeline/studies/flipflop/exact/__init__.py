"""What the theory of the study writes down: weights that read flip-flop language, and closed forms."""
