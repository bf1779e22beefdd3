"""Comparisons: declared once, measured all, and never taken for another."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.kit import comparisons, evidence, intervals
from pipeline.kit.comparisons import (
    CORRELATION,
    MEAN,
    MEAN_DIFFERENCE,
    MEDIAN,
    OWN,
    RATIO,
    SHARE,
    SHARE_DIFFERENCE,
    SHIFT,
    Arm,
    Comparison,
    Declared,
    Measurements,
)
from pipeline.kit.conditions import above, at_least
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW, UNDECIDED
from schemas.comparisons import MODELS, SEEDS, Comparisons
from schemas.comparisons import NOT_RUN as NO_MODELS

EXPERIMENT = "made-up-heads"
PLAIN, DEEP = Arm("plain", "run-plain"), Arm("deep", "run-deep")
LOST = Comparison("lost", "accuracy", MEAN_DIFFERENCE, EXPERIMENT, (PLAIN, DEEP))
SOLVED = Comparison("solved", "accuracy", SHARE, EXPERIMENT, (DEEP,), hits=at_least(0.9))
ELSEWHERE = Comparison("elsewhere", "loss", MEDIAN, "made-up-layers", (PLAIN,))
SIX, OTHER = [0.91, 0.92, 0.93, 0.94, 0.95, 0.96], [0.5, 0.6, 0.55, 0.52, 0.58, 0.61]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Iterator[Declared]:
    """A study of three comparisons."""
    declared = Declared()
    for comparison in (LOST, SOLVED, ELSEWHERE):
        declared(comparison)
    module = ModuleType("pipeline.studies.madeup.comparisons")
    module.DECLARED = declared  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield declared


def context(*runs: str) -> Any:
    settings = SimpleNamespace(confidence=0.95)
    return SimpleNamespace(study="madeup", experiment=EXPERIMENT, settings=settings, runs=lambda: list(runs))


def results(*tables: pl.DataFrame) -> Any:
    return SimpleNamespace(study="madeup", table=lambda name: pl.concat(tables))


def measured(lost: tuple[list[float], list[float]] = (SIX, OTHER), solved: list[float] = SIX) -> pl.DataFrame:
    found = Measurements(context("run-plain", "run-deep"))
    found.add(LOST, *lost)
    found.add(SOLVED, solved)
    return found.table()


def test_what_is_measured_is_what_the_interval_says(study: Declared) -> None:
    table = measured()
    Comparisons.validate(table.with_columns(scale=pl.lit("quick"), params_hash=pl.lit("0" * 32)))
    lost, solved = table.iter_rows(named=True)
    expected = intervals.mean_difference(SIX, OTHER, 0.95, paired=False)
    assert (lost["value"], lost["lo"], lost["hi"]) == expected[:3]
    assert (lost["measure"], lost["interval"], lost["n"]) == ("mean accuracy: plain minus deep", "Welch", 6)
    assert (solved["value"], solved["hi"], solved["interval"]) == (1, 1, "exact binomial")
    assert solved["measure"] == "share of models whose accuracy is at least 0.9: deep"


@pytest.mark.parametrize(
    ("table", "solved", "verdict"),
    [
        (measured, SIX, HOLDS),
        (measured, SIX[:5], UNDECIDED),  # 5 of 5 shows a share above 0.478
        (measured, OTHER, FAILS),
        (measured, SIX[:4], TOO_FEW),
        (measured, [], TOO_FEW),
    ],
)
def test_a_gate_takes_the_row_of_its_comparison(study: Declared, table: Any, solved: list[float], verdict: str) -> None:
    gate = evidence.gate(results(table(solved=solved)), "1", "solved", SOLVED, above(0.5), "A")
    assert gate.verdict("quick")[0] == verdict
    assert gate.predicate == "share of models whose accuracy is at least 0.9: deep: above 0.5"
    assert gate.comparison == "solved"
    if verdict == UNDECIDED or (verdict == TOO_FEW and solved):
        assert gate.replicas("quick") == 6


def test_three_different_answers(study: Declared) -> None:
    """Not run, too few models that learned, misspelt."""
    found = Measurements(context("run-plain"))
    rows = found.table()
    assert rows["state"].to_list() == [NO_MODELS, NO_MODELS] and rows["value"].null_count() == 2
    assert evidence.gate(results(rows), "1", "g", LOST, above(0), "A").verdict("quick")[0] == NOT_RUN
    few = measured(lost=(SIX[:2], OTHER))
    gate = evidence.gate(results(few), "1", "g", LOST, above(0), "A")
    assert gate.verdict("quick") == (TOO_FEW, "0.355 of 2; a verdict needs 5")
    misspelt = Comparison("lots", "accuracy", MEAN_DIFFERENCE, EXPERIMENT, (PLAIN, DEEP))
    with pytest.raises(SandglassError, match="'lots' is not declared"):
        evidence.gate(results(rows), "1", "g", misspelt, above(0), "A")


def test_a_comparison_that_is_renamed_is_found_missing(study: Declared) -> None:
    table = measured()
    renamed = table.with_columns(pl.col("comparison").replace("lost", "lots"))
    with pytest.raises(SandglassError, match="'lots', which is not declared"):
        comparisons.read(results(renamed), [SOLVED])
    with pytest.raises(SandglassError, match="lacks the comparison 'lost'"):
        comparisons.read(results(table.filter(comparison="solved")), [SOLVED])
    # An experiment that is not run at all has an empty table.
    (row,) = comparisons.read(results(table), [ELSEWHERE]).iter_rows(named=True)
    assert row["state"] == NO_MODELS


def test_what_is_declared_is_measured(study: Declared) -> None:
    found = Measurements(context("run-plain", "run-deep"))
    found.add(SOLVED, SIX)
    with pytest.raises(SandglassError, match="'lost' is declared, its models are trained, and it was not measured"):
        found.table()
    with pytest.raises(SandglassError, match="'solved' is measured twice"):
        found.add(SOLVED, OTHER)
    with pytest.raises(SandglassError, match="'elsewhere' is not declared for it"):
        found.add(ELSEWHERE, SIX)


def test_an_end_that_is_not_defined_never_passes(study: Declared) -> None:
    """Enough models, a value above the bar, and no interval: the value alone must not decide."""
    for bad in ([math.nan, *SIX[1:]], [math.inf, *SIX[1:]]):
        gate = evidence.gate(results(measured(lost=(bad, OTHER))), "1", "g", LOST, above(0), "A")
        assert gate.verdict("quick")[0] == FAILS


def test_arms_are_paired_only_by_what_they_share() -> None:
    for shared, kind in ((SEEDS, intervals.STUDENT), (MODELS, intervals.STUDENT), ("nothing", intervals.WELCH)):
        comparison = Comparison("c", "accuracy", MEAN_DIFFERENCE, EXPERIMENT, (PLAIN, DEEP), in_common=shared)
        assert comparisons.estimate(comparison, SIX, OTHER, confidence=0.95).kind == kind
    paired = Comparison("c", "accuracy", SHIFT, EXPERIMENT, (PLAIN, DEEP), in_common=SEEDS)
    with pytest.raises(ValueError, match="paired samples"):
        comparisons.estimate(paired, SIX, OTHER[:5], confidence=0.95)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (SHIFT, "median difference of loss: plain minus deep"),
        (RATIO, "median quotient of loss: plain over deep"),
        (MEAN_DIFFERENCE, "mean loss: plain minus deep"),
        (MEAN, "mean loss: plain, deep"),
        (CORRELATION, "rank correlation of loss: plain, deep"),
        (OWN, "loss: plain, deep"),
    ],
)
def test_words_follow_from_the_parts(statistic: str, words: str) -> None:
    assert Comparison("c", "loss", statistic, EXPERIMENT, (PLAIN, DEEP)).words == words


def test_parts_that_do_not_fit_are_refused(study: Declared) -> None:
    with pytest.raises(ValueError, match="two arms"):
        Comparison("c", "loss", SHIFT, EXPERIMENT, (PLAIN,))
    with pytest.raises(ValueError, match="hits"):
        Comparison("c", "loss", SHARE, EXPERIMENT, (PLAIN,))
    with pytest.raises(ValueError, match="hits"):
        Comparison("c", "loss", MEAN, EXPERIMENT, (PLAIN,), hits=above(1))
    with pytest.raises(ValueError, match="independent"):
        Comparison("c", "loss", SHARE_DIFFERENCE, EXPERIMENT, (PLAIN, DEEP), in_common=SEEDS, hits=above(1))
    with pytest.raises(ValueError, match="no statistic"):
        Comparison("c", "loss", "mode", EXPERIMENT)
    with pytest.raises(ValueError, match="the key 'lost'"):
        study(LOST)
    with pytest.raises(ValueError, match="2 samples"):
        comparisons.estimate(LOST, SIX, confidence=0.95)
    with pytest.raises(ValueError, match="makes its value"):
        comparisons.estimate(Comparison("c", "loss", OWN, EXPERIMENT), SIX, confidence=0.95)


def test_a_span_ends_an_interval() -> None:
    bounded = Comparison("c", "accuracy", MEAN, EXPERIMENT, (DEEP,), span=(0.0, 1.0))
    found = comparisons.estimate(bounded, [0.9, 1.0, 1.0], confidence=0.95)
    assert found.hi == 1.0 and found.lo < 0.9
