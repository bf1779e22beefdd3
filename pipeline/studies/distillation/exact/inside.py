"""The best possible predictor of masked tokens: inside probabilities of a grammar and their derivatives.

A sentence of known length is seen through a channel: `evidence` says how likely what is shown at each position is for
each terminal. The probability Z of all that is shown is a polynomial of degree one in the evidence of each position, so
the posterior of a token is its evidence times the derivative of log Z with respect to it (inside-outside; Liu 2024,
section 4.2.8.1 refers to it as the optimal algorithm). Derivatives come from torch.

Spans of a symbol at depth 3 or deeper are at most 27 tokens long, so their inside probabilities are kept as bands:
(W, N, T + 1), by length less the shortest one and by first token. Above, from the root down, the sentence is gone
through from left to right with one vector, over positions that a prefix of the derivation can have reached.

Suffixes name axes: N sentences, T positions, A terminals. All in float64. Evidence is scaled to the mean 1 at each
position, which keeps Z within range up to the longest sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.languages import pcfg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


Array = NDArray[np.float64]
BANDED = 3  # depth from which spans are kept as bands
CELLS = 16_000  # sentences times positions that are gone through at once


@dataclass(frozen=True)
class Band:
    """Inside probabilities (W, N, T + 1) of a symbol, by length - ``least`` and by first token."""

    least: int
    values: Tensor

    @property
    def widths(self) -> int:
        """How many lengths there are."""
        return len(self.values)


def channel(rate: float) -> Array:
    """Return (MASK + 1, A): how likely an id is shown for each terminal, at a position of which nothing else is known.

    A token is selected with probability ``rate`` and then replaced as in `pcfg.mask`; the rows of BOS, EOS and PAD
    are 0.
    """
    likelihoods = np.zeros((pcfg.MASK + 1, pcfg.TERMINALS))
    kept = 1 - pcfg.SHOWN_MASK - pcfg.SHOWN_RANDOM
    likelihoods[: pcfg.TERMINALS] = (1 - rate + rate * kept) * np.eye(pcfg.TERMINALS)
    likelihoods[: pcfg.TERMINALS] += rate * pcfg.SHOWN_RANDOM / pcfg.TERMINALS
    likelihoods[pcfg.MASK] = rate * pcfg.SHOWN_MASK
    return likelihoods


def evidence(
    shown_NxT: NDArray[np.uint8], rate: float, kind_NxT: NDArray[np.uint8] | None = None, hide_masked: bool = False
) -> Array:
    """Return (N, T, A) the evidence of what is shown (`channel`); behind the end, where PAD is shown, it is 0.

    With ``hide_masked`` it is that of a predictor that sees no position that was selected (`pcfg.visible`), and
    therefore knows that all others are as they were; it needs ``kind_NxT``. Raises SandglassError if that is missing.
    """
    if not hide_masked:
        return channel(rate)[shown_NxT]
    if kind_NxT is None:
        raise SandglassError("evidence with hide_masked needs what became of each token")
    likelihoods = channel(0.0)[shown_NxT]
    likelihoods[(kind_NxT != pcfg.NONE) & (shown_NxT != pcfg.PAD)] = 1
    return likelihoods


def posterior(
    name: str, root: int, evidence_NxTxA: Array, lengths_N: NDArray[np.int64], own_NxTxA: Array | None = None
) -> Array:
    """Return (N, T, A) the posterior of each token given all evidence; NaN where nothing fits, and behind the end.

    ``own_NxTxA`` takes the place of the evidence of the token that is asked for, and of no other: that of a position
    which is known to be selected (`selected_evidence`).
    """
    probabilities = np.full(evidence_NxTxA.shape, np.nan)
    size = max(1, CELLS // evidence_NxTxA.shape[1])
    for start in range(0, len(lengths_N), size):
        part = slice(start, start + size)
        others = _others(name, root, evidence_NxTxA[part], lengths_N[part])
        own = evidence_NxTxA[part] if own_NxTxA is None else own_NxTxA[part]
        with np.errstate(invalid="ignore", divide="ignore"):
            probabilities[part] = others * own / (others * own).sum(-1, keepdims=True)
    return probabilities


def selected_evidence(shown_NxT: NDArray[np.uint8]) -> Array:
    """Return (N, T, A) the evidence of what is shown at a position that is known to be selected (`channel` of rate
    1)."""
    return channel(1.0)[shown_NxT]


def best(
    name: str,
    root: int,
    shown_NxT: NDArray[np.uint8],
    lengths_N: NDArray[np.int64],
    rate: float,
    kind_NxT: NDArray[np.uint8] | None = None,
    hide_masked: bool = False,
) -> Array:
    """Return (N, T, A) the distribution that the best predictor gives to each token, were it a selected one
    (A-ORACLE)."""
    seen = evidence(shown_NxT, rate, kind_NxT, hide_masked)
    return posterior(name, root, seen, lengths_N, selected_evidence(shown_NxT))


def _others(name: str, root: int, evidence_NxTxA: Array, lengths_N: NDArray[np.int64]) -> Array:
    """Return (N, T, A) the derivative of the probability of the sentence by the evidence, up to a factor per
    position."""
    mean = evidence_NxTxA.mean(-1, keepdims=True)
    scaled = np.divide(evidence_NxTxA, mean, out=np.zeros_like(evidence_NxTxA), where=mean > 0)
    leaf = torch.from_numpy(scaled).requires_grad_()
    total = _total(name, root, leaf, torch.from_numpy(lengths_N))
    (gradient,) = torch.autograd.grad(total.sum(), leaf)
    return gradient.numpy()


def likelihood(name: str, root: int, evidence_NxTxA: Array, lengths_N: NDArray[np.int64]) -> Array:
    """Return (N,) the probability of the evidence and of the lengths."""
    with torch.no_grad():
        return _total(name, root, torch.from_numpy(evidence_NxTxA), torch.from_numpy(lengths_N)).numpy()


def string_probabilities(name: str, root: int, tokens_NxT: NDArray[np.uint8], lengths_N: NDArray[np.int64]) -> Array:
    """Return (N,) the probability of each string times the number of terminals to the power of its length, which keeps
    long strings in range; 0 for what is no string of the grammar below ``root``."""
    evidence_NxTxA = channel(0.0)[tokens_NxT] * pcfg.TERMINALS
    size = max(1, CELLS // tokens_NxT.shape[1])
    parts = [slice(start, start + size) for start in range(0, len(lengths_N), size)]
    return np.concatenate([likelihood(name, root, evidence_NxTxA[part], lengths_N[part]) for part in parts])


def _total(name: str, root: int, leaf_NxTxA: Tensor, lengths_N: Tensor) -> Tensor:
    """Return (N,) the inside probability of the root over each whole sentence."""
    chart = Chart(name, leaf_NxTxA, pcfg.depth(root))
    return chart.through(chart.start(), root).gather(1, lengths_N[:, None])[:, 0]


class Chart:
    """Inside probabilities of evidence (N, T, A), for what can be reached from which position."""

    def __init__(self, name: str, leaf_NxTxA: Tensor, depth: int) -> None:
        self.grammar = pcfg.grammar(name)
        self.leaf = leaf_NxTxA
        first = F.pad(leaf_NxTxA, (0, 0, 0, 1))
        each = first.movedim(-1, 0).contiguous()
        self.bands = {symbol: Band(1, each[a : a + 1]) for a, symbol in enumerate(pcfg.SYMBOLS[-1])}
        for symbols in reversed(pcfg.SYMBOLS[max(BANDED, depth) : -1]):
            made: dict[tuple[int, ...], Band] = {(symbol,): band for symbol, band in self.bands.items()}
            self.bands |= {symbol: _band(self.grammar, symbol, made) for symbol in symbols}

    def start(self) -> Tensor:
        """Return (N, T + 1): 1 before the first token."""
        weights = self.leaf.new_zeros(self.leaf.shape[0], self.leaf.shape[1] + 1)
        weights[:, 0] = 1
        return weights

    def through(self, reached: Tensor, symbol: int) -> Tensor:
        """Return (N, T + 1): what is reached behind ``symbol`` from the positions reached before it."""
        if symbol in self.bands:
            band = self.bands[symbol]
            shifted: Tensor = _Shifted.apply(reached, band.values, band.least)
            return shifted
        # What rules share at their ends is gone through once: the first symbols, and the last ones behind a sum.
        sides = self.grammar.rules[symbol]
        firsts = {first: self.through(reached, first) for first in dict.fromkeys(side[0] for side in sides)}
        middles: dict[tuple[int, ...], list[Tensor]] = {}
        for side in sides:
            middles.setdefault(side[1:], []).append(firsts[side[0]])
        lasts: dict[int, list[Tensor]] = {}
        for rest, before in middles.items():
            part = torch.stack(before).sum(0) if len(before) > 1 else before[0]
            for child in rest[:-1]:
                part = self.through(part, child)
            lasts.setdefault(rest[-1], []).append(part)
        terms = [self.through(torch.stack(parts).sum(0), last) for last, parts in lasts.items()]
        return torch.stack(terms).sum(0) * self.grammar.probability(symbol)

    def ends(self, root: int, level: int) -> Tensor:
        """Return (N, T, A): the weight of all derivations from ``root``, whatever comes behind, in which the span of a
        symbol of ``level`` ends at the position, for each terminal that may stand there whatever the evidence is.

        Positions reached before each symbol are added up over everything that may stand to its left, level by level.
        """
        before = {root: self.start()}
        for place in range(pcfg.depth(root), pcfg.DEPTH):
            below: dict[int, Tensor] = {}
            for symbol, reached in before.items():
                for side in self.grammar.rules[symbol]:
                    part = reached * self.grammar.probability(symbol)
                    for i, child in enumerate(side):
                        # Down to the level all children count, below it only the last one.
                        if i == len(side) - 1 or pcfg.DEPTH + 1 - place > level:
                            below[child] = below[child] + part if child in below else part
                        if i < len(side) - 1:
                            part = self.through(part, child)
            before = below
        none = torch.zeros_like(self.start())
        return torch.stack([before.get(terminal, none)[:, :-1] for terminal in pcfg.SYMBOLS[-1]], -1)


def following(name: str, root: int, tokens_NxT: NDArray[np.uint8], level: int) -> Array:
    """Return (N, T, A) the distribution of each token given those before it, and given that it is the last one of the
    span of a symbol of ``level``: what the best next-token predictor says where L^(level) asks (equation 4.98).

    NaN where no such span can end. What is shown behind a sentence's end is PAD.
    """
    seen = np.eye(pcfg.TERMINALS)[np.minimum(tokens_NxT, pcfg.TERMINALS - 1)] * (tokens_NxT < pcfg.TERMINALS)[..., None]
    with torch.no_grad():
        chart = Chart(name, torch.from_numpy(seen * pcfg.TERMINALS), pcfg.depth(root))  # mean 1, see above
        weights = chart.ends(root, level).numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return weights / weights.sum(-1, keepdims=True)


def _band(known: pcfg.Grammar, symbol: int, made: dict[tuple[int, ...], Band]) -> Band:
    """Return the band of a symbol from those of the symbols below it; products are kept in ``made``."""
    parts = []
    for side in known.rules[symbol]:
        for end in range(2, len(side) + 1):
            if side[:end] not in made:
                made[side[:end]] = _product(made[side[: end - 1]], made[side[end - 1 : end]])
        parts.append(made[side])
    least = min(part.least for part in parts)
    widths = max(part.least + part.widths for part in parts) - least
    same = [
        F.pad(part.values, (0, 0, 0, 0, part.least - least, widths - part.widths - part.least + least))
        for part in parts
    ]
    return Band(least, torch.stack(same).sum(0) * known.probability(symbol))


def _product(left: Band, right: Band) -> Band:
    """Return the inside probabilities of the one symbol followed by the other."""
    values: Tensor = _Product.apply(left.values, right.values, left.least)
    return Band(left.least + right.least, values)


# The two sums over lengths are written into one tensor, forward and backward: by operations of torch, each length would
# be a tensor of its own, padded, and these would take four times as long.


class _Product(torch.autograd.Function):
    """Spans of ``left`` (V, N, L), ``least`` tokens or longer, and behind them those of ``right`` (W, N, L), as
    (V + W - 1, N, L)."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, least: int) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.least = least
        product = left.new_zeros(len(left) + len(right) - 1, *left.shape[1:])
        for i, first, behind in _steps(left, least):
            product[i : i + len(right), :, first].addcmul_(left[i, :, first], right[..., behind])
        return product

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (by_found,) = gradients
        left, right = ctx.saved_tensors
        by_left, by_right = torch.zeros_like(left), torch.zeros_like(right)
        for i, first, behind in _steps(left, ctx.least):
            part = by_found[i : i + len(right), :, first]
            by_left[i, :, first] = (part * right[..., behind]).sum(0)
            by_right[..., behind].addcmul_(part, left[i, :, first])
        return by_left, by_right, None


