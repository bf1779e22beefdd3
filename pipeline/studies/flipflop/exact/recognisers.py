"""Flip-flops with weights and formulas written down (Liu 2024, sections 3.5.1, 3.5.3, 3.5.7).

The two-layer parser of Proposition 3, the bound of Proposition 4, the scores of Proposition 5, the best predictor that
sees n tokens, the floor of the generative loss, and carries of an addition. All in float64 unless asked otherwise.

Capital suffixes name axes: N sequences, T tokens, D coordinates, k the width of a head.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import SandglassError
from pipeline.languages.flipflop import DATA, IGNORE, READ, WRITE

Array = NDArray[np.float64]
Ints = NDArray[np.integer]
ROWS = 16  # sequences whose attention is computed at once
FLIP_FLOP = np.array([[0, 1, 0], [0, 1, 1]])  # (state, symbol): write 0, write 1, keep (Definition 11)


# --- machines (section 3.5.1) ----------------------------------------------------------------------


def recogniser() -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the moves (4, 5) and the names of the machine of Figure 3.23b: the bit, and whether a write is pending.

    Its state behind a read holds the bit that follows.
    """
    states = list(itertools.product((0, 1), (False, True)))
    moves = np.empty((4, 5), np.int64)
    for i, (bit, pending) in enumerate(states):
        for token in range(5):
            successor = (bit, token == WRITE) if token < DATA else (token - DATA if pending else bit, False)
            moves[i, token] = states.index(successor)
    return moves, tuple(f"{bit}, w" if pending else str(bit) for bit, pending in states)


def scanned(moves_QxS: Ints, symbols_NxT: Ints, start: int = 0) -> NDArray[np.int64]:
    """Return the states (N, T) of a machine behind each symbol."""
    state, states = np.full(len(symbols_NxT), start), np.empty(symbols_NxT.shape, np.int64)
    for t, symbol in enumerate(symbols_NxT.T):
        state = states[:, t] = moves_QxS[state, symbol]
    return states


def carries(digits_A: Ints, digits_B: Ints) -> NDArray[np.int64]:
    """Return the carry (N, T) out of each place of two numbers, units first: a flip-flop of their digit sums.

    A sum of 10 or more writes 1, one of 8 or less writes 0, and 9 keeps what came before (chapter 5.8).
    """
    total = np.asarray(digits_A) + np.asarray(digits_B)
    return scanned(FLIP_FLOP, np.where(total == 9, 2, total >= 10))


def added(a: str, b: str) -> str:
    """Return the sum of two numbers, written in digits, by `carries`.

    >>> added("8493", "2357")
    '10850'
    """
    width = max(len(a), len(b)) + 1
    places = np.array([[int(digit) for digit in reversed(number.zfill(width))] for number in (a, b)])
    carry = np.concatenate([[0], carries(places[:1], places[1:])[0, :-1]])
    return "".join(map(str, ((places.sum(0) + carry) % 10)[::-1])).lstrip("0") or "0"


