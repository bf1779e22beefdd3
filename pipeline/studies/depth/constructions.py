"""What the theory checks share: attention-only models that solve the four tasks, built as weights, random ones, and
the linear program that looks for a classifier.

Source: Chen and Zou 2024, Theorems 1, 3, 5, 6 with sections 10, 12 to 15, and section 7, repaired where the printed
form fails: each function says where. Everything here runs through `network.forward`, like a trained model, in float64.
Rows of H are numbered from 0: tokens, then positions, then spare ones; patterns have indices (key, query).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.optimize import linprog

from pipeline.errors import SandglassError
from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as model

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

CHUNK = 256  # inputs at a time
LARGEST = 1e6  # weight of a classifier that is looked for, for columns of at most 1


@dataclass(frozen=True)
class Model:
    """R models of one shape in float64; ``weights`` by name, each with a leading replica axis."""

    spec: model.Spec
    weights: dict[str, NDArray[np.float64]]

    def run(
        self, ids: NDArray, record: Collection[str] = ()
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return the outputs (R, N, C) for sequences (N, T), and the recorded activations (R, N, ...)."""
        params = {name: torch.from_numpy(value) for name, value in self.weights.items()}
        table = torch.from_numpy(model.embedding(self.spec)).double()
        tensor = torch.from_numpy(np.asarray(ids, np.int64))[None]
        done = [model.forward(self.spec, params, table, part, record) for part in tensor.split(CHUNK, dim=1)]
        recorded = {name: torch.cat([part[1][name] for part in done], 1).numpy() for name in record}
        return torch.cat([part[0] for part in done], 1).numpy(), recorded


def accuracy(outputs: NDArray[np.float64], labels: NDArray) -> float:
    """Return the share of (R, N, C) outputs in which the label's is larger than every other.

    A tie is wrong. The share is NaN if one output is NaN.
    """
    margins = margin(outputs, labels)
    return float(np.where(np.isnan(margins), np.nan, margins > 0).mean())


def margin(outputs: NDArray[np.float64], labels: NDArray) -> NDArray[np.float64]:
    """Return the label's output less the largest other one, (R, N)."""
    right = np.broadcast_to(labels[None, :, None], (*outputs.shape[:2], 1))
    others = outputs.copy()
    np.put_along_axis(others, right, -np.inf, -1)
    return np.take_along_axis(outputs, right, -1)[..., 0] - others.max(-1)


def random_models(
    rng: np.random.Generator, count: int, heads: int, inputs: int, length: int, attention: str = "relu"
) -> Model:
    """Draw ``count`` models of one layer with every weight N(0, 1/d'), d' = d + n.

    They have as many outputs as tokens.
    """
    width = inputs + length
    spec = model.Spec(1, (heads,), attention, width, length, inputs, inputs, "random")
    drawn = [model.initial(spec, rng) for _ in range(count)]
    return Model(spec, {name: np.stack([each[name] for each in drawn]) for name in drawn[0]})


def last_columns(models: Model, ids: NDArray) -> NDArray[np.float64]:
    """Return the last columns, (R, N, d'), which the classifier reads."""
    name = f"blocks.{models.spec.layers - 1}.out"
    return models.run(ids, [name])[1][name][:, :, -1]


# Classifiers of last columns


def separator(columns: NDArray[np.float64], sides: NDArray) -> NDArray[np.float64] | None:
    """Return weights w (d',) with side * (w . column) >= 1 for all (N, d') columns; None if there are none.

    |w| is bounded.

    Raises SandglassError if HiGHS finds neither weights nor that there are none.
    """
    scaled = columns / np.abs(columns).max()
    solution = linprog(
        np.zeros(scaled.shape[1]),
        A_ub=-sides[:, None] * scaled,
        b_ub=-np.ones(len(scaled)),
        bounds=(-LARGEST, LARGEST),
        method="highs",
    )
    if solution.status not in (0, 2):
        raise SandglassError(f"HiGHS ended without an answer: {solution.message}")
    return solution.x if solution.status == 0 else None


