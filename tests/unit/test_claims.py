"""Verdicts follow from measurements."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.errors import SandglassError
from pipeline.kit import intervals, verdicts
from pipeline.kit.conditions import Condition, within
from pipeline.kit.verdicts import Gate, Measured, Published
from pipeline.references.upgrade import upgraded
from pipeline.store import tables
from schemas.claims import (
    CEILING,
    CONTRADICTED,
    CORRECTED,
    FAILS,
    FLOOR,
    HOLDS,
    IN_PART,
    INSIDE,
    NO_INTERVAL,
    NONE_PUBLISHED,
    NOT_RUN,
    NUMBER,
    OUTSIDE,
    OWN,
    STATED,
    TOO_FEW,
    UNDECIDED,
    Claims,
)

SAID = {key: f"Claim {key} is so." for key in ("1", "2", "3", "10")}


def gate(measured: Measured | None, *conditions: Condition, **more: Any) -> Gate:
    return Gate("1", more.pop("gate", "g"), "p", "s", conditions, measured, **more)


@pytest.mark.parametrize(
    ("measured", "condition", "verdict", "reason"),
    [
        (Measured(0.3, 0.1, 0.45), Condition("hi", "<", 0.5), HOLDS, "upper end 0.45 < 0.5"),
        (Measured(0.3, 0.1, 0.6), Condition("hi", "<", 0.5), UNDECIDED, "the interval 0.1 to 0.6 reaches across 0.5"),
        (Measured(0.7, 0.6, 0.8), Condition("hi", "<", 0.5), FAILS, "upper end 0.8, not < 0.5"),
        (Measured(0.7, 0.4, 0.8), Condition("value", ">", 0.5), UNDECIDED, None),
        (Measured(0.3), Condition("lo", ">", 0), FAILS, "lower end not defined"),
        (Measured(float("nan")), Condition("value", ">", 0), FAILS, "value not defined"),
        (Measured(0.5), Condition("value", "<", 0.5), FAILS, "value 0.5, not < 0.5"),
        (Measured(0.5), Condition("value", "<=", 0.5), HOLDS, "value 0.5 <= 0.5"),
    ],
)
def test_a_verdict_follows_from_the_numbers(
    measured: Measured, condition: Condition, verdict: str, reason: str | None
) -> None:
    outcome = gate(measured, condition).verdict("quick")
    assert outcome[0] == verdict and reason in (None, outcome[1])


def test_one_condition_that_fails_is_enough_and_one_that_is_undecided_leaves_it_open() -> None:
    tested = gate(Measured(3.5, 3.3, 3.8), *within(2.27, 0.9))
    assert tested.verdict("quick") == (FAILS, "value 3.5, not <= 3.17")
    assert gate(Measured(1.353, 0.78, 2.14), *within(2.27, 0.9)).verdict("quick")[0] == UNDECIDED
    assert gate(Measured(2.33, 1.5, 3.0), *within(2.27, 0.9)).verdict("quick")[0] == HOLDS
    assert gate(Measured(2.33), *within(2.27, 0.9)).verdict("quick")[0] == HOLDS


@given(
    value=st.floats(-10, 10),
    below=st.floats(0, 5),
    above=st.floats(0, 5),
    bound=st.floats(-10, 10),
    comparison=st.sampled_from(["<", "<=", ">", ">="]),
)
def test_a_decided_verdict_is_that_of_every_number_in_the_interval(
    value: float, below: float, above: float, bound: float, comparison: str
) -> None:
    measured = Measured(value, value - below, value + above, 10)
    verdict = gate(measured, Condition("value", comparison, bound)).verdict("quick")[0]
    each = {
        gate(Measured(number), Condition("value", comparison, bound)).verdict("quick")[0]
        for number in (value, value - below, value + above)
    }
    assert verdict == (each.pop() if len(each) == 1 else UNDECIDED)


@given(n=st.integers(2, 50), half=st.floats(0.01, 5), distance=st.floats(0.1, 5))
def test_that_many_replicas_would_decide(n: int, half: float, distance: float) -> None:
    assume(half > distance * 1.001)
    assume(n * (half / distance) ** 2 < 0.9 * intervals.MOST)  # more than that nobody is told
    open_ = gate(Measured(1.0, 1.0 - half, 1.0 + half, n), Condition("value", ">", 1.0 - distance))
    needed = open_.replicas("quick")
    assert needed is not None and needed >= n
    shorter = half * math.sqrt(n / needed)  # of an interval of so many replicas
    decided = gate(Measured(1.0, 1.0 - shorter * 0.99999, 2.0, needed), *open_.conditions)
    assert decided.verdict("quick")[0] == HOLDS and decided.replicas("quick") is None


def test_nothing_says_how_many_replicas_where_the_value_is_the_bar() -> None:
    assert gate(Measured(0.5, 0.0, 1.0, 3), Condition("value", ">=", 0.5)).replicas("quick") is None
    assert gate(Measured(0.5, 0.0, 1.0), Condition("value", ">", 0.4)).replicas("quick") is None


@pytest.mark.parametrize(
    ("measured", "published", "size"),
    [
        (Measured(1.0, 0.5, 1.5), 1.2, INSIDE),
        (Measured(1.0, 0.5, 1.5), 2.27, OUTSIDE),
        (Measured(1.0, 0.5, 1.5), Published(1.4, 1.6), INSIDE),
        (Measured(1.0, 0.5, 1.5), Published(1.6, 1.8), OUTSIDE),
        (Measured(0.99, 0.98, 1.0), Published(0.97, form=FLOOR), INSIDE),
        (Measured(0.99, 0.98, 1.0), Published(0.97, form=CEILING), OUTSIDE),
        (Measured(1.0), 1.0, NO_INTERVAL),
        (Measured(1.0, 0.5, 1.5), None, NONE_PUBLISHED),
        (None, 1.0, NOT_RUN),
    ],
)
def test_the_size_is_told_apart_from_the_effect(measured: Measured | None, published: Any, size: str) -> None:
    assert gate(measured, Condition("value", ">", 0), published=published).size("quick") == size


def test_a_size_may_need_a_larger_scale_than_the_effect() -> None:
    small = gate(Measured(1.0, 0.5, 1.5), Condition("value", ">", 0), published=1.2, size_needed="paper")
    assert small.verdict("quick")[0] == HOLDS
    assert small.size("quick") == NOT_RUN and small.size("paper") == INSIDE


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ((Condition("value", ">=", 0.97),), "at least 0.97"),
        ((Condition("value", "<", 0),), "below 0"),
        (within(1.05, 0.15), "0.9 to 1.2"),
        ((Condition("value", ">", 0), Condition("lo", ">", 0)), "above 0 with its whole interval"),
        ((Condition("hi", "<", 0.9),), "below 0.9 with its whole interval"),
        ((Condition("value", "<", 0.2), Condition("hi", "<", 0.5)), "below 0.2 and below 0.5 with its whole interval"),
        ((Condition("value", ">=", 0), Condition("value", "<=", 0)), "exactly 0"),
        ((), ""),
    ],
)
def test_a_bar_in_words_is_that_of_the_conditions(conditions: tuple[Condition, ...], words: str) -> None:
    assert verdicts.in_words(conditions) == words
    assert gate(Measured(1.0), *conditions).predicate == (f"p: {words}" if words else "p")
    assert gate(Measured(1.0), *conditions, stated=True).predicate == "p"


@given(st.floats(-1e3, 1e3), st.sampled_from(["<", "<=", ">", ">="]), st.sampled_from(["value", "lo", "hi"]))
def test_another_bar_has_other_words(bound: float, comparison: str, what: str) -> None:
    one = Condition(what, comparison, bound)
    for other in (
        Condition(what, comparison, bound + 1),
        Condition(what, {"<": ">", ">": "<"}.get(comparison[0], "") + comparison[1:], bound),
    ):
        assert verdicts.in_words((one,)) != verdicts.in_words((other,))


def test_what_cannot_be_tested_says_why() -> None:
    few = gate(Measured(0.62, n=3, fewest=5))
    assert few.verdict("quick") == (TOO_FEW, "0.62 of 3; a verdict needs 5") and few.replicas("quick") == 5
    assert gate(None, missing="run x is not there").verdict("paper") == (NOT_RUN, "run x is not there")
    small = gate(Measured(-1.0), Condition("value", "<", 0), scale_needed="paper", published=1.0)
    assert small.verdict("quick") == (NOT_RUN, "needs scale paper, this is quick")
    assert small.size("quick") == NOT_RUN
    assert small.verdict("paper")[0] == HOLDS


@pytest.mark.parametrize(
    ("found", "expected", "share"),
    [
        ([HOLDS, HOLDS], HOLDS, "2 of 2 gates"),
        ([HOLDS, NOT_RUN], HOLDS, "1 of 2 gates"),
        ([HOLDS, FAILS], IN_PART, "1 of 2 gates"),
        ([HOLDS, UNDECIDED], UNDECIDED, "1 of 2 gates"),
        ([FAILS, UNDECIDED, NOT_RUN], IN_PART, "1 of 2 gates"),
        ([FAILS, FAILS], CONTRADICTED, "2 of 2 gates"),
        ([UNDECIDED, NOT_RUN], UNDECIDED, "1 gate"),
        ([TOO_FEW, NOT_RUN], TOO_FEW, ""),
        ([NOT_RUN], NOT_RUN, ""),
        ([], NOT_RUN, ""),
    ],
)
def test_a_claim_is_its_gates(found: list[str], expected: str, share: str) -> None:
    assert verdicts.stands((STATED, verdict) for verdict in found) == (expected, share)
    # What no source says changes nothing, beside at least one statement that it does.
    if found:
        others = [(kind, verdict) for kind in (OWN, CORRECTED) for verdict in (FAILS, HOLDS, UNDECIDED)]
        stated = [(STATED, verdict) for verdict in found]
        assert verdicts.stands([*others, *stated]) == (expected, share)


def test_table_and_metrics() -> None:
    below = Condition("value", "<", 1)
    gates = [
        gate(Measured(0.0, n=4, excluded=1, excluded_reason="1 diverged"), below, gate="holds", kind=OWN),
        gate(Measured(2.0), below, gate="fails", published=Published(3.0, derivation="6 / 2")),
        gate(None, gate="missing", missing="not there"),
        gate(Measured(0.8, 0.0, 1.6, n=4), below, gate="open"),
        Gate("2", "a", "p", "s", (below,), Measured(0.0), kind=CORRECTED),
        Gate("2", "b", "p", "s", (below,), None, "not there"),
        Gate("3", "a", "p", "s", (below,), Measured(5.0)),
        Gate("10", "a", "p", "s", (below,), Measured(0.0), scale_needed="paper"),
    ]
    frame = verdicts.table(gates, SAID, "study", "quick", "abc")
    tables.validate(frame, Claims, "claims")
    assert frame["statement"].unique(maintain_order=True).to_list() == list(SAID.values())
    assert frame["replicas_needed"].to_list()[:4] == [None, None, None, 65]
    assert frame.filter(gate="fails").row(0, named=True)["derivation"] == "6 / 2"
    expected = {
        "1": "contradicted in part (1 of 2 gates)",
        "2": "not run",
        "3": "contradicted (1 gate)",
        "10": "not run",
    }
    assert list(verdicts.as_metrics(frame).items()) == list(expected.items())


def test_a_claim_without_a_sentence_is_refused() -> None:
    with pytest.raises(SandglassError, match="claim 1 of study has no sentence"):
        verdicts.table([gate(None, missing="not there")], {}, "study", "quick", "abc")


def test_the_schema_refuses_a_verdict_that_was_typed() -> None:
    frame = verdicts.table([gate(None, missing="not there")], SAID, "study", "quick", "abc")
    with pytest.raises(SandglassError, match="what holds was measured"):
        tables.validate(frame.with_columns(verdict=pl.lit(HOLDS)), Claims, "claims")


@pytest.mark.parametrize(
    ("verdict", "reason", "numbers", "expected"),
    [
        ("reproduced", "value 0.3 < 0.5; upper end 0.45 < 0.5", (0.3, 0.1, 0.45), HOLDS),
        ("reproduced", "value 0.3 < 0.5", (0.3, 0.1, 0.6), UNDECIDED),
        ("not reproduced", "value 1.353, not >= 1.37", (1.353, 0.78, 2.14), UNDECIDED),
        ("not reproduced", "value 3.5, not <= 3.17", (3.5, 3.3, 3.8), FAILS),
        ("not reproduced", "value not defined", (None, None, None), FAILS),
        ("not tested at this scale", "run a is not there", (None, None, None), NOT_RUN),
        ("not tested at this scale", "pilot: 0.6 of 2 models; a verdict needs 3", (None, None, None), TOO_FEW),
    ],
)
def test_an_older_set_is_judged_by_its_intervals(
    verdict: str, reason: str, numbers: tuple[float | None, ...], expected: str
) -> None:
    own = dict(zip(("value", "lo", "hi"), numbers, strict=True))
    frame = upgraded(_old(verdict=verdict, reason=reason, **own))
    tables.validate(frame, Claims, "claims")
    row = frame.row(0, named=True)
    assert row["verdict"] == expected and row["published_form"] == NUMBER
    assert upgraded(frame).equals(frame)


@pytest.mark.parametrize(
    ("predicate", "form", "size"),
    [
        ("median accuracy of M1 is at least 0.97", FLOOR, INSIDE),
        ("median accuracy of M1 is at least 0.9", NUMBER, OUTSIDE),
        ("share of M1 that is at least 0.97 is below 0.2", NUMBER, OUTSIDE),
        ("accuracy of M1 is 0.97 ± 0.1", NUMBER, OUTSIDE),
    ],
)
def test_what_an_older_set_asks_for_at_least_is_a_published_bound(predicate: str, form: str, size: str) -> None:
    old = _old(value=1.0, lo=0.999, hi=1.0, predicate=predicate, published=0.97, reason="value 1 >= 0.97")
    frame = upgraded(old)
    tables.validate(frame, Claims, "claims")
    assert frame.select("published_form", "verdict", "size").row(0) == (form, HOLDS, size)


@pytest.mark.parametrize(
    ("claim", "gate", "key"), [("3", "M1", "accuracy-standard"), ("3", "M2", ""), ("4", "M1", ""), ("3", "another", "")]
)
def test_a_sentence_of_an_older_set_is_known_by_its_gate(claim: str, gate: str, key: str) -> None:
    said = "median acc_close of M1 on data like its training data is at least 0.97"
    old = _old(study="dyck", claim=claim, gate=gate, predicate=said, reason="")
    assert upgraded(old)["comparison"].item() == key
    assert upgraded(old.with_columns(study=pl.lit("s")))["comparison"].item() == ""


@pytest.mark.parametrize(
    ("reason", "lo", "bound"),
    [
        ("value 0.3 < 0.5; upper end 0.45 < 0.5", 0.1, "value < 0.5"),
        ("value 0.3 < 0.25; upper end 0.45 < 0.5", 0.1, "value < 0.25"),
        ("upper end 0.45 < 0.5", 0.1, "value < 0.5"),
        ("upper end 0.45 < 0.5", None, "upper end < 0.5"),
        ("value 0.3 >= 0.2; value 0.3 <= 0.5", 0.1, "value >= 0.2 and value <= 0.5"),
    ],
)
def test_what_an_older_set_asks_of_the_ends_is_asked_of_the_value(reason: str, lo: float | None, bound: str) -> None:
    frame = upgraded(_old(value=0.3, lo=lo, hi=0.45, reason=reason))
    assert frame["bound"].item() == bound


def _old(**own: Any) -> pl.DataFrame:
    """A gate of a set that was frozen when claims had fewer columns."""
    row = {
        "study": "s",
        "claim": "1",
        "gate": "g",
        "predicate": "p",
        "source": "s",
        "published": 2.27,
        "n": 10,
        "excluded": 0,
        "excluded_reason": "",
        "scale_needed": "quick",
        "scale": "paper",
        "verdict": "reproduced",
        "params_hash": "h",
    }
    types = dict.fromkeys(("value", "lo", "hi"), pl.Float64) | {"n": pl.Int32, "excluded": pl.Int32}
    return pl.DataFrame([row | own], schema_overrides=types)
