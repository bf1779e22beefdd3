"""Lemma 2.1.1 and Theorem 2.1.4: which linear maps are optimal under uniform attention (chapter 5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages.topic import Population
from pipeline.studies.topic.constructions import CONTROL, OWN_CHECK, SOURCE, masking_of, named, slip
from pipeline.studies.topic.exact import stage_one
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import OptimalSet

HERE = SOURCE.format(".7.1, Lemma 2.1.1, and .7.3, Theorem 2.1.4")
REMARK = SOURCE.format(".7.1, Remark 2.1.8")


def check(entry: OptimalSet, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the set of optima (TH2)."""
    rng = stream(seed, entry.study, key)
    made = [record for size in entry.sizes for record in _set(entry, size, rng)]
    made += [*_one_document(entry), *_convexity(entry, rng)]
    return theory.rows(entry.study, key, HERE, judged("1", "Theorem 2.1.4, size of the set", made))


def _set(entry: OptimalSet, size: list[int], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    topics, v, tau = size
    name, words = named(size)
    known = Population(topics, v, tau, masking_of(entry))
    x, p, V = known.masked_DxV, known.law_DxV, known.words + 1
    members = [stage_one.member(known, rng.normal(size=V), rng.normal(size=(V, V))) for _ in range(entry.members)]
    yield row(
        f"optimal-set.sufficient.{name}",
        "Matrices with the five properties of the lemma predict every document's shares of words: largest distance",
        f"{words}, {len(members)} matrices",
        largest(float(np.abs(x @ W.T - p).max()) for W in members),
        "<=",
        entry.tolerance,
        part="Theorem 2.1.4, sufficient",
    )
    rank = int(np.linalg.matrix_rank(x, tol=1e-10))
    yield row(
        f"optimal-set.dimension.{name}",
        "Documents span T dimensions, so that each row of the set has T v + 1 - T: rank of their masked shares",
        f"{words}, {len(x)} documents",
        rank,
        "within",
        topics,
        tolerance=0.0,
        source=OWN_CHECK,
    )
    # Every least-squares solution: one of them, plus anything that no document sees.
    basis = np.linalg.svd(x)[2][rank:]
    solved = [stage_one.minimum_norm(known) + rng.normal(size=(V, len(basis))) @ basis for _ in range(entry.members)]
    worst = [max(stage_one.violations(known, W)[1].values()) for W in solved]
    yield row(
        f"optimal-set.necessary.{name}",
        "Least-squares solutions have the five properties of the lemma: largest violation",
        f"{words}, {len(solved)} solutions",
        largest(worst),
        "<=",
        entry.looser,
        part="Theorem 2.1.4, necessary",
    )
    # The loss itself, over documents and labels one by one.
    W = members[0]
    predicted = x @ W.T
    direct = np.mean(
        [
            sum(share * ((f - np.eye(V)[label]) ** 2).sum() for label, share in enumerate(shares) if share)
            for f, shares in zip(predicted, p, strict=True)
        ]
    )
    yield row(
        f"optimal-set.floor.{name}",
        "The least loss, label by label, is 1 - 1/(τv): distance",
        words,
        abs(float(direct) - stage_one.floor(known)),
        "<=",
        entry.tolerance,
        source=OWN_CHECK,
    )
    # A block sum that is off by delta is off by delta p_1 or delta p_2 in the output.
    least = np.inf
    delta = entry.delta
    expected = delta**2 * (tau * known.present**2 + (topics - tau) * known.absent**2) / topics
    distances = []
    for i in range(0, V, max(1, known.words // 7)):
        block = slice(1 + v * (i % topics), 1 + v * (i % topics) + v)
        shifted = W.copy()
        shifted[i, block] += delta / v
        cost = stage_one.excess(known, shifted)
        least = min(least, cost)
        distances.append(abs(cost / expected - 1))
    yield row(
        f"optimal-set.perturbed.{name}",
        f"With a block sum off by {delta:g} the loss rises by what follows from the "
        "shares p₁ and p₂ of its words: largest relative distance",
        f"{words}, {len(distances)} rows",
        largest(distances),
        "<=",
        entry.looser,
        source=OWN_CHECK,
        detail=f"rises by {least:.3g} at least",
    )


def _one_document(entry: OptimalSet) -> Iterator[dict[str, Any]]:
    topics, v, _ = entry.sizes[0]
    x = Population(topics, v, topics, masking_of(entry)).masked_DxV
    yield row(
        "optimal-set.all-topics",
        "With τ = T there is one document: τ < T is needed for the converse. Rank",
        f"T = {topics}, v = {v}",
        int(np.linalg.matrix_rank(x, tol=1e-10)),
        "within",
        1,
        tolerance=0.0,
        source=CONTROL,
    )


def _convexity(entry: OptimalSet, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield the Hessian's rank, and what makes the penalised loss strongly convex (Remark 2.1.8)."""
    size = entry.sizes[0]
    topics, v, tau = size
    known, words = Population(topics, v, tau, masking_of(entry)), named(size)[1]
    A = stage_one.moments(known)[0]
    rank = int(np.linalg.matrix_rank(A, tol=1e-10))
    for form, comparison, bound, number in (("printed", "beyond", 1, "1"), ("corrected", "within", topics, "T")):
        yield row(
            f"hessian-rank.{form}",
            f"The Hessian for a row of the matrix, 2 E[x̄ x̄'], has rank {number}: its rank",
            words,
            rank,
            comparison,
            bound,
            tolerance=0.0,
            **slip("hessian-rank", form),
            source=REMARK,
        )
    # Along a ray that no document sees, the loss stays, so convexity is the penalty's.
    basis = np.linalg.svd(known.masked_DxV)[2][rank:]
    ray = rng.normal(size=(len(A), len(basis))) @ basis
    ray /= np.linalg.norm(ray)
    for form, power, comparison, least in (("printed", 1, "<=", 1e-9), ("corrected", 2, ">=", 1.0)):
        values = [stage_one.excess(known, s * ray) + float(np.linalg.norm(s * ray)) ** power for s in (1.0, 2.0, 3.0)]
        penalty = "the norm" if power == 1 else "the squared norm"
        convexity = values[0] - 2 * values[1] + values[2]
        yield row(
            f"penalty.{form}",
            f"With {penalty} as a penalty of weight 1 the loss is strongly convex: second "
            "difference along a ray that no document sees",
            words,
            convexity,
            comparison,
            least,
            **slip("penalty", form),
            source=REMARK,
        )
