"""The theory of sparse parity, simulated: stages one and two, and both sides of Theorem 23 (Liu 2024, section
4.2.6).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.studies.distillation.comparisons import (
    ALIGNED_LEAST,
    ALIGNED_OUTSIDE,
    BOTH_STAGES,
    ENDS,
    PRINTED_MEAN,
    PRINTED_SIGNAL,
    PRINTED_SLOPE,
    PRINTED_TENFOLD,
    SECOND_STAGE,
    SLOPE,
    TARGETS_RATIO,
)
from pipeline.studies.distillation.exact import relu
from pipeline.studies.distillation.measures import lessons

MODES = ("aligned", "iid", "labels")
DEGREES = 11  # of the majority, in the table of sizes
SIZES = (15, 101)  # d of that table
SPREAD = 10_000  # inputs that E f(x)^2 of a teacher is taken from
TENFOLD = 10


def analyse(context: Inputs) -> dict[str, Any]:
    """Return the tables of the experiment; all numbers are drawn from streams of its id."""
    found = Measurements(context)
    with one_thread():
        samples = pl.DataFrame(list(_recovery(context)))
        pairs = pl.DataFrame(list(_correlations(context)))
        recovered = _recovered(context, samples)
        ends = pl.DataFrame(list(_end_to_end(context)))
        curves = pl.DataFrame(list(_second_stage(context)))
    _compare_recovery(context, found, samples, recovered)
    _compare_correlations(context, found, pairs)
    _compare_ends(context, found, ends)
    best = curves.filter("is_best", rate_name="ours")
    for column, comparison in SECOND_STAGE.items():
        found.add(comparison, best[column])
    return {
        "majority_sizes": pl.DataFrame(list(_majority_sizes())),
        "stage_correlations": pairs,
        "stage_weights": pl.DataFrame(list(_weights(context))),
        "stage_two": curves,
        "sample_complexity": samples,
        "support_recovery": pl.DataFrame(recovered, infer_schema_length=None),
        "end_to_end": ends,
        "lower_bounds": pl.DataFrame(list(_lower_bounds(context))),
        "comparisons": found.table(),
    }


def _rng(context: Inputs, *names: str | int) -> np.random.Generator:
    return stream(context.seed, context.study, context.experiment, *names)


def _majority_sizes() -> Iterator[dict[str, Any]]:
    for d in SIZES:
        for i in range(1, min(DEGREES, d // 2) + 1, 2):
            yield {
                "d": d,
                "i": i,
                "exact": abs(relu.majority_coefficient(d, i)),
                "printed": i ** (-1 / 3) / math.comb(d, i),
                "corrected": i**-0.75 / math.sqrt(math.comb(d, i)),
            }


# --- stage one -----------------------------------------------------------------------------------------


def _correlations(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Lemma 64: exact correlations of the network behind stage one with single coordinates."""
    known = context.entry.correlations
    d, k = known.d, known.k
    modes: tuple[relu.Mode, ...] = ("aligned", "iid")
    for mode in modes:
        for m in known.widths:
            for seed in range(known.replicas):
                rng = _rng(context, "correlations", mode, m, seed)
                taught = relu.first_stage(relu.initial(rng, d, k, m, mode))
                c = relu.correlations(taught)
                inside, outside = np.abs(c[:k]), np.abs(c[k:])
                yield {
                    "mode": mode,
                    "d": d,
                    "k": k,
                    "m": m,
                    "seed": seed,
                    "in_signed_min": c[:k].min(),
                    "in_mean": inside.mean(),
                    "in_min": inside.min(),
                    "off_mean": outside.mean(),
                    "off_max": outside.max(),
                    "bound": 1 / (8 * k),
                    "spread": relu.spread(d, k, m)[0],
                    "signal": float((c[:k] ** 2).sum() / (taught(relu.cube(d)) ** 2).mean()),
                }


def _compare_correlations(context: Inputs, found: Measurements, pairs: pl.DataFrame) -> None:
    widths = context.entry.correlations.widths
    for end, m in zip(ENDS, (widths[0], widths[-1]), strict=True):
        own = pairs.filter(mode="aligned", m=m)
        found.add(ALIGNED_LEAST[end], own["in_signed_min"] / own["bound"])
        found.add(ALIGNED_OUTSIDE[end], own["off_max"] / own["in_min"])
    own = pairs.filter(mode="iid", m=widths[-1])
    found.add(PRINTED_MEAN, own["in_mean"] / own["bound"])
    found.add(PRINTED_SIGNAL, own["signal"])
    by_width = [pairs.filter(mode="iid", m=m)["in_mean"] for m in widths]
    found.put(PRINTED_SLOPE, _jackknife(context, lambda *means: _slope(widths, [np.mean(m) for m in means]), *by_width))


