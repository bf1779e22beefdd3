"""Verdicts follow from measurements."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.kit import verdicts
from pipeline.kit.verdicts import Condition, Gate, Measured, within
from pipeline.store import tables
from schemas.claims import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED, Claims


def gate(measured: Measured | None, *conditions: Condition, **more: Any) -> Gate:
    return Gate("1", more.pop("gate", "g"), "p", "s", conditions, measured, **more)


@pytest.mark.parametrize(
    ("measured", "condition", "verdict", "reason"),
    [
        (Measured(0.3, 0.1, 0.45), Condition("hi", "<", 0.5), REPRODUCED, "upper end 0.45 < 0.5"),
        (Measured(0.3, 0.1, 0.6), Condition("hi", "<", 0.5), NOT_REPRODUCED, "upper end 0.6, not < 0.5"),
        (Measured(0.3), Condition("lo", ">", 0), NOT_REPRODUCED, "lower end not defined"),
        (Measured(float("nan")), Condition("value", ">", 0), NOT_REPRODUCED, "value not defined"),
        (Measured(0.5), Condition("value", "<", 0.5), NOT_REPRODUCED, "value 0.5, not < 0.5"),
        (Measured(0.5), Condition("value", "<=", 0.5), REPRODUCED, "value 0.5 <= 0.5"),
    ],
)
def test_a_verdict_follows_from_the_numbers(
    measured: Measured, condition: Condition, verdict: str, reason: str
) -> None:
    assert gate(measured, condition).verdict("quick") == (verdict, reason)


def test_all_conditions_must_hold_and_only_failures_are_named() -> None:
    tested = gate(Measured(3.3, 3.0, 3.5), *within(2.27, 0.9))
    assert tested.verdict("quick") == (NOT_REPRODUCED, "value 3.3, not <= 3.17")
    assert gate(Measured(2.33), *within(2.27, 0.9)).verdict("quick")[0] == REPRODUCED


def test_what_cannot_be_tested_says_why() -> None:
    assert gate(None, missing="run x is not there").verdict("paper") == (NOT_TESTED, "run x is not there")
    small = gate(Measured(-1.0), Condition("value", "<", 0), scale_needed="paper")
    assert small.verdict("quick") == (NOT_TESTED, "needs scale paper, this is quick")
    assert small.verdict("paper")[0] == REPRODUCED


def test_table_summary_and_metrics() -> None:
    below = Condition("value", "<", 1)
    gates = [
        gate(Measured(0.0, n=4, excluded=1, excluded_reason="1 diverged"), below, gate="holds"),
        gate(Measured(2.0), below, gate="fails"),
        gate(None, gate="missing", missing="not there"),
        Gate("2", "a", "p", "s", (below,), Measured(0.0)),
        Gate("2", "b", "p", "s", (below,), None, "not there"),
        Gate("3", "a", "p", "s", (below,), Measured(5.0)),
        Gate("10", "a", "p", "s", (below,), Measured(0.0), scale_needed="paper"),
    ]
    frame = verdicts.table(gates, "study", "quick", "abc")
    tables.validate(frame, Claims, "claims")
    found = verdicts.summary(frame)
    assert found["claim"].to_list() == ["1", "2", "3", "10"]
    assert found["verdict"].to_list() == [PARTLY, REPRODUCED, NOT_REPRODUCED, NOT_TESTED]
    assert found.row(0)[3:] == (1, 1, 1)
    metrics = verdicts.as_metrics(frame)
    assert metrics["1"] == {
        "verdict": PARTLY,
        "gates": {
            "holds": {"verdict": REPRODUCED, "value": 0.0},
            "fails": {"verdict": NOT_REPRODUCED, "value": 2.0},
            "missing": {"verdict": NOT_TESTED, "value": None},
        },
    }


def test_the_schema_refuses_a_verdict_that_was_typed() -> None:
    frame = verdicts.table([gate(None, missing="not there")], "study", "quick", "abc")
    with pytest.raises(SandglassError, match="what is reproduced was measured"):
        tables.validate(frame.with_columns(verdict=pl.lit(REPRODUCED)), Claims, "claims")
