"""DEP-T2, T4, T8: what one layer cannot do (Chen and Zou 2024, Theorems 2 and 4; sections 11, 13.1, 14.1, 16).

Sequences that are dependent (Definition 3) give last columns that are, whatever the weights, so no classifier
that reads them can tell their labels apart. Both halves are executed: the identity on random models, and a linear
program that looks for a classifier of each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import constructions
from pipeline.studies.depth.constructions import LARGEST, Model, certificate, separator
from schemas import theory

EXACT = 1e-9  # an identity holds where what is left is below this share of the largest entry

# Questions 0 and 1, the sign 2, answers 3 and 4 (section 13.1); the first two ask for answer 3, the others for 4.
TOY = np.array([[0, 2, 3, 1, 2, 4, 0, 2], [0, 2, 4, 1, 2, 3, 1, 2], [0, 2, 4, 1, 2, 3, 0, 2], [0, 2, 3, 1, 2, 4, 1, 2]])
TOY_SIDES = np.array([1, 1, -1, -1])
# The same with the questions in the other order as well: all there is of two questions and two answers.
ALL_TOY = np.concatenate([TOY, TOY[:, [3, 4, 5, 0, 1, 2, 6, 7]]])
ANSWERS = 3, 4

SECTION_11 = "Chen and Zou 2024, Theorem 2, Propositions 7 and 8, section 13.1"
SECTION_14 = "Chen and Zou 2024, Theorem 4, Lemmas 5 to 7, section 14.1"
SECTION_16 = "Chen and Zou 2024, Propositions 9 and 10, section 16"
LIMITS = "depth-lemma-7-limits"
UNPROVED = "models with a classifier, or without a certificate that there is none"


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorems 2 and 4, Propositions 9 and 10.

    There are ``entry.models`` random models for each of ``entry.heads``, and templates of each of
    ``entry.lengths`` over ``entry.tokens`` tokens.
    """
    checks: list[dict[str, Any]] = []
    for heads in entry.heads:
        checks += _reasoning(_random(entry, heads, TOY, theory_id, seed), heads)
        checks += _templates(entry, heads, theory_id, seed)
    checks += [*_occurrences(entry), *_printed_sum(entry, theory_id, seed), *_softmax(entry, theory_id, seed)]
    return theory.rows("depth", theory_id, SECTION_11, checks)


def _listed(shares: NDArray[np.float64]) -> str:
    return ", ".join(f"{abs(share):.3g}" for share in shares)


def _programs(columns_RxNxD: NDArray[np.float64]) -> dict[str, Any]:
    """Return for how many models HiGHS finds a classifier of the toy set, or no certificate against one."""
    R = len(columns_RxNxD)
    feasible = sum(separator(each, TOY_SIDES) is not None for each in columns_RxNxD)
    shares = [certificate(each, TOY_SIDES) for each in columns_RxNxD]
    proofs = [(y, each) for y, each in zip(shares, columns_RxNxD, strict=True) if y is not None]
    left = [residual((y * TOY_SIDES)[None], each[None]) for y, each in proofs]
    note = f"shares {_listed(proofs[0][0])} in the first, " if proofs else ""
    return {
        "measured": float(max(feasible, R - sum(each <= EXACT for each in left))),
        "detail": f"HiGHS: infeasible for {R - feasible} of {R}, with columns up to 1 and weights up to {LARGEST:.0e}; "
        f"{len(proofs)} certificates by which the four margins sum to 0, not to 1: {note}largest relative residual "
        f"{largest(left) if left else np.inf:.2g}",
    }


def residual(weights: NDArray, outputs: NDArray[np.float64]) -> float:
    """Return the largest |sum of weights (R, N) times outputs (R, N, C)|.

    It is in units of the largest |weight times output|.
    """
    terms = weights[..., None] * outputs
    return float((np.abs(terms.sum(1)).max(1) / np.abs(terms).max((1, 2))).max())


def _random(entry: Any, heads: int, ids: NDArray, theory_id: str, seed: int, attention: str = "relu") -> Model:
    inputs, length = int(ids.max()) + 1, ids.shape[1]
    rng = stream(seed, "depth", theory_id, attention, heads, inputs, length)
    return constructions.random_models(rng, entry.models, heads, inputs, length, attention)


