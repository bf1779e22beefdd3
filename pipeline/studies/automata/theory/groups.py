"""Direct, semidirect and wreath products, and all solvable groups (Liu 2024, section 3.4.4.3.3; Theorems 13, 14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from sympy.combinatorics import Permutation, PermutationGroup

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import Automaton, Group, automaton, every_input, generated, simulate
from pipeline.models.automata import exact
from pipeline.models.automata.exact import Simulator
from pipeline.studies.automata.constructions import (
    FOOTNOTE_14,
    LEMMA_17,
    LEMMA_18,
    LEMMA_19,
    THEOREM_16,
    Construction,
    exact_depth,
    ledger,
    refuted,
    row,
    verified,
)
from schemas import theory

BARRIER = "Liu 2024, section 3.4.1.2, Theorem 13; section 3.4.4.3.2, Theorem 14"
GROUPS = tuple(name for name in automata.TASKS if name not in ("dyck42", "grid4", "grid9"))
UNSOLVABLE = ("a5", "s5")
LENGTHS = (8, 16, 32, 64)
SHORT = 600  # inputs, of which there are at most as many at the length at which all are tried
POINTS = {"a4": 4, "s4": 4, "d6": 3, "d8": 4}  # on which the group acts faithfully; else its order


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on groups."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_direct(rng, entry),
        *_semidirect(rng, entry),
        *_dihedral(),
        *_wreath(rng, entry),
        *_embedded(),
        *_solvable(rng, entry),
        *_depths(stream(seed, "automata", theory_id, "depth")),
        *_refused(),
        *_factors(),
        *_counted(),
    ]
    return theory.rows("automata", theory_id, THEOREM_16.source, made)


def _words(rng: np.random.Generator, n_symbols: int, entry: Any) -> np.ndarray:
    return rng.integers(0, n_symbols, (max(entry.sequences // 2, 2), entry.length))


def _products(group: Group, tokens: np.ndarray) -> np.ndarray:
    """Return the element s_t ... s_1 of each position, by the table of products; symbols are all elements."""
    canonical = Automaton("canonical", group.mul.T, 0, (), ())  # next[g, h] = h g
    return simulate(canonical, tokens)


def _check_group(
    of: Construction,
    instance: str,
    what: str,
    simulator: Simulator,
    rng: np.random.Generator,
    entry: Any,
    bounds: dict[str, float],
) -> Iterator[dict[str, Any]]:
    words = _words(rng, len(simulator.group), entry)
    built = exact.group_network(simulator, range(len(simulator.group)), entry.length, 1, what)
    yield from verified(of, instance, what, built, words, _products(simulator.group, words))
    yield from ledger(of, instance, what, built, bounds)


def _sizes(simulator: Simulator, length: int) -> dict[str, float]:
    """Return the sizes of a component's network; dimensions of its own for padding and position are among them."""
    return exact.group_network(simulator, [0], length, 1, "").network.sizes


def _direct_bounds(parts: Sequence[Simulator], length: int) -> dict[str, float]:
    """Return what Lemma 17 claims of the product."""
    every = [_sizes(part, length) for part in parts]
    sums, most = ("dim", "heads", "mlp_width"), ("depth", "head_dim", "norm")
    bounds = {size: sum(each[size] for each in every) for size in sums}
    return bounds | {size: max(each[size] for each in every) for size in most}


def _semidirect_bounds(normal: Simulator, acting: Simulator, length: int) -> dict[str, float]:
    """Return what Lemma 18 claims of the product; repSize is the largest integer of a code, and 1."""
    N, H = _sizes(normal, length), _sizes(acting, length)
    code = 6 * max(normal.size, acting.size), normal.codes.shape[1] + acting.codes.shape[1]
    return {
        "depth": N["depth"] + H["depth"] + 2,
        "dim": N["dim"] + H["dim"],
        "heads": max(N["heads"], H["heads"]),
        "head_dim": max(N["head_dim"], H["head_dim"]),
        "mlp_width": max(N["mlp_width"], H["mlp_width"], 4 * len(normal.group) * len(acting.group)),
        "norm": max(N["norm"], H["norm"], *code),
    }


