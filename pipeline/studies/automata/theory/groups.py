"""Direct, semidirect and wreath products, and all solvable groups (Liu 2024, section 3.4.4.3.3; Theorems 13, 14)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import automata
from pipeline.languages.automata import Automaton, Group, automaton, every_input, generated, simulate
from pipeline.models.automata import exact
from pipeline.models.automata.exact import Simulator
from pipeline.studies.automata.constructions import SOURCE, ledger, row, verified
from schemas import theory

LEMMA_17, LEMMA_18, LEMMA_19 = (SOURCE.format(f".3.3, Lemma {n}") for n in (17, 18, 19))
THEOREM_16 = SOURCE.format(".3.3, Theorem 16")
BARRIER = "Liu 2024, section 3.4.1.2, Theorem 13; section 3.4.4.3.2, Theorem 14"
GROUPS = tuple(name for name in automata.TASKS if name not in ("dyck42", "grid4", "grid9"))
UNSOLVABLE = ("a5", "s5")
LENGTHS = (8, 16, 32, 64)
POINTS = {"a4": 4, "s4": 4, "d6": 3, "d8": 4}  # on which the group acts faithfully; else its order


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on groups."""
    rng = stream(seed, "automata", theory_id)
    made = [
        *_direct(rng, entry),
        *_semidirect(rng, entry),
        *_dihedral(),
        *_solvable(rng, entry),
        *_depths(),
        *_refused(),
        *_factors(),
        *_counted(),
    ]
    return theory.rows("automata", theory_id, THEOREM_16, made)


