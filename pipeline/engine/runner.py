"""Runs one job: validates, locks, hides half-made outputs, logs, and moves results into place.

Everything that both engines rely on and no result depends on happens here, so this module is not a
code input: the step's own module (``pipeline/steps/<step>.py``) and what that imports are.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TextIO

import psutil

from pipeline import params as parameters
from pipeline.engine import graph, preload, stages
from pipeline.engine.imports import PACKAGES, WITHOUT_EFFECT
from pipeline.engine.software import check_software
from pipeline.errors import SandglassError, UnknownNameError, in_words, meant
from pipeline.params import Params

TRAINER = "pipeline/training/core.py"  # what a worker runs
ORPHAN_POLL_SECONDS = 0.5
INTERRUPTED = "interrupted"  # how a step notes that it ended by Ctrl-C


@dataclass
class Job:
    """What a step's ``run(job)`` may see: its own parameters, its place to write, and nothing else."""

    step: str
    id: str
    study: str
    scale: str
    seed: int
    params_hash: str
    entry: Any
    settings: Any  # what the study says for all jobs of this kind; None for steps that read none
    experiments: list[str]  # of figures and claims: the experiments whose tables they read
    inputs: list[Path]  # below data/: files, or folders of them
    params: Params | None  # of the report only
    staging: Path
    log: TextIO
    device: str
    trainer: str = ""  # of training: the md5 of the code that trains, which a half-trained model must share
    notes: dict[str, Any] = field(default_factory=dict)

    def out(self, path: Path) -> Path:
        """Return where to write the output ``path``: in staging, moved into place when the step succeeds."""
        staged = self.staging / path
        staged.parent.mkdir(parents=True, exist_ok=True)
        return staged

    def say(self, text: str) -> None:
        """Print one line to the terminal and write it to the step's log."""
        print(f"{self.step} {self.id}: {text}", file=sys.stderr, flush=True)
        self.log.write(text + "\n")
        self.log.flush()


def run_step(step: str, key: str, root: Path = Path()) -> None:
    """Run ``step`` for ``key`` in the work tree ``root`` (the current directory).

    Raises SandglassError on anything the user can act on; declared outputs are then left untouched.
    """
    by_dvc = "DVC_ROOT" in os.environ
    # Snakemake's start has read all studies. Of its jobs each needs its own, the report needs all.
    params = parameters.load(root, of=None if by_dvc or step == "report" else key)
    if by_dvc:
        stages.check(params, root)  # first: it may ask for a job that is no more
    job = find(params, step, key)
    overridden = check_software(root)
    refuse_links()
    if by_dvc:  # `dvc repro` has no start of its own: its first step prepares the work tree
        from pipeline.engine import lockfile
        from pipeline.engine import snakemake as engines

        lockfile.keep(root)
        engines.prune(root, params)
        if missing := engines.missing_references(root):
            subprocess.run(
                [sys.executable, "-m", "dvc", "pull", "--quiet", *map(str, missing)], check=False
            )  # names what it lacks
    check_inputs(job, params)
    graph.LOGS.mkdir(exist_ok=True)
    with _only_one(job), (graph.LOGS / f"{job.name}.log").open("w", encoding="utf-8") as log, ends_with(_engine()):
        _run(job, params, log, overridden)


def find(params: Params, step: str, key: str) -> graph.Job:
    """Return the job of an id. Raises UnknownNameError with what may be meant."""
    known = [job for job in graph.jobs(params) if job.step == step]
    for job in known:
        if job.id == key:
            return job
    hint = meant(key, [job.id for job in known], "python -m pipeline list --all")
    raise UnknownNameError(f"{step} {key}: no such id in the parameters; {hint}")


def refuse_links() -> None:
    """Raise SandglassError if results would lie behind a link: DVC refuses to record them, once they are made."""
    for folder in (graph.DATA, *sorted(graph.DATA.glob("*")), *sorted(graph.DATA.glob("*/*"))):
        if folder.is_symlink():
            raise SandglassError(
                f"{folder} is a link, and DVC records nothing that lies outside of the clone: mount the other disk "
                f"there (mount --bind {folder.resolve()} {folder}), or have the whole clone on it"
            )


