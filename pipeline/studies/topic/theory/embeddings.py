"""Theorem 2.1.1: optimal embeddings under uniform attention (chapter 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages.topic import Floats, Population
from pipeline.studies.topic.constructions import OWN_CHECK, SOURCE, masking_of, slip
from pipeline.studies.topic.exact import stage_one
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Case, Embeddings

HERE = SOURCE.format(".3, Theorem 2.1.1, and .7.2")


def check(entry: Embeddings, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Gram matrices of embeddings (TH1)."""
    rng = stream(seed, entry.study, key)
    made = [record for case in entry.cases for record in _case(entry, case, rng)]
    made = judged("1", "Theorem 2.1.1", [*made, *_realisable(entry)])
    return theory.rows(entry.study, key, HERE, made)


def bias(population: Population, everywhere: bool) -> Floats:
    """Return (V,) the bias of Theorem 2.1.1: on words alone, or ``everywhere``, as its first statement has it."""
    masking = population.masking
    bias_V = np.full(population.words + 1, -masking.rho / ((1 - masking.a) * population.words))
    bias_V[0] *= everywhere
    return bias_V


def _case(entry: Embeddings, case: Case, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    known = Population(case.topics, case.v, case.tau, masking_of(entry))
    name = f"{case.topics}-{case.v}-{case.tau}-{case.width}-{case.scale:g}"
    at = f"T = {case.topics}, v = {case.v}, τ = {case.tau}, d = {case.width}, start N(0, {case.scale:g}²)"
    start = rng.normal(size=(case.width, known.words + 1)) * case.scale
    gram, curve = stage_one.fit_embeddings(known, start, bias(known, everywhere=False), entry.steps)
    _, violations = stage_one.violations(known, gram, first=0.0)
    yield row(
        f"embeddings.loss.{name}",
        "L-BFGS brings trained embeddings to the least loss: distance",
        at,
        curve[-1],
        "<=",
        entry.tolerance,
        source=OWN_CHECK,
        detail=f"{len(curve)} steps",
    )
    yield row(
        f"embeddings.properties.{name}",
        "There the Gram matrix has the five properties of the theorem: largest violation",
        at,
        largest(violations.values()),
        "<=",
        entry.looser,
    )
    topic = known.topic_V[1:]
    inner = gram[1:, 1:]
    sums = known.block_sums(gram)[1:]
    own = topic[:, None] == np.arange(known.topics)
    lead = sums[own] - np.where(own, -np.inf, sums).max(1)
    same = (topic[:, None] == topic) & ~np.eye(known.words, dtype=bool)
    apart = float(inner[same].mean() - inner[topic[:, None] != topic].mean())
    yield row(
        f"embeddings.blocks.{name}",
        "Sums of a word's row over its own topic exceed those over other topics by c₃: largest distance",
        at,
        largest(np.abs(lead - float(known.constants.c3))),
        "<=",
        entry.looser,
        detail=f"same topic off the diagonal {apart:+.3f} against other topics",
    )
    if case.scale >= 1:
        for form, value, comparison, bound, remark in (
            (
                "printed",
                apart,
                "<=",
                -1.0,
                "different words of a topic are more similar than words of other topics, on "
                "average: difference of mean dot products",
            ),
            (
                "corrected",
                float(smallest(lead)),
                ">=",
                1.0,
                "a word is more similar to its own topic, itself counted, "
                "than to another: smallest difference of block sums",
            ),
        ):
            yield row(
                f"remark-2.1.2.{form}",
                f"At an optimum of Theorem 2.1.1, {remark}",
                at,
                value,
                comparison,
                bound,
                **slip("remark-2.1.2", form),
                source=SOURCE.format(".3, Remark 2.1.2"),
            )
    for form, everywhere, comparison, bound in (
        ("printed", True, ">=", 1e-5),
        ("corrected", False, "<=", entry.looser),
    ):
        other, reached = stage_one.fit_embeddings(known, start, bias(known, everywhere), entry.steps)
        off = stage_one.violations(known, other, first=0.0)[1]["1a"] if reached[-1] <= entry.tolerance else np.nan
        where = "all rows" if everywhere else "words alone"
        yield row(
            f"bias.{form}.{name}",
            f"With the bias of the theorem on {where}, E₀₀ = -c₂u₀ at the optimum: violation",
            at,
            off,
            comparison,
            bound,
            **slip("bias", form),
            source=HERE,
        )


def _realisable(entry: Embeddings) -> Iterator[dict[str, Any]]:
    """Yield the example of an optimum at the end of the proof: a multiple of the identity."""
    for case in {(each.topics, each.v, each.tau): each for each in entry.cases}.values():
        known = Population(case.topics, case.v, case.tau, masking_of(entry))
        for form, comparison, bound in (("printed", ">=", 1e-3), ("corrected", "<=", entry.tolerance)):
            W = np.eye(known.words + 1) * (1 - known.masking.a) ** -0.5
            W[0, 0] *= form == "printed"
            which = "of all words and [MASK]" if form == "printed" else "of all words, and 0 for [MASK]"
            yield row(
                f"example.{form}.{case.topics}-{case.v}-{case.tau}",
                f"Embeddings that are a multiple of the one-hot vectors {which}, are optimal: loss above the least",
                f"T = {case.topics}, v = {case.v}, τ = {case.tau}",
                stage_one.excess(known, W.T @ W, bias(known, everywhere=False)),
                comparison,
                bound,
                **slip("example", form),
                source=SOURCE.format(".7.2, at its end"),
            )
