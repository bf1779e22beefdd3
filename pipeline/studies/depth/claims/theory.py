"""Claims 7 and 8: what is possible is built, what is not is certified."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import at_least, at_most, below
from pipeline.kit.verdicts import Gate

RESIDUAL_BELOW = 1e-9
# By theorem: what its construction does, where it is stated, and the checks that run it.
CONSTRUCTIONS = {
    "T1": ("one layer memorizes", "Theorem 1", r"^memorize-"),
    "T3": ("two layers reason", "Theorem 3", r"^copy-match-(all|\d+)$"),
    "T5": ("two layers generalize", "Theorem 5", r"^parse-map-"),
    "T6": ("three layers generalize in context", "Theorem 6", r"^parse-copy-match-"),
    "T9": ("six layers follow three hops", "section 7", r"^nested-(all|\d+)$"),
}
# By theorem: the task, its source, and the checks of residuals and of linear programs.
IMPOSSIBLE = {
    "T2": ("reasoning", "Theorem 2", r"^reasoning-residual-", r"^reasoning-classifier-"),
    "T4": ("generalization", "Theorem 4", r"^templates-residual-", r"^templates-classifier-"),
    "T8": (
        "both with one softmax head",
        "Propositions 9, 10",
        r"^softmax-residual-",
        r"^softmax-classifier-",
    ),
}


def constructions(checks: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 7: constructions are right on all inputs.

    The inputs are exhaustive where small, and at least 1,000 random ones.
    """
    for theorem, (what, where, pattern) in CONSTRUCTIONS.items():
        yield Gate(
            "7",
            theorem,
            f"accuracy of the construction by which {what}, least of all sets of inputs",
            f"Chen and Zou 2024, {where}",
            at_least(1.0),
            *evidence.checks(checks, pattern, pl.col("measured").min()),
        )


def impossibility(checks: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 8: outputs of one layer are dependent.

    No classifier tells the labels apart.
    """
    for theorem, (task, where, residuals, programs) in IMPOSSIBLE.items():
        yield Gate(
            "8",
            f"{theorem}, residual",
            f"relative residual of the dependence between outputs of random models of one layer ({task}), the largest",
            f"Chen and Zou 2024, {where}",
            below(RESIDUAL_BELOW),
            *evidence.checks(checks, residuals, pl.col("measured").max()),
        )
        yield Gate(
            "8",
            f"{theorem}, classifiers",
            f"feasible linear programs, which look for a classifier of outputs of random models of one layer ({task})",
            f"Chen and Zou 2024, {where}",
            at_most(0.0),
            *evidence.checks(checks, programs, pl.col("measured").sum()),
        )