# --- Proposition 3 (section 3.5.7.1) ---------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """One head and a threshold: W_Q, W_K, W_V (D, k), W_C (k, D), and an MLP of two ReLUs, W_1 (D, 2), b_1, W_2 (2, D).

    Scores are not scaled and nothing is normalised, as in equation 3.6.
    """

    Q: Array
    K: Array
    V: Array
    C: Array
    W_1: Array
    b_1: Array
    W_2: Array
    residual: bool

    def attended(self, x_NxTxD: NDArray, hard: bool = False, causal: bool = True) -> NDArray:
        """Return what attention makes of the rows, before the MLP; ``hard`` takes the largest score alone."""
        Q, K, V, C = (each.astype(x_NxTxD.dtype) for each in (self.Q, self.K, self.V, self.C))
        scores = (x_NxTxD @ Q) @ (x_NxTxD @ K).swapaxes(-1, -2)
        if causal:
            scores += np.triu(np.full((scores.shape[-1],) * 2, -np.inf, scores.dtype), 1)
        if hard:
            best = scores.argmax(-1)[..., None]
            values: NDArray = np.take_along_axis(x_NxTxD @ V @ C, best, 1)
            return values
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        made: NDArray = (weights / weights.sum(-1, keepdims=True)) @ (x_NxTxD @ V) @ C
        return made

    def rounded(self, h_NxTxD: NDArray) -> NDArray:
        """Return what the MLP makes of the rows."""
        W_1, b_1, W_2 = (each.astype(h_NxTxD.dtype) for each in (self.W_1, self.b_1, self.W_2))
        outputs: NDArray = np.maximum(h_NxTxD @ W_1 + b_1, 0) @ W_2
        return outputs


def threshold(dim: int, at: int, printed: bool = False) -> tuple[Array, Array, Array]:
    """Return W_1, b_1 and W_2 of 1[x_at > 1/2] on coordinate ``at``: Lemma 12 with a margin of 1/2.

    Deviations up to an eighth are removed; by the ``printed`` form, whose slope is half as large, none is.
    """
    margin = 0.5
    shift, width = (margin, 2 * margin) if printed else (margin / 2, margin)
    W_1, W_2 = np.zeros((dim, 2)), np.zeros((2, dim))
    W_1[at] = 1 / width
    W_2[:, at] = 1, -1
    return W_1, (np.array([shift, -shift]) - 0.5) / width, W_2


@dataclass(frozen=True)
class Parser:
    """The Transformer of Proposition 3. ``horizon`` is C, the position at which the position code is 1."""

    blocks: tuple[Block, Block]
    horizon: float

    def embed(self, tokens_NxT: Ints, dtype: type = np.float64) -> NDArray:
        """Return E(x) (N, T, 7): write, read or ignore, '0', '1', one, t/C, and a place for the flag."""
        at = np.arange(1, tokens_NxT.shape[1] + 1) / self.horizon
        embeddings = np.zeros((*tokens_NxT.shape, 7))
        embeddings[..., 0], embeddings[..., 1] = tokens_NxT == WRITE, np.isin(tokens_NxT, (READ, IGNORE))
        embeddings[..., 2], embeddings[..., 3] = tokens_NxT == DATA, tokens_NxT == DATA + 1
        embeddings[..., 4], embeddings[..., 5] = 1, at
        return embeddings.astype(dtype)

    def flags(self, tokens_NxT: Ints, dtype: type = np.float64, hard: bool = False, causal: bool = True) -> NDArray:
        """Return f_1(x) (N, T, 7): the last coordinate is 1 at a write and behind it."""
        x = self.embed(tokens_NxT, dtype)
        first = self.blocks[0]
        return x + first.rounded(first.attended(x, hard, causal))

    def __call__(
        self, tokens_NxT: Ints, dtype: type = np.float64, hard: bool = False, causal: bool = True
    ) -> tuple[NDArray, NDArray]:
        """Return (N, T) twice: what the output coordinate says of the next bit, and the same before it is rounded."""
        parts = []
        for start in range(0, len(tokens_NxT), ROWS):
            f_1 = self.flags(tokens_NxT[start : start + ROWS], dtype, hard, causal)
            second = self.blocks[1]
            raw = second.attended(f_1, hard, causal)
            out = second.rounded(raw) + (f_1 if second.residual else 0)
            parts.append((out[..., 0], raw[..., 0]))
        out_NxT, raw_NxT = (np.concatenate(each) for each in zip(*parts, strict=True))
        return out_NxT, raw_NxT

    def with_residual(self) -> Parser:
        """Return the parser with a residual connection around its second layer as well."""
        return replace(self, blocks=(self.blocks[0], replace(self.blocks[1], residual=True)))


def parser(
    length: int,
    *,
    sharpness: float = 1.0,
    horizon: float | None = None,
    reach: float = 1.0,
    prefactor: float = 1.0,
    printed_key: bool = False,
    printed_threshold: bool = False,
) -> Parser:
    """Return Proposition 3 for strings of ``length``, with c_1 = 2T ln 8T and c_2 = T ln 8T, by Lemma 13.

    ``sharpness`` multiplies both; ``horizon`` is C, where it is not T; ``reach`` multiplies the weight of the flag
    (1 + L/C makes it right up to a length L); ``prefactor`` multiplies the scores of the second layer (the middle line
    of their display has 1/T). Printed forms: ``printed_key`` has the key 3c/2T where C is not T, and
    ``printed_threshold`` is that of Lemma 12.
    """
    C = float(length if horizon is None else horizon)
    c_1, c_2 = (sharpness * factor * C * math.log(8 * length) for factor in (2, 1))
    unit = np.eye(7)
    nothing = np.zeros(7)
    query = np.stack([unit[4], unit[4]], 1)
    key = np.stack([1.5 * c_1 / (length if printed_key else C) * unit[0], c_1 * unit[5]], 1)
    first = Block(
        query,
        key,
        np.stack([unit[0], nothing], 1),
        np.stack([unit[6], nothing]),
        *threshold(7, 6, printed_threshold),
        residual=True,
    )
    second = Block(
        query,
        prefactor * c_2 * np.stack([reach * unit[6], unit[5]], 1),
        np.stack([unit[3], nothing], 1),
        np.stack([unit[0], nothing]),
        *threshold(7, 0, printed_threshold),
        residual=False,
    )
    return Parser((first, second), C)


# --- Proposition 4 (section 3.5.7.2) ---------------------------------------------------------------


def most_weight(sigma: ArrayLike, length: ArrayLike) -> Any:
    """Return the largest weight that one of ``length`` tokens can have, for vectors of norm 1 and a norm
    sigma of W_K' W_Q."""
    return 1 / (1 + (np.asarray(length, float) - 1) * np.exp(-2 * np.asarray(sigma, float)))


