"""Snakefile and dvc.yaml state the same jobs, and pipeline/engine/graph.py knows them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workspace import REPOSITORY, STUDIES, Workspace, add_twin, environment, lay_out, load_all

from pipeline.engine import stages

GRAPHS = Path(__file__).parent / "graphs.py"


@pytest.fixture(scope="module", params=["toy", "twins", "real"])
def workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fork_server: dict[str, str]
) -> Workspace:
    tree = tmp_path_factory.mktemp("graphs") / "tree"
    laid_out = lay_out(tree, STUDIES if request.param == "real" else (), fork_server)
    if request.param == "twins":
        add_twin(laid_out)
        assert laid_out.run(sys.executable, "-m", "pipeline", "params", "--write").status == 0
    return laid_out


@pytest.fixture(scope="module")
def graphs(workspace: Workspace) -> dict[str, Any]:
    """The jobs as Snakemake, DVC and the code know them, by command."""
    done = subprocess.run(
        [sys.executable, GRAPHS], cwd=workspace.path, env=environment() | workspace.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_job_sets_are_equal(workspace: Workspace, graphs: dict[str, Any]) -> None:
    snakemake, dvc, stated = graphs["snakemake"], graphs["dvc"], graphs["code"]
    assert set(snakemake) == set(dvc) == set(stated)
    made = {file for job in snakemake.values() for file in job["outputs"]}
    for command, job in snakemake.items():
        stage, tracked_file = dvc[command], f".sandglass/params/{stated[command]['name']}.json"
        assert tracked_file in job["inputs"], command
        read = {file for dep in stage["inputs"] for file in _files(dep, made, workspace.path)}
        assert set(job["inputs"]) - {tracked_file} == read, command
        assert set(job["outputs"]) == {f for out in stage["outputs"] for f in _files(out, made, None)}, command
        assert all(any(_within(file, out) for file in job["outputs"]) for out in stage["outputs"]), command
        assert read == set(stated[command]["inputs"]), command
        assert job["outputs"] == stated[command]["outputs"], command
        assert job["log"] == [f"logs/{stated[command]['name']}.log"], command
        assert stage["tracked"] == stated[command]["tracked"], command
        assert stage["name"] == stated[command]["stage"], command


def test_parameter_files_hold_what_a_job_reads(workspace: Workspace, graphs: dict[str, Any]) -> None:
    """That is what DVC tracks, with what it tracks of section ``shared`` put in its place."""
    for job in graphs["code"].values():
        file = workspace.path / f".sandglass/params/{job['name']}.json"
        assert sorted(json.loads(file.read_text())) == job["read"]


def test_what_dvc_reads_is_what_parameters_and_code_ask_for() -> None:
    """If not: `python -m pipeline params --write`, and commit what it wrote."""
    stages.check(load_all(), REPOSITORY)


def test_lines_of_what_dvc_reads_can_be_read() -> None:
    lines = (REPOSITORY / "dvc.yaml").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 120 and lines.count("") > 200


def _files(path: str, made: set[str], tree: Path | None) -> set[str]:
    """The files that ``path`` of dvc.yaml stands for: itself, or what is made or lies in that folder."""
    inside = {file for file in made if _within(file, path)}
    folder = tree / path if tree else None
    if folder and folder.is_dir():
        inside |= {str(f.relative_to(tree)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}
    return inside or {path}


def _within(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")
