"""Samples of Ising models, each with one mask of every size (Li 2025, Figures 4.1 and 4.2; PAR-D2, PAR-D3).

Those with several sets of masks are made by `pipeline.studies.parallel.scheme_datasets`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.studies.parallel import scheme_datasets
from schemas.parallel.datasets import SAMPLES, SCHEMA, SCHEME_DRAWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.studies.parallel.params import Dataset, Draws

__all__ = ["SCHEMA", "generate"]


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset ``key`` and the metadata of its file, its kind."""
    if entry.kind == "schemes":
        return scheme_datasets.generate(entry, key, seed), {"kind": SCHEME_DRAWS}
    return _samples(entry, key, seed), {"kind": SAMPLES}


def _samples(entry: Draws, key: str, seed: int) -> pl.DataFrame:
    """Return how often each state came with each mask.

    All sizes of masks have the same states: what differs between them is what is masked.
    """
    N, law = entry.N, ising.law(ising.clique(entry.N, entry.N, entry.J), entry.N)
    frames = []
    for n in entry.n:
        for repetition in range(entry.repetitions):
            states = ising.counts(stream(seed, entry.study, key, n, repetition), law, n, 1)
            for k in range(1, N + 1):
                rng = stream(seed, entry.study, key, n, repetition, "masks", k)
                frames.append(_frame(ising.masked_counts(rng, states, k, N)[0], n, repetition, k, N, entry.J))
    return pl.concat(frames)


def _frame(counts_MxS: NDArray[np.int64], n: int, repetition: int, k: int, N: int, J: float) -> pl.DataFrame:
    mask, state = np.nonzero(counts_MxS)
    columns = {
        "spins": np.full(len(mask), N, np.int8),
        "J": np.full(len(mask), J),
        "n": np.full(len(mask), n, np.int32),
        "repetition": np.full(len(mask), repetition, np.int32),
        "k": np.full(len(mask), k, np.int8),
        "mask": np.array(ising.masks(N, k), np.int16)[mask],
        "state": state.astype(np.int16),
        "count": counts_MxS[mask, state].astype(np.int32),
    }
    return pl.DataFrame(columns)


def samples(frame: pl.DataFrame, k: int) -> tuple[dict[tuple[int, int], NDArray[np.int64]], int, float]:
    """Return the counts (M, S) of masks of ``k`` by sample, (n, repetition) in the order of the frame; spins, and J.

    Raises ValueError if the frame has none.
    """
    rows = frame.filter(k=k)
    if not rows.height:
        raise ValueError(f"a dataset without masks of {k} positions")
    N, J = int(rows["spins"][0]), float(rows["J"][0])
    place = {mask: i for i, mask in enumerate(ising.masks(N, k))}
    found: dict[tuple[int, int], NDArray[np.int64]] = {}
    for (n, repetition), own in rows.group_by("n", "repetition", maintain_order=True):
        counts = np.zeros((len(place), 2**N), np.int64)
        at = [place[mask] for mask in own["mask"].to_list()]
        counts[at, own["state"].to_numpy()] = own["count"].to_numpy()
        found[int(str(n)), int(str(repetition))] = counts
    return found, N, J
