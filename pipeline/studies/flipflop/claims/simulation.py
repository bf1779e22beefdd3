"""Claims 18 to 21: models of the flip-flop automaton."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop.claims.common import SECTION, above, at_least, at_most, contrast
from schemas.claims import OWN

R8, DRIFT = SECTION.format("3.5.4.3, R8"), SECTION.format("3.5.6.5, Figure 3.33")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for label, name in (("linear positions", "linear"), ("learned positions", "one head")):
        yield Gate(
            "18", f"{label}, weights", "mean largest weight with the entropy penalty minus that without is above 0.1",
            R8, above(0.1), *contrast(context, f"{name}, max weight"),
        )  # fmt: skip
        yield Gate(
            "18", f"{label}, error", "error at 98 % of no-ops without the penalty minus that with it is above 0", R8,
            above(0.0), *contrast(context, f"{name}, error plain - entropy"), kind=OWN,
        )  # fmt: skip
    yield Gate(
        "18", "errors persist", "share of penalised models that err at 98 % of no-ops, at either length, is above 0",
        R8, above(0.0), *contrast(context, "linear, penalised that err"),
    )  # fmt: skip
    yield Gate(
        "19", "last query", "models without penalty whose last query looks most at the last write: number", DRIFT,
        at_most(0.0), *contrast(context, "drift, models that stay"),
    )  # fmt: skip
    yield Gate(
        "19", "switch", "models whose attention leaves the write elsewhere than predicted from their weights: number",
        DRIFT, at_most(0.0), *contrast(context, "drift, disagreements"), kind=OWN,
    )  # fmt: skip
    yield Gate(
        "20", "0.5 against 0.9", "share of bad minima at half of no-ops minus that at 90 % is at least 0",
        SECTION.format("3.5.6.5"), at_least(0.0), *contrast(context, "bad minima p=0.5 - p=0.9"),
    )  # fmt: skip
    yield Gate(
        "21", "learned positions", "share of maxima on a right write, with values minus without, is above 0",
        SECTION.format("3.5.6.5, Figure 3.35"), above(0.0), *contrast(context, "one head, value - raw"),
    )  # fmt: skip
