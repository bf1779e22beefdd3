"""Balanced strings of one length: their exact law, sampler, completability and errors (Li 2025, section 3.2.1).

The language is the Dyck language of `pipeline.languages.dyck` with k = 2 kinds of brackets; here all strings have D
brackets, and kinds have shares of their own. Ids, as trained models read and write them:

    0, 1  open a bracket of kind 0 (share p, the minority in training) and of kind 1
    2, 3  close one
    4, 5  begin (`BEGIN`) and end (`END`) a string; 6 and 7 are never used

A stored string is `BEGIN`, D brackets, `END`. Position i of a bracket counts from 1; `BEGIN` is position 0.

The law (Remark 3.2.1): at depth 0 open; at depth D - i + 1 close; else open with probability q. Equation (3.4) prints
the factor 1 - q for closers with depth(w_1..i) <= D - i. That is not the law of the process and sums to less than 1;
with < it is, and it does (`log_probability`). ``max_depth`` is of the authors' release: there a closer is forced too.

This module runs on the training side: it imports numpy only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.languages import dyck

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

OPEN, CLOSE = (0, 1), (2, 3)
BEGIN, END = 4, 5
VOCABULARY = 8
SIGNS = ("(", "[", ")", "]", "B", "E", "?", "?")  # kind 0 is drawn round, as in the authors' release

# What is wrong at the first place where a string cannot be completed, in the words of the authors' release.
NO_BRACKET = "START_INCORRECT"  # a sign that is neither a bracket nor the end
END_INCORRECT = "END_INCORRECT"  # an end that is early or missing
TOO_DEEP = "STACK_DEPTH_EXCEEDS_REMAINING_LENGTH"  # an open that cannot be closed in what is left
UNDERFLOW = "STACK_UNDERFLOW"  # a closer without an open
WRONG_CLOSER = "INCORRECT_CLOSING_BRACKET"  # a closer of the other kind
ERRORS = (NO_BRACKET, END_INCORRECT, TOO_DEEP, UNDERFLOW, WRONG_CLOSER)
VALID = -1  # in arrays of errors


def sample(rng: np.random.Generator, n: int, brackets: int, p: float, q: float, max_depth: int) -> NDArray[np.int8]:
    """Return (n, D + 2) strings: `BEGIN`, D = ``brackets`` brackets, `END`.

    >>> [text(row) for row in sample(np.random.default_rng(0), 2, 6, 0.2, 0.5, 3)]
    ['B[([])]E', 'B[]()[]E']
    """
    opens, kinds = rng.random((n, brackets)) < q, (rng.random((n, brackets)) >= p).astype(np.int8)
    tokens = np.full((n, brackets + 2), BEGIN, np.int8)
    tokens[:, -1] = END
    stack, depth, rows = np.zeros((n, brackets + 1), np.int8), np.zeros(n, np.int64), np.arange(n)
    for i in range(1, brackets + 1):
        forced = (depth == brackets - i + 1) | (depth >= max_depth)
        opening = (depth == 0) | (~forced & opens[:, i - 1])
        top = stack[rows, np.maximum(depth - 1, 0)]
        tokens[:, i] = np.where(opening, kinds[:, i - 1], 2 + top)
        stack[rows, depth] = np.where(opening, kinds[:, i - 1], stack[rows, depth])
        depth += np.where(opening, 1, -1)
    return tokens


def text(tokens: NDArray[np.integer]) -> str:
    """Return a string as it is shown; what is negative is padding.

    >>> text(np.array([4, 0, 2, 1, 3, 5, -1]))
    'B()[]E'
    """
    return "".join(SIGNS[token] for token in tokens.tolist() if token >= 0)


def parse(string: str) -> list[int]:
    """Return the ids of a string. Raises ValueError for a sign that is none.

    >>> parse("B([")
    [4, 0, 1]
    """
    return [SIGNS.index(sign) for sign in string]


def enumerate_strings(brackets: int) -> NDArray[np.int8]:
    """Return (N, D) every balanced string of two kinds, from the enumeration of the Dyck language's prefixes.

    >>> [text(row) for row in enumerate_strings(2)]
    ['()', '[]']
    """
    prefixes = dyck.enumerate_prefixes(brackets, 2, brackets // 2)
    balanced = prefixes[dyck.depths(prefixes)[:, -1] == 0]
    return np.array([-1, 0, 2, 1, 3], np.int8)[balanced]  # there type 1 is 1 and 2, type 2 is 3 and 4


def log_probability(
    brackets_NxD: NDArray[np.integer], p: float, q: float, max_depth: int, printed: bool = False
) -> NDArray[np.float64]:
    """Return (N,) log probability of balanced strings (equations 3.3 and 3.4); ``printed``: with <= as it is printed.

    >>> strings = enumerate_strings(4)
    >>> float(np.exp(log_probability(strings, 0.2, 0.5, 2)).sum().round(9))
    1.0
    >>> float(np.exp(log_probability(strings, 0.2, 0.5, 2, printed=True)).sum().round(9))
    0.375
    """
    opens = brackets_NxD < 2
    after = np.where(opens, 1, -1).cumsum(1)
    before = after - np.where(opens, 1, -1)
    left = brackets_NxD.shape[1] - np.arange(1, brackets_NxD.shape[1] + 1)
    free = (after <= left) if printed else (after < left) & (before < max_depth)
    kinds = np.where(brackets_NxD == 0, np.log(p), np.log1p(-p))
    factors = np.where(opens, kinds + np.where(after > 1, np.log(q), 0.0), np.where(free, np.log1p(-q), 0.0))
    return np.asarray(factors.sum(1))


def next_law(tokens: NDArray[np.integer], brackets: int, p: float, q: float, max_depth: int) -> NDArray[np.float64]:
    """Return (8,) the law of what follows a valid prefix, `BEGIN` first (Remark 3.2.1).

    >>> next_law(np.array([4, 0]), 4, 0.2, 0.5, 2).tolist()
    [0.1, 0.4, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    stack: list[int] = []
    for token in tokens[1:].tolist():
        if token < 2:
            stack.append(token)
        else:
            stack.pop()
    law, i, depth = np.zeros(VOCABULARY), len(tokens), len(stack)
    if i == brackets + 1:
        law[END] = 1.0
        return law
    close = 0.0 if not depth else 1.0 if depth == brackets - i + 1 or depth >= max_depth else 1 - q
    law[0], law[1] = (1 - close) * p, (1 - close) * (1 - p)
    if stack:
        law[2 + stack[-1]] = close
    return law


def first_errors(
    tokens_NxT: NDArray[np.integer], lengths: ArrayLike, brackets: int
) -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Return (N,) the position of the first sign after which a string cannot be completed, and the index of its kind in
    `ERRORS`; `VALID` and `VALID` for a prefix of a balanced string, or all of one.

    ``lengths`` count `BEGIN`. This is the process verifier of Definition 3.1.3 for the balanced strings of D brackets:
    it knows of no ``max_depth``.

    >>> rows = [[4, 0, 3, 5], [4, 0, 2, 5], [4, 0, 1, 0]]
    >>> [found.tolist() for found in first_errors(np.array(rows), [4, 4, 3], 2)]
    [[2, -1, 2], [4, -1, 2]]
    """
    lengths = np.asarray(lengths)
    n = len(tokens_NxT)
    at, kind = np.full(n, VALID, np.int16), np.full(n, VALID, np.int8)
    stack, depth, rows = np.zeros((n, brackets + 2), np.int8), np.zeros(n, np.int64), np.arange(n)
    for i in range(1, int(lengths.max(initial=1))):
        token = tokens_NxT[:, i]
        todo = (i < lengths) & (at == VALID)
        opening, closing = token < 2, (token == 2) | (token == 3)
        deeper = depth + 1
        wrong_end = (token == END) != (i == brackets + 1)
        found = np.select(
            [
                (token > END) | (token == BEGIN),
                wrong_end | (i > brackets + 1),
                opening & (deeper > brackets - i),
                closing & (depth == 0),
                closing & (stack[rows, np.maximum(depth - 1, 0)] != token - 2),
            ],
            range(len(ERRORS)),
            VALID,
        )
        bad = todo & (found != VALID)
        at[bad], kind[bad] = i, found[bad]
        going = todo & (found == VALID)
        push = going & opening
        stack[rows[push], depth[push]] = token[push]
        depth += np.where(push, 1, np.where(going & closing, -1, 0))
    return at, kind


def completable(tokens_NxT: NDArray[np.integer], lengths: ArrayLike, brackets: int) -> NDArray[np.bool_]:
    """Return (N,) whether each prefix is one of a balanced string (`first_errors`).

    >>> completable(np.array([[4, 1, 3], [4, 1, 2]]), [3, 3], 2).tolist()
    [True, False]
    """
    return first_errors(tokens_NxT, lengths, brackets)[0] == VALID


def is_complete(tokens_NxT: NDArray[np.integer], lengths: ArrayLike, brackets: int) -> NDArray[np.bool_]:
    """Return (N,) whether each string is `BEGIN`, D balanced brackets and `END` (Definition 3.2.2)."""
    return completable(tokens_NxT, lengths, brackets) & (np.asarray(lengths) == brackets + 2)
