"""Claims 8 to 13 and 17: what changes the errors; of claim 18, what penalties do to models of strings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published, above, at_least, at_most, below
from pipeline.studies.flipflop.claims.common import SECTION, contrast
from schemas.claims import OWN

R4, R5, R6, R7 = (SECTION.format(f"3.5.4, R{n}") for n in (4, 5, 6, 7))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name in ("dense", "sparse"):
        scale = "quick" if name == "dense" else "paper"
        yield Gate(
            "8", f"{name}, tenfold", "a tenth of the median error of models that trained on one language for as "
            "many steps, minus the mixture's, is above 0", R4,
            above(0.0), *contrast(context, f"{name} tenfold mixture"), scale_needed=scale,
        )  # fmt: skip
    yield Gate(
        "8", "dense, direction", "median log error of the mixture minus that of models that trained on one "
        "language for as many steps is below 0", R4, below(0.0), *contrast(context, "dense mixture - plain"),
    )  # fmt: skip
    yield Gate(
        "8", "models without error", "share of models of the mixture without any error is above 0", R4, above(0.0),
        *contrast(context, "mixture without error"), Published(0.24, derivation="6 of 25 models"), scale_needed="paper",
    )  # fmt: skip
    yield Gate(
        "8", "largest share", "share of models without any error, less that of any other family of configurations", R4,
        above(0.0), *contrast(context, "mixture without error, lead"), scale_needed="paper",
    )  # fmt: skip
    for label, what in (("fresh10", "ten times the data"), ("epochs10", "ten epochs")):
        yield Gate(
            "9", f"{what}, sparse", f"median log error changes with {what} by less than 0", R5, below(0.0),
            *contrast(context, f"sparse {label} - base"), scale_needed="paper",
        )  # fmt: skip
        yield Gate(
            "9", f"{what}, dense", f"median log error falls with {what} by less than a decade", R5, above(-1.0),
            *contrast(context, f"dense {label} - base"), scale_needed="paper",
        )  # fmt: skip
        for name in ("sparse", "dense"):
            yield Gate(
                "9", f"{what}, {name}, beside the mixture",
                "median log error with it minus that of the mixture is above 0", R5,
                above(0.0), *contrast(context, f"{name} {label} - mixture"), scale_needed="paper",
            )  # fmt: skip
    for name in ("sparse", "dense"):
        yield Gate(
            "10", name, "smallest p value of three rank correlations, Holm's correction, is at least 0.05", R5,
            at_least(0.05), *contrast(context, f"{name} size, p value"), scale_needed="paper",
        )  # fmt: skip
    yield Gate(
        "11", "sparse", "median log error changes with embedding dropout of one half by at most -1", R6, at_most(-1.0),
        *contrast(context, "sparse emb05 - base"), Published(-2.0, derivation="two orders of magnitude"),
        scale_needed="paper",
    )  # fmt: skip
    yield Gate(
        "11", "not without error",
        "share of models with embedding dropout of one half that make no error on the sparse set is below 1", R6,
        below(1.0), *contrast(context, "emb05 without error"), scale_needed="paper",
    )  # fmt: skip
    yield Gate(
        "12", "sinusoidal", "median error of learned positions minus that of sine codes is above 0", R6, above(0.0),
        *contrast(context, "dense base - sin"),
    )  # fmt: skip
    yield Gate(
        "12", "best of three", "median error of learned positions minus that of sine codes, linear biases or none, "
        "whichever is least in half of the models, in the other half, is above 0", R6, above(0.0),
        *contrast(context, "dense base - best positions"), scale_needed="paper",
    )  # fmt: skip
    for kind in ("entropy", "l-infinity", "l2"):
        yield Gate(
            "13", f"{kind}, sparse", "median of paired changes of log errors is at most that of a factor three", R7,
            at_most(-math.log10(3)), *contrast(context, f"sparse {kind}, paired"),
            Published(-1.0, derivation="an order of magnitude"), scale_needed="paper",
        )  # fmt: skip
        yield Gate(
            "13", f"{kind}, dense", "median of paired changes of log errors is below 0", R7, below(0.0),
            *contrast(context, f"dense {kind}, paired"), kind=OWN,
        )  # fmt: skip
        yield Gate(
            "18", f"strings, {kind}, weights",
            "models that read strings: mean largest weight with the penalty minus that without is above 0",
            R7, above(0.0), *contrast(context, f"max weight {kind}"), kind=OWN,
        )  # fmt: skip
    yield Gate(
        "13", "best setting, sparse", "median of paired changes of log errors of the setting with the least in half of "
        "the models, in the other half, is at most that of a factor three", R7, at_most(-math.log10(3)),
        *contrast(context, "sparse best sharpening, paired"), Published(-1.0, derivation="an order of magnitude"),
        scale_needed="paper",
    )  # fmt: skip
    yield Gate(
        "13", "best setting, inside the grid",
        "places between the best setting's weight and the nearer end of the grid are at least 1", R7,
        at_least(1.0), *contrast(context, "best sharpening, places to an end"), scale_needed="paper", kind=OWN,
    )  # fmt: skip
    yield Gate(
        "18", "strings, all settings, weights",
        "models that read strings: least rise of the mean largest weight, of penalties from 0.1 on, is above 0", R7,
        above(0.0), *contrast(context, "max weight, least rise"), scale_needed="paper", kind=OWN,
    )  # fmt: skip
    yield Gate(
        "17", "all settings", "largest change of a median log error is below half a decade, where most models learn "
        "the training language", SECTION.format("3.5.6.4"), below(0.5),
        *contrast(context, "optimiser, largest change"), scale_needed="paper",
    )  # fmt: skip
