"""The index of the Dyck study: every id has an artifact that the graph makes and code that exists."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.report import catalogue, index

ROOT = Path(__file__).parents[2]
COUNTS = {"D": 8, "M": 10, "T": 3, "A": 6, "E": 11, "TH": 10, "F": 13, "TAB": 1}  # the chapter's inventory


@pytest.fixture
def artifacts(monkeypatch: pytest.MonkeyPatch) -> list[catalogue.Artifact]:
    monkeypatch.chdir(ROOT)
    return catalogue.artifacts(params.load())


def test_every_item_has_artifacts_and_code(artifacts: list[catalogue.Artifact]) -> None:
    items = index.load("dyck", artifacts)
    assert all(item.what and item.artifacts and item.code for item in items)
    ids = [re.fullmatch(r"([A-Z]+)(\d+)", item.id) for item in items]
    numbers = {
        group: [int(m[2]) for m in found] for group, found in groupby(filter(None, ids), lambda m: m[1])
    }
    assert numbers == {group: list(range(1, count + 1)) for group, count in COUNTS.items()}


def test_every_table_figure_and_theory_check_is_in_the_index(artifacts: list[catalogue.Artifact]) -> None:
    shown = {artifact for item in index.load("dyck", artifacts) for artifact in item.artifacts}
    missing = {a.name for a in artifacts if a.kind in ("table", "figure", "theory") and a not in shown}
    aids = {"runs", "readings", "stack_score", "broken_solvers", "training_length"}  # of ours, without an id
    assert missing <= aids


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"artifacts": ["tables/dyck/nothing.parquet"]},
            "A1: nothing makes data/tables/dyck/nothing.parquet",
        ),
        ({"code": ["stats:nothing"]}, "A1: pipeline/stats.py has no nothing"),
        ({"code": ["nowhere:check"]}, "A1: pipeline/nowhere.py has no check"),
        ({"code": None}, "not an index"),
    ],
)
def test_what_does_not_exist_is_named(
    artifacts: list[catalogue.Artifact],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, list[str]],
    message: str,
) -> None:
    entry = {
        "what": "accuracy",
        "artifacts": ["tables/dyck/accuracy.parquet"],
        "code": ["stats:median"],
    } | change
    folder = tmp_path / "pipeline/studies/dyck"
    folder.mkdir(parents=True)
    (tmp_path / "pipeline/stats.py").write_text((ROOT / "pipeline/stats.py").read_text())
    with (folder / "index.yaml").open("w") as out:
        YAML(typ="safe").dump({"A1": entry}, out)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SandglassError, match=message):
        index.load("dyck", artifacts)
