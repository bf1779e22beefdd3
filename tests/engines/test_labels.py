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


def test_what_a_change_touches_and_back(taught: Workspace) -> None:
    before, params = taught.artifacts(), taught.parameters()
    taught.set_lr("toy-student", 0.5)
    assert taught.planned() == {"train toy-student"} | STUDENT
    taught.restore(params)
    taught.set_lr("toy-a", 0.75)
    ran = {"train toy-a", "labels toy-told", "train toy-student"} | BELOW_A_RUN
    assert taught.planned() == ran
    assert taught.engine("snakemake").ran == ran
    taught.assert_clean()
    assert taught.artifacts() != before
    taught.restore(params)
    taught.engine("dvc")
    taught.assert_clean()
    assert taught.artifacts() == before


@pytest.mark.slow
def test_answers_that_are_spoilt_are_made_again(taught: Workspace) -> None:
    file = taught.path / "data/datasets/toy/toy-told/toy-told.parquet"
    before = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes(b"other")
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
