"""The trainer: pure batches, exact packing, independent replicas, real kills."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from workspace import load_study

from pipeline import params as parameters
from pipeline.engine import preload, runner
from pipeline.errors import SandglassError
from pipeline.models.transformer import decoder as transformer
from pipeline.steps import train
from pipeline.store import checkpoints
from pipeline.studies.dyck import datasets, runs
from pipeline.training import core, ensemble, jobs
from pipeline.training.objectives import next_token
from pipeline.training.optimisers import learning_rate
from pipeline.training.packing import pack
from schemas.curves import Curves

ROOT = Path(__file__).parents[2]
CPU = torch.device("cpu")


def write_job(folder: Path, run: str = "dyck-standard", **changes: Any) -> Path:
    """A job file of one of the study's runs at smoke scale, with some header fields changed."""
    loaded = load_study("dyck")
    entry = loaded.members("runs")[run].model_copy(update={"replicas": changes.pop("replicas", 3)})
    source = loaded.members("datasets")[entry.dataset].model_copy(update={"corpora": 3})
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    path = folder / "job.safetensors"
    ensemble.write_job(path, dataclasses.replace(header, **changes), data, table)
    return path


def trained(paths: list[Path]) -> list[ensemble.Trained]:
    """What all jobs come to, on the CPU."""
    return ensemble.train(paths, "cpu", lambda _: None, lambda *_: None)


def open_job(folder: Path, run: str = "dyck-standard", **changes: Any) -> jobs.TrainingJob:
    return jobs.TrainingJob(write_job(folder, run, **changes))


# --- packing ---------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 12), min_size=1, max_size=60))
@settings(max_examples=200, deadline=None)
def test_packing_keeps_every_sequence_whole(lengths: list[int]) -> None:
    packed = pack(np.array(lengths), 12)
    flat = packed.segments.reshape(-1)
    assert len(set(packed.where.tolist())) == sum(lengths)
    assert (flat >= 0).sum() == sum(lengths)
    start = 0
    for sequence, length in enumerate(lengths):
        places = packed.where[start : start + length]
        start += length
        assert (np.diff(places) == 1).all()
        assert places[0] // 12 == places[-1] // 12
        assert (flat[places] == sequence).all()
        assert (packed.positions.reshape(-1)[places] == np.arange(length)).all()


def test_packing_wastes_little() -> None:
    lengths = np.random.default_rng(0).choice([2, 4, 6, 8, 10, 16, 26], 100)
    rows = len(pack(lengths, 26).segments)
    assert rows <= np.ceil(lengths.sum() / 26) + 1


def padded_batch(job: jobs.TrainingJob, replica: int, step: int) -> dict[str, torch.Tensor]:
    """The same sequences, one per row."""
    chosen = job._selection(replica, step)
    data = job.objective.data
    ids, lengths = data["ids"][0, chosen].astype(np.int64), data["lengths"][0, chosen]
    used = np.arange(ids.shape[1]) < lengths[:, None]
    return {
        "ids": torch.from_numpy(np.where(used, ids, 0))[None],
        "positions": torch.arange(ids.shape[1]).expand(1, *ids.shape),
        "segments": torch.zeros(1, *ids.shape, dtype=torch.int64),
        "select": torch.arange(ids.size)[None],
        "targets": torch.from_numpy(data["targets"][0, chosen].astype(np.int64)).reshape(1, -1),
    }


@pytest.mark.parametrize("run", ["dyck-standard", "dyck-linear-position", "dyck-minimal", "dyck-uniform-complete"])
def test_packed_loss_and_gradient_are_those_of_padded_rows(tmp_path: Path, run: str) -> None:
    job = open_job(tmp_path, run)
    table = torch.from_numpy(job.table).double()
    values = {}
    for name, batch in {
        "packed": {k: torch.from_numpy(v) for k, v in job.batch([1], 0).items()},
        "padded": padded_batch(job, 1, 0),
    }.items():
        flat = (job.initial([1]).double() * 10).requires_grad_()
        weights = job.unflatten(flat)

        def forward(*inputs: Any, select: Any, weights: Any = weights) -> Any:
            return transformer.forward(job.spec, weights, table, *inputs, select=select)

        metrics = job.objective.loss(forward, batch)
        (gradient,) = torch.autograd.grad(metrics["loss"].sum(), flat)
        values[name] = (batch["ids"].numel(), metrics, gradient)
    assert values["packed"][0] < 0.6 * values["padded"][0]
    torch.testing.assert_close(values["packed"][1], values["padded"][1], atol=1e-12, rtol=0)
    torch.testing.assert_close(values["packed"][2], values["padded"][2], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("run", "behind"), [("dyck-minimal-contrastive", 1), ("dyck-minimal-contrastive-release", 0)])
