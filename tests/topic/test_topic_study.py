"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from fitting import fitting
from topic_tables import comparisons
from workspace import Workspace, load_study

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.intervals import ORDER, Interval
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic import names
from pipeline.studies.topic.claims import STATEMENTS, attention, embeddings, language, stages, values
from pipeline.studies.topic.figures import attention as figures
from pipeline.studies.topic.measures import models
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW, UNDECIDED
from schemas.topic.tables import SCHEMAS

PARTS = (values, embeddings, attention, stages, language)


def made() -> dict[str, pl.DataFrame]:
    """Return tables of ten seeds at scale paper."""
    optima = [
        (masking, l2, diagonal, 0.1, 1e-9, True, names.DOCUMENTS)
        for masking, l2, diagonal in (("thesis", 0.0, 0.22), ("thesis", 0.001, 0.1), ("released", 0.0, 0.108))
    ]
    columns = ["masking", "l2", "diag_mean", "same_offdiag_mean", "solver_gap", "intercept", "dataset"]
    shares = [
        (offset, category, count / sum(counts.values()))
        for offset, counts in ((4, attention.RELEASED), (0, attention.RIGHT))
        for category, count in counts.items()
    ]
    moments = {"mean_sum_p2": 0.5537, "share_2_to_4": 0.834, "mean_len": 125.0, "mean_entropy": 0.8465}
    printed = {
        "source": "Li 2025, Table 2.1",
        "run": ["Table 2.1, adam"] * 3 + ["Table 2.1, sgd"],
        "lr": [*declared.RATES, 0.03],
        "same_word": 0.00759,
        "same_topic": 0.0108,
        "diff_topic": 0.00689,
        "same_word_sd": 0.0017,
        "same_topic_sd": 0.0007,
        "diff_topic_sd": 0.0002,
    }
    cells = [
        ("pretrained", "minilm", embedding, row, column, kin, 0.6 if kin else 0.1)
        for embedding in ("word table", "layer output")
        for row, column in np.ndindex(9, 9)
        for kin in (row // 3 == column // 3,)
    ]
    tables = {
        "comparisons": comparisons(),
        "closed_form": pl.DataFrame(optima, schema=columns, orient="row"),
        "pair_shares": pl.DataFrame(shares, schema=["label_offset", "category", "pair_share"], orient="row"),
        "doc_moments": pl.DataFrame({"dataset": [names.DOCUMENTS], "split": ["train"]} | moments),
        "averages": pl.DataFrame(printed),
        "word_map": pl.DataFrame(
            cells, schema=["model", "run", "embedding", "row", "column", "same_topic", "cosine"], orient="row"
        ),
    }
    return fitting(tables, SCHEMAS)


def gates(tables: dict[str, pl.DataFrame]) -> list[Any]:
    context: Any = SimpleNamespace(
        table=tables.__getitem__, settings=SimpleNamespace(slight=0.2), study="topic", scale="paper"
    )
    every = [gate for part in PARTS for gate in part.gates(context)]
    assert {gate.claim for gate in every} <= set(STATEMENTS)
    assert len({(gate.claim, gate.gate) for gate in every}) == len(every)
    return every


def judged(tables: dict[str, pl.DataFrame]) -> dict[str, tuple[float | None, str]]:
    return {f"{g.claim}, {g.gate}": (g.measured and g.measured.value, g.verdict("paper")[0]) for g in gates(tables)}


def test_every_gate_holds_where_everything_does() -> None:
    assert {gate: outcome for gate, outcome in judged(made()).items() if outcome[1] != HOLDS} == {}


def test_every_comparison_is_judged() -> None:
    assert {gate.comparison for gate in gates(made())} - {""} == {each.key for each in declared.DECLARED}


@pytest.mark.parametrize("column", ["value", "lo"])
def test_a_comparison_that_is_none_lets_its_gates_fall(column: str) -> None:
    tables = made()
    spoilt = tables["comparisons"].with_columns(pl.lit(None, pl.Float64).alias(column))
    for gate in gates(tables | {"comparisons": spoilt}):
        assert (gate.verdict("paper")[0] == FAILS) == bool(gate.comparison), gate.gate


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("closed_form", "solver_gap"),
        ("closed_form", "diag_mean"),
        ("pair_shares", "pair_share"),
        ("doc_moments", "mean_len"),
        ("averages", "same_word"),
        ("word_map", "cosine"),
    ],
)
def test_a_table_with_no_number_lets_gates_fall(table: str, column: str) -> None:
    tables = made()
    spoilt = tables | {table: tables[table].with_columns(pl.lit(float("nan")).alias(column))}
    before, after = judged(tables), judged(spoilt)
    changed = {gate for gate in before if before[gate] != after[gate]}
    assert changed and {after[gate][1] for gate in changed} == {FAILS}


