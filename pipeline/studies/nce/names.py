"""Ids, labels and published values of the NCE study that its analyses, figures and claims share."""

from __future__ import annotations

# Ids of params/nce.yaml
DIGITS, MNIST = DATASETS = ("nce-digits", "nce-mnist")
RUNS = ()
CHECKS = {  # theory entries: what claim 16 calls them, and what they execute
    "nce-formulas": ("formulas", "Definitions 19, 20, Lemmas 44, 45"),
    "nce-flatness": ("flatness", "Propositions 7, 8"),
    "nce-curvature": ("curvature", "Lemmas 46 to 48"),
    "nce-barrier": ("barrier", "Lemmas 49, 50, 59, Claim 6, Theorems 17, 18"),
    "nce-normalised": ("normalised gradients", "Lemma 51, Theorem 19, Corollary 2"),
    "nce-exponential-loss": ("exponential loss", "Lemmas 53, 54, Theorem 21"),
    "nce-overlap": ("overlap", "Theorem 20, Lemmas 52, 60, 61"),
    "nce-tricks": ("numerical tricks", "section 4.1.6"),
}
THEORY = tuple(CHECKS)

# Labels
LOSS_NAMES = {"nce": "NCE", "ence": "eNCE"}
METHODS = {  # loss and optimizer of each method, as figures and claims name it
    "NCE-GD": ("nce", "gd"),
    "NCE-NGD": ("nce", "ngd"),
    "eNCE-GD": ("ence", "gd"),
    "eNCE-NGD": ("ence", "ngd"),
}
IMAGE_NAMES = {DIGITS: "digits", MNIST: "MNIST"}

# What Liu 2024, section 4.1 prints, and where it leaves a choice
DECAY = (0.75, 1.25)  # kappa of Lemma 49
LOSS_RANGE = (0.5, 2.0)  # of L_* exp(R^2/8), Proposition 7
SAMPLES = 1000  # of P* and of Q per update of Figure 4.2, which does not say; ours
