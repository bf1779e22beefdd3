"""The line of a claim never says more than its strongest evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.references import standing
from schemas.claims import FAILS, HOLDS, NOT_TESTED, OWN, PARTLY, SCALES, STATED, UNDECIDED

GATE_VERDICTS = [HOLDS, FAILS, UNDECIDED, NOT_TESTED]


def row(verdict: str, *references: tuple[Any, ...], **more: Any) -> dict[str, Any]:
    """A gate of claim 1 that was judged at quick, and in reference sets of a scale, with some number of models."""
    pairs = [(None, dict(zip(("scale", "verdict", "n"), each, strict=False))) for each in references]
    own = {"claim": "1", "statement": "It is so.", "source": "A", "scale": "quick", "kind": STATED}
    return own | {"verdict": verdict, "references": pairs} | more


@pytest.mark.parametrize(
    ("rows", "verdict", "evidence"),
    [
        ([row(HOLDS), row(HOLDS)], HOLDS, "quick: holds (all 2 gates)"),
        ([row(HOLDS, ("paper", FAILS))], FAILS, "quick: holds (1 gate) · paper: fails (1 gate)"),
        ([row(NOT_TESTED, ("paper", HOLDS))], HOLDS, "paper: holds (1 gate)"),
        (
            [row(HOLDS), row(NOT_TESTED)],
            PARTLY,
            "quick: holds (1 gate) · 1 gate untested",
        ),
        ([row(HOLDS), row(FAILS)], PARTLY, "quick: holds partly (1 holds, 1 fails)"),
        ([row(UNDECIDED)], UNDECIDED, "quick: undecided (1 gate)"),
        ([row(NOT_TESTED), row(NOT_TESTED)], NOT_TESTED, "2 gates untested"),
        ([row(HOLDS, ("paper", NOT_TESTED))], HOLDS, "quick: holds (1 gate)"),
        ([row(FAILS, ("paper", HOLDS), ("paper", FAILS))], PARTLY, None),
        # Sets at the scale of this build: each gate counts once, and more models decide what fewer do not.
        ([row(NOT_TESTED, ("quick", HOLDS)), row(HOLDS)], HOLDS, "quick: holds (all 2 gates)"),
        ([row(HOLDS, ("quick", FAILS))], PARTLY, "quick: holds partly (1 gate)"),
        ([row(UNDECIDED, ("quick", HOLDS, 5), n=3)], HOLDS, "quick: holds (1 gate)"),
        ([row(HOLDS, ("quick", UNDECIDED, 5), n=3)], PARTLY, None),
        ([row(UNDECIDED, ("quick", FAILS, 3), n=5)], FAILS, None),
    ],
)
def test_the_strongest_evidence_leads(rows: list[dict[str, Any]], verdict: str, evidence: str | None) -> None:
    (line,) = standing.lines(rows)
    assert (line.claim, line.statement, line.verdict) == ("1", "It is so.", verdict)
    assert evidence in (None, line.evidence)


rows = st.lists(
    st.builds(
        row,
        st.sampled_from(GATE_VERDICTS),
        st.tuples(st.sampled_from(SCALES[1:]), st.sampled_from(GATE_VERDICTS)),
    ),
    min_size=1,
    max_size=5,
)


@given(rows)
def test_what_shows_as_holding_is_tested_everywhere_and_nowhere_contradicted_by_more(
    found: list[dict[str, Any]],
) -> None:
    (line,) = standing.lines(found)
    if line.verdict == HOLDS:
        for each in found:
            largest = [
                entry for _, reference in each["references"] if (entry := reference)["scale"] == "paper"
            ]
            against = [reference for reference in largest if reference["verdict"] in (FAILS, UNDECIDED)]
            assert not against and standing.best(each) == HOLDS


@given(rows)
def test_kinds_are_counted_apart(found: list[dict[str, Any]]) -> None:
    own = [each | {"kind": OWN} for each in found]
    by_kind = {kind: sum(count for _, count in each) for kind, each in standing.counts([*found, *own])}
    assert by_kind == {STATED: len(found), OWN: len(found)}
