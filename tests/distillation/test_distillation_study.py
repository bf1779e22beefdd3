"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from distillation_tables import context, good, inputs, inside, measured, on_comparisons, outside
from workspace import Workspace

from pipeline.kit.comparisons import CLAIMS, Measurements
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation import comparisons as declared
from pipeline.studies.distillation.analysis import ablations, acceleration, endings
from pipeline.studies.distillation.analysis.transformers import along_paths, compare
from pipeline.studies.distillation.claims import STATEMENTS, language_models, parities, transformers, trees, two_stages
from pipeline.studies.distillation.measures import lessons
from pipeline.studies.distillation.names import (
    ATTENDING,
    ATTENTION,
    ENDINGS_PUPILS,
    NARROW,
    OTHER_PUPILS,
    PUPILS,
    TEACHER,
    TEXT_PUPILS,
    WIDE,
)
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW, UNDECIDED

# What no gate is about: numbers that gates and figures need, and students of labels that tell where to compare.
UNJUDGED = {declared.ASKED.key, declared.COMMON.key, *(each.key for each in declared.TEXT_LABELS.values())}
TABLES: dict[str, Any] = {
    "models": pl.DataFrame({"run": [PUPILS[0]] * 10, "arm": "ce", "model": range(10), "final": 0.9}),
    "oracle": pl.DataFrame(
        {"grammar": "cfg3b", "task": "masked", "quantity": "acc", "mask_rate": 0.3, "root": [13], "value": 0.9}
    ).with_columns(se=0.01),
    "support_recovery": pl.DataFrame({"value": [90.0, 130.0], "predicted": [100.0, 100.0]}),
}


def judge(context: Any) -> Iterator[Gate]:
    for part in (parities, transformers, trees, language_models):
        yield from part.gates(context)
    for part in (two_stages._correlations, two_stages._samples, two_stages._students):
        yield from part(context)


GATES = {scale: on_comparisons(judge, {}, scale, **TABLES) for scale in ("quick", "paper")}
GOOD = good(GATES["paper"])
NEEDED = {"asked": measured(1000.0)}


def at_paper(values: dict[str, Any]) -> dict[str, Gate]:
    return on_comparisons(judge, values | NEEDED, "paper", **TABLES)


def test_every_gate_holds_where_everything_does() -> None:
    verdicts = {gate.gate: gate.verdict("paper") for gate in at_paper(GOOD).values()}
    assert {name: verdict for name, verdict in verdicts.items() if verdict[0] != HOLDS} == {}


def test_gates_fall_beyond_each_of_their_bars_and_with_what_is_none() -> None:
    """All are spoilt at once, and each gate reads one comparison."""
    spoilt: list[dict[str, Any]] = [
        {key: measured(outside(gate)[end]) for key, gate in GATES["paper"].items()} for end in (0, -1)
    ]
    spoilt.append(dict.fromkeys(GOOD, measured(float("nan"))))
    spoilt.append({key: measured(inside(gate), lo=float("nan")) for key, gate in GATES["paper"].items()})
    for values in spoilt:
        assert {gate.verdict("paper")[0] for gate in at_paper(values).values()} == {FAILS}


def test_of_two_bars_on_one_comparison_each_can_fail() -> None:
    def verdicts(delay: float) -> list[str]:
        values = GOOD | NEEDED | {declared.DELAY["narrow"].key: measured(delay)}
        gates = judge(context(values, "paper", **TABLES))
        return [gate.verdict("paper")[0] for gate in gates if gate.comparison == declared.DELAY["narrow"].key]

    assert verdicts(1.1) == [HOLDS, HOLDS] and verdicts(1.4) == [FAILS, HOLDS] and verdicts(1.7) == [FAILS, FAILS]


def test_every_comparison_is_judged_at_one_of_the_scales() -> None:
    judged = {key for gates in GATES.values() for key in gates}
    of_text = {each.key for each in declared.TEXT_ORDER.values()}  # of one horizon of several
    of_claims = {each.key for each in declared.DECLARED if each.experiment == CLAIMS}
    assert {each.key for each in declared.DECLARED} - of_claims - judged - of_text == UNJUDGED
    assert len(of_text & judged) == 2


def test_text_is_judged_where_students_of_labels_have_learned_more_than_frequencies() -> None:
    common = {declared.COMMON.key: measured(0.3)}
    labels = [declared.TEXT_LABELS[run].key for run in TEXT_PUPILS]
    at_second = common | {labels[0]: measured(0.31, lo=0.2), labels[1]: measured(0.4, lo=0.35)}
    for values, run in ((at_second, TEXT_PUPILS[1]), (common, TEXT_PUPILS[-1])):
        gates = on_comparisons(judge, values, "paper", **TABLES)
        expected = {declared.TEXT_ORDER[run, *pair].key for pair in (("prog", "os"), ("os", "ce"))}
        assert {key for key, gate in gates.items() if gate.claim == "31"} == expected


