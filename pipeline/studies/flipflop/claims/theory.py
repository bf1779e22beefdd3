"""Claim 22, and what theory says of claim 24: constructions, bounds and closed forms, executed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Gate, Measured
from schemas.claims import CORRECTED, OWN, STATED

SOURCE = "Liu 2024, section {}"
NONE = (Condition("value", "<=", 0.0),)
ONE = (Condition("value", ">=", 1.0),)
# Gate: names of its checks, what its source says, section, kind of statement.
PARTS = {
    "monoid": (r"^monoid\.(table|identity|associative|order|inverse|smaller|first)$",
               "the flip-flop monoid is the smallest that is neither commutative nor invertible",
               "3.5.1.1", STATED),
    "machine": (r"^machine\.(states|reads|pairs)", "a machine of four states reads flip-flop language", "3.5.1.2",
                STATED),
    "LSTM by hand": (r"^lstm\.", "a small recurrent network reads flip-flop language", "3.5.1.2", STATED),
    "Proposition 3": (r"^prop-3\.", "two layers of one head read flip-flop language", "3.5.7.1", CORRECTED),
    "Lemma 16": (r"^lem-16\.", "one layer remembers", "3.4.4.3.1", STATED),
    "Lemmas 10 and 13": (r"^lem-1[03]\.", "values are rounded, and maxima selected", "3.4.4.1", STATED),
    "Lemma 12": (r"^lem(ma)?-12\..*corrected$", "a threshold removes deviations", "3.4.4.1", CORRECTED),
    "Proposition 4": (r"^prop-4\.", "soft attention spreads over long sequences", "3.5.7.2", STATED),
    "Proposition 5": (r"^(prop-5\.(first|second|case|confirmed|spoilt)|equation-3\.8\.corrected)",
                      "at all lengths only W_Qp'W_Kp = 0 is right",
                      "3.5.7.3", STATED),
    "Proposition 5, converse": (r"^prop-5\.enough", "W_Qp'W_Kp = 0 can be enough", "3.5.7.3", OWN),
    "n-grams": (r"^ngram\.(exact|guess|sampled)", "the least error of a predictor of n tokens", "3.5.3", OWN),
    "carries": (r"^carries\.", "a flip-flop carries in additions", "3.2.2, Figure 3.2", STATED),
    "floor": (r"^floor\.", "the least generative loss", "3.5.1.2", OWN),
}  # fmt: skip
SLACK = -1e-5  # weights are single precision
PRINTED = {
    "Lemma 12": ("lemma-12", "3.4.4.1"),
    "equation 3.6": ("equation-3.6", "3.5.7"),
    "Proposition 3, scores": ("proposition-3-scores", "3.5.7.1"),
    "Proposition 3, constant": ("proposition-3-constant", "3.5.7.1"),
    "equation 3.8": ("equation-3.8", "3.5.7.3"),
    "before equation 3.13": ("proposition-5-words", "3.5.7.3"),
    "evaluation sequences": ("evaluation-size", "3.5.2"),
    "operand": ("addition-operand", "3.2.2, Figure 3.2"),
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 22, and those of claim 24 that need no model."""
    rows = context.theory()
    for name, (pattern, what, section, kind) in PARTS.items():
        found = rows.filter(pl.col("check").str.contains(pattern), pl.col("form") != "printed")
        yield Gate(
            "22",
            name,
            f"{what}: checks that do not hold",
            SOURCE.format(section),
            NONE,
            *failing(found, name),
            kind=kind,
        )
    for name, (erratum, section) in PRINTED.items():
        found = rows.filter(form="printed", erratum=f"flipflop-{erratum}")
        yield Gate(
            "22", f"{name}, as printed", "checks that show the slip and do not hold", SOURCE.format(section), NONE,
            *failing(found, name), kind=OWN,
        )  # fmt: skip
    yield _trained(context)
    yield from _additions(context)
    checks = {row["check"]: row for row in rows.iter_rows(named=True)}
    for name, check in (
        ("near chance on sparse strings", "near-chance"),
        ("right on dense strings", "dense"),
    ):
        yield evidence.check_gate(checks, "24", f"n-grams, {name}", f"ngram.{check}", SOURCE.format("3.5.3"))


def _trained(context: Results) -> Gate:
    table = context.table("sharpness").filter(pl.col("slack").is_not_null())
    return Gate(
        "22", "Proposition 4, trained models", "least distance of an attention weight from its bound, over all models",
        SOURCE.format("3.5.7.2"), (Condition("value", ">=", SLACK),),
        *evidence.reduced(table, column_min("slack"), "no model with such scores was trained"), kind=STATED,
    )  # fmt: skip


def failing(rows: pl.DataFrame, name: str) -> Evidence:
    """Return how many of the checks do not hold; one that is not defined does not."""
    if not rows.height:
        return None, f"there are no checks of {name}"
    holds = rows["passed"] & rows["measured"].is_not_nan() & rows["measured"].is_not_null()
    return Measured(float((~holds.fill_null(False)).sum()), n=rows.height), ""


def _additions(context: Results) -> Iterator[Gate]:
    table, source = context.table("addition"), SOURCE.format("3.5.6.1, Tables 3.2 and 3.3")
    wrong = {
        "marks": (
            "answers whose printed mark is not what their sum says",
            pl.col("right") != pl.col("marked_right"),
        ),
        "sums": ("printed sums that are wrong", pl.col("truth") != pl.col("printed_truth")),
    }
    for name, (what, where) in wrong.items():
        count = Measured(float(table.filter(where).height), n=table.height)
        yield Gate("22", f"additions, {name}", what, source, NONE, count)
    other = Measured(float(table.filter(pl.col("carried") != pl.col("truth")).height), n=table.height)
    yield Gate(
        "22", "additions, carries", "sums for which a flip-flop carries wrongly", SOURCE.format("3.2.2, Figure 3.2"),
        NONE, other,
    )  # fmt: skip
