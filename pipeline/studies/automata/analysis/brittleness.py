"""EXP-OODP, EXP-OODC, EXP-LEN and EXP-COVER: other probabilities, counts and lengths than in training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.automata import comparisons
from pipeline.studies.automata.comparisons import ALONE, BOTH
from pipeline.studies.automata.measures.arms import (
    Arm,
    Floats,
    Sample,
    arms,
    compare,
    frame,
    learned,
    seen_share,
    sequences,
)
from pipeline.studies.automata.names import C2, DYCK

SEEN = (1, 1000)  # how often a count must have occurred, m
OFTEN = 1000  # of which the prediction by number of ones is judged; the source says no number


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return accuracy on shifted inputs, what coverage of counts predicts, and the comparisons."""
    with one_thread():
        known = _standing(context)
        rows: dict[str, list[dict[str, Any]]] = {"ood_p": [], "ood_count": [], "length_gen": []}
        for arm in known.values():
            for table, split, by in (
                ("ood_p", "probability", "p1"),
                ("ood_count", "count", "ones"),
                ("length_gen", "length", "length"),
            ):
                rows[table] += _probed(context, arm, split, by)
    tables = {name: frame(records) for name, records in rows.items()}
    found = Measurements(context)
    curves = {
        name: _curves(known, table, by)
        for (name, table), by in zip(tables.items(), ("p1", "ones", "length"), strict=True)
    }
    _probability(context, found, curves["ood_p"])
    _counts(context, found, curves["ood_count"])
    _lengths(context, found, curves["length_gen"], _trained(context, known))
    _covered(context, found, curves["ood_count"])
    return tables | {"coverage": frame(_coverage(context, known)), "comparisons": found.table()}


def _standing(context: Inputs) -> dict[str, Arm]:
    """Return the run that stands for each arm: the first of its runs that has models."""
    every = arms(context, [run for group in (C2, DYCK) for runs in group.values() for run in runs])
    chosen = [[run for run in runs if run in every][:1] for group in (C2, DYCK) for runs in group.values()]
    return {run: every[run] for runs in chosen for run in runs}


def _probed(context: Inputs, arm: Arm, split: str, by: str) -> Iterator[dict[str, Any]]:
    frame = sequences(context, arm, split)
    trained = {"trained": int(sequences(context, arm)["length"][0])} if by == "length" else {}
    for (value,), part in frame.group_by(by, maintain_order=True):
        accuracy, _ = arm.accuracy(part)
        same = {by: value, "sequences": part.height, "seen": seen_share(context, arm, part)}
        for replica, each, solves in zip(arm.replicas, accuracy, learned(context, arm), strict=True):
            yield (arm.row_keys() | trained | same | {"replica": replica, "accuracy": each, "learned": bool(solves)})


def _coverage(context: Inputs, known: dict[str, Arm]) -> list[dict[str, Any]]:
    """Return the accuracy of a count shortcut that guesses parities of counts that training showed too rarely.

    After N sequences at p = 1/2, the pair (t, c) was seen N C(t, c) 2^-t times on average (chapter 4.11).
    """
    arm = next((known[run] for run in C2["gpt"] if run in known), None)
    if arm is None:
        return []
    N, T = _seen(context, arm)
    t, c = np.arange(1, T + 1)[:, None], np.arange(T + 1)[None]
    rows = []
    for variant in (BOTH, ALONE):
        for seen in SEEN:
            unknown = _unknown(N, T, variant, seen)
            for p1 in sequences(context, arm, "probability")["p1"].unique().sort().to_list():
                guessed = (scipy_stats.binom.pmf(c, t, p1) * unknown).sum(1)
                rows.append(
                    {
                        "variant": variant,
                        "sequences": N,
                        "seen": seen,
                        "p1": p1,
                        "predicted": float(1 - guessed.mean() / 2),
                    }
                )
    return rows


def _seen(context: Inputs, arm: Arm) -> tuple[int, int]:
    """Return how many sequences of which length a run read."""
    return int(arm.entry["batch"] * arm.entry["steps"]), int(sequences(context, arm)["length"][0])


def _unknown(N: int, T: int, variant: str, seen: int) -> NDArray[np.bool_]:
    """Return (T, T + 1) whether N sequences showed a count at a position, or anywhere, less often than ``seen``."""
    t, c = np.arange(1, T + 1)[:, None], np.arange(T + 1)[None]
    often = N * scipy_stats.binom.pmf(c, t, 0.5)
    return (often if variant == BOTH else np.broadcast_to(often.sum(0), often.shape)) < seen


def predicted_by_count(N: int, T: int, variant: str, seen: int) -> Floats:
    """Return (T + 1,) the accuracy of the same shortcut on inputs with 0 to T ones at random positions.

    Of an input with c ones the first t symbols hold a hypergeometric number of them.
    """
    c, t, k = np.arange(T + 1)[:, None, None], np.arange(1, T + 1)[:, None], np.arange(T + 1)
    guessed = (scipy_stats.hypergeom.pmf(k, T, c, t) * _unknown(N, T, variant, seen)).sum(-1)
    return np.asarray(1 - guessed.mean(-1) / 2)