def test_too_few_models_give_no_verdict() -> None:
    few = at_paper({key: value._replace(n=4) for key, value in GOOD.items()})
    models = {each.key for each in declared.DECLARED if each.unit == "model"}
    assert {gate.verdict("paper")[0] for key, gate in few.items() if key in models} == {TOO_FEW}


def test_no_model_is_to_exceed_the_best_predictor() -> None:
    def verdict(ends: list[float]) -> str:
        models = pl.DataFrame({"run": PUPILS[0], "arm": "ce", "model": range(len(ends)), "final": ends})
        tables = TABLES | {"models": models}
        (gate,) = (g for g in judge(context(NEEDED, "quick", **tables)) if g.claim == "21")
        return gate.verdict("quick")[0]

    assert verdict([0.9] * 120) == HOLDS and verdict([0.99] * 10) == FAILS
    assert verdict([0.9] * 10) == UNDECIDED
    assert verdict([0.9] * 4) == TOO_FEW and verdict([]) == NOT_RUN


def test_attention_along_paths_sums_to_one_and_follows_both_layers() -> None:
    first = torch.rand(2, 3, 4, 5, 5).tril()
    second = torch.rand(2, 3, 4, 5, 5).tril()
    first, second = (each / each.sum(-1, keepdim=True) for each in (first, second))
    attention = along_paths(first, second)
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 3))
    plain = [
        sum(second[1, 2, a, 4, i] * first[1, 2, b, i, j] / 16 for a in range(4) for b in range(4) for i in range(5))
        for j in range(5)
    ]
    torch.testing.assert_close(attention[1, 2], torch.stack(plain))  # type: ignore[arg-type]


def test_students_of_a_teacher_that_has_not_learned_are_left_out() -> None:
    def course(run: str, arms: list[str], final: list[float]) -> pl.DataFrame:
        rows = [
            (run, 8, 1, arm, m, step, value)
            for arm in arms
            for m, end in enumerate(final)
            for step, value in ((0, 0.5), (10, end))
        ]
        return pl.DataFrame(rows, ["run", "width", "heads", "arm", "model", "step", "accuracy"], orient="row")

    teachers, students = (
        course(ATTENTION, ["label"], [1.0, 0.5]),
        course(ATTENDING, ["ce", "os", "peak", "prog", "between"], [0.9, 0.6]),
    )
    context: Any = inputs("distillation-transformers")
    assert lessons.learned(context, teachers) == [0]
    chosen = pl.DataFrame(
        [(arm, m, m, 0, 5) for arm in ("os", "peak", "prog", "between") for m in (0, 1)],
        ["arm", "model", "teacher", "order", "teacher_step"],
        orient="row",
    )
    first = pl.DataFrame({"model": [0, 0, 1, 1], "step": [5, 10] * 2, "separation": [9.0, 1.0, 70.0, 60.0]})
    found = Measurements(inputs("distillation-transformers", ATTENTION, ATTENDING))
    compare(context, found, teachers, students, first, chosen)
    rows = {row["comparison"]: row for row in found.table().iter_rows(named=True)}
    assert rows["attending-ce"]["n"] == 2 and rows["attending-ce"]["value"] == 0.75  # they have no teacher
    assert (rows["attending-between"]["n"], rows["attending-between"]["value"]) == (1, 0.9)
    assert (rows["attending-between"]["n_excluded"], rows["attending-ce"]["n_excluded"]) == (1, 0)
    assert rows["attending-peak"]["value"] == 0.0  # 0.9 is less than it takes
    assert (rows["attention-peak"]["value"], rows["attention-end"]["value"]) == (9.0, 1.0)
    assert rows["attention-valley"]["value"] == 9.0 and rows["attending-delay"]["value"] == 1.0


def test_students_of_one_teacher_count_once() -> None:
    """Numbers that are equal up to the number of teachers have one teacher."""
    final = {"ce": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.8]), "os": np.array([0.5, 0.6, 0.7])}
    counted = lessons.of_teachers(final, 3)
    np.testing.assert_allclose(counted["ce"], [0.25, 0.35, 0.55])
    assert counted["os"] is final["os"]
    header = {"entry": {"replicas": 2, "side": 3, "lr": [0.1, 0.2]}}
    context: Any = SimpleNamespace(run_header=lambda run: header)
    assert lessons.number(context, "x") == 12


def test_models_are_late_or_never_learn() -> None:
    course = pl.DataFrame(
        {
            "run": "a",
            "width": 8,
            "heads": None,
            "arm": "ce",
            "model": [0, 0, 0, 1, 1, 1],
            "step": [1, 2, 3] * 2,
            "accuracy": [0.5, 0.95, 0.8, 0.5, 0.5, 0.89],
        }
    )
    context: Any = SimpleNamespace(settings=SimpleNamespace(risen=0.9))
    models = lessons.models(context, course)
    assert models["t90"].to_list() == [2, None] and models["final"].to_list() == [0.8, 0.89]
    done = lessons.at(course, {0: 2, 1: 3}, "ce")
    assert done.tolist() == [0.95, 0.89]


