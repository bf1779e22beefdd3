"""Claims 16 to 27, 29 and 31: other inputs than in training, hidden labels, attention, positions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, below, within
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.automata import comparisons
from pipeline.studies.automata.comparisons import (
    AGAINST_PLAIN,
    AHEAD,
    CLOSED,
    COVERED,
    EVERY_LENGTH,
    EVERY_P,
    HIDDEN,
    HIDDEN_LSTM,
    LONGER,
    SEEN_BEST,
    SEEN_LSTM,
)
from pipeline.studies.automata.names import SHOWN
from schemas.claims import OWN, STATED

OOD, LENGTH = "Liu 2024, Figures 3.8 and 3.20", "Liu 2024, Figures 3.9 and 3.21"
HIDDEN_LABELS, SEEN, HEADS = (
    "Liu 2024, Figures 3.7b and 3.19",
    "Liu 2024, Figures 3.7a and 3.18",
    "Liu 2024, Figures 3.6 and 3.17",
)
POSITIONS = "Liu 2024, Figure 3.22"
COVERAGE = "own check of a hypothesis in Liu 2024, section 3.4.3.2"
MOST = above(0.5)  # more than half of the models


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on robustness."""
    yield from _counting(context)
    yield from _supervision(context)
    yield from _attention(context)
    yield from _codes(context)
    for variant, comparison in COVERED.items():
        yield evidence.gate(context, "29", variant, comparison, below(0.0), COVERAGE, kind=OWN)


def _counting(context: Results) -> Iterator[Gate]:
    gate = partial(evidence.gate, context)
    for claim, arm in (("16", "lstm"), ("19", "recency")):
        yield gate(claim, "probabilities", EVERY_P[arm], MOST, OOD)
        yield gate(claim, "lengths", EVERY_LENGTH[arm], MOST, LENGTH)
    yield gate("17", "p = 0.95", comparisons.MORE_ONES, above(0.1), OOD)
    yield gate("17", "p = 0.05", comparisons.FEWER_ONES, above(0.0), OOD)
    yield gate("17", "worst probability", comparisons.WORST, MOST, OOD)
    yield gate("18", "twice the length", LONGER["c2"], above(0.15), LENGTH)
    yield gate("18", "falling", comparisons.RISE, below(0.0), LENGTH)
    yield gate("20", "against plain", AGAINST_PLAIN["scratchpad"], within(0.0, 0.1), LENGTH)
    yield gate("20", "twice the length", comparisons.SCRATCHPAD, below(0.9), LENGTH)
    yield gate("21", "Transformer", LONGER["dyck42"], above(0.1), LENGTH)
    yield gate("21", "LSTM", comparisons.DYCK_LSTM, MOST, LENGTH)
    yield gate("22", "shifted positions", AGAINST_PLAIN["shift"], above(0.0), LENGTH)
    yield gate("22", "no positions", AGAINST_PLAIN["none"], above(0.0), LENGTH)
    yield gate("23", "C2", comparisons.LOW_COUNTS, below(0.0), OOD)
    yield gate("23", "outer counts", comparisons.OUTER_COUNTS, above(0.0), OOD)


def _supervision(context: Results) -> Iterator[Gate]:
    gate = partial(evidence.gate, context)
    for task, label, kind in (("s3", "S3", OWN), ("s5", "S5", STATED)):
        yield gate("24", f"{label}, LSTM", HIDDEN_LSTM[task], MOST, HIDDEN_LABELS, kind=kind)
        yield gate("24", f"{label}, Transformer", HIDDEN[task], above(0.1), HIDDEN_LABELS, kind=kind)
    yield gate("24", "C2, Transformer", HIDDEN["c2"], within(0.0, 0.05), HIDDEN_LABELS)
    best = above(1 / context.settings.best_of)
    for task, label in SHOWN.items():
        if task in CLOSED:
            yield gate("25", f"{label}, Transformer", CLOSED[task], above(0.5), SEEN, kind=OWN)
            yield gate("25", f"{label}, LSTM", AHEAD[task], at_least(0.0), SEEN, kind=OWN)
        yield gate("25", f"{label}, published", SEEN_BEST[task], best, SEEN)
        yield gate("25", f"{label}, LSTM alone", SEEN_LSTM[task], MOST, SEEN)


def _attention(context: Results) -> Iterator[Gate]:
    gate = partial(evidence.gate, context)
    yield gate("26", "boundary", comparisons.BOUNDARY, above(0.0), HEADS)
    yield gate("26", "boundary, untrained", comparisons.BOUNDARY_UNTRAINED, above(0.0), HEADS, kind=OWN)
    yield gate("26", "uniform head", comparisons.UNIFORM, MOST, HEADS, kind=OWN)
    yield gate("26", "uniform head, untrained", comparisons.UNIFORM_UNTRAINED, MOST, HEADS, kind=OWN)
    yield gate("26", "uniform head, first layer", comparisons.UNIFORM_FIRST, MOST, HEADS)
    yield gate("26", "before the boundary", comparisons.BEFORE, MOST, HEADS)


def _codes(context: Results) -> Iterator[Gate]:
    gate = partial(evidence.gate, context)
    yield gate("27", "Grid 9, twice the length", comparisons.GRID_TWICE, below(0.0), POSITIONS)
    yield gate("27", "Grid 9, loss beyond training", comparisons.GRID_LOST, above(0.0), POSITIONS, kind=OWN)
    yield gate("31", "abab (2)", comparisons.ABAB_ONCE, above(0.0), POSITIONS)
    yield gate("31", "abab (2), advantage beyond training", comparisons.ABAB_LOST, above(0.0), POSITIONS)
