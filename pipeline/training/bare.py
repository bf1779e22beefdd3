"""Trains the job files of a folder on a machine that has torch, numpy and safetensors, and nothing of this project.

``python -m pipeline train RUN --export DIR`` leaves this, with what it imports, as ``DIR/trainer.pyz`` beside
``DIR/jobs/<member>/job.safetensors``. ``python trainer.pyz`` there trains all members, goes on where it was stopped,
and leaves their weights beside the job files, and in ``trained.json`` what they were trained on. With ``--at-once 8``
it trains eight members at a time, each in a process of its own: a step of small models leaves most of a GPU idle. With
``--speed`` it measures how much faster all models of a member train together than one after the other, and writes
``speed.json``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from pipeline.training import core, ensemble
from pipeline.training.jobs import TrainingJob

JOBS, RECORD, SPEED = "jobs", "trained.json", "speed.json"
SPEED_STEPS = 50  # timed steps; as many go before them, in which libraries choose their code


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, or measure; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="trainer.pyz", description="Train the jobs of this folder. Stopped, it goes on where it was: run it again."
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(sys.argv[0]).parent, help="where jobs/ lies")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="train N members at a time")
    parser.add_argument("--member", help=argparse.SUPPRESS)  # one alone, in a process that another one started
    parser.add_argument("--speed", action="store_true", help="measure all models at once beside one; train nothing")
    asked = parser.parse_args(arguments)
    paths = sorted((asked.folder / JOBS).glob("*/job.safetensors"))
    if not paths:
        parser.error(f"{asked.folder / JOBS} has no job: say which folder was exported")
    if asked.at_once < 1:
        parser.error("--at-once: at least 1")
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU here")
    device = torch.device("cuda" if asked.device != "cpu" and torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        if asked.member:
            _train_one(asked.folder / JOBS / asked.member / "job.safetensors", asked.member, device)
        elif asked.speed:
            _measure(asked.folder, paths, device)
        else:
            return _train(asked.folder, paths, device, asked.at_once)
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


def machine(device: torch.device) -> dict[str, str]:
    """Return what trains here, as records say it."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {"device": device.type, "processor": name, "torch": torch.__version__, "python": platform.python_version()}


def _train(folder: Path, paths: list[Path], device: torch.device, at_once: int) -> int:
    """Train all members, ``at_once`` at a time; return 1 if one of them failed."""
    file = folder / RECORD
    record: dict[str, Any] = machine(device) | {"seconds": {}}
    with contextlib.suppress(OSError, ValueError, KeyError):
        record["seconds"] = json.loads(file.read_text(encoding="utf-8"))["seconds"]
    failed = []
    noting = threading.Lock()  # members end in threads of their own

    def train(number: int, path: Path) -> None:
        member, started = path.parent.name, time.monotonic()
        if at_once == 1:
            _train_one(path, f"{number} of {len(paths)}, {member}", device)
        elif subprocess.run(
            [sys.executable, sys.argv[0], str(folder), "--device", device.type, "--member", member], check=False
        ).returncode:
            failed.append(member)
        with noting:
            record["seconds"][member] = round(record["seconds"].get(member, 0.0) + time.monotonic() - started, 2)
            whole = file.with_suffix(".tmp")
            whole.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            whole.replace(file)

    pool = ThreadPoolExecutor(at_once)
    try:
        for _ in (map if at_once == 1 else pool.map)(train, range(1, len(paths) + 1), paths):
            pass
    finally:  # Ctrl-C reaches the processes as well, and they end by themselves
        pool.shutdown(cancel_futures=True)
    if failed:
        print(f"not trained to the end: {', '.join(failed)}; run the same command again to go on", file=sys.stderr)
        return 1
    name = folder.resolve().name
    print(f"{len(paths)} of {len(paths)} members are trained; take the folder back: train RUN --import {name}")
    return 0


def _train_one(path: Path, name: str, device: torch.device) -> None:
    job = TrainingJob(path)
    job.folder.mkdir(exist_ok=True)
    with contextlib.redirect_stdout(_Progress(name, job.header.steps)):
        for replicas in ensemble.groups(job, device.type):
            core.train_to_file(job, replicas, device)


def _measure(folder: Path, paths: list[Path], device: torch.device) -> None:
    rows = []
    for path in paths:
        job = TrainingJob(path)
        count = len(job.header.corpus)
        together, alone = (_seconds(job, replicas, device) for replicas in ([*range(count)], [0]))
        rows.append({"member": path.parent.name, "models": count, "together": together, "alone": alone})
        print(
            f"{path.parent.name}: a step of {count} models {together * 1e3:.2f} ms, of one {alone * 1e3:.2f} ms: "
            f"{count * alone / together:.1f} times as fast as one after the other"
        )
    text = json.dumps(machine(device) | {"seconds_per_step": rows}, indent=1) + "\n"
    (folder / SPEED).write_text(text, encoding="utf-8")


def _seconds(job: TrainingJob, replicas: list[int], device: torch.device) -> float:
    """Return the seconds that a step takes."""
    whole = job.header
    job.header = replace(whole, steps=SPEED_STEPS, log_every=SPEED_STEPS, snapshots=[])
    try:
        core.train_chunk(job, replicas, device)
        started = time.perf_counter()
        core.train_chunk(job, replicas, device)  # its last act takes the metrics from the device
        return (time.perf_counter() - started) / SPEED_STEPS
    finally:
        job.header = whole


class _Progress(io.TextIOBase):
    """Takes the trainer's messages, a JSON object a line, and prints where it stands to stderr."""

    def __init__(self, name: str, steps: int) -> None:
        self._name, self._steps = name, steps
        self._started = time.monotonic()
        self._from: int | None = None
        self._left = ""

    def write(self, text: str) -> int:
        """Take part of a message."""
        *whole, self._left = (self._left + text).split("\n")
        for line in filter(None, whole):
            self._tell(json.loads(line))
        return len(text)

    def _tell(self, message: dict[str, Any]) -> None:
        if "split" in message:
            print(f"{self._name}: out of memory; going on with half of the models", file=sys.stderr)
            return
        step, models = message["step"], len(message["replicas"])
        self._from = step if self._from is None else self._from
        elapsed, made = time.monotonic() - self._started, step - self._from
        left = f", {(self._steps - step) * elapsed / made:.0f} s left" if made and step < self._steps else ""
        line = f"{self._name}: {models} models, step {step} of {self._steps}{left}"
        ended = step == self._steps or not sys.stderr.isatty()
        print(f"\r{line:<79}" if sys.stderr.isatty() else line, end="\n" if ended else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
