"""A run whose replicas are 0 at a scale: its step leaves files without a model, and nobody measures it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline import params
from pipeline.access.replica import Replica
from pipeline.errors import SandglassError
from pipeline.steps import analyse, train
from pipeline.store import checkpoints, tables
from schemas.curves import Curves

ROOT = Path(__file__).parents[2]
FOLDER = Path("data/runs/dyck/dyck-standard-half")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree in which this run was "trained" and nothing else is there, not even its dataset."""
    monkeypatch.chdir(tmp_path)
    entry = params.load(ROOT, "smoke").runs["dyck-standard-half"].model_copy(update={"replicas": 0})

    def out(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    job = SimpleNamespace(
        study="dyck", id="dyck-standard-half", entry=entry, scale="smoke", params_hash="abc", out=out,
        say=lambda text: None,
    )  # fmt: skip
    train.run(job)
    return tmp_path


def test_its_files_are_valid_and_hold_no_model(empty: Path) -> None:
    arrays, header = checkpoints.read(FOLDER / "model.safetensors")
    assert arrays == {} and header["entry"]["replicas"] == 0
    assert tables.read(FOLDER / "curves.parquet", Curves).height == 0
    assert json.loads((FOLDER / "curves.json").read_text()) == []


def test_nobody_measures_or_loads_it(empty: Path) -> None:
    entry = SimpleNamespace(runs=["dyck-standard-half"])
    assert analyse.Context("dyck", entry, "smoke", 1, "abc").runs() == []
    with pytest.raises(SandglassError, match="run dyck-standard-half has no replicas at this scale"):
        Replica.load(FOLDER / "model.safetensors", 0)
