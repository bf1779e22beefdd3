"""Claims 13 and 14: variation by layer (Table 1)."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit.verdicts import Condition, Gate, Published, within
from pipeline.studies.dyck.claims.common import measured
from pipeline.studies.dyck.names import PUBLISHED_TABLE_1, TABLE_1

# Random causal maps of 19 and 20 rows vary by 3.2955 and 3.3860: below both, above both.
BELOW_RANDOM, ABOVE_RANDOM = 3.30, 3.39
FIRST_LAYER_BELOW = 1.0
NEAR_PUBLISHED = {2: 0.5, 3: 0.35}  # layer: relative tolerance
TABLE_1_SOURCE = "Wen et al. 2023, Table 1"
LAST_OVER_MIDDLE = {"quick": 1.3, "paper": 2.0}


def table_1(table: pl.DataFrame, contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 13: every cell of Table 1 against random maps and the published value."""
    for cell, published in PUBLISHED_TABLE_1.items():
        for layer, (mean, _) in enumerate(published, start=1):
            measurement, missing = measured(table, run=TABLE_1[cell], layer=layer)
            for suffix, rule, scale, conditions in _layer_rules(layer, mean):
                gate = f"{cell_name(*cell)}: layer {layer}{suffix}"
                predicate = f"variation of layer {layer} on D5 ({cell_name(*cell)}) is {rule}"
                yield Gate(
                    "13",
                    gate,
                    predicate,
                    TABLE_1_SOURCE,
                    conditions,
                    measurement,
                    missing,
                    mean,
                    scale_needed=scale,
                )
        if len(published) == 3:
            rule = f"variation of layer 3 on D5 ({cell_name(*cell)}) is larger than that of layer 2"
            yield _layer_ratio(
                "13", f"{cell_name(*cell)}: layer 3 over 2", rule, cell, contrasts, 1.0, "quick"
            )


def _layer_rules(layer: int, published: float) -> Iterator[tuple[str, str, str, tuple[Condition, ...]]]:
    """Yield what is asked of a layer: end of the gate's name, rule, scale, conditions."""
    if layer == 1:
        rule = f"below {BELOW_RANDOM:.2f}, so below random maps"
        yield "", rule, "quick", (Condition("value", "<", BELOW_RANDOM),)
        rule = f"below {FIRST_LAYER_BELOW:g}"
        yield ", size", rule, "paper", (Condition("value", "<", FIRST_LAYER_BELOW),)
    if layer == 2:
        rule = f"above {ABOVE_RANDOM:.2f}, so above random maps"
        yield "", rule, "quick", (Condition("value", ">", ABOVE_RANDOM),)
    if layer in NEAR_PUBLISHED:
        tolerance = NEAR_PUBLISHED[layer]
        yield ", size", f"{published} ± {tolerance:.0%}", "paper", within(published, tolerance * published)


def last_layer(contrasts: pl.DataFrame) -> Iterator[Gate]:
    """Yield the gates of claim 14: the third layer varies several times more than the second."""
    for cell in (cell for cell, published in PUBLISHED_TABLE_1.items() if len(published) == 3):
        for scale, bound in LAST_OVER_MIDDLE.items():
            name = f"{cell_name(*cell)}: over {bound:g}"
            rule = f"variation of layer 3 on D5 ({cell_name(*cell)}) is over {bound:g} times that of layer 2"
            yield _layer_ratio("14", name, rule, cell, contrasts, bound, scale)


def _layer_ratio(
    claim: str,
    gate: str,
    predicate: str,
    cell: tuple[int, int, int],
    contrasts: pl.DataFrame,
    bound: float,
    scale: str,
) -> Gate:
    measurement, missing = measured(contrasts, contrast="layer_ratio", first=TABLE_1[cell])
    _, (middle, _), (last, _) = PUBLISHED_TABLE_1[cell]
    above = (Condition("value", ">", bound),)
    return Gate(
        claim,
        gate,
        predicate,
        TABLE_1_SOURCE,
        above,
        measurement,
        missing,
        Published(last / middle, derivation=f"{last:g} / {middle:g}"),
        scale_needed=scale,
    )


def cell_name(k: int, depth: int, layers: int) -> str:
    """Return the name by which gates call a row of Table 1."""
    return f"k={k}, D={depth}, {layers} layers"
