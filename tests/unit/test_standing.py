"""The line of a claim never says more than its strongest evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kit.conditions import in_words, parsed
from pipeline.kit.intervals import STUDENT
from pipeline.references import standing
from pipeline.references.reading import Reference, beside
from schemas.claims import (
    ANALOGUE,
    CONTRADICTED,
    CORRECTED,
    EXTERNAL,
    FAILS,
    HOLDS,
    IN_PART,
    NOT_RUN,
    OWN,
    SCALES,
    STATED,
    TOO_FEW,
    UNDECIDED,
    VERDICTS,
)


def row(verdict: str, *references: tuple[Any, ...], **more: Any) -> dict[str, Any]:
    """A gate of claim 1 that was judged at quick, and in reference sets of a scale, with some number of models."""
    keys = ("scale", "verdict", "n", "same")
    pairs = [(None, {"same": True} | dict(zip(keys, each, strict=False))) for each in references]
    own = {"claim": "1", "statement": "It is so.", "source": "A", "scale": "quick", "kind": STATED}
    return own | {"verdict": verdict, "references": pairs} | more


@pytest.mark.parametrize(
    ("rows", "verdict", "share", "evidence"),
    [
        ([row(HOLDS), row(HOLDS)], HOLDS, "2 of 2 gates", "quick: holds (all 2 gates)"),
        ([row(HOLDS, ("paper", FAILS))], CONTRADICTED, "1 gate", "quick: holds (1 gate) · paper: fails (1 gate)"),
        ([row(NOT_RUN, ("paper", HOLDS))], HOLDS, "1 gate", "paper: holds (1 gate)"),
        ([row(HOLDS), row(NOT_RUN)], HOLDS, "1 of 2 gates", "quick: holds (1 gate) · 1 gate not run"),
        ([row(HOLDS), row(FAILS)], IN_PART, "1 of 2 gates", "quick: 1 holds, 1 fails"),
        ([row(HOLDS), row(HOLDS), row(FAILS)], IN_PART, "1 of 3 gates", "quick: 2 hold, 1 fails"),
        ([row(UNDECIDED), row(HOLDS)], UNDECIDED, "1 of 2 gates", "quick: 1 holds, 1 undecided"),
        ([row(UNDECIDED), row(FAILS)], IN_PART, "1 of 2 gates", "quick: 1 undecided, 1 fails"),
        ([row(NOT_RUN), row(NOT_RUN)], NOT_RUN, "", "2 gates not run"),
        ([row(NOT_RUN), row(TOO_FEW)], TOO_FEW, "", "1 gate on too few models · 1 gate not run"),
        ([row(TOO_FEW), row(HOLDS)], HOLDS, "1 of 2 gates", "quick: holds (1 gate) · 1 gate on too few models"),
        ([row(HOLDS, ("paper", NOT_RUN))], HOLDS, "1 gate", "quick: holds (1 gate)"),
        # Where sets of a scale disagree, more models decide; of as many, those against the claim.
        ([row(FAILS, ("paper", HOLDS), ("paper", FAILS))], CONTRADICTED, "1 gate", None),
        ([row(NOT_RUN, ("quick", HOLDS)), row(HOLDS)], HOLDS, "2 of 2 gates", "quick: holds (all 2 gates)"),
        ([row(HOLDS, ("quick", FAILS))], CONTRADICTED, "1 gate", "quick: fails (1 gate)"),
        ([row(UNDECIDED, ("quick", HOLDS, 5), n=3)], HOLDS, "1 gate", "quick: holds (1 gate)"),
        ([row(HOLDS, ("quick", UNDECIDED, 5), n=3)], UNDECIDED, "1 gate", None),
        ([row(UNDECIDED, ("quick", FAILS, 3), n=5)], UNDECIDED, "1 gate", None),
        # A set that asked something else does not count.
        ([row(HOLDS, ("paper", FAILS, 9, False))], HOLDS, "1 gate", "quick: holds (1 gate)"),
        # Own checks and corrected forms say nothing of a statement of the source.
        ([row(HOLDS), row(FAILS, kind=OWN)], HOLDS, "1 gate", "quick: holds (1 gate)"),
        ([row(FAILS), row(HOLDS, kind=CORRECTED)], CONTRADICTED, "1 gate", "quick: fails (1 gate)"),
        ([row(FAILS), row(HOLDS, kind=ANALOGUE)], CONTRADICTED, "1 gate", "quick: fails (1 gate)"),
        ([row(NOT_RUN), row(HOLDS, kind=ANALOGUE)], HOLDS, "1 gate", "quick: holds (1 gate)"),
        ([row(NOT_RUN), row(HOLDS, kind=OWN)], NOT_RUN, "", "1 gate not run"),
        ([row(HOLDS, kind=ANALOGUE), row(FAILS, kind=OWN)], HOLDS, "1 gate", "quick: holds (1 gate)"),
        ([row(FAILS, kind=OWN), row(HOLDS, kind=OWN)], IN_PART, "1 of 2 gates", "quick: 1 holds, 1 fails"),
    ],
)
def test_the_strongest_evidence_leads(
    rows: list[dict[str, Any]], verdict: str, share: str, evidence: str | None
) -> None:
    (line,) = standing.lines(rows)
    assert (line.claim, line.statement, line.verdict) == ("1", "It is so.", verdict)
    assert line.share == share and evidence in (None, line.evidence)


def test_what_a_larger_scale_measured_just_so_is_told_of_this_build() -> None:
    same = {"verdict": HOLDS, "value": 0.95, "lo": 0.88, "hi": 0.98, "n": 100}
    for change, at in (({}, "quick"), ({"hi": 0.97}, "long"), ({"n": 200}, "long"), ({"verdict": FAILS}, "long")):
        other = same | change | {"scale": "long", "same": True}
        strongest, reference = standing.strongest(row(**same) | {"references": [("set", other)]})
        assert (strongest["scale"], reference) == (at, "set" if at == "long" else None)
    # What has no number is not known to be the same.
    empty = dict.fromkeys(("value", "lo", "hi", "n")) | {"verdict": HOLDS}
    strongest, _ = standing.strongest(row(**empty) | {"references": [("set", empty | {"scale": "long", "same": True})]})
    assert strongest["scale"] == "long"


def test_own_checks_and_corrected_forms_stand_beside() -> None:
    kinds = [(HOLDS, STATED), (FAILS, OWN), (HOLDS, OWN), (NOT_RUN, OWN), (HOLDS, CORRECTED)]
    (line,) = standing.lines([row(verdict, kind=kind) for verdict, kind in kinds])
    assert (line.verdict, line.beside) == (HOLDS, "corrected forms: 1 of 1 hold; own checks: 1 of 2 hold")
    (alone,) = standing.lines([row(HOLDS, kind=OWN)])
    assert alone.beside == ""


rows = st.lists(
    st.builds(row, st.sampled_from(VERDICTS), st.tuples(st.sampled_from(SCALES[1:]), st.sampled_from(VERDICTS))),
    min_size=1,
    max_size=5,
)


@given(rows)
def test_what_shows_as_holding_is_nowhere_contradicted_by_more(found: list[dict[str, Any]]) -> None:
    (line,) = standing.lines(found)
    if line.verdict == HOLDS:
        for each in found:
            largest = [entry for _, reference in each["references"] if (entry := reference)["scale"] == "paper"]
            against = [reference for reference in largest if reference["verdict"] in (FAILS, UNDECIDED)]
            assert not against and standing.best(each) in (HOLDS, TOO_FEW, NOT_RUN)


@given(rows)
def test_kinds_are_counted_apart(found: list[dict[str, Any]]) -> None:
    own = [each | {"kind": OWN} for each in found]
    by_kind = {kind: sum(count for _, count in each) for kind, each in standing.counts([*found, *own])}
    assert by_kind == {STATED: len(found), OWN: len(found)}


def test_what_decides_is_counted_by_the_strongest_evidence_without_what_a_user_has_to_bring() -> None:
    rows = [
        row(HOLDS, reason=""),
        row(TOO_FEW, ("long", FAILS), reason="2 of 3"),
        row(UNDECIDED, reason="across"),
        row(NOT_RUN, reason="needs scale paper"),
        row(NOT_RUN, reason=f"{EXTERNAL}: no folder is named"),
        row(HOLDS, reason="", kind=OWN),
    ]
    assert standing.decided(rows) == (2, 4)
    assert standing.decided([]) == (0, 0)


def test_of_what_is_open_it_is_said_what_would_decide_it() -> None:
    rows = [
        row(HOLDS, reason=""),
        row(NOT_RUN, ("long", UNDECIDED, 6), reason="", scale_needed="quick"),
        row(UNDECIDED, reason="across", n=6, replicas_needed=12),
        row(UNDECIDED, reason="across", n=6, replicas_needed=72),
        row(TOO_FEW, reason="2 of 3", n=2, replicas_needed=6),
        row(TOO_FEW, reason="0 of 3", n=0, replicas_needed=6),
        row(NOT_RUN, reason="needs scale paper", value=0.5, n=6, scale_needed="paper"),
        row(NOT_RUN, reason="not run", scale_needed="quick"),
        row(NOT_RUN, reason=f"{EXTERNAL}: no folder is named"),
        row(UNDECIDED, reason="across", n=6, replicas_needed=12, kind=OWN),
    ]
    ways = [way for _, way in standing.open_gates(rows)]
    few, many, larger, others = standing.WAYS
    assert ways == [many, few, many, few, others, larger, others]
    decided, asked = standing.decided(rows)
    assert len(ways) == asked - decided
    told, _ = standing.open_gates(rows)[0]
    assert (told["scale"], told["n"], told["claim"]) == ("long", 6, "1")


def gate(claim: str, name: str, comparison: str, bound: str = "value > 0", words: str = "it") -> dict[str, Any]:
    """A row of a claims table, as far as it says what is asked."""
    asked = {"comparison": comparison, "bound": bound, "predicate": f"{words}: {in_words(parsed(bound))}"}
    found = {"value": 0.5, "lo": 0.2, "hi": 0.8, "n": 6, "fewest": 5, "interval": STUDENT, "reason": ""}
    return {"claim": claim, "gate": name, "source": "A", "scale_needed": "quick", "verdict": HOLDS} | asked | found


@pytest.mark.parametrize(
    ("asked", "claim", "same"),
    [
        (gate("1", "a", "lost"), "1", True),
        (gate("9", "a", "lost"), "1", True),  # it moved to another claim
        (gate("1", "b", "lost"), "1", True),  # it got another name, and another gate of the set has that name
        (gate("2", "a", "won"), "2", True),  # of two rows that ask the same, the one of its claim
        (gate("1", "a", "lost", "value > 1", "another measure"), "1", False),
        (gate("1", "c", "", words="the theorem"), "1", True),
        (gate("9", "c", "", words="the theorem"), None, None),  # without a comparison it is known by its claim
        (gate("1", "d", "other"), None, None),
    ],
)
def test_a_set_answers_a_gate_that_moved(asked: dict[str, Any], claim: str | None, same: bool | None) -> None:
    rows = [
        gate("1", "a", "lost"),
        gate("1", "b", "won"),
        gate("1", "c", "", words="the theorem"),
        gate("2", "x", "won"),
    ]
    reference = Reference("set", "paper", {}, [], {(each["claim"], each["gate"]): each for each in rows})
    found = beside([reference], asked)
    assert [(each["claim"], each["same"]) for _, each in found] == ([] if claim is None else [(claim, same)])


@pytest.mark.parametrize(
    ("bound", "verdict"), [("value > 0.1", HOLDS), ("value > 0.3", UNDECIDED), ("upper end < 0.1", FAILS)]
)
def test_what_measured_the_same_is_judged_by_the_bar_of_this_build(bound: str, verdict: str) -> None:
    frozen = gate("1", "a", "lost")
    reference = Reference("set", "paper", {}, [], {("1", "a"): frozen})
    ((_, found),) = beside([reference], gate("9", "b", "lost", bound))
    assert (found["verdict"], found["same"], found["bound"]) == (verdict, True, bound)
    assert found["reason"].endswith("(by the bar of this build)") and frozen["bound"] == "value > 0"


@pytest.mark.parametrize(
    ("then", "now", "scale", "verdict"),
    [
        ("paper", "quick", "long", HOLDS),  # it was measured, and left aside
        ("quick", "paper", "long", NOT_RUN),
        ("quick", "paper", "paper", HOLDS),
        ("paper", "long", "quick", NOT_RUN),
    ],
)
def test_from_which_scale_on_a_set_judges_this_build_says(then: str, now: str, scale: str, verdict: str) -> None:
    verdict_then = NOT_RUN if SCALES.index(scale) < SCALES.index(then) else HOLDS
    frozen = gate("1", "a", "lost") | {"scale_needed": then, "verdict": verdict_then}
    reference = Reference("set", scale, {}, [], {("1", "a"): frozen})
    ((_, found),) = beside([reference], gate("1", "a", "lost") | {"scale_needed": now})
    assert (found["verdict"], found["same"]) == (verdict, True)
    assert found["reason"].endswith("(by the scale that this build asks for)") == (verdict != verdict_then)


def test_how_many_would_decide_is_said_of_the_bar_of_this_build() -> None:
    frozen = gate("1", "a", "lost", "value > 0.3") | {"verdict": UNDECIDED, "replicas_needed": 14}
    reference = Reference("set", "paper", {}, [], {("1", "a"): frozen})
    ((_, decided),) = beside([reference], gate("1", "a", "lost", "value > 0.1"))
    ((_, undecided),) = beside([reference], gate("1", "a", "lost", "value > 0.4"))
    assert decided["replicas_needed"] is None and undecided["replicas_needed"] > 14


@pytest.mark.parametrize(("bound", "verdict"), [("value > 0", FAILS), ("value > 0.1", FAILS)])
def test_what_is_not_defined_was_run(bound: str, verdict: str) -> None:
    frozen = gate("1", "a", "lost") | {"value": None, "lo": None, "hi": None, "verdict": FAILS}
    reference = Reference("set", "paper", {}, [], {("1", "a"): frozen})
    ((_, found),) = beside([reference], gate("1", "a", "lost", bound))
    assert (found["verdict"], found["same"]) == (verdict, True)


def test_where_this_build_has_no_bar_the_set_judges_by_its_own() -> None:
    """A bar that comes from data is unknown where these are not here."""
    reference = Reference("set", "paper", {}, [], {("1", "a"): gate("1", "a", "lost")})
    asked = gate("1", "a", "lost") | {"bound": "", "predicate": "it", "verdict": NOT_RUN, "value": None}
    ((_, found),) = beside([reference], asked)
    assert (found["verdict"], found["same"], found["bound"]) == (HOLDS, True, "value > 0")
    assert not found["reason"]
    ((_, other),) = beside([reference], asked | {"predicate": "something else"})
    assert not other["same"]


@pytest.mark.parametrize(
    ("words", "same"),
    [
        ("share of models whose error is at most 0.1: A", True),
        ("share of models whose error is at most 0.2: A", False),
        ("share of models with an error of at most 0.1: A", True),  # what the set calls it is not what it counts
        ("mean error at 0.2: A", False),
    ],
)
def test_of_a_share_the_words_say_what_is_counted(words: str, same: bool) -> None:
    frozen = gate("1", "a", "few", words=words)
    reference = Reference("set", "paper", {}, [], {("1", "a"): frozen})
    asked = gate("1", "a", "few", words="share of models whose error is at most 0.1: A")
    assert [each["same"] for _, each in beside([reference], asked)] == [same]
