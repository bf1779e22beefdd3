"""Claims 1 to 7 and 27: theorems and closed forms, executed (Li 2025, section 2.1; chapter 5)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured
from pipeline.studies.topic.claims.common import SECTION, between
from schemas.claims import CORRECTED, OWN, STATED

NONE = at_most(0.0)
# What the variants of `pipeline.models.topic_attention.stage_two` are called, as in the rows of the theory.
NORMALISERS = {"paper": "normaliser as printed", "consistent": "normaliser with [MASK]"}
# Gate: its claim, names of its checks, how many there are at scale quick, what its source says, section, kind. Each
# check that is not of a printed form belongs to one gate.
PARTS = {
    "Proposition 2.1.1": ("1", r"^masking\.", 11, "shares of words behind the masking", "2.1.7.5", STATED),
    "Theorem 2.1.4, sufficient": ("1", r"^optimal-set\.sufficient\.", 4, "matrices of the set are optimal", "2.1.7.3",
                                  STATED),
    "Theorem 2.1.4, necessary": ("1", r"^optimal-set\.necessary\.", 4, "optimal matrices are in the set", "2.1.7.3",
                                 STATED),
    "Theorem 2.1.4, size of the set": ("1", r"^optimal-set\.(dimension|floor|perturbed|all-topics)", 13,
                                       "dimension, least loss, and what perturbations cost", "2.1.7.3", OWN),
    "Theorem 2.1.2": ("1", r"^vanishing\.(minimum-norm|vertex)\.", 8, "the limit of a vanishing penalty is the "
                      "optimum of least norm", "2.1.4.2", STATED),
    "Theorem 2.1.2, numbers and paths": ("1", r"^vanishing\.(value|slope|proportion|saturates|descent)\.", 22,
                                         "entries, ridge solutions and gradient descent", "2.1.4.2", OWN),
    "losses of stage 2": ("1", r"^loss\.(enumerated|uniform)\.", 6, "exact sums are those of enumeration", "2.1.7.7",
                          OWN),
    "Remark 2.1.5": ("1", r"^loss\.(gamma-only|same-gamma)\.", 6, "over uniform blocks only γ matters", "2.1.4.3",
                     STATED),
    "optima of stage 2": ("1", r"^optimum\.", 5, "two ways find the same optimum, and it is the only one", "2.1.7.7",
                          OWN),
    "landscapes at points": ("1", r"^landscape\.", 20, "losses and optima as computed before", "2.1.5.5", OWN),
    "Theorem 2.1.3, other maskings": ("1", r"^interval\.maskings\.", 3, "the intervals with other maskings",
                                      "2.1.4.3", OWN),
    "Assumption 2.1.3": ("1", r"^assumption\.v$", 1, "v of 10 is enough", "2.1.4.3", STATED),
    "constants of Theorem 2.1.3": ("1", r"^lambda-1\.(corrected|swapped|reached)$", 3, "what the proof's constant is",
                                   "2.1.7.7", CORRECTED),
    "Theorem 2.1.1": ("1", r"^embeddings\.", 12, "optimal embeddings have the five properties", "2.1.3", STATED),
    "Theorem 2.1.1, its bias": ("1", r"^bias\.corrected\.", 4, "the bias is one of words", "2.1.3", CORRECTED),
    "floors": ("1", r"^floors\.", 8, "least losses where topics are known", "2.1.5.1", OWN),
    "slips": ("1", r"^(indices|hessian-rank|penalty|normaliser|proof-q|softmax|equation-2\.20|equation-2\.26|"
              r"comparison|combination|table-2\.1|remark-2\.1\.2|example)\.corrected", 17, "what stands in the "
              "place of misprints holds", "2.1", CORRECTED),
    "Theorem 2.1.3, printed interval": ("3", r"^interval\.block-\w+\.printed$", 2, "the optimal γ lies in the interval",
                                        "2.1.4.3", STATED),
    "Theorem 2.1.3, proof's interval": ("3", r"^interval\.block-\w+\.proof$", 2, "the optimal γ lies in the interval "
                                        "that the proof gives", "2.1.7.7", CORRECTED),
    "Theorem 2.1.5": ("3", r"^interval\.diag-\w+\.printed$", 2, "the optimal β and α lie in the intervals", "2.1.7.8",
                      STATED),
    "growth with τ": ("4", r"^growth\.", 4, "optimal weights grow with the number of topics", "2.1.5.5", STATED),
    "limit of γ": ("5", r"^limit\.(nearer\.)?block-", 8, "with a = (1 - p_c) p_m, γ/τ tends to 1/a for the "
                   "normaliser with [MASK], and to (1 - p_M)/a, where p_M = p_m(1 - p_c - p_r), for that as printed",
                   "2.1.4.3", OWN),
    "limit of β": ("5", r"^limit\.((nearer\.)?diag-|alpha\.|loss\.)", 16, "β/(vτ) tends to the limit of γ/τ, α/β "
                   "to 0, the loss to p_r", "2.1.7.8", OWN),
    "free attention": ("7", r"^free\.(not-worse|gap|spread|mask|value)\.", 30, "the family is nearly as good as any "
                       "attention", "2.1.4.3", OWN),
    "free attention, with the weight of [MASK]": ("7", r"^free\.family\.corrected\.", 6, "with the weight of [MASK] "
                                                  "free the family is as good as any attention", "2.1.4.3", CORRECTED),
    "gradients near zero": ("27", r"^(ce|sq)-(exact|batch)\.(values|keys|queries|order)$", 16, "how gradients scale "
                            "with the weights", "2.1.6.1", STATED),
    "gradients, two ways": ("27", r"^(ce|sq)-(exact|batch)\.(limit|differences|key-bias)$", 8, "closed forms and "
                            "differences, and none of the key bias", "2.1.6.1", OWN),
}  # fmt: skip
# Misprints: erratum, how many rows show it at scale quick, section.
PRINTED = {
    "indices": ("indices", 1, "2.1.7.1"),
    "rank of the Hessian": ("hessian-rank", 1, "2.1.7.1, Remark 2.1.8"),
    "penalty": ("penalty", 1, "2.1.7.1, Remark 2.1.8"),
    "normaliser": ("normaliser", 5, "2.1.7.5, Proposition 2.1.2"),
    "q of the proof": ("proof-q", 2, "2.1.7.7"),
    "softmax": ("softmax", 1, "2.1.1"),
    "equation 2.20": ("equation-2.20", 1, "2.1.7.6"),
    "λ₁": ("lambda-1", 1, "2.1.4.3, Theorem 2.1.3"),
    "equation 2.26": ("equation-2.26", 2, "2.1.7.7"),
    "combined cases": ("combination", 1, "2.1.7.7"),
    "compared cases": ("comparison", 2, "2.1.7.7"),
    "Assumption 2.1.2": ("assumption-2.1.2", 6, "2.1.4.3"),
    "bias of Theorem 2.1.1": ("bias", 4, "2.1.3"),
    "example of Theorem 2.1.1": ("example", 2, "2.1.7.2"),
    "Remark 2.1.2": ("remark-2.1.2", 1, "2.1.3"),
    "caption of Table 2.1": ("table-2.1", 1, "2.1.5.3"),
}
SMALL = 1e-3  # a weight that is next to none


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 7 and 27."""
    rows = context.theory()
    held = rows.filter(pl.col("form") != "printed")
    for name, (claim, pattern, count, what, section, kind) in PARTS.items():
        checks = held.filter(pl.col("check").str.contains(pattern))
        yield Gate(
            claim,
            name,
            f"number of checks that fail or are missing ({what})",
            SECTION.format(section),
            NONE,
            *failing(checks, name, expected(context, count)),
            kind=kind,
        )
    for name, (erratum, count, section) in PRINTED.items():
        checks = rows.filter(form="printed", erratum=f"topic-{erratum}")
        yield Gate(
            "1",
            f"{name}, as printed",
            "number of checks meant to show the slip that do not show it, or are missing",
            SECTION.format(section),
            NONE,
            *failing(checks, name, expected(context, count)),
            kind=OWN,
        )
    yield Gate(
        "1",
        "every check is judged",
        "number of checks of forms that hold that belong to no gate, or to several",
        SECTION.format("2.1"),
        NONE,
        *unjudged(held),
        kind=OWN,
    )
    yield from _vanishing(rows)
    yield from _attention(context)
    yield from _limit(rows)
    yield from _landscapes(context)
    yield from _free(rows)


