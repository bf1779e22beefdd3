"""Claims 13 and 14: variation by layer (Table 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.kit.conditions import Condition, above, below, within
from pipeline.kit.evidence import gate
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.comparisons import BY_LAYER, LAYER_RATIO
from pipeline.studies.dyck.names import PUBLISHED_TABLE_1, cell_name
from schemas.claims import OWN, STATED

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Random causal maps of 19 and 20 rows vary by 3.2955 and 3.3860: below both, above both.
BELOW_RANDOM, ABOVE_RANDOM = 3.30, 3.39
FIRST_LAYER_BELOW = 1.0
NEAR_PUBLISHED = {2: 0.5, 3: 0.35}  # layer: relative tolerance
TABLE_1_SOURCE = "Wen et al. 2023, Table 1"
LAST_OVER_MIDDLE = {1.3: "quick", 2.0: "paper"}  # bar: scale from which the published ratio is compared


def table_1(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 13: every cell of Table 1 against random maps and the published value."""
    for cell, published in PUBLISHED_TABLE_1.items():
        for layer, (mean, _) in enumerate(published, start=1):
            for suffix, (scale, size), conditions, kind in _layer_rules(layer, mean):
                yield gate(
                    context,
                    "13",
                    f"{cell_name(*cell)}: layer {layer}{suffix}",
                    BY_LAYER[cell, layer],
                    conditions,
                    TABLE_1_SOURCE,
                    published=mean,
                    scale_needed=scale,
                    size_needed=size,
                    kind=kind,
                )
        if cell in LAYER_RATIO:
            yield _layer_ratio(context, "13", f"{cell_name(*cell)}: layer 3 over 2", cell, 1.0)


def _layer_rules(layer: int, published: float) -> Iterator[tuple[str, tuple[str, str], tuple[Condition, ...], str]]:
    """Yield what is asked of a layer: end of the gate's name, the scales from which effect and size can be judged,
    conditions, the first beside random maps, and whose statement it is."""
    if layer == 1:
        yield "", ("quick", "quick"), below(BELOW_RANDOM), STATED
        yield ", size", ("quick", "paper"), below(FIRST_LAYER_BELOW), OWN
    if layer == 2:
        yield "", ("quick", "quick"), above(ABOVE_RANDOM), STATED
    if layer in NEAR_PUBLISHED:
        tolerance = NEAR_PUBLISHED[layer]
        yield ", size", ("paper", "paper"), within(published, tolerance * published), STATED


def last_layer(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 14: the third layer varies several times more than the second."""
    for cell in LAYER_RATIO:
        for bound, scale in LAST_OVER_MIDDLE.items():
            kind = STATED if bound == max(LAST_OVER_MIDDLE) else OWN  # the lower one is not "several times"
            yield _layer_ratio(context, "14", f"{cell_name(*cell)}: over {bound:g}", cell, bound, scale, kind)


def _layer_ratio(
    context: Results,
    claim: str,
    name: str,
    cell: tuple[int, int, int],
    bound: float,
    size_needed: str = "quick",
    kind: str = STATED,
) -> Gate:
    _, (middle, _), (last, _) = PUBLISHED_TABLE_1[cell]
    published = Published(last / middle, derivation=f"{last:g} / {middle:g}")
    return gate(
        context,
        claim,
        name,
        LAYER_RATIO[cell],
        above(bound),
        TABLE_1_SOURCE,
        published=published,
        size_needed=size_needed,
        kind=kind,
    )
