"""Jobs of Snakemake are forked from a process that has loaded the libraries, and behave as if they were started."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest
from workspace import TIMEOUT, Workspace

from pipeline.engine import preload

pytestmark = pytest.mark.started  # by a server of Snakemake's own, unless a test asks for that of all tests
MODEL = "data/runs/toy/toy-a/toy-a.safetensors"
TABLE = "data/tables/toy/toy-means/means.parquet"
DATASET = "data/datasets/toy/toy-numbers/toy-numbers.parquet"
TRAIN = ("python", "-m", "pipeline", "train")


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _job(workspace: Workspace) -> psutil.Process:
    """The process that is at work on toy-a."""
    return psutil.Process(int((workspace.path / ".sandglass/jobs/train-toy-a.lock").read_text()))


def _busy(workspace: Workspace) -> subprocess.Popen[str]:
    workspace.set_lr("toy-a", 0.75)
    process = workspace.start("snakemake", **workspace.hold("toy-a"))
    workspace.wait_for_step("train-toy-a", process)
    return process


def _ended(process: psutil.Process) -> bool:
    deadline = time.monotonic() + TIMEOUT
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return True


@pytest.mark.slow
def test_jobs_are_forked_and_make_the_bytes_of_jobs_that_are_started(
    built: Workspace, calmed: Callable[[Workspace], Workspace]
) -> None:
    process = _busy(built)
    assert "pipeline.engine.preload" in _words(_job(built))
    server = _job(built).parent()
    built.release()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert server is not None and _ended(server)
    forked = built.artifacts()
    for path in (built.path / "data/runs", (built.path / TABLE).parent):
        for file in (each for each in path.rglob("*") if each.is_file()):
            file.unlink()
    process = built.start("snakemake", TABLE, **built.hold("toy-b"), SANDGLASS_PRELOAD="0")
    built.wait_for_step("train-toy-b", process)
    assert not any("pipeline.engine.preload" in _words(each) for each in psutil.Process(process.pid).children(True))
    built.release()
    process.communicate()
    assert built.artifacts() == forked
    calmed(built).assert_clean()


def test_the_job_of_a_killed_caller_is_killed(built: Workspace) -> None:
    process = _busy(built)
    job = _job(built)
    (caller,) = (
        each
        for each in psutil.Process(process.pid).children(True)
        if _words(each)[-4:] == ["-m", "pipeline", "train", "toy-a"] and _words(each)[0] != "bash"
    )
    caller.kill()
    assert _ended(job)
    output, _ = process.communicate()
    assert process.returncode == 1 and "train_toy_a" in output


@pytest.mark.slow
def test_jobs_end_with_their_server_and_the_next_build_goes_on(
    built: Workspace, calmed: Callable[[Workspace], Workspace]
) -> None:
    process = _busy(built)
    job = _job(built)
    server = job.parent()
    assert server is not None
    server.kill()
    assert _ended(job)
    assert process.communicate() and process.returncode == 1
    built.release()
    assert calmed(built).snakemake(MODEL).ran == {"train toy-a"}


def test_ctrl_c_reaches_the_job_itself(built: Workspace) -> None:
    process = _busy(built)
    job = _job(built)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert _ended(job)
    assert "sandglass: train toy-a: interrupted; run the same command again to continue" in output
    assert "Traceback" not in output


def test_where_nobody_answers_a_job_does_its_work_itself(empty: Workspace) -> None:
    done = empty.run("python", "-m", "pipeline", "dataset", "toy-numbers", SANDGLASS_PRELOAD="sandglass-0-gone")
    assert done.status == 0, done.output
    assert (empty.path / DATASET).is_file()


def test_output_and_status_are_those_of_the_job(empty: Workspace, fork_server: dict[str, str]) -> None:
    plain = empty.run(*TRAIN, "toy-x")
    assert plain.status == 2 and "sandglass: train toy-x: no such id" in plain.output
    assert "did you mean toy-" in plain.output
    assert empty.run(*TRAIN, "toy-x", **fork_server) == plain
    wrong = empty.run(*TRAIN)
    assert wrong.status == 2
    assert empty.run(*TRAIN, **fork_server) == wrong


def test_a_job_has_the_folder_and_mask_of_its_caller(built: Workspace, fork_server: dict[str, str]) -> None:
    (built.path / DATASET).unlink()
    command = "umask 077; python -m pipeline dataset toy-numbers"
    done = built.run("sh", "-c", command, **fork_server)
    assert done.status == 0, done.output
    assert (built.path / DATASET).stat().st_mode & 0o777 == 0o600


def test_a_job_has_the_environment_of_its_caller(built: Workspace, fork_server: dict[str, str]) -> None:
    wait = built.hold("toy-numbers")["TOY_WAIT"]
    command = f"TOY_WAIT={wait} python -m pipeline dataset toy-numbers"
    process = built.start("sh", "-c", command, **fork_server)
    built.wait_for_step("dataset-toy-numbers", process)
    time.sleep(1)
    assert process.poll() is None
    built.release()
    output, _ = process.communicate()
    assert process.returncode == 0, output


@pytest.mark.parametrize(("threads", "forked"), [("1", True), ("2", False)])
def test_a_job_with_another_number_of_threads_is_not_forked(
    built: Workspace, fork_server: dict[str, str], threads: str, forked: bool
) -> None:
    command = f"OMP_NUM_THREADS={threads} python -m pipeline dataset toy-numbers & echo process $!; wait"
    done = built.run("bash", "-c", command, **fork_server)
    assert done.status == 0, done.output
    started = done.output.split("process ")[1].split()[0]
    assert ((built.path / ".sandglass/jobs/dataset-toy-numbers.lock").read_text() != started) == forked


def test_a_job_reads_the_code_of_its_folder(built: Workspace, fork_server: dict[str, str]) -> None:
    """Not that of the folder in which its server was started, nor what was read for another job."""
    for word in ("one", "two"):
        built.edit("pipeline/studies/toy/datasets.py", f"print('code {word}')\n")
        done = built.run("python", "-m", "pipeline", "dataset", "toy-numbers", **fork_server)
        assert done.status == 0 and f"code {word}" in done.output


LARGE = """
import resource, sys
import torch
from pipeline.engine import preload

if sys.argv[1] == "kept":
    preload.keep_large_blocks()
for _ in range(2):
    block = torch.ones(10_000_000)  # 40 MB, above every threshold of glibc
    del block
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    block = torch.ones(10_000_000)
    del block
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has no such setting")
def test_large_blocks_are_not_mapped_anew_at_each_step() -> None:
    def faults(how: str) -> int:
        environment = os.environ | preload.KEEP_MEMORY
        command = [sys.executable, "-c", LARGE, how]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert 5 * faults("kept") < faults("given back")
