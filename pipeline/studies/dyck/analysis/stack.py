"""When attention becomes stack-like (DYCK-A4): types of bracket x depth x block x training data x length of training.

Wen et al. 2023 call maps "typically" not stack-like (section 4.1), of one language, block and kind of data; their
Table 1 adds other languages and another block. The factorial takes these apart.

A model's stack score is that on held-out strings of the kind it was trained on. Complete strings are shorter than
prefixes, so that fewer keys compete with the last open bracket: cells of different data are compared on the same
sentences, those of Table 1 (D5) in their language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.shares import share_interval
from pipeline.kit.streams import one_thread
from pipeline.studies.dyck.measures import metrics, rows
from pipeline.studies.dyck.measures.intervals import bootstrap_stream, bootstrapped
from pipeline.studies.dyck.measures.model import (
    FORWARD,
    IN_DISTRIBUTION,
    Model,
    inputs,
    measure,
    of_language,
    padded,
    patterns,
)
from pipeline.studies.dyck.names import (
    ALL_CELLS,
    FACTORS,
    LONGER_CELLS,
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
OWN_KIND = ", strings of its own kind"  # end of the scope of effects on other strings than D5


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the factorial; those on single runs of the runs that no other experiment measures."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    own = [run for run in context.runs() if context.run_header(run)["job"] not in context.entry.repeated]
    models: dict[str, Model] = {}
    with one_thread():
        for run in context.runs():
            if run in own or run in LONGER_CELLS.values():
                models[run] = measure(context, run, _needed(run, datasets))
        parts: list[rows.Rows] = [rows.of_run(context, models[run]) for run in own]
        second_arm = [run for run in TABLE_1_COMPLETE.values() if run in own]
        parts += [{"variation_table1": rows.of_table1(context, models[run])} for run in second_arm]
        cells = {cell: models[run] for cell, run in CELLS.items() if run in models and models[run].stack}
        scores = {cell: _scores(model, accurate=False) for cell, model in cells.items()}
        alike = {cell: _on_sentences(context, model, datasets) for cell, model in cells.items()}
        cell_rows = {
            "stack_cells": [_row(context, cell, model, scores[cell]) for cell, model in cells.items()]
        }
        parts += [cell_rows, {"contrasts": [_mean(context, cells[cell], alike[cell]) for cell in cells]}]
        parts.append({"stack_effects": _effects(context, cells, alike, "")})
        parts.append({"stack_effects": _effects(context, cells, scores, OWN_KIND)})
        return rows.tables_of(context, parts)


def _needed(run: str, datasets: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the data to measure a run on: held-out strings and, of what other figures show, probes."""
    probes = run in {*TABLE_1_COMPLETE.values(), *TRAINING_LENGTHS}
    kinds = {"train": True, "dev": True, "probe": probes}
    return {
        key: frame
        for key, frame in datasets.items()
        if any(keep and frame["split"][0].startswith(kind) for kind, keep in kinds.items())
    }


def _scores(model: Model, accurate: bool, name: str = "stack_argmax") -> NDArray[np.float64]:
    """Return a stack score of the last layer, of all replicas that did not diverge or of the accurate ones."""
    values = model.last_stack(name)
    kept, _ = model.kept(accurate)
    return values[kept] if values is not None else np.empty(0)


def _on_sentences(context: Inputs, model: Model, datasets: dict[str, pl.DataFrame]) -> NDArray[np.float64]:
    """Return the stack score of the last layer on the sentences of D5, of all replicas that did not diverge."""
    frame = of_language(datasets, model.k, model.depth).get(TABLE_1_PROBE)
    kept, _ = model.kept(accurate=False)
    if frame is None:
        return np.empty(0)
    ensemble, tokens = context.model(model.run), padded(frame)
    name = patterns(ensemble)[-1]
    ids = inputs(tokens, model.entry, model.depth, start=True)
    with torch.inference_mode():
        _, recorded = FORWARD[type(ensemble.spec)](
            ensemble.spec, ensemble.params, ensemble.table, ids, record=[name]
        )
    return metrics.stack_score(recorded[name], tokens).stack_argmax[:, 0].numpy()[kept]


