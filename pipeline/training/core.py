"""The trainer of all studies: chunks of replicas, each chunk one ensemble with a leading replica axis.

Imports torch, numpy and safetensors only (beside the model and objective it is told to use), so it runs on a bare GPU
machine (`pipeline.training.bare`). As a worker of a step, ``core.py cuda JOB.safetensors 0,1,2 3,4,5`` reads the job
file, trains the chunks one after another and leaves ``chunks/<chunk>.safetensors`` beside it. Several jobs may follow
each other. It ends when its standard input does: whoever started it keeps that open.

A job is a file of `pipeline.store.checkpoints`: the objective's data, the embedding ``table``, and a JSON header
(`Header`). Arrays named ``initial.<parameter>`` take the place of random initial weights, those named
``held.<name>`` are what the objective evaluates on. Data order, initial weights and an objective's draws are
pure functions of (seed, study, stream, replica, step), so a resumed run continues exactly where it was.

Each replica has a learning rate of its own, and its gradient is clipped on its own. A replica whose loss or gradient is
not finite is marked, frozen, and the others go on. Beside the last weights, exponential moving averages of them and the
weights after named steps can be kept.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints
from pipeline.training import optimisers
from pipeline.training.jobs import METRICS, Forward, State, TrainingJob, decays, snapshot_name

CHECKPOINT_SECONDS = 10.0
REPORT_SECONDS = 0.5
# Batches that are made one after the other, before the first of them is trained on. Making one runs much Python on
# little data: straight after a step, whose weights and gradients have displaced that from the processor's caches, it
# took twice as long.
AHEAD = 16


def train_chunk(
    job: TrainingJob,
    replicas: list[int],
    device: torch.device,
    checkpoint: Path | None = None,
    progress: Callable[[int], None] = lambda step: None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> State:
    """Train ``replicas`` side by side to the last step, from ``checkpoint`` if one of this job is there."""
    header = job.header
    state = State.fresh(job, job.initial(replicas).to(device))
    if checkpoint is not None:
        state = _resume(checkpoint, job, state)
    lr_Rx1 = torch.tensor([header.lr[r] for r in replicas], dtype=torch.float32, device=device)[:, None]
    table = torch.from_numpy(job.table).to(device)
    held = {name: torch.from_numpy(array).to(device) for name, array in job.held.items()}
    held["corpus"] = torch.tensor([header.corpus[r] for r in replicas], device=device)
    torch.backends.cuda.matmul.allow_tf32 = header.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = header.precision == "tf32"  # of convolutions; on unless told
    last_saved = time.monotonic()
    for arrays in _batches(job, replicas, state.step):
        batch = {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in arrays.items()}
        batch["step"] = torch.tensor(state.step)
        metrics = _step(job, state, table, batch, lr_Rx1)
        torch._foreach_add_(list(state.sums.values()), [metrics[name] for name in state.sums])
        state.step += 1
        if state.step in header.snapshots:
            state.snapshots[snapshot_name(state.step)] = state.flat.clone()
        if state.step % header.log_every == 0 or state.step == header.steps:
            since = (state.step - 1) % header.log_every + 1  # steps since the last point
            point = {name: total / since for name, total in state.sums.items()}
            if job.objective.evaluated:
                with torch.no_grad():
                    point |= job.objective.evaluate(_forward(job, job.unflatten(state.flat), table), held)
            gone = state.diverged_at >= 0  # what is measured of frozen weights says nothing of training
            for name in job.metrics:
                state.curves[name].append(point[name].masked_fill(gone, math.nan).cpu())
            state.sums = {name: torch.zeros_like(total) for name, total in state.sums.items()}
        if checkpoint is not None and time.monotonic() - last_saved > checkpoint_seconds:
            save(checkpoint, job, state)
            last_saved = time.monotonic()
        progress(state.step)
    return state


def _batches(job: TrainingJob, replicas: list[int], start: int) -> Iterator[dict[str, np.ndarray]]:
    """Yield the batch of each step from ``start`` on, drawn some steps ahead (`AHEAD`)."""
    for first in range(start, job.header.steps, AHEAD):
        steps = range(first, min(first + AHEAD, job.header.steps))
        yield from [job.batch(replicas, step) for step in steps]


def _forward(job: TrainingJob, params: dict[str, Tensor], table: Tensor) -> Forward:
    return functools.partial(job.model.forward, job.spec, params, table)


def _step(job: TrainingJob, state: State, table: Tensor, batch: dict[str, Tensor], lr_Rx1: Tensor) -> dict[str, Tensor]:
    """Take one optimiser step in place; return the metrics per replica."""
    header, leaves = job.header, state.views(job).leaves
    metrics = job.objective.loss(_forward(job, leaves, table), batch)
    loss_R = metrics["loss"]
    # What a loss does not depend on has a gradient of 0.
    gradients = torch.autograd.grad(loss_R, list(leaves.values()), torch.ones_like(loss_R), materialize_grads=True)
    with torch.no_grad():
        if job.objective.l2:
            metrics["regulariser"] = state.flat.square().sum(-1) / 2
            metrics["loss"] = loss_R + job.objective.l2 * metrics["regulariser"]
        update = _update_masked if state.flat.is_cuda else _update
        norm_R = update(job, state, gradients, metrics["loss"], lr_Rx1)
        for name, kept in decays(header, state.step).items():
            state.averages[name].lerp_(state.flat, 1 - kept)
    if header.optimizer in METRICS:
        metrics["gradient_norm"] = norm_R
    if header.optimizer == "normalised_sgd":
        metrics["skipped"] = (norm_R == 0).to(norm_R.dtype)
    return {name: metrics[name].detach() for name in job.averaged}


def _update(job: TrainingJob, state: State, gradients: Sequence[Tensor], loss_R: Tensor, lr_Rx1: Tensor) -> Tensor:
    """Update the replicas whose loss and gradient are finite, of one rate and scale together; return the norms (R,)."""
    header, views = job.header, state.views(job)
    rows = views.pieces(gradients)
    if job.objective.l2:
        rows = [[*torch._foreach_add(row, views.weights[r], alpha=job.objective.l2)] for r, row in enumerate(rows)]
    norm_R = torch.stack(torch._foreach_norm([piece for row in rows for piece in row]))
    if len(rows[0]) > 1:
        norm_R = norm_R.view(len(rows), -1).norm(dim=1)
    factor = optimisers.learning_rate(header, state.step)
    alike: dict[tuple[float, float], list[int]] = {}
    told = zip(state.diverged_at.tolist(), loss_R.tolist(), norm_R.tolist(), lr_Rx1.tolist(), strict=True)
    for r, (diverged_at, loss, norm, (lr,)) in enumerate(told):
        if diverged_at >= 0:
            continue
        if not math.isfinite(loss) or not math.isfinite(norm):
            state.diverged_at[r] = state.step
            continue
        alike.setdefault((lr * factor, optimisers.scale(header, norm)), []).append(r)
    for (rate, scale), members in alike.items():
        weights, moments = views.joined(tuple(members))
        pieces = [piece for r in members for piece in rows[r]]
        optimisers.UPDATES[header.optimizer](header, state.step, rate, scale, weights, pieces, moments)
    return norm_R


def _update_masked(
    job: TrainingJob, state: State, gradients: Sequence[Tensor], loss_R: Tensor, lr_Rx1: Tensor
) -> Tensor:
    """Do as `_update` without a question that a GPU would have to be waited for."""
    header, views = job.header, state.views(job)
    views.pieces(gradients)
    gradient = views.gradient
    assert gradient is not None
    if job.objective.l2:
        gradient.add_(state.flat, alpha=job.objective.l2)
    norm_R = gradient.norm(dim=-1)
    before_R = state.diverged_at < 0
    # Zero times a number is zero unless that is infinite or NaN; `isfinite` takes ten operations for both.
    alive_R = (loss_R * 0 == norm_R * 0) & before_R
    state.diverged_at = state.diverged_at.masked_fill(before_R & ~alive_R, state.step)
    scale_R = optimisers.scales(header, norm_R)
    if scale_R is not None:
        gradient.mul_(scale_R[:, None])
    gradient = torch.where(alive_R[:, None], gradient, torch.zeros_like(gradient))
    optimisers.MASKED[header.optimizer](header, state, gradient, lr_Rx1 * alive_R[:, None])
    return norm_R


def save(path: Path, job: TrainingJob, state: State) -> None:
    """Write a checkpoint of the job."""
    tensors = {"flat": state.flat, "diverged_at": state.diverged_at}
    tensors |= state.moments | state.averages | state.snapshots
    tensors |= {f"curves.{name}": torch.stack(rows) for name, rows in state.curves.items() if rows}
    tensors |= {f"sums.{name}": total for name, total in state.sums.items()}
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    checkpoints.write(path, arrays, {"digest": job.digest, "step": state.step})


def read_state(path: Path, digest: str) -> dict[str, Any] | None:
    """Return tensors by name and ``step`` of a checkpoint of the job ``digest``; None if it is unusable.

    If it is missing, damaged or of another job, training starts again, which is always right.
    """
    try:
        arrays, header = checkpoints.read(path)
    except SandglassError:
        return None
    if header["digest"] != digest:
        return None
    return {name: torch.from_numpy(array) for name, array in arrays.items()} | {"step": header["step"]}


def _resume(path: Path, job: TrainingJob, fresh: State) -> State:
    saved = read_state(path, job.digest)
    if saved is None:
        return fresh
    device = fresh.flat.device
    logged = {m: list(saved[f"curves.{m}"]) if f"curves.{m}" in saved else [] for m in job.metrics}
    moments = {name: saved[name].to(device) for name in fresh.moments}
    averages = {name: saved[name].to(device) for name in fresh.averages}
    names = [snapshot_name(step) for step in job.header.snapshots if step <= saved["step"]]
    snapshots = {name: saved[name].to(device) for name in names}
    flat, diverged_at = saved["flat"].to(device), saved["diverged_at"].to(device)
    sums = {name: saved[f"sums.{name}"].to(device) for name in fresh.sums}
    return State(flat, moments, averages, snapshots, diverged_at, saved["step"], logged, sums)


def chunk_name(replicas: list[int]) -> str:
    """Return the base name of a chunk's files: its replicas, ``0`` or ``0to39``, short for any number.

    >>> chunk_name([0, 1, 2, 5])
    '0to2-5'
    """
    first = [r for i, r in enumerate(replicas) if i == 0 or r != replicas[i - 1] + 1]
    last = [r for i, r in enumerate(replicas) if i == len(replicas) - 1 or r != replicas[i + 1] - 1]
    return "-".join(f"{a}to{b}" if a < b else str(a) for a, b in zip(first, last, strict=True))


def chunk_replicas(name: str) -> list[int]:
    """Return the replicas of the chunk whose base name is ``name``.

    >>> chunk_replicas("0to2-5")
    [0, 1, 2, 5]
    """
    ends = [[int(r) for r in part.split("to")] for part in name.split("-")]
    return [r for end in ends for r in range(end[0], end[-1] + 1)]


def train_to_file(job: TrainingJob, replicas: list[int], device: torch.device) -> None:
    """Train a chunk and leave its final state in ``job.folder``; out of GPU memory, in two halves."""
    folder, tell = job.folder, functools.partial(_tell, job=str(job.path))
    done = folder / f"{chunk_name(replicas)}.safetensors"
    partial = folder / f"{chunk_name(replicas)}.partial.safetensors"
    if (checkpoint := read_state(done, job.digest)) is not None and checkpoint["step"] == job.header.steps:
        tell(replicas=replicas, step=job.header.steps)
        partial.unlink(missing_ok=True)  # killed between the two
        return
    reported = 0.0

    def progress(step: int) -> None:
        nonlocal reported
        if time.monotonic() - reported > REPORT_SECONDS or step == job.header.steps:
            reported = time.monotonic()
            tell(replicas=replicas, step=step)

    try:
        state = train_chunk(job, replicas, device, partial, progress)
    except torch.OutOfMemoryError:
        if len(replicas) == 1:
            raise
        state = None
    if state is None:  # outside the handler, so that the failed attempt's tensors are gone
        torch.cuda.empty_cache()
        partial.unlink(missing_ok=True)  # nothing reads it again: its halves have files of their own
        half = len(replicas) // 2
        tell(replicas=replicas, split=[replicas[:half], replicas[half:]])
        train_to_file(job, replicas[:half], device)
        train_to_file(job, replicas[half:], device)
        return
    save(done, job, state)
    partial.unlink(missing_ok=True)


def _tell(**message: Any) -> None:
    print(json.dumps(message), flush=True)


def _end_with_parent() -> None:
    """Exit when standard input closes: the process that started this one is gone."""

    def wait() -> None:
        while os.read(0, 1):  # not sys.stdin: its lock, held here, would break the interpreter's shutdown
            pass
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main(arguments: list[str]) -> None:
    """Run ``core.py DEVICE JOB CHUNK... JOB CHUNK...`` where a job is a file and a chunk is ``0,1,2``."""
    device, *jobs = arguments
    _end_with_parent()
    if device == "cpu":
        torch.set_num_threads(1)
    job: TrainingJob | None = None
    for word in jobs:
        if word.endswith(".safetensors"):
            job = TrainingJob(Path(word))
            continue
        assert job is not None, "a chunk belongs to the job before it"
        train_to_file(job, [int(r) for r in word.split(",")], torch.device(device))


if __name__ == "__main__":
    main(sys.argv[1:])
