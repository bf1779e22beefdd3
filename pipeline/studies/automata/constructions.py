"""What the theory checks of the automata study share: rows, and a construction held against the plain simulator."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.kit import theory_rows
from pipeline.kit.extremes import largest
from pipeline.kit.theory_rows import exceptions
from pipeline.languages.automata import Ints
from pipeline.models.automata.exact import Built

SOURCE = "Liu 2024, section 3.4.4{}"
FOOTNOTE_14 = "Liu 2024, section 3.4.1.1, footnote 14"
SIZES = {
    "depth": "depth",
    "dim": "dimension",
    "heads": "number of heads",
    "head_dim": "dimension of heads",
    "mlp_width": "width of MLPs",
    "norm": "norm",
}
NEAR = 1e-6  # largest distance of an output from the integer it stands for
PRINTED = {  # errata whose printed form is to make errors, or to break its bound, by the part of claim 5 that says so
    "automata-proposition-2": "Proposition 2",
    "automata-lemma-11": "Lemma 11",
    "automata-lemma-12": "Lemma 12",
    "automata-theorem-10-sign": "Theorem 10, sign",
    "automata-theorem-10-value": "Theorem 10, W_V",
    "automata-theorem-10-readout": "Theorem 10, read-out",
    "automata-lemma-15": "Lemma 15, scale",
    "automata-lemma-20-start": "Lemma 20, start",
    "automata-lemma-21": "Lemma 21, wiring",
    "automata-theorem-12-output": "Theorem 12, output",
    "automata-theorem-12-pad": "Theorem 12, pad",
}


@dataclass(frozen=True)
class Construction:
    """A statement that a network proves: its name in those of checks and in words, and where it stands."""

    key: str
    name: str
    section: str
    about: str

    @property
    def source(self) -> str:
        """Return where it stands."""
        return SOURCE.format(f"{self.section}, {self.name}")

    @property
    def right(self) -> dict[str, str]:
        """Return the part of claim 1 that counts rows on its errors."""
        return {"source": self.source, "claim": "1", "part": f"{self.name}, errors"}

    @property
    def sharp(self) -> dict[str, str]:
        """Return the part of claim 1 that counts rows on distances from integers."""
        return {"source": self.source, "claim": "1", "part": f"{self.name}, deviation"}


THEOREM_10 = Construction("thm-10", "Theorem 10", ".2", "logarithmic depth")
LEMMA_15 = Construction("lem-15", "Lemma 15", ".3.1", "counters")
LEMMA_16 = Construction("lem-16", "Lemma 16", ".3.1", "memories")
LEMMA_17 = Construction("lem-17", "Lemma 17", ".3.3", "direct products")
LEMMA_18 = Construction("lem-18", "Lemma 18", ".3.3", "semidirect products")
LEMMA_19 = Construction("lem-19", "Lemma 19", ".3.3", "wreath products")
THEOREM_16 = Construction("thm-16", "Theorem 16", ".3.3", "solvable groups")
LEMMA_20 = Construction("lem-20", "Lemma 20", ".3.4", "permutations and resets")
THEOREM_11 = Construction("thm-11", "Theorem 11", ".3.4", "cascades")
THEOREM_12 = Construction("thm-12", "Theorem 12", ".4", "gridworld")


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`; that on a printed form which claim 5 names belongs to it."""
    if more.get("form") == "printed" and more["erratum"] in PRINTED:
        more |= {"claim": "5", "part": PRINTED[more["erratum"]]}
    return theory_rows.row(check, statement, size, measured, comparison, bound, **more)


def wrong(built: Built, tokens_NxT: Ints, states_NxT: Ints, dtype: type = np.float64) -> tuple[float, float]:
    """Return how many tokens the construction gets wrong, and how far its outputs are from integers at most.

    Both are NaN as soon as one output is.
    """
    outputs, off = built.run(tokens_NxT, dtype)
    return exceptions(outputs != states_NxT, off), off


def verified(
    of: Construction,
    instance: str,
    what: str,
    built: Built,
    tokens_NxT: Ints,
    states_NxT: Ints,
    exhaustive: bool = False,
    **more: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the rows that a construction makes no token error, and that its outputs are integers."""
    n, length = tokens_NxT.shape
    size = f"{'all ' if exhaustive else ''}{n} inputs of length {length}, {n * length} tokens"
    yield from verified_all(of, instance, what, [(built, tokens_NxT, states_NxT)], size, **more)


def verified_all(
    of: Construction, instance: str, what: str, instances: Iterable[tuple[Built, Ints, Ints]], size: str, **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield the same rows of several constructions: all token errors, and the largest distance."""
    results = [wrong(*each) for each in instances]
    errors, off = sum(count for count, _ in results), largest(distance for _, distance in results)
    name, distance = f"{of.key}.{instance}", f"{what}: largest distance of an output from an integer"
    yield row(f"{name}.errors", f"{what}: token errors", size, errors, "<=", 0, **of.right | more)
    yield row(f"{name}.deviation", distance, size, off, "<=", NEAR, **of.sharp | more)


def exact_depth(built: Built, tokens_NxT: Ints, states_NxT: Ints) -> float:
    """Return the number of layers of a construction that makes no error on these inputs; NaN if it makes one."""
    return float(len(built.network.layers)) if wrong(built, tokens_NxT, states_NxT)[0] == 0 else math.nan


def refuted(
    name: str, what: str, built: Built, tokens_NxT: Ints, states_NxT: Ints, source: str, erratum: str
) -> dict[str, Any]:
    """Return the row that a printed form makes errors, with the first input on which it fails."""
    outputs, off = built.run(tokens_NxT)
    bad = outputs != states_NxT
    n, length = tokens_NxT.shape
    shown = ""
    if bad.any():
        i = int(bad.any(1).argmax())
        t = int(bad[i].argmax())
        shown = (
            f"{bad.mean():.1%} of tokens wrong; input {' '.join(map(str, tokens_NxT[i, : t + 1].tolist()))} should "
            f"lead to state {states_NxT[i, t]}, the printed form says {outputs[i, t]}"
        )
    return row(
        f"{name}.errors",
        f"{what}: token errors",
        f"{n} inputs of length {length}",
        exceptions(bad, off),
        ">=",
        1,
        source=source,
        detail=shown,
        erratum=erratum,
        form="printed",
    )


def ledger(
    of: Construction,
    instance: str,
    what: str,
    built: Built,
    bounds: Mapping[str, float] | None = None,
    *,
    apart: Collection[str] = (),
    **larger: str,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each size of a construction that has a claimed bound (``bounds``, or its own).

    ``larger`` names the erratum of a size that exceeds it. These, and sizes ``apart`` whose bound is an erratum
    elsewhere, are no evidence for claim 4.
    """
    sizes = built.network.sizes
    for size, bound in (built.bounds if bounds is None else bounds).items():
        more: dict[str, Any] = {"claim": "4", "part": of.name}
        if size in larger or size in apart:
            more = {"erratum": larger[size], "form": "printed"} if size in larger else {}
        yield row(
            f"ledger.{of.key}.{instance}.{size.replace('_', '-')}",
            f"{what}: {SIZES[size]} {'exceeds' if size in larger else 'stays within'} the claimed bound",
            what,
            round(sizes[size], 6),
            ">=" if size in larger else "<=",
            round(bound, 6) + 1e-9 * (size in larger),
            detail=SIZES[size],
            group=f"{of.name}, {of.about}",
            x=round(sizes[size], 6) / round(bound, 6),
            **{"source": of.source} | more,
        )
