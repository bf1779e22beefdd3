"""Claim 26: training in two stages."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.conditions import above
from pipeline.kit.evidence import gate
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.topic.claims.common import HALF, SECTION
from pipeline.studies.topic.comparisons import AT_400, BEHIND, CONTROL, SETTINGS
from schemas.claims import OWN

FIGURE = SECTION.format("2.1.6.1, Figure 2.4")


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates."""
    for name, key in SETTINGS.items():
        yield gate(context, "26", f"setting {name}", BEHIND[key], above(HALF), FIGURE)
    yield gate(context, "26", "negative control", BEHIND[CONTROL], above(HALF), FIGURE, kind=OWN)
    for name, comparison in (("keys", AT_400["k_frac_400"]), ("values", AT_400["v_frac_400"])):
        yield gate(context, "26", f"setting A, {name} at step 400", comparison, above(HALF), FIGURE)
