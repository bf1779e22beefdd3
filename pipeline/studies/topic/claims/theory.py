"""Claims 1 to 7 and 27: theorems and closed forms, executed (Li 2025, section 2.1; chapter 5)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most, below
from pipeline.kit.evidence import Part
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.topic.claims.common import SECTION
from schemas.claims import CORRECTED, OWN, STATED

NONE = at_most(0.0)
# What the variants of `pipeline.studies.topic.exact.stage_two` are called, as in the rows of the theory.
NORMALISERS = {"paper": "normaliser as printed", "consistent": "normaliser with [MASK]"}
ASSUMPTION = "2.1.4.3, Assumption 2.1.2"


def _part(what: str, section: str, kind: str = STATED) -> Part:
    return Part(what, SECTION.format(section), kind)


SLIPS = {  # errata, and where they are printed
    "indices": "2.1.7.1",
    "rank of the Hessian": "2.1.7.1, Remark 2.1.8",
    "penalty": "2.1.7.1, Remark 2.1.8",
    "normaliser": "2.1.7.5, Proposition 2.1.2",
    "q of the proof": "2.1.7.7",
    "softmax": "2.1.1",
    "equation 2.20": "2.1.7.6",
    "λ₁": "2.1.4.3, Theorem 2.1.3",
    "equation 2.26": "2.1.7.7",
    "combined cases": "2.1.7.7",
    "compared cases": "2.1.7.7",
    "Assumption 2.1.2": "2.1.4.3",
    "bias of Theorem 2.1.1": "2.1.3",
    "example of Theorem 2.1.1": "2.1.7.2",
    "Remark 2.1.2": "2.1.3",
    "caption of Table 2.1": "2.1.5.3",
    "normalisation of embeddings": "2.1.5, and the released code",
}
PARTS = {
    "1": {
        "Proposition 2.1.1": _part("shares of words behind the masking", "2.1.7.5"),
        "Theorem 2.1.4, sufficient": _part("matrices of the set are optimal", "2.1.7.3"),
        "Theorem 2.1.4, necessary": _part("optimal matrices are in the set", "2.1.7.3"),
        "Theorem 2.1.4, size of the set": _part("dimension, least loss, and what perturbations cost", "2.1.7.3", OWN),
        "Theorem 2.1.2": _part("among the optima the limit has the least norm", "2.1.4.2"),
        "Theorem 2.1.2, numbers and paths": _part("entries, ridge solutions, gradient descent", "2.1.4.2", OWN),
        "losses of stage 2": _part("exact sums are those of enumeration", "2.1.7.7", OWN),
        "Remark 2.1.5": _part("over uniform blocks only γ matters", "2.1.4.3"),
        "optima of stage 2": _part("two ways find the same optimum, and it is the only one", "2.1.7.7", OWN),
        "landscapes at points": _part("losses and optima as computed before", "2.1.5.5", OWN),
        "Theorem 2.1.3, other maskings": _part("the intervals with other maskings", "2.1.4.3", OWN),
        "Assumption 2.1.3": _part("v of 10 is enough", "2.1.4.3"),
        "constants of Theorem 2.1.3": _part("what the proof's constant is", "2.1.7.7", CORRECTED),
        "Theorem 2.1.1": _part("optimal embeddings have the five properties", "2.1.3"),
        "Theorem 2.1.1, its bias": _part("the bias is one of words", "2.1.3", CORRECTED),
        "floors": _part("least losses where topics are known", "2.1.5.1", OWN),
        "slips": _part("what stands in the place of misprints holds", "2.1", CORRECTED),
    }
    | {f"{slip}, as printed": _part("the printed form is wrong", section, OWN) for slip, section in SLIPS.items()},
    "2": {
        "least norm": _part("the limit is the least-squares solution of least norm", "2.1.4.2, Theorem 2.1.2"),
        "slope": _part("distances of ridge solutions go as the penalty", "2.1.4.2, Theorem 2.1.2", OWN),
    },
    "3": {
        "Theorem 2.1.3, printed interval": _part("the optimal γ lies in the interval", "2.1.4.3"),
        "Theorem 2.1.3, proof's interval": _part(
            "the optimal γ lies in the interval that the proof gives", "2.1.7.7", CORRECTED
        ),
        "Theorem 2.1.5": _part("the optimal β and α lie in the intervals", "2.1.7.8"),
    },
    "4": {"growth with τ": _part("optimal weights grow with the number of topics", "2.1.5.5")},
    "5": {
        "limit of γ": _part(
            "with a = (1 - p_c) p_m, γ/τ tends to 1/a for the normaliser with [MASK], and to (1 - p_M)/a, where "
            "p_M = p_m(1 - p_c - p_r), for that as printed",
            "2.1.4.3",
            OWN,
        ),
        "at T = 1e8, τ = 1e4": _part("γ/τ is near 1/a with the normaliser with [MASK]", "2.1.4.3", OWN),
        "limit of β": _part("β/(vτ) tends to the limit of γ/τ, α/β to 0, the loss to p_r", "2.1.7.8", OWN),
    },
    "7": {
        "not worse": _part("free attention reaches the family's least loss", ASSUMPTION, OWN),
        "gap": _part("the family's least loss is near the free one", ASSUMPTION, OWN),
        "spread": _part("all query words learn the same γ", ASSUMPTION, OWN),
        "free attention": _part("the weight of [MASK], and losses as computed before", "2.1.4.3", OWN),
        "free attention, with the weight of [MASK]": _part(
            "with the weight of [MASK] free the family is as good as any attention", "2.1.4.3", CORRECTED
        ),
    },
    "27": {
        "gradients near zero": _part("how gradients scale with the weights", "2.1.6.1"),
        "gradients, two ways": _part("closed forms and differences, and none of the key bias", "2.1.6.1", OWN),
    },
}
SMALL = 1e-3  # a weight that is next to none


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates of claims 1 to 7 and 27."""
    for claim, parts in PARTS.items():
        yield from evidence.part_gates(context.theory(), claim, parts)
    yield from _attention(context)
    yield from _landscapes(context)


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
            "4",
            f"γ grows, {normaliser}",
            "change of the optimal γ from one τ to the next, least of all",
            SECTION.format("2.1.5.5"),
            above(0.0),
            *evidence.reduced(landscapes, step, "there are too few landscapes", least=2),
        )


def broken(column: str) -> pl.Expr:
    """Return whether a value is null or NaN."""
    return pl.col(column).is_null() | pl.col(column).is_nan()


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
        ):
            first, second = ("smallest", "largest") if end.endswith("low") else ("largest", "smallest")
            measure = f"{first} {letter} where the loss is lowest with some {other}, {second} of all landscapes"
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
