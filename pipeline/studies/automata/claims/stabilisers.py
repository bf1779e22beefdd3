"""Claims 28 and 30: dropout, and moving averages of weights."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, below
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.automata.comparisons import AVERAGE, DECAY, DROPOUT
from pipeline.studies.automata.names import shown
from schemas.claims import OWN

SOURCE = "Liu 2024, section 3.4.5.1.1"
NEAR = Condition("value", ">", -0.01), Condition("value", "<", 0.01)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on stabilisers."""
    for task, comparison in DROPOUT.items():
        asked = above(0.0) if task in ("d8", "q8") else below(0.0)
        yield evidence.gate(context, "28", f"{shown(task)}, dropout 0.1", comparison, asked, SOURCE)
    for task, comparison in AVERAGE.items():
        yield evidence.gate(context, "30", f"{shown(task)}, decay 0.9", comparison, above(0.0), SOURCE)
    # The source says that the decay does not matter. How near is near, and that these averages span less than twenty
    # steps of a rate that has fallen to a tenth, is ours: there, decays can hardly differ.
    for task, comparison in DECAY.items():
        name = f"{shown(task)}, decay 0.95 against 0.85"
        yield evidence.gate(context, "30", name, comparison, NEAR, SOURCE, kind=OWN)
