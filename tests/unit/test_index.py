"""The index of a study: what its file says, what follows from the parameters, and what does not exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from workspace import load_all

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.report import catalogue, index

ROOT = Path(__file__).parents[2]
STUDIES = list(YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))["studies"])
Indexed = Callable[[Any], dict[str, index.Item]]


@pytest.fixture(scope="module")
def loaded() -> params.Params:
    return load_all()


@pytest.fixture(scope="module")
def artifacts(loaded: params.Params) -> list[catalogue.Artifact]:
    return catalogue.artifacts(loaded)


@pytest.mark.parametrize("study", STUDIES)
def test_every_item_has_words_artifacts_and_code(
    loaded: params.Params, artifacts: list[catalogue.Artifact], study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    items = index.load(study, loaded, artifacts)
    assert items and all(item.what and item.artifacts and item.code for item in items)
    assert len({item.id for item in items if item.said}) == sum(item.said for item in items)
    shown = {artifact for item in items for artifact, _ in item.artifacts}
    assert shown >= {each for each in artifacts if each.job.study == study and each.kind in index.CLOSING}


def test_every_artifact_is_made_by_a_function(
    loaded: params.Params, artifacts: list[catalogue.Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert [each.title for each in artifacts if not index.made_by(each, loaded)] == []


def test_files_of_runs_without_models_are_told_apart(
    loaded: params.Params, artifacts: list[catalogue.Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    members = loaded.members("runs")
    known = [
        (path, path in item.untrained)
        for study in STUDIES
        for item in index.load(study, loaded, artifacts)
        for artifact, path in item.artifacts
        if item.said and artifact.kind == "run"
    ]
    assert all(without == (members[path.stem].replicas == 0) for path, without in known)
    assert {without for _, without in known} == {True, False}


@pytest.fixture
def indexed(
    tmp_path: Path, loaded: params.Params, artifacts: list[catalogue.Artifact], monkeypatch: pytest.MonkeyPatch
) -> Indexed:
    """Gives the index of `depth` by its ids, as a file with some entries makes it; without a file for None."""

    def load(entries: Any) -> dict[str, index.Item]:
        study = tmp_path / "pipeline/studies/depth"
        study.mkdir(parents=True)
        others = [each for each in (ROOT / "pipeline").iterdir() if each.name != "studies"]
        for each in [*others, *(ROOT / "pipeline/studies/depth").iterdir()]:
            (tmp_path / each.relative_to(ROOT)).symlink_to(each)
        (study / index.INDEX).unlink()
        if entries is not None:
            with (study / index.INDEX).open("w", encoding="utf-8") as out:
                YAML(typ="safe").dump(entries, out)
        monkeypatch.chdir(tmp_path)
        return {item.id: item for item in index.load("depth", loaded, artifacts)}

    return load


def names(item: index.Item) -> list[str]:
    return [str(path) for _, path in item.artifacts]


def functions(item: index.Item) -> list[str]:
    return [f"{source.path.relative_to('pipeline')}:{source.name}" for source in item.code]


def test_names_stand_for_files_and_functions(indexed: Indexed, loaded: params.Params) -> None:
    entries = {
        "whole": {"what": "all of it", "experiments": ["depth-exp-6"]},
        "one": {
            "what": "a table",
            "tables": ["depth-exp-6/accuracy"],
            "code": ["studies/depth/measures/training:accuracy"],
        },
        "all": {"what": "a table", "tables": ["accuracy"]},
        "drawn": {"figures": ["fig2"]},
        "proved": {"theory": ["depth-one-layer"]},
        "data": {"what": "a variant", "datasets": ["depth-sc-sizes"]},
        "group": {"what": "an entry", "runs": ["depth-memorization"]},
    }
    found = indexed(entries)
    experiment = loaded.experiments["depth-exp-6"]
    assert len(names(found["whole"])) == len(experiment.tables) + len(experiment.figures)
    assert names(found["one"]) == ["data/tables/depth/depth-exp-6/accuracy.parquet"]
    assert functions(found["one"]) == ["studies/depth/measures/training.py:accuracy"]
    making = [key for key, own in loaded.of_study("experiments", "depth").items() if "accuracy" in own.tables]
    assert names(found["all"]) == [f"data/tables/depth/{key}/accuracy.parquet" for key in making]
    assert "studies/depth/analysis/nested.py:analyse" in functions(found["all"])
    assert names(found["drawn"]) == ["data/figures/depth/depth-exp-1/fig2.svg"]
    assert found["drawn"].what == "Figure 2: accuracy and loss by depth on the four tasks"
    assert functions(found["drawn"]) == ["studies/depth/figures/layers.py:fig2"]
    assert functions(found["proved"]) == ["studies/depth/theory/one_layer.py:check"] and found["proved"].what
    assert names(found["data"]) == ["data/datasets/depth/depth-sc/depth-sc-sizes.parquet"]
    assert len(names(found["group"])) == len(loaded.runs["depth-memorization"].members)
    assert functions(found["group"]) == [
        "models/attention_only/network.py:forward",
        "training/objectives/classification.py:Objective",
    ]


def test_what_no_item_names_closes_the_index(indexed: Indexed, artifacts: list[catalogue.Artifact]) -> None:
    found = indexed(None)
    assert not any(item.said for item in found.values())
    expected = {each.job.id for each in artifacts if each.job.study == "depth" and each.kind in index.CLOSING}
    assert set(found) == expected and all(item.what != item.id for item in found.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": ["nothing"]}, "A1: no table 'nothing'"),
        ({"tables": ["acuracy"]}, "A1: no table 'acuracy'; did you mean accuracy"),
        ({"figures": ["accuracy"]}, "A1: no figure 'accuracy'"),
        ({"tabels": ["accuracy"]}, "A1: no 'tabels' in an index; did you mean tables"),
        ({"tables": []}, "A1: nothing shows it"),
        ({"code": ["kit/stats:nothing"]}, "A1: pipeline/kit/stats.py has no nothing"),
        ({"code": ["nowhere:check"]}, "A1: pipeline/nowhere.py has no check"),
        ({"code": None}, "not an index"),
    ],
)
def test_what_does_not_exist_is_named(indexed: Indexed, change: dict[str, list[str]], message: str) -> None:
    entry = {"what": "accuracy", "tables": ["accuracy"], "code": ["kit/stats:simplex_distance"]}
    with pytest.raises(SandglassError, match=message):
        indexed({"A1": entry | change})