def _weights(context: Inputs) -> Iterator[dict[str, Any]]:
    known = context.entry.weights
    d, k, m = known.d, known.k, known.m
    inner = abs(relu.majority_coefficient(d, k - 1))
    for seed in range(known.replicas):
        rng = _rng(context, "weights", seed)
        start = relu.initial(rng, d, k, m, "iid")
        goal, rate = relu.first_stage(start).w, relu.first_rate(d, k, m)
        population = relu.population_gradient(start.w, k)
        for batch, gradient in zip(
            known.batches, relu.batch_gradients(rng, start.w, start.b, known.batches, k, None), strict=True
        ):
            w = relu.stepped(start, gradient, rate, 1 / (2 * rate)).w
            error = float(np.abs(gradient - population).max())
            yield {
                "d": d,
                "k": k,
                "m": m,
                "batch": batch,
                "seed": seed,
                "gradient_error": error,
                "hoeffding": relu.hoeffding(m, d, batch, context.entry.delta),
                "weight_error": np.abs(w - goal).max(),
                "weight_bound": error / (k * inner),
                "in_mean": np.abs(w[:, :k]).mean(),
                "off_mean": np.abs(w[:, k:]).mean(),
                "in_goal": 1 / (2 * k),
                "off_goal": relu.damping(d, k) / (2 * k),
            }


# --- Theorem 23, stage one -----------------------------------------------------------------------------


def _sizes(context: Inputs, mode: str) -> list[int]:
    sizes: list[int] = getattr(context.entry.recovery, mode).coordinates
    return sizes


def _batches(context: Inputs, mode: str, d: int) -> list[int]:
    known = getattr(context.entry.recovery, mode)
    doublings = known.doublings[known.coordinates.index(d)]
    return [context.entry.recovery.least * 2**n for n in range(doublings + 1)]


def _teacher(rng: np.random.Generator, context: Inputs, mode: str, d: int) -> relu.Network | None:
    known = context.entry.recovery
    if mode == "labels":
        return None
    return relu.first_stage(relu.initial(rng, d, known.k, known.m_teacher, "aligned" if mode == "aligned" else "iid"))


