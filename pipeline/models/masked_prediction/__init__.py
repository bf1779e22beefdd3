"""Parameters of hidden Markov models from what predictors of masked tokens say (Liu 2024, section 2.2)."""
