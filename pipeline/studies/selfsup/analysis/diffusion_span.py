"""E3 and E4: recovery, generalisation gap and Rademacher complexity at equal time spans and different intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages.diffusions import MARGINAL, Array, Contrast, OrnsteinUhlenbeck, Pairs, pairs
from pipeline.models.pair_classifier import log_quadratic
from pipeline.studies.selfsup.diffusion_comparisons import (
    COARSE,
    COMPLEXITY_RATE,
    DEPENDENCE,
    DRIFT,
    DRIFT_CONTROL,
    DRIFT_SPAN,
    FINE,
    GAP_APART,
    GAP_ETAS,
    GAP_RATE,
    GAP_RATIO,
    GAP_SPANS,
    INDEPENDENT,
    MORE_DEPENDENT,
    TRAJECTORY,
)
from pipeline.studies.selfsup.measures.diffusion_fits import Task, fitted
from pipeline.studies.selfsup.names import OU_PATHS
from schemas.comparisons import SEEDS
from schemas.selfsup.diffusions import DRIFT_ERROR, GAP

# The class of E4: the true weights times 1 + U[-SPREAD, SPREAD], and normal numbers on the linear terms.
SPREAD, NOISE = 0.5, 0.3
LINEAR = slice(3, 6)


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``sde_fit``, ``sde_gap``, ``sde_complexity``, ``sde_independent`` and ``comparisons``."""
    entry = context.entry
    process, fine, paths = _paths(context)
    noise = Contrast(MARGINAL, 0.0, 1 / math.sqrt(process.rho))
    tasks = {eta: Task(process, eta, noise) for eta in {*entry.etas, *entry.gap_etas}}
    classes = {eta: _classifiers(context, tasks[eta]) for eta in entry.gap_etas}
    fits: list[dict[str, Any]] = []
    gaps: list[dict[str, Any]] = []
    signs: list[dict[str, Any]] = []
    control: list[dict[str, Any]] = []
    for seed, path in enumerate(paths):
        for eta, task in tasks.items():
            made = _pairs(context, task, path, fine, seed)
            if eta in entry.etas and seed < entry.seeds:
                for span in entry.spans:
                    m = _size(span, eta)
                    fits.append(task.row("ou-d1", fitted(made, m), m, seed) | {"T": span})
                span = max(entry.spans)
                drift = task.measure(fitted(_independent(context, task, m, seed, 0), m)).drift_rmse
                control.append(_row(task, span, seed, 0) | {"quantity": DRIFT_ERROR, "value": drift})
            if eta in entry.gap_etas:
                gaps += _gaps(entry, task, made, *classes[eta], seed)
                for draw in range(entry.independent):
                    apart = _independent(context, task, len(made.y), seed, draw)
                    for row in _gaps(entry, task, apart, *classes[eta], seed):
                        control.append(_row(task, row["T"], seed, draw) | {"quantity": GAP, "value": row["phi"]})
                if seed < entry.sign_seeds:
                    signs += _complexities(context, task, made, classes[eta][0], seed)
    tables = {
        "sde_fit": pl.DataFrame(fits, infer_schema_length=None),
        "sde_gap": pl.DataFrame(gaps),
        "sde_complexity": pl.DataFrame(signs),
        "sde_independent": pl.DataFrame(control),
    }
    return tables | {"comparisons": compared(context, *tables.values())}


def _paths(context: Inputs) -> tuple[OrnsteinUhlenbeck, float, list[Array]]:
    """Return the process, the interval of its trajectories, and each of them (steps, 1).

    Raises SandglassError if they are too short, too few, or not in one dimension.
    """
    entry, frame = context.entry, context.dataset(OU_PATHS).sort("seed")
    rho, fine, d = frame.row(0, named=True)["rho"], frame["eta"][0], frame["d"][0]
    steps = frame["x"].list.len().min()
    asked = max(*entry.spans, *entry.gap_spans)
    if d != 1 or steps * fine < asked - 1e-9 or frame.height < entry.seeds:
        raise SandglassError(
            f"experiments.{context.experiment}: dataset {OU_PATHS} has {frame.height} trajectories over T = "
            f"{steps * fine:g} in {d} dimensions; expected {entry.seeds}, T = {asked:g} and one dimension"
        )
    for eta in (*entry.etas, *entry.gap_etas):
        if abs(eta / fine - round(eta / fine)) > 1e-9:
            raise SandglassError(
                f"experiments.{context.experiment}: eta = {eta:g} is no multiple of that of {OU_PATHS}, {fine:g}"
            )
    return OrnsteinUhlenbeck(rho), fine, [np.array(x)[:, None] for x in frame["x"].to_list()]