def check_inputs(job: graph.Job, params: Params) -> None:
    """Raise SandglassError if a file that ``job`` reads is missing: a step that lists a folder would go on.

    The report is not checked: its step says itself what is missing.
    """
    for path in graph.data(job, params) if job.step != "report" else []:
        if not path.is_file():
            raise SandglassError(f"{job.step} {job.id}: {path} is missing; make it with: snakemake {path}")


def _run(job: graph.Job, params: Params, log: TextIO, overridden: list[str]) -> None:
    before = set(sys.modules)
    module = importlib.import_module(f"pipeline.steps.{job.step}")
    for name, value in preload.KEEP_MEMORY.items():
        os.environ.setdefault(name, value)
    started = time.time()
    with _staging(job) as staging:
        seen = context(job, params, staging, log)
        seen.notes |= {"scale": params.scale, "params_hash": seen.params_hash}
        seen.notes["software_overridden"] = overridden
        try:
            module.run(seen)
            _check_imports(job, params, set(sys.modules) - before)
            _publish(job, params, staging)
        except BaseException as error:
            log.write(traceback.format_exc())
            interrupted = isinstance(error, KeyboardInterrupt)
            _record(seen, started, INTERRUPTED if interrupted else f"failed: {_reason(error)}")
            if isinstance(error, (SandglassError, KeyboardInterrupt)):
                raise
            where = f"{graph.LOGS}/{job.name}.log"
            raise SandglassError(f"{job.step} {job.id} failed: {_reason(error)} (details: {where})") from None
        seen.say(f"done in {time.time() - started:.1f} s")
        _record(seen, started, "done")


def _check_imports(job: graph.Job, params: Params, names: set[str]) -> None:
    """Raise SandglassError if a step imported code that is none of its inputs: an edit of it would make nothing stale.

    That is found in the source (`pipeline.engine.imports`), before anything runs; here it is held against what did.
    """
    known = set(map(str, graph.code(job, params)))
    own = (sys.modules[name] for name in sorted(names) if name.split(".")[0] in PACKAGES)
    for path in (os.path.relpath(file) for module in own if (file := module.__file__)):
        if path not in known and not path.startswith(WITHOUT_EFFECT) and not path.endswith("__init__.py"):
            raise SandglassError(
                f"{job.step} {job.id} imported {path}, which dvc.yaml does not name among what it depends on; import "
                "it where its source says so"
            )


def context(job: graph.Job, params: Params, staging: Path, log: TextIO) -> Job:
    """Return what the step may see: a step that read more than its job tracks could go stale unseen."""
    reads_settings = job.step in ("analyse", "figures", "claims")
    return Job(
        step=job.step,
        id=job.id,
        study=job.study,
        scale=params.scale,
        seed=params.seed,
        params_hash=job.params_hash(params),
        entry=graph.entry(job, params),
        settings=graph.settings(job, params) if reads_settings else None,
        experiments=graph.experiments(job, params) if job.step in ("figures", "claims") else [],
        inputs=graph.inputs(job, params),
        params=_without_device(params) if job.step == "report" else None,
        staging=staging,
        log=log,
        device=params.device,
        trainer=_trainer(job, params) if job.step == "train" else "",
    )


def _trainer(job: graph.Job, params: Params) -> str:
    """Return the md5 of the modules that a worker imports to train a job, by their names."""
    found = graph.of(params).sources.closure([TRAINER], lambda pattern: graph.stands_for(pattern, job, params))
    code = b"\0".join(part for file in found for part in (file.encode(), Path(file).read_bytes()))
    return hashlib.md5(code).hexdigest()


