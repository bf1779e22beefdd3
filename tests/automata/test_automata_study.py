"""The study: what is published, what parameters refuse, claims on tables, and all of it at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from workspace import Workspace, load_study

from pipeline.errors import SandglassError
from pipeline.languages import automata
from pipeline.store import tables
from pipeline.studies.automata import datasets, inputs, runs
from pipeline.studies.automata.claims import STATEMENTS
from pipeline.studies.automata.measures import published
from pipeline.studies.automata.params import Dataset
from schemas.automata.datasets import SCHEMA
from schemas.automata.tables import OBSERVED, TASKS


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


def test_tasks_have_one_order() -> None:
    """The schemas of tables list the tasks themselves, so that figures and claims load no algebra."""
    assert tuple(TASKS) == automata.TASKS and tuple(OBSERVED) == automata.OBSERVED