def test_students_are_compared_when_their_teacher_has_learned() -> None:
    """The second teacher learns late, the third never: its student is left out."""
    accuracies = {
        (TEACHER, "label"): [[0.5, 1.0, 1.0], [0.5, 0.5, 1.0], [0.5, 0.5, 0.6]],
        (NARROW, "prog"): [[0.5, 0.9, 1.0], [0.5, 0.6, 0.95], [0.5, 0.5, 0.5]],
        **{(NARROW, arm): [[0.5, 0.5, 0.6]] * 3 for arm in ("ce", "os", "warm")},
    }
    rows = [
        (run, 8, None, arm, model, step, value)
        for (run, arm), models in accuracies.items()
        for model, course in enumerate(models)
        for step, value in zip((10, 20, 30), course, strict=False)
    ]
    columns = ["run", "width", "heads", "arm", "model", "step", "accuracy"]
    courses = pl.DataFrame(rows, columns, orient="row")
    found_for: Any = inputs("distillation-acceleration", TEACHER, NARROW)
    found = Measurements(found_for)
    teachers, students = (courses.filter(run=run) for run in (TEACHER, NARROW))
    done = acceleration._done(found_for, teachers)
    assert done == {0: 20, 1: 30}
    acceleration._compared(found, "narrow", students, lessons.models(found_for, courses), done)
    values = {key: row["value"] for key, row in found.rows.items()}
    assert values["narrow-ahead-ce"] == pytest.approx((0.9 + 0.95) / 2 - (0.5 + 0.6) / 2)
    assert values["narrow-delay"] == 1.0 and found.rows["narrow-delay"]["n_excluded"] == 1
    assert WIDE not in courses["run"]


def test_a_gain_is_the_mean_over_horizons_model_by_model() -> None:
    short = {"ce": np.array([0.5, 0.5]), "os": np.array([0.5, 0.6]), "half": np.array([0.7, 0.9])}
    long = {"ce": np.array([0.5, 0.5]), "os": np.array([0.8, 0.8]), "half": np.array([0.9, 0.7])}
    found = Measurements(inputs("distillation-endings", *ENDINGS_PUPILS["3g"]))
    endings.compare(found, {spans: [short, long] if spans == "3g" else [] for spans in ENDINGS_PUPILS})
    values = {row["comparison"]: row["value"] for row in found.table().iter_rows(named=True)}
    assert values[declared.BEYOND.key] == pytest.approx(0.0)
    assert values[declared.LONGEST["3g"].key] == pytest.approx(0.8)
    assert values[declared.LEVELS.key] is None


def test_gains_shrink_as_shares_of_what_one_shot_students_reach() -> None:
    def final(os: list[float], half: list[float]) -> dict[str, Any]:
        return {"os": np.array(os), "half": np.array(half)}

    ends = [final([0.5, 0.4], [0.6, 0.5]), final([0.1, 0.1], [0.9, 0.9]), final([0.8, 0.8], [0.8, 0.88])]
    runs = (*PUPILS[:3], *OTHER_PUPILS["rate15"][:1])
    found = Measurements(inputs("distillation-ablations", *runs))
    ablations.compare(found, dict(zip(runs, [*ends, ends[0]], strict=True)))
    values = {row["comparison"]: row["value"] for row in found.table().iter_rows(named=True)}
    shrinking = declared.SHRINKING["smaller", "cfg3b"].key
    assert values[shrinking] == pytest.approx((0.2 + 0.25) / 2 - (0 + 0.1) / 2)
    assert values[declared.SHRINKING["smaller", "rate15"].key] is None  # of one horizon
    assert values[declared.ON_OTHERS["smaller", "rate15"].key] == pytest.approx(0.1)
    assert values[declared.BY_TAU["smaller", 1, "warm"].key] is None  # the run lacks that arm


def test_speed_compares_models_of_one_horizon_that_learn_from_labels() -> None:
    rows = [("ce", 8, 30, 90), ("ce", 16, 20, 90), ("label", 32, 10, 90), ("os", 64, 99, 90), ("ce", 4, 1, 10)]
    models = pl.DataFrame(rows, schema=["arm", "heads", "t80", "horizon"], orient="row")
    heads, late = lessons.speed(models, 90) or ([], [])
    assert list(heads) == [8, 16, 32] and list(late) == [30, 20, 10]
    assert lessons.speed(models, 10) is None


def test_means_of_accuracies_have_intervals_that_end_at_the_ends() -> None:
    rows = [("a", 8, None, "ce", model, 9, value, 0.1) for model, value in enumerate((1.0, 1.0, 0.97))]
    columns = ["run", "width", "heads", "arm", "model", "step", "accuracy", "loss"]
    (row,) = lessons.averages(inputs("x"), pl.DataFrame(rows, columns, orient="row")).iter_rows(named=True)
    assert row["value"] == pytest.approx(0.99) and row["hi"] == 1.0 and row["lo"] < 0.99
    assert (row["interval"], row["n"]) == ("Student", 3)


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/distillation/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    assert (data / "report/study/distillation.html").is_file()
