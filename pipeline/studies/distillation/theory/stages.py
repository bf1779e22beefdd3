"""Stage one and stage two, executed: Claims 7 and 8, Lemmas 63 to 65, Corollaries 3 to 5 (Liu 2024, section 4.2.6)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import judged, of, row
from pipeline.studies.distillation.constructions import LIU, corrected, printed
from pipeline.studies.distillation.exact import relu
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Stages

CLAIM_7, CLAIM_8, LEMMA_63, LEMMA_64, COROLLARY_3, COROLLARY_4, LEMMA_65 = (
    LIU.format(f"6.1, {name}")
    for name in ("Claim 7", "Claim 8", "Lemma 63", "Lemma 64", "Corollary 3", "Corollary 4", "Lemma 65 and Corollary 5")
)
STUDENT = LIU.format("6.2")
DELTA = 0.1
EXACT = 1e-12


def check(entry: Stages, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the two stages of training."""
    rng = stream(seed, entry.study, key)
    with one_thread():
        x = relu.cube(entry.d)
        made = [
            *_gradients(entry, rng, x),
            *_step(entry, rng),
            *_batches(entry, rng),
            *_correlations(entry, rng, x),
            *_aligned(entry, rng),
            *_printed_start(entry, rng),
            *_student(entry, rng, x),
            *_second(entry, rng, x),
            *_batch_formula(),
        ]
        return theory.rows(entry.study, key, LEMMA_63, judged("32", "all other checks", made))


def _inputs(entry: Stages) -> str:
    return f"d = {entry.d}, k = {entry.k}, m = {entry.m}, all inputs"


def _gradients(entry: Stages, rng: np.random.Generator, x: np.ndarray) -> Iterator[dict[str, Any]]:
    start = relu.initial(rng, entry.d, entry.k, entry.m, "iid")
    gradient = start.a[:, None] * relu.gradient(start.w, start.b, x, relu.parity(x, entry.k))
    known = start.a[:, None] * relu.population_gradient(start.w, entry.k)
    scale = np.abs(known).max()
    yield row(
        "claim-7.start",
        "At the start the outputs are 0, so the hinge loss is active everywhere: largest output",
        _inputs(entry),
        largest(np.abs(start(x))),
        "<=",
        0,
        source=CLAIM_7,
        **of("3", "Claim 7"),
    )
    yield row(
        "claim-7.corrected",
        "The gradient of f y over w_ij is a_i/2 times zeta_(k-1) chi_([k] less j)(w_i) inside the "
        "support and zeta_(k+1) chi_([k] and j)(w_i) outside: largest error",
        _inputs(entry),
        largest(np.abs(gradient - known)),
        "<=",
        EXACT,
        source=CLAIM_7,
        **corrected("claim-7-sign") | of("3", "Claim 7"),
    )
    yield row(
        "claim-7.printed",
        "As printed, with a minus sign: largest error against the largest gradient",
        _inputs(entry),
        largest(np.abs(gradient + known)) / scale,
        ">=",
        1.0,
        source=CLAIM_7,
        **printed("claim-7-sign"),
    )