def _size(span: float, eta: float) -> int:
    """Return m, pairs of a trajectory: 2m = floor(T/eta)."""
    return int(span / eta + 1e-9) // 2


def _pairs(context: Inputs, task: Task, path: Array, fine: float, seed: int) -> Pairs:
    """Return all pairs of a trajectory that is observed every eta."""
    rng = stream(context.seed, context.study, context.experiment, "pairs", f"{task.eta:g}", seed)
    return pairs(path[:: round(task.eta / fine)], task.contrast, rng)


def _independent(context: Inputs, task: Task, m: int, seed: int, draw: int) -> Pairs:
    """Return as many pairs of the same law, each of a trajectory of its own, with the labels and the noise of a
    trajectory's: what dependence does is what differs."""
    names = (context.seed, context.study, context.experiment)
    rng = stream(*names, "independent", f"{task.eta:g}", seed, draw)
    process = task.process
    first, noise = rng.standard_normal((2, m, process.d))
    first /= math.sqrt(process.rho)
    follows = process.decay(task.eta) * first + math.sqrt(process.variance(task.eta)) * noise
    labels = stream(*names, "pairs", f"{task.eta:g}", seed)
    return pairs(np.stack([first, follows], 1).reshape(2 * m, process.d), task.contrast, labels)


def _row(task: Task, span: float, seed: int, draw: int) -> dict[str, Any]:
    return {"eta": task.eta, "T": float(span), "m": _size(span, task.eta), "seed": seed, "draw": draw}


def _classifiers(context: Inputs, task: Task) -> tuple[Array, Array]:
    """Return weights (N, 6) of a finite class, the first the true ones, and the risk (N,) of each.

    The perturbations are the same for all intervals.
    """
    rng = stream(context.seed, context.study, context.experiment, "class")
    true = log_quadratic.truth(task.process, task.eta, task.contrast)
    weights = true * (1 + rng.uniform(-SPREAD, SPREAD, (context.entry.classifiers, len(true))))
    weights[:, LINEAR] += NOISE * rng.standard_normal((len(weights), 3))
    weights[0] = true
    reference = task.reference
    excess = [
        float((reference.mixture * (special.expit(task.phi @ each) - reference.bayes) ** 2).sum()) for each in weights
    ]
    return weights, reference.bayes_risk + np.array(excess)


def _gaps(entry: Any, task: Task, made: Pairs, weights: Array, risks: Array, seed: int) -> Iterator[dict[str, Any]]:
    """Yield Phi of one trajectory and interval at each time span (Eq. 2.7)."""
    sizes = [_size(span, task.eta) for span in entry.gap_spans]
    total, before = np.zeros(len(weights)), 0
    for span, m in zip(entry.gap_spans, sizes, strict=True):
        h = special.expit(log_quadratic.features(made.x[before:m], made.x_prime[before:m]) @ weights.T)
        total += np.square(h - made.y[before:m, None]).sum(0)
        before = m
        phi = float(np.abs(total / m - risks).max())
        yield {"eta": task.eta, "T": span, "m": m, "seed": seed, "phi": phi, "n_class": len(weights)}


