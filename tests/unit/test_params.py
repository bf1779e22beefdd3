"""params.yaml: what is wrong is refused in one line that names the path; nothing is converted or defaulted."""

from __future__ import annotations

import copy
import importlib
import io
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel
from ruamel.yaml import YAML

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.params.scales import SCALES, resolve

ROOT = Path(__file__).parents[2]


def raw() -> dict:
    return copy.deepcopy(params.load(ROOT).raw)


def load(tmp_path: Path, tree: dict | str) -> params.Params:
    if isinstance(tree, dict):
        text = io.StringIO()
        YAML().dump(tree, text)
        tree = text.getvalue()
    (tmp_path / "params.yaml").write_text(tree, encoding="utf-8")
    return params.load(tmp_path)


def put(tree: dict, path: str, value: object) -> None:
    *parents, last = path.split("/")
    for key in parents:
        tree = tree[key]
    tree[last] = value


def test_the_file_is_valid_at_every_scale() -> None:
    for scale in SCALES:
        loaded = params.load(ROOT, scale)
        assert loaded.scale == scale
        assert loaded.runs["dyck-standard"].replicas == {"smoke": 2, "quick": 10, "paper": 40}[scale]


# path -> new value, and what the line must say
MUTATIONS = [
    ("seeed", 3, ["seeed: unknown key", "did you mean 'seed'"]),
    ("scale", "papr", ["scale:", "'smoke', 'quick' or 'paper'", "'papr'"]),
    ("seed", -1, ["seed:", "greater than or equal to 0", "-1"]),
    ("seed", "7", ["seed:", "valid integer", "'7'"]),
    ("device", "gpu", ["device:", "'cpu'"]),
    ("datasets", [], ["datasets: expected a mapping"]),
    ("runs/dyck-standard/widht", 50, ["runs.dyck-standard.widht: unknown key", "did you mean 'width'"]),
    ("runs/dyck-standard/lr", "fast", ["runs.dyck-standard.lr:", "valid number", "'fast'"]),
    ("runs/dyck-standard/lr", -0.1, ["runs.dyck-standard.lr:", "greater than 0", "-0.1"]),
    ("runs/dyck-standard/heads", 3, ["runs.dyck-standard:", "multiple of heads"]),
    (
        "runs/dyck-standard/block",
        "gtp",
        ["runs.dyck-standard.block:", "'gpt', 'resln', 'stripped', 'no_skip' or 'eq6'"],
    ),
    ("runs/dyck-standard/study", "dyk", ["runs.dyck-standard.study:", "'dyk'", "did you mean 'dyck'"]),
    ("runs/dyck-standard/model", "transfomer", ["runs.dyck-standard.model:", "did you mean 'transformer'"]),
    (
        "runs/dyck-standard/dataset",
        "dyck-train-complet",
        ["runs.dyck-standard.dataset: no such dataset", "did you mean 'dyck-train-complete'"],
    ),
    (
        "runs/dyck-standard/steps",
        {"smoke": 1, "quik": 2, "paper": 3},
        ["runs.dyck-standard.steps: expected exactly the keys smoke, quick, paper", "did you mean 'quick'"],
    ),
    # An impossible value at a scale that is not in use is found all the same.
    (
        "runs/dyck-standard/steps",
        {"smoke": 1, "quick": 2, "paper": 0},
        ["runs.dyck-standard.steps:", "greater than or equal to 1"],
    ),
    ("datasets/dyck-train-complete/q", 1.5, ["datasets.dyck-train-complete.q:", "less than 1", "1.5"]),
    ("datasets/dyck-train-complete/min_length", 3, ["datasets.dyck-train-complete.min_length: unknown key"]),
    ("datasets/dyck-probe16/grammars", [], ["datasets.dyck-probe16.grammars:", "at least 1 item"]),
    (
        "datasets/dyck-probe16/grammars",
        [{"k": 2, "depth": 4, "dept": 4}],
        ["datasets.dyck-probe16.grammars.0.dept", "unknown key", "'depth'"],
    ),
    (
        "datasets/dyck-probe16/grammars",
        [{"k": 2, "depth": 4}] * 2,
        ["datasets.dyck-probe16:", "lists a grammar twice"],
    ),
    (
        "datasets/dyck-train-complete/sampler",
        "whole",
        ["datasets.dyck-train-complete.sampler: expected one of 'complete', 'prefix', 'nested', got 'whole'"],
    ),
    (
        "datasets/dyck-train-complete/sampler",
        {"a": ["much"] * 500},
        [
            "datasets.dyck-train-complete.sampler: expected one of 'complete'",
            "got {'a': ['much', 'much'",
            "…",
        ],
    ),
    (
        "datasets/dyck-length-generalisation/min_length",
        600,
        ["datasets.dyck-length-generalisation:", "exceed"],
    ),
    ("theory/dyck-sampler/module", "smapler", ["theory.dyck-sampler", "'sampler'"]),
    (
        "studies/dyck/runs",
        ["dyck-standard"],
        ["studies.dyck.runs: must list exactly the runs", "dyck-minimal"],
    ),
    ("studies/dyck/figures", ["fig3", "fig3"], ["studies.dyck.figures: lists a name twice"]),
    ("studies/dyck/analysis/resamples", True, ["studies.dyck.analysis.resamples:", "valid integer"]),
    ("studies/dyck/analysis/confidnce", 1, ["studies.dyck.analysis.confidnce: unknown key", "'confidence'"]),
    ("studies/dykc", {}, ["studies.dykc: there is no package pipeline/studies/dykc", "did you mean 'dyck'"]),
    ("runs/Dyck_Standard", {}, ["runs.Dyck_Standard (the id):", "match pattern"]),
    ("runs/dyck.standard", {}, ["runs.dyck.standard (the id):", "match pattern"]),
]


