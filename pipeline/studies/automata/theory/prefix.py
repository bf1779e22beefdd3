"""Theorem 10: any semiautomaton in logarithmic depth, by prefix composition (Liu 2024, section 3.4.4.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions
from pipeline.languages import automata
from pipeline.languages.automata import Automaton, Ints, automaton, simulate
from pipeline.models.automata import exact
from pipeline.studies.automata.constructions import (
    NEAR,
    THEOREM_10,
    exact_depth,
    ledger,
    refuted,
    row,
    verified,
    verified_all,
    wrong,
)
from schemas import theory

DEPTHS = (4, 8, 16, 32, 64, 128)
SHARPNESS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorem 10."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_three_states(entry.short),
        *_random(rng, entry),
        *_tasks(rng, entry),
        *_five_points(rng, entry),
        *_depth(stream(seed, "automata", theory_id, "depth")),
        *_printed(rng),
        *_temperature(rng, entry),
    ]
    return theory.rows("automata", theory_id, THEOREM_10.source, made)


def _three_states(length: int) -> Iterator[dict[str, Any]]:
    """All 729 automata of three states and two letters: words over the 27 maps with at most two letters."""
    maps = list(itertools.product(range(3), repeat=3))
    words = {
        tuple((a, b)[i] for i in choice)
        for a, b in itertools.combinations(range(27), 2)
        for choice in itertools.product((0, 1), repeat=length)
    }
    tokens = np.array(sorted(words))
    known = Automaton("all", np.array(maps).T, 0, tuple("012"), tuple(map(str, maps)))
    for q0 in range(3):
        built = exact.prefix_composition(known.next, q0, length)
        what = f"Theorem 10 on all 729 automata of three states and two letters from state {q0}"
        yield from verified(THEOREM_10, f"three-states.{q0}", what, built, tokens, simulate(known, tokens, q0), True)


def _random(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    instances, tokens = [], 0
    for _ in range(max(entry.sequences // 4, 2)):
        n, symbols, length = int(rng.integers(2, 6)), int(rng.integers(1, 5)), int(rng.integers(2, 33))
        known = Automaton("random", rng.integers(0, n, (n, symbols)), int(rng.integers(n)), (), ())
        words = rng.integers(0, symbols, (8, length))
        built = exact.prefix_composition(known.next, known.q0, length)
        instances.append((built, words, simulate(known, words)))
        tokens += words.size
    what, size = "Theorem 10 on random automata", f"|Q| <= 5, T <= 32, {tokens} tokens"
    yield from verified_all(THEOREM_10, "random", what, instances, size)


def _tasks(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name in ("c2", "q8", "grid9", "abab"):
        known = automaton(name)
        words = rng.integers(0, known.next.shape[1], (max(entry.sequences // 4, 2), entry.length))
        built = exact.prefix_composition(known.next, known.q0, entry.length)
        yield from verified(
            THEOREM_10, name, f"Theorem 10 on {automata.shown(name)}", built, words, simulate(known, words)
        )
        yield from ledger(
            THEOREM_10, name, f"Theorem 10 on {automata.shown(name)}", built, mlp_width="automata-theorem-10-width"
        )
        n = len(known.next)
        yield row(
            f"thm-10.{name}.width",
            "MLP width is 4|Q|² + |Q|, with the four units of each indicator",
            f"|Q| = {n}",
            built.network.sizes["mlp_width"],
            "within",
            4 * n * n + n,
            tolerance=0.0,
            erratum="automata-theorem-10-width",
            form="corrected",
        )


def _five_points(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """S_5 through its action on five points: the pads are the identity, so a position holds a whole permutation."""
    known = automaton("s5")
    inverse = np.array([np.argsort(g) for g in automata.generators("s", 5)])
    words = rng.integers(0, len(inverse), (max(entry.sequences // 4, 2), entry.length))
    states = simulate(known, words)
    decks = np.array([[int(c) - 1 for c in name] for name in known.states])[states]  # new[i] = old[g[i]]
    errors, off = 0.0, []
    for point in range(5):
        built = exact.prefix_composition(inverse.T, None, entry.length, readout=point)
        outputs, distance = built.run(words)
        off.append(distance)
        errors += exceptions(np.take_along_axis(decks, np.clip(outputs, 0, 4)[..., None], 2)[..., 0] != point, distance)
    yield row(
        "thm-10.s5.errors",
        "Theorem 10 on S5 through five points, with the identity as padding: wrong entries",
        f"T = {entry.length}, {words.size} tokens",
        errors,
        "<=",
        0,
        **THEOREM_10.right,
    )
    yield row(
        "thm-10.s5.deviation",
        "Theorem 10 on S5 through five points: largest distance of an output from an integer",
        f"T = {entry.length}, {words.size} tokens",
        largest(off),
        "<=",
        NEAR,
        **THEOREM_10.sharp,
    )
    yield row(
        "thm-10.s5.depth",
        "Depth on S5, which no construction of constant depth covers",
        f"T = {entry.length}",
        len(built.network.layers),
        "within",
        math.ceil(math.log2(entry.length)),
        tolerance=0.0,
    )


def _depth(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    known = automaton("c3")
    for T in DEPTHS:
        words = rng.integers(0, 3, (4, T))
        yield row(
            f"thm-10.depth.{T}",
            "Depth of a network without an error is the logarithm of the length",
            f"T = {T}, {words.size} tokens",
            exact_depth(exact.prefix_composition(known.next, 0, T), words, simulate(known, words)),
            "within",
            math.ceil(math.log2(T)),
            tolerance=0.0,
            claim="2",
            part="Theorem 10",
        )


def _printed(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    forms: dict[str, tuple[str, str, str, dict[str, Any]]] = {
        "sign": ("grid4", "with the rotation by -π 2^(l-1)/T'", "with the rotation by +π 2^(l-1)/T'", {"sign": -1}),
        "value": ("grid4", "with W_V that reads the left block", "with W_V that reads the right block", {"value": "L"}),
        "readout": ("c4", "read out at another state than q_0", "read out at q_0", {"readout": 3}),
    }
    for name, (task, printed, right, changed) in forms.items():
        known = automaton(task)
        words = rng.integers(0, known.next.shape[1], (64, 16))
        states, metadata = simulate(known, words), {"erratum": f"automata-theorem-10-{name}"}
        shown = automata.shown(task)
        built = exact.prefix_composition(known.next, 0, 16, **changed)
        if name == "value":
            built = replace(built, embed=_left_empty(built.embed, len(known.next)))
        yield refuted(
            f"thm-10.printed.{name}",
            f"Theorem 10 {printed}, on {shown}",
            built,
            words,
            states,
            THEOREM_10.source,
            **metadata,
        )
        errors, _ = wrong(exact.prefix_composition(known.next, 0, 16), words, states)
        yield row(
            f"thm-10.corrected.{name}.errors",
            f"Theorem 10 {right}, on {shown}: token errors",
            "64 inputs of length 16",
            errors,
            "<=",
            0,
            form="corrected",
            **metadata | THEOREM_10.right,
        )


def _left_empty(embed: Callable[[Ints], exact.Array], states: int) -> Callable[[Ints], exact.Array]:
    """Return an embedding as it is printed, which fills the right block alone; the left one has the first columns."""

    def embedded(tokens_NxT: Ints) -> exact.Array:
        rows = embed(tokens_NxT)
        rows[..., :states] = 0
        return rows

    return embedded


def _temperature(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    known = Automaton("random", rng.integers(0, 4, (4, 3)), 0, (), ())
    words = rng.integers(0, 3, (max(entry.sequences // 4, 2), 32))
    states = simulate(known, words)
    for sharp in SHARPNESS:
        share = wrong(exact.prefix_composition(known.next, 0, 32, sharpness=sharp), words, states)[0] / words.size
        enough = sharp >= 1
        yield row(
            f"thm-10.temperature.{sharp:g}",
            f"With γ = {sharp:g} T'² the network {'is exact' if enough else 'errs'}: share of wrong tokens",
            "|Q| = 4, T = 32",
            share,
            "<=" if enough else ">=",
            0.0 if enough else 0.01,
            group="sharpness",
            x=sharp,
        )
    T = entry.length
    words = rng.integers(0, 3, (2, T))
    errors, _ = wrong(exact.prefix_composition(known.next, 0, T), words, simulate(known, words), np.float32)
    yield row("thm-10.float32", "Single precision is enough: token errors", f"|Q| = 4, T = {T}", errors, "<=", 0)
