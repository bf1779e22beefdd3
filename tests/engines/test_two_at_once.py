"""Two engines in one folder, and engines that were killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import psutil
import pytest
from workspace import BELOW_A_RUN, Workspace

from pipeline.engine import runner

started = pytest.mark.started  # whose processes are killed, or ask which other is at work
ENGINES = {"snakemake": ("snakemake",), "dvc": ("dvc", "repro")}
RUN = {"snakemake": "data/runs/toy/toy-a/toy-a.safetensors", "dvc": "train-toy-a"}  # what makes toy-a alone


@pytest.fixture
def calm(built: Workspace, calmed: Callable[[Workspace], Workspace]) -> Workspace:
    return calmed(built)


def _busy(workspace: Workspace, engine: str, *target: str) -> subprocess.Popen[str]:
    """``engine`` at work, in the middle of the training of toy-a, until `release`."""
    workspace.set_lr("toy-a", 0.75)
    process = workspace.start(*ENGINES[engine], *target, **workspace.hold("toy-a"))
    workspace.wait_for_step("train-toy-a", process)
    return process


@pytest.mark.slow
@started
@pytest.mark.parametrize("first", ENGINES)
def test_a_second_stops_before_it_touches_anything(built: Workspace, calm: Workspace, first: str) -> None:
    """Be it the same engine or the other one, which then builds what is left."""
    process = _busy(built, first, RUN[first])
    before = built.artifacts()
    refusals = {
        ("dvc", "snakemake"): "dvc repro train-toy-a` (process ",
        ("snakemake", "dvc"): "Unable to acquire lock",
        ("snakemake", "snakemake"): "another snakemake (process ",
        ("dvc", "dvc"): "is busy, it is being blocked by:",
    }
    for second, command in ENGINES.items():
        done = calm.run(*command)
        assert done.status != 0
        assert refusals[first, second] in (done.output if second == "dvc" else done.last_line)
        assert "Traceback" not in done.output and not done.ran
    assert process.poll() is None
    assert built.artifacts() == before
    built.release()
    output, _ = process.communicate()
    assert process.returncode == 0, output
    assert calm.engine("dvc" if first == "snakemake" else "snakemake").ran == BELOW_A_RUN
    calm.assert_clean()


@pytest.mark.slow
@started
def test_of_two_started_at_once_one_builds_everything(built: Workspace, calm: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    both = [built.start(*command, **built.hold("toy-a")) for command in ENGINES.values()]
    while all(process.poll() is None for process in both):
        time.sleep(0.05)
    built.release()
    outputs = [process.communicate()[0] for process in both]
    assert sorted(process.returncode == 0 for process in both) == [False, True], outputs
    refused = outputs[both[0].returncode == 0]
    assert "nothing was started" in refused or "Unable to acquire lock" in refused
    assert "Traceback" not in refused and "python -m pipeline" not in refused
    calm.assert_clean()
    disturbed = built.artifacts()
    shutil.rmtree(built.path / "data/runs")
    assert "train toy-a" in calm.engine("snakemake").ran
    assert built.artifacts() == disturbed


@pytest.mark.slow
@started
@pytest.mark.parametrize("engine", ENGINES)
def test_killed_engine_continues_while_its_orphan_ends(built: Workspace, calm: Workspace, engine: str) -> None:
    process = _busy(built, engine)
    process.kill()  # the training lives on until it finds its engine gone
    process.wait()
    built.release()
    assert calm.engine(engine).ran == {"train toy-a"} | BELOW_A_RUN
    process.communicate()
    calm.assert_clean()


def test_what_is_done_is_not_interrupted_when_its_engine_goes() -> None:
    """Else Python, while it ends, would print a traceback behind a job that is done."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of the test suite ignore it
    try:
        engine = subprocess.Popen(["sleep", "600"])
        with pytest.raises(KeyboardInterrupt), runner.ends_with(psutil.Process(engine.pid)):
            engine.kill()
            time.sleep(60)
        engine.wait()
        engine = subprocess.Popen(["sleep", "600"])
        with runner.ends_with(psutil.Process(engine.pid)):
            pass
        engine.kill()
        engine.wait()
        time.sleep(2 * runner.ORPHAN_POLL_SECONDS)  # an interrupt would end the test here
    finally:
        signal.signal(signal.SIGINT, before)


@started
def test_snakemake_continues_a_killed_dvc(built: Workspace, calm: Workspace) -> None:
    """The other way round is a round of `test_kill`."""
    _kill_all(_busy(built, "dvc"))
    assert calm.engine("snakemake").ran == {"train toy-a"} | BELOW_A_RUN
    calm.assert_clean()


@pytest.mark.slow
@started
def test_what_a_killed_run_had_finished_is_kept(built: Workspace, calm: Workspace) -> None:
    built.change_study(lambda params: params["datasets"]["toy-numbers"].update(rows=50))
    process = _busy(built, "snakemake")  # the dataset is made before the training
    _kill_all(process)
    planned = calm.planned()
    assert "dataset toy-numbers" not in planned
    assert {"train toy-a"} | BELOW_A_RUN <= planned
    assert calm.planned() == planned  # looking does not forget
    assert "dataset-toy-numbers" in calm.status()
    assert built.run("python", "-c", "from pipeline.engine import snakemake; snakemake.record()").status == 0
    assert "dataset-toy-numbers" not in calm.status()
    assert calm.planned() == planned