def test_the_regulariser_compares_aligned_logits(tmp_path: Path, run: str, behind: int) -> None:
    """Eq. (18), sequence by sequence: [t_S] p s against [t_S] s at |s|+1 positions; in the release p [t_S] s."""
    job = open_job(tmp_path, run)
    table = torch.from_numpy(job.table).double()
    weights = job.unflatten(job.initial([2]).double() * 20)

    def forward(*inputs: Any, select: Any = None) -> Any:
        return transformer.forward(job.spec, weights, table, *inputs, select=select)

    batch = {k: torch.from_numpy(v) for k, v in job.batch([2], 3).items()}
    metrics = job.objective.loss(forward, batch)
    data = job.objective.data
    which = job.rng(2, "objective", 3).choice(len(data["prefix.probability"]), p=data["prefix.probability"])
    prefix = data["prefix.ids"][which, : data["prefix.lengths"][which]].astype(np.int64)
    squares = []
    for n in job._selection(2, 3):
        s = data["ids"][2, n, : data["lengths"][2, n]].astype(np.int64)
        longer = np.concatenate([s[:behind], prefix, s[behind:]])
        plain, _ = forward(torch.from_numpy(s)[None, None])
        extended, _ = forward(torch.from_numpy(longer)[None, None])
        squares.append((extended[0, 0, len(prefix) :] - plain[0, 0]) ** 2)
    expected = torch.cat(squares).mean()
    assert expected > 1e-3
    torch.testing.assert_close(metrics["regulariser"][0], expected, atol=1e-12, rtol=0)
    entropy = metrics["loss"] - 0.3 * metrics["regulariser"]
    torch.testing.assert_close(entropy, _without_regulariser(job, forward, batch), atol=1e-12, rtol=0)


def _without_regulariser(job: jobs.TrainingJob, forward: Any, batch: Any) -> torch.Tensor:
    plain = next_token.Objective(job.objective.data, {"weight": 0.0, "prefix_first": False})
    return plain.loss(forward, batch)["loss"]


# --- determinism -----------------------------------------------------------------------------------------


def test_batches_are_a_pure_function_of_replica_and_step(tmp_path: Path) -> None:
    job, other = open_job(tmp_path), open_job(tmp_path)
    later = job.batch([2], 17)
    other.batch([0, 1, 2], 3)
    transformer.initial(job.spec, np.random.default_rng(0))
    again = other.batch([2], 17)
    assert all((later[name] == again[name]).all() for name in later)


def test_an_epoch_shows_every_sequence_once(tmp_path: Path) -> None:
    job = open_job(tmp_path, batch=50)  # 320 sequences: six full batches and one of 20
    seen = np.concatenate([job._selection(1, step) for step in range(7)])
    assert sorted(seen.tolist()) == list(range(320))
    assert len(job._selection(1, 6)) == 20
    assert not np.array_equal(job._selection(1, 0), job._selection(1, 7))


def test_how_often_one_looks_changes_no_weight(tmp_path: Path) -> None:
    states = [core.train_chunk(open_job(tmp_path, log_every=n), [0], CPU) for n in (1, 3, 10)]
    assert torch.equal(states[0].flat, states[1].flat)
    assert torch.equal(states[0].flat, states[2].flat)
    assert len(states[0].curves["loss"]) == 10
    torch.testing.assert_close(
        torch.stack(states[0].curves["loss"]).mean(), states[2].curves["loss"][0].mean(), atol=1e-6, rtol=0
    )


def test_curves_are_means_since_the_previous_point(tmp_path: Path) -> None:
    every = core.train_chunk(open_job(tmp_path, log_every=1), [0], CPU).curves["loss"]
    some = core.train_chunk(open_job(tmp_path, log_every=4), [0], CPU).curves["loss"]
    expected = [torch.stack(every[a:b]).mean() for a, b in ((0, 4), (4, 8), (8, 10))]
    torch.testing.assert_close(torch.cat(some), torch.stack(expected), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("steps", "tolerance"), [(1, 1e-6), (50, 2e-4)])
def test_a_replica_alone_equals_the_same_replica_in_company(tmp_path: Path, steps: int, tolerance: float) -> None:
    """Rows are filled up to the longest batch of the company, so sums may be taken in another order."""
    job = open_job(tmp_path, steps=steps)
    together = core.train_chunk(job, [0, 1, 2], CPU).flat
    alone = core.train_chunk(open_job(tmp_path, steps=steps), [1], CPU).flat
    assert not torch.allclose(together[0], together[1], atol=1e-3)
    torch.testing.assert_close(alone[0], together[1], atol=tolerance, rtol=0)


@pytest.mark.usefixtures("forking")
def test_on_a_cpu_the_number_of_workers_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []
    for cores in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", cores)
        folder = tmp_path / cores
        folder.mkdir()
        models += trained([write_job(folder)])
    for name in models[0].params:
        assert np.array_equal(models[0].params[name], models[1].params[name])
    assert models[0].curves.keys() == {"loss", "accuracy", "regulariser"}


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Bit for bit, but for the NaNs that a diverged replica has in its curves."""
    return np.array_equal(one, other, equal_nan=True)


@pytest.mark.usefixtures("forking")
def test_the_members_of_a_run_are_what_each_is_alone(tmp_path: Path) -> None:
    """One pool of chunks for all of them: shapes, lengths and numbers of replicas may differ."""

    def paths(*names: str) -> list[Path]:
        files = []
        for name, changes in MEMBERS.items():
            if name in names:
                folder = tmp_path / "-".join(names) / name
                folder.mkdir(parents=True)
                files.append(write_job(folder, name, **changes))
        return files

    together = trained(paths(*MEMBERS))
    for name, member in zip(MEMBERS, together, strict=True):
        (alone,) = trained(paths(name))
        assert member.params.keys() == alone.params.keys()
        assert all(same(member.params[key], alone.params[key]) for key in member.params)
        assert member.logged.tolist() == alone.logged.tolist()
        assert all(same(member.curves[key], alone.curves[key]) for key in member.curves)


MEMBERS = {
    "dyck-standard": {"replicas": 2},
    "dyck-minimal": {"replicas": 3, "steps": 7, "lr": [0.003, 1e30, 0.003]},  # one of them diverges
    "dyck-table1-k3-d8-l3": {"replicas": 1},
}


@pytest.mark.usefixtures("forking")
def test_an_interrupted_run_goes_on_with_what_its_members_have_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one whose parameters have changed since starts afresh, alone."""
    folders = {name: tmp_path / name for name in MEMBERS}
    for folder in folders.values():
        folder.mkdir()
    paths = [write_job(folder, name) for name, folder in folders.items()]
    whole = trained(paths)
    first, second = (folders[name] / "chunks/0.safetensors" for name in list(MEMBERS)[:2])
    untouched = first.stat().st_mtime_ns
    (folders["dyck-table1-k3-d8-l3"] / "chunks/1.safetensors").unlink()
    paths[1] = write_job(folders["dyck-minimal"], "dyck-minimal", steps=8)
    before = second.read_bytes()
    again = trained(paths)
    assert first.stat().st_mtime_ns == untouched and second.read_bytes() != before
    for place in (0, 2):
        assert all(same(again[place].params[key], whole[place].params[key]) for key in again[place].params)
    assert again[1].logged.max() == 8


