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
from pipeline.languages.automata import Automaton, automaton, every_input, simulate
from pipeline.models.automata import exact
from pipeline.studies.automata.constructions import SOURCE, refuted, row, verified, wrong
from schemas import theory

LEMMA_20, LEMMA_21 = (SOURCE.format(f".3.4, Lemma {n}") for n in (20, 21))
THEOREM_11, THEOREM_15 = SOURCE.format(".3, Theorem 11"), SOURCE.format(".3.2, Theorem 15")
CASCADES = ("grid4", "grid6", "memory3", "abab", "c4")


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on cascades."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_permutation_reset(rng, entry),
        *_three_states(entry),
        *_networks(rng, entry),
        *_levels(),
        *_foreign(),
        *_random(rng, entry),
    ]
    return theory.rows("automata", theory_id, LEMMA_21, made)


def _permutation_reset(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name, group in (("s3", "s3"), ("s4", "s4")):
        k = int(group[1])
        maps = [
            tuple(np.argsort(g).tolist()) for g in automata.generators("s", k)[-2 if k == 3 else 0 :][:2]
        ] + [(q,) * k for q in (0, k - 1)]
        known = Automaton(f"{name} with resets", np.array(maps).T, 1, (), ())
        T = entry.length
        words = rng.choice(4, (max(entry.sequences // 4, 2), T), p=[0.45, 0.45, 0.05, 0.05])
        built = exact.cascade_network(exact.one_level(maps, 1), 4, T)
        what = f"Lemma 20 on {k} points that {group.upper()} permutes and two symbols reset"
        yield from verified(f"lem-20.{name}", what, built, words, simulate(known, words), LEMMA_20)
    sizes, order = built.network.sizes, math.factorial(4)
    for size, bound in (("dim", order + 4 + 4), ("head_dim", 4 + 3)):
        about = {"erratum": f"automata-lemma-20-{size.replace('_', '-')}", "source": LEMMA_20}
        yield row(
            f"lem-20.{size.replace('_', '-')}.printed",
            f"The claimed bound on {size.replace('_', ' ')} does not follow from Theorem 16",
            "S4 on 4 points",
            sizes[size],
            ">=",
            bound + 1,
            form="printed",
            **about,
        )
        yield row(
            f"lem-20.{size.replace('_', '-')}.corrected",
            f"{size.replace('_', ' ')} is linear in |G|: over 4 |G| + |Q| + 7",
            "S4 on 4 points",
            sizes[size] / (4 * order + 4 + 7),
            "<=",
            1,
            form="corrected",
            **about,
        )
    about = {"erratum": "automata-lemma-20-start"}
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
        LEMMA_20,
        about["erratum"],
    )
    errors, _ = wrong(exact.cascade_network(flip, 2, entry.short), words, states)
    yield row(
        "lem-20.corrected",
        "Lemma 20 with one: token errors",
        f"all inputs of length {entry.short}",
        errors,
        "<=",
        0,
        source=LEMMA_20,
        form="corrected",
        **about,
    )


def _tables(step: int) -> Iterator[Automaton]:
    pairs = itertools.product(itertools.product(range(3), repeat=3), repeat=2)
    for k, columns in enumerate(pairs):
        if k % step == 0:
            yield Automaton(f"table {k}", np.array(columns).T, k % 3, (), ())


def _three_states(entry: Any) -> Iterator[dict[str, Any]]:
    words = every_input(2, min(entry.short, 6))
    step = 8 if entry.length > 20 else 100
    errors, off, bad, tokens, depth, failing = 0, 0.0, 0, 0, 0, ""
    known = list(_tables(step))
    for each in known:
        states, built = simulate(each, words), automata.cascade(each)
        network = exact.cascade_network(built, 2, words.shape[1])
        found, distance = wrong(network, words, states)
        errors, off, depth = errors + found, max(off, distance), max(depth, len(network.network.layers))
        same = built.simulate(words, same_position=True) != states
        bad, tokens = bad + bool(same.any()), tokens + int(same.sum())
        if same.any() and not failing:
            i = int(same.any(1).argmax())
            failing = f"{each.name}, next = {each.next.tolist()}, q_0 = {each.q0}, input {words[i].tolist()}"
    size = f"{len(known)} of the 729 automata of three states and two letters, all inputs of length {words.shape[1]}"
    yield row(
        "thm-11.three-states.errors",
        "Theorem 11 by cascades: token errors",
        size,
        errors,
        "<=",
        0,
        source=THEOREM_11,
        detail=f"depth at most {depth}",
    )
    yield row(
        "thm-11.three-states.deviation",
        "Theorem 11 by cascades: largest distance of an output from an integer",
        size,
        off,
        "<=",
        1e-6,
        source=THEOREM_11,
    )
    about = {"erratum": "automata-lemma-21", "source": LEMMA_21}
    yield row(
        "lem-21.printed",
        "A level that sees the others' states behind the current symbol: automata with errors",
        size,
        bad,
        ">=",
        1,
        form="printed",
        detail=f"{tokens} wrong tokens; first: {failing}",
        **about,
    )
    yield row(
        "lem-21.corrected",
        "A level that sees them before it, by a head on the position before: token errors",
        size,
        errors,
        "<=",
        0,
        form="corrected",
        **about,
    )


def _networks(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name in CASCADES:
        known = automaton(name)
        words = rng.integers(0, known.next.shape[1], (max(entry.sequences // 4, 2), min(entry.length, 64)))
        built = exact.cascade_network(automata.cascade(known), known.next.shape[1], words.shape[1])
        what = f"Theorem 11 on {automata.shown(name)}"
        yield from verified(f"thm-11.{name}", what, built, words, simulate(known, words), THEOREM_11)
        n = len(known.next)
        bound = 3 * n**2 * math.log2(n) + 7 * n
        yield row(
            f"ledger.thm-11.{name}.depth",
            f"{what}: depth stays within 3|Q|² log|Q| + 7|Q|",
            "",
            built.network.sizes["depth"],
            "<=",
            bound,
            source=THEOREM_11,
        )


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
            "An automaton with a group has a level with a group: exceptions",
            f"{automata.shown(name)}, orders of the groups {', '.join(map(str, orders))}",
            float(trivial and not free),
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
    errors, orders, T = 0, 1, min(entry.length, 40)
    count = max(entry.sequences // 10, 1)
    for _ in range(count):
        known = Automaton("random", rng.integers(0, 4, (4, 3)), int(rng.integers(4)), (), ())
        words = rng.integers(0, 3, (4, T))
        built = automata.cascade(known)
        orders = max(orders, *(len(automata.generated(level.permutations)) for level in built.levels))
        errors += wrong(exact.cascade_network(built, 3, T), words, simulate(known, words))[0]
    yield row(
        "thm-11.random.errors",
        "Theorem 11 on random automata of four states and three letters: token errors",
        f"{count} automata, T = {T}, groups of up to {orders} elements",
        errors,
        "<=",
        0,
        source=THEOREM_11,
    )
    points = [tuple(np.argsort(g).tolist()) for g in automata.generators("a", 5)]
    try:
        exact.cascade_network(exact.one_level(points, 0), 3, 4)
        said = ""
    except SandglassError as error:
        said = str(error)
    yield row(
        "thm-11.refused",
        "A component whose group is A5 is refused",
        "A5 on 5 points",
        float("not solvable" in said),
        "within",
        1,
        tolerance=0.0,
        source=THEOREM_11,
        detail=said,
    )
