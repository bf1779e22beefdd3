"""Claims 7 to 15 and 32: what depth learns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pipeline.kit import evidence
from pipeline.kit.conditions import above, at_least, at_most
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.automata import comparisons
from pipeline.studies.automata.comparisons import BEST_C2, GAIN, HARDER, LATER, LOW_C2, REACHED, SOME_DEPTH, TREND
from pipeline.studies.automata.names import shown
from schemas.claims import OWN, STATED

FIGURE, MOST = "Liu 2024, Figures 3.5a and 3.15", above(0.5)
UNSTABLE = "Liu 2024, Figures 3.5b, 3.15 and 3.16"


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on depth. Published maxima are of twenty models: that one gets there is what they say."""
    gate = partial(evidence.gate, context)
    best = above(1 / context.settings.best_of)
    yield gate("7", "Dyck (4, 2), one layer", REACHED["dyck42", 1], best, FIGURE)
    yield gate("7", "Grid 4, one layer", REACHED["grid4", 1], best, FIGURE)
    yield gate("7", "Dyck (4, 2), two layers", comparisons.DYCK_TWO, at_least(0.97), FIGURE, kind=OWN)
    yield gate("7", "Dyck (4, 2), two over one", GAIN["dyck42", 2], above(0.05), FIGURE, kind=OWN)
    yield gate("8", "one layer", comparisons.MISSED, MOST, FIGURE)
    yield gate("8", "two layers", REACHED["grid9", 2], best, FIGURE)
    yield gate("8", "two over one", GAIN["grid9", 2], above(0.04), FIGURE, kind=OWN)
    for task in ("d8", "q8", "s5"):
        name = task.upper()
        yield gate("9", f"{name}, four layers over one", GAIN[task, 4], above(0.0), FIGURE)
        yield gate("9", f"{name}, four layers over one, by a tenth", GAIN[task, 4], above(0.1), FIGURE, kind=OWN)
        yield gate("9", f"{name}, trend", TREND[task], above(0.0), FIGURE)
    for (easy, hard, depth), comparison in HARDER.items():
        # With four layers the source's best models solve all but Q8.
        kind = STATED if depth == 2 or hard == "q8" else OWN
        yield gate("10", f"{_short(easy)} over {_short(hard)}, L={depth}", comparison, above(0.0), FIGURE, kind=kind)
    for task, comparison in SOME_DEPTH.items():
        yield gate("11", shown(task), comparison, best, FIGURE)
    yield gate("12", "order", comparisons.ORDER, above(0.6), FIGURE)
    names = ("D8, then D6 and Q8", "D6 and Q8, then A4", "A4, then S4 and S5")
    for name, comparison in zip(names, LATER.values(), strict=True):
        yield gate("12", name, comparison, above(0.0), FIGURE)
    yield gate("32", "without groups", comparisons.WITHOUT_GROUPS, best, FIGURE)
    yield gate("13", "order of cells", comparisons.CELLS, above(0.6), "Liu 2024, Figure 3.15", kind=OWN)
    for depth, comparison in LOW_C2.items():
        yield gate("14", f"C2, L={depth}", comparison, MOST, UNSTABLE)
        yield gate("14", f"C2, L={depth}, best", BEST_C2[depth], best, UNSTABLE)
    yield gate(
        "15",
        "C2",
        comparisons.NOISE,
        at_most(0.0005),
        "Liu 2024, footnote 31",
        published=Published(0.00031),
        scale_needed="paper",
    )


def _short(task: str) -> str:
    return "Dyck" if task == "dyck42" else shown(task)
