"""Replicas that train side by side in one process are what each is alone, in every study whose objective says so."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from workspace import load_study

from pipeline.training import core, ensemble, jobs

CPU = torch.device("cpu")
RUNS = [
    ("depth", "depth-ic-tm-l3"),
    ("depth", "depth-tm-random-adam"),
    ("depth", "depth-ic-qa-l2-softmax"),
    ("flipflop", "flipflop-base"),
    ("flipflop", "flipflop-linear-plain"),
    ("flipflop", "flipflop-lstm"),
    ("automata", "automata-d8-l2"),
    ("automata", "automata-c2-lstm"),
    ("topic", "topic-joint-adam"),
    ("topic", "topic-frozen-adam"),
]


def opened(folder: Path, study: str, member: str, replicas: int) -> jobs.TrainingJob:
    loaded = load_study(study, "smoke")
    entry = loaded.members("runs")[member].model_copy(update={"replicas": replicas})
    made = importlib.import_module(f"pipeline.studies.{study}.datasets")
    frame, _ = made.generate(loaded.members("datasets")[entry.dataset], entry.dataset, loaded.seed)
    prepared: Any = importlib.import_module(f"pipeline.studies.{study}.runs").prepare(entry, frame, loaded.seed)
    ensemble.write_job(folder / "job.safetensors", *prepared)
    return jobs.TrainingJob(folder / "job.safetensors")


@pytest.mark.parametrize(("study", "member"), RUNS)
def test_in_company_a_replica_is_what_it_is_alone(tmp_path: Path, study: str, member: str) -> None:
    job = opened(tmp_path, study, member, replicas=3)
    assert job.objective.side_by_side > 1
    company = core.train_chunk(job, [0, 1, 2], CPU)
    alone = core.train_chunk(job, [1], CPU)
    assert not torch.equal(company.flat[0], company.flat[1])
    torch.testing.assert_close(alone.flat[0], company.flat[1], rtol=1e-4, atol=1e-5)
    for name, rows in alone.curves.items():
        torch.testing.assert_close(
            torch.stack(rows)[:, 0],
            torch.stack(company.curves[name])[:, 1],
            rtol=1e-3,
            atol=1e-4,
            equal_nan=True,
            msg=name,
        )


@pytest.mark.parametrize(
    ("replicas", "at_most", "sizes"), [(1, 5, [1]), (5, 5, [5]), (6, 5, [3, 3]), (12, 5, [4, 4, 4]), (3, 1, [1, 1, 1])]
)
def test_chunks_hold_all_replicas_in_order_and_no_more_than_the_objective_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replicas: int, at_most: int, sizes: list[int]
) -> None:
    job = opened(tmp_path, "depth", "depth-tm-l2", replicas=replicas)
    job.header = replace(job.header, corpus=list(range(replicas)))
    monkeypatch.setattr(job.objective, "side_by_side", at_most, raising=False)
    pieces = ensemble.groups(job, "cpu")
    assert [len(piece) for piece in pieces] == sizes
    assert [r for piece in pieces for r in piece] == list(range(replicas))
    assert ensemble.groups(job, "cuda") == [list(range(replicas))]
