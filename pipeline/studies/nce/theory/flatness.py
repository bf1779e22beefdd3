"""How flat the NCE loss is: its range, and around the optimum (Liu 2024, Propositions 7, 8; chapter 5.3, 5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce.constructions import SOURCE, grid, row, rows
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import NCE

PROPOSITION_7, PROPOSITION_8 = (SOURCE.format(f"Proposition {number}") for number in (7, 8))
FAR = 16.0  # R from which the asymptotic form is held against the loss


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Propositions 7 and 8."""
    return rows(theory_id, "flatness", PROPOSITION_7, [*_range(entry), *_around(entry)])


def _range(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array(entry.means, float)
    problem, optimum = log_ratio.mean_problem(NCE, means), mean_optimum(means)
    start = problem.loss(0 * optimum)[:, 0]
    yield row(
        "range-start", "L(tau_q) = log 2: largest difference", grid(means), np.abs(start - np.log(2)).max(), "<=", 1e-10
    )
    scaled = problem.loss(optimum)[:, 0] / families.mean_overlap(means)  # L_* exp(R^2/8)
    ratio = scaled * means / np.sqrt(2 * np.pi)
    beyond = means >= 3
    tested = grid(means[beyond])
    yield row(
        "range-rises",
        "L_* exp(R^2/8) R/sqrt(2 pi) grows towards 1: smallest increase from one R to the next",
        tested,
        np.diff(ratio[beyond]).min(),
        ">=",
        0.0,
    )
    for mean, value in zip(means[means >= FAR], ratio[means >= FAR], strict=True):
        yield row(
            f"range-limit-{mean:g}",
            "|log(L_* exp(R^2/8) R/sqrt(2 pi))|",
            f"R = {mean:g}",
            abs(np.log(value)),
            "<=",
            0.05,
        )
    inside = means[(scaled >= 0.5) & (scaled <= 2)]
    notes = {"erratum": "nce-proposition-7"}
    yield notes | row(
        "range-printed",
        "L_* = c exp(-R^2/8) with c in [1/2, 2] fails: smallest c",
        grid(means),
        scaled.min(),
        "<=",
        0.499,
        detail=f"inside [1/2, 2] up to R = {inside.max():g}",
        form="printed",
    )
    for check, which, value, comparison, bound in (
        ("range-corrected", "smallest", ratio[beyond].min(), ">=", 0.6),
        ("range-corrected-largest", "largest", ratio[beyond].max(), "<=", 1.0),
    ):
        yield notes | row(
            check,
            f"L_* lies between 0.6 and 1 times sqrt(2 pi)/R exp(-R^2/8): {which} factor",
            tested,
            value,
            comparison,
            bound,
            form="corrected",
        )


def _around(entry: Any) -> Iterator[dict[str, Any]]:
    unit, highest, lowest = log_ratio.circle(entry.directions), [], []
    for mean in entry.around:
        problem, optimum = log_ratio.mean_problem(NCE, mean), mean_optimum(mean)
        scale = mean * families.mean_overlap(mean)
        ratios = np.array(
            [
                (problem.loss(optimum + radius * unit) - problem.loss(optimum))[0] / (scale * radius**2)
                for radius in entry.radii
            ]
        )
        highest.append(ratios.max())
        lowest.append(ratios.min())
        statement = "(L(tau) - L_*) / (R exp(-R^2/8) delta^2) is at most 1: largest over directions and delta"
        size = f"R = {mean:g}, {entry.directions} directions, delta = {', '.join(map(str, entry.radii))}"
        yield row(f"around-{mean:g}", statement, size, ratios.max(), "<=", 1.0, source=PROPOSITION_8)
    notes = {"erratum": "nce-proposition-8", "source": PROPOSITION_8}
    size = f"{grid(entry.around)}, {entry.directions} directions"
    yield notes | row(
        "around-printed",
        "L(tau) - L_* = R exp(-R^2/8) delta^2 is no equality: smallest ratio of its sides",
        size,
        smallest(lowest),
        "<=",
        0.1,
        form="printed",
    )
    yield notes | row(
        "around-corrected",
        "It is an upper bound: largest ratio of its sides",
        size,
        largest(highest),
        "<=",
        1.0,
        form="corrected",
    )
