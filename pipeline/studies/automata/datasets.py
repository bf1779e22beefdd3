"""Inputs of every task with their states (Liu 2024, sections 3.4.5.1.1 and 3.4.5.2)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import BERNOULLI, Ints
from pipeline.store import tables
from schemas.automata.datasets import SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.automata.params import Dataset

__all__ = ["SCHEMA", "generate"]

Split = tuple[str, tuple[Ints, Ints], float | None, int | None]  # name, tokens and states, p1, ones


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the sequences of the dataset ``key``, and no metadata: every split has a stream of its own."""
    parts = [
        _frame(name, *made)
        for name in entry.tasks
        for made in _splits(entry, name, functools.partial(stream, seed, entry.study, key, name))
    ]
    return pl.concat(parts), {}


def _splits(entry: Dataset, task: str, rng: Callable[..., np.random.Generator]) -> Iterator[Split]:
    for split, count in (("train", entry.train), ("validation", entry.held), ("test", entry.held)):
        yield split, automata.sample(task, entry.length, count, rng(split)), None, None
    probes = entry.probes or 0
    for p1 in entry.probabilities or []:
        made = automata.sample(task, entry.length, probes, rng("probability", str(p1)), p1, BERNOULLI)
        yield "probability", made, p1, None
    for ones in range(0, entry.length + 1, entry.counts) if entry.counts else ():
        tokens = automata.counted(entry.length, ones, probes, rng("count", ones))
        yield "count", (tokens, automata.simulate(automata.automaton(task), tokens)), None, ones
    for length in entry.lengths or []:
        yield "length", automata.sample(task, length, probes, rng("length", length)), None, None


def _frame(task: str, split: str, made: tuple[Ints, Ints], p1: float | None, ones: int | None) -> pl.DataFrame:
    tokens, states = made
    n, length = tokens.shape
    lengths = np.full(n, length)
    return pl.DataFrame(
        {
            "task": pl.Series([task] * n),
            "split": pl.Series([split] * n),
            "length": pl.Series(lengths, dtype=pl.Int16),
            "p1": pl.Series([p1] * n, dtype=pl.Float64),
            "ones": pl.Series([ones] * n, dtype=pl.Int16),
            "tokens": tables.lists(tokens.ravel().astype(np.int16), lengths),
            "states": tables.lists(states.ravel().astype(np.int16), lengths),
        }
    )
