"""Claims 18 to 21 and 27: models of the flip-flop automaton."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipeline.kit import evidence
from pipeline.kit.conditions import above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.claims.common import SECTION
from pipeline.studies.flipflop.names import MANY_FIRST, MANY_SHARP
from schemas.claims import OWN

R8, DRIFT = SECTION.format("3.5.4.3, R8"), SECTION.format("3.5.6.5, Figure 3.33")
DEEP, FIRST = SECTION.format("3.5.6.5, Figures 3.26 and 3.36"), SECTION.format("3.5.6.5, Figure 3.38")
MAPS, MINIMA = SECTION.format("3.5.6.5, Figure 3.35"), SECTION.format("3.5.6.5")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    gate = partial(evidence.gate, context)
    for (form, kind), comparison in comparisons.WEIGHTS.items():
        yield gate("18", f"{form}, {kind}, weights", comparison, above(0.1), R8)
        rare = comparisons.RARE_ERROR[form, kind]
        yield gate("18", f"{form}, {kind}, error", rare, above(0.0), R8, kind=OWN)
    yield gate("18", "errors persist", comparisons.PERSISTS, above(0.5), R8)
    yield gate("19", "last query", comparisons.LEAVES, above(0.5), DRIFT)
    yield gate("19", "switch", comparisons.FORETOLD, above(0.5), DRIFT, kind=OWN)
    for (form, kind), comparison in comparisons.MINIMA.items():
        yield gate("20", f"{form}, {kind}", comparison, above(0.0), MINIMA)
    yield gate("21", "learned positions", comparisons.VALUED, above(0.0), MAPS)
    yield gate("27", "sparser", comparisons.SPARSER, above(0.0), DEEP)
    yield gate("27", "one ideal head", comparisons.IDEAL, above(0.5), DEEP)
    yield gate("27", "later layers", comparisons.LATER, above(0.0), FIRST)
    # Of norms the source speaks beside Figure 3.36 alone, of large models whose penalty is on all layers.
    all_layers, first = comparisons.NORMS[MANY_SHARP], comparisons.NORMS[MANY_FIRST]
    yield gate("27", "norms, all layers", all_layers, below(0.0), DEEP, scale_needed="paper")
    yield gate("27", "norms, first layer", first, below(0.0), FIRST, kind=OWN)
