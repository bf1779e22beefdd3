"""Claims 18 to 21: models of the flip-flop automaton."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.conditions import above, at_most, below
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop.claims.common import SECTION, contrast
from schemas.claims import OWN, STATED

R8, DRIFT = SECTION.format("3.5.4.3, R8"), SECTION.format("3.5.6.5, Figure 3.33")
DEEP, FIRST = SECTION.format("3.5.6.5, Figures 3.26 and 3.36"), SECTION.format("3.5.6.5, Figure 3.38")
ON = ("0.5", "0.9")  # shares of no-ops in training


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for label, name in (("linear positions", "linear"), ("learned positions", "one head")):
        for kind in ("entropy", "l-infinity", "l2"):
            yield Gate(
                "18", f"{label}, {kind}, weights",
                "mean largest weight with the penalty less that without", R8,
                above(0.1), *contrast(context, f"{name}, {kind}, max weight"),
            )  # fmt: skip
            yield Gate(
                "18", f"{label}, {kind}, error",
                "error at 98 % of no-ops without the penalty less that with it", R8,
                above(0.0), *contrast(context, f"{name}, {kind}, error plain - penalised"), kind=OWN,
            )  # fmt: skip
    yield Gate(
        "18", "errors persist", "share of models with the entropy penalty that err at 98 % of no-ops, at either length",
        R8, above(0.0), *contrast(context, "linear, penalised that err"),
    )  # fmt: skip
    yield from _many(context)
    yield Gate(
        "19", "last query", "models without penalty whose last query looks most at the last write", DRIFT,
        at_most(0.0), *contrast(context, "drift, models that stay"),
    )  # fmt: skip
    yield Gate(
        "19", "switch", "models whose attention leaves the write elsewhere than predicted from their weights",
        DRIFT, at_most(0.0), *contrast(context, "drift, disagreements"), kind=OWN,
    )  # fmt: skip
    for label, name in (("linear positions", "linear"), ("learned positions", "one head")):
        for kind in ("entropy", "l-infinity", "l2"):
            yield Gate(
                "20", f"{label}, {kind}", "share of penalised models in bad minima at half of no-ops less that at 90 %",
                SECTION.format("3.5.6.5"), above(0.0), *_minima(context, f"{name}, {kind}"),
            )  # fmt: skip
    yield Gate(
        "21", "learned positions", "share of maxima on a right write, with values less without",
        SECTION.format("3.5.6.5, Figure 3.35"), above(0.0), *contrast(context, "one head, value - raw"),
    )  # fmt: skip


def _many(context: Results) -> Iterator[Gate]:
    """Yield what is said of models of several layers and heads."""
    yield Gate(
        "27", "sparser", "mean largest weight with the penalty less that without", DEEP, above(0.0),
        *contrast(context, "many, max weight"),
    )  # fmt: skip
    yield Gate(
        "27", "one ideal head", "share of penalised models of which exactly one head of the first layer looks at the "
        "last write from all no-ops of the probe", DEEP, above(0.5),
        *contrast(context, "many, one ideal head"),
    )  # fmt: skip
    yield Gate(
        "27", "later layers", "mean largest weight of later layers with a penalty on the first layer alone less that "
        "without any", FIRST, above(0.0), *contrast(context, "first layer, later layers"),
    )  # fmt: skip
    # Of norms the source speaks beside Figure 3.36 alone, whose penalty is on all layers.
    for label, name, source, kind in (
        ("all layers", "many", DEEP, STATED), ("first layer", "first layer", FIRST, OWN),
    ):  # fmt: skip
        yield Gate(
            "27", f"norms, {label}", "mean log norm of the matrices with the penalty less that without",
            source, below(0.0), *contrast(context, f"{name}, norms"), kind=kind,
        )  # fmt: skip


def _minima(context: Results, name: str) -> Evidence:
    """Return the evidence on bad minima; where no model is in one there is none."""
    shares = context.table("contrasts").filter(
        pl.col("contrast").is_in([f"{name}, bad minima p={p}" for p in ON])
    )
    if shares.height == len(ON) and (shares["value"] == 0).all():
        return None, f"none of {shares['n'].sum()} penalised models is in a bad minimum"
    return contrast(context, f"{name}, bad minima p=0.5 - p=0.9")
