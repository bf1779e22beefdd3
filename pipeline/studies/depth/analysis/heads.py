"""EXP-2: heads on memorization, reasoning and generalization (Figures 4 to 6)."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.comparisons import HEADS_ACCURACY, HEADS_P, HEADS_STEPS
from pipeline.studies.depth.measures import training
from pipeline.studies.depth.measures.runs import read
from pipeline.studies.depth.names import HEADS, ONE_HEAD

Ended = dict[str, pl.DataFrame]  # how the models of each run ended at the chosen rate


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return comparisons of runs that vary heads: their speed on memorization, else their accuracy."""
    named = {run for runs in HEADS.values() for run in runs.values()}
    runs = read(context, [run for run in context.runs() if run in named])
    ended = {name: training.endings(context, run).filter("chosen") for name, run in runs.items()}
    found = Measurements(context)
    _speed(found, ended)
    for (task, heads), comparison in HEADS_ACCURACY.items():
        pair = [ended[run] for run in (HEADS[task][heads], HEADS[task][ONE_HEAD]) if run in ended]
        if len(pair) == 2:
            kept = [part.filter(pl.col("diverged_at").is_null()) for part in pair]
            left = sum(part.height for part in pair) - sum(part.height for part in kept)
            samples = [part["accuracy"].fill_null(np.nan) for part in kept]
            found.add(comparison, *samples, excluded=left, reason="diverged")
    return {"comparisons": [found.table()]}


def _speed(found: Measurements, ended: Ended) -> None:
    """Add the rank correlation of heads and steps to the threshold over all models that memorize, and its p-value."""
    parts = {int(heads): ended[run] for heads, run in HEADS["sc"].items() if run in ended}
    if not parts:
        return
    heads = np.concatenate([np.full(part.height, count) for count, part in parts.items()])
    steps = np.concatenate([training.steps_to_95(part) for part in parts.values()])
    correlation = found.add(HEADS_STEPS, heads, steps)
    varied = len(set(heads.tolist())) > 1 and len(set(steps.tolist())) > 1
    p = float(stats.spearmanr(heads, steps).pvalue) if varied else np.nan
    found.put(HEADS_P, intervals.plain(1.0 if correlation.value >= 0 else p, len(steps)))
