"""One round of `kill.py`: an engine is killed, an engine continues, and what is then there is compared.

Identical means: every artifact has the bytes of a build that was left alone, dvc.lock says the same, DVC's
cache holds what it names, neither engine has anything to do, and nothing half-made and no process is left.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from workspace import Done, Workspace, cache_complaints, environment, lay_out, lock_of, outliving

from pipeline.params import SECTIONS
from pipeline.params.sharing import SHARED, names

COMMANDS = {"snakemake": ("snakemake", "--cores", "2"), "dvc": ("dvc", "repro")}
STARTS = {"empty": "nothing is built", "changed": "all is built, with another learning rate of one run"}
# What DVC says of its own files, which it writes in place, when it was killed in that instant.
CUT = ("dvc.lock' validation failed", "RWLock-file", "structure is corrupted")

DATASETS = ["dyck-train-complete", "dyck-evaluation"]
RUNS = ["dyck-standard", "dyck-minimal"]
CHECKS = ["dyck-random-attention"]
EXPERIMENT = "dyck-attention"


# --- the study -------------------------------------------------------------------------------------------


def lay_out_reduced(path: Path) -> Workspace:
    """Lay out the Dyck study with one training set and two runs, whose models train for seconds.

    Training saves its state twice a second instead of every ten, so that a kill meets some of it.
    """
    tree = lay_out(path, ["dyck"])
    core = path / "pipeline/training/core.py"
    text = core.read_text(encoding="utf-8")
    assert "CHECKPOINT_SECONDS = 10.0\n" in text
    core.write_text(text.replace("CHECKPOINT_SECONDS = 10.0\n", "CHECKPOINT_SECONDS = 0.5\n"))
    reduce(tree)

    def train_for_seconds(params: dict[str, Any]) -> None:
        for key in RUNS:
            params["runs"][key] |= {"replicas": 2, "steps": 400, "log_every": 10}

    tree.change_study(train_for_seconds, "dyck")
    # DVC reads the graph, and derives none.
    done = tree.run(sys.executable, "-m", "pipeline", "params", "--write")
    assert done.status == 0, done.output
    return tree


CLAIMS = '''"""The claims of what is left of the study."""

from pipeline.kit import evidence, verdicts
from pipeline.kit.conditions import above
from pipeline.studies.dyck.comparisons import DECLARED


def judge(context):
    gates = [
        evidence.gate(context, "1", each.key, each, above(0), "here")
        for each in DECLARED
        if each.experiment in context.experiments
    ]
    said = {"1": "It is above 0."}
    return verdicts.table(gates, said, context.study, context.scale, context.params_hash)
'''


def reduce(tree: Workspace) -> None:
    """Leave of the Dyck study what `DATASETS`, `RUNS` and `CHECKS` name, and one experiment with one figure."""
    # The words of its page speak of all that was there; a study without words of its own has a plain page.
    for name in ("report.md.j2", "index.yaml"):
        (tree.path / "pipeline/studies/dyck" / name).unlink(missing_ok=True)
    # The code names every run of the study; here its claims say of most that they were not tested.
    tree.edit("pipeline/studies/dyck/names.py", "RUNS = DATASETS = THEORY = ()\n")

    # So do its claims of theory, of which most is gone: what is left is judged by one gate for each comparison.
    tree.edit("pipeline/studies/dyck/claims/__init__.py", CLAIMS)

    def fewer(params: dict[str, Any]) -> None:
        for section, kept in (("datasets", DATASETS), ("runs", RUNS), ("theory", CHECKS)):
            params[section] = {name: params[section][name] for name in (*kept, SHARED) if name in params[section]}
        # Claims read the tables of all experiments: those of the others have no rows.
        shared = params["experiments"].pop(SHARED)
        tables = dict.fromkeys(table for entry in params["experiments"].values() for table in entry["tables"])
        params["experiments"] = {EXPERIMENT: params["experiments"][EXPERIMENT], SHARED: shared}
        own = {"theory": CHECKS, "tables": list(tables), "figures": ["variation"]}
        params["experiments"][EXPERIMENT] |= own
        for section in (params[section] for section in SECTIONS):
            shared = section.pop(SHARED, {})
            used = names(section, shared)
            section |= {SHARED: {name: shared[name] for name in used}} if used else {}

    tree.change_study(fewer, "dyck")


def other_rate(params: dict[str, Any]) -> None:
    """Edit ``params/dyck/`` so that one run, and all that is made from it, is another."""
    params["runs"][SHARED]["minimal"]["lr"] /= 2


# --- one round -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """A round: what lies there, which engine is killed and when, and which one continues."""

    number: int
    start: str
    engine: str
    then: str
    moments: tuple[float, ...]  # shares of the time that an uninterrupted run takes

    @property
    def engines(self) -> tuple[str, ...]:
        """The engine of each kill."""
        return (self.engine, *(self.then for _ in self.moments[1:]))


def plans(rounds: int, seed: int) -> Iterator[Plan]:
    """Yield a plan for each round.

    Engines take turns, starts too; every third round the other engine continues, every fifth has two kills.
    """
    draw = random.Random(seed).random
    engines, starts = list(COMMANDS), list(STARTS)
    for number in range(rounds):
        engine, start = engines[number % 2], starts[number // 2 % 2]
        then = engines[1 - number % 2] if number % 3 == 2 else engine
        yield Plan(number + 1, start, engine, then, tuple(draw() for _ in range(1 + (number % 5 == 4))))


@dataclass
class Kill:
    """One SIGKILL: after how long, what was at work, and whether half-trained models lay there."""

    seconds: float
    at: str
    resumable: bool


@dataclass
class Round:
    """What came of a plan; without complaints, everything is as if nothing had happened."""

    plan: Plan
    kills: list[Kill] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    mended: bool = False  # DVC refused its own half-written file, until one `snakemake -n`

    @property
    def identical(self) -> bool:
        return not self.complaints


class Bench:
    """Work trees to start from, the build to compare with, and how long builds take."""

    def __init__(self, folder: Path, reference: Workspace, starts: dict[str, Path]) -> None:
        """Take ``starts``, which has for each name a work tree that rounds copy."""
        self.folder, self.reference, self.starts = folder, reference, starts
        self.artifacts, self.lock = reference.artifacts(), lock_of(reference)
        self.durations: dict[tuple[str, str], float] = {}

    def run(self, plan: Plan) -> Round:
        """Carry out a plan and return its round; the work tree stays in ``folder`` if something is wrong."""
        while True:
            trial, tree = Round(plan), self._copy(plan.start, f"round-{plan.number}")
            for index, (engine, moment) in enumerate(zip(plan.engines, plan.moments, strict=True)):
                whole = self.duration(plan.start, engine)
                remaining = whole if index == 0 else max(whole - trial.kills[0].seconds, 1.0)
                kill = interrupt(tree, engine, moment * remaining)
                if isinstance(kill, float):  # it was done already
                    if index == 0:
                        self.durations[plan.start, engine] = kill
                    break
                trial.kills.append(kill)
                trial.complaints += outliving(tree.path)
            if trial.kills:
                break
        trial.mended = self._finish(tree, plan.then, trial.complaints)
        if trial.identical:
            trial.complaints += self.compare(tree)
        return trial

    def duration(self, start: str, engine: str) -> float:
        """Return the seconds of a run that is left alone.

        When first asked for, the run is made, and must equal the reference.
        """
        if (start, engine) not in self.durations:
            tree, complaints = self._copy(start, f"whole-{start}-{engine}"), list[str]()
            began = time.monotonic()
            self._finish(tree, engine, complaints)
            self.durations[start, engine] = time.monotonic() - began
            if complaints := complaints or self.compare(tree):
                raise SystemExit(f"without any kill: {'; '.join(complaints)} (kept: {tree.path})")
            shutil.rmtree(tree.path)
        return self.durations[start, engine]

    def compare(self, tree: Workspace) -> list[str]:
        """Return what distinguishes ``tree`` from the reference; nothing, if all is well."""
        files = tree.artifacts()
        complaints = [f"data/{name} is missing" for name in sorted(self.artifacts.keys() - files.keys())]
        complaints += [f"data/{name} is left over" for name in sorted(files.keys() - self.artifacts.keys())]
        shared = sorted(files.keys() & self.artifacts.keys())
        complaints += [f"data/{name} differs" for name in shared if files[name] != self.artifacts[name]]
        left = [*(tree.path / "data/.tmp").glob("*"), *(tree.path / ".work").glob("*/*")]
        complaints += [f"{path.relative_to(tree.path)} is left over" for path in left]
        if lock_of(tree) != self.lock:
            complaints.append("dvc.lock differs")
        complaints += cache_complaints(tree)
        if changed := tree.status():
            complaints.append(f"dvc status names {', '.join(changed)}")
        if planned := tree.planned():
            complaints.append(f"snakemake would run {', '.join(sorted(planned))}")
        return complaints

    def _copy(self, start: str, name: str) -> Workspace:
        path = self.folder / name / "tree"
        shutil.rmtree(path.parent, ignore_errors=True)
        return Workspace(Path(shutil.copytree(self.starts[start], path, symlinks=True)))

    def _finish(self, tree: Workspace, engine: str, complaints: list[str]) -> bool:
        """Build to the end; return whether DVC could start only once ``snakemake -n`` had mended its files."""
        done, mended = self._whole(tree, engine), False
        if done.status and engine == "dvc" and any(sign in done.output for sign in CUT):
            mended = tree.snakemake("-n").status == 0
            done = self._whole(tree, engine)
        if done.status:
            complaints.append(f"{engine} ended with status {done.status}: {done.last_line}")
        return mended

    def _whole(self, tree: Workspace, engine: str) -> Done:
        done = tree.run(*COMMANDS[engine])
        with (tree.path.parent / "continued.log").open("a", encoding="utf-8") as log:
            log.write(done.output)
        return done


def interrupt(tree: Workspace, engine: str, seconds: float) -> Kill | float:
    """Start ``engine`` and kill its process group after ``seconds``.

    Return the kill or, if the engine ended before that, after how many seconds it did.
    """
    began = time.monotonic()
    since = time.time()
    log = tree.path.parent / "killed.log"
    with log.open("a") as out:
        process = subprocess.Popen(
            COMMANDS[engine], cwd=tree.path, env=environment(), start_new_session=True, stdout=out, stderr=out
        )
    try:
        process.wait(timeout=seconds)
        return time.monotonic() - began
    except subprocess.TimeoutExpired:
        at = _at_work(process.pid) or _phase(tree.path, since)
        os.killpg(process.pid, signal.SIGKILL)
        after = time.monotonic() - began
    finally:  # Ctrl-C as well
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    states = (tree.path / ".work").glob("*/*/*/chunks/*.safetensors")
    return Kill(after, at, any(not path.name.startswith(".") for path in states))


def _at_work(pid: int) -> str:
    """Return the steps that run below the process, such as ``train`` or ``dataset, theory``."""
    steps = set()
    for process in psutil.Process(pid).children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if words[1:3] == ["-m", "pipeline"]:
            steps.add(words[3])
    return ", ".join(sorted(steps))


def _phase(tree: Path, since: float) -> str:
    """Return what the engine does while no step is at work."""
    done = [file for file in (tree / "logs/steps").glob("*.json") if file.stat().st_mtime > since]
    if not done:
        return "start of the engine"
    return "end of the engine" if tree / "logs/steps/report-all.json" in done else "between steps"
