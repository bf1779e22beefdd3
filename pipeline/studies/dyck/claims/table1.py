"""Claims 13 and 14: variation by layer (Table 1)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.conditions import Condition, above, below, within
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.claims.common import measured
from pipeline.studies.dyck.names import PUBLISHED_TABLE_1, TABLE_1

# Random causal maps of 19 and 20 rows vary by 3.2955 and 3.3860: below both, above both.
BELOW_RANDOM, ABOVE_RANDOM = 3.30, 3.39
FIRST_LAYER_BELOW = 1.0
NEAR_PUBLISHED = {2: 0.5, 3: 0.35}  # layer: relative tolerance
TABLE_1_SOURCE = "Wen et al. 2023, Table 1"
LAST_OVER_MIDDLE = {1.3: "quick", 2.0: "paper"}  # bar: scale from which the published ratio is compared


def table_1(table: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 13: every cell of Table 1 against random maps and the published value."""
    for cell, published in PUBLISHED_TABLE_1.items():
        for layer, (mean, _) in enumerate(published, start=1):
            measurement, missing = measured(table, run=TABLE_1[cell], layer=layer)
            measure = f"variation of layer {layer} on D5 ({cell_name(*cell)})"
            for suffix, note, (scale, size), conditions in _layer_rules(layer, mean):
                yield Gate(
                    "13",
                    f"{cell_name(*cell)}: layer {layer}{suffix}",
                    f"{measure}{note}",
                    TABLE_1_SOURCE,
                    conditions,
                    measurement,
                    missing,
                    mean,
                    scale_needed=scale,
                    size_needed=size,
                )
        if len(published) == 3:
            yield _layer_ratio("13", f"{cell_name(*cell)}: layer 3 over 2", cell, contrasts, 1.0)


def _layer_rules(
    layer: int, published: float
) -> Iterator[tuple[str, str, tuple[str, str], tuple[Condition, ...]]]:
    """Yield what is asked of a layer: end of the gate's name, a note on what is measured, the scales from which effect
    and size can be judged, conditions."""
    beside = ", held against random maps"
    if layer == 1:
        yield "", beside, ("quick", "quick"), below(BELOW_RANDOM)
        yield ", size", "", ("quick", "paper"), below(FIRST_LAYER_BELOW)
    if layer == 2:
        yield "", beside, ("quick", "quick"), above(ABOVE_RANDOM)
    if layer in NEAR_PUBLISHED:
        tolerance = NEAR_PUBLISHED[layer]
        yield ", size", "", ("paper", "paper"), within(published, tolerance * published)


def last_layer(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 14: the third layer varies several times more than the second."""
    for cell in (cell for cell, published in PUBLISHED_TABLE_1.items() if len(published) == 3):
        for bound, scale in LAST_OVER_MIDDLE.items():
            yield _layer_ratio("14", f"{cell_name(*cell)}: over {bound:g}", cell, contrasts, bound, scale)


def _layer_ratio(
    claim: str,
    gate: str,
    cell: tuple[int, int, int],
    contrasts: pl.DataFrame,
    bound: float,
    size_needed: str = "quick",
) -> Gate:
    measurement, missing = measured(contrasts, contrast="layer_ratio", first=TABLE_1[cell])
    _, (middle, _), (last, _) = PUBLISHED_TABLE_1[cell]
    return Gate(
        claim,
        gate,
        f"variation of layer 3 on D5 ({cell_name(*cell)}) over that of layer 2",
        TABLE_1_SOURCE,
        above(bound),
        measurement,
        missing,
        Published(last / middle, derivation=f"{last:g} / {middle:g}"),
        size_needed=size_needed,
    )


def cell_name(k: int, depth: int, layers: int) -> str:
    """Return the name by which gates call a row of Table 1."""
    return f"k={k}, D={depth}, {layers} layers"
