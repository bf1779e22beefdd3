"""Permutation-reset components, cascades, and constant depth for solvable automata (Liu 2024, section 3.4.4.3.4)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import Automaton, automaton, every_input, generated, simulate
from pipeline.models.automata import exact
from pipeline.studies.automata.constructions import (
    FOOTNOTE_14,
    LEMMA_20,
    SIZES,
    SOURCE,
    THEOREM_11,
    ledger,
    refuted,
    row,
    verified,
    verified_all,
)
from schemas import theory

LEMMA_21, THEOREM_15 = SOURCE.format(".3.4, Lemma 21"), SOURCE.format(".3.2, Theorem 15")
LENGTHS = (8, 16, 32)
CASCADES = ("grid4", "grid6", "memory3", "abab", "c4")


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on cascades."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_permutation_reset(rng, entry),
        *_three_states(entry),
        *_networks(rng, entry),
        *_sines(rng, entry),
        *_levels(),
        *_foreign(),
        *_random(rng, entry),
    ]
    return theory.rows("automata", theory_id, LEMMA_21, made)


def _permutation_reset(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name, group in (("s3", "s3"), ("s4", "s4")):
        k = int(group[1])
        maps = [tuple(np.argsort(g).tolist()) for g in automata.generators("s", k)[-2 if k == 3 else 0 :][:2]] + [
            (q,) * k for q in (0, k - 1)
        ]
        known = Automaton(f"{name} with resets", np.array(maps).T, 1, (), ())
        T = entry.length
        words = rng.choice(4, (max(entry.sequences // 4, 2), T), p=[0.45, 0.45, 0.05, 0.05])
        built = exact.cascade_network(exact.one_level(maps, 1), 4, T)
        what = f"Lemma 20 on {k} points that {group.upper()} permutes and two symbols reset"
        yield from verified(LEMMA_20, name, what, built, words, simulate(known, words))
    sizes, order, simulator = built.network.sizes, math.factorial(4), exact.solvable(generated(maps[:2]))
    T, bounds = (entry.length, {"depth": 3 * math.log2(order) + 2, "dim": order + 4 + 4, "heads": 2 * order + 1})
    bounds |= {"head_dim": 4 + 3, "mlp_width": 20 * 4 * T * order + 4 * 4 + order**2 * 4}
    bounds["norm"] = 6 * 4 * T * math.log(T)
    larger = {size: f"automata-lemma-20-{size.replace('_', '-')}" for size in ("dim", "head_dim")}
    yield from ledger(LEMMA_20, "s4", "Lemma 20 on S4 on 4 points", built, bounds, **larger)
    reads = 2 * simulator.codes.shape[1] + 1
    metadata = {"erratum": "automata-lemma-20-inverse", "source": LEMMA_20.source}
    yield row(
        "lem-20.inverse.printed",
        "The last MLP does not read 2 repSize + 1 coordinates: coordinates over that",
        "S4 on 4 points",
        reads / (2 * simulator.size + 1),
        ">=",
        1.001,
        form="printed",
        **metadata,
    )
    read = built.network.layers[-1].mlp[0][0]
    yield row(
        "lem-20.inverse.corrected",
        "It reads 2 repDim + 1: coordinates with a weight",
        "S4 on 4 points",
        int(read.any(1).sum()),
        "within",
        reads,
        tolerance=0.0,
        form="corrected",
        **metadata,
    )
    for size, bound in (("dim", order + 4 + 4), ("head_dim", 4 + 3)):
        metadata = {"erratum": f"automata-lemma-20-{size.replace('_', '-')}", "source": LEMMA_20.source}
        yield row(
            f"lem-20.{size.replace('_', '-')}.printed",
            f"The claimed bound on the {SIZES[size]} does not follow from Theorem 16",
            "S4 on 4 points",
            sizes[size],
            ">=",
            bound + 1,
            form="printed",
            **metadata,
        )
        yield row(
            f"lem-20.{size.replace('_', '-')}.corrected",
            f"The {SIZES[size]} is linear in |G|: over 4 |G| + |Q| + 7",
            "S4 on 4 points",
            sizes[size] / (4 * order + 4 + 7),
            "<=",
            1,
            form="corrected",
            **metadata,
        )
    metadata = {"erratum": "automata-lemma-20-start"}
    flip = exact.one_level([(1, 0), (1, 1)], 1)
    known = Automaton("flip and reset", np.array([(1, 0), (1, 1)]).T, 1, (), ())
    words = every_input(2, entry.short)
    states = simulate(known, words)
    yield refuted(
        "lem-20.printed",
        "Lemma 20 without a start token that resets to q_0",
        exact.cascade_network(flip, 2, entry.short, pad_resets=False),
        words,
        states,
        LEMMA_20.source,
        metadata["erratum"],
    )
    right = exact.cascade_network(flip, 2, entry.short)
    yield from verified(
        LEMMA_20, "start", "Lemma 20 with one", right, words, states, True, form="corrected", **metadata
    )


def _tables(step: int) -> Iterator[Automaton]:
    """Yield every ``step``-th automaton of three states and two letters, from states in turn."""
    pairs = itertools.product(itertools.product(range(3), repeat=3), repeat=2)
    for k, columns in enumerate(pairs):
        if k % step == 0:
            yield Automaton(f"table {k}", np.array(columns).T, k % 3, (), ())


def _three_states(entry: Any) -> Iterator[dict[str, Any]]:
    words = every_input(2, min(entry.short, 6))
    step = 8 if entry.length > 20 else 100
    every = list(_tables(1 if step == 8 else step))
    instances = [(each, q0) for each in every for q0 in range(3)]
    yield row(
        "thm-15.three-states",
        "The cascade of permutation-reset components does what the automaton does: token errors",
        f"{len(every)} of the 729 automata of three states and two letters, from each state, all inputs of length "
        f"{words.shape[1]}",
        sum(
            int((automata.cascade(each, q0).simulate(words) != simulate(each, words, q0)).sum())
            for each, q0 in instances
        ),
        "<=",
        0,
        source=THEOREM_15,
    )
    cases, bad, tokens, depth, failing = [], 0, 0, 0, ""
    printed: list[tuple[Automaton, exact.Built, np.ndarray]] = []  # the first on which the printed form errs
    known = list(_tables(step))
    for each in known:
        states, built = simulate(each, words), automata.cascade(each)
        network = exact.cascade_network(built, 2, words.shape[1])
        cases.append((network, words, states))
        depth = max(depth, len(network.network.layers))
        same = built.simulate(words, same_position=True) != states
        bad, tokens = bad + bool(same.any()), tokens + int(same.sum())
        if same.any() and not failing:
            i = int(same.any(1).argmax())
            failing = f"{each.name}, next = {each.next.tolist()}, q_0 = {each.q0}, input {words[i].tolist()}"
            printed = [(each, exact.cascade_network(built, 2, words.shape[1], previous=False), states)]
    size = f"{len(known)} of the 729 automata of three states and two letters, all inputs of length {words.shape[1]}"
    rows = [
        *verified_all(
            THEOREM_11, "three-states", "Theorem 11 by cascades", cases, size, detail=f"depth at most {depth}"
        )
    ]
    yield from rows
    metadata = {"erratum": "automata-lemma-21", "source": LEMMA_21}
    yield row(
        "lem-21.printed",
        "A level that sees the others' states behind the current symbol: automata with errors",
        size,
        bad,
        ">=",
        1,
        form="printed",
        detail=f"{tokens} wrong tokens; first: {failing}",
        **metadata,
    )
    for of, network, states in printed:
        what = f"The network of that wiring, on {of.name}"
        yield refuted("lem-21.network.printed", what, network, words, states, LEMMA_21, metadata["erratum"])
    yield row(
        "lem-21.corrected",
        "A level that sees them before it, by a head on the position before: token errors",
        size,
        rows[0]["measured"],
        "<=",
        0,
        form="corrected",
        **metadata,
    )


def _networks(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name in CASCADES:
        known = automaton(name)
        words = rng.integers(0, known.next.shape[1], (max(entry.sequences // 4, 2), min(entry.length, 64)))
        built = exact.cascade_network(automata.cascade(known), known.next.shape[1], words.shape[1])
        what = f"Theorem 11 on {automata.shown(name)}"
        yield from verified(THEOREM_11, name, what, built, words, simulate(known, words))
        yield from ledger(THEOREM_11, name, what, built, _bounds(known, words.shape[1]))


def _bounds(known: Automaton, T: int) -> dict[str, float]:
    """Return what Lemma 21 claims; not the width of heads, which presumes Lemma 20's, an erratum."""
    n, letters = known.next.shape
    elements = automata.semigroup(known.maps)
    assert elements is not None
    t = len(elements)
    return {
        "depth": 3 * n**2 * math.log2(n) + 7 * n,
        "dim": 2**n * (t + n + 4) + 1,
        "heads": 2 ** (n + 1) * (t + 1),
        "mlp_width": 2**n * (20 * n * t * T + 4 * n + t**2 * n + float(n) ** (2**n) * letters),
        "norm": max(6 * n * T * math.log(T), 2**n * (t + 5 * n)) + 6 * max(n, letters),
    }


