"""`profiles/slurm` on a cluster of SLURM's own programs (`slurm.py`): what goes wrong there, and then the same bytes.

`benchmarks/cluster.py` builds whole studies so.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import slurm
from workspace import REPOSITORY, TIMEOUT, Workspace

from pipeline.engine import snakemake

# What the page prints behind a prompt, and runs without more than this machine has.
PRINTED = re.findall(
    r"^\$ ((?:snakemake|python) .+)$", (REPOSITORY / "docs/cluster.md").read_text(encoding="utf-8"), re.MULTILINE
)
NEEDS_SLURM = pytest.mark.skipif(bool(slurm.missing()), reason=f"no cluster can be started: {slurm.missing()}")
RUNS = ("toy-a", "toy-b")
TABLE = "data/tables/toy/toy-means/means.parquet"


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Cluster]:
    with slurm.cluster() as made:
        yield made


def _wait_for(cluster: slurm.Cluster, rule: str, state: str) -> slurm.Job:
    deadline = time.monotonic() + TIMEOUT
    while not (found := [job for job in cluster.jobs() if job.rule == rule and job.state == state]):
        assert time.monotonic() < deadline, f"{rule} is not {state}: {cluster.jobs()}"
        time.sleep(0.2)
    return found[-1]


@pytest.mark.slow
@NEEDS_SLURM
@pytest.mark.started  # a job that is forked from a process of this machine would escape its node
def test_jobs_that_are_lost_cancelled_and_too_large_are_named_and_then_built_to_the_bytes_of_one_machine(
    built: Workspace, cluster: slurm.Cluster
) -> None:
    submitting, here = Workspace(built.path, cluster.env), built.artifacts()
    for run in RUNS:
        shutil.rmtree(built.path / "data/runs/toy" / run)
    (built.path / TABLE).unlink()
    # A training that waits, and one that may use less memory than its libraries take.
    small = ("--set-resources", "train_toy_b:mem_mb=300")
    process = submitting.start(*slurm.SUBMIT, TABLE, *small, **submitting.hold("toy-a"))
    submitting.wait_for_step("train-toy-a", process)
    # The node of the first goes away: the other takes the job. The node returns.
    job = _wait_for(cluster, "train_toy_a", "RUNNING")
    cluster.lose(job.node)
    submitting.wait_for_step("train-toy-a", process)
    again = _wait_for(cluster, "train_toy_a", "RUNNING")
    assert again.number == job.number and again.node != job.node
    cluster.join(job.node)
    cluster.wait(job.node, "idle", "allocated", "mixed")
    # Somebody cancels it.
    cluster.ask("scancel", job.number)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 1, output
    assert f"SLURM-job '{job.number}' failed, SLURM status is: 'CANCELLED'" in output
    large = next(job for job in cluster.jobs() if job.rule == "train_toy_b")
    assert f"SLURM-job '{large.number}' failed" in output
    said = (built.path / f".snakemake/slurm_logs/rule_train_toy_b/{large.number}.log").read_text()
    assert "exceeded memory limit" in said.lower(), said
    assert "sandglass: sacct does not answer" in output  # else nothing of all this had been noticed
    assert not any((built.path / "data/runs/toy" / run / f"{run}.safetensors").exists() for run in RUNS)
    # Nothing is repaired, and nobody is in the way.
    submitting.release()
    done = submitting.run(*slurm.SUBMIT, TABLE)
    assert done.status == 0, done.output
    assert done.ran == {"train toy-a", "train toy-b", "analyse toy-means"}
    assert built.artifacts() == here
    built.assert_clean()


@NEEDS_SLURM
@pytest.mark.started
def test_the_commands_of_the_page_run_as_printed(built: Workspace, cluster: slurm.Cluster) -> None:
    """With nothing to do: by the cluster that is here, and by one that is started for the command."""
    assert [command.split()[0] for command in PRINTED] == ["snakemake", "python"]
    assert PRINTED[0].split() == [word for word in slurm.SUBMIT[:5] if word not in ("--printshellcmds", "--nocolor")]
    for command, env in zip(PRINTED, (cluster.env, {}), strict=True):
        words = shlex.split(command.replace("tests/engines", str(REPOSITORY / "tests/engines")))
        done = built.run(*words, **env)
        assert done.status == 0 and "Nothing to be done" in done.output, done.output


@pytest.mark.parametrize(("status", "asked"), [("0", "sacct"), ("1", "squeue"), ("", "squeue")])
def test_sacct_is_asked_only_where_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, asked: str
) -> None:
    """Without the program (no status), without accounting, and with it."""
    if status:
        (tmp_path / "sacct").write_text(f"#!/bin/sh\nexit {status}\n", encoding="utf-8")
        (tmp_path / "sacct").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = SimpleNamespace(status_command="sacct")
    snakemake._ask_who_answers(settings)
    assert settings.status_command == asked


def test_other_executors_are_left_alone() -> None:
    for settings in (None, SimpleNamespace(), SimpleNamespace(status_command="squeue")):
        before = vars(settings).copy() if settings else {}
        snakemake._ask_who_answers(settings)
        assert (vars(settings) if settings else {}) == before


def test_without_the_programs_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "_program", {"srun": "/usr/bin/srun"}.get)
    assert slurm.missing().startswith("no munged, slurmctld, slurmd, sbatch")
    assert "apt-get install slurm-wlm munge" in slurm.missing()
