"""EXP-ATTN: what heads of gridworld models look at (Figures 3.6 and 3.17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import automata
from pipeline.models.automata import gpt
from pipeline.studies.automata import comparisons
from pipeline.studies.automata.measures.arms import Arm, Floats, Sample, arms, compare, frame, learned
from pipeline.studies.automata.names import ATTENTION

FIRST = 7  # 0-based position from which heads are measured, or half of a shorter sequence
DRAWN = 2  # sequences
UNREACHED = ", or no input gets to a boundary"


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return measures of all heads of all models, trained and as they started, and maps of the best model.

    Models that were never trained are the control: what their heads show, training has not made.
    """
    with one_thread():
        models = arms(context, [ATTENTION])
        if not models:
            found = Measurements(context)
            for comparison in comparisons.DECLARED.of(context.experiment).values():
                compare(context, found, comparison, {})
            return {"attn_metrics": None, "attn_maps": None, "comparisons": found.table()}
        arm = models[ATTENTION]
        rng = stream(context.seed, context.study, context.experiment, "sequences")
        tokens, states = automata.sample("grid9", context.entry.length, context.entry.sequences, rng)
        accuracy = (arm.answers(tokens) == states).mean((1, 2))
        patterns = _patterns(arm, tokens)
        control = _untrained(arm, context)
        start = (control.answers(tokens) == states).mean((1, 2))
        untrained = _patterns(control, tokens)
    rows = [
        row | {"trained": trained, "accuracy": float(known[row["replica_index"]])}
        for trained, known, seen in ((True, accuracy, patterns), (False, start, untrained))
        for row in _metrics(arm, seen, tokens, states, arm.task.labels - 1)
    ]
    solves = learned(context, arm)
    rows = [row | {"learned": row["trained"] and bool(solves[row["replica_index"]])} for row in rows]
    best = int(np.argmax(accuracy))
    maps = [part for n in range(DRAWN) for part in _maps(arm, [p[best, n] for p in patterns], states[n], n)]
    metrics = frame(rows)
    assert metrics is not None
    return {
        "attn_metrics": metrics,
        "attn_maps": pl.concat(maps),
        "comparisons": _compared(context, metrics, arm, control),
    }


def _compared(context: Inputs, metrics: pl.DataFrame, arm: Arm, control: Arm) -> pl.DataFrame:
    """Measure of each model the head that shows most of what is asked for."""
    found = Measurements(context)

    def of_heads(value: pl.Expr, **where: Any) -> Sample:
        rows = metrics.filter(**where).group_by("replica").agg(value.alias("value")).sort("replica")
        by_replica = dict(rows.select("replica", "value").iter_rows())
        of = arm if where["trained"] else control
        return Sample(of, np.array([by_replica[r] for r in of.replicas], float))

    # A boundary that no input gets to has no heads: NaN, also for polars' smaller one of two.
    lifts = [pl.col(f"blind_lift_{name}").fill_null(np.nan) for name in ("0", "S")]
    smaller = pl.when(pl.any_horizontal(*(lift.is_nan().any() for lift in lifts))).then(np.nan)
    looks = smaller.otherwise(pl.min_horizontal(*(lift.max() for lift in lifts)))
    layers = {
        name: {arm.run: _defined(of_heads(looks, **where))}
        for name, where in (
            ("last", {"trained": True, "last_layer": True}),
            ("first", {"trained": True, "layer": 1}),
            ("untrained", {"trained": False, "last_layer": True}),
        )
    }
    compare(context, found, comparisons.BOUNDARY, layers["last"], layers["first"], why=UNREACHED)
    compare(context, found, comparisons.BOUNDARY_UNTRAINED, layers["last"], layers["untrained"], why=UNREACHED)
    even = pl.col("uniformity").max()
    for comparison, where in (
        (comparisons.UNIFORM, {"trained": True}),
        (comparisons.UNIFORM_FIRST, {"trained": True, "layer": 1}),
        (comparisons.UNIFORM_UNTRAINED, {"trained": False}),
    ):
        compare(context, found, comparison, {arm.run: of_heads(even, **where)})
    most = pl.max_horizontal(*(lift.fill_nan(0) for lift in lifts)).arg_max()
    before = (pl.col("pre_reset_mass") / pl.col("pre_reset_blind")).get(most)
    compare(context, found, comparisons.BEFORE, {arm.run: of_heads(before, trained=True, last_layer=True)})
    return found.table()


def _defined(sample: Sample) -> Sample:
    """Return the models of a sample that have what is measured: where no input gets to a boundary, none has."""
    has = ~np.isnan(sample.values)
    arm = sample.arm
    kept = replace(
        arm,
        replicas=np.array(arm.replicas)[has].tolist(),
        validation=arm.validation[has],
        diverged=arm.diverged + int((~has).sum()),
    )
    return Sample(kept, sample.values[has])


def _untrained(arm: Arm, context: Inputs) -> Arm:
    """Return as many models of the same shape with weights as training starts from, of streams of their own."""
    streams = [stream(context.seed, context.study, context.experiment, "untrained", r) for r in arm.replicas]
    started = [gpt.initial(arm.ensemble.spec, rng) for rng in streams]
    params = {name: torch.from_numpy(np.stack([each[name] for each in started])).float() for name in started[0]}
    # They count as they are, whatever their twins learned.
    counting = np.ones(len(arm.replicas))
    return replace(arm, ensemble=replace(arm.ensemble, params=params), validation=counting)


