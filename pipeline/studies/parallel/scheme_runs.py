"""From samples with sets of masks to masked Transformers: a replica for each law, set of masks and repetition."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.languages import ising
from pipeline.languages.ising import Floats, Ints
from pipeline.models.ising.transformer import MASKED
from pipeline.studies.parallel.exact import schemes
from pipeline.training.jobs import Header

if TYPE_CHECKING:
    from pipeline.studies.parallel.params import MaskedRun


class Sample(NamedTuple):
    """What one model learns from: the law and its parameters, the set of masks, states seen, and the repetition."""

    law: str
    family: str
    strength: float
    theta: Floats
    scheme: str
    n: int
    repetition: int
    masks: tuple[int, ...]


def prepare(entry: MaskedRun, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return header, data and the masked rows that a model reads; replica r has the r-th sample with masks of ``k``.

    Models of one law and repetition start from the same weights, whatever their masks. Raises SandglassError unless
    there are as many samples as replicas.
    """
    drawn = samples(frame, entry.k)
    if len(drawn) != entry.replicas:
        raise SandglassError(
            f"{entry.dataset} has {len(drawn)} samples with masks of {entry.k}: expected one for each of the "
            f"{entry.replicas} replicas"
        )
    states, of_mask, rows = contexts(entry.k)
    outputs = 2**schemes.N
    asked = np.arange(len(states))[:, None] * outputs + states
    observed = [counts[of_mask[:, None], states] / counts.sum() for _, counts in drawn]
    data = {"states": asked.astype(np.int32), "observed": np.stack(observed).astype(np.float32)}
    shape = {name: getattr(entry, name) for name in ("width", "layers", "heads", "ffn", "std")}
    header = Header.grid(entry, seed, {"spins": schemes.N, "outputs": outputs} | shape, {})
    begun = {start: i for i, start in enumerate(dict.fromkeys((each.law, each.repetition) for each, _ in drawn))}
    header = dataclasses.replace(
        header, corpus=list(range(entry.replicas)), streams=[begun[each.law, each.repetition] for each, _ in drawn]
    )
    return header, data, rows.astype(np.float32)


def contexts(k: int) -> tuple[Ints, Ints, Ints]:
    """Return the states (C, J) that fit each context of masks of ``k``, the mask of each context, and the rows read.

    Rows (C, N) have 0 for -1, 1 for +1, and the masked symbol.
    """
    masks = ising.masks(schemes.N, k)
    states = np.concatenate([ising.contexts(schemes.N, mask) for mask in masks])
    of_mask = np.repeat(np.arange(len(masks)), len(states) // len(masks))
    hidden = np.array([[mask >> (schemes.N - 1 - i) & 1 for i in range(schemes.N)] for mask in masks])[of_mask]
    seen = (ising.states(schemes.N)[states[:, 0]] > 0).astype(np.int64)
    return states, of_mask, np.where(hidden == 1, MASKED, seen)


def samples(frame: pl.DataFrame, k: int) -> list[tuple[Sample, Ints]]:
    """Return what each model of masks of ``k`` learns from, with the counts (M, 2^N) over all masks of that size.

    In the order of the frame: laws, then repetitions, then sets of masks.
    """
    place = {mask: i for i, mask in enumerate(ising.masks(schemes.N, k))}
    own = frame.filter(pl.col("mask").bitwise_count_ones() == k)
    found = []
    for _, rows in own.group_by("law", "scheme", "n", "repetition", maintain_order=True):
        counts = np.zeros((len(place), 2**schemes.N), np.int64)
        counts[[place[mask] for mask in rows["mask"].to_list()], rows["state"].to_numpy()] = rows["count"].to_numpy()
        first = rows.row(0, named=True) | {"theta": np.array(rows["theta"][0])}
        first["masks"] = tuple(rows["mask"].unique().sort().to_list())
        found.append((Sample(*(first[name] for name in Sample._fields)), counts))
    return found