def _best_share(columns: NDArray[np.float64]) -> float:
    """Return the largest share of the toy set that any classifier gets right."""
    for right in range(len(TOY), 0, -1):
        for kept in map(list, itertools.combinations(range(len(TOY)), right)):
            if separator(columns[kept], TOY_SIDES[kept]) is not None:
                return right / len(TOY)
    return 0.0


def _reasoning(models: Model, heads: int) -> Iterator[dict[str, Any]]:
    """Yield rows on the toy set, for which o0 + o1 = o2 + o3 (eq. 15)."""
    outputs, columns = models.run(TOY)[0], constructions.last_columns(models, TOY)
    R = len(outputs)
    size = f"{R} random models of {heads} head{'s' if heads > 1 else ''}, d'={models.spec.width}"
    yield {
        "check": f"reasoning-residual-h{heads}",
        "claim": "8",
        "part": "T2, residual",
        "statement": "One layer gives the toy set dependent outputs, o0 + o1 - o2 - o3 = 0: largest relative residual",
        "size": size,
        "measured": residual(np.tile(TOY_SIDES, (R, 1)), outputs),
        "comparison": "<=",
        "bound": EXACT,
    }
    yield {
        "check": f"reasoning-classifier-h{heads}",
        "claim": "8",
        "part": "T2, classifiers",
        "statement": f"No classifier of one layer is right on all four: {UNPROVED}",
        "size": size,
        "comparison": "<=",
        "bound": 0.0,
        **_programs(columns),
    }
    yield {
        "check": f"reasoning-share-h{heads}",
        "statement": "Of the four at most three can be right: the largest share that a classifier of any model reaches",
        "size": size,
        "measured": largest(_best_share(each) for each in columns),
        "comparison": "<=",
        "bound": 0.75,
    }


def _sets(length: int, tokens: int) -> list[NDArray[np.int64]]:
    """Return the sequences of every template of this length."""
    return [constructions.substitutions(template, tokens) for template in tasks.templates(length)]


def _averages(outputs: NDArray[np.float64], sets: list[NDArray]) -> NDArray[np.float64]:
    """Return the average output of each template's sequences, (R, templates, C).

    ``outputs`` (R, N, C) holds the sequences of all templates one after the other.
    """
    ends = np.cumsum([len(each) for each in sets])[:-1]
    return np.stack([part.mean(1) for part in np.split(outputs, ends, axis=1)], 1)


def _pairs_separated(columns: NDArray[np.float64], sets: list[NDArray]) -> tuple[int, int]:
    """Return how many of all pairs of templates and models a classifier tells apart, and their number."""
    ends = np.cumsum([len(each) for each in sets])[:-1]
    outcomes = []
    for each in columns:
        parts = np.split(each, ends)
        for first, second in itertools.combinations(parts, 2):
            sides = np.repeat([1, -1], [len(first), len(second)])
            outcomes.append(separator(np.concatenate([first, second]), sides) is not None)
    return sum(outcomes), len(outcomes)


