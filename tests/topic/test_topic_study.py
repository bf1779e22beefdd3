"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from spoiling import assert_gates_fall
from workspace import Workspace, load_study

from pipeline.studies.topic import names
from pipeline.studies.topic.claims import STATEMENTS, attention, embeddings, stages, values
from pipeline.studies.topic.figures import attention as figures
from pipeline.studies.topic.measures import contrasts
from schemas.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED

PARTS = (values, embeddings, attention, stages)
PANELS = [(run, cell) for _, run, cell in (*values.PANELS, *values.JOINT_PANELS)]
TRAINED = [f"{names.ATTENTION_RELEASED} {rate:g}" for rate in attention.RATES] + [f"{names.ATTENTION} 0.01"]
DIAGONALS = [f"{run} 0.003" for _, run in attention.DIAGONALS]
LEAST = "topic over other, least, right labels"
DIAGONAL_ENOUGH = [f"{names.JOINT_LONG} {rate}" for rate in ("0.003", "0.01")]
HOLD = {  # the value of each comparison
    **{f"auc {run} {cell}": 1.0 for run, cell in PANELS},
    **{f"auc {run} {cell}-l2": 1.0 for _, run, cell in values.PANELS},
    **{
        f"closed form {run} {cell} {what}": 0.0001
        for run in values.NAMES for cell in ("sq", "sq-l2") for what in values.TOLERANCES
        if run == names.FROZEN_ADAM or what not in ("diag_mean", "held_loss")
    },
    f"block mean {names.FROZEN_PUBLISHED} sq": 0.0055, f"block mean {names.JOINT_PUBLISHED} sq": 0.0065,
    f"block in standard deviations {names.FROZEN_PUBLISHED} sq": 9.0,
    f"block in standard deviations {names.JOINT_PUBLISHED} sq": 9.0,
    "initial subset, smallest": 0.0006, "initial subset, largest": 0.0006,
    f"diagonal {names.FROZEN_ADAM} sq": 2.0, f"diagonal {names.FROZEN_ADAM} sq-l2": 1.1,
    f"diagonal {names.FROZEN_RELEASED} sq": 1.1, f"diagonal {names.FROZEN_EXACT} sq": 2.0,
    "joint gain ce": 0.01, "joint gain sq": 0.06, "long thesis, least ratio": 5.0, "long released, largest ratio": 1.5,
    f"top_distinct {names.JOINT_ADAM} ce": 0.2, f"top_share {names.JOINT_ADAM} sq": 0.7,
    "long, words matched with themselves": 0.3,
    **{f"{what} {run} sq": 0.95 for what in ("top_share", "top_distinct")
       for run in (names.JOINT_LONG, names.JOINT_LONG_RELEASED)},
    **{f"word minus topic {names.ATTENTION_RELEASED} {rate:g}": 0.001 for rate in attention.RATES},
    "held squared loss, uniform attention": 0.946, "held cross-entropy": 3.3,
    f"block_sum_same {names.ONLY_SQ} sq": 1.13, f"block_sum_diff {names.ONLY_SQ} sq": 0.0,
    **{f"gram auc {run} {cell}": 0.99 for _, run, cell in embeddings.PANELS},
    **{f"block above rest {run} {cell}": 0.1 for _, run, cell in embeddings.PANELS},
    f"cosine gap {names.ALL} ce": 0.9, f"cosine gap {names.ONLY_CE} ce": 0.9, "price of embeddings alone, ce": 0.06,
    f"diagonal over rest of blocks, before {names.UNIT} ce": 300.0,
    f"least diagonal over largest other entry, before {names.UNIT} ce": 2.0,
    f"least diagonal over largest other entry, after {names.UNIT} ce": 2.0,
    **{f"{LEAST} {run}": 2.0 for run in TRAINED}, f"{LEAST} {names.BLOCK_SQ} 0.003": 3.0,
    f"{LEAST} {names.ATTENTION_SGD} 20": 1.8, f"{LEAST} {names.ATTENTION_SGD_PUBLISHED} 0.03": 1.6,
    f"topic over other, largest distance from 1 {names.ATTENTION_SGD_SHORT} 0.03": 0.001,
    **{f"same_topic_diff_word shifted labels {run}": 0.0105 for run in TRAINED[:3]},
    **{f"diff_topic shifted labels {run}": 0.0066 for run in TRAINED[:3]},
    **{f"diff_topic right labels {run}": 0.0035 for run in TRAINED[:3]},
    **{f"pooled mean, {norm}": 1e-9 for norm in ("raw", "norm100")},
    **{f"word above other {run}": 0.05 for run in (*DIAGONALS, *DIAGONAL_ENOUGH)},
    **{f"other above topic {run}": 0.001 for run in (*DIAGONALS, *DIAGONAL_ENOUGH)},
    **{f"same_word right labels {run}": 0.09 for run in DIAGONALS},
    **{f"same_topic_diff_word right labels {run}": 0.0018 for run in DIAGONALS},
    **{f"diff_topic right labels {run}": 0.0026 for run in DIAGONALS},
    **{f"fv_at_sk10, least {run} {rate}": 0.9 for _, run, rate in stages.SETTINGS},
    f"fv_at_sk10, largest {names.STAGES_N} 0.01": 0.1, f"k_frac_400, largest {names.STAGES_A} 0.003": 0.05,
    f"v_frac_400, least {names.STAGES_A} 0.003": 0.9,
}  # fmt: skip