def expected(context: Results, count: int) -> int | None:
    """Return how many checks a gate has; None at smoke scale, where fewer sizes are tried."""
    return count if context.scale == "quick" else None


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
    patterns = [pattern for _, pattern, *_ in PARTS.values()]
    matches = rows.select(
        sum(pl.col("check").str.contains(pattern).cast(pl.Int32) for pattern in patterns)
    ).to_series()
    return Measured(float((matches != 1).sum()), n=rows.height), ""


def _vanishing(rows: pl.DataFrame) -> Iterator[Gate]:
    source = SECTION.format("2.1.4.2, Theorem 2.1.2")
    yield Gate(
        "2",
        "least norm",
        "largest distance of the closed form from the least-squares solution of least norm, over all sizes",
        source,
        below(1e-10),
        *evidence.checks(rows, r"^vanishing\.minimum-norm\.", column_max("measured")),
    )
    for name, value in (("least", column_min("measured")), ("largest", column_max("measured"))):
        yield Gate(
            "2", f"{name} slope", f"{name} slope of the distance of ridge solutions in logarithms of λ, over all sizes",
            source, between(0.9, 1.1), *evidence.checks(rows, r"^vanishing\.slope\.", value), kind=OWN,
        )  # fmt: skip


def _attention(context: Results) -> Iterator[Gate]:
    table = context.table("stage2_opt")
    theorems = {"block": "2.1.4.3, Theorem 2.1.3", "diag": "2.1.7.8, Theorem 2.1.5"}
    for kind, theorem in theorems.items():
        landscapes = table.filter(kind=kind)
        outside = (~pl.col("inside") | broken("gamma_star")).sum().cast(pl.Float64)
        yield Gate(
            "3",
            f"{theorem.split(', ')[1]}, Figures 2.7 and 2.8",
            "number of landscapes whose optimum is not where the theorem says",
            SECTION.format(theorem),
            NONE,
            *evidence.reduced(landscapes, outside, "there are no landscapes"),
        )
    for variant, normaliser in NORMALISERS.items():
        landscapes = table.filter(kind="block", variant=variant).sort("tau")
        step = column_min(pl.col("gamma_star").fill_null(float("nan")).diff().slice(1))
        yield Gate(
            "4", f"γ grows, {normaliser}", "change of the optimal γ from one τ to the next, least of all",
            SECTION.format("2.1.5.5"), above(0.0),
            *evidence.reduced(landscapes, step, "there are too few landscapes", least=2),
        )  # fmt: skip


