"""Ids, labels and published values of the NCE study that its analyses, figures and claims share."""

from __future__ import annotations

# Ids of params/nce/
DIGITS, MNIST = DATASETS = ("nce-digits", "nce-mnist")
RUN_OF = {  # images, noise, loss and optimizer of each run
    (DIGITS, noise, loss, optimizer): f"nce-digits-{noise}-{loss}-{optimizer}"
    for noise in ("full", "diag")
    for loss in ("nce", "ence")
    for optimizer in ("gd", "ngd")
} | {
    (MNIST, "full", loss, optimizer): f"nce-mnist-{loss}-{optimizer}"
    for loss in ("nce", "ence")
    for optimizer in ("gd", "ngd")
}
RUNS = tuple(RUN_OF.values())
THEORY = (
    *("nce-formulas", "nce-flatness", "nce-curvature", "nce-barrier"),
    *("nce-normalised", "nce-exponential-loss", "nce-overlap", "nce-tricks"),
)

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
