"""EXP-ATTN: what heads of gridworld models look at (Figures 3.6 and 3.17)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import automata
from pipeline.models.automata import gpt
from pipeline.studies.automata.measures import contrasts
from pipeline.studies.automata.measures.arms import Arm, arms
from pipeline.studies.automata.measures.contrasts import Floats
from pipeline.studies.automata.names import ATTENTION

FIRST = 7  # 0-based position from which heads are measured, or half of a shorter sequence
DRAWN = 2  # sequences


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return measures of all heads of all models, trained and as they started, and maps of the best model.

    Models that were never trained are the control: what their heads show, training has not made.
    """
    with one_thread():
        models = arms(context, [ATTENTION])
        if not models:
            return {"attn_metrics": None, "attn_maps": None}
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
        for row in _metrics(arm, seen, states, arm.task.labels - 1)
    ]
    best = int(np.argmax(accuracy))
    maps = [part for n in range(DRAWN) for part in _maps(arm, [p[best, n] for p in patterns], states[n], n)]
    return {"attn_metrics": contrasts.table(rows), "attn_maps": pl.concat(maps)}


def _untrained(arm: Arm, context: Inputs) -> Arm:
    """Return as many models of the same shape with weights as training starts from, of streams of their own."""
    streams = [stream(context.seed, context.study, context.experiment, "untrained", r) for r in arm.replicas]
    started = [gpt.initial(arm.ensemble.spec, rng) for rng in streams]
    params = {
        name: torch.from_numpy(np.stack([each[name] for each in started])).float() for name in started[0]
    }
    return replace(arm, ensemble=replace(arm.ensemble, params=params))


def _patterns(arm: Arm, tokens: NDArray[np.int64]) -> list[Floats]:
    """Return the attention of each layer, (R, N, H, T, T)."""
    of = arm.ensemble
    names = [f"blocks.{layer}.attn.pattern" for layer in range(of.spec.layers)]
    with torch.inference_mode():
        _, recorded = gpt.forward(of.spec, of.params, of.table, torch.from_numpy(tokens)[None], record=names)
    return [recorded[name].double().numpy() for name in names]


def _metrics(arm: Arm, patterns: list[Floats], states: NDArray[np.int64], S: int) -> Iterator[dict[str, Any]]:
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
        measured: dict[str, Floats] = {"uniformity": np.minimum(entropy.mean((1, 3)), 1.0)}
        largest = P.argmax(-1)
        for name, where in visits.items():
            share = (where[:, None, :] & causal).sum(-1) / seen  # (N, T)
            mass = (P * where[:, None, None, :]).sum(-1)
            valid = (share > 0) & (np.arange(T) >= first)
            lift = np.where(valid[:, None], mass / np.where(share > 0, share, 1)[:, None], np.nan)
            measured[f"lift_{name}"] = _mean(lift)
            hit = np.where(valid[:, None], largest == last[name][:, None], np.nan)
            measured[f"argmax_last{name}"] = _mean(hit)
        before = np.arange(T)[None, None] < reset[..., None]  # (N, T, T)
        present = (reset >= 0) & (np.arange(T) >= first)
        mass = np.where(present[:, None], (P * before[:, None]).sum(-1), np.nan)
        measured["pre_reset_mass"] = np.clip(_mean(mass), 0, 1)
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
                {
                    "query": query,
                    "key": key,
                    "weight": np.minimum(weights[query, key], 1),
                    "state": states[key],
                }
            ).with_columns(run=pl.lit(arm.run), sequence=number, layer=layer, head=head)
