"""What a kill costs: ``make kill``.

Each round starts an engine on a reduced study in a work tree of its own, sends SIGKILL to its whole process
group at a random moment, starts an engine again with nothing repaired in between, and compares what is then
there with a build that was left alone: every artifact byte for byte, dvc.lock, DVC's cache, both engines'
view of it, and that nothing half-made is left. benchmarks/KILL.md holds the last complete result.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import psutil
import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "engines")]

from workspace import Workspace, environment, lay_out  # noqa: E402

RESULTS = Path(__file__).with_name("KILL.md")
COMMANDS = {"snakemake": ("snakemake", "--cores", "2"), "dvc": ("dvc", "repro")}
STARTS = {"empty": "nothing is built", "changed": "all is built, with another learning rate of one run"}
# What DVC says of its own files, which it writes in place, when it was killed in that instant.
CUT = ("dvc.lock' validation failed", "RWLock-file", "structure is corrupted")
GONE_SECONDS = 10.0
LIMIT_SECONDS = 900.0

DATASETS, RUNS, CHECKS = (
    ["dyck-train-complete", "dyck-probe16"],
    ["dyck-standard", "dyck-minimal"],
    ["dyck-random-attention"],
)


# --- the study -------------------------------------------------------------------------------------------


def lay_out_reduced(path: Path) -> Workspace:
    """The Dyck study with one training set and two runs, of four replicas that train for seconds.

    Training saves its state twice a second instead of every ten, so that a kill meets some of it.
    """
    tree = lay_out(path, toy=False)
    core = path / "pipeline/training/core.py"
    text = core.read_text(encoding="utf-8")
    assert "CHECKPOINT_SECONDS = 10.0\n" in text
    core.write_text(text.replace("CHECKPOINT_SECONDS = 10.0\n", "CHECKPOINT_SECONDS = 0.5\n"))
    tree.change(_reduce)
    return tree


def _reduce(params: dict[str, Any]) -> None:
    params["scale"], params["device"] = "smoke", "cpu"
    for section, names in (("datasets", DATASETS), ("runs", RUNS), ("theory", CHECKS)):
        params[section] = {name: params[section][name] for name in names}
    study = params["studies"]["dyck"]
    study |= {"datasets": DATASETS, "runs": RUNS, "theory": CHECKS, "figures": ["variation"]}
    for run in params["runs"].values():
        run |= {"replicas": 4, "steps": 250, "log_every": 10}


def _other_rate(params: dict[str, Any]) -> None:
    params["runs"]["dyck-minimal"]["lr"] /= 2


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
    """Engines take turns, starts too; every third round the other engine continues, every fifth has two kills."""
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
        """``starts``: for each name a work tree that rounds copy."""
        self.folder, self.reference, self.starts = folder, reference, starts
        self.artifacts, self.lock = reference.artifacts(), _lock(reference)
        self.durations: dict[tuple[str, str], float] = {}

    def run(self, plan: Plan) -> Round:
        """Carry out a plan; its work tree stays in ``folder`` if something is wrong."""
        while True:
            found, tree = Round(plan), self._copy(plan.start, f"round-{plan.number}")
            for index, (engine, moment) in enumerate(zip(plan.engines, plan.moments, strict=True)):
                whole = self.duration(plan.start, engine)
                remaining = whole if index == 0 else max(whole - found.kills[0].seconds, 1.0)
                kill = interrupt(tree, engine, moment * remaining)
                if isinstance(kill, float):  # it was done already
                    if index == 0:
                        self.durations[plan.start, engine] = kill
                    break
                found.kills.append(kill)
                found.complaints += _outliving(tree.path)
            if found.kills:
                break
        found.mended = self._finish(tree, plan.then, found.complaints)
        if found.identical:
            found.complaints += self.compare(tree)
        return found

    def duration(self, start: str, engine: str) -> float:
        """Seconds of a run that is left alone; the first time it is made, and must equal the reference."""
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
        """What distinguishes ``tree`` from the reference; nothing, if all is well."""
        found = tree.artifacts()
        complaints = [f"data/{name} is missing" for name in sorted(self.artifacts.keys() - found.keys())]
        complaints += [f"data/{name} is left over" for name in sorted(found.keys() - self.artifacts.keys())]
        shared = sorted(found.keys() & self.artifacts.keys())
        complaints += [f"data/{name} differs" for name in shared if found[name] != self.artifacts[name]]
        left = [*(tree.path / "data/.tmp").glob("*"), *(tree.path / ".work").glob("*/*")]
        complaints += [f"{path.relative_to(tree.path)} is left over" for path in left]
        if _lock(tree) != self.lock:
            complaints.append("dvc.lock differs")
        complaints += _cache_complaints(tree)
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
        """Build to the end; True if DVC could only start after ``snakemake -n`` had mended its files."""
        done, mended = tree.run(*COMMANDS[engine]), False
        if done.status and engine == "dvc" and any(sign in done.output for sign in CUT):
            mended = tree.snakemake("-n").status == 0
            done = tree.run(*COMMANDS[engine])
        if done.status:
            complaints.append(f"{engine} ended with status {done.status}: {done.last_line}")
        return mended


def interrupt(tree: Workspace, engine: str, seconds: float) -> Kill | float:
    """Start ``engine``, kill its process group after ``seconds``; if it ended before that, after how long."""
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
    states = (tree.path / ".work").glob("*/*/chunks/*.safetensors")
    return Kill(after, at, any(not path.name.startswith(".") for path in states))


def _at_work(pid: int) -> str:
    """The steps below the process, such as ``train`` or ``dataset, theory``."""
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
    """What the engine does while no step is at work."""
    done = [file for file in (tree / "logs/steps").glob("*.json") if file.stat().st_mtime > since]
    if not done:
        return "start of the engine"
    return "end of the engine" if tree / "logs/steps/report-all.json" in done else "between steps"


def _outliving(tree: Path) -> list[str]:
    """Wait until no process has its working directory in ``tree``; those that stay are a complaint."""
    deadline = time.monotonic() + GONE_SECONDS
    while alive := [p for p in psutil.process_iter(["cwd"]) if p.info["cwd"] == str(tree)]:
        if time.monotonic() > deadline:
            return [f"process {process.pid} outlived the kill" for process in alive]
        time.sleep(0.05)
    return []


def _lock(tree: Workspace) -> Any:
    return YAML(typ="safe").load((tree.path / "dvc.lock").read_text(encoding="utf-8"))


def _cache_complaints(tree: Workspace) -> list[str]:
    """What dvc.lock names as output and DVC's cache does not hold, or holds otherwise."""
    cache, complaints = tree.path / ".dvc/cache/files/md5", []
    outputs = [out for stage in _lock(tree)["stages"].values() for out in stage["outs"]]
    wanted = {out["md5"]: out["path"] for out in outputs}
    for md5, path in list(wanted.items()):
        if md5.endswith(".dir"):
            entries = json.loads((cache / md5[:2] / md5[2:]).read_text(encoding="utf-8"))
            wanted |= {entry["md5"]: f"{path}/{entry['relpath']}" for entry in entries}
    for md5, path in wanted.items():
        file = cache / md5[:2] / md5[2:]
        if not file.is_file() or hashlib.md5(file.read_bytes()).hexdigest() != md5.removesuffix(".dir"):
            complaints.append(f"DVC's cache has lost {path}")
    return complaints


