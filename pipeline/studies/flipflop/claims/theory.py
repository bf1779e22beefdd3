"""Claim 22, and what theory says of claim 24: constructions, bounds and closed forms, executed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_most
from pipeline.kit.evidence import Part
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from schemas.claims import CORRECTED, OWN

SOURCE = "Liu 2024, section {}"
PARTS = {
    "monoid": Part(
        "the flip-flop monoid is the smallest that is neither commutative nor invertible", SOURCE.format("3.5.1.1")
    ),
    "monoids of three elements": Part("how many there are, and how many do not commute", SOURCE.format("3.5.1.1"), OWN),
    "machine": Part("a machine of four states reads flip-flop language", SOURCE.format("3.5.1.2")),
    "machine, fewer states": Part("three of its states would be enough", SOURCE.format("3.5.1.2"), OWN),
    "LSTM by hand": Part("a small recurrent network reads flip-flop language", SOURCE.format("3.5.1.2")),
    "Proposition 3": Part("two layers of one head read flip-flop language", SOURCE.format("3.5.7.1"), CORRECTED),
    "Lemma 16": Part("one layer remembers", SOURCE.format("3.4.4.3.1")),
    "Lemmas 10 and 13": Part("values are rounded, and maxima selected", SOURCE.format("3.4.4.1")),
    "Lemma 12": Part("a threshold removes deviations", SOURCE.format("3.4.4.1"), CORRECTED),
    "Proposition 4": Part("soft attention spreads over long sequences", SOURCE.format("3.5.7.2")),
    "Proposition 5": Part("at all lengths only W_Qp'W_Kp = 0 is right", SOURCE.format("3.5.7.3")),
    "equation 3.8": Part("scores with all transposes", SOURCE.format("3.5.7.3"), CORRECTED),
    "Proposition 5, converse": Part("W_Qp'W_Kp = 0 can be enough", SOURCE.format("3.5.7.3"), OWN),
    "n-grams": Part("the least error of a predictor of n tokens", SOURCE.format("3.5.3"), OWN),
    "evaluation sequences": Part("reads of 100,000 sequences", SOURCE.format("3.5.2"), CORRECTED),
    "carries": Part("a flip-flop carries in additions", SOURCE.format("3.2.2, Figure 3.2")),
    "operand": Part("the operand of Table 3.2 gives the printed sum", SOURCE.format("3.2.2, Figure 3.2"), CORRECTED),
    "floor": Part("the least generative loss", SOURCE.format("3.5.1.2"), OWN),
}
TRENDS = {"near chance on sparse strings": "ngram.near-chance", "right on dense strings": "ngram.dense"}
ANSWERS = 12  # of two models to six additions


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 22, and those of claim 24 that need no model."""
    rows = context.theory()
    printed = rows.filter(form="printed", claim="22").iter_rows(named=True)
    wrong = {row["part"]: Part("that the printed form fails", row["source"], OWN) for row in printed}
    yield from evidence.part_gates(rows, "22", PARTS | wrong)
    yield from _additions(context)
    checks = {row["check"]: row for row in rows.iter_rows(named=True)}
    for name, check in TRENDS.items():
        yield evidence.check_gate(checks, "24", f"n-grams, {name}", check, SOURCE.format("3.5.3"))


def _additions(context: Results) -> Iterator[Gate]:
    table, source = context.table("addition"), SOURCE.format("3.5.6.1, Tables 3.2 and 3.3")
    wrong = {
        "marks": ("right", "marked_right", "answers whose printed mark is not what their sum says", source),
        "sums": ("printed_truth", "truth", "printed sums that are wrong", source),
        "carries": (
            "carried",
            "truth",
            "sums for which a flip-flop carries wrongly",
            SOURCE.format("3.2.2, Figure 3.2"),
        ),
    }
    for name, (left, right, what, where) in wrong.items():
        same = pl.col(left).is_not_null() & (pl.col(left) == pl.col(right)).fill_null(False)
        # What is missing counts as wrong, and so does what is there twice.
        off = table.filter(~same).height + abs(ANSWERS - table.height)
        count = (Measured(float(off), n=table.height), "") if table.height else (None, "no additions are recorded")
        yield Gate("22", f"additions, {name}", f"{what}, or that are not there", where, at_most(0.0), *count)