def test_runs_with_the_same_stream_start_from_the_same_weights(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain = open_job(tmp_path / "a", "dyck-minimal-own-corpus")
    contrastive = open_job(tmp_path / "b", "dyck-minimal-contrastive")
    assert torch.equal(plain.initial([0, 1]), contrastive.initial([0, 1]))
    assert np.array_equal(plain._selection(1, 5), contrastive._selection(1, 5))


# --- optimiser -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("optimizer", "decay"), [("adam", 0.0), ("adamw", 0.1)])
def test_adam_is_torch_adam_with_a_rate_per_replica(tmp_path: Path, optimizer: str, decay: float) -> None:
    rates = [0.003, 0.01, 0.0001]
    changes: dict[str, Any] = {"optimizer": optimizer, "weight_decay": decay, "averages": [0.5, 0.9]}
    job = open_job(tmp_path, lr=rates, steps=6, schedule="constant", eps=1e-3, **changes)
    table = torch.from_numpy(job.table)
    # A large eps: the gradient of a key bias is exactly 0 in theory, and Adam would blow up its rounding.
    for r, rate in enumerate(rates):
        state = core.train_chunk(job, [r], CPU)
        weights = torch.nn.Parameter(job.initial([r]))
        kind = torch.optim.AdamW if decay else torch.optim.Adam
        adam = kind([weights], lr=rate, eps=1e-3, weight_decay=decay)
        averages = {average: weights.detach().clone() for average in (0.5, 0.9)}
        for step in range(6):
            batch = {k: torch.from_numpy(v) for k, v in job.batch([r], step).items()}

            def forward(*inputs: Any, select: Any, weights: Any = weights) -> Any:
                named = job.unflatten(weights)
                return transformer.forward(job.spec, named, table, *inputs, select=select)

            adam.zero_grad()
            job.objective.loss(forward, batch)["loss"].sum().backward()
            adam.step()
            averages = {a: a * value + (1 - a) * weights.detach() for a, value in averages.items()}
        torch.testing.assert_close(state.flat, weights.detach(), atol=1e-6, rtol=0)
        for average, expected in averages.items():
            running_average = state.averages[jobs.average_name(average)]
            torch.testing.assert_close(running_average, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("optimizer", ["sgd", "normalised_sgd"])
def test_plain_and_normalised_gradient_steps(tmp_path: Path, optimizer: str) -> None:
    """Two steps against a loop by hand; the curves say how long the gradient was, before clipping."""
    rates = [0.5, 0.1]
    job = open_job(
        tmp_path,
        replicas=2,
        steps=2,
        log_every=1,
        lr=rates,
        optimizer=optimizer,
        betas=[],
        eps=0.0,
        schedule="constant",
    )
    state = core.train_chunk(job, [0, 1], CPU)
    assert not state.moments
    table = torch.from_numpy(job.table)
    for r, rate in enumerate(rates):
        weights = job.initial([r])
        for step in range(2):
            weights.requires_grad_()
            batch = {k: torch.from_numpy(v) for k, v in job.batch([r], step).items()}
            forward = core._forward(job, job.unflatten(weights), table)
            (gradient,) = torch.autograd.grad(job.objective.loss(forward, batch)["loss"].sum(), weights)
            norm = gradient.norm()
            torch.testing.assert_close(state.curves["gradient_norm"][step][r], norm, rtol=1e-4, atol=0)
            weights = (weights - rate * (gradient / norm if optimizer == "normalised_sgd" else gradient)).detach()
        torch.testing.assert_close(state.flat[r], weights[0], atol=1e-6, rtol=0)


def test_a_gradient_of_zero_takes_no_normalised_step(tmp_path: Path) -> None:
    job = open_job(tmp_path, replicas=1, steps=1, log_every=1, optimizer="normalised_sgd", betas=[], eps=0.0)
    job.objective.data["targets"][:] = -1  # nothing to predict: the loss is 0 wherever one stands
    state = core.train_chunk(job, [0], CPU)
    torch.testing.assert_close(state.flat, job.initial([0]), atol=0, rtol=0)
    assert state.curves["skipped"][0].tolist() == [1.0] and state.diverged_at.tolist() == [-1]


def test_rates_of_a_grid_share_initial_weights_and_data(tmp_path: Path) -> None:
    job = open_job(tmp_path, replicas=4, streams=[0, 1, 0, 1])
    weights = job.initial([0, 1, 2, 3])
    torch.testing.assert_close(weights[:2], weights[2:], atol=0, rtol=0)
    assert not torch.equal(weights[0], weights[1])
    batch = job.batch([1, 3], 5)
    np.testing.assert_array_equal(batch["ids"][0], batch["ids"][1])


class Held:
    """An objective's answer at every point of the curves."""

    evaluated = ("accuracy_far",)

    def evaluate(self, forward: Any, held: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        logits, _ = forward(held["ids"][None, None])
        return {"accuracy_far": logits.mean(dim=(1, 2, 3))}


def test_weights_may_be_given_and_held_out_data_is_evaluated_at_every_point(tmp_path: Path) -> None:
    """Given weights are those of every replica; evaluation sees the weights after the step, and changes nothing."""
    path = write_job(tmp_path, replicas=2, steps=4, log_every=2)
    arrays, header = checkpoints.read(path)
    name, shape = "head.W", arrays["table"].shape[1]
    given = np.full((shape, 4), 0.5, np.float32)
    held = np.array([0, 1, 2], np.int64)
    checkpoints.write(path, arrays | {f"initial.{name}": given, "held.ids": held}, header)
    job = jobs.TrainingJob(path)
    first = job.unflatten(job.initial([0, 1]))[name]
    np.testing.assert_array_equal(first.numpy(), np.stack([given, given]))
    plain = core.train_chunk(job, [0, 1], CPU)
    for what in ("evaluated", "evaluate"):
        setattr(job.objective, what, getattr(Held(), what))
    job.metrics = (*job.averaged, *Held.evaluated)
    state = core.train_chunk(job, [0, 1], CPU)
    torch.testing.assert_close(state.flat, plain.flat, atol=0, rtol=0)
    forward = core._forward(job, job.unflatten(state.flat), torch.from_numpy(job.table))
    expected = Held().evaluate(forward, {"ids": torch.from_numpy(held)})["accuracy_far"]
    assert len(state.curves["accuracy_far"]) == 2
    torch.testing.assert_close(state.curves["accuracy_far"][-1], expected, atol=1e-6, rtol=0)


def test_the_cosine_schedule_ends_at_zero(tmp_path: Path) -> None:
    header = open_job(tmp_path, steps=100).header
    assert learning_rate(header, 0) == 1.0
    assert learning_rate(header, 50) == pytest.approx(0.5)
    assert learning_rate(header, 99) < 1e-3


def test_the_rate_rises_before_it_falls_to_its_floor(tmp_path: Path) -> None:
    header = open_job(tmp_path, steps=110, warmup=10, floor=0.1).header
    assert [learning_rate(header, step) for step in (0, 4, 9, 10)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    assert learning_rate(header, 60) == pytest.approx(0.55)
    assert 0.1 < learning_rate(header, 109) < 0.101
    assert learning_rate(dataclasses.replace(header, schedule="constant"), 109) == 1.0


def test_a_linear_schedule_reaches_its_floor_one_step_after_the_last(tmp_path: Path) -> None:
    header = open_job(tmp_path, steps=110, warmup=10, schedule="linear").header
    assert [learning_rate(header, step) for step in (0, 9, 10, 60, 109)] == [0.1, 1.0, 1.0, 0.5, 0.01]
    assert learning_rate(dataclasses.replace(header, floor=0.2), 60) == pytest.approx(0.6)


def test_data_order_and_initial_weights_have_numbers_of_their_own(tmp_path: Path) -> None:
    job = open_job(tmp_path, streams=[0, 1, 0], orders=[0, 0, 1])
    first, second, third = ({"ids": job.batch([r], 3)["ids"], "flat": job.initial([r]).numpy()} for r in range(3))
    assert np.array_equal(first["ids"], second["ids"]) and not np.array_equal(first["ids"], third["ids"])
    assert np.array_equal(first["flat"], third["flat"]) and not np.array_equal(first["flat"], second["flat"])


def test_an_objective_learns_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, steps = open_job(tmp_path, steps=3), []
    loss = job.objective.loss

    def noted(forward: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        steps.append(int(batch["step"]))
        return loss(forward, batch)

    monkeypatch.setattr(job.objective, "loss", noted)
    core.train_chunk(job, [0, 1], CPU)
    assert steps == [0, 1, 2]


@pytest.mark.usefixtures("forking")
def test_weights_after_named_steps_are_kept(tmp_path: Path) -> None:
    """Those after 0 steps are the initial ones, and an interrupted training keeps those it passed."""
    job = jobs.TrainingJob(write_job(tmp_path / "whole", steps=8, snapshots=[0, 3, 8]))
    state = core.train_chunk(job, [1], CPU)
    assert list(state.snapshots) == ["step0", "step3", "step8"]
    assert torch.equal(state.snapshots["step0"], job.initial([1]))
    assert torch.equal(state.snapshots["step8"], state.flat)
    early = jobs.TrainingJob(write_job(tmp_path / "early", steps=3, schedule="constant"))
    late = jobs.TrainingJob(write_job(tmp_path / "late", steps=8, schedule="constant", snapshots=[3]))
    passed = core.train_chunk(late, [1], CPU)
    assert torch.equal(passed.snapshots["step3"], core.train_chunk(early, [1], CPU).flat)
    core.save(tmp_path / "partial", late, dataclasses.replace(passed, step=5))
    assert torch.equal(core._resume(tmp_path / "partial", late, passed).snapshots["step3"], passed.snapshots["step3"])
    (model,) = trained([write_job(tmp_path / "run", steps=8, snapshots=[3])])
    assert {name.split(".")[0] for name in model.params} >= {"step3"}


def test_clipping_is_per_replica(tmp_path: Path) -> None:
    """With Adam the first update has size lr whatever the gradient: clipping shows in the moments."""
    job = open_job(tmp_path, steps=1, clip=1e-3)
    clipped = core.train_chunk(job, [0, 1, 2], CPU).moments["mean"].norm(dim=-1)
    torch.testing.assert_close(clipped, torch.full((3,), 1e-4), rtol=1e-4, atol=0)
    free = core.train_chunk(open_job(tmp_path, steps=1), [0, 1, 2], CPU).moments["mean"].norm(dim=-1)
    assert (free > 2e-4).all()
    assert free[0] != free[1]


def updated(
    job: jobs.TrainingJob, replicas: list[int], update: Any = core._update, lost: int = -1
) -> tuple[jobs.State, torch.Tensor]:
    """The state after three updates with gradients that are drawn for each replica; one has a loss that is not finite
    at the second. And the norms of the last gradients."""
    state = jobs.State.fresh(job, job.initial(replicas))
    rates = torch.tensor([[job.header.lr[r]] for r in replicas])
    losses, norms = torch.zeros(len(replicas)), torch.zeros(0)
    for step in range(3):
        if lost in replicas:
            losses[replicas.index(lost)] = float("nan" if step == 1 else 0)
        draws = [
            torch.randn(1, job.initial([r]).shape[1], generator=torch.Generator().manual_seed(r)) for r in replicas
        ]
        scales = torch.tensor([[r + 1.0] for r in replicas])
        gradients = list(job.unflatten(torch.cat(draws) * scales * (step + 1)).values())
        norms = update(job, state, gradients, losses, rates)
        state.step += 1
    return state, norms


# The norms are between 176 and 1,600: one bound clips some of them, the other all.
UPDATED = [(o, clip) for o in ("adam", "adamw", "sgd", "normalised_sgd") for clip in (0.0, 90.0, 600.0)]


@pytest.mark.parametrize("copied", [0, 2**30])
@pytest.mark.parametrize(("optimizer", "clip"), UPDATED)
def test_an_update_does_not_depend_on_the_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str, clip: float, copied: int
) -> None:
    """Bit for bit, whatever the others' rates, norms and ends; how gradients are laid out moves rounding alone, and so
    does the update that a GPU makes."""
    job = open_job(tmp_path, lr=[0.01, 0.01, 0.03], optimizer=optimizer, clip=clip, weight_decay=0.1)
    monkeypatch.setattr(job.objective, "l2", 0.01)
    monkeypatch.setattr(jobs, "COPIED", copied)
    company, norms = updated(job, [0, 1, 2], lost=1)
    assert company.diverged_at.tolist() == [-1, 1, -1]
    for r in (0, 2):
        alone, norm = updated(job, [r])
        assert torch.equal(alone.flat[0], company.flat[r]) and torch.equal(norm[0], norms[r])
    monkeypatch.setattr(jobs, "COPIED", 2**30)
    masked, _ = updated(job, [0, 1, 2], core._update_masked, lost=1)
    torch.testing.assert_close(masked.flat, company.flat, atol=1e-6, rtol=1e-5)
    assert masked.diverged_at.tolist() == company.diverged_at.tolist()


@pytest.mark.parametrize("log_every", [1, 5])  # stopped at a point of the curves, and between two
@pytest.mark.parametrize("copied", [0, 2**30])
def test_a_run_that_was_stopped_ends_the_same_with_all_that_it_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copied: int, log_every: int
) -> None:
    """Moments, averages of both kinds, weights of named steps, curves, a replica that diverged."""
    monkeypatch.setattr(jobs, "COPIED", copied)
    changes: dict[str, Any] = {"optimizer": "adamw", "clip": 0.1, "weight_decay": 0.1, "lr": [0.003, 1e30, 0.01]}
    kept: dict[str, Any] = {
        "averages": [0.9],
        "scheduled_average": {"start": 2, "before": 0.9, "power": 0.67, "least": 0.001},
        "snapshots": [2, 9],
        "log_every": log_every,
    }
    job = open_job(tmp_path, steps=12, **changes, **kept)
    whole = core.train_chunk(job, [0, 1, 2], CPU)

    def stop(step: int) -> None:
        if step == 7:
            raise KeyboardInterrupt

    path = tmp_path / "partial.safetensors"
    with pytest.raises(KeyboardInterrupt):
        core.train_chunk(job, [0, 1, 2], CPU, path, stop, checkpoint_seconds=0.0)
    steps: list[int] = []
    resumed = core.train_chunk(job, [0, 1, 2], CPU, path, steps.append)
    assert steps == [*range(8, 13)] and whole.diverged_at[1] >= 0
    assert len(whole.averages) == 2 and whole.moments and whole.snapshots
    for name in ("averages", "moments", "snapshots"):
        first, second = getattr(whole, name), getattr(resumed, name)
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key].nan_to_num(), second[key].nan_to_num()) for key in first)
    assert torch.equal(whole.flat.nan_to_num(), resumed.flat.nan_to_num())
    for name, points in whole.curves.items():
        told = torch.stack(points), torch.stack(resumed.curves[name])
        torch.testing.assert_close(*told, rtol=0, atol=0, equal_nan=True)


