"""Datasets of the study: hidden Markov models as parameters, trajectories and pairs of diffusions (chapter, 8)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import gaussian_hmm, hmm
from pipeline.languages.hmm import Floats
from pipeline.studies.selfsup import diffusion_datasets as diffusions
from schemas.selfsup.datasets import GAUSSIAN_HMMS, HMMS, PAIRS, SCHEMA, TRAJECTORIES
from schemas.selfsup.hmm import GAUSSIAN, PRINTED, RANDOM, M, O, T

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import Dataset, DrawnHmms, GaussianHmms

__all__ = ["SCHEMA", "generate"]

Model = tuple[str, Floats, Floats]  # its id, O or M, T


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset ``key`` and the metadata of its file, ``kind`` among them."""
    if entry.kind == "gaussian":
        return _frame(_gaussian(entry, key, seed), M, GAUSSIAN), {"kind": GAUSSIAN_HMMS}
    if entry.kind == "published":
        return _frame(_published(), O, PRINTED), {"kind": HMMS}
    if entry.kind == "ou_paths":
        return diffusions.ou_paths(entry, key, seed), {"kind": TRAJECTORIES}
    if entry.kind == "logcosh_pairs":
        return diffusions.logcosh_pairs(entry, key, seed), {"kind": PAIRS}
    return _frame(_drawn(entry, key, seed), O, RANDOM), {"kind": HMMS}


def _published() -> Iterator[Model]:
    """Yield the models of Eq. 2.47."""
    for which in (0, 1):
        emission, transition = hmm.published(which)
        hmm.check(emission, transition, full_rank=True)
        yield f"published-{which}", emission, transition


def _drawn(entry: DrawnHmms, key: str, seed: int) -> Iterator[Model]:
    for (symbols, states), number in product(entry.shapes, range(entry.instances)):
        rng = stream(seed, entry.study, key, symbols, states, number)
        emission, transition = hmm.draw(
            rng,
            symbols,
            states,
            concentration=entry.concentration,
            power=entry.power,
            offset=entry.offset,
            least_singular=entry.least_singular,
            least_row=entry.least_row,
        )
        if entry.digits is not None:
            emission, transition = hmm.rounded(emission, transition, entry.digits)
        hmm.check(emission, transition, full_rank=True)
        yield f"d{symbols}-k{states}-{number}", emission, transition


def _gaussian(entry: GaussianHmms, key: str, seed: int) -> Iterator[Model]:
    for (dimension, states), number in product(entry.shapes, range(entry.instances)):
        rng = stream(seed, entry.study, key, dimension, states, number)
        means, transition = gaussian_hmm.draw(
            rng, dimension, states, power=entry.power, offset=entry.offset, least_singular=entry.least_singular
        )
        gaussian_hmm.check(means, transition)
        yield f"d{dimension}-k{states}-{number}", means, transition


def _frame(models: Iterator[Model], first: str, family: str) -> pl.DataFrame:
    """Return `schemas.selfsup.hmm.HmmParam`: an entry of a matrix in each row."""
    frames = []
    for name, *matrices in models:
        for letter, matrix in zip((first, T), matrices, strict=True):
            rows, columns = np.indices(matrix.shape)
            frames.append(
                pl.DataFrame(
                    {
                        "instance_id": name,
                        "family": family,
                        "matrix": letter,
                        "row": pl.Series(rows.ravel(), dtype=pl.Int8),
                        "col": pl.Series(columns.ravel(), dtype=pl.Int8),
                        "value": matrix.ravel(),
                    }
                )
            )
    return pl.concat(frames)