def _mean(context: Inputs, model: Model, scores: NDArray[np.float64]) -> pl.DataFrame:
    """Return the mean of ``scores``, those on the sentences of D5, with its interval over replicas."""
    return bootstrapped(context, ("stack", "mean on D5", "stack_argmax"), stats.mean, [model], [scores])


def _row(context: Inputs, cell: Cell, model: Model, scores: NDArray[np.float64]) -> pl.DataFrame:
    """Return one cell: its mean score, and how many of its accurate models are stack-like."""
    settings = context.settings
    accuracy = model.column(IN_DISTRIBUTION[model.split], "acc_close")
    kept, _ = model.kept(accurate=False)
    accurate = _scores(model, accurate=True)
    mean = stats.bootstrap(
        stats.mean, scores, rng=bootstrap_stream(context, "stack", model.run),
        resamples=settings.resamples, confidence=settings.confidence,
    )  # fmt: skip
    share = share_interval(accurate >= STACK_LIKE, settings.confidence)
    unseen = _scores(model, accurate=False, name="stack_argmax_unseen")
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
            "unseen": float(unseen.mean()) if len(unseen) else None,
            "n": len(scores),
            "n_accurate": len(accurate),
            "n_stack_like": int((accurate >= STACK_LIKE).sum()),
            "share_lo": share.lo,
            "share_hi": share.hi,
            "confidence": settings.confidence,
        }
    )


def _effects(
    context: Inputs, cells: dict[Cell, Model], scores: dict[Cell, NDArray[np.float64]], kind: str
) -> Iterator[pl.DataFrame]:
    """Yield the effect of every factor over all cells and, of other factors than it, at each length of training;
    of the length also from long to longer trainings, where there are some. ``kind`` is what ends their scope."""
    draws = {cell: _drawn(context, model.run, scores[cell]) for cell, model in cells.items()}
    lengths = FACTORS[LENGTH]
    for place, (factor, (low, high)) in enumerate(FACTORS.items()):
        for scope in (ALL_CELLS, *(lengths if factor != LENGTH else ())):
            first = [cell for cell in STACK_CELLS if cell[place] == low and scope in (ALL_CELLS, cell[-1])]
            pairs = [(cell, (*cell[:place], high, *cell[place + 1 :])) for cell in first]
            yield from _effect(context, (factor, str(low), str(high), scope + kind), pairs, scores, draws)
    longer = [((*cell[:-1], lengths[-1]), cell) for cell in LONGER_CELLS]
    longer = [
        (first, second)
        for first, second in longer
        if {first, second} <= cells.keys() and cells[first].entry["steps"] < cells[second].entry["steps"]
    ]
    comparison = (LENGTH, str(lengths[-1]), "longer", f"cells that other runs train longer{kind}")
    yield from _effect(context, comparison, longer, scores, draws)


def _drawn(context: Inputs, run: str, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bootstrap draws of the mean of ``scores``, (resamples,)."""
    if not len(scores):
        return np.full(context.settings.resamples, np.nan)
    counts = stats.resample_counts(
        bootstrap_stream(context, "stack", "effects", run), len(scores), context.settings.resamples
    )
    return counts @ scores / len(scores)


def _effect(
    context: Inputs,
    comparison: tuple[str, str, str, str],
    pairs: list[tuple[Cell, Cell]],
    scores: dict[Cell, NDArray[np.float64]],
    draws: dict[Cell, NDArray[np.float64]],
) -> Iterator[pl.DataFrame]:
    """Yield the mean over ``pairs`` of cells of the second's score minus the first's, if all of them have models."""
    if not pairs or any(not len(scores.get(cell, ())) for pair in pairs for cell in pair):
        return
    means = [float(np.mean([scores[pair[side]].mean() for pair in pairs])) for side in (0, 1)]
    drawn = np.mean([draws[second] - draws[first] for first, second in pairs], 0)
    lo, hi = stats.percentiles(drawn, context.settings.confidence)
    factor, low, high, scope = comparison
    yield pl.DataFrame(
        {
            "factor": factor,
            "low": low,
            "high": high,
            "scope": scope,
            "mean_low": means[0],
            "mean_high": means[1],
            "value": means[1] - means[0],
            "lo": lo,
            "hi": hi,
            "confidence": context.settings.confidence,
            "n_pairs": len(pairs),
            "n": sum(len(scores[cell]) for pair in pairs for cell in pair),
        }
    )