Curves = dict[str, tuple[Arm, dict[Any, Floats]]]  # by run: its models' accuracies by what is shifted


def _curves(known: dict[str, Arm], table: pl.DataFrame | None, by: str) -> Curves:
    """Return the accuracies of each run, in the order of its models."""
    if table is None:
        return {}
    curves: Curves = {}
    for (run,), rows in table.group_by("run", maintain_order=True):
        arm = known[str(run)]
        order = {replica: place for place, replica in enumerate(arm.replicas)}
        rows = rows.with_columns(place=pl.col("replica").replace_strict(order)).sort(by, "place")
        parts = rows.group_by(by, maintain_order=True)
        curves[str(run)] = arm, {key: part["accuracy"].to_numpy() for (key,), part in parts}
    return curves


def _each(curves: Curves, value: Callable[[dict[Any, Floats]], Floats]) -> dict[str, Sample]:
    return {run: Sample(arm, np.asarray(value(curve))) for run, (arm, curve) in curves.items()}


def _probability(context: Inputs, found: Measurements, curves: Curves) -> None:
    at = {p: _each(curves, lambda curve, p=p: curve[p]) for p in (0.05, 0.5, 0.95)}  # type: ignore[misc]
    compare(context, found, comparisons.MORE_ONES, at[0.5], at[0.95])
    compare(context, found, comparisons.FEWER_ONES, at[0.5], at[0.05])

    def worse(curve: dict[Any, Floats]) -> Floats:
        """Of a model that is as good everywhere this is 0: a tie is no failure at an end."""
        low, *inner, high = (curve[p] for p in sorted(curve))
        return np.asarray(np.min(inner, axis=0) - np.minimum(low, high))

    compare(context, found, comparisons.WORST, _each(curves, worse))
    for comparison in comparisons.EVERY_P.values():
        compare(context, found, comparison, _each(curves, _least))


def _least(curve: dict[Any, Floats]) -> Floats:
    return np.asarray(np.min([*curve.values()], axis=0))


def _counts(context: Inputs, found: Measurements, curves: Curves) -> None:
    def mean(share: Callable[[float], bool]) -> dict[str, Sample]:
        """Return the mean accuracy over the counts whose share of the length is so."""
        return _each(curves, lambda curve: np.mean([curve[c] for c in curve if share(c / max(curve))], axis=0))

    low, high, middle = (mean(lambda c: c < 0.25), mean(lambda c: c > 0.75), mean(lambda c: 0.25 <= c <= 0.75))
    outer = {run: Sample(each.arm, (each.values + high[run].values) / 2) for run, each in low.items()}
    compare(context, found, comparisons.LOW_COUNTS, low, high)
    compare(context, found, comparisons.OUTER_COUNTS, middle, outer)


def _trained(context: Inputs, known: dict[str, Arm]) -> dict[str, int]:
    """Return the length of training of each run."""
    return {run: int(sequences(context, arm)["length"][0]) for run, arm in known.items()}


def _lengths(context: Inputs, found: Measurements, curves: Curves, trained: dict[str, int]) -> None:
    once, twice = (
        {run: Sample(arm, curve[factor * trained[run]]) for run, (arm, curve) in curves.items()} for factor in (1, 2)
    )
    for comparison in comparisons.LONGER.values():
        compare(context, found, comparison, once, twice)
    alone: list[Comparison] = [comparisons.SCRATCHPAD, comparisons.DYCK_LSTM]
    for comparison in (*alone, *comparisons.AGAINST_PLAIN.values()):
        compare(context, found, comparison, twice)
    for comparison in comparisons.EVERY_LENGTH.values():
        compare(context, found, comparison, _each(curves, _least))
    rises = {}
    for run, (arm, curve) in curves.items():
        beyond = np.array([curve[length] for length in sorted(curve) if length >= trained[run]])
        rises[run] = Sample(arm, np.diff(beyond, axis=0).max(0))
    compare(context, found, comparisons.RISE, rises)


def _covered(context: Inputs, found: Measurements, curves: Curves) -> None:
    """Measure how far predictions by number of ones are from models, and how far the mean of each model is from it: a
    number that knows nothing of counts, but is fitted."""
    for variant, comparison in comparisons.COVERED.items():
        errors = {}
        for run, (arm, curve) in curves.items():
            N, T = _seen(context, arm)
            predicted = predicted_by_count(N, T, variant, OFTEN)[sorted(curve)]
            accuracy = np.array([curve[count] for count in sorted(curve)])
            error = np.sqrt(np.square(accuracy - predicted[:, None]).mean(0))
            errors[run] = Sample(arm, error - accuracy.std(0))
        compare(context, found, comparison, errors)