def _without_device(params: Params) -> Params:
    """Return the parameters without the device: all that may decide a result.

    The report does not track all of them, but the files that it reads name the others by a hash.
    """
    main = {key: value for key, value in params.raw[parameters.FILE].items() if key != "device"}
    return replace(params, raw=params.raw | {parameters.FILE: main}, device="", memo={})


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError):
        text = " ".join(in_words(error).split())
    return text if isinstance(error, SandglassError) else f"{type(error).__name__}: {text}".rstrip(": ")


def _record(context: Job, started: float, status: str) -> None:
    """Write times, host and device to logs/steps/, outside every hashed artifact."""
    folder = graph.LOGS / "steps"
    folder.mkdir(parents=True, exist_ok=True)
    record = {"step": context.step, "id": context.id, "status": status} | context.notes
    # Of a core, by this process and those it waited for: on a busy machine much less than the time that passed.
    record["cpu_seconds"] = round(sum(os.times()[:4]), 2)
    record |= {"seconds": round(time.time() - started, 2), "finished": time.time()}
    record |= {"host": platform.node(), "python": platform.python_version()}
    (folder / f"{context.step}-{context.id}.json").write_text(json.dumps(record, indent=1))


@contextmanager
def _staging(job: graph.Job) -> Iterator[Path]:
    parent = graph.DATA / ".tmp"
    for left in parent.glob(f"{job.name}.{platform.node()}.*"):  # by a killed process: the job's lock is ours
        shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{job.name}.{platform.node()}.{os.getpid()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(job: graph.Job, params: Params, staging: Path) -> None:
    """Move the staged files into place, each by one rename, after checking that none is missing."""
    expected = graph.outputs(job, params)
    missing = [str(path) for path in expected if not (staging / path).is_file()]
    if missing:
        raise SandglassError(f"{job.step} {job.id} did not make {', '.join(missing)}")
    staged = [path.relative_to(staging) for path in sorted(staging.rglob("*")) if path.is_file()]
    surplus = set(staged) - set(expected)
    if surplus and job.step != "report":
        raise SandglassError(f"{job.step} {job.id} made undeclared files: {', '.join(map(str, sorted(surplus)))}")
    if job.step == "report":
        shutil.rmtree(graph.DATA / "report", ignore_errors=True)
    for path in staged:
        path.parent.mkdir(parents=True, exist_ok=True)
        _move(staging / path, path)


def _move(staged: Path, path: Path) -> None:
    """Give a staged file the name ``path`` by one rename, on whatever disk that lies.

    Where data/runs, say, is another disk or a link to one, a copy under a temporary name beside ``path`` is renamed.
    What a kill leaves of it the next start of an engine removes, as all that no job makes.
    """
    try:
        staged.replace(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            shutil.copyfile(staged, beside)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def _only_one(job: graph.Job) -> Iterator[None]:
    """Hold the job's own lock: an orphan of a killed engine must not write beside its successor."""
    folder = graph.STATE / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{job.name}.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            print(f"{job.step} {job.id}: waiting for process {holder}, which is at this step", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _engine() -> psutil.Process | None:
    """Return the engine that started this process; None if it was started by hand."""
    return next((p for p in psutil.Process().parents() if {"snakemake", "dvc"} & set(_words(p))), None)


@contextmanager
def ends_with(engine: psutil.Process | None) -> Iterator[None]:
    """Interrupt what is done within when ``engine`` is gone (killed, not merely busy); what comes later is left alone.

    An interrupt that reaches Python while it ends would be a traceback behind a job that is done.
    """
    done = threading.Event()

    def watch(engine: psutil.Process) -> None:
        while not done.wait(ORPHAN_POLL_SECONDS):
            if _is_gone(engine):
                os.kill(os.getpid(), signal.SIGINT)
                return

    if engine is None:
        yield
        return
    watcher = threading.Thread(target=watch, args=[engine], daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it went between the two questions
        return True


def _words(process: psutil.Process) -> list[str]:
    try:
        return [Path(word).name for word in process.cmdline()[:4]]
    except psutil.Error:
        return []