# --- all rounds ------------------------------------------------------------------------------------------


def prepare(folder: Path) -> Bench:
    """Lay out the study, build it once uninterrupted, and once with another learning rate."""
    empty = lay_out_reduced(folder / "empty")
    reference = Workspace(Path(shutil.copytree(empty.path, folder / "reference", symlinks=True)))
    began = time.monotonic()
    reference.engine("snakemake")
    seconds = time.monotonic() - began
    changed = Workspace(Path(shutil.copytree(empty.path, folder / "changed", symlinks=True)))
    changed.change(_other_rate)
    changed.engine("dvc")
    shutil.copy2(empty.path / "params.yaml", changed.path / "params.yaml")
    bench = Bench(folder, reference, {"empty": empty.path, "changed": changed.path})
    bench.durations["empty", "snakemake"] = seconds
    return bench


def summary(rounds: list[Round]) -> str:
    """One line of counts."""
    kills = [kill for found in rounds for kill in found.kills]
    mended = sum(found.mended for found in rounds)
    text = f"{len(rounds)} rounds, {sum(found.identical for found in rounds)} identical"
    text += f" ({len(kills)} kills, {sum(kill.resumable for kill in kills)} with half-trained models"
    return text + (f"; in {mended} DVC needed one `snakemake -n` to read its own files)" if mended else ")")


