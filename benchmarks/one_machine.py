"""Builds studies to their tables on one large machine that has neither Snakemake nor DVC, in one pool of processes.

For a quarter of an hour of a GPU with many cores: ``python benchmarks/one_machine.py build automata flipflop --out
DIR`` there, in a copy of the work tree, and ``python benchmarks/one_machine.py take DIR automata`` here, in a clone
with the same parameters. Steps are called as both engines call them; members of a run train at the same time, each in
a process of its own, and a process is forked from one that has loaded the libraries. It needs torch, numpy, polars,
pandera, pyarrow, pydantic, scipy, sympy, safetensors, typer, rich, ruamel.yaml and psutil of any version
(``SANDGLASS_ALLOW_VERSIONS=1`` is set; each step records the differences).

``build`` goes on where it was stopped, by ``--seconds`` or a kill. It leaves in DIR the tables and theory with the logs
as an archive, in parts of 15 MB, and the md5s of all outputs; checkpoints and datasets stay behind. ``take`` puts these
into the clone, draws the figures and judges the claims there, and writes dvc.lock from the md5s: then
`python -m pipeline reference` freezes the set. An experiment that was not built is taken out of the clone's
params/<study>/experiments.yaml before.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML

ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2"}  # read when libraries are loaded
SETTINGS = ALONE | {"SANDGLASS_ALLOW_VERSIONS": "1", "SANDGLASS_PRELOAD": "0"}
STEPS = ("dataset", "train", "labels", "theory", "analyse")
DONE, LOGS = Path(".sandglass/one-machine"), Path("logs/one-machine")
MADE, ARCHIVE, PART = "made.json", "results.tar.xz", 15_000_000
THREADS = 3  # of labels and tables, which are computed on the CPU
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
Studies = Annotated[list[str], typer.Argument(help="studies of params.yaml")]


@dataclass
class Task:
    """A job, or a part of a training: its preparation, or one member."""

    name: str
    job: Any
    needs: set[str]
    cost: float  # about as many seconds as it takes; decides what starts first
    member: str | None = None  # of a training; "" for its preparation
    after: list[Task] = field(default_factory=list)


@app.command()
def build(
    studies: Studies,
    out: Annotated[Path, typer.Option(help="where to leave what was made")],
    device: Annotated[str, typer.Option(help="cuda or cpu, for trainings")] = "cuda",
    at_once: Annotated[int, typer.Option(help="processes at a time; 0: one a core")] = 0,
    seconds: Annotated[float, typer.Option(help="stop after so many; 0: at the end")] = 0,
) -> None:
    """Build datasets, trainings, answers, theory and tables of the studies."""
    deadline = time.time() + (seconds or 1e9)
    params, tasks = _tasks(studies)
    done = {name for name in tasks if (DONE / name).is_file()}
    failed = _run(tasks, params, device, at_once or os.cpu_count() or 1, deadline, done)
    _leave(out, params, {task.job for task in tasks.values() if task.member is None and task.name in done})
    print(f"{len(done)} of {len(tasks)} tasks are done" + (f"; failed: {', '.join(sorted(failed))}" if failed else ""))
    raise typer.Exit(0 if len(done) == len(tasks) else 1)


@app.command()
def take(
    folder: Annotated[Path, typer.Argument(help="what `build` left")],
    study: Annotated[str, typer.Argument(help="a study of params.yaml here")],
) -> None:
    """Take the results of a study into this clone, make its figures and claims, and record all in dvc.lock."""
    from pipeline import params as parameters
    from pipeline.engine import graph

    params, record = parameters.load(), json.loads((folder / MADE).read_text(encoding="utf-8"))
    parts = b"".join(part.read_bytes() for part in sorted(folder.glob(f"{ARCHIVE}.*")))
    with tarfile.open(fileobj=io.BytesIO(parts), mode="r:xz") as archive:
        archive.extractall(filter="data")
    own = [job for job in graph.jobs(params) if job.study == study]
    after = [job for job in own if job.step in ("figures", "claims")]
    for job in after:
        subprocess.run([sys.executable, *job.command.split()[1:]], check=True)
    made = {path: tuple(md5) for path, md5 in record["made"].items()}
    made |= {str(path): _md5(path) for job in after for path in graph.outputs(job, params)}
    recorded = [job for job in own if job.name in record["jobs"] or job in after]
    yaml = YAML()
    lock = Path("dvc.lock")
    whole: Any = yaml.load(lock) if lock.is_file() else {"schema": "2.0", "stages": {}}
    stages = YAML(typ="safe").load(Path("dvc.yaml"))["stages"]
    for job in recorded:
        whole["stages"][job.stage] = _recorded(stages[job.stage], made)
    with lock.open("w", encoding="utf-8") as file:
        yaml.dump(whole, file)
    print(f"{len(recorded)} jobs are recorded; now, elsewhere: python -m pipeline reference {study} {Path.cwd()}")


def _recorded(stage: dict[str, Any], made: dict[str, tuple[str, int]]) -> dict[str, Any]:
    """Return what dvc.lock says of a stage of dvc.yaml, and put its outputs that are here into DVC's cache."""
    named: dict[str, list[str]] = {}
    for each in stage.get("params", []):
        for file, keys in ({"params.yaml": [each]} if isinstance(each, str) else each).items():
            named.setdefault(file, []).extend(keys)
    outs = [each for kind in ("outs", "plots", "metrics") for each in stage.get(kind, [])]
    paths = [each if isinstance(each, str) else next(iter(each)) for each in outs]
    return {
        "cmd": stage["cmd"],
        "deps": [_entry(path, made, keep=False) for path in sorted(stage["deps"])],
        "params": {file: {key: _value(_parameters(file), key) for key in keys} for file, keys in named.items()},
        "outs": [_entry(path, made, keep=True) for path in paths],
    }


