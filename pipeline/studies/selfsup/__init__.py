"""What contrasting diffusions with noise and predicting masked tokens of HMMs can recover (Liu 2024, chapter 2)."""