def _templates(entry: Any, heads: int, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 7: averages over all sequences of a template do not depend on the template."""
    spreads = []
    for length in entry.lengths:
        sets = _sets(length, entry.tokens)
        ids = np.concatenate(sets)
        outputs = _random(entry, heads, ids, theory_id, seed).run(ids)[0]
        spread = np.ptp(_averages(outputs, sets), axis=1).max(-1) / np.abs(outputs).max((1, 2))
        spreads.append(spread)
    size = f"{entry.models} random models of {heads} head{'s' if heads > 1 else ''}, {entry.tokens} tokens"
    yield {
        "check": f"templates-residual-h{heads}",
        "claim": "8",
        "part": "T4, residual",
        "statement": "One layer gives all sequences of any two templates the same average output: largest relative "
        "difference",
        "source": SECTION_14,
        "size": f"{size}, all templates of length {', '.join(map(str, entry.lengths))}",
        "measured": largest(*spreads),
        "comparison": "<=",
        "bound": EXACT,
    }
    length = min(max(entry.lengths), 3)
    sets = _sets(length, entry.tokens)
    ids = np.concatenate(sets)
    columns = constructions.last_columns(_random(entry, heads, ids, theory_id, seed), ids)
    feasible, programs = _pairs_separated(columns, sets)
    first, second = (len(sets[i]) for i in (0, 1))
    yield {
        "check": f"templates-classifier-h{heads}",
        "claim": "8",
        "part": "T4, classifiers",
        "statement": "No classifier of one layer tells all sequences of two templates apart: feasible programs",
        "source": SECTION_14,
        "size": f"{size}, all pairs of templates of length {length}",
        "measured": float(feasible),
        "comparison": "<=",
        "bound": 0.0,
        "detail": f"HiGHS: infeasible for {programs - feasible} of {programs}; certificate: margins with shares "
        f"1/(2 n(t)), for instance {1 / (2 * first):.4g} of {first} and {1 / (2 * second):.4g} of {second} sequences, "
        "sum to the difference of two averages, which is 0 in the row above",
    }


def _occurrences(entry: Any) -> Iterator[dict[str, Any]]:
    sets = [each for length in entry.lengths for each in _sets(length, entry.tokens)]
    counts = [
        np.abs((each[:, :-1, None] == np.arange(entry.tokens)).sum(0) - len(each) / entry.tokens) for each in sets
    ]
    yield {
        "check": "occurrences",
        "statement": "Every token stands at every position of n(t)/|X| sequences of a template: largest difference",
        "source": "Chen and Zou 2024, Lemma 5",
        "size": f"{len(sets)} templates, {entry.tokens} tokens",
        "measured": largest(*counts),
        "comparison": "<=",
        "bound": 0.0,
    }


def _printed_sum(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 7, which lets both sums run over n(t') sequences; t is to have n(t)."""
    same, different = _sets(2, entry.tokens)
    ids = np.concatenate([different, same])
    outputs = _random(entry, 1, ids, theory_id, seed).run(ids)[0]
    n, other = len(different), len(same)
    for form, used in (("printed", other), ("corrected", n)):
        weights = np.concatenate([np.where(np.arange(n) < used, other, 0), np.full(other, -n)])
        yield {
            "check": f"sum-{form}",
            "statement": "With both sums over n(t') sequences, as printed, lambda times the one is not lambda' times "
            "the other: largest relative residual"
            if form == "printed"
            else "With the first sum over all n(t) sequences of t it is: largest relative residual",
            "source": "Chen and Zou 2024, Lemma 7",
            "size": f"templates AB and AA, {entry.tokens} tokens, {entry.models} random models of 1 head",
            "measured": residual(np.tile(weights, (len(outputs), 1)), outputs),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": EXACT,
            "erratum": LIMITS,
            "form": form,
        }


# Softmax (DEP-T8)


def _normalisers(models: Model, ids: NDArray) -> NDArray[np.float64]:
    """Return the sum over keys of exp(x' W x_last), of the one head, (R, N)."""
    rows = np.eye(models.spec.inputs + models.spec.length)
    x = rows[ids] + rows[models.spec.inputs + np.arange(ids.shape[1])]
    scores = np.einsum("njd,rde,ne->rnj", x, models.weights["blocks.0.W"][:, 0], x[:, -1])
    return np.asarray(np.exp(scores).sum(-1))


def _softmax(entry: Any, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    one = _random(entry, 1, TOY, theory_id, seed, "softmax")
    weights = TOY_SIDES * _normalisers(one, TOY)
    columns = constructions.last_columns(one, TOY)
    size = f"{entry.models} random models of 1 head"
    yield {
        "check": "softmax-residual-reasoning",
        "claim": "8",
        "part": "T8, residual",
        "statement": "With one softmax head the outputs of the toy set, each times its normaliser, are dependent: "
        "largest relative residual",
        "source": SECTION_16,
        "size": size,
        "measured": residual(weights, one.run(TOY)[0]),
        "comparison": "<=",
        "bound": EXACT,
    }
    yield {
        "check": "softmax-classifier-reasoning",
        "claim": "8",
        "part": "T8, classifiers",
        "statement": f"With one softmax head no classifier is right on all four: {UNPROVED}",
        "source": SECTION_16,
        "size": size,
        "comparison": "<=",
        "bound": 0.0,
        **_programs(columns),
    }
    length = min(max(entry.lengths), 3)
    sets = _sets(length, entry.tokens)
    ids = np.concatenate(sets)
    models = _random(entry, 1, ids, theory_id, seed, "softmax")
    outputs, normalisers = models.run(ids)[0], _normalisers(models, ids)
    residuals = []
    for first, second in itertools.combinations(range(len(sets)), 2):
        side = np.concatenate(
            [
                np.full(len(each), (len(sets[second]) if i == first else -len(sets[first])) * (i in (first, second)))
                for i, each in enumerate(sets)
            ]
        )
        residuals.append(residual(side * normalisers, outputs))
    yield {
        "check": "softmax-residual-templates",
        "claim": "8",
        "part": "T8, residual",
        "statement": "With one softmax head so are those of all sequences of any two templates: largest relative "
        "residual",
        "source": SECTION_16,
        "size": f"{size}, templates of length {length}, {entry.tokens} tokens",
        "measured": largest(residuals),
        "comparison": "<=",
        "bound": EXACT,
    }
    feasible, programs = _pairs_separated(constructions.last_columns(models, ids), sets)
    yield {
        "check": "softmax-classifier-templates",
        "claim": "8",
        "part": "T8, classifiers",
        "statement": "With one softmax head no classifier tells all sequences of two templates apart: "
        "feasible programs",
        "source": SECTION_16,
        "size": f"{size}, all pairs of templates of length {length}, {entry.tokens} tokens",
        "measured": float(feasible),
        "comparison": "<=",
        "bound": 0.0,
        "detail": f"HiGHS: infeasible for {programs - feasible} of {programs}",
    }
    for heads in (each for each in entry.heads if each > 1):
        yield from _several_heads(entry, heads, theory_id, seed)


def _several_heads(entry: Any, heads: int, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on several softmax heads, which the paper leaves open.

    Every head has normalisers of its own, and no weights serve them all.
    """
    models = _random(entry, heads, TOY, theory_id, seed, "softmax")
    columns = constructions.last_columns(models, TOY)
    singular = np.linalg.svd(columns, compute_uv=False)
    size = f"{entry.models} random models of {heads} heads"
    yield {
        "check": f"softmax-independent-h{heads}",
        "statement": f"With {heads} softmax heads the four last columns are independent, so that no such identity "
        "holds: smallest singular value in the largest",
        "source": SECTION_16,
        "size": size,
        "measured": float((singular[:, -1] / singular[:, 0]).min()),
        "comparison": ">=",
        "bound": EXACT,
    }
    wide = constructions.last_columns(models, ALL_TOY)
    every = [separator(each, np.tile(TOY_SIDES, 2)) is not None for each in wide]
    yield {
        "check": f"softmax-solves-h{heads}",
        "statement": f"One layer of {heads} softmax heads with a classifier found by HiGHS is right on all four: share "
        "of models",
        "source": SECTION_16,
        "size": size,
        "measured": float(np.mean([_solves(models, r, columns[r]) for r in range(len(columns))])),
        "comparison": ">=",
        "bound": 1.0,
        "detail": f"on all {len(ALL_TOY)} contexts of two questions and answers: {np.mean(every):.3g} of the models",
    }


def _solves(models: Model, r: int, columns: NDArray[np.float64]) -> bool:
    """Return whether model ``r`` answers all of the toy set.

    Its classifier is w for one answer and -w for the other.
    """
    normal = separator(columns, TOY_SIDES)
    if normal is None:
        return False
    head = np.zeros((models.spec.width, models.spec.outputs))
    head[:, ANSWERS[0]], head[:, ANSWERS[1]] = normal, -normal
    weights = {name: value[r : r + 1] for name, value in models.weights.items()} | {"head.W": head[None]}
    labels = np.where(TOY_SIDES > 0, *ANSWERS)
    return constructions.accuracy(Model(models.spec, weights).run(TOY)[0], labels) == 1
