"""Tables of the study selfsup: of hidden Markov models, and of diffusions."""
