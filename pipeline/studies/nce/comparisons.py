"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

A model is one descent: of a log-ratio on samples of Gaussians, or of a network on images. Models of one seed start at
the same place and see the same data in the same order, whatever their loss, their optimiser and their step size
(`measures.sampled.Pairs`; ``stream`` of the runs on images), so that methods are paired by seed.

How far a method gets is what is compared, so that all models count, also those that have learned nothing. Of step sizes
that are selected, none is one at which a seed diverged. Step sizes are selected on the seeds that are compared, as in
the source: an interval is of the step sizes that were taken.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from pipeline.kit import comparisons
from pipeline.kit.comparisons import MEAN, MEAN_DIFFERENCE, OWN, SHARE, Arm, Declared
from pipeline.kit.conditions import below
from pipeline.studies.nce.names import DIGITS, IMAGE_NAMES, LOSS_NAMES, MNIST, RUN_OF
from schemas.comparisons import NOTHING, SEEDS
from schemas.nce.tables import ADAM, AREA, DIAG, EARLY, FINAL_TEST, FULL, GD, MOMENTUM, NGD, S_BEST, S_DIST, S_LOSS

DECLARED = Declared()
Comparison = partial(comparisons.Comparison, in_common=SEEDS, learned=False)

ONE, SIXTEEN = DIMENSIONS = (1, 16)
CLOSEST = "smallest distance in {}-d"

# Gaussians (nce-gaussians). What the source orders: the first of each pair comes closer.
EXPONENTIAL, NORMALISED = ORDER = [("eNCE-NGD", "NCE-NGD"), ("NCE-NGD", "NCE-GD")]
BOTH = ("eNCE-NGD", "NCE-GD")
ETAS = {ONE: (0.3, 1.0, 3.0, 10.0), SIXTEEN: (0.1, 0.3, 1.0)}
RULES = {
    S_LOSS: "eta by lowest fresh loss",
    S_BEST: "eta by lowest loss during the run",
    S_DIST: "eta by smallest distance",
}
SELECTED = {
    (ONE, S_LOSS): ORDER,
    (ONE, S_BEST): ORDER,
    (ONE, S_DIST): ORDER,
    (SIXTEEN, S_DIST): [*ORDER, BOTH],
    (SIXTEEN, S_LOSS): [NORMALISED],
}


def _gaussians(key: str, measure: str, pair: tuple[str, str]) -> comparisons.Comparison:
    arms = Arm(pair[0]), Arm(pair[1])
    key = f"{key}-{pair[0]}-{pair[1]}".lower().replace("_", "-")
    return DECLARED(Comparison(key, measure, MEAN_DIFFERENCE, "nce-gaussians", arms))


AT_ETA = {
    (dim, eta, pair): _gaussians(f"{dim}d-eta-{eta:g}", f"{CLOSEST.format(dim)} at eta = {eta:g}", pair)
    for dim in DIMENSIONS
    for eta, pair in product(ETAS[dim], ORDER)
}
BY_RULE = {
    (dim, rule, pair): _gaussians(f"{dim}d-{rule}", f"{CLOSEST.format(dim)}, {RULES[rule]}", pair)
    for (dim, rule), pairs in SELECTED.items()
    for pair in pairs
}
FRACTION = DECLARED(
    Comparison(
        "1d-s-loss-fraction",
        f"mean {CLOSEST.format(ONE)}, {RULES[S_LOSS]}, of the first over that of the second",
        OWN,
        "nce-gaussians",
        (Arm("NCE-NGD"), Arm("NCE-GD")),
    )
)
STANDARD_STEP, LARGE_STEP = 0.02, 3.0  # the first about 1/lambda_M in 16 dimensions
STANDARD = DECLARED(
    Comparison(
        "16d-standard",
        f"{CLOSEST.format(SIXTEEN)}, the lowest over eta <= {STANDARD_STEP:g}",
        MEAN,
        "nce-gaussians",
        (Arm("NCE-GD"),),
        in_common=NOTHING,
    )
)
LARGE = DECLARED(
    Comparison(
        "16d-large",
        f"{CLOSEST.format(SIXTEEN)} at eta = {LARGE_STEP:g}",
        MEAN,
        "nce-gaussians",
        (Arm("NCE-NGD"),),
        in_common=NOTHING,
    )
)

