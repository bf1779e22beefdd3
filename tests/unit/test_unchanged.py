"""The note that DVC found nothing to do holds as long as no file that it compares was touched."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.engine import unchanged

FILES = ("params.yaml", "data/runs/a/weights", "pipeline/a.py", ".dvc/cache/files/md5/ab/cd", ".dvc/config")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (*FILES, "logs/a.log", "venv/pyvenv.cfg", "venv/lib/a.py", "pipeline/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    time.sleep(2 * unchanged.JUST_NOW / 1e9)
    return tmp_path


def test_a_note_stands_for_the_tree_that_it_was_made_of(tree: Path) -> None:
    now = unchanged.digest(tree)
    assert not unchanged.remembered(tree, now)
    unchanged.remember(tree, now)
    assert unchanged.remembered(tree, unchanged.digest(tree)) and not unchanged.remembered(tree, "another")


def other_bytes_of_the_same_age(file: Path) -> None:
    """Size, inode and time stay; the time of change cannot be set."""
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    with file.open("r+") as opened:
        opened.write("new")
    os.utime(file, ns=times)


@pytest.mark.parametrize("change", [other_bytes_of_the_same_age, Path.unlink, os.utime])
@pytest.mark.parametrize("name", FILES)
def test_any_touched_file_gives_another_digest(tree: Path, name: str, change: Callable[[Path], object]) -> None:
    before = unchanged.digest(tree)
    change(tree / name)
    assert unchanged.digest(tree) != before


def test_a_new_file_gives_another_digest(tree: Path) -> None:
    before = unchanged.digest(tree)
    (tree / "data/runs/a/more").touch()
    assert unchanged.digest(tree) != before


@pytest.mark.parametrize("name", ["logs/a.log", "logs/b.log", "venv/lib/a.py", "pipeline/__pycache__/a.pyc"])
def test_logs_caches_and_environments_are_no_part_of_it(tree: Path, name: str) -> None:
    before = unchanged.digest(tree)
    (tree / name).write_text("new")
    assert unchanged.digest(tree) == before


def test_nothing_is_noted_of_files_that_were_touched_just_now(tree: Path) -> None:
    (tree / "params.yaml").write_text("new")
    now = unchanged.digest(tree)
    unchanged.remember(tree, now)
    assert not unchanged.remembered(tree, now)


@pytest.mark.parametrize(
    ("found", "cache", "asked"),
    [(set(), ".dvc/cache/files/md5", 1), ({"report"}, ".dvc/cache/files/md5", 2), (set(), "../elsewhere", 2)],
)
def test_dvc_is_asked_again_only_where_something_changed(tree: Path, found: set[str], cache: str, asked: int) -> None:
    answers = []

    def look() -> set[str]:
        answers.append(found)
        return found

    for _ in range(2):
        assert unchanged.unless_untouched(tree, look, lambda: tree / cache) == found
    assert len(answers) == asked
    (tree / "params.yaml").write_text("new")
    unchanged.unless_untouched(tree, look, lambda: tree / cache)
    assert len(answers) == asked + 1


def test_what_is_touched_while_dvc_looks_is_looked_at_again(tree: Path) -> None:
    def look() -> set[str]:
        (tree / "params.yaml").write_text("new")
        return set()

    unchanged.unless_untouched(tree, look, lambda: tree / unchanged.CACHE / "md5")
    assert not unchanged.remembered(tree, unchanged.digest(tree))