def test_few_models_and_no_models_give_no_verdict() -> None:
    tables = made()
    table = tables["comparisons"].with_columns(n=pl.lit(5, pl.Int32))
    few = judged(tables | {"comparisons": table})
    assert few["12, Adam, with L2"][1] == few["35, caption, Adam, rate 0.01"][1] == TOO_FEW
    none = comparisons(experiments=("nothing",))
    outcomes = gates(tables | {"comparisons": none})
    assert {gate.verdict("paper")[0] for gate in outcomes if gate.comparison} == {NOT_RUN}


def test_without_the_extra_nothing_is_said_of_pretrained_models() -> None:
    tables = made()
    others = tuple({each.experiment for each in declared.DECLARED} - {declared.PRETRAINED})
    without = {"comparisons": comparisons(experiments=others), "word_map": tables["word_map"].clear()}
    outcomes = judged(tables | without)
    of_others = {gate for gate in outcomes if "pretrained" in gate or "random" in gate}
    assert {outcomes[gate] for gate in of_others} == {(None, NOT_RUN)}
    assert {outcome[1] for gate, outcome in outcomes.items() if gate not in of_others} == {HOLDS}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_trainings_are_what_gates_and_figures_call_them(scale: str) -> None:
    runs = load_study("topic", scale).members("runs", "topic")
    surrogate, short = runs[names.ATTENTION_SGD], runs[names.ATTENTION_SGD_SHORT]
    assert surrogate.lr == [20.0] and surrogate.lr[0] * surrogate.steps == 50_000
    assert short.steps == 1500 and "1500 steps" in figures.TRAINED[names.ATTENTION_SGD_SHORT]


def test_an_interval_across_the_bar_is_undecided() -> None:
    across = {declared.DIAGONAL[names.FROZEN_ADAM, "sq"]: Interval(2.0, 1.3, 2.2, ORDER, 10, 6)}
    outcomes = judged(made() | {"comparisons": comparisons(across)})
    assert outcomes["12, Adam, without L2"][1] == UNDECIDED


def group(run: str, held: list[float], diverged: int = 0, loss: str = "ce") -> models.Group:
    """Models of one run that ended at these losses, of a hundred words."""
    entry = {"cells": {"ce": {"loss": loss, "l2": 0.0}}, "masking": "thesis"}
    many, spec = len(held), SimpleNamespace(symbols=101)
    made = models.Group(
        run,
        "ce",
        0.01,
        entry,
        spec,
        {},
        {},
        torch.zeros(0),
        list(range(many)),  # type: ignore[arg-type]
        list(range(many, many + diverged)),
        list(range(many)),
        np.array(held),
        np.ones(many, bool),
    )
    return replace(made, learned=models.learned(made.held, made.ignorant, 0.01))


def context(*compared: Comparison) -> Any:
    """The experiment of these comparisons, at a scale that trains their runs alone."""
    (experiment,) = {each.experiment for each in compared}
    settings = SimpleNamespace(confidence=0.95, learned=0.01)
    trained = [run for each in compared for arm in each.arms for run in arm.runs]
    return SimpleNamespace(study="topic", experiment=experiment, settings=settings, runs=lambda: trained)


def test_models_that_did_not_learn_or_diverged_are_left_out() -> None:
    own = group(names.ATTENTION_RELEASED, [3.4, 4.6, 3.3, 3.4, 3.4, 3.4, 3.4], diverged=1)
    assert own.ignorant == math.log(100) and own.learned.tolist() == [True, False, *[True] * 5]
    compared = (declared.TOPIC_FIRST[names.ATTENTION_RELEASED, 0.01], declared.SHORT)
    found = Measurements(context(*compared))
    ratios = [1.5, 0.1, 1.3, 1.5, 1.5, 1.5, 1.5]
    models.measure(found, compared[0], own, ratios)
    models.measure(found, compared[1], own, [0.01, 0.5, np.nan, 0.01, 0.01, 0.01, 0.01])
    learned, every = (found.rows[each.key] for each in compared)
    assert (learned["value"], learned["n"], learned["n_excluded"]) == (5 / 6, 6, 2)
    assert learned["excluded_reason"] == "diverged or did not learn"
    assert (every["value"], every["n"], every["n_excluded"]) == (5 / 6, 6, 2)
    assert every["excluded_reason"] == "diverged or not defined"


def test_what_is_lost_is_a_share_of_what_can_be_saved() -> None:
    both = [
        group(run, [loss] * 6, loss="sq_sum") for run, loss in ((names.FROZEN_ADAM, 0.95), (names.JOINT_ADAM, 0.89))
    ]
    own = context(declared.FROZEN_COST["sq"])
    found = Measurements(own)
    models.lost(own, found, declared.FROZEN_COST["sq"], *both)
    row = found.rows["frozen-cost-sq"]
    assert row["value"] == pytest.approx(0.6) and row["n"] == 6 and row["in_common"] == "seed and data"


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/topic/claims.parquet")
    assert set(claims["claim"]) <= set(STATEMENTS)
    assert (data / "report/study/topic.html").is_file()
