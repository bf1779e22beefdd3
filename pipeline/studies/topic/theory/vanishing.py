"""Theorem 2.1.2: the optimal value matrix as the L2 penalty vanishes (chapter 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, of, row
from pipeline.languages.topic import Population
from pipeline.studies.topic.constructions import CONTROL, OWN_CHECK, SOURCE, masking_of, named, slope
from pipeline.studies.topic.exact import stage_one
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Vanishing

HERE = SOURCE.format(".4.2, Theorem 2.1.2, and .7.4")
# Numbers computed before for T = v = 10 and the masking of the source, to half a unit of their last digit.
PRINTED = {
    "c1": (0.00144508671, 5e-12),
    "c2": (7.33333333, 5e-9),
    "c3": (1.15606936, 5e-9),
    "bias": (-1.73410405e-4, 5e-13),
    "mask-column": (0.0541907514, 5e-11),
    "different": (-0.0075867052, 5e-11),
    "same": (0.1080202312, 5e-11),
    "norm": (3.5327, 5e-5),
}
SLOPES = {(10, 10, 2): 31.0, (10, 10, 3): 54.0}  # max|W_λ - W*| over λ, in round numbers


def check(entry: Vanishing, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the limit of ridge solutions (TH3)."""
    rng = stream(seed, entry.study, key)
    made = [*_printed(entry)]
    made += [record for size in entry.sizes for record in _limit(entry, size, rng)]
    return theory.rows(entry.study, key, HERE, judged("1", "Theorem 2.1.2, numbers and paths", made))


def _printed(entry: Vanishing) -> Iterator[dict[str, Any]]:
    known = Population(10, 10, 2, masking_of(entry))
    W, constants, masking = known.block_VxV, known.constants, known.masking
    values = {
        "c1": constants.c1,
        "c2": constants.c2,
        "c3": constants.c3,
        "bias": -masking.rho / ((1 - masking.a) * known.words),
        "mask-column": W[1, 0],
        "different": W[1, -1],
        "same": W[1, 2],
        "norm": np.linalg.norm(W),
    }
    for name, (printed, tolerance) in PRINTED.items():
        yield row(
            f"vanishing.value.{name}",
            f"Numbers of Theorems 2.1.1 and 2.1.2 for T = v = 10, as computed before, to the digits noted: {name}",
            "T = 10, v = 10",
            float(values[name]),
            "within",
            printed,
            tolerance=tolerance,
            source=OWN_CHECK,
        )


def _limit(entry: Vanishing, size: list[int], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    topics, v, tau = size
    name, words = named(size)
    known = Population(topics, v, tau, masking_of(entry))
    W = known.block_VxV
    yield row(
        f"vanishing.minimum-norm.{name}",
        "It is the least-squares map of least norm, by the pseudo-inverse of all documents: largest distance",
        words,
        largest(np.abs(W - stage_one.minimum_norm(known))),
        "<=",
        entry.tolerance,
        **of("2", "least norm"),
    )
    # The same from the set of optima: of a row with no noise the squared norm is a parabola in u.
    blank = np.zeros_like(W)
    norms = [float((stage_one.member(known, np.full(len(W), u), blank)[1] ** 2).sum()) for u in (-1.0, 0.0, 1.0)]
    vertex = (norms[0] - norms[2]) / (2 * (norms[0] - 2 * norms[1] + norms[2]))
    yield row(
        f"vanishing.vertex.{name}",
        "Among the optima of the lemma it has the least norm, at u* = -(c₁c₂ + c₃)/(c₂² + Tv): distance of u*",
        words,
        abs(vertex - known.constants.u),
        "<=",
        entry.tolerance,
        part="Theorem 2.1.2",
    )
    distances = np.array([largest(np.abs(stage_one.ridge(known, each) - W)) for each in entry.penalties])
    power = slope(entry.penalties, distances)
    shown = f"λ from {min(entry.penalties):g} to {max(entry.penalties):g}"
    yield row(
        f"vanishing.slope.{name}",
        "With a small penalty λ the optimum is off in proportion to λ: slope of the largest distance in logarithms",
        f"{words}, {shown}",
        power,
        "within",
        1,
        tolerance=entry.slope,
        source=OWN_CHECK,
        **of("2", "slope"),
    )
    if (topics, v, tau) in SLOPES:
        yield row(
            f"vanishing.proportion.{name}",
            "Its largest distance from the limit, over λ",
            f"{words}, λ = {entry.penalties[0]:g}",
            float(distances[0] / entry.penalties[0]),
            "within",
            SLOPES[topics, v, tau],
            tolerance=1.0,
            source=OWN_CHECK,
        )
    coarse = largest(np.abs(stage_one.ridge(known, entry.coarse) - W)) / entry.coarse
    yield row(
        f"vanishing.saturates.{name}",
        f"At λ = {entry.coarse:g} it is not: that ratio, relative to the one at the smallest λ",
        words,
        coarse / float(distances[0] / entry.penalties[0]),
        "<=",
        0.9,
        source=CONTROL,
    )
    start = rng.normal(size=W.shape)
    reached = stage_one.descend(known, start, entry.descent, entry.steps)
    yield row(
        f"vanishing.descent.{name}",
        f"Gradient descent on the loss with the penalty {entry.descent:g} ends there from "
        "a random start: largest distance from the ridge solution",
        f"{words}, {entry.steps} steps",
        largest(np.abs(reached - stage_one.ridge(known, entry.descent))),
        "<=",
        entry.reached,
        source=OWN_CHECK,
    )
