"""Samples of small laws, each seen through several sets of masks (chapter, PAR-D6 and PAR-D7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.languages.ising import Floats, Ints
from pipeline.studies.parallel.exact import schemes
from schemas.parallel.datasets import RANDOM, TWO_PAIRS

if TYPE_CHECKING:
    from pipeline.studies.parallel.params import SchemeDraws


def generate(entry: SchemeDraws, key: str, seed: int) -> pl.DataFrame:
    """Return how often each state came with each mask, of every law, set of masks and repetition.

    All sets see the same states of a repetition; a set whose masks have one position sees n and twice n of them, one
    of all positions n and half of n, so that beside equal samples there are equal numbers of predicted positions.
    """
    frames = []
    for law_id, about, theta in laws(entry, key, seed):
        p = ising.law(theta, schemes.N)
        for repetition in range(entry.repetitions):
            rng = stream(seed, entry.study, key, law_id, repetition)
            half, other, twice = (ising.counts(rng, p, n, 1) for n in (entry.n // 2, entry.n // 2, entry.n))
            seen = {entry.n // 2: half, entry.n: half + other, 2 * entry.n: half + other + twice}
            for scheme, n in arms(entry):
                masks = schemes.masks(entry.sets[scheme])
                draw = stream(seed, entry.study, key, law_id, repetition, "masks", scheme, n)
                counts = draw.multinomial(seen[n][0], np.full(len(masks), 1 / len(masks))).T
                more = {"theta": theta, "scheme": scheme, "n": n, "repetition": repetition}
                frames.append(_frame(counts, masks, about | more))
    return pl.concat(frames)


def arms(entry: SchemeDraws) -> list[tuple[str, int]]:
    """Return the sets of masks with the number of states that each sees: n, and as many predictions as pairs."""
    same = [(scheme, entry.n) for scheme in entry.sets]
    sizes = {scheme: len(blocks[0]) for scheme, blocks in entry.sets.items()}
    return [*same, *((scheme, 2 * entry.n // size) for scheme, size in sizes.items() if size in (1, 4))]


def laws(entry: SchemeDraws, key: str, seed: int) -> Iterator[tuple[str, dict[str, Any], Floats]]:
    """Yield the laws: an id, what they are, and theta."""
    for inside in entry.J_in:
        name = f"{TWO_PAIRS}-{inside:g}"
        about = {"law": name, "family": TWO_PAIRS, "strength": inside}
        yield name, about, schemes.two_pairs(inside, entry.J_out)
    for sigma in entry.sigma:
        for draw in range(entry.draws):
            name = f"drawn-{sigma:g}-{draw}"
            about = {"law": name, "family": RANDOM, "strength": sigma}
            rng = stream(seed, entry.study, key, "law", f"{sigma:g}", draw)
            yield name, about, ising.random_parameters(rng, schemes.N, sigma)


def _frame(counts_MxS: Ints, masks: list[int], about: dict[str, Any]) -> pl.DataFrame:
    mask, state = np.nonzero(counts_MxS)
    count = len(mask)
    columns = {
        "law": pl.Series([about["law"]] * count),
        "family": pl.Series([about["family"]] * count),
        "strength": pl.Series([about["strength"]] * count, dtype=pl.Float64),
        "theta": pl.Series([about["theta"].tolist()] * count, dtype=pl.List(pl.Float64)),
        "scheme": pl.Series([about["scheme"]] * count),
        "n": np.full(count, about["n"], np.int32),
        "repetition": np.full(count, about["repetition"], np.int32),
        "mask": np.array(masks, np.int16)[mask],
        "state": state.astype(np.int16),
        "count": counts_MxS[mask, state].astype(np.int32),
    }
    return pl.DataFrame(columns)
