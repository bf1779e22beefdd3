"""Each real study through Snakemake at smoke scale, and what its steps import against what they declare."""

from __future__ import annotations

import ast
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY, STUDIES, Workspace

from pipeline import params
from schemas.claims import NOT_RUN, TOO_FEW

CLAIMS = {
    "dyck": 25,
    "depth": 9,
    "nce": 18,
    "automata": 30,
    "flipflop": 27,
    "distillation": 33,
}  # of the chapters, and after them our own
# Cannot change a result: they refuse, name paths, lock, log, and hold docstrings.
EXEMPT = {
    "pipeline/__main__.py",
    "pipeline/engine/snakemake.py",
    "pipeline/errors.py",
    "pipeline/engine/graph.py",
    "pipeline/engine/preload.py",
    "pipeline/params/__init__.py",
    "pipeline/params/checking.py",
    "pipeline/params/entries.py",
    "pipeline/params/reading.py",
    "pipeline/engine/runner.py",
    "pipeline/engine/software.py",
    *(f"pipeline/studies/{study}/params.py" for study in STUDIES),
    # Lists of names: every start holds them against the parameters. What takes more from them declares them.
    *(f"pipeline/studies/{study}/names.py" for study in STUDIES),
}
STEP_PACKAGES = {"claims"}  # dvc.yaml declares this folder of a study


Smoke = Callable[[str], Workspace]


@pytest.mark.parametrize("study", STUDIES)
def test_everything_is_built_and_recorded(smoke_of: Smoke, study: str) -> None:
    code = (
        "from pipeline import params; from pipeline.engine import graph; p = params.load(); "
        "print(*[f for j in graph.jobs(p) for f in graph.outputs(j, p) if not f.is_file()])"
    )
    smoke = smoke_of(study)
    assert smoke.run("python", "-c", code).output.strip() == ""
    smoke.assert_clean()
    assert "&id" not in (smoke.path / "dvc.lock").read_text()  # entries of params.yaml share values


def test_all_studies_in_one_work_tree_are_what_each_is_alone(smoke: Workspace) -> None:
    smoke.assert_clean()


@pytest.mark.parametrize("study", STUDIES)
def test_no_claim_is_judged_at_smoke_scale(smoke_of: Smoke, study: str) -> None:
    claims = pl.read_parquet(smoke_of(study).path / f"data/claims/{study}/claims.parquet")
    numbers = {int(claim) for claim in claims["claim"]}
    assert numbers == set(range(1, CLAIMS.get(study, max(numbers)) + 1))
    assert {NOT_RUN} <= set(claims["verdict"]) <= {NOT_RUN, TOO_FEW}


@pytest.mark.parametrize("study", STUDIES)
def test_figures_carry_their_data_in_three_forms(smoke_of: Smoke, study: str) -> None:
    folder = smoke_of(study).path
    for experiment, name in figures_of(folder):
        base = folder / f"data/figures/{study}" / experiment / name
        assert base.with_suffix(".svg").read_text().startswith("<svg")
        chart = json.loads(base.with_suffix(".vl.json").read_text())
        assert chart["$schema"].startswith("https://vega")
        assert not lost_titles(chart), f"{name}: an axis without a title takes it from the layers beside it"
        assert pl.read_parquet(base.with_suffix(".parquet")).height > 0


def lost_titles(chart: Any) -> list[set[str | None]]:
    """The titles of each axis that one layer gives words and another none: such an axis is drawn without."""
    if isinstance(chart, list):
        return [titles for part in chart for titles in lost_titles(part)]
    if not isinstance(chart, dict):
        return []
    if "layer" not in chart:
        return [axis for key, part in chart.items() if key != "datasets" for axis in lost_titles(part)]
    every = [axis_titles(chart, channel, {}) for channel in ("x", "y")]
    return [titles for titles in every if None in titles and len(titles) > 1]


def axis_titles(layer: dict[str, Any], channel: str, above: dict[str, Any]) -> set[str | None]:
    """The titles that the layers of a panel give the axis of a channel; not of layers that leave the title out."""
    encoding = above | layer.get("encoding", {})
    if "layer" in layer:
        return {title for part in layer["layer"] for title in axis_titles(part, channel, encoding)}
    own = encoding.get(channel, {})
    return {own["title"]} if {"title", "field"} <= {*own} else set()


def figures_of(folder: Path) -> list[tuple[str, str]]:
    """Experiment and name of each figure of the parameters in ``folder``."""
    experiments = params.load(folder).experiments
    return [(key, name) for key, experiment in experiments.items() for name in experiment.figures]


@pytest.mark.parametrize("study", STUDIES)
def test_the_report_shows_every_figure_claim_and_artifact(smoke_of: Smoke, study: str) -> None:
    smoke = smoke_of(study)
    site = smoke.path / "data/report"
    page = (site / f"study/{study}.html").read_text()
    for _, name in figures_of(smoke.path):
        assert f'id="figure-{name}"' in page
        assert len(list((site / "figures").rglob(f"{name}.view.svg"))) == 1
        for suffix in ("js", "svg", "parquet", "vl.json"):
            assert len(list((site / "figures").rglob(f"{name}.{suffix}"))) == 1
    claims = pl.read_parquet(smoke.path / f"data/claims/{study}/claims.parquet")
    for claim in claims["claim"].unique():
        assert f'id="claim-{claim}"' in page
    made = {path for path in smoke.artifacts() if not path.startswith("report/")}
    pages = "".join(path.read_text() for path in (site / "artifact").rglob("*.html"))
    assert all(f"<code>data/{path}</code>" in pages for path in made)
    assert "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("study", STUDIES)