def _step(entry: Stages, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    d, k = entry.d, entry.k
    start = relu.initial(rng, d, k, entry.m, "iid")
    known, rate = relu.first_stage(start).w, relu.first_rate(d, k, entry.m)
    gradient = relu.population_gradient(start.w, k)
    right, wrong = (relu.stepped(start, gradient, rate, decay).w for decay in (1 / (2 * rate), 1.0))
    size = f"d = {d}, k = {k}, m = {entry.m}, the whole population"
    yield row(
        "lemma-63.corrected",
        "After one step with 2 eta_1 lambda_1 = 1 weights are those of Lemma 63: largest error",
        size,
        largest(np.abs(right - known)),
        "<=",
        EXACT,
        **corrected("lemma-63-decay") | of("3", "Lemma 63"),
    )
    yield row(
        "lemma-63.printed",
        "With lambda_1 = 1, as printed: largest error",
        size,
        largest(np.abs(wrong - known)),
        ">=",
        1.0,
        detail=f"eta_1 = {rate:.4g}, so that the start is multiplied by 1 - 2 eta_1",
        **printed("lemma-63-decay"),
    )
    sizes = np.where(np.arange(d) < k, 1.0, relu.damping(d, k)) / (2 * k)
    yield row(
        "lemma-63.sizes",
        "|w| is 1/2k inside the support and (k-1)/(d-k)/2k outside: largest error",
        size,
        largest(np.abs(np.abs(right) - sizes)),
        "<=",
        EXACT,
        detail=f"{sizes[0]:.6g} and {sizes[-1]:.6g}",
        **of("3", "Lemma 63"),
    )
    for batch in (min(entry.batches), max(entry.batches)):
        (estimate,) = relu.batch_gradients(rng, start.w, start.b, [batch], k, None)
        error = np.abs(estimate - gradient).max()
        off = np.abs(relu.stepped(start, estimate, rate, 1 / (2 * rate)).w - known).max()
        yield row(
            f"lemma-63.batch-{batch}",
            "After a step on a batch no weight is further off than the error of the "
            "gradient (without a) over k |zeta_(k-1)|: largest ratio",
            f"d = {d}, k = {k}, m = {entry.m}, B = {batch}",
            float(off / (error / (k * abs(relu.majority_coefficient(d, k - 1))))),
            "<=",
            1 + 1e-9,
            detail=f"error of the gradient {error:.4f}, of weights {off:.4f}",
        )


def _batches(entry: Stages, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield Claim 8: errors of gradients fall as one over the root of the batch, and keep to Hoeffding's bound."""
    m = 2 * entry.m
    errors = np.empty((entry.replicas, len(entry.batches)))
    for r in range(entry.replicas):
        start = relu.initial(rng, entry.d, entry.k, m, "iid")
        known = relu.population_gradient(start.w, entry.k)
        for n, gradient in enumerate(relu.batch_gradients(rng, start.w, start.b, entry.batches, entry.k, None)):
            errors[r, n] = np.abs(gradient - known).max()
    slope = np.polyfit(np.log(entry.batches), np.log(errors).mean(0), 1)[0]
    few, many = entry.batches[0], entry.batches[-1]
    size = f"d = {entry.d}, k = {entry.k}, m = {m}, B = {few} to {many}, {entry.replicas} draws"
    bounds = np.array([relu.hoeffding(m, entry.d, batch, DELTA) for batch in entry.batches])
    yield row(
        "claim-8.slope",
        "The largest error of a batch gradient (without a) falls as a power of the batch: exponent",
        size,
        float(slope),
        "within",
        -0.5,
        tolerance=0.05,
        source=CLAIM_8,
    )
    yield row(
        "claim-8.bound",
        "It is at most sqrt(2 ln(2md/delta)/B), but with probability delta = 0.1: share of draws and batches above it",
        size,
        float((errors > bounds).mean()) if np.isfinite(errors).all() else math.nan,
        "<=",
        DELTA,
        source=CLAIM_8,
        detail=f"at B = {entry.batches[-1]}: {errors[:, -1].mean():.4f} against {bounds[-1]:.4f}",
    )


def _correlations(entry: Stages, rng: np.random.Generator, x: np.ndarray) -> Iterator[dict[str, Any]]:
    d, k = entry.d, entry.k
    off, odd, even, norms = [], [], [], []
    modes: tuple[relu.Mode, ...] = ("aligned", "iid")
    for mode in modes:
        taught = relu.first_stage(relu.initial(rng, d, k, entry.m, mode))
        f = taught(x)
        off.append(np.abs(f @ x / len(x) - relu.correlations(taught)))
        odd.append(np.abs(f + taught(-x)))
        even.append(np.abs(relu.fourier(f)[relu.degrees(d) % 2 == 0]))
        norms.append((f**2).mean() / (d / k))
    yield row(
        "lemma-64.closed",
        "Correlations behind stage one with single coordinates are sums of influences: largest error",
        _inputs(entry),
        largest(*off),
        "<=",
        EXACT,
        source=LEMMA_64,
    )
    yield row(
        "lemma-64.odd",
        "The network behind stage one is odd: largest |f(x) + f(-x)|",
        _inputs(entry),
        largest(*odd),
        "<=",
        EXACT,
        source=LEMMA_64,
        **of("3", "Lemma 64, odd"),
    )
    yield row(
        "lemma-64.even",
        "Its Fourier coefficients of even sets are 0: largest",
        _inputs(entry),
        largest(*even),
        "<=",
        EXACT,
        source=LEMMA_64,
        **of("3", "Lemma 64, odd"),
    )
    yield row(
        "lemma-64.norm",
        "E f(x)^2 is at most of order d/k: largest ratio to d/k",
        _inputs(entry),
        largest(norms),
        "<=",
        1.0,
        source=LEMMA_64,
    )
    inside, outside = relu.influences(d, k)
    ratio = relu.damping(d, k)
    yield row(
        "lemma-64.pair",
        "A pair of neurons with b >= 0 has a correlation of at least 1/4k: least, times 4k",
        f"d = {d}, k = {k}, all b",
        smallest(2 * inside[k - 1 :]) * 4 * k,
        ">=",
        1.0,
        source=LEMMA_64,
    )
    yield row(
        "lemma-64.outside.corrected",
        "Outside the support a pair's correlation is at most (1/k)(k-1)/(d-k), of order 1/d: largest ratio",
        f"d = {d}, k = {k}, all b",
        largest(2 * outside) / (ratio / k),
        "<=",
        1.0,
        source=LEMMA_64,
        **corrected("lemma-64-outside"),
    )
    many = [2 * relu.influences(101, q)[1].max() * 101 * q for q in (2, 4, 8, 16)]
    yield row(
        "lemma-64.outside.printed",
        "Outside the support a pair's correlation is at most of order 1/(kd): kd times the "
        "largest, for k = 16 against k = 2",
        "d = 101, all b",
        many[-1] / many[0],
        ">=",
        4.0,
        source=LEMMA_64,
        detail="k = 2, 4, 8, 16: " + ", ".join(f"{value:.2f}" for value in many),
        **printed("lemma-64-outside"),
    )


def _aligned(entry: Stages, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    d, k = entry.d, entry.k
    for m in entry.widths:
        c = relu.correlations(relu.first_stage(relu.initial(rng, d, k, m, "aligned", (entry.replicas,))))
        yield row(
            f"lemma-64.aligned-{m}",
            "From the aligned start that the proof takes, correlations inside the support are "
            "at least 1/8k: least over replicas, times 8k",
            f"d = {d}, k = {k}, m = {m}, {entry.replicas} replicas",
            smallest(c[:, :k]) * 8 * k,
            ">=",
            1.0,
            source=LEMMA_64,
            detail=f"mean {c[:, :k].mean():.4f}, largest outside {np.abs(c[:, k:]).max():.4f}",
            **corrected("lemma-64-start"),
        )


def _printed_start(entry: Stages, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield Lemma 64 from the printed start: signs of neurons differ, and their correlations cancel."""
    d, k, m = entry.d, entry.k, entry.wide
    inside, outside, replicas = [], [], 16 * entry.replicas
    for _ in range(replicas):
        correlations = np.abs(relu.correlations(relu.first_stage(relu.initial(rng, d, k, m, "iid"))))
        inside.append(correlations[:k].mean())
        outside.append(correlations[k:].mean())
    known = relu.spread(d, k, m)
    size = f"d = {d}, k = {k}, m = {m}, {replicas} replicas"
    yield row(
        "lemma-64.iid.printed",
        "From the printed start correlations inside the support are at least 1/8k: largest "
        "mean |c_j| over replicas, times 8k",
        size,
        largest(inside) * 8 * k,
        "<=",
        0.5,
        source=LEMMA_64,
        **printed("lemma-64-start"),
    )
    yield row(
        "lemma-64.iid.corrected",
        "From the printed start they shrink as one over the root of m: mean |c_j| inside the "
        "support against the closed form",
        size,
        float(np.mean(inside)) / known[0],
        "within",
        1.0,
        tolerance=0.15,
        source=LEMMA_64,
        detail=f"{known[0] * k * math.sqrt(m):.3f}/(k sqrt(m))",
        **corrected("lemma-64-start"),
    )
    yield row(
        "lemma-64.iid-ratio",
        "From the printed start correlations inside and outside the support differ by "
        "(d-k)/(k-1): closed form against that",
        f"d = {d}, k = {k}",
        known[0] / known[1] * relu.damping(d, k),
        "within",
        1.0,
        tolerance=0.05,
        source=LEMMA_64,
        detail=f"measured {np.mean(inside) / np.mean(outside):.2f}",
    )


def _student(entry: Stages, rng: np.random.Generator, x: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield what a student's first gradient on the outputs of the stage-one teacher is (Corollary 3, Theorem 23)."""
    d, k = entry.d, entry.k
    zero, wrong, off, apart = [], [], [], []
    modes: tuple[relu.Mode, ...] = ("aligned", "iid")
    for mode in modes:
        taught = relu.first_stage(relu.initial(rng, d, k, entry.m, mode))
        f, c = taught(x), relu.correlations(taught)
        with_majority = (f * relu.majority(x)) @ x / len(x)
        zero.append(np.abs(with_majority))
        wrong.append(np.abs(with_majority - c / 2).max() / np.abs(c / 2).max())
        student = relu.initial(rng, d, k, entry.m, "iid")
        gradient = relu.gradient(student.w, student.b, x, f)
        off.append(np.abs(gradient - c / 2))
        apart.append(np.ptp(gradient, axis=0))
    yield row(
        "corollary-3.printed",
        "E f(x) Maj(x) x_i is c_i/2: largest difference against the largest c_i/2",
        _inputs(entry),
        smallest(wrong),
        ">=",
        0.9,
        source=COROLLARY_3,
        **printed("majority-mean"),
    )
    yield row(
        "corollary-3.majority",
        "For a network that is odd E f(x) Maj(x) x_i is 0: largest",
        _inputs(entry),
        largest(*zero),
        "<=",
        EXACT,
        source=COROLLARY_3,
        **corrected("majority-mean") | of("3", "student's gradient"),
    )
    yield row(
        "corollary-3.half",
        "E 1(<w, x> + b >= 0) f(x) x_j is c_j/2 for every w of signs and |b| < 1: largest error",
        _inputs(entry),
        largest(*off),
        "<=",
        EXACT,
        source=STUDENT,
        **corrected("majority-mean") | of("3", "student's gradient"),
    )
    yield row(
        "corollary-3.same",
        "All neurons of a student see the same pattern: largest difference between two",
        _inputs(entry),
        largest(*apart),
        "<=",
        EXACT,
        source=STUDENT,
        **of("3", "student's gradient"),
    )


def _second(entry: Stages, rng: np.random.Generator, x: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield Corollary 4: what single coordinates tell of a teacher that has converged."""
    y = relu.parity(x, entry.k)
    example = 2 * y + x[:, 0]
    yield row(
        "corollary-4.example",
        "f = 2y + x_1 has no hinge loss, and its correlation with x_1 is not below it: correlation less loss",
        f"d = {entry.d}, k = {entry.k}, all inputs",
        float((example * x[:, 0]).mean() - np.maximum(0, 1 - example * y).mean()),
        ">=",
        0.5,
        source=COROLLARY_4,
        **printed("corollary-4-output"),
    )
    starts = relu.first_stage(relu.initial(rng, entry.d, entry.k, entry.wide_second, "iid", (entry.replicas,)))
    curve = relu.second_stage(rng, starts, entry.steps, entry.rate, max(entry.steps // 20, 1), 1024)
    f = relu.Network(starts.w, starts.b, curve.a, entry.k)(x)
    hinge = np.maximum(0, 1 - f * y).mean(1)
    wrong = (f * y <= 0).mean(1)

    def most(values: np.ndarray) -> np.ndarray:
        correlations: np.ndarray = np.abs(values @ x / len(x)).max(1)
        return correlations

    size = f"d = {entry.d}, k = {entry.k}, m = {entry.wide_second}, {entry.steps} steps, {entry.replicas} replicas"
    raw = most(f)
    detail = f"hinge loss {hinge.min():.3f} to {hinge.max():.3f}, raw correlations {raw.min():.3f} to {raw.max():.3f}"
    yield row(
        "corollary-4.clipped",
        "Outputs cut off at -1 and 1 have correlations with single coordinates of at most the "
        "hinge loss: largest excess",
        size,
        largest(most(np.clip(f, -1, 1)) - hinge),
        "<=",
        EXACT,
        source=COROLLARY_4,
        detail=detail,
        **corrected("corollary-4-output"),
    )
    yield row(
        "corollary-4.hard",
        "Signs of outputs have correlations of at most twice the share of wrong ones: largest excess",
        size,
        largest(most(np.where(f > 0, 1.0, -1.0)) - 2 * wrong + 0 * hinge),
        "<=",
        EXACT,
        source=COROLLARY_4,
        detail=f"wrong: {wrong.min():.4f} to {wrong.max():.4f}",
        **corrected("corollary-4-output"),
    )
    yield row(
        "corollary-4.labels",
        "Signs without an error, which are the labels, have none: largest correlation",
        _inputs(entry),
        largest(np.abs(y @ x / len(x))),
        "<=",
        0,
        source=COROLLARY_4,
        **corrected("corollary-4-output"),
    )


def _batch_formula() -> Iterator[dict[str, Any]]:
    """Yield that the batch of Lemma 65 and Corollary 5 needs one over zeta squared, as their last lines have it."""
    sizes, k = np.array([51, 101, 201, 401, 801]), 4
    zeta = np.array([abs(relu.majority_coefficient(int(d), k - 1)) for d in sizes])
    for form, power in (("printed", 2), ("corrected", -2)):
        slope = float(np.polyfit(np.log(sizes), np.log(zeta**power), 1)[0])
        made = printed if form == "printed" else corrected
        yield row(
            f"lemma-65.batch.{form}",
            f"|zeta_(k-1)|^{power} grows as d^(k-1), which the last lines of Lemma 65 and "
            "Corollary 5 have in its place: exponent",
            f"k = {k}, d = {sizes[0]} to {sizes[-1]}",
            slope,
            "beyond" if form == "printed" else "within",
            k - 1.0,
            tolerance=0.1,
            source=LEMMA_65,
            **made("lemma-65-batch"),
        )
