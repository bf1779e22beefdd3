"""Proposition 2.1.1: shares of words after masking, exactly and in a document that is masked (chapter 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages import topic as language
from pipeline.studies.topic.constructions import CONTROL, SOURCE, masking_of, named, slip
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import MaskedShares

HERE = SOURCE.format(".7.5, Proposition 2.1.1")


def check(entry: MaskedShares, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on masking probabilities (TH6)."""
    made = [*_exact(entry), *_sampled(entry, stream(seed, entry.study, key)), *_indices(entry)]
    return theory.rows(entry.study, key, HERE, judged("1", "Proposition 2.1.1", made))


def _exact(entry: MaskedShares) -> Iterator[dict[str, Any]]:
    for size in entry.sizes:
        topics, v, tau = size
        name, words = named(size)
        exact = language.Population(topics, v, tau, masking_of(entry)).exact(Fraction)
        total = exact.masking.hidden + tau * v * exact.present + (topics - tau) * v * exact.absent
        yield row(
            f"masking.total.{name}",
            "Shares of all ids after masking add up to 1, in fractions: distance",
            words,
            float(abs(total - 1)),
            "<=",
            0,
        )
        known = language.Population(topics, v, tau, masking_of(entry))
        masks, before = known.masking, known.law_DxV
        # Case by case: not selected; selected, and kept or replaced.
        after = before * (1 - masks.mask) + masks.mask * (masks.keep * before + masks.random / known.words)
        after[:, 0] = masks.mask * (1 - masks.keep - masks.random)
        yield row(
            f"masking.cases.{name}",
            "They are those of the cases of a position, one by one: largest distance",
            f"{words}, all {len(before)} documents",
            largest(np.abs(after - known.masked_DxV)),
            "<=",
            1e-15,
        )


def _sampled(entry: MaskedShares, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    topics, v, tau = entry.sizes[0]
    known = language.Population(topics, v, tau, masking_of(entry))
    document = np.repeat(np.arange(1, tau * v + 1), entry.tokens // (tau * v))
    whole, replacements = np.array([len(document)]), np.arange(1, known.words + 1)
    _, shown = language.masked(rng, document, whole, known.masking, replacements)
    counts = np.bincount(shown, minlength=known.words + 1)
    size = f"{named(entry.sizes[0])[1]}, {len(document)} tokens"
    chance = _chances(known, document, known.masking.a)
    z = (counts - chance.sum(1)) / np.sqrt((chance * (1 - chance)).sum(1))
    yield row(
        "masking.sampled",
        "A long document that is masked at random has these shares: largest distance in standard errors",
        size,
        largest(np.abs(z)),
        "<=",
        entry.errors,
    )
    # The same for all its words together, so that a wrong law shows.
    for name, claim, comparison, lost in (
        ("together", "Its words together have their share", "<=", known.masking.a),
        ("control", "If selected positions never kept their word, they would not", ">=", known.masking.mask),
    ):
        own = _chances(known, document, lost)[1 : tau * v + 1].sum(0)
        off = (counts[1 : tau * v + 1].sum() - own.sum()) / np.sqrt((own * (1 - own)).sum())
        yield row(
            f"masking.{name}",
            f"{claim}: distance in standard errors",
            size,
            abs(float(off)),
            comparison,
            entry.errors,
            source=HERE if name == "together" else CONTROL,
        )


def _chances(known: language.Population, document_N: np.ndarray, lost: float) -> np.ndarray:
    """Return (V, N) the probability of each id at each position, where a position loses its word with ``lost``."""
    chance = np.full((known.words + 1, len(document_N)), float(known.absent))
    chance[language.MASK] = known.masking.hidden
    chance[document_N, np.arange(len(document_N))] += 1 - lost
    return chance


def _indices(entry: MaskedShares) -> Iterator[dict[str, Any]]:
    """Yield that the index T v + 1, which the lemma's proof and q name, belongs to no topic."""
    for form, more, comparison in (("printed", 1, ">="), ("corrected", 0, "<=")):
        over = [
            -(-(topics * v + more) // v) - topics for topics, v, _ in entry.sizes
        ]  # Definition 2.1.1: topic(i) = ceil(i / v)
        last = "T v + 1" if more else "T v"
        yield row(
            f"indices.{form}",
            f"The last index is {last}; its topic by Definition 2.1.1, beyond T: "
            + ("least excess" if more else "largest excess"),
            f"{len(over)} sizes",
            min(over) if more else max(over),
            comparison,
            more,
            **slip("indices", form),
            source=SOURCE.format(".7.1, after equation 2.9, and .7.7"),
        )