def test_every_erratum_says_in_a_sentence_what_is_wrong_and_what_follows(smoke_of: Smoke, study: str) -> None:
    theory = (smoke_of(study).path / f"data/theory/{study}").glob("*.parquet")
    errata = set(pl.concat([pl.read_parquet(file, columns=["erratum"]) for file in theory])["erratum"]) - {""}
    file = REPOSITORY / f"pipeline/studies/{study}/errata.yaml"
    words = YAML(typ="safe").load(file.read_text(encoding="utf-8"))
    assert errata == words.keys()
    assert all(entry[key].endswith(".") for entry in words.values() for key in ("title", "follows"))


def _stages(smoke: Workspace) -> dict[str, set[str]]:
    """Command -> inputs that dvc.yaml declares (Snakefile declares the same: test_graphs_agree).

    DVC is asked once; its answer lies beside the work tree.
    """
    file = smoke.path.with_name("stages.json")
    if not file.is_file():
        code = (
            "import json; from dvc.repo import Repo; r = Repo(); "
            "print(json.dumps({s.cmd: [d.def_path for d in s.deps] for s in r.index.stages if s.cmd}))"
        )
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(smoke.run("python", "-c", code).output, encoding="utf-8")
        temporary.replace(file)
    return {cmd: set(deps) for cmd, deps in json.loads(file.read_text(encoding="utf-8")).items()}


def _used(smoke: Workspace) -> dict[str, set[str]]:
    """Command -> modules of the repository that it imported; a training worker counts for its run."""
    modules: dict[str, set[str]] = {}
    for file in (smoke.path.parent / "imports").iterdir():
        record: dict[str, Any] = json.loads(file.read_text())
        jobs = [word for word in record["argv"] if word.startswith(".work")]
        if jobs:  # .work/<study>/<run>/<member>/job.safetensors
            command = f"python -m pipeline train {Path(jobs[0]).parts[2]}"
        else:
            command = " ".join(["python -m pipeline", *record["argv"]])
        modules.setdefault(command, set()).update(record["used"])
    return modules


def _declared(smoke: Workspace) -> dict[str, set[str]]:
    return {
        command: {module for path in deps for module in _modules(smoke.path, path)}
        for command, deps in _stages(smoke).items()
    }


def _own(smoke: Workspace, used: set[str]) -> set[str]:
    """What of the imported modules can change a result."""
    own = {path for path in used if not path.endswith("__init__.py")} - EXEMPT
    own |= {path for path in used if path.split("/")[-2] in STEP_PACKAGES}
    return own | {names for path in own for names in _names_imported(path)}


@functools.cache
def _names_imported(path: str) -> list[str]:
    """The modules of names that a module imports: every start does so too, which counts for nothing.

    A module is read in the repository, of which each work tree holds a copy.
    """
    return list(_modules_of_names((REPOSITORY / path).read_text(encoding="utf-8")))


def _modules_of_names(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)) if "names" in text else ():
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline.studies."):
            path = (node.module or "").replace(".", "/")
            if path.endswith("/names"):
                yield f"{path}.py"
            elif any(alias.name == "names" for alias in node.names):
                yield f"{path}/names.py"


@pytest.mark.parametrize("study", STUDIES)
def test_each_step_imports_the_code_that_it_declares_and_no_other(smoke_of: Smoke, study: str) -> None:
    smoke = smoke_of(study)
    declared, used = _declared(smoke), _used(smoke)
    assert used.keys() == declared.keys()
    for command, modules in used.items():
        assert _own(smoke, modules) <= declared[command], command


def test_what_is_declared_is_imported_by_some_job(smoke_of: Smoke, request: pytest.FixtureRequest) -> None:
    """Which objective packs sequences, or which theorem needs statistics, the declaration does not say."""
    spare: dict[tuple[str, str], bool] = {}
    for study in STUDIES:
        smoke = smoke_of(study)
        declared = _declared(smoke)
        for command, modules in _used(smoke).items():
            step, own = command.split()[3], _own(smoke, modules)
            for path in declared[command]:
                spare[step, path] = spare.get((step, path), True) and path not in own
    # The report shows the md5 of all code, so it depends on more than it imports. Of a family of models an
    # experiment's analysis depends on all, as on what its study measures. Figures of a study need not draw comparisons.
    drawn = {("figures", f"pipeline/studies/{study}/comparisons.py") for study in STUDIES}
    unused = {place for place, spared in spare.items() if spared and place[0] != "report"}
    assert unused - drawn == set()


@functools.cache
def _modules(tree: Path, path: str) -> list[str]:
    """The modules that an input is or holds: the file itself, or what lies in that folder."""
    if path.endswith(".py"):
        return [path]
    if path.startswith("data/"):
        return []
    step = path.split("/")[-1] in STEP_PACKAGES
    files = (file for file in (tree / path).rglob("*.py") if step or file.name != "__init__.py")
    return [str(file.relative_to(tree)) for file in files]


def test_packages_hold_nothing_but_a_docstring() -> None:
    """They are imported by everything and declared by nothing, but for those of the code of one step.

    The one exception, pipeline/__init__.py, finds the functions for users when they are asked for, and settles the
    arithmetic before numpy is loaded: it imports that module, an input of every step, and no other
    (tests/engines/test_access.py).
    """
    for folder in ("pipeline", "schemas"):
        for file in (REPOSITORY / folder).rglob("__init__.py"):
            step = file.parent.name in STEP_PACKAGES and file.parents[2].name == "studies"
            apart = (REPOSITORY / f"pipeline/{name}__init__.py" for name in ("", "params/", "access/"))
            if step or file in apart:
                continue
            body = ast.parse(file.read_text()).body
            assert all(
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body
            ), file
