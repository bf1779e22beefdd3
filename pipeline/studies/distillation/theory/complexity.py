"""Theorem 23 and Lemma 66: how many samples, or steps, a student needs (Liu 2024, section 4.2.6).

The simulation of both sides of Theorem 23 is an analysis (`distillation-two-stages`); here are its formulas, and
what can be had by going through all inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import judged, row
from pipeline.studies.distillation.constructions import LIU, UNPUBLISHED
from pipeline.studies.distillation.exact import relu
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Complexity

THEOREM_22, THEOREM_23 = LIU.format("2.3, Theorem 22"), LIU.format("6, Theorem 23")
LEMMA_66 = LIU.format("6.2, Lemma 66")
DELTA, EXACT = 0.1, 1e-12
SHARE = 0.9  # of neurons that show the support


def check(entry: Complexity, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the numbers of samples and steps."""
    rng = stream(seed, entry.study, key)
    with one_thread():
        made = [*_formulas(entry), *_signals(entry, rng), *_predictions(entry, rng), *_parities(entry, rng)]
        return theory.rows(entry.study, key, THEOREM_23, judged("32", "all other checks", made))


def _formulas(entry: Complexity) -> Iterator[dict[str, Any]]:
    sizes, k = np.array(entry.coordinates), entry.k
    m = 2**k * k
    ours = np.array([relu.first_samples(d, k, m, DELTA) for d in sizes])
    theirs = np.array([relu.one_shot_samples(d, k, (k - 1) / 2) for d in sizes])
    slopes = [float(np.polyfit(np.log(sizes), np.log(values), 1)[0]) for values in (ours, theirs)]
    size = f"k = {k}, m = {m}, d = {sizes[0]} to {sizes[-1]}"
    yield row(
        "theorem-23.first",
        "k^2 ln(dm/delta), stage one under progressive distillation, hardly grows with d: exponent",
        size,
        slopes[0],
        "<=",
        0.5,
        detail=f"{ours[0]:.0f} to {ours[-1]:.0f}, without the constant",
    )
    yield row(
        "theorem-23.one-shot",
        "d^min(2c, k-1), under one-shot distillation from a teacher with c = (k-1)/2, grows as d^(k-1): exponent",
        size,
        slopes[1],
        "within",
        k - 1.0,
        tolerance=1e-9,
        detail=f"{theirs[0]:.4g} to {theirs[-1]:.4g}; the proof ends with m = {m} below it",
    )
    grown = [k * k * math.log(2**k * k) / k**3 for k in range(2, 41, 2)]
    yield row(
        "theorem-22.cube",
        "The k^3 of the informal Theorem 22 is k^2 ln m for m = 2^k k: ratio at most, and it falls towards ln 2",
        "even k to 40",
        largest(grown),
        "<=",
        2.0,
        detail=f"{grown[0]:.3f} to {grown[-1]:.3f}, ln 2 = {math.log(2):.3f}",
        source=THEOREM_22,
    )


