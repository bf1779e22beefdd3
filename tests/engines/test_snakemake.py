"""Targets, options and profiles of the Snakefile."""

from __future__ import annotations

import subprocess
import sys

import pytest
from workspace import REPOSITORY, Workspace, environment


def test_every_job_is_self_contained(empty: Workspace) -> None:
    """Each job in a process of its own, as on a cluster."""
    done = empty.snakemake("--workflow-profile", "profiles/generic")
    assert done.status == 0, done.output
    empty.assert_clean()


@pytest.mark.parametrize(
    ("target", "steps"),
    [
        ("toy", {"dataset toy-numbers", "train toy-a", "train toy-b", "theory toy-identity", "analyse toy"}
            | {"figures toy", "claims toy"}),
        ("data/figures/toy/means.svg", {"dataset toy-numbers", "train toy-a", "train toy-b"}
            | {"theory toy-identity", "analyse toy", "figures toy"}),
        ("data/runs/toy/toy-a/model.safetensors", {"dataset toy-numbers", "train toy-a"}),
        ("data/datasets/toy/toy-numbers.parquet", {"dataset toy-numbers"}),
    ],
)  # fmt: skip
def test_targets(empty: Workspace, target: str, steps: set[str]) -> None:
    assert empty.planned(target) == steps


def test_unknown_target_is_one_clear_message(empty: Workspace) -> None:
    done = empty.snakemake("-n", "data/runs/toy/toy-c/model.safetensors")
    assert done.status == 1
    assert "MissingRuleException" in done.output and "Traceback" not in done.output


@pytest.mark.parametrize("option", [("--config", "scale=paper"), ("--configfile", "other.yaml")])
def test_parameters_on_the_command_line_are_refused(empty: Workspace, option: tuple[str, str]) -> None:
    (empty.path / "other.yaml").write_text("scale: paper\n")
    done = empty.snakemake(*option)
    assert done.status == 1
    assert "params.yaml" in done.last_line and "dvc exp run -S" in done.last_line
    assert not (empty.path / ".sandglass").exists()


def test_touch_is_refused(built: Workspace) -> None:
    built.set_lr("toy-a", 0.75)
    done = built.snakemake("--touch")
    assert done.status == 1
    assert "sandglass: --touch is refused" in done.last_line
    assert "train toy-a" in built.planned()


def test_wrong_parameters_are_one_line(built: Workspace) -> None:
    built.change(lambda params: params["runs"]["toy-a"].update(lr="fast"))
    before = built.artifacts()
    done = built.snakemake()
    assert done.status == 1
    assert done.last_line.startswith("sandglass: params.yaml: runs.toy-a.lr")
    assert built.artifacts() == before
    done = built.repro()  # DVC deletes a stage's outputs before the step can look at anything
    assert done.status != 0
    assert "sandglass: params.yaml: runs.toy-a.lr" in done.output and "Traceback" not in done.output


def test_other_software_is_refused(built: Workspace) -> None:
    requirements = built.path / "requirements.txt"
    requirements.write_text(requirements.read_text().replace("numpy==", "numpy==0."))
    done = built.snakemake()
    assert done.status == 1
    assert "sandglass: installed software differs from requirements.txt: numpy" in done.last_line
    assert built.snakemake("-n", SANDGLASS_ALLOW_VERSIONS="1").status == 0


def test_dag_is_a_graph(built: Workspace) -> None:
    done = subprocess.run(
        ["snakemake", "--dag"], cwd=built.path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("digraph")
    assert "train_toy" in done.stdout


def test_lint_and_format() -> None:
    for command in (["snakemake", "--lint"], ["snakefmt", "--check", "Snakefile"]):
        done = subprocess.run(command, cwd=REPOSITORY, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_job_processes_start_light() -> None:
    code = "import sys; from pipeline import engines; print({'torch', 'polars', 'dvc'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_experiment_with_other_parameters(built: Workspace) -> None:
    done = built.run("dvc", "exp", "run", "-S", "runs.toy-a.lr=0.75")
    assert done.status == 0, done.output
    built.assert_clean()
