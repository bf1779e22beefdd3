"""What the theory checks of the automata study share: rows, and a construction held against the plain simulator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.kit.extremes import largest
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


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        **more,
    }


def wrong(built: Built, tokens_NxT: Ints, states_NxT: Ints, dtype: type = np.float64) -> tuple[float, float]:
    """Return how many tokens the construction gets wrong, and how far its outputs are from integers at most.

    Both are NaN as soon as one output is.
    """
    outputs, off = built.run(tokens_NxT, dtype)
    return exceptions(outputs != states_NxT, off), off


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(output).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))


def verified(
    name: str,
    what: str,
    built: Built,
    tokens_NxT: Ints,
    states_NxT: Ints,
    source: str,
    exhaustive: bool = False,
    **more: Any,
) -> Iterator[dict[str, Any]]:
    """Yield the rows that a construction makes no token error, and that its outputs are integers."""
    n, length = tokens_NxT.shape
    size = f"{'all ' if exhaustive else ''}{n} inputs of length {length}, {n * length} tokens"
    yield from verified_all(name, what, [(built, tokens_NxT, states_NxT)], size, source, **more)


def verified_all(
    name: str, what: str, instances: Iterable[tuple[Built, Ints, Ints]], size: str, source: str, **more: Any
) -> Iterator[dict[str, Any]]:
    """Yield the same rows of several constructions: all token errors, and the largest distance."""
    results = [wrong(*instance) for instance in instances]
    errors, off = sum(count for count, _ in results), largest(distance for _, distance in results)
    yield row(f"{name}.errors", f"{what}: token errors", size, errors, "<=", 0, source=source, **more)
    yield row(
        f"{name}.deviation",
        f"{what}: largest distance of an output from an integer",
        size,
        off,
        "<=",
        NEAR,
        source=source,
        **more,
    )


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
    name: str,
    what: str,
    built: Built,
    source: str,
    bounds: Mapping[str, float] | None = None,
    **larger: str,
) -> Iterator[dict[str, Any]]:
    """Yield a row for each size of a construction that has a claimed bound (``bounds``, or its own).

    ``larger`` names the erratum of a size that exceeds it.
    """
    sizes = built.network.sizes
    for size, bound in (built.bounds if bounds is None else bounds).items():
        metadata = {"erratum": larger[size], "form": "printed"} if size in larger else {}
        yield row(
            f"ledger.{name}.{size.replace('_', '-')}",
            f"{what}: {SIZES[size]} {'exceeds' if size in larger else 'stays within'} the claimed bound",
            "",
            round(sizes[size], 6),
            ">=" if size in larger else "<=",
            round(bound, 6) + 1e-9 * (size in larger),
            source=source,
            **metadata,
        )
