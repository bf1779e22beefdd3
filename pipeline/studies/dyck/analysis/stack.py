"""When attention becomes stack-like (DYCK-A4): types of bracket x depth x block x training data x length of training.

Wen et al. 2023 call maps "typically" not stack-like (section 4.1), of one language, block and kind of data; their
Table 1 adds other languages and another block. The factorial takes these apart.

A model's stack score is that on held-out strings of the kind it was trained on. Complete strings are shorter than
prefixes, so that fewer keys compete with the last open bracket: cells of different data are compared on the same
sentences, those of Table 1 (D5) in their language.

All models count that did not diverge, because not all have learned their task by then. Models of one language start
alike in all cells (they have one stream): replica r of these cells is one unit, which is left out of all of them
together, and the languages are strata.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.intervals import Interval
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.comparisons import EFFECTS, ON_SENTENCES
from pipeline.studies.dyck.measures import comparisons, metrics, rows
from pipeline.studies.dyck.measures.model import FORWARD, Model, inputs, measure, of_language, padded, patterns
from pipeline.studies.dyck.names import (
    ALL_CELLS,
    FACTORS,
    LONGER_CELLS,
    OWN_KIND,
    STACK_CELLS,
    STACK_LIKE,
    TABLE_1_COMPLETE,
    TABLE_1_PROBE,
    TRAINING_LENGTHS,
)

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

Cell = tuple[Any, ...]  # a level of each of FACTORS
CELLS: dict[Cell, str] = STACK_CELLS | LONGER_CELLS
LENGTH = "length of training"


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the factorial; those on single runs of the runs that no other experiment measures."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    own = [run for run in context.runs() if context.run_header(run)["job"] not in context.entry.repeated]
    found = Measurements(context)
    models: dict[str, Model] = {}
    with one_thread():
        for run in context.runs():
            if run in own or run in LONGER_CELLS.values():
                models[run] = measure(context, run, _needed(run, datasets))
        parts: list[rows.Rows] = [rows.of_run(context, models[run]) for run in own]
        second_arm = [run for run in TABLE_1_COMPLETE.values() if run in own]
        parts += [{"variation_table1": rows.of_table1(context, models[run])} for run in second_arm]
        for run in own:
            comparisons.of_run(found, models[run])
        cells = {cell: models[run] for cell, run in CELLS.items() if run in models and models[run].stack}
        scores = {cell: _scores(model) for cell, model in cells.items()}
        alike = {cell: _on_sentences(context, model, datasets) for cell, model in cells.items()}
        for cell, model in cells.items():
            comparisons.add(found, ON_SENTENCES[cell], (model, alike[cell]))
        parts.append({"stack_cells": [_row(context, cell, model) for cell, model in cells.items()]})
        parts.append({"stack_effects": _effects(context, cells, alike, "", found)})
        parts.append({"stack_effects": _effects(context, cells, scores, OWN_KIND)})
        return rows.tables_of(context, parts, found)


def _needed(run: str, datasets: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the data to measure a run on: held-out strings and, of what other figures show, probes."""
    probes = run in {*TABLE_1_COMPLETE.values(), *TRAINING_LENGTHS}
    kinds = {"train": True, "dev": True, "probe": probes}
    return {
        key: frame
        for key, frame in datasets.items()
        if any(keep and frame["split"][0].startswith(kind) for kind, keep in kinds.items())
    }


def _scores(model: Model, name: str = "stack_argmax") -> NDArray[np.float64]:
    """Return a stack score of the last layer, (R,); NaN of replicas that diverged."""
    values = model.last_stack(name)
    return _of_kept(model, np.full(model.replicas, np.nan) if values is None else values)


def _of_kept(model: Model, values: NDArray[np.float64]) -> NDArray[np.float64]:
    kept, _ = model.kept(learned=False)
    return np.where(np.isin(np.arange(model.replicas), kept), values, np.nan)


def _on_sentences(context: Inputs, model: Model, datasets: dict[str, pl.DataFrame]) -> NDArray[np.float64]:
    """Return the stack score of the last layer on the sentences of D5, (R,); NaN of replicas that diverged."""
    frame = of_language(datasets, model.k, model.depth).get(TABLE_1_PROBE)
    if frame is None:
        return np.full(model.replicas, np.nan)
    ensemble, tokens = context.model(model.run), padded(frame)
    name = patterns(ensemble)[-1]
    ids = inputs(tokens, model.entry, model.depth, start=True)
    with torch.inference_mode():
        _, recorded = FORWARD[type(ensemble.spec)](ensemble.spec, ensemble.params, ensemble.table, ids, record=[name])
    return _of_kept(model, metrics.stack_score(recorded[name], tokens).stack_argmax[:, 0].numpy())