class _Shifted(torch.autograd.Function):
    """What is reached (N, L) behind a span of a band (W, N, L), ``least`` tokens or longer, from what was ``reached``
    (N, L) before it."""

    @staticmethod
    def forward(ctx: Any, reached: Tensor, band: Tensor, least: int) -> Tensor:
        ctx.save_for_backward(reached, band)
        ctx.least = least
        output = torch.zeros_like(reached)
        for i, first, behind in _steps(band, least):
            output[:, behind].addcmul_(reached[:, first], band[i, :, first])
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (by_found,) = gradients
        reached, band = ctx.saved_tensors
        by_reached, by_band = torch.zeros_like(reached), torch.zeros_like(band)
        for i, first, behind in _steps(band, ctx.least):
            by_reached[:, first].addcmul_(by_found[:, behind], band[i, :, first])
            torch.mul(by_found[:, behind], reached[:, first], out=by_band[i, :, first])
        return by_reached, by_band, None


def _steps(band: Tensor, least: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield the place of each length of a band that fits in, the first tokens of its spans, and those behind them."""
    ends = band.shape[-1]
    for i in range(min(len(band), ends - least)):
        yield i, slice(0, ends - least - i), slice(least + i, ends)


# --- on its own: enumeration, n-grams, the plateau -----------------------------------------------------------


def enumerated(name: str, root: int, evidence_NxTxA: Array, lengths_N: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return (N, T, A) the derivative of the probability of the evidence, and (N,) that probability, by going through
    all derivations: slow, and independent of the inside algorithm."""
    strings, chances = pcfg.derivations(name, root)
    N, T, A = evidence_NxTxA.shape
    slopes, totals = np.full((N, T, A), np.nan), np.full(N, np.nan)
    for length in np.unique(lengths_N):
        rows = np.flatnonzero(lengths_N == length)
        own = [place for place, string in enumerate(strings) if len(string) == length]
        words = np.array([strings[place] for place in own]).reshape(len(own), length) - 1
        at = np.arange(length)
        for row in rows:
            each = evidence_NxTxA[row, at, words]  # (strings, positions)
            totals[row] = float(each.prod(1) @ chances[own])
            for place in range(length):
                others = np.delete(each, place, 1).prod(1) * chances[own]
                slopes[row, place] = np.bincount(words[:, place], others, A)
    return slopes, totals


def distances(
    name: str,
    root: int,
    tokens_NxT: NDArray[np.uint8],
    lengths_N: NDArray[np.int64],
    place_N: NDArray[np.int64],
    widths: Sequence[int],
    rate: float,
    hide_masked: bool = False,
) -> tuple[Array, Array]:
    """Return L_robust and L_close of the best predictor at one position of each sentence, total variation (equations
    4.94, 4.95), both (widths, N): how far its prediction is, with that token masked alone, from the one with all of
    n-gram(i) masked, and from the one with nothing but n-gram(i) to see. It expects masks of ``rate``, so that it
    trusts no token fully unless ``hide_masked``."""
    N, T = tokens_NxT.shape
    alone = np.arange(T) == place_N[:, None]
    within = np.arange(T) < lengths_N[:, None]

    def predictions(hidden_NxT: NDArray[np.bool_]) -> Array:
        shown = np.where(hidden_NxT & within, pcfg.MASK, tokens_NxT).astype(np.uint8)
        kind = np.where(hidden_NxT & within, pcfg.MASKED, pcfg.NONE)
        laws: Array = best(name, root, shown, lengths_N, rate, kind, hide_masked)[np.arange(N), place_N]
        return laws

    whole = predictions(alone)
    near = [pcfg.window(place_N, n, lengths_N, T) for n in widths]
    robust = [pcfg.total_variation(whole, predictions(each)) for each in near]
    close = [pcfg.total_variation(whole, predictions(~each | alone)) for each in near]
    return np.array(robust), np.array(close)


def plateau(marginals_A: Sequence[float] | Array) -> tuple[float, float]:
    """Return loss in nats and accuracy of a predictor that knows only how frequent each terminal is, and what is
    shown at the position that is asked for (TH-PLATEAU).

    >>> loss, accuracy = plateau([1 / 3] * 3)
    >>> round(loss, 4), round(accuracy, 4)
    (1.0524, 0.4)
    """
    joint = channel(1.0)[[*range(pcfg.TERMINALS), pcfg.MASK]] * np.asarray(marginals_A)  # (shown, terminal)
    given = joint / joint.sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = -np.where(joint > 0, joint * np.log(given), 0).sum()
    return float(loss), float(joint.max(1).sum())
