"""Grids of variants: which members they make, and that what is no grid is one line that names the place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from dvc.utils.hydra import apply_overrides
from workspace import load_study, write_study

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.params import grids
from pipeline.params.checking import File
from pipeline.references.record import lock_parameters

GRID = {
    "grid": {"id": "x-{kind}-{size}", "kind": ["a", {"b": {"lr": 2}}], "size": [1, {"large": 64}]},
    "like": "base-{kind}",
    "width": "{size}",
    "deep": {"list": ["{size}", "no field"], "flag": True},
}


def expanded(variants: dict[str, Any]) -> Any:
    return grids.expand(File("params/x/runs.yaml"), "x-run", {"lr": 1, "variants": variants})


def test_members_stand_where_the_grid_stood_and_the_last_choice_changes_fastest() -> None:
    variants = {"x-first": {}, "all": copy.deepcopy(GRID), "x-last": {"lr": 3}}
    before = copy.deepcopy(variants)
    entry = expanded(variants)
    assert list(entry) == ["lr", "variants"]
    ids = ["x-a-1", "x-a-large", "x-b-1", "x-b-large"]
    assert list(entry["variants"]) == ["x-first", *ids, "x-last"]
    assert entry["variants"]["x-a-1"] == {"like": "base-a", "width": 1, "deep": {"list": [1, "no field"], "flag": True}}
    assert entry["variants"]["x-b-large"]["width"] == 64
    assert variants == before


def test_a_choice_may_hold_several_values() -> None:
    grid = {"id": "x-{at}", "at": [{"early": {"start": 0, "rate": {"quick": 1}}}, {"late": {"start": 9, "rate": 2}}]}
    made = expanded({"all": {"grid": grid, "start": "{at.start}", "rate": "{at.rate}"}})
    assert made["variants"] == {"x-early": {"start": 0, "rate": {"quick": 1}}, "x-late": {"start": 9, "rate": 2}}


@pytest.mark.parametrize(
    ("grid", "rest", "message"),
    [
        (3, {}, r"all.grid: expected `id` and what there is to choose from, got 3"),
        ({"id": "x"}, {}, r"all.grid: expected `id` and what there is to choose from"),
        ({"size": [1]}, {}, r"all.grid: expected `id`"),
        ({"id": "x-{size}", "size": 3}, {}, r"all.grid.size: expected a list to choose from, got 3"),
        ({"id": "x-{size}", "size": []}, {}, r"all.grid.size: expected a list to choose from"),
        ({"id": "x-{size}", "size": [[1]]}, {}, r"all.grid.size: expected a value or `label: value`, got \[1\]"),
        ({"id": "x-{size}", "size": [{"a": 1, "b": 2}]}, {}, r"all.grid.size: expected a value or"),
        ({"id": "x-{sise}", "size": [1]}, {}, r"all.grid: has no 'sise', .* \(did you mean 'size'\?\)"),
        ({"id": "x-{size}", "size": [1]}, {"width": "{width}"}, r"all.grid: has no 'width'"),
        ({"id": "x-{size}", "size": [1]}, {"width": "{size.deep}"}, r"all.grid.size: 1 has no 'deep'"),
        ({"id": "x", "size": [1, 2]}, {}, r"all: 'x' is a variant already"),
        ({"id": "x-first{size}", "size": [{"": 1}]}, {}, r"all: 'x-first' is a variant already"),
        (
            {"id": "x-{a}-{b}-{c}-{d}"} | {name: list(range(20)) for name in "abcd"},
            {"width": 3},
            r"all.grid: more than 100000 values",
        ),
    ],
)
def test_what_is_no_grid_is_one_line(grid: Any, rest: dict[str, Any], message: str) -> None:
    variants = {"x-first": {}, "all": {"grid": grid} | rest}
    with pytest.raises(SandglassError, match=rf"^params/x/runs.yaml: x-run.variants.*{message}") as refused:
        expanded(variants)
    assert "\n" not in str(refused.value)
    entry = {"variants": variants}
    assert grids.recorded(entry) is entry


def test_a_record_of_a_grid_is_that_of_its_members() -> None:
    entry = {"variants": {"all": GRID}}
    values = {"x-run": entry} | {f"shared.base-{kind}": {"lr": lr} for kind, lr in (("a", 1), ("b", 2))}
    (members,) = lock_parameters({"params": {"params/x/runs.yaml": values}}).values()
    assert members["variants"]["x-b-1"] == {"lr": 2, "width": 1, "deep": {"list": [1, "no field"], "flag": True}}


def test_a_program_sets_what_a_grid_chooses_from(tmp_path: Path) -> None:
    write_study(tmp_path, "dyck")
    file = tmp_path / params.study_file("dyck", "runs")
    apply_overrides(str(file), ["dyck-stack.variants.all.grid.block=[gpt]", "+dyck-stack.variants.all.lr=0.5"])
    members = [name for name in load_study("dyck").members("runs") if name.startswith("dyck-stack-")]
    with pytest.raises(SandglassError, match=r"runs.yaml: 'dyck-stack-resln-\S+' is missing, which pipeline"):
        params.load(tmp_path)
    assert len(members) == 32
    apply_overrides(str(file), ["dyck-stack.variants.all.grid.block=[gpt,resln]"])
    assert {params.load(tmp_path).members("runs")[name].lr for name in members} == {0.5}
