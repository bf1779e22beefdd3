"""Jobs of the depth study: what is read, where training starts, what is measured; and that models learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.languages import sequence_tasks as tasks
from pipeline.studies.depth import datasets, runs
from pipeline.training import core, ensemble, jobs
from pipeline.training.objectives.classification import Objective

CPU = torch.device("cpu")
SCALES = {scale: load_study("depth", scale) for scale in ("smoke", "quick", "paper")}
RUNS = {scale: loaded.members("runs", "depth") for scale, loaded in SCALES.items()}
DATASETS = {scale: loaded.members("datasets", "depth") for scale, loaded in SCALES.items()}
SEED = SCALES["smoke"].seed


def prepared(run: str, data: dict[str, Any] | None = None, **changes: Any) -> Any:
    entry = RUNS["smoke"][run].model_copy(update={"replicas": 2} | changes)
    source = DATASETS["smoke"][entry.dataset].model_copy(update=data or {})
    frame, _ = datasets.generate(source, entry.dataset, SEED)
    return entry, *runs.prepare(entry, frame, SEED)


def opened(folder: Path, run: str, data: dict[str, Any] | None = None, **changes: Any) -> jobs.TrainingJob:
    _, header, arrays, table = prepared(run, data, **changes)
    ensemble.write_job(folder / "job.safetensors", header, arrays, table)
    return jobs.TrainingJob(folder / "job.safetensors")


@pytest.mark.parametrize("scale", SCALES)
def test_widths_hold_tokens_and_positions_and_data_suffice(scale: str) -> None:
    for key, run in RUNS[scale].items():
        source = DATASETS[scale][run.dataset]
        k = source.links * source.chains if source.task == "nested" else getattr(source, "k", 0)
        n = tasks.length(source.task, k, getattr(source, "l", 0))
        assert run.width >= tasks.inputs(source.task, source.d1, getattr(source, "d2", 0)) + n, key
        if source.task != "sc" and run.replicas:
            assert source.train >= run.steps * run.batch, key


@pytest.mark.parametrize("run", RUNS["smoke"])
def test_every_run_takes_finite_steps(tmp_path: Path, run: str) -> None:
    job = opened(tmp_path, run, steps=1, log_every=1)
    state = core.train_chunk(job, [0], CPU)
    assert int(state.diverged_at[0]) == -1
    assert all(math.isfinite(float(points[0][0])) for points in state.curves.values())


def test_fresh_sequences_must_suffice() -> None:
    with pytest.raises(SandglassError, match=r"64 fresh training sequences, but 5 steps of 16 read 80: raise"):
        prepared("depth-ic-qa-l2", steps=5)
    with pytest.raises(SandglassError, match="has 2 corpora: it needs as many replicas, not 1"):
        prepared("depth-nested-l2", replicas=1)


def test_one_epoch_shows_every_sequence_once(tmp_path: Path) -> None:
    job = opened(tmp_path, "depth-ic-qa-l2")
    seen = np.concatenate([job.batch([0], step)["ids"][0] for step in range(job.header.steps)])
    assert len(np.unique(seen, axis=0)) == len(np.unique(job.objective.data["ids"][0], axis=0))  # type: ignore[attr-defined]


def test_models_take_corpora_in_turn_and_rates_share_them() -> None:
    entry, header, data, _ = prepared("depth-sc-sizes", replicas=4)
    assert header.corpus == [0, 1, 0, 1] * len(entry.lr)
    assert header.lr == [rate for rate in entry.lr for _ in range(4)]
    assert data["sizes"].tolist() == DATASETS["smoke"]["depth-sc-sizes"].sizes


def test_smaller_corpora_are_read_more_often() -> None:
    ids = np.arange(8, dtype=np.int16).reshape(2, 4, 1)
    data = {"ids": ids, "labels": ids[..., 0], "sizes": np.array([2, 4])}
    objective = Objective(data, {"splits": [], "context": False})
    batch = objective.collate([0, 1], [np.arange(4)] * 2, [])
    assert batch["labels"].tolist() == [[0, 1, 0, 1], [4, 5, 6, 7]]


def test_layers_start_from_the_construction() -> None:
    _, header, data, table = prepared("depth-ic-qa-heads21")
    spec, k = header.spec, DATASETS["smoke"]["depth-ic-qa"].k
    W = data["initial.blocks.0.W"]
    assert W.shape == (2, spec["width"], spec["width"]) and "initial.blocks.1.W" not in data
    d, n = spec["inputs"], spec["length"]
    np.testing.assert_array_equal(W[0, d : d + n, d : d + n], tasks.copying("ic_qa", k, 0))
    assert W[0].sum() == tasks.copying("ic_qa", k, 0).sum() and (W[0] == W[1]).all()
    assert not [name for name in prepared("depth-ic-qa-random")[2] if name.startswith("initial.")]
    assert (table == np.eye(d + n, spec["width"])).all()


def test_metrics_of_scores() -> None:
    """Among all outputs the first sequence is wrong, among the context's answers it is right."""
    logits = torch.tensor([[[5.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 9.0]]])
    data = {"ids": np.zeros((1, 2, 1), np.int16), "labels": np.zeros((1, 2)), "sizes": np.array([2])}
    objective = Objective(data, {"splits": ["fresh"], "context": True})
    batch = {
        "ids": torch.zeros(1, 2, 1, dtype=torch.long),
        "labels": torch.tensor([[1, 3]]),
        "candidates": torch.tensor([[[2, 1], [3, 0]]]),
    }
    metrics = objective.loss(lambda ids: (logits, {}), batch)
    expected = [
        math.log(sum(math.exp(x) for x in row)) - row[label]
        for row, label in zip(logits[0].tolist(), (1, 3), strict=True)
    ]
    assert float(metrics["loss"]) == pytest.approx(np.mean(expected), rel=1e-6)
    assert float(metrics["accuracy"]) == 0.5 and float(metrics["context"]) == 1.0
    held = {f"fresh.{name}": value for name, value in batch.items()} | {"corpus": torch.tensor([0])}
    evaluated = objective.evaluate(lambda ids: (logits, {}), held)
    assert set(evaluated) == set(objective.evaluated) == {"loss_fresh", "accuracy_fresh", "context_fresh"}
    assert float(evaluated["context_fresh"]) == 1.0


