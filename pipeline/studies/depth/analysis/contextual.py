"""EXP-3: heads, layers and the number of examples in contextual generalization (Figure 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.shares import share_interval
from pipeline.studies.depth.measures import findings, training
from pipeline.studies.depth.measures.contrasts import STEPS, Parts, interval, row, steps_to
from pipeline.studies.depth.measures.runs import Run, read
from pipeline.studies.depth.names import RATIOS


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the runs of this experiment, and contrasts between these and those of EXP-1."""
    runs = read(context, context.runs())
    own = [run for run in runs.values() if run.entry["experiment"] == "exp-3"]
    every = {name: training.endings(context, run) for name, run in runs.items()}
    parts = {name: endings.filter("chosen") for name, endings in every.items()}
    ratios = [contrast for name, pair in RATIOS.items() for contrast in _ratio(context, parts, name, *pair)]
    if not ratios:
        return training.tables(context, own) | {"contrasts": [], "findings": []}
    contrasts = pl.DataFrame(ratios, infer_schema_length=None)
    statements = findings.of_context(
        {name: _ended(context, run, every[name]) for name, run in runs.items()}, contrasts
    )
    return training.tables(context, own) | {"contrasts": [contrasts], "findings": findings.table(statements)}


def _ended(context: Inputs, run: Run, every: pl.DataFrame) -> dict[str, Any]:
    """Return how the models of one run ended at the chosen rate: medians, and the share that solve the task with its
    interval; and the best of all rates."""
    part = every.filter("chosen")
    best = every.sort("accuracy", descending=True, nulls_last=True).row(0, named=True)
    kept = part.filter(pl.col("diverged_at").is_null())
    solved = part["diverged_at"].is_null() & (part["accuracy"] >= context.settings.threshold).fill_null(False)
    share = share_interval(solved, context.settings.confidence)
    return {
        "readout": run.spec.readout,
        "best": best["accuracy"],
        "best_lr": best["lr"],
        "lr": part["lr"][0],
        "value": kept["accuracy"].median(),
        "context": kept["context"].median(),
        "chance": part["chance_context"][0],
        "n": kept.height,
        "n_diverged": part.height - kept.height,
        "n_solved": int(solved.sum()),
        "share_lo": share.lo,
        "share_hi": share.hi,
    }


def _ratio(context: Inputs, known: Parts, name: str, first: str, second: str) -> Iterator[dict[str, Any]]:
    """Yield the ratio of median steps to the threshold; null where half of either run never got there."""
    if first not in known or second not in known:
        return
    parts = [known[first], known[second]]
    steps, censored = zip(*map(steps_to, parts), strict=True)
    if any(2 * count >= len(sample) for count, sample in zip(censored, steps, strict=True)):
        ratio = stats.Interval(np.nan, np.nan, np.nan)
    else:
        ratio = interval(context, stats.median_ratio, *steps, names=("contrast", name))
    yield row(context, name, STEPS, "median ratio", parts, ratio, censored=sum(censored))
