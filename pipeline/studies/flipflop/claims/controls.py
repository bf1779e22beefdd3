"""Claims 8 to 13 and 17: what changes the errors; of claim 18, what penalties do to models of strings."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.flipflop.claims.common import SECTION, contrast
from schemas.claims import OWN

FACTOR_THREE = -math.log10(3)  # a third of the error, in decades
R4, R5, R6, R7 = (SECTION.format(f"3.5.4, R{n}") for n in (4, 5, 6, 7))


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name in ("dense", "sparse"):
        yield Gate(
            "8", f"{name}, tenfold", f"a tenth of the median error on the {name} set of models that trained on one "
            "language for as many steps, less the mixture's", R4,
            above(0.0), *contrast(context, f"{name} tenfold mixture"),
        )  # fmt: skip
    yield Gate(
        "8", "dense, direction", "median log error of the mixture less that of models that trained on one "
        "language for as many steps", R4, below(0.0), *contrast(context, "dense mixture - plain"),
    )  # fmt: skip
    yield Gate(
        "8", "models without error", "share of models of the mixture without any error", R4, above(0.0),
        *contrast(context, "mixture without error"), Published(0.24, derivation="6 of 25 models"), size_needed="paper",
    )  # fmt: skip
    yield Gate(
        "8", "largest share", "share of models of the mixture without error on the sparse and the dense set, less the "
        "largest of another family of configurations", R4,
        above(0.0), *contrast(context, "mixture without error, lead"),
    )  # fmt: skip
    for label, what in (("fresh10", "ten times the data"), ("epochs10", "ten epochs")):
        measure = f"median log error with {what} less that of the baseline, in decades"
        yield Gate(
            "9", f"{what}, sparse", measure, R5, below(0.0), *contrast(context, f"sparse {label} - base"),
        )  # fmt: skip
        yield Gate(
            "9", f"{what}, dense", measure, R5, above(-1.0), *contrast(context, f"dense {label} - base"),
        )  # fmt: skip
        for name in ("sparse", "dense"):
            yield Gate(
                "9", f"{what}, {name}, beside the mixture",
                f"median log error with {what} less that of the mixture", R5,
                above(0.0), *contrast(context, f"{name} {label} - mixture"),
            )  # fmt: skip
    for name in ("sparse", "dense"):
        yield Gate(
            "10", name, "smallest p value of the rank correlations of errors with depth, width and heads, Holm's "
            "correction", R5, at_least(0.05), *contrast(context, f"{name} size, p value"),
        )  # fmt: skip
    yield Gate(
        "11", "sparse", "median log error with embedding dropout of one half less that of the baseline, in decades", R6,
        at_most(-1.0), *contrast(context, "sparse emb05 - base"),
        Published(-2.0, derivation="two orders of magnitude"), size_needed="paper",
    )  # fmt: skip
    yield Gate(
        "11", "not without error",
        "share of models with embedding dropout of one half that make no error on the sparse set", R6,
        below(1.0), *contrast(context, "emb05 without error"),
    )  # fmt: skip
    yield Gate(
        "12", "sinusoidal", "median error of learned positions less that of sine codes", R6, above(0.0),
        *contrast(context, "dense base - sin"),
    )  # fmt: skip
    yield Gate(
        "12", "best of three", "median error of learned positions less that of sine codes, linear biases or none, "
        "whichever is least in half of the models, in the other half", R6, above(0.0),
        *contrast(context, "dense base - best positions"),
    )  # fmt: skip
    for kind in ("entropy", "l-infinity", "l2"):
        yield Gate(
            "13", f"{kind}, sparse", "median of paired changes of log errors with the penalty, in decades", R7,
            at_most(FACTOR_THREE), *contrast(context, f"sparse {kind}, paired"),
            Published(-1.0, derivation="an order of magnitude"), size_needed="paper",
        )  # fmt: skip
        yield Gate(
            "13", f"{kind}, dense", "median of paired changes of log errors with the penalty, in decades", R7,
            below(0.0), *contrast(context, f"dense {kind}, paired"), kind=OWN,
        )  # fmt: skip
        yield Gate(
            "18", f"strings, {kind}, weights",
            "mean largest weight, in models that read strings, with the penalty less that without",
            R7, above(0.0), *contrast(context, f"max weight {kind}"), kind=OWN,
        )  # fmt: skip
    yield Gate(
        "13", "best setting, sparse", "median of paired changes of log errors, in decades, of the setting with the "
        "least in half of the models, in the other half", R7, at_most(FACTOR_THREE),
        *contrast(context, "sparse best sharpening, paired"), Published(-1.0, derivation="an order of magnitude"),
        size_needed="paper",
    )  # fmt: skip
    yield Gate(
        "13", "best setting, inside the grid",
        "places between the best setting's weight and the nearer end of the grid", R7,
        at_least(1.0), *contrast(context, "best sharpening, places to an end"), kind=OWN,
    )  # fmt: skip
    yield Gate(
        "18", "strings, all settings, weights",
        "rise of the mean largest weight, in models that read strings, least of all penalties from 0.1 on", R7,
        above(0.0), *contrast(context, "max weight, least rise"), kind=OWN,
    )  # fmt: skip
    yield Gate(
        "17", "all settings", "largest change of a median log error, in decades, by settings with which most models "
        "learn the training language", SECTION.format("3.5.6.4"), below(0.5),
        *contrast(context, "optimiser, largest change"),
    )  # fmt: skip