def test_models_are_evaluated_on_their_own_corpus(tmp_path: Path) -> None:
    """A forward pass that always answers what the first corpus wants, at one hop: wrong for the second."""
    job = opened(tmp_path, "depth-nested-l2")
    held = {name: torch.from_numpy(value) for name, value in job.held.items()}
    held["corpus"] = torch.tensor([0, 1])

    def next_of_query(ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        pairs = ids[..., :-2].reshape(*ids.shape[:2], -1, 3)
        answer = ((pairs[..., 0] == ids[..., -2:-1]) * pairs[..., 2]).sum(-1)
        return torch.nn.functional.one_hot(answer, job.spec.outputs).float() * 9, {}

    accuracy = job.objective.evaluate(next_of_query, held)["accuracy_fresh"]
    assert accuracy.tolist() == [1.0, 0.0]


def test_one_layer_memorizes(tmp_path: Path) -> None:
    job = opened(tmp_path, "depth-sc-l1", data={"sizes": [6]}, lr=[0.02], steps=300, log_every=100)
    curve = core.train_chunk(job, [0], CPU).curves["accuracy"]
    assert float(curve[-1]) > 0.95


def test_two_layers_generalize_where_one_does_not(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"lr": [0.01], "steps": 400, "log_every": 400, "batch": 32}
    accuracies = {}
    for run in ("depth-tm-l1", "depth-tm-l2"):
        job = opened(tmp_path, run, data={"train": 12800, "held": 500}, **changes)
        accuracies[run] = float(core.train_chunk(job, [0], CPU).curves["accuracy_unseen_combination"][-1])
    assert accuracies["depth-tm-l2"] > 0.6 > 0.35 > accuracies["depth-tm-l1"]


@pytest.mark.parametrize("run", ["depth-sc-heads8", "depth-ic-tm-k4-heads1111", "depth-nested-l6"])
def test_published_sizes_take_steps(tmp_path: Path, run: str) -> None:
    """At scale paper the deepest and widest models start from finite scores, and move."""
    entry = RUNS["paper"][run].model_copy(update={"steps": 2, "batch": 4, "log_every": 1})
    source = DATASETS["paper"][entry.dataset].model_copy(update={"held": 8, "train": 8, "sizes": [8]})
    frame, _ = datasets.generate(source, entry.dataset, SEED)
    header, data, table = runs.prepare(entry, frame, SEED)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    before, state = job.initial([0]), core.train_chunk(job, [0], CPU)
    assert int(state.diverged_at[0]) == -1 and not torch.equal(before, state.flat)
