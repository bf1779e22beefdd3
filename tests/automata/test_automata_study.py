"""The study: what is published, what parameters refuse, claims on tables, and all of it at smoke scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from pydantic import ValidationError
from workspace import Workspace, load_study

from pipeline.errors import SandglassError
from pipeline.kit.verdicts import Gate
from pipeline.languages import automata
from pipeline.models.automata import gpt
from pipeline.store import tables
from pipeline.studies.automata import datasets, inputs, runs
from pipeline.studies.automata.claims import STATEMENTS, depth, robustness, stabilisers, theory
from pipeline.studies.automata.measures import contrasts, published
from pipeline.studies.automata.params import Dataset
from pipeline.training import core, ensemble
from schemas.automata.datasets import SCHEMA
from schemas.automata.tables import OBSERVED, TASKS
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW


def test_published_cells() -> None:
    cells = published.cells()
    assert cells.filter(figure="3.15", task="grid9", depth=1)["value"].item() == 92.2
    assert cells.filter(figure="3.16", task="s5", depth=16)["value"].item() == 99.1
    values = cells["value"].drop_nulls()
    assert values.filter((values > 62.7) & (values < 75.6)).len() == 0
    depths = {task: depth for task, (depth, _) in published.minimum_depths().items()}
    assert (depths["dyck42"], depths["grid9"], depths["a4"], depths["s5"], depths["a5"]) == (1, 2, 10, 13, 7)
    assert published.minimum_depths()["a5"][1] and not published.minimum_depths()["c5"][1]


def dataset(**changes: Any) -> Dataset:
    base = {"study": "automata", "language": "automata", "tasks": ["c2"], "length": 6, "train": 8, "held": 4}
    return Dataset(**(base | changes))


def test_splits_follow_their_laws_and_are_validated() -> None:
    made, _ = datasets.generate(dataset(probabilities=[0.0, 1.0], counts=3, lengths=[9], probes=5), "x", 1)
    tables.validate(made, SCHEMA, "made")
    assert made.group_by("split").len().sort("split").rows() == [
        ("count", 15), ("length", 5), ("probability", 10), ("test", 4), ("train", 8), ("validation", 4),
    ]  # fmt: skip
    assert made.filter(p1=1.0)["tokens"].list.sum().to_list() == [6] * 5
    wrong = made.with_columns(states=pl.col("states").list.eval((pl.element() + 1) % 2))
    with pytest.raises(SandglassError, match="the states are those of the automaton"):
        tables.validate(wrong, SCHEMA, "made")
    again, _ = datasets.generate(dataset(train=16), "x", 1)
    assert again.filter(split="test").equals(datasets.generate(dataset(), "x", 1)[0].filter(split="test"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ["c9"]}, "tasks"),
        ({"tasks": ["grid9"], "counts": 1, "probes": 2}, "are for c2 alone"),
        ({"lengths": [9]}, "probes must be there exactly with"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        dataset(**changes)


def test_a_run_that_would_read_sequences_twice_is_refused() -> None:
    loaded = load_study("automata")
    entry = loaded.members("runs")["automata-c2-l4"]
    source = loaded.members("datasets")[entry.dataset].model_copy(update={"train": 3})
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    with pytest.raises(
        SandglassError, match=r"holds 3 training sequences, but .* raise datasets.automata-parity.train"
    ):
        runs.prepare(entry, frame, loaded.seed)
    with pytest.raises(SandglassError, match="has no task d8; it has: c2"):
        runs.prepare(entry.model_copy(update={"task": "d8"}), frame, loaded.seed)


@pytest.mark.parametrize(
    "run",
    [
        "automata-grid9-l12",
        "automata-c2-shift",
        "automata-c2-recency",
        "automata-s5-first-gpt",
        "automata-dyck48-top-lstm",
    ],
)
def test_paper_size_builds_and_takes_steps(tmp_path: Path, run: str) -> None:
    """The full-size shapes at their length, on few sequences and in small batches."""
    loaded = load_study("automata", "paper")
    entry = loaded.members("runs")[run].model_copy(
        update={"replicas": 1, "batch": 4, "steps": 2, "warmup": 1}
    )
    few = {"train": 8, "held": 4, "probabilities": None, "counts": None, "lengths": None, "probes": None}
    source = loaded.members("datasets")[entry.dataset].model_copy(update=few)
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    state = core.train_chunk(core.TrainingJob(tmp_path / "job.safetensors"), [0], torch.device("cpu"))
    assert (state.diverged_at == -1).all() and torch.isfinite(state.flat).all()
    assert all(torch.isfinite(average).all() for average in state.averages.values())


def test_inputs_in_words() -> None:
    assert inputs.encode({"task": "abab1"}, "a b a").tolist() == [[0, 1, 0]]
    with pytest.raises(SandglassError, match="symbol 'c' is not in the alphabet of abab1: a, b"):
        inputs.encode({"task": "abab1"}, "a c")
    assert (
        inputs.labels({"task": "c4-zero"}, 2) == ["0", "0"] or len(inputs.labels({"task": "c4-zero"}, 2)) == 2
    )


def test_count_coverage_of_the_chapter() -> None:
    """The numbers of chapter 4.11, T = 40, N = 6e5."""
    from scipy import stats

    t, c = np.arange(1, 41)[:, None], np.arange(41)[None]
    often = 6e5 * stats.binom.pmf(c, t, 0.5)
    for seen, expected in ((1, (0.803, 0.884, 0.983, 1.0)), (1000, (0.640, 0.680, 0.807, 0.999))):
        for p, value in zip((0.05, 0.1, 0.2, 0.5), expected, strict=True):
            guessed = (stats.binom.pmf(c, t, p) * (often < seen)).sum(1).mean()
            assert 1 - guessed / 2 == pytest.approx(value, abs=6e-4)


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("automata").path / "data"
    claims = pl.read_parquet(data / "claims/automata/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    moves = pl.read_parquet(data / "tables/automata/automata-objects/transitions.parquet")
    assert moves["automaton"].n_unique() == len(automata.TASKS) + 3
    assert (data / "report/study/automata.html").is_file()
    # A checkpoint's arrays come in another order in every process; those of the table do not.
    weights = pl.read_parquet(data / "tables/automata/automata-explorer/explorer.parquet")
    for (_,), of in weights.filter(kind="trained").group_by("automaton"):
        layers = int(of.filter(part="layers")["values"].item()[0])
        named = gpt.shapes(gpt.Spec(layers, 1, 1, 1, "sin", 0.0, 1, 1))
        assert of["part"].to_list() == [*named, "layers", "heads", "length", "accuracy"]


def test_tasks_have_one_order() -> None:
    """The schemas of tables list the tasks themselves, so that figures and claims load no algebra."""
    assert tuple(TASKS) == automata.TASKS and tuple(OBSERVED) == automata.OBSERVED


# --- claims on tables in which every gate holds ------------------------------------------------------------

HOLD = {  # the value of each contrast
    **{f"{task} L=4 - L=1": 0.2 for task in ("d8", "q8", "s5")}, **{f"{t} spearman": 0.8 for t in ("d8", "q8", "s5")},
    **{f"{pair} L={n}": 0.3 for pair in ("dyck42 - d8", "grid9 - d8", "d8 - q8") for n in (2, 4)},
    "accuracy dyck42 L=2": 0.99, "dyck42 L=2 - L=1": 0.1, "grid9 L=2 - L=1": 0.1, "evaluation noise": 0.0003,
    **{f"{task} dropout 0.1 - none": 0.1 for task in ("d8", "q8")},
    **{f"{task} dropout 0.1 - none": -0.1 for task in ("dyck42", "grid9")},
    **{f"{task} average 0.9 - none": 0.1 for task in stabilisers.AVERAGED},
    **{f"{task} average 0.95 - average 0.85": 0.001 for task in stabilisers.AVERAGED},
    "c2 gpt p=0.5 - p=0.95": 0.2, "c2 gpt worst p": 0.95, "c2 gpt T - 2T": 0.2, "c2 gpt largest rise beyond T": -0.1,
    "c2 scratchpad - gpt at 2T": 0.01, "c2 scratchpad 2T": 0.7, "c2 gpt low - high counts": -0.1,
    "c2 gpt middle - outer counts": 0.1, "dyck42 gpt T - 2T": 0.3, "c2 shift - gpt at 2T": 0.1,
    "c2 none - gpt at 2T": 0.1, "s3 GPT, all labels - a tenth": 0.2, "s5 GPT, all labels - a tenth": 0.2,
    "c2 GPT, all labels - a tenth": 0.01, **{f"{task} gpt, gap closed": 0.9 for task in OBSERVED},
    **{f"{task} LSTM - GPT": 0.01 for task in OBSERVED}, "grid9 sinusoidal - linear at 2T": -0.1,
    "grid9 gap sinusoidal - gap linear": 0.1, "abab2 sinusoidal - linear at T": 0.1,
    "abab2 gap sinusoidal - gap linear": 0.1, "coverage position and count, m=1000": 0.9,
    "coverage count alone, m=1000": 0.9,
}  # fmt: skip
UNDIVIDED = ("evaluation noise", "c2 gpt worst p", "c2 gpt largest rise beyond T")  # have no interval


def made() -> dict[str, pl.DataFrame]:
    """Return tables of five models at scale paper."""
    rows = [
        (name, value, *([None] * 2 if name in UNDIVIDED else [value] * 2), 5) for name, value in HOLD.items()
    ]
    frame = pl.DataFrame(rows, schema=["contrast", "value", "lo", "hi", "n"], orient="row")
    first = {"grid9": 2, "d8": 3, "d6": 5, "q8": 6, "a4": 10, "s4": 13, "s5": 13}
    cells = [(task, 16, 1.0, 0.9, 100.0) for task in TASKS] + [("c2", d, 1.0, 0.9, 99.5) for d in range(4, 9)]
    cells += [
        ("dyck42", 1, 0.993, 0.99, 99.3),
        ("grid4", 1, 0.999, 0.99, 99.9),
        ("grid9", 1, 0.92, 0.9, None),
    ]
    cells += [("grid9", 2, 1.0, 0.9, 100.0), ("d8", 1, 0.45, 0.4, 45.6)]
    grid = pl.DataFrame(
        cells, schema=["task", "depth", "acc_max", "acc_median", "published_max"], orient="row"
    ).with_columns(acc_iqr=0.1, n=5)
    known = published.minimum_depths()
    least = [(task, first.get(task, 1), 16, known[task][0]) for task in TASKS]
    models = pl.DataFrame({"replica": range(3), "accuracy": 1.0})
    probed = [models.with_columns(task=pl.lit("c2"), arm=pl.lit(arm)) for arm in ("lstm", "recency")]
    dyck = models.with_columns(task=pl.lit("dyck42"), arm=pl.lit("lstm"))
    hidden = [models.with_columns(task=pl.lit(task), arm=pl.lit("lstm")) for task in ("s3", "s5")]
    seen = {"arm": "gpt", "acc_max": 1.0, "majority": 0.5, "constant": 0.6, "published": 100.0}
    head = {"lift_0": 2.0, "lift_S": 1.0, "uniformity": 0.95, "pre_reset_mass": 0.1, "pre_reset_uniform": 0.5}
    flat = head | {"lift_0": 1.1, "uniformity": 0.8}
    heads = [
        {"replica": r, "trained": trained, "layer": n, "last_layer": n == 2} | seen_at
        for trained, seen_at in ((True, head), (False, flat))
        for r in range(2)
        for n in (1, 2)
    ]
    return {
        "contrasts": frame.with_columns(n_excluded=0, excluded_reason=pl.lit("")),
        "depth_grid": grid,
        "published_cells": published.cells(),
        "min_depth": pl.DataFrame(
            least, schema=["task", "depth", "deepest", "published_depth"], orient="row"
        ),
        "eval_noise": pl.DataFrame({"accuracy": [0.995, 0.9951]}),
        "ood_p": pl.concat(each.with_columns(p1=p) for each in probed for p in (0.05, 0.95)),
        "length_gen": pl.concat(each.with_columns(length=24, trained=12) for each in [*probed, dyck]),
        "incomplete": pl.concat(hidden).with_columns(revealed=0.1),
        "indirect": pl.DataFrame([seen | {"task": task} for task in OBSERVED]),
        "attn_metrics": pl.DataFrame(heads),
    }


GROUPS = (depth, stabilisers, robustness)


def judged(
    tables: dict[str, pl.DataFrame], groups: Iterable[Any] = GROUPS
) -> dict[str, tuple[float | None, str]]:
    context: Any = SimpleNamespace(
        table=tables.__getitem__, settings=SimpleNamespace(several=5), study="automata", scale="paper"
    )
    every = [gate for group in groups for gate in group.gates(context)]
    return {
        f"{gate.claim}, {gate.gate}": (gate.measured and gate.measured.value, gate.verdict("paper")[0])
        for gate in every
    }


def readers(name: str) -> list[Any]:
    """The groups of gates that read the table ``name``."""
    tables, matches = made(), []

    def table(asked: str) -> pl.DataFrame:
        if asked == name:
            matches.append(group)
        return tables[asked]

    context: Any = SimpleNamespace(
        table=table, settings=SimpleNamespace(several=5), study="automata", scale="paper"
    )
    for group in GROUPS:
        list(group.gates(context))
    return [group for group in GROUPS if group in matches]


def test_every_gate_holds_where_everything_does() -> None:
    assert {gate: outcome for gate, outcome in judged(made()).items() if outcome[1] != HOLDS} == {}


READ = {  # the columns that gates read of each table
    "contrasts": ["value", "lo"], "depth_grid": ["acc_max", "acc_median", "acc_iqr"], "ood_p": ["accuracy"],
    "length_gen": ["accuracy"], "incomplete": ["accuracy"], "indirect": ["acc_max"],
    "attn_metrics": ["lift_0", "lift_S", "uniformity", "pre_reset_mass"], "eval_noise": ["accuracy"],
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_every_gate_falls_that_reads_a_number_which_is_none(name: str) -> None:
    """A gate reads a number if it would measure or say something else with another one there. Of the contrasts each
    gate reads one row, so that all rows are spoilt at once."""
    tables, groups, all_read = made(), readers(name), 0
    before = judged(tables, groups)
    frame = tables[name]
    at = pl.int_range(pl.len())
    rows = (
        [pl.lit(True)]
        if name == "contrasts"
        else [at == row for row in range(0, frame.height, 1 + frame.height // 12)]
    )
    for column in READ[name]:
        for row in rows:

            def told(value: float | None, row: pl.Expr = row, column: str = column) -> dict[str, Any]:
                new = (
                    pl.when(row & pl.col(column).is_not_null())
                    .then(pl.lit(value, pl.Float64))
                    .otherwise(column)
                )
                return judged(tables | {name: frame.with_columns(new.alias(column))}, groups)

            others = [told(value) for value in (-1e9, 1e9)]
            reading = {gate for gate, was in before.items() if any(other[gate] != was for other in others)}
            all_read += len(reading)
            for value in (float("nan"), None) if reading else ():
                if column == "lo" and value is None:
                    continue  # an interval of which both ends are missing is none
                fallen = told(value)
                assert {gate for gate in reading if fallen[gate][1] != FAILS} == set(), (column, value)
    assert all_read


def test_nothing_is_tested_where_nothing_is_trained() -> None:
    empty = {name: frame.clear() for name, frame in made().items()} | {"published_cells": published.cells()}
    assert {verdict for _, verdict in judged(empty).values()} == {NOT_RUN}


def test_two_models_are_a_pilot() -> None:
    tables = made()
    few = tables["contrasts"].with_columns(n=2, lo=pl.lit(None, pl.Float64), hi=pl.lit(None, pl.Float64))
    outcomes = judged(tables | {"contrasts": few})
    assert outcomes["9, D8, four layers over one"][1] == outcomes["25, Grid 9, boundary, LSTM"][1] == TOO_FEW
    row = contrasts.contrast(
        context_of(), "two", lambda x, axis=-1: np.mean(x, axis=axis), np.array([0.0, 1.0])
    )
    assert (row["value"], row["lo"], row["hi"], row["n"]) == (0.5, None, None, 2)


def context_of() -> Any:
    return SimpleNamespace(seed=1, study="automata", settings=SimpleNamespace(resamples=100, confidence=0.95))


def test_a_trend_resamples_models_not_layers() -> None:
    samples = {1: np.array([0.1, 0.2, 0.1]), 4: np.array([0.5, 0.6, 0.4])}
    row = contrasts.trend(context_of(), "trend", samples)
    assert row["n"] == 3 and 0 < row["lo"] <= row["value"] <= row["hi"] <= 1


@pytest.mark.parametrize(
    ("row", "ends"),
    [
        ((0.9, 0.95, 0.99), (None, None)),
        ((-0.9, -0.99, -0.95), (None, None)),
        ((0.9, 0.8, 0.95), (0.8, 0.95)),
        ((-0.1, 0.1, 0.2), (0.1, 0.2)),  # undecided, and to stay so
        ((0.1, None, None), (None, None)),
    ],
)
def test_an_interval_beyond_a_trend_is_left_out_where_no_verdict_changes(
    row: tuple[Any, ...], ends: Any
) -> None:
    tables = made()
    values = dict(zip(("value", "lo", "hi"), row, strict=True))
    tables["contrasts"] = tables["contrasts"].with_columns(
        pl.when(contrast="d8 spearman").then(pl.lit(value)).otherwise(name).alias(name)
        for name, value in values.items()
    )
    context: Any = SimpleNamespace(table=tables.__getitem__)
    measured, _ = depth._trend(context, "d8")
    assert measured and (measured.value, measured.lo, measured.hi) == (row[0], *ends)


def test_bars_of_the_chapter() -> None:
    tables = made()
    for name, gate, value in (
        ("d8 L=4 - L=1", "9, D8, four layers over one", 0.09),
        ("abab2 LSTM - GPT", "25, abab (2), LSTM", -0.001),
        ("c2 gpt largest rise beyond T", "18, falling", 0.0),
        ("c2 gpt worst p", "17, worst probability", 0.5),
    ):
        new = [
            pl.when(contrast=name).then(pl.lit(value)).otherwise(c).alias(c) for c in ("value", "lo", "hi")
        ]
        outcomes = judged(tables | {"contrasts": tables["contrasts"].with_columns(new)})
        assert [key for key, outcome in outcomes.items() if outcome[1] != HOLDS] == [gate]


def test_gates_of_theory_fall_with_their_rows() -> None:
    """One row of each kind: errors, deviations, depths, sizes, printed forms, refusals, the algorithm."""
    names = [
        f"{check}.x.{kind}" for check, _ in theory.CONSTRUCTIONS.values() for kind in ("errors", "deviation")
    ]
    names += [f"ledger.{check}.x.depth" for check, _ in theory.CONSTRUCTIONS.values()]
    names += [f"thm-16.{name}.errors" for name in theory.SOLVABLE] + [
        "thm-10.depth.8",
        "thm-16.depth.d8",
        "thm-12.depth",
    ]
    names += ["thm-16.refused.a5", "thm-16.refused.s5", "thm-13.c2", "alg-1.state", "alg-1.simpler", "lem-22"]
    one = ("thm-16.depth", "thm-12.depth", "thm-16.refused", "thm-13", "ledger", "thm-10.depth")
    rows = [
        {"check": name, "measured": float(name.startswith(one)), "erratum": "", "form": ""} for name in names
    ]
    rows += [
        {"check": erratum, "measured": 1.0, "erratum": erratum, "form": "printed"}
        for erratum, _ in theory.PRINTED.values()
    ]
    frame = pl.DataFrame(rows).with_columns(bound=1.0)

    def told(measured: pl.Expr) -> dict[str, Gate]:
        new = frame.with_columns(measured.alias("measured"))
        new = new.with_columns(passed=pl.col("measured").is_not_nan() & pl.col("measured").is_not_null())
        context: Any = SimpleNamespace(theory=lambda: new)
        return {f"{gate.claim}, {gate.gate}": gate for gate in theory.gates(context)}

    before = told(pl.col("measured"))
    assert {gate.verdict("quick")[0] for gate in before.values()} == {HOLDS}
    for value in (None, float("nan")):
        spoilt = told(pl.lit(value, pl.Float64))
        assert {gate.verdict("quick")[0] for gate in spoilt.values()} == {FAILS}
    for row in range(frame.height):
        after = told(pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise("measured"))
        assert any(gate.verdict("quick")[0] == FAILS for gate in after.values()), frame["check"][row]