def render(rounds: list[Round], seed: int) -> str:
    """The result as Markdown: counts by what was at work and by engine, then every round."""
    places: Counter[str] = Counter()
    for found in rounds:
        places.update(place for kill in found.kills for place in kill.at.split(", "))
    lines = [
        "# Kills\n", "`make kill` writes this file.\n",
        f"**{summary(rounds)}**, seed {seed}, on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, torch {torch.__version__}.\n",
        "A round: an engine at work on a reduced Dyck study (one training set, two runs of four replicas), SIGKILL "
        "to its process group at a moment uniform over the time of a whole run, then an engine to the end, nothing "
        "repaired in between. Identical: every file under data/ has the bytes of an uninterrupted build, dvc.lock "
        "says the same, DVC's cache holds all it names, both engines have nothing to do, no process outlived the "
        "kill, no temporary file is left. Rounds start from two states: "
        + "; ".join(f"*{name}*, {text}" for name, text in STARTS.items())
        + ". SIGKILL is not a power cut: what the system had not yet written to disk is not lost.\n",
        "| at work when killed | kills |", "|---|---:|",
        *(f"| {place} | {count} |" for place, count in places.most_common()),
        "", "| round | start | killed | after | at work | half-trained | continued by | result |",
        "|---:|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for found in rounds:
        plan, kills = found.plan, found.kills
        result = "; ".join(found.complaints) or ("identical, mended" if found.mended else "identical")
        cells = [str(plan.number), plan.start, ", ".join(plan.engines[: len(kills)])]
        cells += [" + ".join(f"{kill.seconds:.1f} s" for kill in kills), " + ".join(k.at for k in kills)]
        cells += [" + ".join("yes" if kill.resumable else "no" for kill in kills), plan.then, result]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(
    rounds: Annotated[int, typer.Option(min=1, help="how many; each takes about a minute on two cores")] = 50,
    seed: Annotated[int, typer.Option(help="of the moments")] = 1,
    keep: Annotated[
        bool, typer.Option(help="keep all work trees; those of failed rounds stay anyway")
    ] = False,
    output: Annotated[Path, typer.Option(help="where the result goes when all rounds are done")] = RESULTS,
) -> None:
    """Kill a reduced pipeline at random moments and count how often the next run ends as if nothing had been.

    Ctrl-C stops and prints the counts so far. Exit status 1 if a round ended otherwise.
    """
    folder = Path(tempfile.mkdtemp(prefix="sandglass-kill-"))
    done: list[Round] = []
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    stopped = False
    console = Console(stderr=True, soft_wrap=True)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("uninterrupted builds", total=rounds)
        try:
            bench = prepare(folder)
            for plan in plans(rounds, seed):
                bar.update(task, description=f"{plan.engine} from {plan.start}, then {plan.then}")
                done.append(found := bench.run(plan))
                result = "identical" if found.identical else "; ".join(found.complaints)
                at = " + ".join(f"{kill.seconds:.1f} s ({kill.at})" for kill in found.kills)
                place = "" if found.identical else f", kept in {folder / f'round-{plan.number}'}"
                console.print(f"{plan.number}: {plan.engine} killed at {at}, {plan.then}: {result}{place}")
                if found.identical and not keep:
                    shutil.rmtree(folder / f"round-{plan.number}")
                bar.update(task, advance=1)
        except KeyboardInterrupt:
            stopped = True
    print(summary(done) + (", stopped before the end" if stopped else ""))
    if not stopped:
        output.write_text(render(done, seed), encoding="utf-8")
    if keep or not all(found.identical for found in done):
        print(f"work trees: {folder}")
    else:
        shutil.rmtree(folder)
    raise typer.Exit(int(stopped or not all(found.identical for found in done)))


if __name__ == "__main__":
    typer.run(main)
