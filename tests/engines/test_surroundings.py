"""What the machine around a build may be like: clocks, signals, users, terminals, folders without git."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from workspace import REPOSITORY, Workspace, one_after_another

BUILD = ("-m", "pipeline", "build")


def test_an_input_from_a_clock_that_goes_ahead_changes_nothing(built: Workspace) -> None:
    later = time.time() + 7200
    os.utime(built.path / "pipeline/studies/toy/analysis/means.py", (later, later))
    before = built.artifacts()
    done = built.snakemake("--cores", "1")
    assert (done.status, done.ran) == (0, set()), done.output
    assert built.artifacts() == before


@pytest.mark.slow
@pytest.mark.started
def test_a_signal_to_the_build_alone_ends_it_with_all_that_it_started(built: Workspace) -> None:
    """As `kill`, `docker stop` and supervisors send it; Ctrl-C reaches every process of the terminal."""
    built.change_study(lambda params: params["datasets"]["toy-numbers"].update(rows=50))
    process = built.start("python", *BUILD, **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    os.kill(process.pid, signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert output.splitlines()[-1].endswith("; the same command continues")
    assert '"status": "interrupted"' in (built.path / "logs/steps/train-toy-a.json").read_text()
    command = ["ps", "-o", "stat=,args=", "-s", str(process.pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    # One that has ended stays listed until whoever adopted it asks how it ended.
    left = [line for line in listed.splitlines() if not line.startswith("Z")]
    assert not left


@pytest.mark.slow
@pytest.mark.started
def test_ctrl_c_to_snakemake_alone_ends_its_steps_as_well(built: Workspace) -> None:
    built.change_study(lambda params: params["datasets"]["toy-numbers"].update(rows=50))
    process = built.start("snakemake", "--cores", "2", **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    os.kill(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0, output
    assert '"status": "interrupted"' in (built.path / "logs/steps/train-toy-a.json").read_text()


@pytest.mark.slow
@pytest.mark.started
def test_programs_are_those_of_the_interpreter_that_runs(built: Workspace) -> None:
    """By cron, or where nobody activated the environment: neither `snakemake` nor `python` is found by name."""
    built.set_lr("toy-a", 0.75)
    done = built.run(sys.executable, *BUILD, PATH="/usr/bin:/bin")
    assert done.status == 0, done.output


def test_a_folder_without_git_is_told_what_to_do(built: Workspace) -> None:
    """An archive of the repository, as reviewers get it."""
    shutil.rmtree(built.path / ".git")
    done = built.run("snakemake", "-n")
    assert done.status == 1 and done.last_line == (
        "sandglass: DVC: this folder is no git repository, which it needs; make it one with: git init"
    )
    done = built.run("python", "-m", "pipeline", "audit")
    assert "this folder is no git repository" in done.output and done.status == 3, done.output
    built.git("init", "-q")
    assert built.planned() == set()


@pytest.mark.started
def test_a_terminal_that_knows_few_letters_gets_others_in_their_place(built: Workspace) -> None:
    commands = ("audit", "claims", "why", "--help")
    code = one_after_another(commands)
    done = built.run("python", "-c", code, PYTHONIOENCODING="latin-1", LC_ALL="en_US.ISO-8859-1")
    assert done.output.count("status 0\n") == len(commands) and "Traceback" not in done.output, done.output


@pytest.mark.started
def test_a_user_without_a_name_or_a_home(built: Workspace) -> None:
    """As a container runs it for a number that no user has."""
    if os.geteuid():
        pytest.skip("only root may become another user")
    for path in (built.path, *built.path.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    become = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "env", "-u", "LOGNAME", "-u", "USER"]
    look = "import os, torch; os.listdir(os.getcwd())"  # by its whole path, as Python finds modules
    reachable = subprocess.run([*become, sys.executable, "-c", look], cwd=built.path, check=False)
    if reachable.returncode:
        pytest.skip("the environment or the folder of the test is closed to other users")
    done = built.run(*become, sys.executable, *BUILD, HOME="/")
    assert done.status == 0, done.output


def test_git_rewrites_no_line_ends() -> None:
    """Bytes of code and results are hashed: a clone with core.autocrlf must hold the same."""
    files = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPOSITORY)
    words = ["git", "check-attr", "-z", "--stdin", "text"]
    attributes = subprocess.check_output(words, cwd=REPOSITORY, input=files).split(b"\0")
    assert set(attributes[2::3]) == {b"unset"}
