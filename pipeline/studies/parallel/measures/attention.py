"""What attention says of neighbouring tokens (Li 2025, section 4.2.4; chapter section 4, EXP-9).

Of the last decoder layer in one pass. A pair is two adjacent tokens of the output of that pass, at positions i and
i + 1, without `EOS` and `PAD`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.languages import synmt
from pipeline.languages.synmt import EOS
from schemas.parallel.translation import METRICS, OTHER, STUTTER, WITHIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FEWEST = 20  # pairs of a class from which an effect is given
CLASSES = (STUTTER, WITHIN, OTHER)


class Pairs(NamedTuple):
    """Pairs: ``idx`` (n,) of the sentence, ``pos`` (n,) of the first token, ``cls`` (n,) the place of the class in
    `CLASSES`, and by metric a ``values`` (n,)."""

    idx: Ints
    pos: Ints
    cls: Ints
    values: dict[str, Floats]


def pairs(lexicon: synmt.Lexicon, said_NxT: Ints, own_NxHxTxT: Floats, cross_NxHxTxS: Floats) -> Pairs:
    """Return all pairs of translations, with self- and cross-attention (rows are queries)."""
    token = said_NxT > EOS
    idx, pos = np.nonzero(token[:, :-1] & token[:, 1:])
    first, second = said_NxT[idx, pos], said_NxT[idx, pos + 1]
    double = lexicon.table[:, 0][lexicon.table[:, 0, 1] >= 0]
    follows = np.full(lexicon.vocabulary + 1, synmt.NONE)
    follows[double[:, 0]] = double[:, 1]
    cls = np.where(first == second, 0, np.where(follows[first] == second, 1, 2))
    ahead, back = own_NxHxTxT[idx, :, pos, pos + 1], own_NxHxTxT[idx, :, pos + 1, pos]  # (n, H)
    both = np.concatenate([ahead, back], 1)
    rows, others = own_NxHxTxT[idx, :, pos], own_NxHxTxT[idx, :, pos + 1]  # (n, H, T)
    # How many keys have more: the neighbour is among the top k if fewer than k do.
    more = np.concatenate([(rows > ahead[..., None]).sum(-1), (others > back[..., None]).sum(-1)], 1)
    one, two = cross_NxHxTxS[idx, :, pos], cross_NxHxTxS[idx, :, pos + 1]  # (n, H, S)
    distance = 0.5 * np.abs(one - two).sum(-1)
    cosine = 1 - (one * two).sum(-1) / (np.linalg.norm(one, axis=-1) * np.linalg.norm(two, axis=-1))
    values = {f"sa_{name}": getattr(both, name)(1) for name in ("min", "mean", "max")}
    values |= {f"sa_top{k}": (more < k).mean(1) for k in (1, 2)}
    values |= {f"tv_{name}": getattr(distance, name)(1) for name in ("min", "mean", "max")}
    values |= {f"cos_{name}": np.maximum(getattr(cosine, name)(1), 0.0) for name in ("min", "mean", "max")}
    values |= {f"ov{k}": _overlap(one, two, k) for k in (1, 2)}
    return Pairs(idx, pos, cls, {name: values[name] for name in METRICS})


def _overlap(one: Floats, two: Floats, k: int) -> Floats:
    """Return (n,) the share of heads in which the top k keys of both intersect; of equal keys the first is above."""
    top = [np.argsort(-each, axis=-1, kind="stable")[..., :k] for each in (one, two)]
    meet: Floats = (top[0][..., :, None] == top[1][..., None, :]).any((-1, -2)).mean(-1)
    return meet


def effect(sample: Floats, other: Floats) -> float:
    """Return Cohen's d: the difference of means over the pooled standard deviation; NaN below `FEWEST` pairs."""
    if min(len(sample), len(other)) < FEWEST:
        return math.nan
    freedom = len(sample) + len(other) - 2
    pooled = ((len(sample) - 1) * sample.var(ddof=1) + (len(other) - 1) * other.var(ddof=1)) / freedom
    return float((sample.mean() - other.mean()) / math.sqrt(pooled)) if pooled > 0 else math.nan