def _row(context: Inputs, cell: Cell, model: Model) -> pl.DataFrame:
    """Return one cell: its mean score, and how many of the models that learned their task are stack-like."""
    confidence = context.settings.confidence
    accuracy, scores = model.in_distribution("acc_close"), _scores(model)
    (kept, _), (learned, _) = model.kept(learned=False), model.kept(learned=True)
    mean = intervals.mean(scores[kept], confidence).within(0, 1)
    stack_like = scores[learned] >= STACK_LIKE
    share = intervals.share(stack_like, confidence)
    unseen = _scores(model, "stack_argmax_unseen")[kept]
    k, depth, block, data, length = cell
    return pl.DataFrame(
        {
            "run": model.run,
            "block": block,
            "data": data,
            "lang_k": k,
            "lang_D": depth,
            "length": length,
            "steps": model.entry["steps"],
            "acc_close": float(np.median(accuracy[kept])) if accuracy is not None and len(kept) else None,
            "mean": mean.value,
            "lo": mean.lo,
            "hi": mean.hi,
            "interval": mean.kind,
            "unseen": float(unseen.mean()) if len(unseen) else None,
            "n": len(kept),
            "n_accurate": len(learned),
            "n_stack_like": int(stack_like.sum()),
            "share_lo": share.lo,
            "share_hi": share.hi,
            "confidence": confidence,
        }
    )


def _effects(
    context: Inputs,
    cells: dict[Cell, Model],
    scores: dict[Cell, NDArray[np.float64]],
    kind: str,
    found: Measurements | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the effect of every factor over all cells and, of other factors than it, at each length of training;
    of the length also from long to longer trainings, where there are some. ``kind`` is what ends their scope.

    Those over all cells are what claim 24 is about: ``found`` takes them.
    """
    lengths = FACTORS[LENGTH]
    for place, (factor, (low, high)) in enumerate(FACTORS.items()):
        for scope in (ALL_CELLS, *(lengths if factor != LENGTH else ())):
            first = [cell for cell in STACK_CELLS if cell[place] == low and scope in (ALL_CELLS, cell[-1])]
            pairs = [(cell, (*cell[:place], high, *cell[place + 1 :])) for cell in first]
            effect = _effect(context, cells, scores, pairs)
            here = any(cell in cells for pair in pairs for cell in pair)
            if found is not None and scope == ALL_CELLS and here:
                found.put(EFFECTS[factor], effect)
            yield from _effect_row(context, (factor, str(low), str(high), scope + kind), pairs, scores, effect)
    longer = [((*cell[:-1], lengths[-1]), cell) for cell in LONGER_CELLS]
    longer = [
        (first, second)
        for first, second in longer
        if {first, second} <= cells.keys() and cells[first].entry["steps"] < cells[second].entry["steps"]
    ]
    comparison = (LENGTH, str(lengths[-1]), "longer", f"cells that other runs train longer{kind}")
    effect = _effect(context, cells, scores, longer)
    yield from _effect_row(context, comparison, longer, scores, effect)


def _mean(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of the columns of ``scores``, over the replicas that have one; NaN where none has."""
    with np.errstate(invalid="ignore"):
        return np.nansum(scores, 0) / np.isfinite(scores).sum(0)


def _effect(
    context: Inputs, cells: dict[Cell, Model], scores: dict[Cell, NDArray[np.float64]], pairs: list[tuple[Cell, Cell]]
) -> Interval:
    """Return the mean over ``pairs`` of cells of the second's mean score minus the first's, with its interval over
    units; without a value if some cell has no models."""
    weights = dict.fromkeys((cell for pair in pairs for cell in pair), 0.0)
    if not weights or any(np.isnan(scores.get(cell, np.empty(0))).all() for cell in weights):
        return Interval(np.nan, np.nan, np.nan, intervals.JACKKNIFE, 0, 3)
    for pair in pairs:
        for cell, sign in zip(pair, (-1, 1), strict=True):
            weights[cell] += sign / len(pairs)

    def stream(cell: Cell) -> str:
        return str(cells[cell].entry["stream"])

    strata, factors = [], []
    for _, alike in groupby(sorted(weights, key=stream), key=stream):
        members = list(alike)
        size = max(len(scores[cell]) for cell in members)
        columns = [np.pad(scores[cell], (0, size - len(scores[cell])), constant_values=np.nan) for cell in members]
        strata.append(np.stack(columns, 1))
        factors.append(np.array([weights[cell] for cell in members]))

    def effect(*samples: NDArray[np.float64]) -> float:
        return float(sum(_mean(each) @ factor for each, factor in zip(samples, factors, strict=True)))

    return intervals.jackknife(effect, *strata, confidence=context.settings.confidence).within(-1, 1)


def _effect_row(
    context: Inputs,
    comparison: tuple[str, str, str, str],
    pairs: list[tuple[Cell, Cell]],
    scores: dict[Cell, NDArray[np.float64]],
    effect: Interval,
) -> Iterator[pl.DataFrame]:
    """Yield the row of an effect, if all of its cells have models."""
    if not effect.n:
        return
    means = [float(np.mean([_mean(scores[pair[side]]) for pair in pairs])) for side in (0, 1)]
    factor, low, high, scope = comparison
    yield pl.DataFrame(
        {
            "factor": factor,
            "low": low,
            "high": high,
            "scope": scope,
            "mean_low": means[0],
            "mean_high": means[1],
            "value": effect.value,
            "lo": effect.lo,
            "hi": effect.hi,
            "interval": effect.kind,
            "confidence": context.settings.confidence,
            "n_pairs": len(pairs),
            "n": sum(int(np.isfinite(scores[cell]).sum()) for pair in pairs for cell in pair),
        }
    )
