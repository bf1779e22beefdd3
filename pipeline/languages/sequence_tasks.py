"""Sequence learning tasks with exact structure (DEP-D1 to D5: Chen and Zou 2024, sections 4 and 9.1, 7).

Five tasks on token sequences whose label is read after the last token:

``sc``      memorization: N distinct sequences, each with a label of its own.
``ic_qa``   reasoning: k pairs ``q r a``, then ``q_c r``: which answer is paired with q_c?
``tm``      generalization: which template (which tokens are equal) does the sequence have?
``ic_tm``   contextual generalization: k examples ``sequence r a``, then ``sequence r`` with the template of
            example c and other tokens: which answer belongs to this template?
``nested``  chains of lookups: pairs ``x r y`` in random order, then ``x r``: where does the chain from x end?

Tokens of all of them: d1 question tokens 0..d1-1, the response sign d1 (which also ends the sequences of ``sc`` and
``tm``), then d2 answer tokens d1+1..d1+d2. A template of length l is a restricted growth string: its first entry
is 0, and every other is at most one above the largest before it.

Positions fall into blocks: an example with its sign and answer, or the query with its sign. Patterns of attention
are matrices (n, n) with indices (key, query), as in eqs (6) to (8) of the paper. Capital suffixes
name the axes of arrays: N sequences, T positions, K examples of a context, L tokens of a template.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError

TASKS = ("sc", "ic_qa", "tm", "ic_tm", "nested")
FORBIDDEN = -1000.0  # score of a constrained attention where a key is not allowed (Lemma 2)
HELD_OUT = 5  # one combination of tokens in so many is held out

Ints = NDArray[np.int64]


class Sample(NamedTuple):
    """N sequences: what the model reads, what it should say, and which answers its context offers.

    ``candidates`` has no columns for tasks without a context. ``right`` is the index c of the right example there, and
    of the template for ``tm``.
    """

    ids_NxT: Ints
    label_N: Ints
    candidates_NxK: Ints
    right_N: Ints


@functools.cache
def templates(length: int) -> Ints:
    """Return all restricted growth strings, (Bell(length), length), in lexicographic order (Definition 1).

    >>> ["".join("ABCDEF"[i] for i in row) for row in templates(3)]
    ['AAA', 'AAB', 'ABA', 'ABB', 'ABC']
    """
    rows = [[0]]
    for _ in range(length - 1):
        rows = [[*row, entry] for row in rows for entry in range(max(row) + 2)]
    strings = np.array(rows)
    strings.setflags(write=False)
    return strings


def template_of(tokens_NxL: Ints) -> Ints:
    """Return the index in `templates` of the template of each row.

    >>> template_of(np.array([[7, 7, 7], [3, 1, 3]])).tolist()
    [0, 2]
    """
    same_NxLxL = tokens_NxL[:, :, None] == tokens_NxL[:, None]
    known = templates(tokens_NxL.shape[1])
    known_CxLxL = known[:, :, None] == known[:, None]
    return (same_NxLxL[:, None] == known_CxLxL).all((2, 3)).argmax(1)


def name(template: Ints) -> str:
    """Return the template in letters: ``AAB`` for 0, 0, 1."""
    return "".join(chr(ord("A") + int(entry)) for entry in template)


# Shapes


def length(task: str, k: int, l: int) -> int:
    """Return the number of tokens of a sequence, the last response sign included.

    ``l`` counts the tokens of a template or, for ``sc``, of a sequence; ``k`` the pairs or examples of a context.
    """
    return {"sc": l + 1, "tm": l + 1, "ic_qa": 3 * k + 2, "nested": 3 * k + 2, "ic_tm": k * (l + 2) + l + 1}[task]


def blocks(task: str, k: int, l: int) -> Ints:
    """Return the block of each position, (n,): examples 0..k-1, then the query, one short of an answer."""
    size = {"sc": l + 1, "tm": l + 1, "ic_tm": l + 2}.get(task, 3)
    return np.arange(length(task, k, l)) // size


def vocabulary(d1: int, d2: int) -> list[str]:
    """Return the names of the tokens: ``q0``.., ``=``, ``a0``..."""
    return [*(f"q{i}" for i in range(d1)), "=", *(f"a{i}" for i in range(d2))]


# Samplers


def classification(rng: np.random.Generator, n: int, d1: int, l: int) -> Sample:
    """Draw DEP-D1: n distinct sequences of ``l`` tokens and the sign, uniform without repetition.

    The labels are a random permutation of 0..n-1.

    Raises SandglassError if there are not n distinct sequences.
    """
    if n > d1**l:
        raise SandglassError(f"there are only {d1**l} sequences of {l} tokens over {d1}, not {n}")
    chosen: Ints = np.zeros((0, l), int)
    while len(chosen) < n:
        more = np.concatenate([chosen, rng.integers(d1, size=(n, l))])
        first = np.unique(more, axis=0, return_index=True)[1]
        chosen = more[np.sort(first)][:n]
    ids = np.concatenate([chosen, np.full((n, 1), d1)], 1)
    return Sample(ids, rng.permutation(n), np.zeros((n, 0), int), np.zeros(n, int))


def question_answering(rng: np.random.Generator, n: int, k: int, d1: int, d2: int) -> Sample:
    """Draw DEP-D2: questions and answers without replacement, the asked pair c uniform."""
    questions_NxK, answers_NxK = _distinct(rng, n, d1, k), d1 + 1 + _distinct(rng, n, d2, k)
    c_N = rng.integers(k, size=n)
    sign = np.full((n, k), d1)
    context = np.stack([questions_NxK, sign, answers_NxK], -1).reshape(n, 3 * k)
    ids = np.concatenate([context, questions_NxK[np.arange(n), c_N][:, None], sign[:, :1]], 1)
    return Sample(ids, answers_NxK[np.arange(n), c_N], answers_NxK, c_N)


def template_matching(
    rng: np.random.Generator,
    n: int,
    l: int,
    tokens: tuple[int, int],
    d1: int,
    held_out: bool | None,
    classes: tuple[int, int] | None = None,
) -> Sample:
    """Draw DEP-D3: uniform templates, then an injective substitution of tokens.

    The tokens are ``tokens[0]`` <= t < ``tokens[1]``.

    ``held_out`` allows only combinations that `is_held_out` (True), only others (False), or all (None);
    ``classes`` allows only templates in this range.

    Raises SandglassError if a template has more distinct tokens than there are, or no combination that is wanted.
    """
    known = templates(l)
    label_N = rng.integers(*(classes or (0, len(known))), size=n)
    fresh = functools.partial(_substitutions, rng, tokens=tokens, l=l)
    rows = np.take_along_axis(fresh(n), known[label_N], 1)
    if held_out is not None:
        for _ in range(1000):
            wrong = np.flatnonzero(is_held_out(rows) != held_out)
            if not len(wrong):
                break
            rows[wrong] = np.take_along_axis(fresh(len(wrong)), known[label_N[wrong]], 1)
        else:
            raise SandglassError(f"too few of the combinations of tokens {tokens} are to be had at l={l}")
    ids = np.concatenate([rows, np.full((n, 1), d1)], 1)
    return Sample(ids, label_N, np.zeros((n, 0), int), label_N)


def is_held_out(tokens_NxL: Ints) -> NDArray[np.bool_]:
    """Return whether each combination of tokens is kept from training, as about one in five are.

    A hash of the combination alone decides it (multiplicative, Knuth's), so no token and no position does.
    """
    code = np.zeros(len(tokens_NxL), np.uint64)
    for tokens_N in tokens_NxL.T.astype(np.uint64):
        code = (code ^ (tokens_N + np.uint64(1))) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    return np.asarray(code % np.uint64(HELD_OUT) == 0)


def contextual(rng: np.random.Generator, n: int, k: int, l: int, d1: int, d2: int) -> Sample:
    """Draw DEP-D4: k examples of distinct templates with distinct answers, then a query.

    The query has the template of example c, and its tokens differ from that example's in at least one place.

    Raises SandglassError if there are not k templates, or too few tokens.
    """
    known = templates(l)
    template_NxK, answer_NxK = _distinct(rng, n, len(known), k), d1 + 1 + _distinct(rng, n, d2, k)
    c_N = rng.integers(k, size=n)
    sign = np.full((n, 1), d1)
    fresh = functools.partial(_substitutions, rng, tokens=(0, d1), l=l)
    examples = [np.take_along_axis(fresh(n), known[template_NxK[:, i]], 1) for i in range(k)]
    patterns = known[template_NxK[np.arange(n), c_N]]
    query, example = np.take_along_axis(fresh(n), patterns, 1), np.stack(examples, 1)[np.arange(n), c_N]
    while len(same := np.flatnonzero((query == example).all(1))):
        query[same] = np.take_along_axis(fresh(len(same)), patterns[same], 1)
    parts = [part for i in range(k) for part in (examples[i], sign, answer_NxK[:, i : i + 1])]
    return Sample(np.concatenate([*parts, query, sign], 1), answer_NxK[np.arange(n), c_N], answer_NxK, c_N)


def nested(rng: np.random.Generator, n: int, hops: int, links: int, chains: int, d1: int) -> Sample:
    """Draw DEP-D5: ``chains`` disjoint chains of ``links`` pairs each, all pairs in random order.

    The query asks for the end of one chain from the token that is ``hops`` pairs before it.

    With one chain in its printed order ("a→b b→c c→d a→") the end is always the last answer, and the only token that
    occurs once: no lookup is needed. Two chains in random order leave no such way. Tokens play both parts, so
    there are no answer tokens. ``right`` is the position of the pair that names the end.

    Raises SandglassError if there are too few tokens, or fewer links than hops.
    """
    if hops > links:
        raise SandglassError(f"chains of {links} pairs have no {hops} hops")
    token_NxCxL = _distinct(rng, n, d1, chains * (links + 1)).reshape(n, chains, links + 1)
    pairs_NxPx2 = np.stack([token_NxCxL[..., :-1], token_NxCxL[..., 1:]], -1).reshape(n, chains * links, 2)
    order_NxP = rng.permuted(np.tile(np.arange(chains * links), (n, 1)), axis=1)
    shuffled = np.take_along_axis(pairs_NxPx2, order_NxP[..., None], 1)
    which_N = rng.integers(chains, size=n)
    row = np.arange(n)
    sign = np.full((n, chains * links), d1)
    context = np.stack([shuffled[..., 0], sign, shuffled[..., 1]], -1).reshape(n, -1)
    start_N = token_NxCxL[row, which_N, links - hops]
    ids = np.concatenate([context, start_N[:, None], sign[:, :1]], 1)
    right_N = (order_NxP == (which_N * links + links - 1)[:, None]).argmax(1)
    return Sample(ids, token_NxCxL[row, which_N, links], token_NxCxL[..., links], right_N)


def _substitutions(rng: np.random.Generator, n: int, tokens: tuple[int, int], l: int) -> Ints:
    """Draw (n, l) distinct tokens of the range ``tokens``, uniform.

    Entry i stands for the i-th letter of a template.
    """
    return tokens[0] + _distinct(rng, n, tokens[1] - tokens[0], l)


def _distinct(rng: np.random.Generator, n: int, of: int, count: int) -> Ints:
    """Draw (n, count) rows of distinct numbers below ``of``, uniform over ordered choices.

    Raises SandglassError if there are not as many.
    """
    if count > of:
        raise SandglassError(f"expected at least {count} different tokens or templates, there are {of}")
    numbers = rng.integers(of, size=(n, 1))
    for i in range(1, count):
        # The i-th of those that are left: step over the chosen ones, smallest first.
        more = rng.integers(of - i, size=n)
        for taken in np.sort(numbers, 1).T:
            more += more >= taken
        numbers = np.concatenate([numbers, more[:, None]], 1)
    return numbers


# Attention of the constructions, (key, query): for initial weights and for comparison with trained maps


def copying(task: str, k: int, l: int) -> NDArray[np.float64]:
    """Return J - I within every block, (n, n).

    Each position reads the others of its block (Theorem 3, layer 1).
    """
    block = blocks(task, k, l)
    return (block[:, None] == block) * 1.0 - np.eye(len(block))


def parsing(task: str, k: int, l: int, d1: int, d2: int, width: int) -> NDArray[np.float64]:
    """Return W (d', d') of the first layer of Theorems 5 and 6.

    Question tokens attend to their equals, within their block only.
    """
    d, n = inputs(task, d1, d2), length(task, k, l)
    return _placed(np.eye(d1), (0, d1), width) + _placed(_walls(task, k, l), (d, d + n), width)


def start(kind: str, task: str, k: int, l: int, d1: int, d2: int, width: int) -> NDArray[np.float64]:
    """Return W (d', d') of a layer that starts from a pattern.

    The pattern is ``parsing`` the tokens (Theorems 5 and 6), or ``copying`` between positions (instructive
    attention, Lemma 1).
    """
    if kind == "parsing":
        return parsing(task, k, l, d1, d2, width)
    return reading(copying(task, k, l), inputs(task, d1, d2), width)


def reading(pattern: NDArray[np.float64], at: int, width: int) -> NDArray[np.float64]:
    """Return W (d', d') of instructive attention (Lemma 1).

    ``pattern`` is on the position rows, which start at row ``at``.
    """
    return _placed(pattern, (at, at + len(pattern)), width)


def inputs(task: str, d1: int, d2: int) -> int:
    """Return d, the number of tokens that a model of the task reads."""
    return d1 + 1 + (d2 if task in ("ic_qa", "ic_tm") else 0)


def _walls(task: str, k: int, l: int) -> NDArray[np.float64]:
    block = blocks(task, k, l)
    return np.where(block[:, None] == block, 0.0, FORBIDDEN)


def _placed(pattern: NDArray[np.float64], rows: tuple[int, int], width: int) -> NDArray[np.float64]:
    matrix = np.zeros((width, width))
    matrix[slice(*rows), slice(*rows)] = pattern
    return matrix