# Further optimisers, and what is done to single samples (nce-variants), by dimension
BEST = "each at its step size with the smallest mean distance"
FURTHER = {MOMENTUM: "momentum", ADAM: "Adam"}
GUARDS = {"limit": "gradients limited", "clip": "log-ratios clipped"}
AGAINST_NGD = {
    (dim, optimizer): DECLARED(
        Comparison(
            f"{dim}d-{optimizer}-ngd",
            f"{CLOSEST.format(dim)} on NCE, {BEST}",
            MEAN_DIFFERENCE,
            "nce-variants",
            (Arm(name), Arm("NGD")),
        )
    )
    for dim, (optimizer, name) in product(DIMENSIONS, FURTHER.items())
}
CLOSER = {
    (dim, guard): DECLARED(
        Comparison(
            f"{dim}d-{guard}-closer",
            f"{CLOSEST.format(dim)} of GD on eNCE, {BEST}",
            MEAN_DIFFERENCE,
            "nce-variants",
            (Arm(name), Arm("plain")),
        )
    )
    for dim, (guard, name) in product(DIMENSIONS, GUARDS.items())
}
DIVERGES = {
    (dim, guard): DECLARED(
        Comparison(
            f"{dim}d-{guard}-diverges",
            f"number of step sizes at which GD on eNCE diverges in {dim}-d",
            MEAN_DIFFERENCE,
            "nce-variants",
            (Arm(name), Arm("plain")),
        )
    )
    for dim, (guard, name) in product(DIMENSIONS, GUARDS.items())
}
LIMITED, LIMITED_BOTH = (
    {
        dim: DECLARED(
            Comparison(
                f"{dim}d-limit-{key}",
                f"mean {CLOSEST.format(dim)} on eNCE, {BEST}, of the first over that of the second",
                OWN,
                "nce-variants",
                (Arm("GD with gradients of samples limited"), Arm(other)),
            )
        )
        for dim in DIMENSIONS
    }
    for key, other in (("ngd", "plain NGD"), ("both", "NGD with the same limit"))
)

# Images (nce-images), by images, noise and loss
SETTINGS = [
    (dataset, noise, loss) for dataset, noise in ((DIGITS, FULL), (DIGITS, DIAG), (MNIST, FULL)) for loss in LOSS_NAMES
]
QUANTITIES = {
    AREA: "area under the training loss",
    EARLY: "training loss early in training",
    FINAL_TEST: "test loss after the last update",
}


def _images(setting: tuple[str, str, str], quantity: str, share: bool) -> comparisons.Comparison:
    dataset, noise, loss = setting
    ngd, gd = (RUN_OF[*setting, optimizer] for optimizer in (NGD, GD))
    key = f"{dataset}-{noise}-{loss}-{quantity}".replace("_", "-")
    elsewhere = dataset == MNIST
    where = f"{IMAGE_NAMES[dataset]}, {noise} noise, {LOSS_NAMES[loss]}, each at its step size of smallest mean area"
    if share:  # of the seeds: both arms in one sample
        measure = f"{QUANTITIES[quantity]}, NGD minus GD of the same seed ({where}),"
        arms = Arm("", ngd, elsewhere=elsewhere), Arm("", gd, elsewhere=elsewhere)
        return DECLARED(Comparison(f"{key}-seeds", measure, SHARE, "nce-images", arms, hits=below(0)))
    measure = f"{QUANTITIES[quantity]} ({where})"
    arms = Arm("NGD", ngd, elsewhere=elsewhere), Arm("GD", gd, elsewhere=elsewhere)
    return DECLARED(Comparison(key, measure, MEAN_DIFFERENCE, "nce-images", arms))


FASTER = {
    (*setting, quantity): _images(setting, quantity, False) for setting, quantity in product(SETTINGS, QUANTITIES)
}
EVERY_SEED = {setting: _images(setting, AREA, True) for setting in SETTINGS}