# --- divergence, memory, death ---------------------------------------------------------------------------


def test_a_replica_that_diverges_is_frozen_and_the_others_go_on(tmp_path: Path) -> None:
    state = core.train_chunk(open_job(tmp_path, lr=[0.003, 1e30, 0.003]), [0, 1, 2], CPU)
    assert state.diverged_at.tolist()[0] == state.diverged_at.tolist()[2] == -1
    assert 0 < state.diverged_at[1] < 10
    assert torch.isfinite(state.flat[[0, 2]]).all()
    calm = core.train_chunk(open_job(tmp_path), [0, 1, 2], CPU)
    torch.testing.assert_close(state.flat[[0, 2]], calm.flat[[0, 2]], atol=1e-6, rtol=0)


def test_the_curves_of_a_replica_end_where_it_diverged(tmp_path: Path) -> None:
    """Its weights stay where they are, and have a finite loss or accuracy as well."""
    job = open_job(tmp_path, lr=[0.003, 1e30, 0.003], log_every=1)
    state = core.train_chunk(job, [0, 1, 2], CPU)
    after = int(state.diverged_at[1])
    for points in state.curves.values():
        told = torch.stack(points)
        assert told[:, [0, 2]].isfinite().all() and told[after:, 1].isnan().all() and told[:after, 1].isfinite().all()


