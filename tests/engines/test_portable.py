"""A run that is trained in another place comes back as if it had been trained here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ruamel.yaml import YAML
from workspace import REPOSITORY, Workspace

from pipeline.engine.snakemake import KINDS

RUN = "dyck-standard"
# Python without this project: only what stands beside the folder can be imported, and the libraries.
ALONE = (sys.executable, "-P")


def command(workspace: Workspace, *arguments: str) -> str:
    done = workspace.run(sys.executable, "-m", "pipeline", "train", *arguments)
    return f"{done.status} {done.output}"


def trained(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    program = [*ALONE, "trainer.pyz", *arguments]
    return subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_another_machine_trained_is_what_would_have_been_trained_here(dyck: Workspace, tmp_path: Path) -> None:
    before, folder = dyck.artifacts(), tmp_path / "away"
    taken = (RUN, "--import", str(folder))
    assert command(dyck, RUN, "--export", str(folder)).startswith("0 ")
    assert "not empty: name a new folder" in command(dyck, RUN, "--export", str(folder))
    assert "trained.json is missing" in command(dyck, *taken)
    with zipfile.ZipFile(folder / "trainer.pyz") as packed:
        names = set(packed.namelist())
    assert "pipeline/training/core.py" in names and not any("studies" in name or "engine" in name for name in names)
    assert "torch, numpy and safetensors;" in (folder / "README.txt").read_text()

    done = trained(folder, "--speed")
    assert done.returncode == 0 and "times as fast" in done.stdout, done.stderr
    rows = json.loads((folder / "speed.json").read_text())["seconds_per_step"]
    assert all(row["together"] > 0 and row["alone"] > 0 for row in rows)
    assert not [*folder.glob("jobs/*/chunks")]

    done = trained(folder)
    assert done.returncode == 0, done.stderr
    assert "step" in done.stderr and "trained" in done.stdout
    chunk = min(folder.glob("jobs/*/chunks/*"))
    kept = chunk.read_bytes()
    chunk.unlink()
    assert "not trained to the end" in command(dyck, *taken)
    assert trained(folder).returncode == 0 and chunk.read_bytes() == kept
    for part in folder.glob("jobs/*/chunks"):
        shutil.rmtree(part)
    assert "at least 1" in trained(folder, "--at-once", "0").stderr
    done = trained(folder, "--at-once", "3")
    assert done.returncode == 0 and "trained" in done.stdout, done.stderr
    assert chunk.read_bytes() == kept
    job = chunk.parents[1] / "job.safetensors"
    whole = job.read_bytes()
    shutil.rmtree(chunk.parent)
    job.write_bytes(whole[:100])
    done = trained(folder, "--at-once", "3")
    assert done.returncode == 1 and f"not trained to the end: {job.parent.name}" in done.stderr
    job.write_bytes(whole)
    assert trained(folder, "--at-once", "3").returncode == 0

    parameters = (dyck.path / "params.yaml").read_text()
    dyck.change(lambda tree: tree.update(seed=1))
    assert "is not what parameters, data and code ask for here" in command(dyck, *taken)
    (dyck.path / "params.yaml").write_text(parameters)
    assert dyck.artifacts() == before

    shutil.rmtree(dyck.path / "data/runs/dyck" / RUN)
    assert dyck.artifacts() != before
    said = command(dyck, *taken)
    assert said.startswith("0 "), said
    assert dyck.artifacts() == before
    record = json.loads((folder / "trained.json").read_text())
    assert record["device"] == "cpu" and {*record["seconds"]} == {path.name for path in folder.glob("jobs/*")}
    assert json.loads((dyck.path / f"logs/steps/train-{RUN}.json").read_text())["trained_on"] == record
    dyck.assert_clean()


WRONG = [("no-such-run", "--export", "x"), (RUN, "--import", "no-such-folder"), (RUN, "--import", "x", "--export", "y")]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_there_gets_one_line(built: Workspace, words: tuple[str, ...]) -> None:
    said = command(built, *words)
    assert said[0] in "12" and "Traceback" not in said


def test_a_gpu_that_is_not_there_is_refused(dyck: Workspace, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert command(dyck, RUN, "--export", str(tmp_path / "away")).startswith("0 ")
    assert "torch finds no GPU" in trained(tmp_path / "away", "--device", "cuda").stderr


@pytest.mark.slow
def test_what_a_machine_without_engines_built_is_recorded_as_if_it_had_been_built_here(
    alone: Callable[[str], Workspace], forks: dict[str, str], tmp_path: Path
) -> None:
    """It is stopped at once and goes on; datasets and checkpoints stay there, and the record is what DVC writes."""
    built = alone("nce")
    there, here = (
        Workspace(Path(shutil.copytree(built.path, tmp_path / name, symlinks=True)), forks)
        for name in ("there", "here")
    )
    for folder in (workspace.path / "data" / kind for workspace in (there, here) for kind in KINDS):
        shutil.rmtree(folder)
    script, out = str(REPOSITORY / "benchmarks/one_machine.py"), str(tmp_path / "out")
    build = (sys.executable, script, "build", "nce", "--out", out, "--device", "cpu", "--at-once", "2")
    assert there.run(*build, "--seconds", "0.01").status == 1
    done = there.run(*build)
    assert done.status == 0, done.output
    (here.path / "dvc.lock").unlink()
    done = here.run(sys.executable, script, "take", out, "nce")
    assert done.status == 0, done.output
    assert not [*(here.path / "data").rglob("*.safetensors")]
    kept = {path: md5 for path, md5 in built.artifacts().items() if path.startswith(("tables", "theory", "claims"))}
    assert kept and kept.items() <= here.artifacts().items()
    expected = _stages(built)
    del expected["report"]
    assert _stages(here) == expected


def _stages(workspace: Workspace) -> dict[str, Any]:
    text = (workspace.path / "dvc.lock").read_text(encoding="utf-8")
    stages: dict[str, Any] = YAML(typ="safe").load(text)["stages"]
    return {name: {part: _sorted(value) for part, value in stage.items()} for name, stage in stages.items()}


def _sorted(value: Any) -> Any:
    return sorted(value, key=lambda entry: str(entry["path"])) if isinstance(value, list) else value