def certificate(columns: NDArray[np.float64], sides: NDArray) -> NDArray[np.float64] | None:
    """Return shares y >= 0, (N,), that sum to 1 with sum of y side column = 0 (Farkas); None if none exist.

    With them the inequalities that `separator` wants sum up to 0 >= 1.
    """
    scaled = (sides[:, None] * columns / np.abs(columns).max()).T
    A = np.vstack([scaled, np.ones(len(columns))])
    b = np.append(np.zeros(len(scaled)), 1.0)
    solution = linprog(np.zeros(len(columns)), A_eq=A, b_eq=b, bounds=(0, None), method="highs")
    return solution.x if solution.status == 0 else None


# The gadgets (section 10)


def positions(spec: model.Spec, pattern: NDArray) -> NDArray[np.float64]:
    """Return W with ``pattern`` on the position rows and 0 elsewhere: instructive attention (Lemma 1)."""
    return tasks.reading(pattern, spec.inputs, spec.width)


def identity(width: int, rows: slice, scale: float = 1.0) -> NDArray[np.float64]:
    """Return ``scale`` times the identity on some rows, and 0 elsewhere."""
    matrix = np.zeros((width, width))
    matrix[rows, rows] = scale * np.eye(rows.stop - rows.start)
    return matrix


def move(width: int, source: slice, target: slice, scale: float = 1.0) -> NDArray[np.float64]:
    """Return a value matrix that writes ``scale`` times the ``source`` rows into the ``target`` rows."""
    matrix = np.zeros((width, width))
    matrix[target, source] = scale * np.eye(source.stop - source.start)
    return matrix


def _model(spec: model.Spec, layers: Sequence[Sequence[tuple[NDArray, NDArray]]], head: NDArray) -> Model:
    """Return one model from (W, V) of each head of each layer.

    V is multiplied by the number of heads, which layers divide by.
    """
    weights = {}
    for layer, heads in enumerate(layers):
        weights[f"blocks.{layer}.W"] = np.stack([W for W, _ in heads])[None]
        weights[f"blocks.{layer}.V"] = len(heads) * np.stack([V for _, V in heads])[None]
    return Model(spec, weights | {"head.W": np.asarray(head, float)[None]})


def _spec(heads: Sequence[int], width: int, length: int, inputs: int, outputs: int) -> model.Spec:
    return model.Spec(len(heads), tuple(heads), "relu", width, length, inputs, outputs, "task")


def _answers(width: int, inputs: int, answers: slice) -> NDArray[np.float64]:
    """Return the classifier (d', d) that gives every answer token its own row, and 0 to all others."""
    return np.eye(width, inputs) * np.isin(np.arange(inputs), np.arange(answers.start, answers.stop))


# Memorization


def memorization_width(tokens: int, length: int) -> int:
    """Return d' of Theorem 1 for n, the length, and d, the number of tokens, both with the CLS token."""
    return max(length * tokens, tokens + length)


def memorizer(ids: NDArray, labels: NDArray, tokens: int) -> Model:
    """Build DEP-T1: one layer, n heads, which give every sequence of (N, n) its label below N.

    The source is Theorem 1 with Lemmas 3 and 4.

    Head i < n - 1 copies token i to rows of its own, the last takes the last column away. The classifier is that
    of `nearest`, so Lemma 3 needs no induction.
    """
    N, n = ids.shape
    d = memorization_width(tokens, n)
    spec = _spec([n], d, n, tokens, N)
    heads = []
    for i in range(n - 1):
        alpha = np.zeros((n, n))
        alpha[i, n - 1] = 1
        heads.append((positions(spec, alpha), move(d, slice(0, tokens), slice(i * tokens, (i + 1) * tokens))))
    heads.append((positions(spec, np.eye(n)), -np.eye(d)))
    columns = last_columns(_model(spec, [heads], np.zeros((d, N))), ids)[0]
    return _model(spec, [heads], nearest(columns, labels))