@pytest.mark.usefixtures("forking")
def test_every_replica_diverging_stops_the_run_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(SandglassError, match=r"every replica diverged \(replica 0 at step \d+, 1 at step"):
        trained([write_job(tmp_path, lr=[1e30] * 3)])


def test_out_of_memory_goes_on_with_half_the_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = open_job(tmp_path)
    whole = core.train_chunk(job, [0, 1, 2], CPU).flat
    train_chunk = core.train_chunk

    def small_device(job: Any, replicas: list[int], *rest: Any) -> Any:
        if len(replicas) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory (simulated)")
        return train_chunk(job, replicas, *rest)

    monkeypatch.setattr(core, "train_chunk", small_device)
    job.folder.mkdir()
    core.train_to_file(job, [0, 1, 2], CPU)
    messages = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [m["split"] for m in messages if "split" in m] == [[[0], [1, 2]], [[1], [2]]]
    for r in range(3):
        saved = core.read_state(job.folder / f"{r}.safetensors", job.digest)
        assert saved is not None
        torch.testing.assert_close(saved["flat"][0], whole[r], atol=1e-5, rtol=0)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=20, unique=True))
def test_a_chunk_is_named_by_its_replicas(replicas: list[int]) -> None:
    assert core.chunk_replicas(core.chunk_name(replicas)) == replicas