def _words(rng: np.random.Generator, n_symbols: int, entry: Any) -> np.ndarray:
    return rng.integers(0, n_symbols, (max(entry.sequences // 2, 2), entry.length))


def _products(group: Group, tokens: np.ndarray) -> np.ndarray:
    """Return the element s_t ... s_1 of each position, by the table of products; symbols are all elements."""
    canonical = Automaton("canonical", group.mul.T, 0, (), ())  # next[g, h] = h g
    return simulate(canonical, tokens)


def _check_group(
    name: str, what: str, simulator: Simulator, rng: np.random.Generator, entry: Any, source: str, degree: int
) -> Iterator[dict[str, Any]]:
    words = _words(rng, len(simulator.group), entry)
    built = exact.group_network(simulator, range(len(simulator.group)), entry.length, degree, name)
    yield from verified(name, what, built, words, _products(simulator.group, words), source)
    if name.startswith(("lem-17", "thm-16")):
        yield from ledger(name, what, built, source)


def _direct(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    counters = {n: exact.cyclic(generated([(*range(1, n), 0)])) for n in (2, 3)}
    for name, parts in (("c2c2c2", (2, 2, 2)), ("c2c3", (2, 3))):
        simulator = counters[parts[0]]
        for n in parts[1:]:
            simulator = exact.direct(simulator, counters[n])
        what = f"Lemma 17 on {' × '.join(f'C{n}' for n in parts)}"
        yield from _check_group(f"lem-17.{name}", what, simulator, rng, entry, LEMMA_17, sum(parts))
        yield row(
            f"lem-17.{name}.depth",
            f"{what}: depth",
            "",
            len(simulator.stages),
            "within",
            1,
            tolerance=0.0,
            source=LEMMA_17,
        )


def _turning(n: int) -> tuple[Simulator, Simulator]:
    return exact.cyclic(generated([(*range(1, n), 0)])), exact.cyclic(generated([(1, 0)]))


def _flipped(group: Group) -> Callable[[int, int], int]:
    return lambda h, g: int(group.inverse[g]) if h else g


def semidirect_groups() -> dict[str, tuple[Simulator, int]]:
    """Return the examples of Lemma 18 and their depths: D6, D8, A4 and S4."""
    found: dict[str, tuple[Simulator, int]] = {}
    for name, n in (("d6", 3), ("d8", 4)):
        turn, flip = _turning(n)
        found[name] = exact.semidirect(turn, flip, _flipped(turn.group)), 4
    klein = exact.direct(*(exact.cyclic(generated([(1, 0)])) for _ in range(2)))
    spin = exact.cyclic(generated([(1, 2, 0)]))
    place = {tuple(code): i for i, code in enumerate(klein.codes.tolist())}
    ring = [place[1, 0], place[0, 1], place[1, 1]]

    def cycled(power: int, g: int) -> int:
        return g if g not in ring else ring[(ring.index(g) + power) % 3]

    found["a4"] = exact.semidirect(klein, spin, lambda h, g: cycled(int(spin.codes[h, 0]), g)), 4
    dihedral = found["d6"][0]

    def moved(h: int, g: int) -> int:
        """D6 as all permutations of the three involutions of the Klein group."""
        rotation, flipped = dihedral.codes[h].tolist()
        if g not in ring:
            return g
        at = ring.index(g)
        return ring[((-at if flipped else at) + rotation) % 3]

    found["s4"] = exact.semidirect(klein, dihedral, moved), 7
    return found


def _semidirect(rng: np.random.Generator, entry: Any) -> Iterator[dict[str, Any]]:
    for name, (simulator, depth) in semidirect_groups().items():
        what = f"Lemma 18 on {automata.shown(name)}"
        orders = generated(automaton(name).maps).orders()
        yield from _check_group(f"lem-18.{name}", what, simulator, rng, entry, LEMMA_18, len(simulator.group))
        yield row(
            f"lem-18.{name}.depth",
            f"{what}: depth, that of both simulators and 2",
            "",
            len(simulator.stages),
            "within",
            depth,
            tolerance=0.0,
            source=LEMMA_18,
        )
        yield row(
            f"lem-18.{name}.orders",
            f"{what}: orders of elements that differ from those of the task's group",
            ", ".join(f"{count} of order {order}" for order, count in orders.items()),
            float(simulator.group.orders() != orders),
            "<=",
            0,
            source=LEMMA_18,
        )


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
            source=LEMMA_18,
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
        yield from verified(f"thm-16.{name}", what, built, words, simulate(known, words), THEOREM_16)
        yield from ledger(f"thm-16.{name}", what, built, THEOREM_16)
    about = {"erratum": "automata-theorem-16", "source": THEOREM_16}
    depth = len(exact.solvable(generated(automaton("s4").maps)).stages)
    yield row(
        "thm-16.printed",
        "The length of the series, ℓ <= log T, does not bound it: depth on S4 over 3 log T",
        "T = 4",
        depth / (3 * math.log2(4)),
        ">=",
        1.001,
        form="printed",
        **about,
    )
    yield row(
        "thm-16.corrected",
        "With ℓ <= log |G|, depth on S4 over 3 log |G|",
        "|G| = 24",
        depth / (3 * math.log2(24)),
        "<=",
        1,
        form="corrected",
        **about,
    )
    wreath = {"erratum": "automata-lemma-19", "source": LEMMA_19}
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


def _depths() -> Iterator[dict[str, Any]]:
    for name in ("d8", "s4"):
        group = generated(automaton(name).maps)
        simulator = exact.solvable(group)
        depths = {len(exact.group_network(simulator, [0], T, 4, name).network.layers) for T in LENGTHS}
        yield row(
            f"thm-16.depth.{name}",
            f"Depth on {automata.shown(name)} does not depend on the length: different depths",
            f"T = {', '.join(map(str, LENGTHS))}",
            len(depths),
            "<=",
            1,
        )


def _refused() -> Iterator[dict[str, Any]]:
    for name in UNSOLVABLE:
        try:
            exact.solvable(generated(automaton(name).maps))
            said = ""
        except SandglassError as error:
            said = str(error)
        yield row(
            f"thm-16.refused.{name}",
            f"{automata.shown(name)} is refused, as it is not solvable",
            "",
            float("not solvable" in said),
            "within",
            1,
            tolerance=0.0,
            detail=said,
        )


def _factors() -> Iterator[dict[str, Any]]:
    """Yield the classification that Theorem 13 needs: which tasks are solvable, by factors and by derived series."""
    for name in GROUPS:
        maps = automaton(name).maps
        found = automata.factors(generated(maps))
        cyclic = all(factor.startswith("C") for factor in found)
        agree = cyclic == automata.is_solvable(maps)
        yield row(
            f"thm-13.{name}",
            f"{automata.shown(name)} is {'' if cyclic else 'not '}solvable: its factors agree with its "
            "derived series",
            f"factors {', '.join(found)}",
            float(agree),
            "within",
            1,
            tolerance=0.0,
            source=BARRIER,
        )
    about = {"erratum": "automata-footnote-17", "source": "Liu 2024, section 3.4.1.2, footnote 17"}
    points = [tuple(np.argsort(g).tolist()) for g in automata.generators("a", 5)]
    yield row(
        "fn-17.printed",
        "The smallest automaton that is not solvable has fewer than 60 states: states of A5 on points",
        "5 points",
        float(len(points[0]) if not automata.is_solvable(points) else 60),
        "<=",
        59,
        form="printed",
        **about,
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
        **about,
    )


def _counted() -> Iterator[dict[str, Any]]:
    """Yield the order of the group of Rubik's cube (Example 7)."""
    rubik = 3**8 * math.factorial(8) * 2**12 * math.factorial(12) // 12
    about = {"erratum": "automata-example-7", "source": "Liu 2024, Example 7"}
    yield row(
        "ex-7.corrected",
        "Permutational wreath products, C3 on 8 corners and C2 on 12 edges, by 12: order over "
        "43 252 003 274 489 856 000",
        "",
        rubik / 43252003274489856000,
        "within",
        1,
        tolerance=0.0,
        form="corrected",
        **about,
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
        **about,
    )