def largest_weight(product_DxD: Array, v_TxD: Array) -> float:
    """Return the largest weight of the last query, for scores v_t' (W_K' W_Q) v_T."""
    scores = v_TxD @ product_DxD @ v_TxD[-1]
    weights = np.exp(scores - scores.max())
    return float(weights.max() / weights.sum())


# --- Proposition 5 (section 3.5.7.3) ---------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """Scores of a no-op with linear positions: s(i, j) = A_k + b j/C + g_k i/C + a ij/C^2 for a key of symbol k.

    ``A`` and ``g`` have one entry for each symbol: no-op, and the two writes.
    """

    A: Array
    b: float
    g: Array
    a: float
    C: float

    @classmethod
    def of(cls, Q_kxD: Array, K_kxD: Array, embedding_3xE: Array, C: float) -> Linear:
        """Return the coefficients of weights [W_e, W_p]; the position is the last coordinate."""
        q, k = Q_kxD[:, :-1] @ embedding_3xE[0], embedding_3xE @ K_kxD[:, :-1].T
        Q_p, K_p = Q_kxD[:, -1], K_kxD[:, -1]
        return cls(k @ q, float(q @ K_p), k @ Q_p, float(Q_p @ K_p), C)

    def score(self, i: Ints | int, j: Ints | int, symbol: Ints | int) -> Array:
        """Return s(i, j), positions counted from 1."""
        at, key = np.asarray(i) / self.C, np.asarray(j) / self.C
        scores: Array = self.A[symbol] + self.b * key + self.g[symbol] * at + self.a * at * key
        return scores

    def margins(self, T: Ints | float) -> tuple[Array, Array]:
        """Return D_1 and D_2 at length T: by how much the right write leads.

        Of [1, 0, .., 0] over the query itself, and of the last write in [1, 0, .., 0, 2, 0] over the first one.
        """
        T = np.asarray(T, float)
        (A_0, A_1, A_2), (g_0, g_1, g_2), b, a = self.A, self.g, self.b / self.C, self.a / self.C**2
        one = A_1 - A_0 - b * (T - 1) + (g_1 - g_0) / self.C * T - a * T * (T - 1)
        two = A_2 - A_1 + b * (T - 2) + (g_2 - g_1) / self.C * T + a * T * (T - 2)
        return one, two

    def first_failure(self, case: int) -> float:
        """Return the least T from 4 on at which the margin of a case (1 or 2) is negative; infinite if none is.

        The margin is a quadratic whose leading coefficient is -a in case 1 and a in case 2.
        """
        (A_0, A_1, A_2), (g_0, g_1, g_2), b, a = self.A, self.g, self.b / self.C, self.a / self.C**2
        if case == 1:
            c_2, c_1, c_0 = -a, (g_1 - g_0) / self.C + a - b, A_1 - A_0 + b
        else:
            c_2, c_1, c_0 = a, (g_2 - g_1) / self.C - 2 * a + b, A_2 - A_1 - 2 * b
        if not np.isfinite([c_2, c_1, c_0]).all():
            return math.nan
        start = 4.0
        if c_2 * start**2 + c_1 * start + c_0 < 0:
            return start
        roots = np.roots([c_2, c_1, c_0])
        ends = sorted(root.real for root in roots if abs(root.imag) < 1e-9 and root.real >= start)
        for end in ends:
            for T in range(max(int(start), math.floor(end) - 1), math.floor(end) + 3):
                if self.margins(T)[case - 1] < 0:
                    return float(T)
        return math.inf

    def attended(self, symbols_T: Ints) -> NDArray[np.int64]:
        """Return (T,) the position, from 1, with the largest score for each query, as if all queries were no-ops."""
        at = np.arange(1, len(symbols_T) + 1)
        positions = np.empty(len(symbols_T), np.int64)
        for start in range(0, len(at), 512):  # whole rows, a block at a time
            rows = at[start : start + 512]
            scores = self.score(rows[:, None], at, np.asarray(symbols_T))
            positions[start : start + 512] = np.where(at <= rows[:, None], scores, -np.inf).argmax(-1) + 1
        return positions


def recency(C: float, lead: float = 2.0, a: float = 0.0) -> Linear:
    """Return the scores j/C + lead i/C [write], with a term a ij/C^2: for a = 0 and a lead of at least 1 they select
    the last write at every length, as lead i >= i > i - j (chapter 5.6, iv)."""
    return Linear(np.zeros(3), 1.0, np.array([0.0, lead, lead]), a, C)


# --- n-grams and floors (section 3.5.3; chapter 5.7 and 5.9) -----------------------------------------


def pairs_seen(n: int) -> int:
    """Return how many earlier pairs a predictor uses that sees n tokens, the read among them.

    A data token whose instruction it does not see is worth a whole pair.
    """
    if n < 1:
        raise SandglassError(f"a predictor of {n} tokens does not see the read")
    return n // 2


def ngram_error(n: int, length: int, p_write: float, p_read: float) -> float:
    """Return the least error of a predictor that sees n tokens, on all reads of FFL(length, p) together.

    At pair s it is p_i^m / 2 where the m pairs that it sees end behind pair 0, which is a write, and 0 elsewhere.
    """
    m, S = pairs_seen(n), length // 2
    reads = np.full(S, p_read)
    reads[0], reads[-1] = 0, 1
    error = 0.5 * (1 - p_write - p_read) ** m
    return float(reads[m + 1 :].sum() * error / reads.sum())


def ngram_guess(tokens_NxT: Ints, n: int) -> NDArray[np.int64]:
    """Return (N, T): the bit that the predictor says behind each place, from the n tokens that end there.

    The data of the last write or read in sight; else the first data token in sight, if its instruction is not; else 0.
    """
    N, T = tokens_NxT.shape
    m, edge = pairs_seen(n), n % 2 == 0
    guesses = np.zeros((N, T), np.int64)
    for t in range(0, T, 2):  # instructions
        answered = np.zeros(N, bool)
        for back in range(1, min(m, t // 2) + 1):
            instruction, bit = tokens_NxT[:, t - 2 * back], tokens_NxT[:, t - 2 * back + 1] - DATA
            evidence = (instruction != IGNORE) | (edge and back == m)
            guesses[:, t] = np.where(evidence & ~answered, bit, guesses[:, t])
            answered |= evidence
    return guesses


def generative_floor(length: int, p_write: float, p_read: float) -> float:
    """Return the least mean cross-entropy of all next tokens, nats per token: the entropy of a string over T - 1."""
    law: Sequence[float] = (p_write, p_read, 1 - p_write - p_read)
    entropy = -sum(p * math.log(p) for p in law if p)
    return (math.log(2) + (length // 2 - 2) * (entropy + (1 - p_read) * math.log(2))) / (length - 1)
