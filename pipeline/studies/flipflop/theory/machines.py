"""The flip-flop monoid and the machine that reads its language (Liu 2024, sections 3.5.1.1 and 3.5.1.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.constructions import OWN, SOURCE, judged
from pipeline.studies.flipflop.exact import recognisers as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

MONOID, LANGUAGE = SOURCE.format(".1.1"), SOURCE.format(".1.2, Figure 3.23")
PRINTED = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 2]])  # rows f, columns g: f after g, of write 0, write 1, keep
Table = np.ndarray
THREE = "monoids of three elements"  # the part of claim 22
LAWS = {"0.8": (0.1, 0.1), "0.98": (0.01, 0.01), "0.1": (0.45, 0.45)}


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the monoid, and on the machine of Figure 3.23b."""
    made = [
        *judged("monoid", [*_monoid(), *_smallest()]),
        *judged("machine", _machine(entry, stream(seed, entry.study, key))),
    ]
    return theory.rows(entry.study, key, MONOID, made)


def broken(table: Table) -> int:
    """Return the number of triples for which (x y) z is not x (y z); ``table`` [x, y] is the product."""
    n = range(len(table))
    return sum(int(table[table[x, y], z] != table[x, table[y, z]]) for x in n for y in n for z in n)


def monoids(order: int) -> list[Table]:
    """Return all products on 0..order-1 that are associative, with the last element as identity."""
    free, tables = range(order - 1), []
    for products in itertools.product(range(order), repeat=len(free) ** 2):
        table = np.empty((order, order), np.int64)
        table[-1], table[:, -1] = range(order), range(order)
        table[: order - 1, : order - 1] = np.reshape(products, (order - 1, order - 1))
        if not broken(table):
            tables.append(table)
    return tables


def _monoid() -> Iterator[dict[str, Any]]:
    maps = [tuple(exact.FLIP_FLOP[:, symbol]) for symbol in range(3)]
    product = np.array([[maps.index(tuple(f[q] for q in g)) for g in maps] for f in maps])
    size = "3 maps on 2 states"
    yield row(
        "monoid.table",
        "The multiplication table of the monoid is the printed one: entries that differ",
        size,
        (product != PRINTED).sum(),
        "<=",
        0,
    )
    yield row(
        "monoid.identity",
        "Keeping the state is the identity: products that differ",
        size,
        (product[2] != range(3)).sum() + (product[:, 2] != range(3)).sum(),
        "<=",
        0,
    )
    yield row("monoid.associative", "The product is associative: triples that break it", size, broken(product), "<=", 0)
    yield row(
        "monoid.order",
        "Writes do not commute: pairs whose order matters",
        size,
        (product != product.T).sum() / 2,
        ">=",
        1,
    )
    yield row(
        "monoid.inverse",
        "Writes have no inverse: maps that are not one to one",
        size,
        sum(len(set(each)) < 2 for each in maps),
        "within",
        2,
        tolerance=0.0,
    )


def _smallest() -> Iterator[dict[str, Any]]:
    small = [*monoids(1), *monoids(2)]
    yield row(
        "monoid.smaller",
        "Monoids of one or two elements that do not commute",
        f"{len(small)} products",
        sum((table != table.T).any() for table in small),
        "<=",
        0,
    )
    known = monoids(3)
    yield row(
        "monoid.three",
        "Associative products among the 81 on three elements with a given identity",
        "81 products",
        len(known),
        "within",
        11,
        tolerance=0.0,
        source=OWN,
        part=THREE,
    )
    apart = [table for table in known if (table != table.T).any()]
    yield row(
        "monoid.two",
        "Of these, those that do not commute",
        f"{len(known)} products",
        len(apart),
        "within",
        2,
        tolerance=0.0,
        source=OWN,
        part=THREE,
    )
    names = {PRINTED.tobytes(), np.ascontiguousarray(PRINTED.T).tobytes()}
    yield row(
        "monoid.first",
        "Of these, those that do not commute and are neither the flip-flop monoid nor its mirror image",
        f"{len(apart)} products",
        sum(table.tobytes() not in names for table in apart),
        "<=",
        0,
        detail=f"{len(apart)} of the {len(known)} do not commute",
    )


def _machine(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    moves, names = exact.recogniser()
    yield row(
        "machine.states",
        "States of the machine of Figure 3.23b",
        ", ".join(names),
        len(moves),
        "within",
        4,
        tolerance=0.0,
        source=LANGUAGE,
    )
    same = [tuple(moves[i, language.DATA :]) for i, name in enumerate(names) if "w" in name]
    yield row(
        "machine.minimal",
        "Its two states behind w make the same moves on data, all that may follow: different "
        "rows, so that three states would be enough for legal strings",
        "2 states",
        len(set(same)),
        "<=",
        1,
        source=LANGUAGE,
        part="machine, fewer states",
    )
    for name, tokens in _strings(entry, rng):
        states = exact.scanned(moves, tokens)
        read = tokens[:, :-1] == language.READ
        bits = states[:, :-1] // 2
        yield row(
            f"machine.reads.{name}",
            "The machine says the bit behind every read: errors",
            f"{len(tokens)} strings of up to {tokens.shape[1]} tokens, {read.sum()} reads",
            exceptions((bits != tokens[:, 1:].astype(int) - language.DATA)[read]),
            "<=",
            0,
            source=LANGUAGE,
        )
        pairs = language.pairs(tokens)
        writes = pairs // 2 == language.WRITE
        after = language.states(np.where(writes, pairs % 2 + 1, language.NOOP))
        yield row(
            f"machine.pairs.{name}",
            "With a token for each pair, the flip-flop that takes writes as its symbols and "
            "all else as keeping the state is in the state that a read shows: errors",
            f"{len(tokens)} strings",
            exceptions((after != pairs % 2)[pairs // 2 == language.READ]),
            "<=",
            0,
            source=f"{LANGUAGE}; 3.5.5.1",
        )


def _strings(entry: Theory, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    for length in range(4, entry.short + 1, 2):
        yield f"all-{length}", language.enumerate_strings(length)
    for name, law in LAWS.items():
        yield f"ffl-{name}", language.sample(rng, entry.draws, entry.lengths[-1], *law)