def nearest(columns: NDArray[np.float64], labels: NDArray) -> NDArray[np.float64]:
    """Return a classifier (d', N) in closed form (Lemma 3).

    Column y is the direction of the vector whose label is y.

    By Cauchy and Schwarz a vector's product with its own direction is larger than with any other one.
    """
    directions = columns / np.linalg.norm(columns, axis=1, keepdims=True)
    return directions[np.argsort(labels)].T


# Reasoning: copy and match


def reasoner(k: int, questions: int, answers: int) -> Model:
    """Build DEP-T3: two layers, one head, d' = d + n (Theorem 3, section 13.2).

    The first copies within triples, the second matches questions.
    """
    inputs, n = questions + 1 + answers, tasks.length("ic_qa", k, 1)
    d = inputs + n
    spec = _spec([1, 1], d, n, inputs, inputs)
    copy = (positions(spec, tasks.copying("ic_qa", k, 1)), np.eye(d))
    match = (identity(d, slice(0, questions)), np.eye(d))
    return _model(spec, [[copy], [match]], _answers(d, inputs, slice(questions + 1, inputs)))


def chain_reasoner(pairs: int, hops: int, entities: int, merged: bool = False) -> Model:
    """Build DEP-T9: copy and match ``hops`` times in a context of ``pairs`` links, in any order (section 7).

    The first layer brings both ends of every link, source and target, to its sign, in rows of their own, and the
    question to the last column. A match adds the target of the link whose source is the current entity, a copy
    makes it the current entity: 2 ``hops`` layers. With ``merged`` a match does both at once: 1 + ``hops``
    layers.
    """
    n, inputs = tasks.length("nested", pairs, 1), entities + 1
    d = inputs + n + 2 * entities
    tokens, sources = slice(0, entities), slice(inputs + n, inputs + n + entities)
    targets = slice(sources.stop, d)
    spec = _spec([2] + [1] * (hops if merged else 2 * hops - 1), d, n, inputs, inputs)
    signs = np.arange(1, n, 3)
    before, after, forbidden, alone = np.zeros((4, n, n))
    before[signs - 1, signs] = 1
    after[signs[:-1] + 1, signs[:-1]] = 1
    alone[-1, -1] = 1
    forbidden[:], forbidden[:-1, -1] = tasks.FORBIDDEN, 0  # only the last column asks, and not itself
    first = [(positions(spec, before), move(d, tokens, sources)), (positions(spec, after), move(d, tokens, targets))]
    same, forget = identity(d, sources) + positions(spec, forbidden), identity(d, sources, -1.0)
    if merged:
        built = [first] + [[(same, move(d, targets, sources) + forget)]] * hops
        return _model(spec, built, move(d, sources, tokens).T[:, :inputs])
    match = [(same, identity(d, targets))]
    copy = [(positions(spec, alone), move(d, targets, sources) + forget + identity(d, targets, -1.0))]
    built = [first, match] + [copy, match] * (hops - 1)
    return _model(spec, built, move(d, targets, tokens).T[:, :inputs])


# Generalization: parse and map


def generalizer(templates: NDArray, tokens: int, form: str = "corrected") -> Model:
    """Build DEP-T5: two layers, one head, d' = d + n, which give template y of (C, l) the label y.

    The source is Theorem 5, section 14.2.

    The first layer adds to the position of every token those of its equals: column j of the first l position rows
    is M e_j, M_ij = 1[same token] + 1[i = j]. The printed value matrix also subtracts the attended token, to leave no
    trace of it; but a token that occurs c times is subtracted c times. So ``form`` is ``printed`` for that, or
    ``corrected``: token rows stay as they are, and from there on position rows alone are read.

    The second layer is meant to weigh column j by w_j = 3^(l-1-j), which needs one-hot positions; after the first
    layer it weighs it by (M w)_j, and what the classifier reads is M M w, which tells templates apart as well.
    """
    C, l = templates.shape
    n, inputs = l + 1, tokens + 1
    d = inputs + n
    spec = _spec([1, 1], d, n, inputs, C)
    rows = slice(inputs, inputs + n)
    values = identity(d, rows)
    if form == "printed":
        values = values + identity(d, slice(0, inputs), -1.0)
    parse = (tasks.parsing("tm", 0, l, tokens, 0, d), values)
    encode = (positions(spec, ternary(l)), identity(d, rows))
    layers = [[parse], [encode]]
    representatives = np.column_stack([templates, np.full(C, tokens)])
    columns = last_columns(_model(spec, layers, np.zeros((d, C))), representatives)[0]
    read = np.isin(np.arange(d), np.arange(inputs, inputs + l))
    return _model(spec, layers, nearest(columns * read, np.arange(C)))