def _entry(path: str, made: dict[str, tuple[str, int]], *, keep: bool) -> dict[str, Any]:
    """Return the md5 and size of a file or folder as DVC records them; of a folder, those of its list of files."""
    below = sorted(each for each in made if each.startswith(f"{path}/"))
    if not below:
        md5, size = made[path] if path in made else _md5(Path(path))
        if keep and Path(path).is_file():
            _cache(md5, Path(path).read_bytes())
        return {"path": path, "hash": "md5", "md5": md5, "size": size}
    rows = [{"md5": made[each][0], "relpath": each.removeprefix(f"{path}/")} for each in below]
    text = json.dumps(rows, sort_keys=True).encode()
    md5 = hashlib.md5(text).hexdigest() + ".dir"
    if keep and all(Path(each).is_file() for each in below):
        for each in below:
            _cache(made[each][0], Path(each).read_bytes())
        _cache(md5, text)
    sizes = sum(made[each][1] for each in below)
    return {"path": path, "hash": "md5", "md5": md5, "size": sizes, "nfiles": len(below)}


def _cache(md5: str, data: bytes) -> None:
    path = Path(".dvc/cache/files/md5") / md5[:2] / md5[2:]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@functools.cache
def _parameters(file: str) -> Any:
    return YAML(typ="safe").load(Path(file))


def _value(tree: Any, key: str) -> Any:
    return functools.reduce(lambda each, part: each[part], key.split("."), tree)


def _tasks(studies: list[str]) -> tuple[Any, dict[str, Task]]:
    from pipeline import params as parameters
    from pipeline.engine import graph

    params = parameters.load()
    tasks: dict[str, Task] = {}
    for job in graph.jobs(params):
        if job.study not in studies or job.step not in STEPS:
            continue
        needs = {parent.name for parent in graph.parents(job, params)}
        if job.step == "train":
            own = {key: each for key, each in graph.entry(job, params).members.items() if each.replicas}
            first = Task(f"{job.name}.prepared", job, needs, 5, "")
            parts = [Task(f"{job.name}.{key}", job, {first.name}, each.steps / 100, key) for key, each in own.items()]
            tasks |= {task.name: task for task in (first, *parts)}
            needs = {first.name, *(part.name for part in parts)}
        tasks[job.name] = Task(job.name, job, needs, {"labels": 60, "analyse": 60}.get(job.step, 10))
    for task in tasks.values():
        task.needs &= tasks.keys()
        for name in task.needs:
            tasks[name].after.append(task)
    return params, tasks