def _recovery(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield how many neurons of a student show the support after one batch on a target.

    Every seed has a student, a teacher and a stream of inputs of its own; its larger batches contain its smaller ones.
    """
    known = context.entry.recovery
    k, m = known.k, known.m_student
    for mode in MODES:
        for d in _sizes(context, mode):
            for seed in range(known.replicas):
                rng = _rng(context, "recovery", mode, d, seed)
                start = relu.initial(rng, d, k, 2 * m, "iid")
                teacher = _teacher(rng, context, mode, d)
                batches = _batches(context, mode, d)
                gradients = relu.batch_gradients(rng, start.w[:m], start.b[:m], batches, k, teacher)
                for batch, gradient in zip(batches, gradients, strict=True):
                    shown = relu.recovery(gradient, k)
                    yield {
                        "mode": mode,
                        "d": d,
                        "k": k,
                        "m_student": m,
                        "batch": batch,
                        "seed": seed,
                        "frac_neurons": shown.neurons,
                        "precision": shown.precision,
                        "aggregate_ok": shown.together,
                    }


def reached(batches: Sequence[int], shares: NDArray[np.float64], share: float) -> float:
    """Return the batch at which ``shares`` (batches,) first reach ``share``, between two of them by log-linear
    interpolation.

    NaN where none does.

    >>> round(reached([100, 200, 400], np.array([0.5, 0.8, 1.0]), 0.9), 6)
    282.842712
    """
    above = np.flatnonzero(shares >= share)
    if np.isnan(shares).any() or not len(above):
        return math.nan
    n = int(above[0])
    if n == 0:
        return float(batches[0])
    part = (share - shares[n - 1]) / (shares[n] - shares[n - 1])
    return float(math.exp(math.log(batches[n - 1]) + part * math.log(batches[n] / batches[n - 1])))


def _shares(samples: pl.DataFrame, mode: str, d: int) -> NDArray[np.float64]:
    """Return (seeds, batches): shares of neurons."""
    rows = samples.filter(mode=mode, d=d).sort("seed", "batch")
    return rows["frac_neurons"].to_numpy().reshape(rows["seed"].n_unique(), -1)


def _recovered(context: Inputs, samples: pl.DataFrame) -> list[dict[str, Any]]:
    """Return one row for each target and d: the batch that shows the support to enough neurons, and what formulas
    say.
    """
    known, rows = context.entry.recovery, []
    for mode in MODES:
        for d in _sizes(context, mode):
            shares, batches = _shares(samples, mode, d), _batches(context, mode, d)
            bounds = _jackknife(context, lambda s, b=batches: reached(b, s.mean(0), known.share), shares, log=True)
            enough = np.flatnonzero(shares.mean(0) >= known.share)
            # What the proof counts on, without its constant.
            formula = (
                relu.one_shot_samples(d, known.k, (known.k - 1) / 2)
                if mode == "labels"
                else relu.first_samples(d, known.k, known.m_student, context.entry.delta)
            )
            rows.append(
                {
                    "mode": mode,
                    "d": d,
                    "k": known.k,
                    "seeds": len(shares),
                    "ever": int((shares.max(1) >= known.share).sum()),
                    "largest": batches[-1],
                    "b90": int(batches[enough[0]]) if len(enough) else None,
                    "value": bounds.value,
                    "lo": bounds.lo,
                    "hi": bounds.hi,
                    "interval": bounds.kind,
                    "predicted": _predicted(context, mode, d),
                    "formula": formula,
                }
            )
    return [{name: _null(value) for name, value in row.items()} for row in rows]


def _predicted(context: Inputs, mode: str, d: int) -> float | None:
    """Return the samples at which normal noise on the population's gradient leaves enough neurons right (median
    teacher).
    """
    known = context.entry.recovery
    k = known.k
    if mode == "labels":
        inner, outer = (relu.majority_coefficient(d, i) / 2 for i in (k - 1, k + 1))
        return relu.predicted_samples([inner] * k, [outer] * (d - k), 0.5, known.share)
    if mode == "iid":
        return None  # some c_j are as good as 0, so that it hangs on the teacher
    samples = []
    for seed in range(known.replicas):
        rng = _rng(context, "predicted", mode, d, seed)
        teacher = _teacher(rng, context, mode, d)
        assert teacher is not None
        c = relu.correlations(teacher)
        variance = float((teacher(relu.drawn(rng, SPREAD, d)) ** 2).mean()) / 2
        samples.append(relu.predicted_samples(c[:k] / 2, c[k:] / 2, variance, known.share))
    return float(np.median(samples))


def _compare_recovery(
    context: Inputs, found: Measurements, samples: pl.DataFrame, recovered: list[dict[str, Any]]
) -> None:
    known = context.entry.recovery

    def at(mode: str, d: int) -> Any:
        """Return what gives the samples at which enough neurons show the support, of shares (replicas, batches)."""
        batches = _batches(context, mode, d)
        return lambda shares: reached(batches, shares.mean(0), known.share)

    for mode, comparison in SLOPE.items():
        sizes = _sizes(context, mode)
        of_size = [at(mode, d) for d in sizes]

        def slope(*shares: Any, sizes: Any = sizes, of_size: Any = of_size) -> float:
            return _slope(sizes, [enough(own) for enough, own in zip(of_size, shares, strict=True)])

        found.put(comparison, _jackknife(context, slope, *(_shares(samples, mode, d) for d in sizes)))
    d = max({*_sizes(context, "labels")} & {*_sizes(context, "aligned")})
    labels, aligned = at("labels", d), at("aligned", d)
    pair = _shares(samples, "labels", d), _shares(samples, "aligned", d)
    found.put(TARGETS_RATIO, _jackknife(context, lambda x, y: labels(x) / aligned(y), *pair, log=True))
    # With ten times what suffices from the aligned start, does a student of a teacher from the printed start see the
    # support?
    last = max({*_sizes(context, "iid")} & {*_sizes(context, "aligned")})
    enough = next((row["value"] for row in recovered if (row["mode"], row["d"]) == ("aligned", last)), None)
    batches = np.array(_batches(context, "iid", last))
    if enough is not None and batches[-1] >= TENFOLD * enough:
        found.add(PRINTED_TENFOLD, _shares(samples, "iid", last)[:, batches >= TENFOLD * enough][:, 0])
    else:
        found.not_run(PRINTED_TENFOLD)


def _lower_bounds(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield the formulas of Theorem 23 and Lemma 66 at the sizes of the simulation and of the published experiments."""
    delta = context.entry.delta
    sizes = [(d, context.entry.recovery.k, context.entry.recovery.m_student) for d in _sizes(context, "aligned")]
    for d, k, m in [*sizes, (100, 6, 100), (100, 6, 1000), (100, 6, 50_000)]:
        for error in (0.1, 0.01):
            yield {
                "d": d,
                "k": k,
                "m": m,
                "delta": delta,
                "gradient_error": error,
                "most_steps": relu.most_steps(d, k, m, delta, error),
                "progressive_first": relu.first_samples(d, k, m, delta),
                "progressive_second": relu.second_samples(d, k, error, delta),
                "one_shot": relu.one_shot_samples(d, k, (k - 1) / 2),
                "one_shot_proof": relu.one_shot_samples(d, k, (k - 1) / 2) / m,
            }