def test_the_name_of_a_chunk_of_many_replicas_is_short_enough_for_a_file() -> None:
    assert core.chunk_name([0]) == "0" and core.chunk_name(list(range(400))) == "0to399"


def test_what_another_device_left_shows_each_replica_once(tmp_path: Path) -> None:
    """One chunk on a GPU, one for each replica on a CPU, of one job."""
    job = open_job(tmp_path, log_every=5)
    chunks = job.folder
    assert chunks == tmp_path / "chunks"
    assert train._curves_so_far(job).is_empty()
    chunks.mkdir()
    for replicas, name in (([0, 1], "0to1.partial"), ([1], "1"), ([2], "2.partial")):
        core.save(chunks / f"{name}.safetensors", job, core.train_chunk(job, replicas, CPU))
    curves = train._curves_so_far(job)
    assert set(curves["run"]) == {tmp_path.name}  # job files lie in a folder of the member's name
    assert Curves.validate(curves).height == 3 * len(ensemble.logged_steps(job.header))
    assert set(curves["replica"]) == {0, 1, 2}
    (chunks / "2.safetensors").write_bytes((chunks / "2.partial.safetensors").read_bytes())
    core.train_to_file(job, [2], CPU)
    assert not (chunks / "2.partial.safetensors").exists()


def test_a_worker_that_dies_is_one_line_and_the_next_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_job(tmp_path)

    class Doomed(ensemble._Worker):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.process.kill()

    with monkeypatch.context() as patched:
        patched.setattr(ensemble, "_Worker", Doomed)
        with pytest.raises(SandglassError, match=r"ended with status -9 .*run the same command again") as error:
            trained([path])
        assert "\n" not in str(error.value)
    assert trained([path])[0].diverged == {}


@pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux alone")
def test_workers_are_forked_where_jobs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They make the same bytes, end with the one who asked, and die of what kills them."""
    for name in ("alone", "forked", "long"):
        (tmp_path / name).mkdir()
    alone = trained([write_job(tmp_path / "alone")])[0]
    monkeypatch.delenv(preload.FORKED, raising=False)  # set where the tests themselves were forked
    address, process = preload.launch(os.getpid())
    monkeypatch.setenv(preload.VARIABLE, address)
    server = psutil.Process(process.pid)
    worker = None
    try:
        forked = trained([write_job(tmp_path / "forked")])[0]
        assert all((forked.params[name] == value).all() for name, value in alone.params.items())
        job = open_job(tmp_path / "long", steps=10**6)
        job.folder.mkdir()
        heard: queue.Queue[dict[str, Any]] = queue.Queue()
        worker = ensemble._Worker("cpu", [(job, [0])], heard)
        assert heard.get(timeout=60)["replicas"] == [0]
        (training,) = server.children()
        training.kill()
        while "exit" not in (message := heard.get(timeout=60)):
            pass
        assert message["exit"] == -signal.SIGKILL
        worker.end()
        worker = ensemble._Worker("cpu", [(job, [0])], heard)
        assert heard.get(timeout=60)["replicas"] == [0]
        (training,) = server.children()
        worker.end()
        assert not psutil.wait_procs([training], timeout=60)[1]
    finally:
        if worker is not None:
            worker.end()
        process.kill()
        process.wait()


def worker(path: Path) -> subprocess.Popen[bytes]:
    """A real training process that saves at every logged step, beside its job file."""
    (path.parent / "chunks").mkdir(exist_ok=True)
    code = (
        "import functools\nfrom pipeline.training import core\n"
        "core.train_chunk = functools.partial(core.train_chunk, checkpoint_seconds=0.0)\n"
        f"core.main({['cpu', str(path), '0,1,2']!r})"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> list[bytes]:
    """What it printed; its standard input stays open until it has ended."""
    assert process.stdout is not None
    lines = process.stdout.readlines()
    assert process.wait() == 0
    process.communicate()
    return lines


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    both = []
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
        both.append(jobs.TrainingJob(write_job(tmp_path / name, steps=150, log_every=1, averages=[0.9])))
    whole, broken = both
    assert whole.digest == broken.digest
    finish(worker(whole.path))
    process = worker(broken.path)
    partial = broken.folder / "0to2.partial.safetensors"
    digest = broken.digest
    deadline = time.monotonic() + 60
    while (state := core.read_state(partial, digest)) is None or state["step"] < 20:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    resumed_from = core.read_state(partial, digest)
    assert resumed_from is not None
    assert 20 <= resumed_from["step"] < 150
    first = json.loads(finish(worker(broken.path))[0])
    assert first["step"] > resumed_from["step"]
    assert (broken.folder / "0to2.safetensors").read_bytes() == (whole.folder / "0to2.safetensors").read_bytes()
    assert not partial.exists()


def test_a_worker_ends_with_its_parent(tmp_path: Path) -> None:
    process = worker(write_job(tmp_path, steps=100_000))
    assert process.stdout is not None
    process.stdout.readline()
    assert process.stdin is not None
    process.stdin.close()  # what the kernel does when the parent is killed
    assert process.wait(timeout=20) == 1
    process.stdout.close()


@pytest.mark.parametrize("damage", ["cut", "flip", "other job", "other code"])
def test_a_checkpoint_that_cannot_be_trusted_is_not_resumed(tmp_path: Path, damage: str) -> None:
    job = open_job(tmp_path)
    clean = core.train_chunk(job, [0], CPU).flat
    path = tmp_path / "0.partial.safetensors"
    core.save(path, job, core.train_chunk(open_job(tmp_path, steps=5), [0], CPU))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    if damage == "flip":
        whole = bytearray(path.read_bytes())
        whole[-100] ^= 1
        path.write_bytes(whole)
        assert core.read_state(path, job.digest) is None
    if damage == "other code":
        job = open_job(tmp_path, code="of a later edit")
        assert core.read_state(path, job.digest) is None
    if damage == "other job":
        job = open_job(tmp_path, seed=99)
        clean = core.train_chunk(job, [0], CPU).flat
    assert torch.equal(core.train_chunk(job, [0], CPU, path).flat, clean)


@pytest.mark.usefixtures("forking")
def test_averages_of_weights_lie_beside_the_weights(tmp_path: Path) -> None:
    (model,) = trained([write_job(tmp_path, steps=8, averages=[0.9])])
    names = [name for name in model.params if not name.startswith("average")]
    assert set(model.params) == {*names, *(f"average0.9.{name}" for name in names)}
    for name in names:
        assert model.params[f"average0.9.{name}"].shape == model.params[name].shape
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    state = core.train_chunk(job, [1], CPU)
    expected = job.unflatten(state.averages["average0.9"])[names[0]]
    np.testing.assert_allclose(model.params[f"average0.9.{names[0]}"][1], expected[0].numpy(), atol=1e-6)


def test_a_scheduled_average_follows_its_schedule(tmp_path: Path) -> None:
    """Its share changes from step to step; one of a constant decay beside it is as it is alone."""
    schedule = {"start": 2, "before": 0.9, "power": 0.67, "least": 0.001}
    changes: dict[str, Any] = {"steps": 4, "averages": [0.5], "scheduled_average": schedule}
    job = open_job(tmp_path, **changes, snapshots=[0, 1, 2, 3, 4])
    state = core.train_chunk(job, [0, 1], CPU)
    wanted = state.snapshots["step0"]
    for step, share in enumerate([0.9, 0.9, 1 - 3**-0.67, 1 - 4**-0.67]):
        wanted = share * wanted + (1 - share) * state.snapshots[f"step{step + 1}"]
    torch.testing.assert_close(state.averages["average"], wanted, atol=1e-6, rtol=0)
    alone = core.train_chunk(open_job(tmp_path, steps=4, averages=[0.5]), [0, 1], CPU)
    assert torch.equal(state.averages["average0.5"], alone.averages["average0.5"])


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    assert ensemble.pick_device("auto") == "cpu"
    with pytest.raises(SandglassError, match="device: cuda is not available here"):
        ensemble.pick_device("cuda")


def test_the_core_needs_only_torch_numpy_and_safetensors() -> None:
    code = (
        "import sys\nfor name in ('polars', 'pandera', 'pyarrow', 'pydantic', 'dvc', 'snakemake', 'psutil'):\n"
        "    sys.modules[name] = None\n"
        "import pipeline.training.core, pipeline.models.transformer.decoder, pipeline.training.objectives.next_token"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_a_run_reads_its_own_grammar_and_says_what_is_missing() -> None:
    loaded = load_study("dyck")
    entry = loaded.members("runs")["dyck-table1-k3-d8-l3"]
    source = loaded.members("datasets")[entry.dataset]
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    own = frame.filter(lang_k=3, lang_D=8)
    assert data["ids"].shape == (1, own.height, 28) and header.spec["outputs"] == 6 and len(table) == 7
    assert data["ids"][0, :, 1:].tolist() == [row[:-1] for row in own["tokens"].to_list()]
    with pytest.raises(SandglassError, match=r"holds no strings of k=3, D=8: add \{k: 3, depth: 8\} to"):
        runs.prepare(entry, frame.filter(lang_k=2), loaded.seed)


def test_a_run_on_the_split_copy_has_its_input_as_its_target(tmp_path: Path) -> None:
    loaded = load_study("dyck")
    entry = loaded.members("runs")["dyck-copy-l1"]
    source = loaded.members("datasets")[entry.dataset]
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, _ = runs.prepare(entry, frame, loaded.seed)
    strings = [[0, *row] for row in frame["tokens"].to_list()]
    assert data["ids"].tolist() == data["targets"].tolist() == [strings]
    assert set(data["lengths"].ravel()) == {29} and header.spec["outputs"] == 5
    batch = open_job(tmp_path, "dyck-copy-l1").batch([0], 0)
    np.testing.assert_array_equal(
        batch["ids"].reshape(1, -1)[0, batch["select"][0]], batch["targets"][0]
    )  # the start token among them
    assert (batch["targets"] == 0).sum() == entry.batch
    symbols = entry.model_copy(update={"embedding": "pair"})  # reads symbols, and gives tokens
    _, other, _ = runs.prepare(symbols, frame, loaded.seed)
    assert other["targets"].tolist() == [strings] and other["ids"].max() > 4
    for wrong in ({"loss_positions": "closing"}, {"contrastive": 0.3}):
        with pytest.raises(SandglassError, match="dyck-copy is for copying, which has loss_positions 'all'"):
            runs.prepare(entry.model_copy(update=wrong), frame, loaded.seed)


def test_paper_size_builds_and_takes_steps(tmp_path: Path) -> None:
    """The full-size configuration of every run of the first study: data, shapes, one step at the published batch."""
    loaded = load_study("dyck", "paper")
    frames: dict[str, Any] = {}
    stepped = set()
    for run, entry in loaded.members("runs").items():
        small = entry.model_copy(update={"replicas": 2})
        source = loaded.members("datasets")[entry.dataset]
        if entry.dataset not in frames:
            frames[entry.dataset] = datasets.generate(
                source.model_copy(update={"corpora": 2}), entry.dataset, loaded.seed
            )[0]
        header, data, table = runs.prepare(small, frames[entry.dataset], loaded.seed)
        shape = (json.dumps(header.spec), header.objective, json.dumps(header.settings), entry.loss_positions)
        if shape in stepped:  # runs that differ in seeds, data or length of training only
            continue
        stepped.add(shape)
        path = tmp_path / f"{run}.safetensors"
        ensemble.write_job(path, dataclasses.replace(header, steps=2), data, table)
        state = core.train_chunk(jobs.TrainingJob(path), [0, 1], CPU)
        assert (state.diverged_at == -1).all()
        assert torch.isfinite(state.flat).all()


def test_paper_size_is_the_published_one() -> None:
    # Ours: one model each; no number is published of those that copy, and of those with heads.
    published = {"dyck-theory-target": 1, "dyck-heads": 10}
    for run, entry in load_study("dyck", "paper").members("runs").items():
        prefix = 30 if run.startswith("dyck-prefix-minimal") else 4 if "copy" in run else 40
        assert entry.replicas == published.get(run, 10 if entry.attention == "uniform" else prefix)


def test_a_worker_that_ends_at_once_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is the listener's last word, which waits for the reader of its errors."""
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.5)  # until it has done all it can, before the next one starts

    monkeypatch.setattr(threading.Thread, "start", slowly)
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    heard: queue.Queue[dict[str, Any]] = queue.Queue()
    worker = ensemble._Worker("cpu", [], heard)
    assert heard.get(timeout=10) == {"exit": 1, "errors": ""}
    worker.end()


