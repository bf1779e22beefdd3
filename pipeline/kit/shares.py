"""The share of models that do something, with an interval that small numbers of models deserve.

A bootstrap of models that all agree has the interval [0, 0] or [1, 1], of four models as of forty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from pipeline.kit.stats import Interval


def share_interval(hits: ArrayLike, confidence: float) -> Interval:
    """Return the share of true entries of ``hits`` (replicas,) with its exact binomial interval.

    The interval is that of Clopper and Pearson (1934): it covers the probability behind the share at least as often as
    ``confidence`` says, for any number of replicas. It is NaN, as the share is, where there are none.

    Raises ValueError if an entry is NaN: a model that was not judged has no place in a share.

    >>> round(share_interval([False] * 4, 0.95).hi, 4)
    0.6024
    """
    values = np.asarray(hits, float)
    if np.isnan(values).any():
        raise ValueError("a share of models has NaN entries")
    if not len(values):
        return Interval(np.nan, np.nan, np.nan)
    count = int((values != 0).sum())
    interval = stats.binomtest(count, len(values)).proportion_ci(confidence, method="exact")
    return Interval(count / len(values), float(interval.low), float(interval.high))
