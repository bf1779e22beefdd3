"""Fourier coefficients of the majority, and the half of inputs on which a neuron is active (Liu 2024, section
4.2.6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import exceptions, judged, of, row
from pipeline.studies.distillation.constructions import LIU, corrected, printed
from pipeline.studies.distillation.exact import relu
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Majority

NOTATIONS, CLAIM_7, COROLLARY_3 = (
    LIU.format("6, Notations"),
    LIU.format("6.1, Claim 7"),
    LIU.format("6.1, Corollary 3"),
)
GAP = 0.03  # the constant of the printed gap


def check(entry: Majority, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the majority."""
    rng = stream(seed, entry.study, key)
    with one_thread():
        made = [
            *_coefficients(entry),
            *_gaps(entry),
            *_sizes(entry),
            *_sums(entry),
            *_mean(entry),
            *_halves(entry, rng),
        ]
        return theory.rows(entry.study, key, NOTATIONS, judged("32", "all other checks", made))


def _coefficients(entry: Majority) -> Iterator[dict[str, Any]]:
    off = []
    for d in entry.coordinates:
        known = np.array([relu.majority_coefficient(d, i) for i in range(d + 1)])
        off.append(np.abs(relu.fourier(relu.majority(relu.cube(d))) - known[relu.degrees(d)]))
    size = f"d = {', '.join(map(str, entry.coordinates))}, all sets, all inputs"
    yield row(
        "majority.coefficients",
        "Coefficients of the majority are 0 for even sets, and the closed form for odd ones: largest error",
        size,
        largest(*off),
        "<=",
        1e-12,
        **of("3", "majority"),
    )
    ratios = [
        relu.majority_coefficient(d, k + 1) / relu.majority_coefficient(d, k - 1) + relu.damping(d, k)
        for d in range(5, entry.pairs + 1, 2)
        for k in range(2, d - 1, 2)
    ]
    yield row(
        "majority.ratio",
        "zeta_(k+1) is -(k - 1)/(d - k) times zeta_(k-1): largest error of the ratio",
        f"odd d to {entry.pairs}, even k below d",
        largest(np.abs(ratios)),
        "<=",
        1e-9,
    )