def _signals(entry: Complexity, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield that the support is in the whole population's gradient for both targets, and how much clearer for one."""
    d, k, m = entry.small, entry.k, entry.m_student
    x, y = relu.cube(d), relu.parity(relu.cube(d), k)
    start = relu.initial(rng, d, k, 2 * m, "iid")
    w, b = start.w[:m], start.b[:m]
    teacher = relu.first_stage(relu.initial(rng, d, k, entry.m_teacher, "aligned"))
    gradients = {name: relu.gradient(w, b, x, t) for name, t in (("aligned", teacher(x)), ("labels", y))}
    targets = {"aligned": "the outputs of the stage-one teacher", "labels": "labels"}
    for name, gradient in gradients.items():
        shown = relu.recovery(gradient, k)
        yield row(
            f"theorem-23.population-{name}",
            f"In the gradient of the whole population on {targets[name]} every "
            "neuron's k largest entries are the support: share of neurons",
            f"d = {d}, k = {k}, m = {m}, all inputs",
            math.nan if np.isnan(gradient).any() else shown.neurons,
            ">=",
            1.0,
            source=UNPUBLISHED,
        )
    gaps = {name: smallest(np.abs(g[:, :k]).min(1) - np.abs(g[:, k:]).max(1)) for name, g in gradients.items()}
    noise = {"aligned": (teacher(x) ** 2).mean() / 2, "labels": 0.5}
    clearer = (gaps["aligned"] ** 2 / noise["aligned"]) / (gaps["labels"] ** 2 / noise["labels"])
    yield row(
        "theorem-23.clearer",
        "The squared gap between entries inside and outside the support over the noise of one "
        "sample is larger for the stage-one teacher than for labels: ratio",
        f"d = {d}, k = {k}, all inputs",
        clearer,
        ">=",
        100.0,
        source=UNPUBLISHED,
    )


def _predictions(entry: Complexity, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield that recovery from batches goes as normal noise on the population's gradient says."""
    d, k, m = entry.small, entry.k, entry.m_student
    inner, outer = (relu.majority_coefficient(d, i) / 2 for i in (k - 1, k + 1))
    batch = relu.predicted_samples([inner] * k, [outer] * (d - k), 0.5, entry.half)
    shares = []
    for _ in range(entry.replicas):
        start = relu.initial(rng, d, k, 2 * m, "iid")
        (gradient,) = relu.batch_gradients(rng, start.w[:m], start.b[:m], [round(batch)], k, None)
        shares.append(math.nan if np.isnan(gradient).any() else relu.recovery(gradient, k).neurons)
    yield row(
        "theorem-23.predicted",
        "At the batch at which normal noise leaves a share of neurons right on labels, that share is right: mean share",
        f"d = {d}, k = {k}, m = {m}, B = {batch:.0f}, {entry.replicas} draws",
        float(np.mean(shares)),
        "within",
        entry.half,
        tolerance=0.15,
        source=UNPUBLISHED,
    )


def _parities(entry: Complexity, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield what stands behind Lemma 66: parities are orthogonal, so no gradient tells many of them apart."""
    d, k = entry.small, entry.k
    x = relu.cube(d)
    sets = list(combinations(range(d), k))
    chi = np.stack([x[:, list(each)].prod(1) for each in sets])
    gram = chi @ chi.T / len(x)
    size = f"d = {d}, k = {k}, all {len(sets)} parities, all inputs"
    yield row(
        "lemma-66.orthogonal",
        "Parities of k coordinates are orthogonal: largest error of their Gram matrix",
        size,
        largest(np.abs(gram - np.eye(len(sets)))),
        "<=",
        EXACT,
        source=LEMMA_66,
    )
    start = relu.initial(rng, d, k, entry.m_student, "iid")
    most = []
    for i in range(entry.m_student // 2):
        seen = (x @ start.w[i] + start.b[i] >= 0)[:, None] * x  # the gradient of one neuron over w, as a function of x
        most.append(((chi @ seen / len(x)) ** 2).sum(0) - (seen**2).mean(0))
    yield row(
        "lemma-66.bessel",
        "Over all parities the squares of one entry of the gradient add up to at most its norm, so "
        "on average over parities to that over C(d, k): largest excess",
        size,
        largest(*most),
        "<=",
        EXACT,
        source=LEMMA_66,
    )
    free = [relu.most_steps(c, k, math.comb(c, k), DELTA, 1.0) for c in entry.coordinates]
    yield row(
        "lemma-66.width",
        "As many neurons as there are parities are forbidden no step, even at the largest gradient "
        "error: most forbidden steps",
        f"k = {k}, d = {entry.coordinates[0]} to {entry.coordinates[-1]}, m = C(d, k)",
        largest(free),
        "<=",
        1.0,
        source=LEMMA_66,
        detail=f"d = 100, k = 6, m = 100, delta = tau_g = 0.1: {relu.most_steps(100, 6, 100, 0.1, 0.1):.0f} steps",
    )
