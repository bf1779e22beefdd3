"""Noise-contrastive estimation: flat losses, normalised gradients and an exponential loss (Liu 2024, section 4.1)."""