def _wreath_bounds(inner: Simulator, p: int, length: int) -> dict[str, float]:
    """Return what Lemma 19 claims of the wreath product by the cyclic group of p elements."""
    N, H = _sizes(inner, length), _sizes(exact.cyclic(generated([(*range(1, p), 0)])), length)
    return {
        "depth": N["depth"] + H["depth"] + 2,
        "dim": p * N["dim"] + H["dim"],
        "heads": max(p * N["heads"], H["heads"]),
        "head_dim": max(N["head_dim"], H["head_dim"]),
        "mlp_width": max(p * N["mlp_width"], H["mlp_width"], 5 * p * p * len(inner.group)),
        "norm": max(N["norm"], H["norm"], 6 * p),
    }


def _direct(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    counters = {n: exact.cyclic(generated([(*range(1, n), 0)])) for n in (2, 3)}
    for name, parts in (("c2c2c2", (2, 2, 2)), ("c2c3", (2, 3))):
        simulator = counters[parts[0]]
        for n in parts[1:]:
            simulator = exact.direct(simulator, counters[n])
        what = f"Lemma 17 on {' × '.join(f'C{n}' for n in parts)}"
        bounds = _direct_bounds([counters[n] for n in parts], entry.length)
        yield from _check_group(LEMMA_17, name, what, simulator, rng, entry, bounds)
        yield row(
            f"lem-17.{name}.depth",
            f"{what}: depth",
            "",
            len(simulator.stages),
            "within",
            1,
            tolerance=0.0,
            source=LEMMA_17.source,
        )


def _turning(n: int) -> tuple[Simulator, Simulator]:
    return exact.cyclic(generated([(*range(1, n), 0)])), exact.cyclic(generated([(1, 0)]))


def _flipped(group: Group) -> Callable[[int, int], int]:
    return lambda h, g: int(group.inverse[g]) if h else g


def semidirect_groups() -> dict[str, tuple[Simulator, int, tuple[Simulator, Simulator]]]:
    """Return the examples of Lemma 18, their depths and their two parts: D6, D8, A4 and S4."""
    examples: dict[str, tuple[Simulator, int, tuple[Simulator, Simulator]]] = {}
    for name, n in (("d6", 3), ("d8", 4)):
        turn, flip = _turning(n)
        examples[name] = exact.semidirect(turn, flip, _flipped(turn.group)), 4, (turn, flip)
    klein = exact.direct(*(exact.cyclic(generated([(1, 0)])) for _ in range(2)))
    spin = exact.cyclic(generated([(1, 2, 0)]))
    place = {tuple(code): i for i, code in enumerate(klein.codes.tolist())}
    ring = [place[1, 0], place[0, 1], place[1, 1]]

    def cycled(power: int, g: int) -> int:
        return g if g not in ring else ring[(ring.index(g) + power) % 3]

    alternating = exact.semidirect(klein, spin, lambda h, g: cycled(int(spin.codes[h, 0]), g))
    examples["a4"] = alternating, 4, (klein, spin)
    dihedral = examples["d6"][0]

    def moved(h: int, g: int) -> int:
        """D6 as all permutations of the three involutions of the Klein group."""
        rotation, flipped = dihedral.codes[h].tolist()
        if g not in ring:
            return g
        at = ring.index(g)
        return ring[((-at if flipped else at) + rotation) % 3]

    examples["s4"] = exact.semidirect(klein, dihedral, moved), 7, (klein, dihedral)
    return examples


def _semidirect(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name, (simulator, depth, parts) in semidirect_groups().items():
        bounds = _semidirect_bounds(*parts, entry.length)
        what = f"Lemma 18 on {automata.shown(name)}"
        orders = generated(automaton(name).maps).orders()
        yield from _check_group(LEMMA_18, name, what, simulator, rng, entry, bounds)
        yield row(
            f"lem-18.{name}.depth",
            f"{what}: depth, that of both simulators and 2",
            "",
            len(simulator.stages),
            "within",
            depth,
            tolerance=0.0,
            source=LEMMA_18.source,
        )
        yield row(
            f"lem-18.{name}.orders",
            f"{what}: orders of elements that differ from those of the task's group",
            ", ".join(f"{count} of order {order}" for order, count in orders.items()),
            float(simulator.group.orders() != orders),
            "<=",
            0,
            source=LEMMA_18.source,
        )

    turn, flip = _turning(3)
    words = every_input(6, min(entry.short, 4))
    metadata, size = {"erratum": "automata-lemma-18"}, words.shape[1]
    for third in (flip, turn):
        simulator = exact.semidirect(turn, flip, _flipped(turn.group), third=third)
        built = exact.group_network(simulator, range(6), size, 1, "D6")
        states = _products(simulator.group, words)
        if third is flip:
            what = "Lemma 18 on D6 with a copy of sim_H in the third part of the cascade"
            yield refuted("lem-18.printed", what, built, words, states, LEMMA_18.source, **metadata)
        else:
            what, form = "Lemma 18 on D6 with a copy of sim_N there", "corrected"
            yield from verified(LEMMA_18, "third", what, built, words, states, True, form=form, **metadata)


def _dihedral() -> Iterator[dict[str, Any]]:
    for n in (3, 4):
        words = every_input(2, 8)
        direction = np.cumsum(words, 1) % 2
        place = np.cumsum(np.where(words == 0, 1 - 2 * direction, 0), 1) % n
        states = simulate(automaton(f"d{2 * n}"), words)
        yield row(
            f"lem-18.d{2 * n}.closed-form",
            "The car's place is the sum of directions at its advances: states that differ from the table",
            f"all {len(words)} inputs of length 8",
            int((2 * place + direction != states).sum()),
            "<=",
            0,
            source=LEMMA_18.source,
        )


def _wreath(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows on whole wreath products by cyclic groups (Lemma 19)."""
    for n, p in ((2, 2), (2, 3), (3, 2)):
        inner = exact.cyclic(generated([(*range(1, n), 0)]))
        simulator, what = exact.wreath(inner, p), f"Lemma 19 on C{n} ≀ C{p}"
        bounds = _wreath_bounds(inner, p, entry.length)
        yield from _check_group(LEMMA_19, f"c{n}c{p}", what, simulator, rng, entry, bounds)
    words = every_input(8, min(entry.short, 4))
    simulator = exact.wreath(exact.cyclic(generated([(1, 0)])), 2)
    built = exact.group_network(simulator, range(8), words.shape[1], 1, "C2 ≀ C2")
    states = _products(simulator.group, words)
    yield from verified(LEMMA_19, "all", "Lemma 19 on C2 ≀ C2", built, words, states, True)
    q8 = automaton("q8")
    group = generated(q8.maps)
    simulator, what = exact.solvable(group, counters=True), "Lemma 19 on Q8 over C4, a counter modulo 4"
    words = _words(rng, 8, entry)
    built = exact.group_network(simulator, range(8), entry.length, 1, "Q8")
    yield from verified(LEMMA_19, "q8", what, built, words, _products(group, words))
    yield row(
        "lem-19.q8.depth",
        f"{what}: depth",
        "",
        len(simulator.stages),
        "within",
        4,
        tolerance=0.0,
        source=LEMMA_19.source,
    )


def _embedded() -> Iterator[dict[str, Any]]:
    """Yield the rows that g -> (f_g, kappa(g)) keeps products and is injective (Krasner and Kaloujnine)."""
    for name in ("s3", "d8", "q8", "a4", "s4"):
        group = generated(automaton(name).maps)
        simulator = exact.solvable(group)
        inner = exact.solvable(group.subgroup(sorted(group.maximal_normal())))
        p, width = len(group) // len(inner.group), inner.codes.shape[1]
        place = {tuple(code): i for i, code in enumerate(inner.codes.tolist())}
        codes = simulator.codes.tolist()
        f = [[place[tuple(code[x * width : (x + 1) * width])] for x in range(p)] for code in codes]
        h = [code[-1] for code in codes]
        mul = inner.group.mul
        bad = sum(
            any(mul[f[a][x], f[b][(x + h[a]) % p]] != f[int(group.mul[a, b])][x] for x in range(p))
            or (h[a] + h[b]) % p != h[int(group.mul[a, b])]
            for a in range(len(group))
            for b in range(len(group))
        )
        yield row(
            f"lem-19.embedding.{name}",
            f"The universal embedding of {automata.shown(name)} in a wreath product: pairs whose product it "
            "does not keep, and elements that share an image",
            f"all {len(group) ** 2} pairs",
            bad + len(group) - len({tuple(code) for code in codes}),
            "<=",
            0,
            source=LEMMA_19.source,
        )


def _solvable(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name in GROUPS:
        if name in UNSOLVABLE:
            continue
        known = automaton(name)
        group = generated(known.maps)
        simulator = exact.solvable(group)
        words = _words(rng, known.next.shape[1], entry)
        symbols = [group.index[each] for each in known.maps]
        degree = POINTS.get(name, len(group))
        built = exact.of_states(
            exact.group_network(simulator, symbols, entry.length, degree, name), simulator, known.q0
        )
        what = f"Theorem 16 on {automata.shown(name)}"
        yield from verified(THEOREM_16, name, what, built, words, simulate(known, words))
        yield from ledger(THEOREM_16, name, what, built)
        yield from _built(name, what, known, simulator, symbols)
        if name in ("q8", "s4"):
            sines = exact.group_network(simulator, symbols, entry.length, degree, name, periodic=True)
            sines = exact.of_states(sines, simulator, known.q0)
            what = f"{what}, with sines"
            states = simulate(known, words)
            yield from verified(THEOREM_16, f"sines.{name}", what, sines, words, states, source=FOOTNOTE_14)
    metadata = {"erratum": "automata-theorem-16", "source": THEOREM_16.source}
    depth = len(exact.solvable(generated(automaton("s4").maps)).stages)
    yield row(
        "thm-16.printed",
        "The length of the series, ℓ <= log T, does not bound it: depth on S4 over 3 log T",
        "T = 4",
        depth / (3 * math.log2(4)),
        ">=",
        1.001,
        form="printed",
        **metadata,
    )
    yield row(
        "thm-16.corrected",
        "With ℓ <= log |G|, depth on S4 over 3 log |G|",
        "|G| = 24",
        depth / (3 * math.log2(24)),
        "<=",
        1,
        form="corrected",
        **metadata,
    )
    wreath = {"erratum": "automata-lemma-19", "source": LEMMA_19.source}
    simulator = exact.solvable(generated(automaton("s4").maps))
    inner = exact.solvable(simulator.group.subgroup(sorted(simulator.group.maximal_normal())))
    yield row(
        "lem-19.copies",
        "The construction holds repDim(N) channels for each element of the quotient, |N| · dim would "
        "be more: channels over 2 repDim(N) + 1",
        "S4 over A4",
        simulator.codes.shape[1] / (2 * inner.codes.shape[1] + 1),
        "within",
        1,
        tolerance=0.0,
        form="corrected",
        **wreath,
    )
    yield row(
        "lem-19.printed",
        "|N| · dim channels, as printed, are more than the 2 |G| that Theorem 16 allows: channels over 2 |G|",
        "S4 over A4",
        len(inner.group) * inner.codes.shape[1] / (2 * 24),
        ">=",
        1.001,
        form="printed",
        **wreath,
    )


def _built(
    name: str, what: str, known: Automaton, simulator: Simulator, symbols: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Yield the row that the construction is built for a group, by its answers on all inputs of a length."""
    letters = known.next.shape[1]
    words = every_input(letters, int(math.log(SHORT) / math.log(letters)))
    degree = POINTS.get(name, len(simulator.group))
    built = exact.group_network(simulator, symbols, words.shape[1], degree, name)
    built = exact.of_states(built, simulator, known.q0)
    # Those of claim 1 count other inputs: long ones, drawn at random.
    yield from verified(
        THEOREM_16, f"{name}.all", what, built, words, simulate(known, words), True, claim="3", part="built"
    )


def _depths(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for name in ("d8", "s4"):
        known = automaton(name)
        group = generated(known.maps)
        simulator = exact.solvable(group)
        symbols = [group.index[each] for each in known.maps]
        depths = []
        for T in LENGTHS:
            words = rng.integers(0, len(symbols), (4, T))
            built = exact.group_network(simulator, symbols, T, POINTS[name], name)
            built = exact.of_states(built, simulator, known.q0)
            depths.append(exact_depth(built, words, simulate(known, words)))
        yield row(
            f"thm-16.depth.{name}",
            f"Depth of networks on {automata.shown(name)} that make no error does not depend on the length: different "
            "depths",
            f"T = {', '.join(map(str, LENGTHS))}, 4 inputs each",
            math.nan if any(map(math.isnan, depths)) else len(set(depths)),
            "<=",
            1,
            claim="2",
            part="Theorem 16",
        )
    group = generated(automaton("s4").maps)
    for sines in (True, False):
        widths = {
            exact.group_network(exact.solvable(group), [0], T, 4, "s4", periodic=sines).network.sizes["mlp_width"]
            for T in LENGTHS
        }
        yield row(
            f"thm-16.width.{'sines' if sines else 'relu'}",
            f"MLP width on S4 {'with sines stays as it is' if sines else 'grows with the length'}: different widths",
            f"T = {', '.join(map(str, LENGTHS))}",
            len(widths),
            "within",
            1 if sines else len(LENGTHS),
            tolerance=0.0,
            source=FOOTNOTE_14,
        )


def _refused() -> Iterator[dict[str, Any]]:
    for name in UNSOLVABLE:
        try:
            exact.solvable(generated(automaton(name).maps))
            message = ""
        except SandglassError as error:
            message = str(error)
        yield row(
            f"thm-16.refused.{name}",
            f"{automata.shown(name)} is refused, as it is not solvable",
            "",
            float("not solvable" in message),
            "within",
            1,
            tolerance=0.0,
            detail=message,
            claim="3",
            part=name.upper(),
        )


def _factors() -> Iterator[dict[str, Any]]:
    """Yield the classification that Theorem 13 needs: which tasks are solvable, by factors and by derived series."""
    for name in GROUPS:
        maps = automaton(name).maps
        factors = automata.factors(generated(maps))
        cyclic = all(factor.startswith("C") for factor in factors)
        agree = cyclic == automata.is_solvable(maps)
        yield row(
            f"thm-13.{name}",
            f"{automata.shown(name)} is {'' if cyclic else 'not '}solvable: its factors agree with its derived series",
            f"factors {', '.join(factors)}",
            float(agree),
            "within",
            1,
            tolerance=0.0,
            source=BARRIER,
            claim="3",
            part="classification",
        )
    metadata = {"erratum": "automata-footnote-17", "source": "Liu 2024, section 3.4.1.2, footnote 17"}
    points = [tuple(np.argsort(g).tolist()) for g in automata.generators("a", 5)]
    yield row(
        "fn-17.printed",
        "The smallest automaton that is not solvable has fewer than 60 states: states of A5 on points",
        "5 points",
        float(len(points[0]) if not automata.is_solvable(points) else 60),
        "<=",
        59,
        form="printed",
        **metadata,
    )
    yield row(
        "fn-17.corrected",
        "60 states is right for automata whose states are group elements: elements of A5",
        "",
        len(generated(points)),
        "within",
        60,
        tolerance=0.0,
        form="corrected",
        **metadata,
    )


# Turns of the faces of Rubik's cube, as cycles of its 48 moving stickers: 1 to 8 on top, 9 to 16 left, 17 to 24 in
# front, 25 to 32 right, 33 to 40 at the back, 41 to 48 below, each face row by row without its centre.
TURNS = (
    "1 3 8 6, 2 5 7 4, 9 33 25 17, 10 34 26 18, 11 35 27 19",
    "9 11 16 14, 10 13 15 12, 1 17 41 40, 4 20 44 37, 6 22 46 35",
    "17 19 24 22, 18 21 23 20, 6 25 43 16, 7 28 42 13, 8 30 41 11",
    "25 27 32 30, 26 29 31 28, 3 38 43 19, 5 36 45 21, 8 33 48 24",
    "33 35 40 38, 34 37 39 36, 3 9 46 32, 2 12 47 29, 1 14 48 27",
    "41 43 48 46, 42 45 47 44, 14 22 30 38, 15 23 31 39, 16 24 32 40",
)


def _counted() -> Iterator[dict[str, Any]]:
    """Yield the order of the group of Rubik's cube (Example 7), which its six turns generate."""
    turns = [[[int(each) - 1 for each in cycle.split()] for cycle in turn.split(", ")] for turn in TURNS]
    order = int(PermutationGroup([Permutation(turn, size=48) for turn in turns]).order())
    products = 3**8 * math.factorial(8) * 2**12 * math.factorial(12)
    metadata = {"erratum": "automata-example-7", "source": "Liu 2024, Example 7"}
    yield row(
        "ex-7.corrected",
        "Permutational wreath products, C3 on 8 corners and C2 on 12 edges, are larger than the group that the six "
        "turns generate by the factor: their order over that of the group",
        f"{order} elements, by a base and a strong generating set",
        products / order,
        "within",
        12,
        tolerance=0.0,
        form="corrected",
        **metadata,
    )
    regular = 3 ** math.factorial(8)  # C3 wr S8 over the regular action: 8! copies, not 8
    yield row(
        "ex-7.printed",
        "The regular wreath product of C3 by S8 has 8! copies of C3, not 8: copies",
        "",
        math.log(regular, 3),
        ">=",
        9,
        form="printed",
        **metadata,
    )
