"""What attention looks at in models of the flip-flop automaton, and where linear positions let it drift."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.exact import recognisers as exact

Floats = NDArray[np.float64]
Tokens = NDArray[np.integer]

PATTERN, NORMS, INPUTS = "blocks.{}.attn.pattern", "blocks.{}.attn.norms", "blocks.{}.attn.inputs"
TINY = 1e-12


def names(layers: int, *what: str) -> tuple[str, ...]:
    """Return the names under which all layers record ``what``."""
    return tuple(name.format(layer) for layer in range(layers) for name in what)


def stacked(tensors: dict[str, Tensor], what: str, layers: int) -> Floats:
    """Return patterns (R, L, N, H, T, T), lengths of values (R, L, N, H, T) or inputs (R, L, N, T, d)."""
    return np.stack([tensors[what.format(layer)].double().numpy() for layer in range(layers)], 1)


def sharpness(patterns: Floats, norms: Floats, symbols_NxT: Tokens, answers_RxNxT: Tokens) -> dict[str, Floats]:
    """Return measures (R,) of how sharp attention is and what it points at, over all layers and heads (3.5.6.5).

    ``argmax_*`` are shares of query rows whose largest weight lies on the most recent write; ``*_noop`` of rows of
    no-ops alone, since a write can also answer by itself. ``*_right_type`` are shares of rows of no-ops that are
    answered rightly, whose largest weight lies on some write of the right value: by weights, and by weights times the
    length of the value vector (footnote 44).
    """
    last, truth = language.last_symbol(symbols_NxT), language.states(symbols_NxT)
    noop = symbols_NxT == language.NOOP
    largest = patterns.argmax(-1)  # (R, L, N, H, T)
    heavy = (patterns * norms[..., None, :]).argmax(-1)
    hit = largest == last[:, None]
    entropy = -(patterns * np.log(patterns + TINY)).sum(-1)
    right_write = symbols_NxT[:, None, :] == truth[..., None] + 1  # (N, T, T'): whether key t' writes the right value
    rows = np.arange(len(symbols_NxT))[:, None, None], np.arange(symbols_NxT.shape[1])
    right_noops = noop[None] & (answers_RxNxT == truth)  # (R, N, T)
    weight = np.broadcast_to(right_noops[:, None, :, None], largest.shape)

    def mean(values: Floats, where: NDArray[np.bool_]) -> Floats:
        counted = where.sum((1, 2, 3, 4))
        total = (values * where).sum((1, 2, 3, 4))
        return np.where(counted > 0, total / np.maximum(counted, 1), np.nan)

    every = np.ones(largest.shape, bool)
    return {
        "max_weight": patterns.max(-1).mean((1, 2, 3, 4)),
        "entropy": np.maximum(entropy.mean((1, 2, 3, 4)), 0),
        "argmax_last": mean(hit, every),
        "argmax_last_noop": mean(hit, np.broadcast_to(noop[:, None], largest.shape)),
        "argmax_right_type": mean(right_write[(*rows, largest)], weight),
        "value_right_type": mean(right_write[(*rows, heavy)], weight),
    }


def on_last_write(patterns: Floats, symbols_NxT: Tokens) -> Floats:
    """Return (R, L, H): of the no-ops of inputs (N, T), the share whose largest weight lies on the most recent
    write, in ``patterns`` (R, L, N, H, T, T)."""
    hit = patterns.argmax(-1) == language.last_symbol(symbols_NxT)[:, None]  # (R, L, N, H, T)
    noop = np.broadcast_to((symbols_NxT == language.NOOP)[:, None], hit.shape)
    shares: Floats = (hit & noop).sum((2, 4)) / noop.sum((2, 4))
    return shares


def coefficients(params: dict[str, Tensor], replica: int, C: int) -> exact.Linear:
    """Return the coefficients of one model of `pipeline.models.flipflop.linear_position`, with its 1/sqrt(d)."""
    W_Q, W_K, E = (params[name][replica].double().numpy() for name in ("attn.W_Q", "attn.W_K", "embed.W"))
    return exact.Linear.of(W_Q.T / np.sqrt(W_Q.shape[0]), W_K.T, E, C)


def predicted_switch(of: exact.Linear, symbols: Tokens) -> int | None:
    """Return the first position (from 1) of a no-op behind the last write whose largest score is on another key.

    Scores of no-ops are linear in the key's position, so that the writes, the first no-op and the query decide.
    """
    writes = np.flatnonzero(symbols) + 1
    first = int(np.flatnonzero(symbols == language.NOOP)[0]) + 1
    last = int(writes[-1])
    for i in range(last + 1, len(symbols) + 1):
        keys = np.array([*writes, first, i])
        if keys[of.score(i, keys, symbols[keys - 1].astype(np.int64)).argmax()] != last:
            return i
    return None


def observed_switch(pattern_TxT: Floats, symbols: Tokens) -> int | None:
    """Return the same from attention weights."""
    last = int(np.flatnonzero(symbols)[-1])
    off = np.flatnonzero(pattern_TxT.argmax(-1)[last + 1 :] != last)
    return last + 2 + int(off[0]) if len(off) else None