def _sines(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows on footnote 14: only counters need a width that grows with the length."""
    for name in ("abab", "c4"):
        known, T = automaton(name), min(entry.length, 64)
        cascade, letters = automata.cascade(known), known.next.shape[1]
        words = rng.integers(0, letters, (max(entry.sequences // 4, 2), T))
        built = exact.cascade_network(cascade, letters, T, periodic=True)
        what = f"Theorem 11 with sines on {automata.shown(name)}"
        states = simulate(known, words)
        yield from verified(THEOREM_11, f"sines.{name}", what, built, words, states, source=FOOTNOTE_14)
        for sines in (True, False):
            made = [exact.cascade_network(cascade, letters, length, periodic=sines) for length in LENGTHS]
            # The widest MLP may be one that applies permutations: layers are compared one by one.
            widths = {tuple(_width(layer.mlp) for layer in each.network.layers) for each in made}
            yield row(
                f"thm-11.width.{'sines' if sines else 'relu'}.{name}",
                f"MLP widths on {automata.shown(name)} {'with sines stay as they are' if sines else 'grow'}: "
                "different widths of the layers",
                f"T = {', '.join(map(str, LENGTHS))}",
                len(widths),
                "within",
                1 if sines else len(LENGTHS),
                tolerance=0.0,
                source=FOOTNOTE_14,
            )


def _width(mlp: exact.Mlp) -> int:
    return max((len(bias) for _, bias in mlp[:-1]), default=0)


def _levels() -> Iterator[dict[str, Any]]:
    """Yield which groups the levels of cascades have: none but trivial ones where the automaton is aperiodic."""
    for name in (*CASCADES, "grid9"):
        known = automaton(name)
        orders = [len(automata.generated(level.permutations)) for level in automata.cascade(known).levels]
        elements = automata.semigroup(known.maps)
        assert elements is not None
        trivial = max(orders) == 1
        free = automata.is_aperiodic(elements)
        yield row(
            f"thm-15.{name}",
            "Levels have no group but the trivial one exactly where the automaton has none: exceptions",
            f"{automata.shown(name)}, orders of the groups {', '.join(map(str, orders))}",
            float(trivial != free),
            "<=",
            0,
            source=THEOREM_15,
            detail="aperiodic" if free else "",
        )


def _foreign() -> Iterator[dict[str, Any]]:
    """Yield the row that levels of this cascade can have groups which the automaton does not have."""
    levels = automata.cascade(automaton("d6")).levels
    orders = [len(automata.generated(level.permutations)) for level in levels]
    bad = sum(not automata.is_solvable(level.permutations) for level in levels)
    yield row(
        "thm-15.d6",
        "Unlike the cascade of Theorem 15, whose groups divide the automaton's, this one can have levels "
        "whose group is not solvable where the automaton is: such levels of D6",
        f"orders of the groups {', '.join(map(str, orders))}",
        bad,
        ">=",
        1,
        source=THEOREM_15,
    )


def _random(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the row on random automata of four states and three letters; on five states some are refused."""
    instances, orders, T = [], 1, min(entry.length, 40)
    count = max(entry.sequences // 5, 1)
    for _ in range(count):
        known = Automaton("random", rng.integers(0, 4, (4, 3)), int(rng.integers(4)), (), ())
        words = rng.integers(0, 3, (4, T))
        built = automata.cascade(known)
        orders = max(orders, *(len(automata.generated(level.permutations)) for level in built.levels))
        instances.append((exact.cascade_network(built, 3, T), words, simulate(known, words)))
    yield from verified_all(
        THEOREM_11,
        "random",
        "Theorem 11 on random automata of four states and three letters",
        instances,
        f"{count} automata, T = {T}, groups of up to {orders} elements",
    )
    points = [tuple(np.argsort(g).tolist()) for g in automata.generators("a", 5)]
    try:
        exact.cascade_network(exact.one_level(points, 0), 3, 4)
        message = ""
    except SandglassError as error:
        message = str(error)
    yield row(
        "thm-11.refused",
        "A component whose group is A5 is refused",
        "A5 on 5 points",
        float("not solvable" in message),
        "within",
        1,
        tolerance=0.0,
        source=THEOREM_11.source,
        detail=message,
    )