def made() -> dict[str, pl.DataFrame]:
    """Return tables of ten seeds at scale paper."""
    rows = [(name, value, value, value, 10) for name, value in HOLD.items()]
    known = pl.DataFrame(rows, schema=["contrast", "value", "lo", "hi", "n"], orient="row")
    optima = [
        (masking, l2, diagonal, 0.1, 1e-9, True, names.DOCUMENTS)
        for masking, l2, diagonal in (("thesis", 0.0, 0.22), ("thesis", 0.001, 0.1), ("released", 0.0, 0.108))
    ]
    columns = ["masking", "l2", "diag_mean", "same_offdiag_mean", "solver_gap", "intercept", "dataset"]
    shares = [
        (offset, category, share)
        for offset, each in attention.SHARES.items()
        for category, share in each.items()
    ]
    moments = {"mean_sum_p2": 0.5537, "share_2_to_4": 0.834, "mean_len": 125.0, "mean_entropy": 0.8465}
    printed = {
        "source": ["Li 2025, Table 2.1"],
        "same_word": [0.00759],
        "same_topic": [0.0108],
        "diff_topic": [0.00689],
    }
    return {
        "contrasts": known.with_columns(n_excluded=0, excluded_reason=pl.lit("")),
        "closed_form": pl.DataFrame(optima, schema=columns, orient="row"),
        "pair_shares": pl.DataFrame(shares, schema=["label_offset", "category", "pair_share"], orient="row"),
        "doc_moments": pl.DataFrame({"dataset": [names.DOCUMENTS], "split": ["train"]} | moments),
        "averages": pl.DataFrame(printed),
    }


def judged(tables: dict[str, pl.DataFrame]) -> dict[str, tuple[float | None, str]]:
    context: Any = SimpleNamespace(
        table=tables.__getitem__, settings=SimpleNamespace(fewest=3), study="topic",
        scale="paper",
    )  # fmt: skip
    every = [gate for part in PARTS for gate in part.gates(context)]
    assert {gate.claim for gate in every} <= set(STATEMENTS)
    assert len({(gate.claim, gate.gate) for gate in every}) == len(every)
    return {f"{g.claim}, {g.gate}": (g.measured and g.measured.value, g.verdict("paper")[0]) for g in every}


def test_every_gate_holds_where_everything_does() -> None:
    assert {gate: outcome for gate, outcome in judged(made()).items() if outcome[1] != HOLDS} == {}


@pytest.mark.parametrize("name", HOLD)
def test_a_comparison_that_is_none_lets_its_gates_fall(name: str) -> None:
    assert_gates_fall(judged, made(), name)


@pytest.mark.parametrize(
    ("table", "column"),
    [("closed_form", "solver_gap"), ("closed_form", "diag_mean"), ("pair_shares", "pair_share"),
     ("doc_moments", "mean_len"), ("averages", "same_word")],
)  # fmt: skip
def test_a_table_with_no_number_lets_gates_fall(table: str, column: str) -> None:
    tables = made()
    spoilt = tables | {table: tables[table].with_columns(pl.lit(float("nan")).alias(column))}
    before, after = judged(tables), judged(spoilt)
    changed = {gate for gate in before if before[gate] != after[gate]}
    assert changed and {after[gate][1] for gate in changed} == {FAILS}


def test_two_models_and_no_models_give_no_verdict() -> None:
    tables = made()
    few = judged(tables | {"contrasts": tables["contrasts"].with_columns(n=2)})
    assert few["9, squared, Adam, with L2"][1] == few["19, Adam, rate 0.01"][1] == NOT_RUN
    none = judged({name: frame.clear() for name, frame in tables.items()})
    assert {verdict for _, verdict in none.values()} == {NOT_RUN}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_trainings_are_what_gates_and_figures_call_them(scale: str) -> None:
    runs = load_study("topic", scale).members("runs", "topic")
    surrogate, short = runs[names.ATTENTION_SGD], runs[names.ATTENTION_SGD_SHORT]
    assert surrogate.lr == [20.0] and surrogate.lr[0] * surrogate.steps == 50_000
    assert short.steps == 1500 and "1500 steps" in figures.TRAINED[names.ATTENTION_SGD_SHORT]


def test_an_interval_across_the_bar_is_undecided() -> None:
    tables = made()
    name = f"diagonal {names.FROZEN_ADAM} sq"
    wide = pl.when(pl.col("contrast") == name).then(1.3).otherwise(pl.col("lo")).alias("lo")
    outcomes = judged(tables | {"contrasts": tables["contrasts"].with_columns(wide)})
    assert outcomes["12, Adam, without L2"][1] == UNDECIDED


def test_smallest_and_largest_let_no_nan_pass() -> None:
    assert (
        contrasts.least("a", [1.0, 2.0])[0]["value"] == 1 and contrasts.most("a", [1.0, 2.0])[0]["value"] == 2
    )
    assert np.isnan(contrasts.least("a", [1.0, np.nan])[0]["value"]) and contrasts.most("a", []) == []


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("topic").path / "data"
    claims = pl.read_parquet(data / "claims/topic/claims.parquet")
    assert set(claims["claim"]) <= set(STATEMENTS)
    assert (data / "report/study/topic.html").is_file()
