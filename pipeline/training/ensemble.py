"""Hands the replicas of a run's members to worker processes and gathers what they return.

On a CPU a chunk holds as many replicas as the objective says (``side_by_side``): a step of a small model is bound by
the cost of its operations, which replicas of one shape share. Chunks do not depend on the number of cores, so results
do not either. Where batches have one shape a replica has the bits that it has alone (`pipeline.arithmetic`); where they
are filled up to the longest of the company, it has them to rounding. On a GPU all replicas are one chunk.
Workers share nothing but the job file, so the same file can be carried to another machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import SandglassError
from pipeline.store import checkpoints
from pipeline.training.core import chunk_name
from pipeline.training.jobs import MOMENTS, Header, TrainingJob, decays, snapshot_name

LINE_SECONDS = 10.0

Chunk = tuple[TrainingJob, list[int]]  # replicas of a job that train together


@dataclass(frozen=True)
class Trained:
    """``params`` name -> (R, ...) float32, moving averages and snapshots after the weights; ``curves`` metric ->
    (R, points); ``logged`` (points,) steps; ``diverged`` replica -> 0-based step."""

    params: dict[str, np.ndarray]
    curves: dict[str, np.ndarray]
    logged: np.ndarray
    diverged: dict[int, int]


def pick_device(device: str) -> str:
    """Return the device to train on: for ``auto``, cuda where a driver and a device answer, else cpu.

    Raises SandglassError if cuda is asked for and not there.
    """
    if device == "cpu":
        return "cpu"
    try:
        ctypes.CDLL("libcuda.so.1")  # spares torch's start-up on machines without a driver
        import torch

        available = torch.cuda.is_available()
    except OSError:
        available = False
    if device == "cuda" and not available:
        raise SandglassError("params.yaml: device: cuda is not available here; use 'auto' or 'cpu'")
    return "cuda" if available else "cpu"


def cores() -> int:
    """Return how many cores this step may use: those granted (the engine sets OMP_NUM_THREADS), else all."""
    granted = os.environ.get("OMP_NUM_THREADS", "")
    return int(granted) if granted.isdigit() and int(granted) else len(os.sched_getaffinity(0))


def write_job(path: Path, header: Header, data: dict[str, np.ndarray], table: np.ndarray) -> None:
    """Write a job file (see core.py); the same job gives the same bytes."""
    checkpoints.write(path, data | {"table": table}, asdict(header))


def train(
    job_paths: Sequence[Path], device: str, say: Callable[[str], None], on_progress: Callable[[list[TrainingJob]], None]
) -> list[Trained]:
    """Train every replica of all jobs, as one pool of chunks; return their results in the order of the jobs.

    Training goes on from what an interrupted call left in the folder ``chunks`` beside each job file.
    ``on_progress`` is called now and then, so that the caller can publish curves while it runs.
    Raises SandglassError if a worker dies or every replica of a job diverges.
    """
    jobs = [TrainingJob(path) for path in job_paths]
    chunks: list[Chunk] = []
    for job in jobs:
        job.folder.mkdir(exist_ok=True)
        chunks += [(job, piece) for piece in groups(job, device)]
    workers = 1 if device == "cuda" else min(cores(), len(chunks))
    for job in jobs:
        say(_estimate(job, workers, device))
    pieces = _run_workers(jobs, device, chunks, workers, say, on_progress)
    return [_gather(job, [piece for of, piece in pieces if of is job]) for job in jobs]


def groups(job: TrainingJob, device: str) -> list[list[int]]:
    """Return the replicas that train together: on a GPU all, on a CPU as many as the objective says."""
    replicas = np.arange(len(job.header.corpus))
    parts = 1 if device == "cuda" else -(-len(replicas) // job.objective.side_by_side)
    return [piece.tolist() for piece in np.array_split(replicas, parts)]


def _estimate(job: TrainingJob, workers: int, device: str) -> str:
    weights = sum(int(np.prod(shape)) for shape in job.shapes.values())
    replicas = len(job.header.corpus)
    kept = 1 + len(MOMENTS[job.header.optimizer]) + len(decays(job.header, 0)) + len(job.header.snapshots)
    disk = replicas * weights * 4 * kept / 2**20
    return (
        f"{_name(job)}: {replicas} replicas x {job.header.steps} steps of batch {job.header.batch}, {weights} weights "
        f"each, on {device} with {workers} worker process{'es' if workers > 1 else ''}; checkpoints {disk:.1f} MiB"
    )


def _name(job: TrainingJob) -> str:
    """Return the member that is trained: job files lie in a folder of its name."""
    return job.path.parent.name


def _run_workers(
    jobs: list[TrainingJob],
    device: str,
    chunks: list[Chunk],
    workers: int,
    say: Callable[[str], None],
    on_progress: Callable[[list[TrainingJob]], None],
) -> list[Chunk]:
    """Run the chunks to their ends; return them as they were finished (a chunk may have been split)."""
    messages: queue.Queue[dict[str, Any]] = queue.Queue()
    started: list[_Worker] = []
    try:
        for w in range(workers):
            started.append(_Worker(device, chunks[w::workers], messages))
        return _follow(jobs, chunks, len(started), messages, say, on_progress)
    finally:
        for worker in started:
            worker.end()


class _Worker:
    """A process that trains some chunks; what it prints, and its end, go to ``messages``."""

    def __init__(self, device: str, chunks: list[Chunk], messages: queue.Queue[dict[str, Any]]) -> None:
        words: list[str] = []
        for place, (job, replicas) in enumerate(chunks):
            if place == 0 or chunks[place - 1][0] is not job:
                words.append(str(job.path))
            words.append(",".join(map(str, replicas)))
        # By the command line, so that it finds the libraries loaded where jobs do (`pipeline.engine.preload`).
        command = [sys.executable, "-m", "pipeline", "worker", device, *words]
        single = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"} if device == "cpu" else {}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | single,
            start_new_session=True,  # Ctrl-C reaches the parent, which ends its workers in order
        )
        self._messages = messages
        self._errors = ""
        # In this order: the listener waits for the drain, and a short training ends at once.
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._drain.start()
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        printed = ""  # by a library, for instance: no message
        for line in self.process.stdout:
            try:
                self._messages.put(json.loads(line))
            except ValueError:
                printed += line
        self._drain.join()
        self._messages.put({"exit": self.process.wait(), "errors": printed + self._errors})

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors = self.process.stderr.read()

    def end(self) -> None:
        """Kill the process if it still runs, and close its pipes."""
        self.process.kill()
        self._listener.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def _follow(
    jobs: list[TrainingJob],
    chunks: list[Chunk],
    running: int,
    messages: queue.Queue[dict[str, Any]],
    say: Callable[[str], None],
    on_progress: Callable[[list[TrainingJob]], None],
) -> list[Chunk]:
    pieces = list(chunks)
    by_path = {str(job.path): job for job in jobs}
    at = {(str(job.path), r): 0 for job, replicas in chunks for r in replicas}
    first: dict[tuple[str, int], int] = {}  # where each replica was when it was first heard of: resumed, no speed
    started: float | None = None
    last_line = time.monotonic()
    bar = _Bar(sum(len(job.header.corpus) * job.header.steps for job in jobs))
    while running:
        try:
            message = messages.get(timeout=1.0)
        except queue.Empty:
            message = {}
        if "step" in message:
            now = {(message["job"], r): message["step"] for r in message["replicas"]}
            at |= now
            first = now | first
            started = started or time.monotonic()
        elif "split" in message:
            say(f"out of memory with {len(message['replicas'])} replicas at once; going on with half")
            job = by_path[message["job"]]
            pieces.remove((job, message["replicas"]))
            pieces += [(job, half) for half in message["split"]]
        elif "exit" in message:
            running -= 1
            if message["exit"]:
                last = (message["errors"].strip().splitlines() or ["no message"])[-1]
                raise SandglassError(
                    f"a training process ended with status {message['exit']} ({last}); "
                    "run the same command again to continue from its last checkpoint"
                )
        if started is None:
            continue
        done = sum(at.values())
        elapsed = time.monotonic() - started
        speed = (done - sum(first.values())) / elapsed if elapsed > 0 else 0.0
        bar.update(done, speed)
        if time.monotonic() - last_line > LINE_SECONDS:
            last_line = time.monotonic()
            on_progress(jobs)
            if not bar.shown:
                say(bar.line(done, speed))
    bar.close()
    return pieces


class _Bar:
    """A progress bar on a terminal; elsewhere (logs, engines) the caller prints a line now and then."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.shown = sys.stderr.isatty()

    def line(self, done: int, speed: float) -> str:
        shown = f"{done}/{self.total} replica-steps, {speed:.0f} per second"
        return f"{shown}, {(self.total - done) / speed:.0f} s left" if speed else shown

    def update(self, done: int, speed: float) -> None:
        if self.shown:
            width = shutil.get_terminal_size().columns
            filled = "#" * (20 * done // self.total)
            print(f"\r[{filled:<20}] {self.line(done, speed)}"[:width].ljust(width - 1), end="", file=sys.stderr)

    def close(self) -> None:
        if self.shown:
            print(file=sys.stderr)


def _gather(job: TrainingJob, pieces: list[list[int]]) -> Trained:
    """Put the chunks together in the order of the replicas."""
    kinds = ["flat", *decays(job.header, 0), *map(snapshot_name, job.header.snapshots)]
    flat: dict[int, list[np.ndarray]] = {}
    curves: dict[int, dict[str, np.ndarray]] = {}
    diverged: dict[int, int] = {}
    for replicas in pieces:
        saved, _ = checkpoints.read(job.folder / f"{chunk_name(replicas)}.safetensors")
        for i, r in enumerate(replicas):
            flat[r] = [saved[kind][i] for kind in kinds]
            curves[r] = {metric: saved[f"curves.{metric}"][:, i] for metric in job.metrics}
            if saved["diverged_at"][i] >= 0:
                diverged[r] = int(saved["diverged_at"][i])
    order = sorted(flat)
    if len(diverged) == len(order):
        where = ", ".join(f"{r} at step {step}" for r, step in sorted(diverged.items()))
        raise SandglassError(
            f"{_name(job)}: every replica diverged (replica {where}); lower lr or set clip in its parameters"
        )
    params = {}
    for kind, values in zip(kinds, zip(*(flat[r] for r in order), strict=True), strict=True):
        parts = np.split(np.stack(values), np.cumsum(_sizes(job))[:-1], axis=1)
        prefix = "" if kind == "flat" else f"{kind}."
        for (name, shape), part in zip(job.shapes.items(), parts, strict=True):
            params[prefix + name] = part.reshape(len(order), *shape)
    stacked = {metric: np.stack([curves[r][metric] for r in order]) for metric in job.metrics}
    return Trained(params, stacked, logged_steps(job.header), diverged)


def _sizes(job: TrainingJob) -> list[int]:
    return [int(np.prod(shape)) for shape in job.shapes.values()]


def logged_steps(header: Header) -> np.ndarray:
    """Return the steps after which the curves have a point: every ``log_every`` steps and the last."""
    steps = list(range(header.log_every, header.steps + 1, header.log_every))
    return np.array(steps if steps and steps[-1] == header.steps else [*steps, header.steps])