def _gaps(entry: Majority) -> Iterator[dict[str, Any]]:
    def slack(d: int, k: int) -> float:
        return relu.gap(d, k) / (GAP * (d - 1) ** (-(k - 1) / 2))

    sizes = range(5, entry.pairs + 1, 2)
    yield row(
        "majority.gap",
        "|zeta_(k-1)| - |zeta_(k+1)| is at least 0.03 (d-1)^(-(k-1)/2): least ratio of the two",
        f"odd d to {entry.pairs}, even k below d/2",
        smallest(slack(d, k) for d in sizes for k in range(2, d // 2 + 1, 2)),
        ">=",
        1.0,
        source=CLAIM_7,
        detail=f"{relu.gap(31, 4):.2g} against {GAP * 30**-1.5:.2g} for d = 31, k = 4",
    )
    yield row(
        "majority.gap-none",
        "From k = (d+1)/2 on there is no gap, which the printed bound does not say: largest gap",
        f"odd d to {entry.pairs}, even k from (d+1)/2 to d - 1",
        largest(relu.gap(d, k) for d in sizes for k in range(2, d, 2) if k >= (d + 1) / 2),
        "<=",
        1e-12,
        source=CLAIM_7,
    )


def printed_size(d: int, i: int) -> float:
    """Return i^(-1/3) / C(d, i), the printed size of zeta_i."""
    return float(i ** (-1 / 3) / math.comb(d, i))


def corrected_size(d: int, i: int) -> float:
    """Return i^(-3/4) / sqrt(C(d, i)), the size of zeta_i for i up to d/2."""
    return float(i**-0.75 / math.sqrt(math.comb(d, i)))


def _sizes(entry: Majority) -> Iterator[dict[str, Any]]:
    many = [d for d in (15, 31, 101, 301, 1001) if d <= entry.most]
    exact = np.array([abs(relu.majority_coefficient(d, 3)) for d in many])
    ratios = exact / [printed_size(d, 3) for d in many]
    both = printed_size(15, 3), corrected_size(15, 3)
    numbers = f"d = 15, i = 3: exact {exact[0]:.4f}, printed {both[0]:.4f}, corrected {both[1]:.4f}"
    yield row(
        "majority.size.printed",
        "zeta_3 is of the printed size i^(-1/3)/C(d,i): how far apart the ratios of the two are, largest to least",
        f"d = {', '.join(map(str, many))}",
        largest(ratios) / smallest(ratios),
        ">=",
        2.0,
        detail=numbers,
        **printed("majority-size"),
    )
    ratios = np.array(
        [
            abs(relu.majority_coefficient(d, i)) / corrected_size(d, i)
            for d in (*range(9, entry.pairs + 1, 2), entry.most)
            for i in range(1, d // 2 + 1, 2)
        ]
    )
    yield row(
        "majority.size.corrected",
        "zeta_i is of the size i^(-3/4)/sqrt(C(d,i)): how far apart the ratios of the two are, largest to least",
        f"odd d from 9 to {entry.pairs}, and {entry.most}, odd i to d/2",
        largest(ratios) / smallest(ratios),
        "<=",
        2.0,
        detail=f"ratios {ratios.min():.3f} to {ratios.max():.3f}",
        **corrected("majority-size"),
    )


def total(d: int) -> float:
    """Return the sum of |zeta_A| over all sets A of d coordinates."""
    return sum(math.comb(d, i) * abs(relu.majority_coefficient(d, i)) for i in range(1, d + 1, 2))


def _sums(entry: Majority) -> Iterator[dict[str, Any]]:
    d = entry.most
    yield row(
        "majority.sum.printed",
        "The sum of |zeta_A| over all sets is of order d^(2/3), as the proof of Corollary 3 "
        "has it: its ratio to that, against the same for d = 15",
        f"d = 15 and {d}",
        (total(d) / d ** (2 / 3)) / (total(15) / 15 ** (2 / 3)),
        ">=",
        10.0,
        source=COROLLARY_3,
        detail=f"d = 15: {total(15):.1f} against {15 ** (2 / 3):.1f}",
        **printed("corollary-3-sum"),
    )
    yield row(
        "majority.sum.corrected",
        "The sum of |zeta_A| doubles with two more coordinates: growth",
        f"d = {d - 2} to {d}",
        total(d) / total(d - 2),
        "within",
        2.0,
        tolerance=0.1,
        source=COROLLARY_3,
        **corrected("corollary-3-sum"),
    )


def _mean(entry: Majority) -> Iterator[dict[str, Any]]:
    means = [abs(relu.majority(relu.cube(d)).mean()) for d in entry.coordinates]
    size = f"d = {', '.join(map(str, entry.coordinates))}, all inputs"
    yield row(
        "majority.mean.printed",
        "The majority is one half on average, as the proof of Corollary 3 uses: |mean|",
        size,
        largest(means),
        "beyond",
        0.5,
        tolerance=0.4,
        source=COROLLARY_3,
        **printed("majority-mean"),
    )
    yield row(
        "majority.mean.corrected",
        "The majority is 0 on average: |mean|",
        size,
        largest(means),
        "<=",
        1e-12,
        source=COROLLARY_3,
        **corrected("majority-mean"),
    )


def _halves(entry: Majority, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield when 1(<w, x> + b >= 0) is half of 1 + Maj(w x): for odd d and |b| < 1, and not otherwise."""
    d = min(entry.coordinates)
    for name, size, bound in (("odd", d, 0.999), ("even", d + 1, 0.999), ("bias", d, 1.0)):
        x, missed, seen = relu.cube(size), 0.0, 0
        for b in (-bound, -0.5, 0.0, 0.5, bound):
            w = 1.0 - 2.0 * rng.integers(2, size=(entry.draws, size))
            active = x @ w.T + b >= 0
            formula = 0.5 + 0.5 * np.sign(x @ w.T)
            missed += exceptions(active != formula, formula)
            seen += active.size
        holds = name == "odd"
        case = {"odd": "d odd, |b| < 1", "even": "d even (control)", "bias": "d odd, b = 1 (control)"}[name]
        yield row(
            f"majority.active-{name}",
            "A neuron is active on half of 1 + Maj of its signed inputs: exceptions, " + case,
            f"d = {size}, all inputs, {5 * entry.draws} neurons",
            missed,
            *(("<=", 0) if holds else (">=", 1)),
            source=LIU.format("6.2"),
            detail=f"of {seen}",
        )
