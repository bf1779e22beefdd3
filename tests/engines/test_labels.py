"""A run may learn from the answers of another: the edge from a teacher to its students, in both engines."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from workspace import BELOW_A_RUN, BELOW_B, Workspace

STUDENT = BELOW_B  # toy-means reads it


def teach(params: dict[str, Any]) -> None:
    """Let a third run learn from the answers of the first."""
    own = {"language": "toy", "teacher": "toy-a", "model": "toy/toy", "objective": "toy"}
    params["datasets"]["toy-told"] = own
    params["runs"]["toy-student"] = params["runs"]["toy-a"] | {"dataset": "toy-told", "lr": 0.125}
    params["experiments"]["toy-means"]["runs"].append("toy-student")


@pytest.fixture(scope="session")
def lesson(
    template: Path, fork_server: dict[str, str], once: Callable[[str, Callable[[Path], Workspace]], Path]
) -> Path:
    """The toy study with the student, built by Snakemake."""

    def build(path: Path) -> Workspace:
        workspace = Workspace(Path(shutil.copytree(template, path / "tree", symlinks=True)), fork_server)
        workspace.change_study(teach)
        assert workspace.engine("snakemake").ran == {"labels toy-told", "train toy-student"} | BELOW_B
        workspace.assert_clean()
        workspace.git("commit", "-qam", "a student")
        return workspace

    return once("toy-lesson", build) / "tree"


@pytest.fixture
def taught(lesson: Path, tmp_path: Path, forks: dict[str, str]) -> Workspace:
    shutil.copytree(lesson, tmp_path / "tree", symlinks=True)
    return Workspace(tmp_path / "tree", forks)


def _set(run: str, name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(params: dict[str, Any]) -> None:
        params["runs"][run][name] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "ran", "first", "second"),
    [
        (
            _set("toy-a", "lr", 0.75),
            {"train toy-a", "labels toy-told", "train toy-student"} | BELOW_A_RUN,
            "snakemake",
            "dvc",
        ),
        (_set("toy-student", "lr", 0.5), {"train toy-student"} | STUDENT, "dvc", "snakemake"),
    ],
    ids=["teacher", "student"],
)
def test_what_a_change_touches_and_back(
    taught: Workspace, edit: Callable[[dict[str, Any]], None], ran: set[str], first: str, second: str
) -> None:
    before, params = taught.artifacts(), taught.parameters()
    taught.change_study(edit)
    assert taught.planned() == ran
    assert taught.engine(first).ran == ran
    taught.assert_clean()
    assert taught.artifacts() != before
    taught.restore(params)
    taught.engine(second)
    taught.assert_clean()
    assert taught.artifacts() == before


def test_dvc_alone_makes_the_same_bytes(lesson: Path, empty: Workspace) -> None:
    empty.change_study(teach)
    assert empty.run("python", "-m", "pipeline", "params", "--write").status == 0
    assert len(empty.engine("dvc").ran) == 12
    assert empty.artifacts() == Workspace(lesson).artifacts()
    empty.assert_clean()


def test_answers_that_are_gone_or_spoilt_are_made_again(taught: Workspace) -> None:
    file = taught.path / "data/datasets/toy/toy-told/toy-told.parquet"
    before = file.read_bytes()
    for spoil in (lambda: file.unlink(), lambda: file.write_bytes(b"other")):
        file.parent.chmod(0o755)
        if file.exists():
            file.chmod(0o644)
        spoil()
        taught.engine("snakemake")
        assert file.read_bytes() == before
        taught.assert_clean()


def test_code_that_answers_is_an_input_of_the_answers_alone(taught: Workspace) -> None:
    taught.edit("pipeline/studies/toy/labels.py")
    assert taught.planned() == {"labels toy-told", "train toy-student"} | STUDENT
    assert taught.repro().ran == {"labels toy-told", "report"}  # the same answers: their readers stay
    taught.assert_clean()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda params: params["datasets"]["toy-told"].update(teacher="toy-x"),
            "datasets.yaml: toy-told.teacher: no such run 'toy-x'",
        ),
        (
            lambda params: params["datasets"]["toy-told"].update(teacher="toy-student"),
            "runs.yaml: toy-student: learns from itself, by way of dataset 'toy-told'",
        ),
        (
            lambda params: params["datasets"]["toy-told"].update(model="transformer/decoder"),
            "datasets.yaml: toy-told.model: is 'transformer/decoder', that of its teacher is 'toy/toy'",
        ),
    ],
)
def test_a_lesson_that_cannot_be_is_refused(
    taught: Workspace, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    taught.change_study(edit)
    done = taught.run("python", "-m", "pipeline", "check")
    assert done.status == 2 and message in done.output and "Traceback" not in done.output