def broken(column: str) -> pl.Expr:
    """Return whether a value is null or NaN."""
    return pl.col(column).is_null() | pl.col(column).is_nan()


def _limit(rows: pl.DataFrame) -> Iterator[Gate]:
    yield Gate(
        "5", "at T = 1e8, τ = 1e4", "largest relative distance of γ/τ from 1/a with the normaliser with [MASK]",
        SECTION.format("2.1.4.3"), below(0.01),
        *evidence.checks(rows, r"^limit\.block-consistent-\d+$", column_max("measured")), kind=OWN,
    )  # fmt: skip


def _landscapes(context: Results) -> Iterator[Gate]:
    table = context.table("stage2_opt")
    diagonal, block = (table.filter(kind=kind) for kind in ("diag", "block"))
    seven, eight = SECTION.format("2.1.5.5, Figure 2.7"), SECTION.format("2.1.5.5, Figure 2.8")
    missing = "there are no landscapes"
    ratio = column_max(pl.col("ratio_high") / pl.col("lambda5"))
    yield Gate(
        "6",
        "diagonal, α/β over λ₅",
        "α/β where the loss is lowest, over λ₅, largest of all landscapes",
        seven,
        below(1.0),
        *evidence.reduced(diagonal, ratio, missing),
    )
    for variant, normaliser in NORMALISERS.items():
        ordered = diagonal.filter(variant=variant).sort("tau")
        powers = pl.col("beta_low").fill_null(float("nan")).log10()
        few = "there are too few landscapes"
        yield Gate(
            "6",
            f"diagonal, β never falls, {normaliser}",
            "change of the smallest β where the loss is lowest from one τ to the next, in powers of ten, least of all",
            seven,
            at_least(0.0),
            *evidence.reduced(ordered, column_min(powers.diff().slice(1)), few, least=2),
        )
        yield Gate(
            "6",
            f"diagonal, β grows, {normaliser}",
            "change of the smallest β where the loss is lowest from the first τ to the last, in powers of ten",
            seven,
            above(0.0),
            *evidence.reduced(ordered, powers.last() - powers.first(), few, least=2),
        )
        steps = pl.col("gamma_low").fill_null(float("nan")).diff().slice(1)
        corner = block.filter(variant=variant).sort("tau")
        yield Gate(
            "6",
            f"blocks, γ grows, {normaliser}",
            "change of the smallest γ where the loss is lowest from one τ to the next, least of all",
            eight,
            above(0.0),
            *evidence.reduced(corner, column_min(steps), few, least=2),
        )
    yield Gate(
        "6",
        "blocks, γ alone",
        "largest distance of the loss from that at α = β = γ",
        eight,
        below(1e-12),
        *evidence.largest(block, "gamma_gap", missing),
    )
    for column, letter, other in (("alpha", "α", "β"), ("beta", "β", "α")):
        for name, end, value, bar in (
            (f"blocks, {column} small", f"{column}_low", column_max(f"{column}_low"), at_most(SMALL)),
            (f"blocks, {column} large", f"{column}_high", column_min(f"{column}_high"), at_least(10.0)),
        ):  # fmt: skip
            first, second = ("smallest", "largest") if end.endswith("low") else ("largest", "smallest")
            measure = (
                f"{first} {letter} where the loss is lowest with some {other}, {second} of all landscapes"
            )
            yield Gate("6", name, measure, eight, bar, *evidence.reduced(block, value, missing))
    for name, value, bar in (
        ("smallest", column_min("gamma_low"), at_least(20.0)),
        ("largest", column_max("gamma_high"), at_most(200.0)),
    ):
        yield Gate(
            "6",
            f"blocks, {name} γ",
            f"{name} γ where the loss is lowest, of all landscapes",
            eight,
            bar,
            *evidence.reduced(block, value, missing),
            kind=OWN,
        )


def _free(rows: pl.DataFrame) -> Iterator[Gate]:
    source = SECTION.format("2.1.4.3, Assumption 2.1.2")
    for name, check, what, bar in (
        ("not worse", "not-worse", "largest excess of the free loss over the family's least", at_most(0.0)),
        ("gap", "gap", "largest relative gap of the family's least loss to the free one", below(5e-4)),
        ("spread", "spread", "largest relative spread of γ over query words", below(0.01)),
    ):  # fmt: skip
        measurement = evidence.checks(rows, rf"^free\.{check}\.", column_max("measured"))
        yield Gate("7", name, what, source, bar, *measurement, kind=OWN)
