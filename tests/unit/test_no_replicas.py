"""A run whose replicas are 0 at a scale: its step leaves files without a model, and nobody measures it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline import params
from pipeline.access.replica import Replica
from pipeline.errors import SandglassError
from pipeline.kit.inputs import Inputs
from pipeline.steps import train
from pipeline.store import checkpoints, tables
from schemas.curves import Curves

ROOT = Path(__file__).parents[2]
ENTRY, MEMBER = "dyck-readings", "dyck-standard-double"
FOLDER = Path("data/runs/dyck") / ENTRY


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree in which a run was "trained" and nothing else is there, not even its dataset."""
    monkeypatch.chdir(tmp_path)
    group = params.load(ROOT, "smoke").runs[ENTRY]
    members = {key: each.model_copy(update={"replicas": 0}) for key, each in group.members.items()}

    def out(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    job = SimpleNamespace(
        study="dyck",
        id=ENTRY,
        entry=replace(group, members=members),
        scale="smoke",
        params_hash="0" * 32,
        out=out,
        say=lambda text: None,
    )
    train.run(job)
    return tmp_path


def test_its_files_are_valid_and_hold_no_model(empty: Path) -> None:
    arrays, header = checkpoints.read(FOLDER / f"{MEMBER}.safetensors")
    assert arrays == {} and header["entry"]["replicas"] == 0
    assert (header["run"], header["job"]) == (MEMBER, ENTRY)
    assert tables.read(FOLDER / "curves.parquet", Curves).height == 0
    assert json.loads(FOLDER.with_suffix(".json").read_text()) == []


def test_nobody_measures_or_loads_it(empty: Path) -> None:
    entry = SimpleNamespace(runs=[ENTRY], datasets=[])
    context = Inputs("dyck", "dyck-readings", entry, None, "smoke", 1, "abc")
    assert context.runs() == []
    assert context.run_header(MEMBER)["entry"]["replicas"] == 0
    with pytest.raises(SandglassError, match=f"run {MEMBER} has no replicas at this scale"):
        Replica.load(FOLDER / f"{MEMBER}.safetensors", 0)
