"""One layer: counters and memories (Liu 2024, section 3.4.4.3.1, Lemmas 15 and 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages.automata import automaton, every_input, simulate
from pipeline.models.automata import exact
from pipeline.studies.automata.constructions import (
    FOOTNOTE_14,
    LEMMA_15,
    LEMMA_16,
    ledger,
    refuted,
    row,
    verified,
    wrong,
)
from schemas import theory

LENGTHS = (8, 16, 32, 64)
SMALL, SHORT = (2, 3, 4, 8, 16, 31), (2, 3, 4, 5, 6, 7, 8, 16, 32, 64)  # states and lengths of a grid


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 15 and 16."""
    rng = stream(seed, "automata", theory_id)
    made = [*_counters(rng, entry), *_periodic(rng, entry), *_memories(rng, entry)]
    return theory.rows("automata", theory_id, LEMMA_15.source, made)


def _counters(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    T = entry.length
    for n in range(2, 9):
        known, q0 = automaton(f"c{n}"), n - 1
        built = exact.counter(n, q0, T)
        words = rng.integers(0, n, (entry.sequences, T))
        what = f"Lemma 15 counts modulo {n}"
        yield from verified(LEMMA_15, f"c{n}", what, built, words, simulate(known, words, q0))
        yield from ledger(LEMMA_15, f"c{n}", what, built)
    known, words = automaton("c2"), every_input(2, entry.short)
    yield from verified(
        LEMMA_15,
        "all",
        "Lemma 15 on C2",
        exact.counter(2, 0, entry.short),
        words,
        simulate(known, words),
        True,
        erratum="automata-lemma-15",
        form="corrected",
    )
    yield refuted(
        "lem-15.printed",
        "Lemma 15 with s -> T s mod n, half of the count",
        exact.counter(2, 0, entry.short, 1),
        words,
        simulate(known, words),
        LEMMA_15.source,
        "automata-lemma-15",
    )


def _periodic(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows on footnote 14: with sines the width no longer grows with the length."""
    T = entry.length
    for n in range(2, 9):
        known, q0 = automaton(f"c{n}"), n - 1
        built = exact.counter(n, q0, T, periodic=True)
        words, what = rng.integers(0, n, (entry.sequences, T)), f"Lemma 15 with sines counts modulo {n}"
        yield from verified(LEMMA_15, f"sines.c{n}", what, built, words, simulate(known, words, q0), source=FOOTNOTE_14)
        bounds = {**built.bounds, "mlp_width": n}
        yield from ledger(LEMMA_15, f"sines-c{n}", what, built, bounds)
    for n, length in ((2, entry.short), (3, min(entry.short, 7))):
        known, words = automaton(f"c{n}"), every_input(n, length)
        built = exact.counter(n, 0, length, periodic=True)
        what = f"Lemma 15 with sines counts modulo {n}"
        yield from verified(
            LEMMA_15, f"sines.all.c{n}", what, built, words, simulate(known, words), True, source=FOOTNOTE_14
        )
    for sines in (True, False):
        widths = [exact.counter(8, 0, length, periodic=sines).network.sizes["mlp_width"] for length in LENGTHS]
        yield row(
            f"lem-15.width.{'sines' if sines else 'relu'}",
            f"MLP width of the counter modulo 8 {'stays as it is' if sines else 'grows with the length'}: "
            "different widths",
            f"T = {', '.join(map(str, LENGTHS))}",
            len(set(widths)),
            "within",
            1 if sines else len(LENGTHS),
            tolerance=0.0,
            source=FOOTNOTE_14,
            detail=f"widths {', '.join(map(str, widths))}",
        )


def _memories(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for n, length in ((2, entry.length), (4, 2 * entry.length), (31, entry.length)):
        table = np.array([[q, *range(n)] for q in range(n)])
        known = type(automaton("c2"))(f"memory{n}", table, n - 1, (), ())
        words = rng.integers(0, n + 1, (entry.sequences, length)) * (rng.random((entry.sequences, length)) < 0.2)
        built, what = exact.memory(n, n - 1, length), f"Lemma 16 remembers one of {n} states"
        yield from verified(LEMMA_16, f"memory{n}", what, built, words, simulate(known, words))
        # The bound of the weights is the printed one, an erratum at small sizes.
        bounds = {**built.bounds, "norm": _printed_norm(n, length)}
        yield from ledger(LEMMA_16, f"memory{n}", what, built, bounds, apart=["norm"])
    grid = [(n, T) for n in SMALL for T in SHORT]
    norms = [exact.memory(n, 0, T).network.sizes["norm"] for n, T in grid]
    size = f"|Q| = {', '.join(map(str, SMALL))}; T = {', '.join(map(str, SHORT))}"
    metadata = {"source": LEMMA_16.source, "erratum": "automata-lemma-16-norm"}
    over = [norm / _printed_norm(*at) for norm, at in zip(norms, grid, strict=True)]
    worst = "|Q| = {}, T = {}".format(*grid[int(np.argmax(over))])
    yield row(
        "lem-16.norm.printed",
        "Weights exceed 2T log(|Q|T), as printed, where states or symbols are few: largest weight over it",
        size,
        max(over),
        ">=",
        1.001,
        form="printed",
        detail=f"larger in {sum(each > 1 for each in over)} of {len(over)} cases, most at {worst}",
        **metadata,
    )
    allowed = [max(4 * n + 2, T * math.log(16 * n * T)) for n, T in grid]
    yield row(
        "lem-16.norm.corrected",
        "They stay within max(4|Q| + 2, T log(16|Q|T)): the biases of the lookup (Lemma 10), and the sharpness that "
        "the proof takes: largest weight over it",
        size,
        largest(norm / bound for norm, bound in zip(norms, allowed, strict=True)),
        "<=",
        1.0 + 1e-12,
        form="corrected",
        **metadata,
    )
    known, words = automaton("memory3"), every_input(4, min(entry.short, 6))
    length = words.shape[1]
    states = simulate(known, words)
    for printed in (False, True):
        errors, _ = wrong(exact.memory(3, 0, length, printed), words, states)
        score = "1[⊥], as the text says" if printed else "2 · 1[⊥], as the matrices say"
        yield row(
            f"lem-16.score.{1 if printed else 2}.errors",
            f"A score of c(j/T - {score}: token errors",
            f"all {len(words)} inputs of length {length}",
            errors,
            "<=",
            0,
            **LEMMA_16.right,
        )


def _printed_norm(states: int, length: int) -> float:
    return 2 * length * math.log(states * length)