def _patterns(arm: Arm, tokens: NDArray[np.int64]) -> list[Floats]:
    """Return the attention of each layer, (R, N, H, T, T)."""
    of = arm.ensemble
    names = [f"blocks.{layer}.attn.pattern" for layer in range(of.spec.layers)]
    with torch.inference_mode():
        _, recorded = gpt.forward(of.spec, of.params, of.table, torch.from_numpy(tokens)[None], record=names)
    return [recorded[name].double().numpy() for name in names]


def _metrics(
    arm: Arm, patterns: list[Floats], tokens: NDArray[np.int64], states: NDArray[np.int64], S: int
) -> Iterator[dict[str, Any]]:
    T = states.shape[1]
    first = min(FIRST, T // 2)
    causal = np.tril(np.ones((T, T), bool))
    seen = np.arange(1, T + 1)
    visits = {name: states == value for name, value in (("0", 0), ("S", S))}
    last = {name: _last(where) for name, where in visits.items()}
    reset = np.maximum(last["0"], last["S"])  # -1: none so far
    for layer, pattern_RxNxHxTxT in enumerate(patterns, 1):
        P = pattern_RxNxHxTxT
        entropy = -(P * np.log(np.where(P > 0, P, 1))).sum(-1)[..., first:] / np.log(seen[first:])
        blind = blind_to_states(P, tokens)
        measured: dict[str, Floats] = {"uniformity": np.minimum(entropy.mean((1, 3)), 1.0)}
        largest = P.argmax(-1)
        for name, where in visits.items():
            share = (where[:, None, :] & causal).sum(-1) / seen  # (N, T)
            mass = (P * where[:, None, None, :]).sum(-1)
            valid = (share > 0) & (np.arange(T) >= first)
            lift = np.where(valid[:, None], mass / np.where(share > 0, share, 1)[:, None], np.nan)
            measured[f"lift_{name}"] = _mean(lift)
            measured[f"blind_lift_{name}"] = _ratio(mass, blind(where[:, None] & causal), valid)
            hit = np.where(valid[:, None], largest == last[name][:, None], np.nan)
            measured[f"argmax_last{name}"] = _mean(hit)
        before = np.arange(T)[None, None] < reset[..., None]  # (N, T, T)
        present = (reset >= 0) & (np.arange(T) >= first)
        mass = np.where(present[:, None], (P * before[:, None]).sum(-1), np.nan)
        measured["pre_reset_mass"] = np.clip(_mean(mass), 0, 1)
        expected = np.where(present[:, None], blind(before), np.nan)
        measured["pre_reset_blind"] = np.clip(_mean(expected), 0, 1)
        uniform = float(np.nanmean(np.where(present, np.maximum(reset, 0) / seen, np.nan)))
        for r, replica in enumerate(arm.replicas):
            for head in range(P.shape[2]):
                yield {
                    "run": arm.run,
                    "replica": replica,
                    "replica_index": r,
                    "layer": layer,
                    "head": head + 1,
                    "last_layer": layer == len(patterns),
                    "pre_reset_uniform": uniform,
                } | {name: float(value[r, head]) for name, value in measured.items()}


def blind_to_states(P_RxNxHxTxT: Floats, tokens: NDArray[np.int64]) -> Callable[[NDArray[np.bool_]], Floats]:
    """Return which weight (R, N, H, T) a head puts on keys (N, T, T) if it looks at their symbol and place alone.

    That is its mean weight over the inputs that have the same symbol at the key. A head that prefers late positions, as
    those where the far boundary can have been reached, or one of the symbols, gets no more than this on a boundary.
    """
    symbols = np.unique(tokens)
    has = [(tokens == symbol).astype(float) for symbol in symbols]  # (N, T)
    means = [np.einsum("rnhqk,nk->rhqk", P_RxNxHxTxT, each, optimize=True) / np.maximum(each.sum(0), 1) for each in has]

    def weight(keys_NxTxT: NDArray[np.bool_]) -> Floats:
        parts = [
            np.einsum("rhqk,nqk->rnhq", mean, keys_NxTxT * each[:, None], optimize=True)
            for mean, each in zip(means, has, strict=True)
        ]
        return np.asarray(sum(parts))

    return weight


def _ratio(first_RxNxHxT: Floats, second_RxNxHxT: Floats, valid_NxT: NDArray[np.bool_]) -> Floats:
    """Return the quotient of two sums over the sequences and positions that are valid, (R, H); NaN for none."""
    first, second = ((each * valid_NxT[:, None]).sum((1, 3)) for each in (first_RxNxHxT, second_RxNxHxT))
    return np.where(second > 0, first / np.where(second > 0, second, 1), np.nan)


def _mean(values_RxNxHxT: Floats) -> Floats:
    """Return the mean over sequences and positions that are defined, (R, H); NaN where none is."""
    count = np.isfinite(values_RxNxHxT).sum((1, 3))
    total = np.nansum(values_RxNxHxT, (1, 3))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _last(where: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the last position up to t at which it is true, (N, T), -1 for none."""
    at = np.where(where, np.arange(where.shape[1]), -1)
    return np.maximum.accumulate(at, 1)


def _maps(arm: Arm, patterns: list[Floats], states: NDArray[np.int64], number: int) -> Iterator[pl.DataFrame]:
    query, key = np.tril_indices(len(states))
    for layer, pattern_HxTxT in enumerate(patterns, 1):
        for head, weights in enumerate(pattern_HxTxT, 1):
            yield pl.DataFrame(
                {"query": query, "key": key, "weight": np.minimum(weights[query, key], 1), "state": states[key]}
            ).with_columns(run=pl.lit(arm.run), sequence=number, layer=layer, head=head)
