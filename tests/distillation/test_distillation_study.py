"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch
from spoiling import assert_gates_fall
from workspace import Workspace

from pipeline.studies.distillation.analysis import ablations, endings
from pipeline.studies.distillation.analysis.transformers import _compared as compared
from pipeline.studies.distillation.analysis.transformers import along_paths
from pipeline.studies.distillation.claims import STATEMENTS, parities, transformers, trees
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.names import ATTENDING, ATTENTION, CANDIDATES, DEFINITIONS, TEACHER, WARMER
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW

PARTS = (parities, transformers, trees)
HOLD = {  # the value of each comparison at scale paper
    **{
        f"{size} {name}": value
        for size in ("narrow", "wide")
        for name, value in {
            "delay": 1.0, "prog - ce": 0.4, "prog - one-shot": 0.4, "middle": 1.0, "behind": 0.5,
            "middle - behind": 0.5, "before": 0.5, "distance at the switch": 0.01, "rise after the switch": 0.25,
            "cool - middle": 0.0, "mild - middle": 0.0, "hot - middle at the switch": -0.2,
        }.items()
    },
    "narrow ce": 0.5, "narrow one-shot": 0.5, "teacher peak": 8.0, "teacher final": 1.0, "teacher inside": 1.0,
    "warm teacher degree": 1.0,
    **{f"warm {size} middle - {arm}": 0.3 for size in ("narrow", "wide") for arm in ("before", "behind")},
    "heads and t80": -0.9, "width and t90": -0.95, "attending ce": 0.5, "attending os": 0.5,
    "attending peak, learned": 1.0, "attending between": 0.5, "attention peak": 9.0, "attention final": 1.0,
    "separation between": 0.5, "attending delay": 1.0,
    **{f"{group} and t90": -0.9 for group in ("heads", "hidden", "averaged")},
    "tree best pair": 1.0, "tree best pair - best single": 0.2, "tree peaks": 3.0,
}  # fmt: skip


SINGLE_SIGNS = [f"13, {which}" for which in (
    "single signs at checkpoint 2", "other signs at checkpoint 2", "single signs at checkpoint 3",
)]  # fmt: skip


def made() -> dict[str, pl.DataFrame]:
    """Return tables of ten models at scale paper."""
    rows = [(name, value, value, value, 10) for name, value in HOLD.items()]
    chosen = pl.DataFrame(
        {"dataset": CANDIDATES, "arm": ["middle", "behind"], "order": 0, "teacher": 0, "teacher_step": [5, 7]}
    )
    other = [(WARMER, 0, 5, "support", 0.5), (WARMER, 0, 5, "rest", 0.5)]  # which no gate is about
    own = [
        (TEACHER, 0, step, feature, value)
        for step, support in ((5, 0.095), (7, 0.01))
        for feature, value in (("support", support), ("rest", 0.001))
    ]
    columns = ["run", "model", "step", "feature", "correlation"]
    return {
        "contrasts": pl.DataFrame(rows, schema=["contrast", "value", "lo", "hi", "n"], orient="row"),
        "chosen": chosen,
        "correlations": pl.DataFrame(own + other, schema=columns, orient="row"),
    }


def judged(tables: dict[str, pl.DataFrame]) -> dict[str, tuple[float | None, str]]:
    theory = pl.DataFrame(
        {"theory": [DEFINITIONS], "claim": ["19"], "part": ["classes"], "passed": [True], "measured": [0.0]}
    )
    context: Any = SimpleNamespace(
        table=tables.__getitem__, theory=lambda: theory, settings=SimpleNamespace(fewest=3), scale="paper"
    )
    every = [gate for part in PARTS for gate in part.gates(context)]
    return {f"{g.claim}, {g.gate}": (g.measured and g.measured.value, g.verdict("paper")[0]) for g in every}


def test_every_gate_holds_where_everything_does() -> None:
    assert {gate: outcome for gate, outcome in judged(made()).items() if outcome[1] != HOLDS} == {}


