"""Claim 21: models that copy, and maps of theirs that can be read and mislead (appendix B.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.kit.conditions import above, at_least
from pipeline.kit.evidence import gate
from pipeline.kit.verdicts import Gate, Published
from pipeline.studies.dyck.comparisons import COPIED, MISLEADING
from pipeline.studies.dyck.names import COPY_NAMES, COPY_NO_SKIP, COPY_STRIPPED
from schemas.claims import FLOOR, OWN, STATED

if TYPE_CHECKING:
    from pipeline.kit.results import Results

FIGURES_4_6, FIGURE_5 = ("Wen et al. 2023, appendix B.1, Figures 4 and 6", "Wen et al. 2023, appendix B.1, Figure 5")
DEEP_ACCURATE, SHALLOW_ACCURATE = 0.96, 0.9


def accuracy(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 21 on accuracy: the models copy; every position of held-out strings counts."""
    for run, comparison in COPIED.items():
        deep = run in MISLEADING
        bound, source = (DEEP_ACCURATE, FIGURES_4_6) if deep else (SHALLOW_ACCURATE, FIGURE_5)
        published = Published(bound, form=FLOOR)
        name = f"accuracy, {COPY_NAMES[run]}"
        # Two of the models of one layer are what the source may have meant, and does not say.
        kind = OWN if run in (COPY_NO_SKIP, COPY_STRIPPED) else STATED
        yield gate(context, "21", name, comparison, at_least(bound), source, published=published, kind=kind)


def misleading(context: Results) -> Iterator[Gate]:
    """Yield the gates of claim 21 on maps: most models have a map that seems to say what they do, and hardly matters;
    which one is left to chance."""
    for run, comparison in MISLEADING.items():
        name = f"misleading maps, {COPY_NAMES[run]}"
        yield gate(context, "21", name, comparison, above(0.5), FIGURES_4_6)
