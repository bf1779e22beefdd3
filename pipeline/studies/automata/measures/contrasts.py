"""Comparisons of arms: one value with an interval over models, in a table that all experiments share.

Of five models and more the interval is a percentile bootstrap; of fewer, which have too few resamples, it is Student's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats as student

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.studies.automata.names import FEWEST

Floats = NDArray[np.float64]
FEW = 5


def contrast(
    context: Inputs, name: str, statistic: stats.Statistic, *samples: Floats, paired: bool = False
) -> dict[str, Any]:
    """Return a row of the table ``contrasts``: ``statistic`` of the samples, one value for each model.

    Of one sample it is an accuracy, a share or a correlation, so that an interval of Student ends at 1.
    """
    n = min(map(len, samples))
    if len(samples) == 1 and 1 < n < FEW:
        (sample,) = samples
        value = float(statistic(sample, axis=-1))
        each = np.array([float(statistic(sample[i : i + 1], axis=-1)) for i in range(n)])
        return _row(name, value, np.minimum(value + _half(context, each.var(ddof=1) / n, n - 1), 1), n)
    estimate = stats.bootstrap(
        statistic,
        *samples,
        rng=stream(context.seed, context.study, "contrast", name),
        resamples=context.settings.resamples,
        confidence=context.settings.confidence,
        paired=paired,
    )
    return _row(name, estimate.value, np.array([estimate.lo, estimate.hi]), n)


def difference(context: Inputs, name: str, first: Floats, second: Floats) -> dict[str, Any]:
    """Return the row of mean(first) - mean(second); models of equal number share their start and data order."""
    sizes, paired = (len(first), len(second)), len(first) == len(second)
    if not 1 < min(sizes) < FEW:
        return contrast(context, name, stats.mean_difference, first, second, paired=paired)
    value = float(first.mean() - second.mean())
    if paired:
        half = _half(context, (first - second).var(ddof=1) / sizes[0], sizes[0] - 1)
    else:
        parts = np.array([first.var(ddof=1) / sizes[0], second.var(ddof=1) / sizes[1]])
        weights = parts**2 / (np.array(sizes) - 1)
        # Welch and Satterthwaite's degrees of freedom; without any spread they do not matter.
        half = _half(context, parts.sum(), parts.sum() ** 2 / weights.sum() if weights.sum() else 1.0)
    return _row(name, value, value + half, min(sizes))


def _half(context: Inputs, variance: float, freedom: float) -> Floats:
    """Return where Student's interval ends, before and behind the value."""
    half = student.t.ppf((1 + context.settings.confidence) / 2, freedom) * np.sqrt(variance)
    return np.array([-half, half])


def _row(name: str, value: float, ends: Floats, n: int) -> dict[str, Any]:
    """Return the row; fewer than `FEWEST` models have no interval."""
    lo, hi = (float(ends[0]), float(ends[1])) if n >= FEWEST else (None, None)
    return {"contrast": name, "value": value, "lo": lo, "hi": hi, "n": n}


def trend(context: Inputs, name: str, samples: Mapping[int, Floats]) -> dict[str, Any]:
    """Return the row of Spearman's correlation of the keys and the values of ``samples``.

    Models are resampled within each key: layers are chosen, not drawn.
    """

    def statistic(*parts: Floats, axis: int = -1) -> Floats:
        keys = [np.full(part.shape, float(key)) for key, part in zip(samples, parts, strict=True)]
        return stats.spearman(np.concatenate(keys, -1), np.concatenate(parts, -1), axis=axis)

    return contrast(context, name, statistic, *samples.values())


def table(rows: list[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the rows as a frame; None if there is none."""
    return pl.DataFrame(rows, infer_schema_length=None) if rows else None


def compared(rows: Iterable[dict[str, Any]]) -> pl.DataFrame | None:
    """Return the table ``contrasts``; models that are left out are counted with a reason."""
    return table([{"n_excluded": 0, "excluded_reason": ""} | row for row in rows])