def _run(
    tasks: dict[str, Task], params: Any, device: str, at_once: int, deadline: float, done: set[str]
) -> dict[str, int]:
    """Run what is not done, the longest way to the end first; return what failed."""
    ways: dict[str, float] = {}
    for task in reversed(list(tasks.values())):  # each comes after what it needs
        ways[task.name] = task.cost + max((ways[each.name] for each in task.after), default=0.0)
    for folder in (DONE, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    _load()
    running: dict[int, Task] = {}
    failed: dict[str, int] = {}
    said = time.time()
    while True:
        busy = {task.name for task in running.values()}
        ready = [task for name, task in tasks.items() if name not in done | busy | failed.keys() and task.needs <= done]
        stopping = time.time() > deadline
        if not running and (stopping or not ready):
            return failed
        for task in sorted(ready, key=lambda each: -ways[each.name])[: 0 if stopping else at_once - len(running)]:
            running[_start(task, params, device)] = task
        for process in running if stopping else ():
            os.kill(process, signal.SIGKILL)
        process, status = os.waitpid(-1, 0 if stopping else os.WNOHANG)
        if not process:
            time.sleep(0.05)
        elif status == 0:
            done.add(running[process].name)
            (DONE / running.pop(process).name).touch()
        else:
            task = running.pop(process)
            if not stopping:
                failed[task.name] = status
                print(f"{task.name} failed: see {LOGS / task.name}.log", file=sys.stderr)
        if time.time() - said > 20:
            said = time.time()
            names = ", ".join(sorted(task.name for task in running.values()))
            print(f"{len(done)} of {len(tasks)} done; running: {names}", file=sys.stderr)


def _load() -> None:
    """Load what tasks need once: they are forked. Nothing is computed, so that no thread is there to be lost."""
    from pipeline.engine import preload

    absent = {"altair", "jinja2", "narwhals.stable.v1"}  # of figures and the report
    for name in (*set(preload.LIBRARIES) - absent, "pipeline.steps.train", "pipeline.training.core"):
        importlib.import_module(name)


def _start(task: Task, params: Any, device: str) -> int:
    process = os.fork()
    if process:
        return process
    status = 0
    try:
        ctypes.CDLL(None).prctl(KILL_WITH_PARENT, signal.SIGKILL)
        with (LOGS / f"{task.name}.log").open("a") as log:
            for number in (1, 2):
                os.dup2(log.fileno(), number)
        _work(task, params, device)
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _work(task: Task, params: Any, device: str) -> None:
    import torch

    from pipeline.engine import preload, runner
    from pipeline.steps import train
    from pipeline.store import paths
    from pipeline.training import core, ensemble, jobs

    preload.keep_large_blocks()
    torch.set_num_threads(THREADS if task.job.step in ("labels", "analyse") else 1)
    work = paths.WORK / task.job.study / task.job.id
    if task.member is None:
        runner.run_step(task.job.step, task.job.id)
    elif task.member:
        job = jobs.TrainingJob(work / task.member / "job.safetensors")
        job.folder.mkdir(exist_ok=True)
        for replicas in ensemble.groups(job, device):
            core.train_to_file(job, replicas, torch.device(device))
    else:
        runner.check_inputs(task.job, params)
        work.mkdir(parents=True, exist_ok=True)
        train.prepared(runner.context(task.job, params, work, io.StringIO()), work)


def _leave(out: Path, params: Any, jobs: Iterable[Any]) -> None:
    """Write what goes back: the md5s of all that is made, and as an archive all but checkpoints and datasets."""
    from pipeline.engine import graph

    out.mkdir(parents=True, exist_ok=True)
    files = {job: graph.outputs(job, params) for job in jobs}
    made = {str(path): _md5(path) for paths_ in files.values() for path in paths_}
    record = {"jobs": sorted(job.name for job in files), "made": made}
    (out / MADE).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=1) as archive:
        for path in sorted(path for made_ in files.values() for path in made_ if graph.is_published(path)):
            archive.add(path)
        archive.add("logs")
    for old in out.glob(f"{ARCHIVE}.*"):
        old.unlink()
    for number, start in enumerate(range(0, packed.tell(), PART)):
        (out / f"{ARCHIVE}.{number:02}").write_bytes(packed.getbuffer()[start : start + PART])


def _md5(path: Path) -> tuple[str, int]:
    data = path.read_bytes()
    return hashlib.md5(data).hexdigest(), len(data)


if __name__ == "__main__":
    os.environ.update(SETTINGS)
    sys.path.insert(0, str(Path.cwd()))
    app()