# --- stage two, and both stages of a student ----------------------------------------------------------


def _second_stage(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Lemma 65: stage two from the weights of the whole population, at a rate that works and at the printed
    one.
    """
    known = context.entry.second_stage
    for d, k, m in known.sizes:
        rng = _rng(context, "stage two", d, k, m)
        taught = relu.first_stage(relu.initial(rng, d, k, m, "iid", (known.replicas,)))
        both = relu.stacked([relu.replica(taught, r) for _ in range(2) for r in range(known.replicas)])
        rates = {"ours": known.rate, "printed": relu.second_rate(d, k, m, known.steps)}
        each = np.repeat(list(rates.values()), known.replicas)
        curve = relu.second_stage(rng, both, known.steps, each, known.every, known.held_out)
        for n, (name, rate) in enumerate(rates.items()):
            for seed in range(known.replicas):
                r = n * known.replicas + seed
                for place, step in enumerate(curve.steps):
                    yield {
                        "d": d,
                        "k": k,
                        "m": m,
                        "rate_name": name,
                        "rate": rate,
                        "seed": seed,
                        "step": step,
                        "hinge": curve.hinge[place, r],
                        "accuracy": curve.accuracy[place, r],
                        "is_best": bool(place == curve.best[r]),
                    }


def _end_to_end(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield Theorem 23: students whose first step is on one of four targets, and whose second stage is on labels.

    Labels are also what a final teacher without an error says; ``final`` is the raw output of a trained one.
    """
    known = context.entry.end_to_end
    d = known.d
    for k, m in known.sizes:
        rng = _rng(context, "end to end", k)
        aligned, iid = (
            relu.first_stage(relu.initial(rng, d, k, known.m_teacher, mode, (known.replicas,)))
            for mode in ("aligned", "iid")
        )
        final = relu.second_stage(rng, iid, known.teacher_steps, known.rate, known.every, known.held_out)
        right = final.accuracy[final.best, np.arange(known.replicas)]
        rows, students = [], []
        for seed in range(known.replicas):
            start = relu.initial(rng, d, k, m, "iid")
            taught = relu.replica(iid, seed)
            teachers = {
                "aligned": relu.replica(aligned, seed),
                "iid": taught,
                "labels": None,
                "final": relu.Network(taught.w, taught.b, final.a[seed], k),
            }
            for target, teacher in teachers.items():
                inputs = _rng(context, "end to end", k, target, seed)
                gradients = relu.batch_gradients(inputs, start.w, start.b, known.batches, k, teacher)
                for batch, gradient in zip(known.batches, gradients, strict=True):
                    shown = relu.recovery(gradient, k)
                    students.append(relu.from_gradient(start, gradient))
                    rows.append(
                        {
                            "target": target,
                            "d": d,
                            "k": k,
                            "m_student": m,
                            "batch": batch,
                            "seed": seed,
                            "frac_neurons": shown.neurons,
                            "precision": shown.precision,
                            "teacher_accuracy": float(right[seed]) if target == "final" else None,
                        }
                    )
        curve = relu.second_stage(rng, relu.stacked(students), known.steps, known.rate, known.every, known.held_out)
        for r, row in enumerate(rows):
            place = curve.best[r]
            yield row | {
                "step": curve.steps[place],
                "hinge": curve.hinge[place, r],
                "accuracy": curve.accuracy[place, r],
                "last_accuracy": curve.accuracy[-1, r],
            }


def _compare_ends(context: Inputs, found: Measurements, ends: pl.DataFrame) -> None:
    most = ends["batch"].max()
    for (target, k), comparison in BOTH_STAGES.items():
        own = ends.filter(batch=most, target=target, k=k)
        if not own.height:
            found.not_run(comparison)
            continue
        # A teacher that did not learn says nothing of final teachers.
        taught = own.filter(pl.col("teacher_accuracy").fill_null(1.0) >= context.settings.solved)
        found.add(comparison, taught["accuracy"], excluded=own.height - taught.height, reason=lessons.UNLEARNED)


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the slope of log y on log x; NaN if one y is."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if np.isfinite(y).all() else math.nan


def _jackknife(context: Inputs, statistic: Any, *samples: Any, log: bool = False) -> intervals.Interval:
    """Return ``statistic`` of independent samples of replicas with its interval."""
    return intervals.jackknife(statistic, *samples, confidence=context.settings.confidence, log=log)


def _null(value: Any) -> Any:
    """Return None for NaN, and anything else as it is: tables keep what is not defined as null."""
    return None if isinstance(value, float) and math.isnan(value) else value
