"""Summaries over models and comparisons between runs (chapter section 6, claims 1 to 6; EXP-3, 5, 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats as scipy_stats

from pipeline.kit import stats
from pipeline.kit.streams import stream
from pipeline.studies.depth.analysis import measure
from schemas.depth.tables import (
    CONTEXTUAL,
    CONTEXTUAL_ADAM,
    GENERALIZATION,
    MEMORIZATION,
    REASONING,
    SPLITS,
)

STEPS, FINAL = "steps_to_95", "final accuracy"


def accuracy(context: Any, run: measure.Run) -> Iterator[dict[str, Any]]:
    """Rows of the table of that name: final accuracy of the models at the chosen rates."""
    analysis = context.entry.analysis
    for corpus in run.corpora:
        models = [m for m in run.models if run.chosen[m] and run.corpus(m) is corpus]
        kept = [m for m in models if m not in run.diverged]
        for split in filter(run.has, SPLITS):
            chances = {"accuracy": run.chance(split, corpus)}
            chances |= {"context": 1 / run.offered} if run.offered else {}
            for metric, chance in chances.items():
                values = run.last(metric, split)[kept]
                interval = _interval(context, stats.median, values, names=(run.name, split, metric))
                yield run.about(corpus) | {
                    "lr": run.lr[models[0]],
                    "split": split,
                    "among": "outputs" if metric == "accuracy" else metric,
                    "value": interval.value,
                    "lo": interval.lo,
                    "hi": interval.hi,
                    "confidence": analysis.confidence,
                    "least": values.min() if kept else None,
                    "most": values.max() if kept else None,
                    "n": len(kept),
                    "n_diverged": len(models) - len(kept),
                    "n_solved": int((values >= analysis.solved).sum()),
                    "chance": chance,
                }


def contrasts(context: Any, summary: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Rows of the table of that name; comparisons whose runs are not there leave none."""
    chosen = summary.filter("chosen")
    runs = {run: part for (run,), part in chosen.group_by("run", maintain_order=True)}
    names = chosen["run"].unique(maintain_order=True).to_list()

    def sweep(*first: str) -> list[str]:
        """The runs ``first`` and those whose heads EXP-2 varies, on the same task."""
        task = runs[first[0]]["task"][0] if first[0] in runs else None
        varied = [
            run for run in names if runs[run]["experiment"][0] == "exp-2" and runs[run]["task"][0] == task
        ]
        return [*first, *varied]

    yield from _rank(context, runs, "heads of one layer", sweep(MEMORIZATION[1]))
    for reference in (REASONING[2], GENERALIZATION[2]):
        yield from _spread(context, runs, "heads of two layers", sweep(reference))
    pairs = {
        "four layers against three": (CONTEXTUAL[4], CONTEXTUAL[3]),
        "three layers with Adam against SGD": (CONTEXTUAL_ADAM[3], CONTEXTUAL[3]),
        "heads 1, 1, 2 against 1, 1, 1 at k = 4": ("depth-ic-tm-k4-heads112", "depth-ic-tm-k4-heads111"),
        "heads 1, 1, 4 against 1, 1, 1 at k = 4": ("depth-ic-tm-k4-heads114", "depth-ic-tm-k4-heads111"),
        "four layers against three at k = 4": ("depth-ic-tm-k4-heads1111", "depth-ic-tm-k4-heads111"),
        "four layers against three at k = 3": ("depth-ic-tm-k3-heads1111", "depth-ic-tm-k3-heads111"),
    }
    for name, (first, second) in pairs.items():
        yield from _ratio(context, runs, name, first, second)


def steps_to(part: pl.DataFrame) -> tuple[NDArray[np.float64], int]:
    """Steps to the threshold of the models of a run, one more than all where that was never, and how many these are."""
    never = part[STEPS].is_null()
    return part[STEPS].fill_null(part["steps"] + 1).cast(pl.Float64).to_numpy(), int(never.sum())


def _rank(context: Any, runs: dict[str, pl.DataFrame], name: str, of: list[str]) -> Iterator[dict[str, Any]]:
    """Spearman's correlation of heads and steps, over all models."""
    parts = [runs[run] for run in of if run in runs]
    if len(parts) < 3:
        return
    heads = np.concatenate([np.full(part.height, int(part["heads"][0])) for part in parts])
    steps, censored = zip(*map(steps_to, parts), strict=True)
    every = np.concatenate(steps)
    interval = _interval(context, stats.spearman, heads, every, names=("contrast", name), paired=True)
    p = scipy_stats.spearmanr(heads, every).pvalue if len(set(every)) > 1 else np.nan
    yield _row(context, name, STEPS, "spearman", parts, interval, p=p, censored=sum(censored))


def _spread(
    context: Any, runs: dict[str, pl.DataFrame], name: str, of: list[str]
) -> Iterator[dict[str, Any]]:
    """The largest difference of median final accuracy of any of the runs from the first."""
    parts = [runs[run] for run in of if run in runs]
    if of[0] not in runs or len(parts) < 2:
        return
    samples = [part["accuracy"].drop_nulls().to_numpy() for part in parts]
    interval = _interval(
        context, _largest_difference, *samples, names=("contrast", name, parts[0]["task"][0])
    )
    yield _row(
        context, f"{name}, {parts[0]['task'][0]}", FINAL, "largest difference of medians", parts, interval
    )


def _largest_difference(*samples: NDArray, axis: int = -1) -> NDArray[np.float64]:
    medians = [np.median(sample, axis=axis) for sample in samples]
    return np.abs(np.stack(medians[1:]) - medians[0]).max(0)


def _ratio(
    context: Any, runs: dict[str, pl.DataFrame], name: str, first: str, second: str
) -> Iterator[dict[str, Any]]:
    """The ratio of median steps to the threshold; null where half of either run never got there."""
    if first not in runs or second not in runs:
        return
    parts = [runs[first], runs[second]]
    steps, censored = zip(*map(steps_to, parts), strict=True)
    if any(2 * count >= len(sample) for count, sample in zip(censored, steps, strict=True)):
        interval = stats.Interval(np.nan, np.nan, np.nan)
    else:
        interval = _interval(context, stats.median_ratio, *steps, names=("contrast", name))
    yield _row(context, name, STEPS, "median ratio", parts, interval, censored=sum(censored))


def _interval(
    context: Any, statistic: stats.Statistic, *samples: Any, names: tuple[str, ...], paired: bool = False
) -> stats.Interval:
    analysis = context.entry.analysis
    return stats.bootstrap(
        statistic, *samples, rng=stream(context.seed, context.study, "analysis", "bootstrap", *names),
        resamples=analysis.resamples, confidence=analysis.confidence, paired=paired,
    )  # fmt: skip


def _row(
    context: Any, name: str, quantity: str, statistic: str, parts: list[pl.DataFrame], interval: stats.Interval,
    p: float = np.nan, censored: int = 0,
) -> dict[str, Any]:  # fmt: skip
    return {
        "contrast": name,
        "task": parts[0]["task"][0],
        "quantity": quantity,
        "statistic": statistic,
        "runs": ", ".join(part["run"][0] for part in parts),
        "value": interval.value,
        "lo": interval.lo,
        "hi": interval.hi,
        "p": float(p),
        "confidence": context.entry.analysis.confidence,
        "n": sum(part.height for part in parts),
        "n_censored": censored,
        "n_diverged": sum(part["diverged_at"].is_not_null().sum() for part in parts),
    }
