"""EXP-4: attention maps of fixed probes, trained and constructed (Figure 3, section 6.2; DEP-F3, F3b)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth.measures import attention, runs, training
from pipeline.studies.depth.names import CONSTRUCTED, PROBES, TRAINED


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return maps of the probes of Figure 3, section 6.2, on the first models of their runs, and of the constructions.

    Letters become questions and digits answers, as many as the run knows; a probe that its run cannot read is left
    out.
    """
    names = [run for run in context.runs() if run in PROBES.values()]
    with one_thread():
        maps = list(_maps(context, runs.read(context, names)))
    return {"attention": maps}


def _maps(context: Inputs, known: dict[str, runs.Run]) -> Iterator[pl.DataFrame]:
    for probe, name in PROBES.items():
        run = known.get(name)
        ids = None if run is None else encode(probe, run.shape)
        if run is None or ids is None:
            continue
        ensemble = context.model(name)
        learned = training.learned(context, run)
        good = [m for m in run.models if run.chosen[m] and m not in run.diverged]
        good.sort(key=lambda model: not learned[model])  # those that learned come first
        with torch.inference_mode():
            for model in good[: context.entry.stored]:
                weights = {key: value[model : model + 1] for key, value in ensemble.params.items()}
                for layer, pattern in enumerate(runs.patterns(run, weights, ensemble.table, ids)):
                    shown = attention.read(pattern, layer, run.spec.layers)[0]
                    replica, solved = run.replica[model], bool(learned[model])
                    yield from _entries(probe, run, TRAINED, layer, shown, replica, solved)
        built = attention.constructed(run.task, run.shape["k"], run.shape["l"], run.spec.layers, ids)
        for layer, target in enumerate(built):
            if target is not None:
                shown = attention.read(target[:, None], layer, run.spec.layers)[0]
                yield from _entries(probe, run, CONSTRUCTED, layer, shown)


def _entries(
    probe: str,
    run: runs.Run,
    source: str,
    layer: int,
    map_HxTxQ: NDArray[np.float64],
    replica: int | None = None,
    learned: bool | None = None,
) -> Iterator[pl.DataFrame]:
    T, Q = map_HxTxQ.shape[1:]
    tokens = np.array(list(probe))
    key, query = np.repeat(np.arange(T), Q), np.tile(np.arange(T - Q, T), T)
    for head, weight in enumerate(map_HxTxQ):
        yield pl.DataFrame(
            {
                "key": key,
                "query": query,
                "key_token": tokens[key],
                "query_token": tokens[query],
                "weight": weight.ravel(),
            }
        ).with_columns(
            pl.lit(value, dtype).alias(column)
            for column, value, dtype in (
                ("probe", probe, pl.String),
                ("run", run.name, pl.String),
                ("source", source, pl.String),
                ("replica", replica, pl.Int32),
                ("learned", learned, pl.Boolean),
                ("layer", layer + 1, pl.Int8),
                ("head", head, pl.Int8),
            )
        )


def encode(probe: str, shape: dict[str, Any]) -> NDArray[np.int64] | None:
    """Return the tokens of ``probe``, (1, T).

    The result is None if the task has too few, or no sequences of that form.
    """
    d1, d2 = shape["d1"], shape["d2"]
    ids = [ord(c) - ord("A") if c.isalpha() else d1 if c == "=" else d1 + int(c) for c in probe]
    known = all(0 <= t <= d1 + d2 for t in ids) and all(t < d1 for t, c in zip(ids, probe, strict=True) if c.isalpha())
    fits = len(ids) == tasks.length(shape["task"], shape["k"], shape["l"])
    return np.array([ids]) if known and fits else None