def ternary(l: int) -> NDArray[np.float64]:
    """Return the weights 3^(l-1), ..., 3^0 of the last column on the first l positions, (n, n), n = l + 1."""
    alpha = np.zeros((l + 1, l + 1))
    alpha[:l, l] = 3.0 ** np.arange(l - 1, -1, -1)
    return alpha


# Contextual generalization: parse, copy, match


def contextual_generalizer(k: int, l: int, questions: int, answers: int, form: str = "corrected") -> Model:
    """Build DEP-T6: three layers of 1, 1 and 2l heads, d' = d + n + l + 2 (Theorem 6, section 15).

    Within every block the first layer writes the template, E_ij = 1[tokens i and j are the same], into l + 2 spare
    rows. The second brings every answer to the columns of its block and to the last column, and subtracts the query's
    template from that of each block: now spare rows are 0 exactly where the template is the query's. In the third,
    two heads per row look for an entry that is not 0, and take the block's answer away from the last column.

    ``form`` is ``corrected``, or one of three printed details, all else being corrected: ``copy``, the printed
    pattern of the second layer, which brings no answer to the last column; ``scale``, V = -I in the third layer, so
    that a wrong answer is not taken away as often as it was added; ``rows``, the last l spare rows in place of the
    first, where the template is.
    """
    inputs, n = questions + 1 + answers, tasks.length("ic_tm", k, l)
    d = inputs + n + l + 2
    spec = _spec([1, 1, 2 * l], d, n, inputs, inputs)
    block, offset = tasks.blocks("ic_tm", k, l), np.arange(n) % (l + 2)
    spare = slice(d - l - 2, d)

    write = np.zeros((d, d))
    write[spare.start + offset, inputs + np.arange(n)] = 1
    parse = (tasks.parsing("ic_tm", k, l, questions, answers, d), write)

    answer, query = offset == l + 1, block == k
    copied = answer[:, None] & (block[:, None] == block) & ~answer
    compared = query[:, None] & ~query & (offset[:, None] == offset)
    last = np.arange(n) == n - 1
    gathered = (query if form == "copy" else answer)[:, None] & last
    copy = (
        positions(spec, (copied | compared | gathered).astype(float)),
        identity(d, slice(0, inputs)) + identity(d, spare, -1.0),
    )

    scale = 1 / (2 * l) if form == "scale" else l + 2.0  # `_model` multiplies by 2l
    remove = identity(d, slice(questions + 1, inputs), -scale)
    match = []
    for sign in (1.0, -1.0):
        for row in range(l):
            W = np.zeros((d, d))
            W[spare.start + row + (2 if form == "rows" else 0), questions] = sign
            match.append((W, remove))
    return _model(spec, [[parse], [copy], match], _answers(d, inputs, slice(questions + 1, inputs)))


# All inputs of a small size


def substitutions(template: NDArray, tokens: int) -> NDArray[np.int64]:
    """Return every sequence of ``template`` over an alphabet, (n(t), l + 1) (section 14.1).

    The CLS token is behind it.
    """
    letters = int(template.max()) + 1
    chosen = np.array([*itertools.permutations(range(tokens), letters)])
    return np.column_stack([chosen[:, template], np.full(len(chosen), tokens)])