@pytest.mark.parametrize("name", HOLD)
def test_a_comparison_that_is_none_lets_its_gates_fall(name: str) -> None:
    assert_gates_fall(judged, made(), name)


def test_a_correlation_that_is_none_lets_its_gate_fall() -> None:
    tables = made()
    spoilt = tables["correlations"].with_columns(correlation=float("nan"))
    outcomes = judged(tables | {"correlations": spoilt})
    assert {outcomes[gate][1] for gate in SINGLE_SIGNS} == {FAILS}


def test_too_few_models_give_no_verdict() -> None:
    tables = made()
    few = judged(tables | {"contrasts": tables["contrasts"].with_columns(n=2)})
    gates = {gate for gate, (_, verdict) in few.items() if verdict not in (NOT_RUN, TOO_FEW)}
    assert gates == {*SINGLE_SIGNS, "19, classes"}
    assert few["15, width"][1] == TOO_FEW


def test_attention_along_paths_sums_to_one_and_follows_both_layers() -> None:
    first = torch.rand(2, 3, 4, 5, 5).tril()
    second = torch.rand(2, 3, 4, 5, 5).tril()
    first, second = (each / each.sum(-1, keepdim=True) for each in (first, second))
    attention = along_paths(first, second)
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 3))
    plain = [
        sum(
            second[1, 2, a, 4, i] * first[1, 2, b, i, j] / 16
            for a in range(4)
            for b in range(4)
            for i in range(5)
        )
        for j in range(5)
    ]
    torch.testing.assert_close(attention[1, 2], torch.stack(plain))  # type: ignore[arg-type]


def test_students_of_a_teacher_that_has_not_learned_are_left_out() -> None:
    def course(run: str, arms: list[str], final: list[float]) -> pl.DataFrame:
        rows = [(run, 8, 1, arm, m, step, value) for arm in arms for m, end in enumerate(final)
                for step, value in ((0, 0.5), (10, end))]  # fmt: skip
        return pl.DataFrame(rows, ["run", "width", "heads", "arm", "model", "step", "accuracy"], orient="row")

    teachers, students = (
        course(ATTENTION, ["label"], [1.0, 0.5]),
        course(ATTENDING, ["ce", "peak", "prog", "between"], [0.9, 0.6]),
    )
    assert lessons.converged(teachers) == [0]
    chosen = pl.DataFrame(
        [(arm, m, m, 0, 5) for arm in ("peak", "prog", "between") for m in (0, 1)],
        ["arm", "model", "teacher", "order", "teacher_step"], orient="row",
    )  # fmt: skip
    first = pl.DataFrame({"model": [0, 0, 1, 1], "step": [5, 10] * 2, "separation": [9.0, 1.0, 70.0, 60.0]})
    settings = SimpleNamespace(risen=0.9, resamples=100, confidence=0.95)
    context: Any = SimpleNamespace(settings=settings, seed=1, study="distillation")
    rows = {row["contrast"]: row for row in compared(context, teachers, students, first, chosen)}
    assert rows["attending ce"]["n"] == 2 and rows["attending ce"]["value"] == 0.75  # they have no teacher
    assert rows["attending peak"]["n"] == 1 and rows["attending peak"]["value"] == 0.9
    assert (rows["attention peak"]["value"], rows["attention final"]["value"]) == (9.0, 1.0)
    assert rows["separation between"]["value"] == 9.0 and rows["attending delay"]["value"] == 1.0


def test_models_are_late_or_never_learn() -> None:
    course = pl.DataFrame(
        {
            "run": "a", "width": 8, "heads": None, "arm": "ce", "model": [0, 0, 0, 1, 1, 1], "step": [1, 2, 3] * 2,
            "accuracy": [0.5, 0.95, 0.8, 0.5, 0.5, 0.89],
        }
    )  # fmt: skip
    context: Any = SimpleNamespace(settings=SimpleNamespace(risen=0.9))
    models = lessons.models(context, course)
    assert models["t90"].to_list() == [2, None] and models["final"].to_list() == [0.8, 0.89]
    done = lessons.at(course, {0: 2, 1: 3}, "ce")
    assert done.tolist() == [0.95, 0.89]


