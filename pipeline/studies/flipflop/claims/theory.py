"""Claim 22, and what theory says of claim 24: constructions, bounds and closed forms, executed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_most
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from schemas.claims import CORRECTED, OWN, STATED

SOURCE = "Liu 2024, section {}"
NONE = at_most(0.0)
# Gate: names of its checks, how many there are, what its source says, section, kind of statement. Each check that is
# not of a printed form belongs to one gate.
PARTS = {
    "monoid": (r"^monoid\.(table|identity|associative|order|inverse|smaller|first)$", 7,
               "the flip-flop monoid is the smallest that is neither commutative nor invertible",
               "3.5.1.1", STATED),
    "monoids of three elements": (r"^monoid\.(three|two)$", 2, "how many there are, and how many do not commute",
                                  "3.5.1.1", OWN),
    "machine": (r"^machine\.(states|reads|pairs)", 17, "a machine of four states reads flip-flop language", "3.5.1.2",
                STATED),
    "machine, fewer states": (r"^machine\.minimal$", 1, "three of its states would be enough", "3.5.1.2", OWN),
    "LSTM by hand": (r"^lstm\.", 16, "a small recurrent network reads flip-flop language", "3.5.1.2", STATED),
    "Proposition 3": (r"^(prop-3\.|(proposition-3-scores|proposition-3-constant|equation-3\.6)\.corrected$)", 44,
                      "two layers of one head read flip-flop language", "3.5.7.1", CORRECTED),
    "Lemma 16": (r"^lem-16\.", 14, "one layer remembers", "3.4.4.3.1", STATED),
    "Lemmas 10 and 13": (r"^lem-1[03]\.", 4, "values are rounded, and maxima selected", "3.4.4.1", STATED),
    "Lemma 12": (r"^lem(ma)?-12\..*corrected$", 2, "a threshold removes deviations", "3.4.4.1", CORRECTED),
    "Proposition 4": (r"^prop-4\.", 5, "soft attention spreads over long sequences", "3.5.7.2", STATED),
    "Proposition 5": (r"^prop-5\.(first|second|case|confirmed|spoilt)", 7, "at all lengths only W_Qp'W_Kp = 0 is right",
                      "3.5.7.3", STATED),
    "equation 3.8": (r"^equation-3\.8\.corrected$", 1, "scores with all transposes", "3.5.7.3", CORRECTED),
    "Proposition 5, converse": (r"^prop-5\.enough", 6, "W_Qp'W_Kp = 0 can be enough", "3.5.7.3", OWN),
    "n-grams": (r"^ngram\.(exact|guess|sampled)", 13, "the least error of a predictor of n tokens", "3.5.3", OWN),
    "evaluation sequences": (r"^evaluation-size\.corrected$", 1, "reads of 100,000 sequences", "3.5.2", CORRECTED),
    "carries": (r"^carries\.", 3, "a flip-flop carries in additions", "3.2.2, Figure 3.2", STATED),
    "operand": (r"^operand\.corrected$", 1, "the operand of Table 3.2 gives the printed sum", "3.2.2, Figure 3.2",
                CORRECTED),
    "floor": (r"^floor\.", 6, "the least generative loss", "3.5.1.2", OWN),
}  # fmt: skip
TRENDS = {"near chance on sparse strings": "ngram.near-chance", "right on dense strings": "ngram.dense"}
ANSWERS = 12  # of two models to six additions
PRINTED = {
    "Lemma 12": ("lemma-12", 2, "3.4.4.1"),
    "equation 3.6": ("equation-3.6", 2, "3.5.7"),
    "Proposition 3, scores": ("proposition-3-scores", 1, "3.5.7.1"),
    "Proposition 3, constant": ("proposition-3-constant", 1, "3.5.7.1"),
    "equation 3.8": ("equation-3.8", 1, "3.5.7.3"),
    "before equation 3.13": ("proposition-5-words", 1, "3.5.7.3"),
    "evaluation sequences": ("evaluation-size", 1, "3.5.2"),
    "operand": ("addition-operand", 1, "3.2.2, Figure 3.2"),
}


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 22, and those of claim 24 that need no model."""
    rows = context.theory()
    held = rows.filter(pl.col("form") != "printed")
    for name, (pattern, count, what, section, kind) in PARTS.items():
        group = held.filter(pl.col("check").str.contains(pattern))
        yield Gate(
            "22",
            name,
            f"checks that do not hold, or are missing ({what})",
            SOURCE.format(section),
            NONE,
            *failing(group, name, expected(context, count)),
            kind=kind,
        )
    for name, (erratum, count, section) in PRINTED.items():
        group = rows.filter(form="printed", erratum=f"flipflop-{erratum}")
        yield Gate(
            "22", f"{name}, as printed", "checks to show that the printed form fails that do not, or are missing",
            SOURCE.format(section), NONE, *failing(group, name, expected(context, count)), kind=OWN,
        )  # fmt: skip
    yield Gate(
        "22", "every check is judged", "checks, but those of forms as printed, that belong to no gate, or to several",
        SOURCE.format("3.5"), NONE, *unjudged(held), kind=OWN,
    )  # fmt: skip
    yield from _additions(context)
    checks = {row["check"]: row for row in rows.iter_rows(named=True)}
    for name, check in TRENDS.items():
        yield evidence.check_gate(checks, "24", f"n-grams, {name}", check, SOURCE.format("3.5.3"))


def expected(context: Results, count: int) -> int | None:
    """Return how many checks a gate has; None at smoke scale, where fewer lengths are tried."""
    return None if context.scale == "smoke" else count


def failing(rows: pl.DataFrame, name: str, count: int | None) -> Evidence:
    """Return how many of the checks do not hold, and how many there are too few or too many; one that is not defined
    does not hold."""
    if not rows.height:
        return None, f"there are no checks of {name}"
    holds = rows["passed"] & rows["measured"].is_not_nan() & rows["measured"].is_not_null()
    off = 0 if count is None else abs(count - rows.height)
    return Measured(float((~holds.fill_null(False)).sum() + off), n=rows.height), ""


def unjudged(rows: pl.DataFrame) -> Evidence:
    """Return how many checks match the names of no gate, or of several."""
    if not rows.height:
        return None, "there are no checks"
    patterns = [pattern for pattern, *_ in PARTS.values()] + [f"^{check}$" for check in TRENDS.values()]
    matches = rows.select(
        sum(pl.col("check").str.contains(pattern).cast(pl.Int32) for pattern in patterns)
    ).to_series()
    return Measured(float((matches != 1).sum()), n=rows.height), ""


def _additions(context: Results) -> Iterator[Gate]:
    table, source = context.table("addition"), SOURCE.format("3.5.6.1, Tables 3.2 and 3.3")
    wrong = {
        "marks": ("right", "marked_right", "answers whose printed mark is not what their sum says", source),
        "sums": ("printed_truth", "truth", "printed sums that are wrong", source),
        "carries": (
            "carried", "truth", "sums for which a flip-flop carries wrongly", SOURCE.format("3.2.2, Figure 3.2"),
        ),
    }  # fmt: skip
    for name, (left, right, what, where) in wrong.items():
        same = pl.col(left).is_not_null() & (pl.col(left) == pl.col(right)).fill_null(False)
        # What is missing counts as wrong, and so does what is there twice.
        off = table.filter(~same).height + abs(ANSWERS - table.height)
        count = (
            (Measured(float(off), n=table.height), "")
            if table.height
            else (None, "no additions are recorded")
        )
        yield Gate("22", f"additions, {name}", f"{what}, or that are not there", where, NONE, *count)
