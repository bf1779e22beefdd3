"""What a cluster makes of a build: ``make cluster``.

Studies are built by jobs of SLURM, through `profiles/slurm` as it is, on a cluster of two nodes that
`tests/engines/slurm.py` starts on this machine, and compared with a build here. Then the cluster fails while it works
on the tests' toy study, in one way after the other, and each time the same command is given again.
benchmarks/CLUSTER.md holds the last result.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import typer

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests" / "engines")]

import slurm  # noqa: E402
import workspace  # noqa: E402
from workspace import Workspace, lay_out  # noqa: E402

RESULTS = HERE / "CLUSTER.md"
SCAFFOLD = "counting"  # what `python -m pipeline new counting` makes
AWAY = 60  # seconds for which the controller is away, and for which a build may notice that its jobs have ended
TABLE = "data/tables/toy/toy-means/means.parquet"


@dataclass
class Built:
    """A study, built by the cluster and here."""

    study: str
    jobs: int
    files: int
    differences: list[str]
    seconds: float
    seconds_here: float


@dataclass
class Accident:
    """What went wrong, what was seen of it, and how far the next build is from one that was left alone."""

    name: str
    seen: str
    again: list[str]  # jobs of the next build
    differences: list[str]


@dataclass
class Bench:
    """Where work trees lie, the cluster, and the toy study as one machine builds it."""

    folder: Path
    cluster: slurm.Cluster
    toy: Workspace

    def copy(self, of: Workspace, name: str) -> Workspace:
        """Return a copy of a work tree, whose commands find the cluster."""
        return Workspace(Path(shutil.copytree(of.path, self.folder / name / "tree", symlinks=True)), self.cluster.env)

    def study(self, study: str) -> Built:
        """Build a study at scale smoke here and by the cluster."""
        empty = lay_out(self.folder / f"{study}-empty/tree", ["nce" if study == SCAFFOLD else study])
        if study == SCAFFOLD:
            done = empty.run("python", "-m", "pipeline", "new", study)
            assert done.status == 0, done.output
            empty.change(lambda params: params.update(studies=[study]))
        here, there = self.copy(empty, f"{study}-here"), self.copy(empty, f"{study}-cluster")
        seconds = []
        for tree, command in ((here, ("snakemake", "--cores", "2")), (there, slurm.SUBMIT)):
            began = time.monotonic()
            done = tree.run(*command)
            seconds.append(time.monotonic() - began)
            assert done.status == 0, done.output
        files = len(there.artifacts())
        return Built(study, len(done.ran), files, differences(there, here), seconds[1], seconds[0])

    def accident(self, name: str, happen: Callable[[Workspace, subprocess.Popen[str]], str], *words: str) -> Accident:
        """Have something happen while a training of the toy study waits in the cluster, then build again."""
        tree = self.copy(self.toy, name.replace(" ", "-"))
        shutil.rmtree(tree.path / "data/runs/toy")
        (tree.path / TABLE).unlink()
        process = tree.start(*slurm.SUBMIT, TABLE, *words, **tree.hold("toy-a"))
        tree.wait_for_step("train-toy-a", process)
        seen = happen(tree, process)
        tree.release()
        output, _ = process.communicate(timeout=workspace.TIMEOUT)
        seen += f"; the build ended with status {process.returncode}" if process.returncode >= 0 else ""
        for line in output.splitlines():
            if "failed, SLURM status is" in line:
                seen += "; " + line.split("message: ")[1].split(". Detailed")[0]
        done = tree.run(*slurm.SUBMIT, TABLE)
        assert done.status == 0, done.output
        return Accident(name, seen, sorted(done.ran), differences(tree, self.toy))

    def job(self, rule: str = "train_toy_a", state: str = "RUNNING") -> slurm.Job:
        """Wait for a job and return it."""
        deadline = time.monotonic() + workspace.TIMEOUT
        while not (found := [job for job in self.cluster.jobs() if (job.rule, job.state) == (rule, state)]):
            assert time.monotonic() < deadline, self.cluster.jobs()
            time.sleep(0.2)
        return found[-1]

    def cancelled(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        self.cluster.ask("scancel", self.job().number)
        return "cancelled by `scancel`"

    def too_large(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        job = self.job("train_toy_b", "FAILED")
        said = (tree.path / f".snakemake/slurm_logs/rule_train_toy_b/{job.number}.log").read_text(encoding="utf-8")
        return next(line for line in said.splitlines() if "memory limit" in line.lower())

    def node(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        job = self.job()
        self.cluster.lose(job.node)
        tree.wait_for_step("train-toy-a", process)
        again = self.job()
        self.cluster.join(job.node)
        self.cluster.wait(job.node, "idle", "allocated", "mixed")
        return f"node {job.node} went, job {job.number} started again on {again.node}, {job.node} returned"

    def controller(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        self.cluster.halt("slurmctld")
        time.sleep(AWAY)
        self.cluster.start_controller()
        self.job("train_toy_b", "COMPLETED")
        tree.release()
        self.job("train_toy_a", "COMPLETED")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(AWAY)
            return f"no answer for {AWAY} s"
        os.killpg(process.pid, signal.SIGINT)
        return f"no answer for {AWAY} s; Snakemake still waited {AWAY} s after its jobs had ended, until Ctrl-C"

    def killed(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        os.killpg(process.pid, signal.SIGKILL)
        return "SIGKILL to Snakemake; its job went on"

    def interrupted(self, tree: Workspace, process: subprocess.Popen[str]) -> str:
        number = self.job().number
        os.killpg(process.pid, signal.SIGINT)
        process.wait(workspace.TIMEOUT)
        state = next(job.state for job in self.cluster.jobs() if job.number == number)
        return f"Ctrl-C; its job is {state}"


def differences(one: Workspace, other: Workspace) -> list[str]:
    """Return in which files, records and plans a work tree differs from one that was built here and left alone."""
    made, expected = one.artifacts(), other.artifacts()
    found = [name for name in sorted({*made} | {*expected}) if made.get(name) != expected.get(name)]
    if (one.path / "dvc.lock").read_text() != (other.path / "dvc.lock").read_text():
        found.append("dvc.lock")
    found += [f"{job} would run" for job in sorted(one.planned())]
    return found + [f"dvc status names {stage}" for stage in one.status()]


def render(studies: list[Built], accidents: list[Accident]) -> str:
    """Return the result as Markdown."""
    lines = [
        "# Cluster\n",
        "`make cluster` writes this file.\n",
        f"SLURM {slurm.version()}, its controller and two nodes on one machine ({platform.machine()}, {os.cpu_count()} "
        f"cores, Python {platform.python_version()}, torch {torch.__version__}), jobs submitted through "
        "`profiles/slurm`. Identical: every file under data/ has the bytes of a build here, dvc.lock says the same, "
        "neither engine has anything to do. `counting` is what `python -m pipeline new counting` makes.\n",
        "| study at `smoke` | jobs | files | result | seconds | here |",
        "|---|---:|---:|---|---:|---:|",
    ]
    lines += [
        f"| {each.study} | {each.jobs} | {each.files} | {_result(each.differences)} | {each.seconds:.0f} | "
        f"{each.seconds_here:.0f} |"
        for each in studies
    ]
    lines += [
        "\nA cluster of one machine is slower than the machine: each job starts Snakemake twice, and loads its "
        f"libraries alone. (Seconds beside other work, at a load of {os.getloadavg()[2]:.0f}.)\n",
        "Two trainings and the table that reads them, of the tests' toy study; then the same command again, nothing "
        "repaired in between:\n",
        "| what happened | what was seen | the next build ran | result |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each.name} | {each.seen} | {', '.join(each.again) or 'nothing'} | {_result(each.differences)} |"
        for each in accidents
    ]
    return "\n".join(lines) + "\n"


def _result(differences: list[str]) -> str:
    return "identical" if not differences else "; ".join(differences)


def main(
    studies: Annotated[list[str] | None, typer.Argument(help="of params.yaml, and the scaffold's, counting")] = None,
    output: Annotated[Path, typer.Option(help="where the result goes")] = RESULTS,
) -> None:
    """Build studies by a cluster, have it fail, and count what differs. Exit status 1 if anything does."""
    workspace.TIMEOUT = 7200.0
    # A shell has what a script starts in the background ignore Ctrl-C, and so would the builds that are to meet one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if lack := slurm.missing():
        raise SystemExit(lack)
    folder = Path(tempfile.mkdtemp(prefix="sandglass-cluster-"))
    toy = lay_out(folder / "toy/tree")
    toy.engine("snakemake")
    results = []
    for study in studies or (SCAFFOLD, "nce"):
        with slurm.cluster() as made:
            results.append(Bench(folder, made, toy).study(study))
        print(results[-1], flush=True)
    accidents = []
    with slurm.cluster() as made:
        bench = Bench(folder, made, toy)
        small = ("--set-resources", "train_toy_b:mem_mb=300")
        for name, happen, *words in (
            ("a job is cancelled", bench.cancelled),
            ("a job exceeds its memory", bench.too_large, *small),
            ("a node goes away and returns", bench.node),
            ("the controller is away", bench.controller),
            ("Snakemake is killed", bench.killed),
            ("Snakemake is interrupted", bench.interrupted),
        ):
            accidents.append(bench.accident(name, happen, *words))
            print(accidents[-1], flush=True)
    output.write_text(render(results, accidents), encoding="utf-8")
    if any(each.differences for each in (*results, *accidents)):
        raise SystemExit(f"not all is identical; work trees: {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    typer.run(main)