def test_what_a_library_prints_in_a_worker_is_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "worker"
    tool.write_text("#!/bin/sh\necho a word of warning\necho '{\"step\": 1}'\nexit 3\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tool))
    heard: queue.Queue[dict[str, Any]] = queue.Queue()
    worker = ensemble._Worker("cpu", [], heard)
    assert heard.get(timeout=10) == {"step": 1}
    assert heard.get(timeout=10) == {"exit": 3, "errors": "a word of warning\n"}
    worker.end()


def test_the_code_that_trains_is_part_of_a_job() -> None:
    """Of the trainer, its model and its objective: what is half trained by other code is not gone on with."""
    params = parameters.load(ROOT, "smoke")
    names = ("dyck-standard", "dyck-minimal", "dyck-theory-squared")
    found = [runner.find(params, "train", name) for name in names]
    standard, minimal, squared = (runner.context(job, params, Path(), io.StringIO()).trainer for job in found)
    assert standard == minimal != squared  # another model and objective


def test_steps_that_were_made_before_a_run_goes_on_count_as_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk's are known from its own first message, which may come when another's steps are counted already."""
    job = open_job(tmp_path, steps=1000)
    now, shown = [0.0], []

    class Messages(queue.Queue[dict[str, Any]]):
        def get(self, block: bool = True, timeout: float | None = None) -> dict[str, Any]:
            now[0] += 1
            return super().get(block, timeout)

    messages = Messages()
    for replicas, step in (([0], 10), ([0], 30), ([1, 2], 900), ([1, 2], 920)):
        messages.put({"job": str(job.path), "replicas": replicas, "step": step})
    messages.put({"exit": 0, "errors": ""})
    monkeypatch.setattr(ensemble.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(ensemble._Bar, "update", lambda bar, done, speed: shown.append((done, speed)))
    ensemble._follow([job], [(job, [0]), (job, [1, 2])], 1, messages, lambda _: None, lambda _: None)
    assert shown == [(10, 0), (30, 20), (1830, 10), (1870, 20), (1870, 15)]
