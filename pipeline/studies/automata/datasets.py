"""Inputs of every task with their states (Liu 2024, sections 3.4.5.1.1 and 3.4.5.2).

No sequence of validation, of the test, or of a test at the training length is one of training: short inputs recur, and
at length 100, as published, none does. Of the law without those this leaves the law, where all inputs are as probable.
Sets with other probabilities or numbers of ones, where a few inputs have most of the weight, stay as they are drawn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import BERNOULLI, Ints
from pipeline.store import tables
from schemas.automata.datasets import RECURRING, SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.automata.params import Dataset

__all__ = ["SCHEMA", "generate"]

Split = tuple[str, tuple[Ints, Ints], float | None, int | None]  # name, tokens and states, p1, ones
ROUNDS = 1000  # draws of a set, after which nearly all inputs must have occurred in training


def generate(entry: Dataset, key: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the sequences of the dataset ``key``, and no metadata: every split has a stream of its own."""
    parts = [
        _frame(name, *made)
        for name in entry.tasks
        for made in _splits(entry, name, functools.partial(stream, seed, entry.study, key, name))
    ]
    return pl.concat(parts), {}


def _splits(entry: Dataset, task: str, rng: Callable[..., np.random.Generator]) -> Iterator[Split]:
    train = automata.sample(task, entry.length, entry.train, rng("train"))
    yield "train", train, None, None
    known = set() if task in RECURRING else {row.tobytes() for row in train[0]}
    for split in ("validation", "test"):
        yield split, _unseen(task, entry.length, entry.held, rng(split), known), None, None
    probes = entry.probes or 0
    for p1 in entry.probabilities or []:
        made = automata.sample(task, entry.length, probes, rng("probability", str(p1)), p1, BERNOULLI)
        yield "probability", made, p1, None
    for ones in range(0, entry.length + 1, entry.counts) if entry.counts else ():
        tokens = automata.counted(entry.length, ones, probes, rng("count", ones))
        yield "count", (tokens, automata.simulate(automata.automaton(task), tokens)), None, ones
    for length in entry.lengths or []:
        seen = known if length == entry.length else set()
        yield "length", _unseen(task, length, probes, rng("length", length), seen), None, None


def _unseen(task: str, length: int, count: int, rng: np.random.Generator, known: set[bytes]) -> tuple[Ints, Ints]:
    """Return ``count`` inputs with their states that are drawn as those of training, without those that are ``known``.

    Raises SandglassError where next to all inputs are known.
    """
    kept: list[tuple[Ints, Ints]] = []
    lacking = count
    for _ in range(ROUNDS):
        tokens, states = automata.sample(task, length, count, rng)
        new = [row.tobytes() not in known for row in tokens] if known else slice(None)
        kept.append((tokens[new][:lacking], states[new][:lacking]))
        lacking -= len(kept[-1][0])
        if not lacking:
            return np.concatenate([each[0] for each in kept]), np.concatenate([each[1] for each in kept])
    raise SandglassError(
        f"{task}: next to all inputs of length {length} are among the training sequences, so that none is left to test "
        "on: raise length, or lower train"
    )


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