@pytest.mark.slow
@started
def test_a_record_does_not_vouch_for_what_the_other_engine_made(built: Workspace, calm: Workspace) -> None:
    def rows(count: int) -> None:
        built.change_study(lambda params: params["datasets"]["toy-numbers"].update(rows=count))

    rows(50)
    _kill_all(_busy(built, "snakemake"))  # Snakemake notes that it made the dataset of 50 rows
    rows(60)
    assert calm.repro("dataset-toy-numbers").ran == {"dataset toy-numbers"}
    rows(50)
    assert "dataset toy-numbers" in calm.planned()


def test_lock_entry_of_a_process_long_gone_stops_nothing(built: Workspace) -> None:
    """After a restart of the machine another process may have the number of the killed `dvc repro`."""
    file = built.path / ".dvc/tmp/rwlock"
    entry = {"pid": os.getpid(), "cmd": "dvc repro"}
    file.write_text(json.dumps({"write": {str(built.path / "data/report"): entry}, "read": {}}))
    assert built.snakemake("-n").status == 1
    os.utime(file, (1, 1))
    assert built.planned() == set()


@started
def test_interrupted_run_continues(built: Workspace, calm: Workspace) -> None:
    process = _busy(built, "snakemake")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode != 0 and "Traceback" not in output
    assert calm.planned() == {"train toy-a"} | BELOW_A_RUN


def _kill_all(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
def test_files_that_dvc_was_writing_when_it_was_killed_are_mended(built: Workspace) -> None:
    """It writes both in place, and would start on neither."""
    built.set_lr("toy-a", 0.75)
    built.engine("dvc")
    lock, rwlock = built.path / "dvc.lock", built.path / ".dvc/tmp/rwlock"
    content = lock.read_bytes()
    lock.write_bytes(content[: content.index(b"\n", 5000) - 1])  # cut behind a line, it is only an older record
    rwlock.write_bytes(b"")
    done = built.snakemake("-n")
    assert done.ran == {"report"}, done.output  # the copy is from before the last stage
    assert "sandglass: DVC was killed while it wrote dvc.lock" in done.output
    assert set(built.status()) == {"report"}
    (built.path / ".sandglass/dvc.lock").unlink()
    lock.write_bytes(b"")
    assert built.engine("snakemake").ran >= {"dataset toy-numbers", "train toy-a", "report"}
    built.assert_clean()


def test_a_lock_file_with_the_marks_of_a_merge_is_left_to_its_owner(built: Workspace) -> None:
    lock = built.path / "dvc.lock"
    lock.write_text("<<<<<<< HEAD\n" + lock.read_text())
    before = lock.read_bytes()
    done = built.snakemake("-n")
    assert done.status == 1
    assert "sandglass: DVC: unable to read: 'dvc.lock'" in done.last_line and "Traceback" not in done.output
    assert lock.read_bytes() == before


def test_what_is_written_of_some_stages_is_what_dvc_writes_of_all(built: Workspace) -> None:
    """One is edited, one goes, one comes, and long paths are folded at the column at which they stand."""
    lock = built.path / "dvc.lock"
    code = (
        "import copy, os; from pathlib import Path; from pipeline.engine import repository\n"
        "from dvc.utils.serialize import dumps_yaml, parse_yaml\n"
        "def edit(lock):\n"
        "    stages = lock['stages']; first, second, third, *_ = stages\n"
        "    stages[first]['deps'][0]['path'] = 'data/' + 'long/' * 20; del stages[second]\n"
        "    stages['again'] = copy.deepcopy(stages[third]); stages['again']['outs'][0]['path'] = 'a/' * 50\n"
        "lock = Path('dvc.lock'); expected = parse_yaml(lock.read_text(), lock); edit(expected)\n"
        "with repository._replaced(lock) as found:\n    edit(found)\n"
        "assert lock.read_text() == dumps_yaml(expected)\n"
        "with repository._replaced(lock) as found:\n    found['stages'].clear()\n"
        "assert lock.read_text() == dumps_yaml({'schema': '2.0', 'stages': {}})\n"
        "with repository._replaced(lock) as found:\n    found['stages'] |= expected['stages']\n"
        "assert lock.read_text() == dumps_yaml(expected)\n"
    )
    done = built.run("python", "-c", code)
    assert done.status == 0, done.output
    assert "again:" in lock.read_text()


def test_a_kill_while_results_are_recorded_leaves_the_old_record(built: Workspace) -> None:
    lock = built.path / "dvc.lock"
    before = lock.read_bytes()
    code = (
        "import os; from pathlib import Path; from pipeline.engine import repository\n"
        "whole = Path.write_text\n"
        "def half(path, text, **more):\n"
        "    whole(path, text[:9] if 'dvc.lock' in path.name else text, **more)\n"
        "    'dvc.lock' in path.name and os._exit(9)\n"
        "Path.write_text = half; repository.{}"
    )
    for recording in ("Repository(Path()).commit(['report'])", "forget_stages(Path(), set())"):
        assert built.run("python", "-c", code.format(recording)).status == 9
        assert lock.read_bytes() == before
