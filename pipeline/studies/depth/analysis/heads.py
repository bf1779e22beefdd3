"""EXP-2: heads on memorization, reasoning and generalization (Figures 4 to 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import findings, training
from pipeline.studies.depth.measures.contrasts import FINAL, STEPS, Parts, interval, row, steps_to
from pipeline.studies.depth.measures.runs import read
from pipeline.studies.depth.names import GENERALIZATION, MEMORIZATION, REASONING


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return contrasts of the runs that vary heads with the reference of their task."""
    first = {"sc": MEMORIZATION[1], "ic_qa": REASONING[2], "tm": GENERALIZATION[2]}
    varied = [run for run in context.runs() if context.run_header(run)["entry"]["experiment"] == "exp-2"]
    runs = read(context, [run for run in context.runs() if run in (*first.values(), *varied)])
    parts = {name: training.endings(context, run).filter("chosen") for name, run in runs.items()}
    rows: list[dict[str, Any]] = []
    for task, reference in first.items():
        of = [reference, *(run for run in varied if runs[run].task == task)]
        if task == "sc":
            rows += _rank(context, parts, "heads of one layer", of)
        else:
            rows += _spread(context, parts, "heads of two layers", of)
    if not rows:
        return {"contrasts": [], "findings": []}
    contrasts = pl.DataFrame(rows, infer_schema_length=None)
    rates = pl.concat([run.rates for run in runs.values()])
    return {"contrasts": [contrasts], "findings": findings.table(findings.of_heads(rates, contrasts))}


def _rank(context: Inputs, known: Parts, name: str, of: list[str]) -> Iterator[dict[str, Any]]:
    """Yield Spearman's correlation of heads and steps, over all models."""
    parts = [known[run] for run in of if run in known]
    if of[0] not in known or len(parts) < 3:
        return
    heads = np.concatenate([np.full(part.height, int(part["heads"][0])) for part in parts])
    steps, censored = zip(*map(steps_to, parts), strict=True)
    every = np.concatenate(steps)
    correlation = interval(context, stats.spearman, heads, every, names=("contrast", name), paired=True)
    p = scipy_stats.spearmanr(heads, every).pvalue if len(set(every)) > 1 else np.nan
    yield row(context, name, STEPS, "spearman", parts, correlation, p=p, censored=sum(censored))


def _spread(context: Inputs, known: Parts, name: str, of: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the largest difference of median final accuracy of any of the runs from the first."""
    parts = [known[run] for run in of if run in known]
    if of[0] not in known or len(parts) < 2:
        return
    samples = [part["accuracy"].drop_nulls().to_numpy() for part in parts]
    gap = interval(context, _largest_difference, *samples, names=("contrast", name, parts[0]["task"][0]))
    yield row(context, f"{name}, {parts[0]['task'][0]}", FINAL, "largest difference of medians", parts, gap)


def _largest_difference(*samples: NDArray, axis: int = -1) -> NDArray[np.float64]:
    medians = [np.median(sample, axis=axis) for sample in samples]
    return np.abs(np.stack(medians[1:]) - medians[0]).max(0)
