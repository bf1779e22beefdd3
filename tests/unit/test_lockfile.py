"""A dvc.lock that DVC was writing when it was killed: whatever is left of it, DVC starts on what it is mended to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from dvc.schema import COMPILED_LOCKFILE_SCHEMA
from ruamel.yaml import YAML

from pipeline.engine import graph, lockfile
from pipeline.engine.repository import forget_stages

STAGE = """\
  {name}:
    cmd: python -m pipeline {name}
    deps:
    - path: pipeline/a.py
      hash: md5
      md5: 15ba1361373f6573b81fa99372e3fa21
      size: 319
    - path: data/b
      hash: md5
      md5: 15ba1361373f6573b81fa99372e3fa21.dir
      size: 12
      nfiles: 2
    params:
      params.yaml:
        scale: smoke
        seed: 1
      params/toy/runs.yaml:
        toy-a:
          lr: 0.5
          steps:
            smoke: 3
    outs:
    - path: data/{name}
      hash: md5
      md5: 15ba1361373f6573b81fa99372e3fa21
      size: 3
"""
OLDER = "schema: '2.0'\nstages:\n" + STAGE.format(name="first")
NEWER = OLDER + STAGE.format(name="second")


def accepted(text: str) -> bool:
    """Return whether DVC starts on a dvc.lock of this text."""
    COMPILED_LOCKFILE_SCHEMA(YAML(typ="safe").load(text))
    return True


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / graph.STATE).mkdir()
    return tmp_path


def test_wherever_it_is_cut_dvc_starts_on_what_is_left(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock, kept = root / "dvc.lock", root / graph.STATE / "dvc.lock"
    as_left = set()
    for end in range(len(NEWER)):
        kept.write_text(OLDER)
        lock.write_text(NEWER[:end])
        lockfile.mend(root)
        text = lock.read_text()
        assert text in (OLDER, NEWER[:end]) and accepted(text), end
        assert ("was killed while it wrote" in capsys.readouterr().err) == (text != NEWER[:end])
        as_left.add(text)
    assert OLDER in as_left and len(as_left) > 1  # and some of what is cut behind a line is left as it is


def test_what_is_whole_is_left_as_it_is(root: Path) -> None:
    lock = root / "dvc.lock"
    for text in (NEWER, "<<<<<<< HEAD\n" + NEWER + "=======\n>>>>>>> theirs\n"):
        lock.write_text(text)
        lockfile.mend(root)
        assert lock.read_text() == text


def test_stages_that_only_the_copy_has_come_back_unless_git_checked_the_file_out(root: Path) -> None:
    lock, kept = root / "dvc.lock", root / graph.STATE / "dvc.lock"
    kept.write_text(NEWER)
    lock.write_text(OLDER)  # NEWER, cut exactly behind its first stage
    lockfile.keep(root)
    lockfile.mend(root)
    assert lock.read_text() == kept.read_text() == NEWER

    lock.write_text(OLDER)
    for command in ("init", "add dvc.lock"):
        subprocess.run(["git", *command.split()], cwd=root, check=True, capture_output=True)
    lockfile.mend(root)
    assert lock.read_text() == OLDER


def test_stages_that_were_dropped_do_not_come_back(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = root / "dvc.lock"
    lock.write_text(NEWER)
    lockfile.keep(root)
    for known, left in (({"first"}, OLDER), (set(), "schema: '2.0'\nstages: {}\n")):
        forget_stages(root, known)
        lockfile.mend(root)
        assert lock.read_text() == left
    assert capsys.readouterr().err == ""


def test_a_copy_is_kept_of_what_is_not_cut_off(root: Path) -> None:
    lock, kept = root / "dvc.lock", root / graph.STATE / "dvc.lock"
    lock.write_text(NEWER)
    lockfile.keep(root)
    lock.write_text(NEWER[: NEWER.rindex("params:\n") + len("params:\n")])
    lockfile.keep(root)
    assert kept.read_text() == NEWER


def test_without_a_copy_what_is_cut_off_goes(root: Path) -> None:
    (root / "dvc.lock").write_text(NEWER[:-5])
    lockfile.mend(root)
    assert not (root / "dvc.lock").exists()