def test_a_gain_is_the_mean_over_horizons_model_by_model() -> None:
    finals = {"short": {"ce": (0.5, 0.5), "os": (0.5, 0.6), "half": (0.7, 0.9)}, "long": {
        "ce": (0.5, 0.5), "os": (0.8, 0.8), "half": (0.9, 0.7)}}  # fmt: skip
    courses = {
        run: pl.DataFrame(
            [(arm, model, 9, value) for arm, ends in arms.items() for model, value in enumerate(ends)],
            schema=["arm", "model", "step", "accuracy"], orient="row",
        )
        for run, arms in finals.items()
    }  # fmt: skip
    context: Any = SimpleNamespace(
        seed=1, study="distillation", settings=SimpleNamespace(resamples=50, confidence=0.95)
    )
    rows, gains = endings.horizons(context, "level 2", courses)
    assert gains.tolist() == pytest.approx([0.15, 0.1])
    values = {row["contrast"]: row["value"] for row in rows}
    assert values["level 2, gain"] == pytest.approx(0.125)
    assert values["level 2, gain beyond the shortest"] == pytest.approx(0.0)
    assert values["level 2, longest, half"] == pytest.approx(0.8)
    assert values["long, half - os"] == pytest.approx(0.0)
    assert endings.horizons(context, "level 4", {})[1].size == 0


def test_gains_shrink_as_shares_of_what_one_shot_students_reach() -> None:
    def course(*ends: tuple[str, tuple[float, float]]) -> pl.DataFrame:
        rows = [(arm, model, 9, value) for arm, values in ends for model, value in enumerate(values)]
        return pl.DataFrame(rows, schema=["arm", "model", "step", "accuracy"], orient="row")

    context: Any = SimpleNamespace(
        seed=1, study="distillation", settings=SimpleNamespace(resamples=50, confidence=0.95)
    )
    short = course(("os", (0.5, 0.4)), ("half", (0.6, 0.5)))
    middle = course(("os", (0.1, 0.1)), ("half", (0.9, 0.9)))
    long = course(("os", (0.8, 0.8)), ("half", (0.8, 0.88)))
    rows = {row["contrast"]: row["value"] for row in ablations._horizons(context, "a", [short, middle, long])}
    assert rows["a, relative gain, shortest - longest"] == pytest.approx((0.2 + 0.25) / 2 - (0 + 0.1) / 2)
    assert rows["a, half, shortest - longest"] == pytest.approx((0.6 + 0.5 - 0.8 - 0.88) / 2)
    assert ablations._horizons(context, "a", [short]) == []


def test_speed_compares_models_of_one_horizon_that_learn_from_labels() -> None:
    rows = [
        ("ce", 8, 30, 90),
        ("ce", 16, 20, 90),
        ("label", 32, 10, 90),
        ("os", 64, 99, 90),
        ("ce", 4, 1, 10),
    ]
    models = pl.DataFrame(rows, schema=["arm", "heads", "t80", "horizon"], orient="row")
    context: Any = SimpleNamespace(
        seed=1, study="distillation", settings=SimpleNamespace(resamples=50, confidence=0.95)
    )
    (row,) = lessons.speed(context, "x", models, 90)
    assert row["value"] == pytest.approx(-1) and row["n"] == 3
    assert lessons.speed(context, "x", models, 10) == []


def test_a_share_has_its_exact_interval() -> None:
    context: Any = SimpleNamespace(settings=SimpleNamespace(confidence=0.95))
    (row,) = lessons.share(context, "x", [True] * 3 + [False])
    assert (row["value"], row["n"]) == (0.75, 4) and row["lo"] == pytest.approx(0.1941, abs=1e-4)
    assert lessons.share(context, "x", []) == []


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("distillation").path / "data"
    claims = pl.read_parquet(data / "claims/distillation/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    assert (data / "report/study/distillation.html").is_file()