@pytest.mark.parametrize(("path", "value", "expected"), MUTATIONS, ids=[f"{m[0]}={m[1]}" for m in MUTATIONS])
def test_a_wrong_value_is_one_line_that_names_it(
    tmp_path: Path, path: str, value: object, expected: list[str]
) -> None:
    tree = raw()
    put(tree, path, value)
    with pytest.raises(SandglassError) as error:
        load(tmp_path, tree)
    text = str(error.value)
    assert text.startswith("params.yaml: ")
    assert "\n" not in text
    for part in expected:
        assert part in text, text


@pytest.mark.parametrize("path", ["seed", "runs/dyck-standard/lr", "studies/dyck/claims", "studies/dyck"])
def test_a_missing_value_is_named(tmp_path: Path, path: str) -> None:
    tree = raw()
    *parents, last = path.split("/")
    owner = tree
    for key in parents:
        owner = owner[key]
    del owner[last]
    with pytest.raises(SandglassError, match=r"missing|expected"):
        load(tmp_path, tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a mapping"),
        ("- 1\n", "expected a mapping"),
        ("scale: [quick\n", "line 2: not valid YAML"),
        ("scale: quick\nscale: paper\n", "not valid YAML"),
        ("\x00", "not valid YAML"),
        ("scale: !!python/object:os.system x\n", "not valid YAML"),
    ],
)
def test_what_is_not_yaml_is_one_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(SandglassError) as error:
        load(tmp_path, text)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SandglassError, match=r"^params\.yaml: cannot be read"):
        params.load(tmp_path)


def models(module: str) -> list[type[BaseModel]]:
    found = vars(importlib.import_module(module)).values()
    return [m for m in found if isinstance(m, type) and issubclass(m, params.Strict)]


@pytest.mark.parametrize("module", ["pipeline.params", "pipeline.studies.dyck.params"])
def test_no_parameter_has_a_default(module: str) -> None:
    """Else a change of the default would change results that no tracked parameter explains.

    What is absent where it would mean nothing (no contrastive term, no prefix of it) is None, and a validator says
    when it must be there.
    """
    for model in models(module):
        for name, field in model.model_fields.items():
            assert field.is_required() or field.default is None, f"{model.__name__}.{name}"


def test_validation_changes_nothing() -> None:
    loaded = params.load(ROOT)
    for section in ("datasets", "runs", "theory"):
        for key, entry in getattr(loaded, section).items():
            assert entry.model_dump(exclude_none=True) == resolve(loaded.raw[section][key], loaded.scale)


def test_reading_parameters_is_light() -> None:
    code = "import sys; from pipeline import params, graph; params.load(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "polars", "pandera", "numpy"} & set(done.stdout.split())


def test_a_dotted_path_leads_to_the_raw_value() -> None:
    loaded = params.load(ROOT)
    assert loaded.value("scale") == loaded.scale
    assert loaded.value("runs.dyck-standard.steps") == {"smoke": 10, "quick": 1200, "paper": 4240}
