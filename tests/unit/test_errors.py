"""What the system says, in one line: a full disk, a place that cannot be written, a name that there is not."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from workspace import REPOSITORY, load_study

from pipeline import __main__ as cli
from pipeline.engine import freshness, graph, runner
from pipeline.errors import SandglassError, in_words, meant


def full() -> OSError:
    """What a write to a full disk raises: it names no file."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_named_by_the_folder_with_the_least_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/runs").mkdir(parents=True)
    room = {tmp_path: 10, tmp_path / "data/runs": 5}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=room[folder]))
    assert in_words(full()) == f"{tmp_path / 'data/runs'}: No space left on device"
    room[tmp_path] = 1
    assert in_words(full()) == f"{tmp_path}: No space left on device"
    assert in_words(OSError(errno.EROFS, "Read-only file system", "logs/x")) == "logs/x: Read-only file system"
    assert runner._reason(full()) == f"OSError: {tmp_path}: No space left on device"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_what_cannot_be_written_ends_a_command_in_one_line(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number), "data/.tmp")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    assert capsys.readouterr().err == f"sandglass: data/.tmp: {os.strerror(number)}\n"


def test_another_error_of_the_system_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "x")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(FileNotFoundError):
        cli.main()


def test_without_the_environment_it_names_the_command_that_activates_it() -> None:
    """As with the machine's own Python, which has none of the libraries."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            "import runpy, sys; sys.path.insert(0, '.'); "
            "sys.argv = ['pipeline', 'claims']; runpy.run_module('pipeline', run_name='__main__')",
        ],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("sandglass: ") and "has no typer: `. .venv/bin/activate`" in line


def test_what_a_kill_left_of_tracked_parameters_does_not_stop_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    params = load_study("nce")
    freshness.write_tracked(params)
    folder, files = tmp_path / freshness.TRACKED, set((tmp_path / freshness.TRACKED).iterdir())
    assert len(files) == len(graph.jobs(params))
    (folder / "claims-nce.json").rename(folder / "claims-nce.tmp")
    (folder / "train-nce-gone.tmp").touch()
    (folder / "train-nce-gone.json").touch()
    freshness.write_tracked(params)
    assert set(folder.iterdir()) == files


def test_results_on_another_disk_take_their_names_by_one_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk of its own is not to be had in a test: renaming across folders fails as it does between two."""
    rename: Callable[[Path, Path], Path] = Path.replace
    made = []

    def replace(path: Path, target: Path) -> Path:
        if path.parent != target.parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        made.append(path.read_bytes())
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here/x").write_bytes(b"new")
    (tmp_path / "there/x").write_bytes(b"old")
    runner._move(tmp_path / "here/x", tmp_path / "there/x")
    assert made == [b"new"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "there").iterdir()} == {"x": b"new"}


@pytest.mark.parametrize("link", ["data", "data/runs", "data/runs/nce"])
def test_results_behind_a_link_are_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "scratch")
    with pytest.raises(SandglassError) as error:
        runner.refuse_links()
    assert str(error.value).startswith(f"{link} is a link, and DVC records nothing")


def test_the_nearest_names_are_shown_or_where_all_are_listed() -> None:
    many = [f"dyck-{number}" for number in range(700)]
    assert len(meant("dyck-70x", many, "list_runs()")) < 60
    assert meant("x" * 5000, many, "list_runs()") == "there are 700: list_runs()"
    assert meant("x", ["dyck", "depth"]) == "there are: dyck, depth"