def _complexities(context: Inputs, task: Task, made: Pairs, weights: Array, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the empirical Rademacher complexity of the class on one trajectory (Eq. 2.8), by random signs."""
    entry = context.entry
    for span in entry.gap_spans:
        m = _size(span, task.eta)
        h = special.expit(log_quadratic.features(made.x[:m], made.x_prime[:m]) @ weights.T)
        rng = stream(context.seed, context.study, context.experiment, "signs", f"{task.eta:g}", f"{span:g}", seed)
        signs = 2.0 * rng.integers(0, 2, (entry.signs, m), dtype=np.int8) - 1
        yield {
            "eta": task.eta,
            "T": span,
            "m": m,
            "seed": seed,
            "complexity": float((np.abs(signs @ h) / m).max(1).mean()),
            "massart": math.sqrt(2 * math.log(2 * len(weights)) / m),
        }


def compared(
    context: Inputs, fits: pl.DataFrame, gaps: pl.DataFrame, signs: pl.DataFrame, control: pl.DataFrame
) -> pl.DataFrame:
    """Return table ``comparisons``."""
    found, confidence = Measurements(context), context.settings.confidence
    apart = control.filter(quantity=DRIFT_ERROR)
    for comparison, rows, column in ((DRIFT, fits, "drift_rmse"), (DRIFT_CONTROL, apart, "value")):
        drift = [rows.filter(eta=eta, T=DRIFT_SPAN).sort("seed")[column] for eta in (FINE, COARSE)]
        if all(len(sample) for sample in drift):
            found.add(comparison, *drift)
        else:
            found.not_run(comparison)
    for eta, comparison in GAP_RATE.items():
        spans, phi = _by_seed(gaps.filter(eta=eta), "T", "phi")
        if len(spans) < 2:
            found.not_run(comparison)
        else:
            found.put(comparison, intervals.jackknife(_rate_of(spans), phi, confidence=confidence))
    _quotients(found, gaps, control.filter(quantity=GAP), confidence)
    sizes, complexity = _by_seed(signs.filter(eta=GAP_ETAS[-1]), "m", "complexity")
    if len(sizes) < 2:
        found.not_run(COMPLEXITY_RATE)
    else:
        found.put(COMPLEXITY_RATE, intervals.jackknife(_rate_of(sizes), complexity, confidence=confidence))
    return found.table()


def _quotients(found: Measurements, gaps: pl.DataFrame, control: pl.DataFrame, confidence: float) -> None:
    """Measure quotients of mean Phi: at each time span of the widest interval over the finest, by trajectories and by
    as many independent pairs; over all time spans of trajectories over independent pairs, at each interval and of the
    finest over the widest. Independent pairs are averaged over their draws beside a trajectory."""
    apart = control.group_by("eta", "T", "seed").agg(pl.mean("value"))
    phi = {
        (kind, eta): _by_seed(rows.filter(eta=eta), "T", name)
        for kind, rows, name in ((TRAJECTORY, gaps, "phi"), (INDEPENDENT, apart, "value"))
        for eta in GAP_ETAS
    }
    ends = GAP_ETAS[-1], GAP_ETAS[0]

    def put(comparison: Comparison, *samples: Array) -> None:
        if all(sample.size for sample in samples):
            paired = comparison.in_common == SEEDS
            found.put(
                comparison,
                intervals.jackknife(quotient_of_means, *samples, confidence=confidence, paired=paired, log=True),
            )
        else:
            found.not_run(comparison)

    for span in GAP_SPANS:
        for kind, comparison in ((TRAJECTORY, GAP_RATIO[span]), (INDEPENDENT, GAP_APART[span])):
            put(comparison, *(each[:, spans == span] for spans, each in (phi[kind, eta] for eta in ends)))
    for eta, comparison in DEPENDENCE.items():
        put(comparison, *(phi[kind, eta][1] for kind in (TRAJECTORY, INDEPENDENT)))
    put(MORE_DEPENDENT, *(phi[kind, eta][1] for eta in reversed(ends) for kind in (TRAJECTORY, INDEPENDENT)))


def quotient_of_means(one: Array, other: Array, *rest: Array) -> float:
    """Return how many times the mean of the second sample (units, spans) that of the first is, its geometric mean over
    spans; over the same of the next two samples, if there are more.

    >>> round(quotient_of_means(np.array([[2.0, 8.0]]), np.array([[1.0, 1.0]])), 9)
    4.0
    """
    quotient = float(np.exp(np.log(one.mean(0) / other.mean(0)).mean()))
    return quotient / quotient_of_means(*rest) if rest else quotient


def _by_seed(rows: pl.DataFrame, against: str, name: str) -> tuple[Array, Array]:
    """Return the values (N,) of ``against``, and a quantity (seeds, N) at each of them."""
    wide = rows.sort(against).pivot(against, index="seed", values=name).sort("seed") if rows.height else rows
    values = np.array(sorted(rows[against].unique().to_list()), float)
    return values, wide.drop("seed").to_numpy() if rows.height else np.empty((0, 0))


def _rate_of(at: Array) -> Any:
    """Return the statistic of units (S, N): the slope of the logarithm of their mean against log ``at``."""
    return lambda sample: float(np.polyfit(np.log(at), np.log(sample.mean(0)), 1)[0])
