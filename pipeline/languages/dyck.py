"""Bounded Dyck languages: exact laws, vectorised exact samplers, structure, inputs of models.

Source: Wen et al. 2023, "Transformers are uninterpretable with myopic methods", section 2 (language and
distribution) and section 4 (embeddings 15-17, contrastive prefixes 18).

Conventions, used everywhere in this study:

* tokens are 1..2k: type t opens with 2t-1 and closes with 2t; 0 is the start token (never a target), -1 padding;
* the *depth* of a token is the number of unmatched opens after it: 1..D for opens, 0..D-1 for closers;
* the *pair depth* of a token is the depth for opens and depth + 1 for closers, so a matched pair shares it;
* arrays of sequences are (n, N), one row per sequence, padded with -1 at the end.

>>> tokens = parse("[[]]()")
>>> tokens.tolist(), depths(tokens).tolist(), pair_depths(tokens).tolist()
([[1, 1, 2, 2, 3, 4]], [[1, 2, 1, 0, 1, 0]], [[1, 2, 2, 1, 1, 1]])
>>> stack_top(tokens).tolist()          # type on top of the stack before each token, 0 if empty
[[0, 1, 1, 1, 0, 2]]
>>> last_unmatched_open(tokens).tolist()  # position, after each token, -1 if none
[[0, 1, 0, -1, 4, -1]]
>>> matching(tokens).tolist()
[[3, 2, 1, 0, 5, 4]]
>>> symbols(tokens, max_depth=4).tolist()  # (token, pair depth) as one index, 0 is the start token
[[1, 2, 6, 5, 9, 13]]
>>> p = np.exp(log_probability(tokens, k=2, max_depth=4, q=0.5))  # 1/2 * 1/4 * 1/2 * 1/2 * 1/2 * 1/2
>>> round(float(p[0]), 9)
0.0078125

This module runs on the training side: it imports numpy only.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

START = 0
PADDING = -1

_BRACKETS = "[](){}<>"


# Tokens


def padded(lengths: ArrayLike, tokens: ArrayLike) -> NDArray[np.int8]:
    """Return rows (n, longest) of sequences whose tokens come one after the other, padded with -1.

    >>> padded([2, 1], [1, 2, 3]).tolist()
    [[1, 2], [3, -1]]
    """
    lengths = np.asarray(lengths)
    rows = np.full((len(lengths), int(lengths.max())), PADDING, dtype=np.int8)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = tokens
    return rows


def parse(*strings: str) -> NDArray[np.int8]:
    """Return token rows (n, N), padded, of strings over ``[](){}<>`` (types 1 to 4).

    >>> parse("[(", "[]").tolist()
    [[1, 3], [1, 2]]
    """
    rows = np.full((len(strings), max(map(len, strings))), PADDING, np.int8)
    for row, string in zip(rows, strings, strict=True):
        row[: len(string)] = [_BRACKETS.index(char) + 1 for char in string]
    return rows


def vocabulary(k: int) -> list[str]:
    """Return what each token 0..2k is shown as.

    >>> vocabulary(2)
    ['start', '[', ']', '(', ')']
    """
    names = [_BRACKETS[i] if i < len(_BRACKETS) else f"{('open', 'close')[i % 2]}{i // 2 + 1}" for i in range(2 * k)]
    return ["start", *names]


def is_open(tokens: NDArray) -> NDArray[np.bool_]:
    """Return whether each token opens a bracket (start and padding do not)."""
    return (tokens > 0) & (tokens % 2 == 1)


def is_close(tokens: NDArray) -> NDArray[np.bool_]:
    """Return whether each token closes a bracket."""
    return (tokens > 0) & (tokens % 2 == 0)


def bracket_type(tokens: NDArray) -> NDArray:
    """Return the type 1..k of tokens 1..2k (0 for the start token and for padding)."""
    return (tokens + 1) // 2


# Structure: depths and matching


def depths(tokens: NDArray) -> NDArray[np.int8]:
    """Return the depth of every token of (n, N) rows that hold tokens 1..2k; -1 at padding."""
    depth = np.cumsum(_steps(tokens), axis=1, dtype=np.int16)
    return np.where(tokens > 0, depth, PADDING).astype(np.int8)


def pair_depths(tokens: NDArray) -> NDArray[np.int8]:
    """Return, for each token, the depth shared by the two tokens of a matched pair, 1..D; 0 at padding."""
    return np.where(tokens > 0, depths(tokens) + is_close(tokens), 0).astype(np.int8)


def stack_top(tokens: NDArray) -> NDArray[np.int8]:
    """Return the type on top of the stack *before* each token, 0 where the stack is empty or the token is padding."""
    before = last_unmatched_open(tokens)
    before = np.concatenate([np.full((len(before), 1), -1, before.dtype), before[:, :-1]], axis=1)
    top = bracket_type(np.take_along_axis(tokens, np.maximum(before, 0).astype(np.intp), axis=1))
    return np.where((before >= 0) & (tokens > 0), top, 0).astype(np.int8)


def last_unmatched_open(tokens: NDArray) -> NDArray[np.int16]:
    """Return the position of the last unmatched open bracket *after* each token, -1 where there is none (and
    at padding)."""
    n, length = tokens.shape
    depth = np.maximum(depths(tokens), 0).astype(np.intp)
    opens = is_open(tokens)
    position = np.full((int(depth.max(initial=0)) + 1) * n, -1, np.int16)  # by depth, then row; depth 0 stays -1
    rows = np.arange(n)
    out = np.empty((length, n), np.int16)
    for i in range(length):
        slot = depth[:, i] * n + rows
        position[slot[opens[:, i]]] = i
        out[i] = position[slot]
    return np.where(tokens > 0, out.T, -1).astype(np.int16)


def matching(tokens: NDArray) -> NDArray[np.int16]:
    """Return the position of the partner of each token, -1 where it is unmatched (and at padding)."""
    n = len(tokens)
    last = last_unmatched_open(tokens)
    before = np.concatenate([np.full((n, 1), -1, np.int16), last[:, :-1]], axis=1)
    partner = np.where(is_close(tokens), before, -1).astype(np.int16)
    row, close = np.nonzero(partner >= 0)
    partner[row, partner[row, close]] = close
    return partner


def is_valid(tokens: NDArray, k: int, max_depth: int) -> NDArray[np.bool_]:
    """Return whether each row is a prefix of Dyck_{k,D} (eqs 1-2), followed by nothing but padding, (n,) bool."""
    depth = np.cumsum(_steps(tokens), axis=1, dtype=np.int16)
    in_range = ((tokens == PADDING) | ((tokens >= 1) & (tokens <= 2 * k))).all(1)
    in_range &= ~((tokens[:, 1:] > 0) & (tokens[:, :-1] <= 0)).any(1)
    bounded = ((depth >= 0) & (depth <= max_depth)).all(1)
    ok = in_range & bounded
    ok[ok] = ~(is_close(tokens[ok]) & (stack_top(tokens[ok]) != bracket_type(tokens[ok]))).any(1)
    return ok


def _steps(tokens: NDArray) -> NDArray[np.int8]:
    return is_open(tokens).astype(np.int8) - is_close(tokens).astype(np.int8)


# Exact laws


def next_token_law(depth: ArrayLike, top: ArrayLike, k: int, max_depth: int, q: float) -> NDArray[np.float64]:
    """Return the probabilities (..., 2k) of the tokens 1..2k after a prefix of this ``depth`` whose stack top
    has type ``top``.

    Depth 0: each open 1/k. Between: each open q/k, the matching closer 1-q. Depth D: the matching closer.
    Source: section 2, the process below eq. (3).

    >>> next_token_law([0, 2, 4], [0, 1, 2], k=2, max_depth=4, q=0.5).tolist()
    [[0.5, 0.0, 0.5, 0.0], [0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """
    depth, top = np.asarray(depth), np.asarray(top)
    p_open = _open_probability(max_depth, q)[depth]
    law = np.zeros((*depth.shape, 2 * k))
    law[..., 0::2] = p_open[..., None] / k
    law[..., 1::2] = (1 - p_open)[..., None] * (top[..., None] == np.arange(1, k + 1))
    return law


def log_probability(tokens: NDArray, k: int, max_depth: int, q: float) -> NDArray[np.float64]:
    """Return the log-probabilities, (n,), of the rows as prefixes of their own length; -inf for strings that
    are not prefixes.

    (1/k)^{opens at depth 1} (q/k)^{opens at depth > 1} (1-q)^{closers to depth < D-1}: the law of the chain in
    the text. Wen et al. eq. (3) omits the factor (1/k); their eq. is not normalised (see `literal_log_weight`).
    """
    shallow, deep, free = _counts(tokens, max_depth)
    log_p = -shallow * np.log(k) + deep * np.log(q / k) + free * np.log1p(-q)
    return np.where(is_valid(tokens, k, max_depth), log_p, -np.inf)


def literal_log_weight(tokens: NDArray, k: int, max_depth: int, q: float) -> NDArray[np.float64]:
    """Return the log of Wen et al. eq. (3) as printed, (n,), without 1/k per open at depth 1; -inf off the
    language."""
    _, deep, free = _counts(tokens, max_depth)
    return np.where(is_valid(tokens, k, max_depth), deep * np.log(q / k) + free * np.log1p(-q), -np.inf)


def literal_total_mass(length: int, k: int, max_depth: int, q: float) -> float:
    """Return the sum of Wen et al. eq. (3) as printed over all prefixes of this length, by dynamic
    programming on the depth.

    The law of the chain sums to 1; without its factor (1/k), every open at depth 1 weighs k times as much.
    """
    weight = np.zeros(max_depth + 1)
    weight[0] = 1
    p_open = _open_probability(max_depth, q)
    for _ in range(length):
        up, down = weight * p_open, weight * (1 - p_open)
        up[0] *= k
        weight = np.concatenate([[0], up[:-1]]) + np.concatenate([down[1:], [0]])
    return float(weight.sum())


def depth_law(length: int, max_depth: int, q: float) -> NDArray[np.float64]:
    """Return the (D+1,) probabilities of the depth after ``length`` tokens of the chain.

    >>> depth_law(2, max_depth=4, q=0.5).tolist()
    [0.5, 0.0, 0.5, 0.0, 0.0]
    """
    p = np.zeros(max_depth + 1)
    p[0] = 1
    for _ in range(length):
        p = _step_depth(p, max_depth, q)
    return p


def complete_length_law(max_depth: int, q: float, p_stop: float, max_length: int) -> tuple[NDArray[np.float64], float]:
    """Return the exact law of the length of `sample_complete`: probabilities (max_length + 1,) of lengths
    0.., and the acceptance.

    The probabilities are those after rejection (they sum to 1); acceptance = P(the chain stops by ``max_length``).

    >>> law, acceptance = complete_length_law(4, 0.5, 0.5, 26)
    >>> law[[2, 4, 6, 26]].round(4).tolist(), round(acceptance, 4)
    ([0.3111, 0.1555, 0.0972, 0.0258], 0.8037)
    """
    p = np.zeros(max_depth + 1)
    p[0] = 1
    stopped = np.zeros(max_length + 1)
    for i in range(1, max_length + 1):
        p = _step_depth(p, max_depth, q)
        stopped[i] = p_stop * p[0]
        p[0] *= 1 - p_stop
    return stopped / stopped.sum(), float(stopped.sum())


def enumerate_prefixes(length: int, k: int, max_depth: int) -> NDArray[np.int8]:
    """Return all prefixes (M, length) of Dyck_{k,D} of this length, in lexicographic order.

    >>> [len(enumerate_prefixes(n, k=2, max_depth=4)) for n in (4, 6, 8)]
    [48, 312, 1920]
    """
    rows = np.zeros((1, 0), np.int8)
    stacks = np.zeros((1, max_depth + 1), np.int8)  # types by depth; slot 0 stays 0
    depth = np.zeros(1, np.intp)
    for _ in range(length):
        top = stacks[np.arange(len(rows)), depth]
        law = next_token_law(depth, top, k, max_depth, 0.5)
        parent, token = np.nonzero(law)
        token = (token + 1).astype(np.int8)
        rows = np.concatenate([rows[parent], token[:, None]], axis=1)
        depth = depth[parent] + np.where(is_open(token), 1, -1)
        stacks = stacks[parent]
        opened = np.flatnonzero(is_open(token))
        stacks[opened, depth[opened]] = bracket_type(token[opened])
    return rows


def _counts(tokens: NDArray, max_depth: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return, per row, the numbers of opens at depth 1, of opens at depth > 1 and of closers that landed at
    depth < D-1."""
    depth, opens = depths(tokens), is_open(tokens)
    return (
        (opens & (depth == 1)).sum(1),
        (opens & (depth > 1)).sum(1),
        (is_close(tokens) & (depth < max_depth - 1)).sum(1),
    )


def _open_probability(max_depth: int, q: float) -> NDArray[np.float64]:
    """Return the probability that the chain opens, by depth, (D+1,)."""
    p = np.full(max_depth + 1, q)
    p[0], p[max_depth] = 1, 0
    return p


def _step_depth(p: NDArray[np.float64], max_depth: int, q: float) -> NDArray[np.float64]:
    p_open = _open_probability(max_depth, q)
    out = np.zeros_like(p)
    out[1:] += (p * p_open)[:-1]
    out[:-1] += (p * (1 - p_open))[1:]
    return out


# Samplers

_BLOCK = 4_096  # rows per pass: the state of a pass stays in the processor's cache


def sample_prefixes(
    rng: np.random.Generator, n: int, lengths: int | NDArray[np.integer], k: int, max_depth: int, q: float
) -> NDArray[np.int8]:
    """Return n prefixes (n, max(lengths)), independent, from the exact law of section 2; padded with -1.

    ``lengths`` is one length or one per row. One loop runs over positions, all rows at once.
    """
    length = np.broadcast_to(np.asarray(lengths), (n,))
    longest = int(length.max(initial=0))
    tokens, _ = _walk(rng, n, longest, k, max_depth, q)
    tokens[np.arange(longest) >= length[:, None]] = PADDING
    return tokens


def sample_complete(
    rng: np.random.Generator, n: int, k: int, max_depth: int, q: float, p_stop: float, max_length: int
) -> NDArray[np.int8]:
    """Return n balanced strings (n, max_length), independent, padded with -1.

    The chain is that of `sample_prefixes`; whenever the depth returns to 0 it stops with probability
    ``p_stop``. Strings longer than ``max_length`` are rejected and drawn again (law of the lengths:
    `complete_length_law`). Section 4.1 and D.1 ask for strings below length 28 and give no rule to end them.
    """
    _, acceptance = complete_length_law(max_depth, q, p_stop, max_length)
    kept: list[NDArray[np.int8]] = []
    missing = n
    while missing:
        tokens, length = _walk(rng, int(missing / acceptance * 1.05) + 16, max_length, k, max_depth, q, p_stop)
        tokens = tokens[length > 0][:missing]  # in order of drawing: which ones are kept does not depend on them
        length = length[length > 0][:missing]
        tokens[np.arange(max_length) >= length[:, None]] = PADDING
        kept.append(tokens)
        missing -= len(tokens)
    return np.concatenate(kept) if kept else np.empty((0, max_length), np.int8)


def nested_probe(k: int, max_depth: int) -> NDArray[np.int8]:
    """Return the probe of section 4.1 (footnote 10), (1, 2kD): for each type, D brackets opened and closed again.

    >>> nested_probe(2, 4).tolist() == parse("[[[[]]]](((())))").tolist()
    True
    """
    types = np.arange(1, k + 1, dtype=np.int8)[:, None]
    opens, closes = np.repeat(2 * types - 1, max_depth, 1), np.repeat(2 * types, max_depth, 1)
    return np.concatenate([opens, closes], 1).reshape(1, -1)


def _walk(
    rng: np.random.Generator, n: int, steps: int, k: int, max_depth: int, q: float, p_stop: float = 0.0
) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    """Return (n, steps) tokens of the chain, and for each row the length at which it stopped (0: it did not)."""
    tokens = np.empty((n, steps), np.int8)
    length = np.zeros(n, np.int16)
    for first in range(0, n, _BLOCK):
        rows = slice(first, min(first + _BLOCK, n))
        tokens[rows], length[rows] = _walk_block(rng, rows.stop - first, steps, k, max_depth, q, p_stop)
    return tokens, length


def _walk_block(
    rng: np.random.Generator, n: int, steps: int, k: int, max_depth: int, q: float, p_stop: float
) -> tuple[NDArray[np.int8], NDArray[np.int16]]:
    p_open = _open_probability(max_depth, q)
    stack = np.zeros((max_depth + 2) * n, np.int8)  # closing tokens, by depth, then row
    rows = np.arange(n)
    depth = np.zeros(n, np.intp)
    at = rows.copy()  # depth * n + row: where the row's stack top is
    out = np.empty((steps, n), np.int8)
    length = np.zeros(n, np.int16)
    for i in range(steps):
        if p_stop and i:
            length[(depth == 0) & (length == 0) & (rng.random(n) < p_stop)] = i
        opens = rng.random(n) < np.take(p_open, depth)
        close = np.take(stack, at)
        fresh = 2 * rng.integers(1, k + 1, n, dtype=np.int8)
        # An open puts its closer one slot above the top. Rows that close write there too (cheaper than a
        # mask): nothing reads that slot before the next open at its depth has overwritten it.
        at += n
        stack[at] = fresh
        out[i] = np.where(opens, fresh - 1, close)
        depth += np.where(opens, 1, -1)
        at = depth * n + rows
    if p_stop:
        length[(depth == 0) & (length == 0) & (rng.random(n) < p_stop)] = steps
    return out.T, length


# Inputs of models


def symbol_count(k: int, max_depth: int) -> int:
    """Return the number of symbols: the start token and every (token, pair depth)."""
    return 2 * k * max_depth + 1


def symbols(tokens: NDArray, max_depth: int) -> NDArray[np.int16]:
    """Return the index 1 + (t-1)D + (delta-1) of token t at pair depth delta, (n, N); -1 at padding. 0 is the
    start token.

    The index is by the pair depth, not the depth as Wen et al. print in eq. (15): with the depth, a closer to
    depth 0 and the open of the previous token at depth D would share an index.
    """
    index = 1 + (tokens.astype(np.int16) - 1) * max_depth + (pair_depths(tokens) - 1)
    return np.where(tokens > 0, index, PADDING).astype(np.int16)


def with_start(ids: NDArray) -> NDArray:
    """Return rows of tokens or symbols with the start token in front, (n, N + 1)."""
    return np.concatenate([np.full((len(ids), 1), START, ids.dtype), ids], axis=1)


def embedding_table(kind: str, k: int, max_depth: int, width: int) -> NDArray[np.float32]:
    """Return the frozen input vectors (rows), zero-padded to ``width``; row 0 is the start token's own coordinate.

    * ``token``: one-hot over the 2k + 1 tokens, (2k+1, width);
    * ``pair`` (eq. 15): one-hot over (token, pair depth), (2kD+1, width);
    * ``sum`` (eq. 16): one-hot token + one-hot pair depth, (2kD+1, width);
    * ``angle`` (eq. 17): one-hot token + (cos theta, sin theta), theta = arctan(d / (D+2-d)), d the depth, 0..D.

    Raises ValueError for an unknown kind or a width that is too small.

    >>> embedding_table("sum", k=1, max_depth=2, width=5).tolist()  # start, [ at 1, 2, ] of pair depth 1, 2
    ... # doctest: +NORMALIZE_WHITESPACE
    [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0],
     [0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0]]
    """
    token, delta = (part.ravel() for part in np.indices((2 * k, max_depth)))  # of symbols 1.., both from 0
    onehot = np.eye(2 * k)[token]
    if kind == "token":
        body = np.eye(2 * k)
    elif kind == "pair":
        body = np.eye(2 * k * max_depth)
    elif kind == "sum":
        body = np.concatenate([onehot, np.eye(max_depth)[delta]], 1)
    elif kind == "angle":
        depth = delta + 1 - token % 2  # odd indices from 0 are closers, one level lower
        theta = np.arctan(depth / (max_depth + 2 - depth))
        body = np.concatenate([onehot, np.cos(theta)[:, None], np.sin(theta)[:, None]], 1)
    else:
        raise ValueError(f"unknown embedding {kind!r}; known: token, pair, sum, angle")
    if body.shape[1] + 1 > width:
        raise ValueError(f"embedding {kind!r} of k={k}, D={max_depth} needs width {body.shape[1] + 1}, got {width}")
    table = np.zeros((len(body) + 1, width), np.float32)
    table[0, 0] = 1
    table[1:, 1 : 1 + body.shape[1]] = body
    return table


def prefix_bank(k: int, max_depth: int) -> tuple[NDArray[np.int8], NDArray[np.int16], NDArray[np.float64]]:
    """Return every contrastive prefix p_r of section 4.2 (eq. 18): r nested pairs, r ~ U{1..D}, types uniform on [k].

    Returns tokens (M, 2D) padded with -1, lengths (M,) and probabilities (M,), M = k + k^2 + ... + k^D.

    >>> tokens, lengths, probabilities = prefix_bank(k=2, max_depth=2)
    >>> tokens[-1].tolist(), int(lengths[-1]), float(probabilities[-1])  # (())
    ([3, 3, 4, 4], 4, 0.125)
    """
    rows, lengths, probabilities = [], [], []
    for r in range(1, max_depth + 1):
        for types in itertools.product(range(1, k + 1), repeat=r):
            row = [2 * t - 1 for t in types] + [2 * t for t in reversed(types)]
            rows.append(row + [PADDING] * (2 * (max_depth - r)))
            lengths.append(2 * r)
            probabilities.append(1 / (max_depth * k**r))
    return np.array(rows, np.int8), np.array(lengths, np.int16), np.array(probabilities)


def release_bank(k: int, max_depth: int) -> tuple[NDArray[np.int8], NDArray[np.int16], NDArray[np.float64]]:
    """Return contrastive prefixes as in the authors' release: `nested_probe` with one random pair of brackets
    inserted.

    The release states neither bound nor law; here every place where the pair stays within depth D, and every
    type, is equally likely. Returns tokens (M, 2kD + 2), lengths (M,) and probabilities (M,).

    >>> tokens, lengths, probabilities = release_bank(k=1, max_depth=2)
    >>> tokens.tolist()  # []<[[]]>, [<[]>[]], [[]<[]>] and [[]]<[]>
    [[1, 2, 1, 1, 2, 2], [1, 1, 2, 1, 2, 2], [1, 1, 2, 1, 2, 2], [1, 1, 2, 2, 1, 2]]
    """
    probe = nested_probe(k, max_depth)
    before = np.concatenate([[0], depths(probe)[0]])
    rows = [
        np.insert(probe[0], place, [2 * t - 1, 2 * t])
        for place in np.flatnonzero(before < max_depth)
        for t in range(1, k + 1)
    ]
    count = len(rows)
    return np.array(rows, np.int8), np.full(count, len(rows[0]), np.int16), np.full(count, 1 / count)
