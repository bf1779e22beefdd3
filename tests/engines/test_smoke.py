"""The real studies through Snakemake at smoke scale, and what its steps import against what they declare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from workspace import REPOSITORY, Workspace

from pipeline import params

STUDIES = params.load(REPOSITORY).studies
CLAIMS = {"dyck": 22, "depth": 9, "nce": 16}  # of the chapters
# Cannot change a result: they refuse, name paths, lock, log, and hold docstrings.
EXEMPT = {
    "pipeline/__main__.py",
    "pipeline/engine/snakemake.py",
    "pipeline/errors.py",
    "pipeline/engine/graph.py",
    "pipeline/params/__init__.py",
    "pipeline/params/reading.py",
    "pipeline/engine/runner.py",
    "pipeline/engine/software.py",
    *(f"pipeline/studies/{study}/params.py" for study in STUDIES),
}
STEP_PACKAGES = {"analysis", "figures", "claims"}  # dvc.yaml declares these folders


def test_everything_is_built_and_recorded(smoke: Workspace) -> None:
    code = (
        "from pipeline import graph, params; p = params.load(); "
        "print(*[f for j in graph.jobs(p) for f in graph.outputs(j, p) if not f.is_file()])"
    )
    assert smoke.run("python", "-c", code).output.strip() == ""
    smoke.assert_clean()
    assert "&id" not in (smoke.path / "dvc.lock").read_text()  # entries of params.yaml share values


@pytest.mark.parametrize("study", STUDIES)
def test_no_claim_is_judged_at_smoke_scale(smoke: Workspace, study: str) -> None:
    claims = pl.read_parquet(smoke.path / f"data/claims/{study}/claims.parquet")
    assert {int(claim) for claim in claims["claim"]} == set(range(1, CLAIMS[study] + 1))
    assert claims["verdict"].unique().to_list() == ["not tested at this scale"]


@pytest.mark.parametrize("study", STUDIES)
def test_figures_carry_their_data_in_four_forms(smoke: Workspace, study: str) -> None:
    for name in STUDIES[study].figures:
        base = smoke.path / f"data/figures/{study}" / name
        assert base.with_suffix(".svg").read_text().startswith("<svg")
        assert base.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert json.loads(base.with_suffix(".vl.json").read_text())["$schema"].startswith("https://vega")
        assert pl.read_parquet(base.with_suffix(".parquet")).height > 0


@pytest.mark.parametrize("study", STUDIES)
def test_the_report_shows_every_figure_claim_and_artifact(smoke: Workspace, study: str) -> None:
    site = smoke.path / "data/report"
    page = (site / f"study/{study}.html").read_text()
    for name in STUDIES[study].figures:
        assert f'src="../figures/{study}/{name}.view.svg"' in page
        for suffix in ("js", "svg", "png", "parquet", "vl.json"):
            assert (site / f"figures/{study}/{name}.{suffix}").is_file()
    claims = pl.read_parquet(smoke.path / f"data/claims/{study}/claims.parquet")
    for claim in claims["claim"].unique():
        assert f'id="claim-{claim}"' in page
    made = {path for path in smoke.artifacts() if not path.startswith("report/")}
    told = "".join(path.read_text() for path in (site / "artifact").iterdir())
    assert all(f"<code>data/{path}</code>" in told for path in made)
    assert "http" not in page.replace("http://www.w3.org", "")


def _stages(smoke: Workspace) -> dict[str, set[str]]:
    """Command -> inputs that dvc.yaml declares (Snakefile declares the same: test_graphs_agree)."""
    code = (
        "import json; from dvc.repo import Repo; r = Repo(); "
        "print(json.dumps({s.cmd: [d.def_path for d in s.deps] for s in r.index.stages if s.cmd}))"
    )
    stages = json.loads(smoke.run("python", "-c", code).output)
    return {cmd: set(deps) for cmd, deps in stages.items()}


def _used(smoke: Workspace) -> dict[str, set[str]]:
    """Command -> modules of the repository that it imported; a training worker counts for its run."""
    found: dict[str, set[str]] = {}
    for file in (smoke.path.parent / "imports").iterdir():
        record: dict[str, Any] = json.loads(file.read_text())
        if record["argv"][0].startswith(".work"):
            command = f"python -m pipeline train {Path(record['argv'][0]).parent.name}"
        else:
            command = " ".join(["python -m pipeline", *record["argv"]])
        found.setdefault(command, set()).update(record["used"])
    return found


def test_each_step_imports_the_code_that_it_declares_and_no_other(smoke: Workspace) -> None:
    """What is declared by the jobs of one step is imported by some of those that declare it: which objective packs
    sequences, or which theorem needs statistics, the declaration does not say."""
    stages, used = _stages(smoke), _used(smoke)
    declared = {cmd: set(_modules(smoke.path, deps)) for cmd, deps in stages.items()}
    assert used.keys() == declared.keys()
    spare: dict[tuple[str, str], bool] = {}
    for command, modules in used.items():
        packages = {path for path in modules if path.endswith("__init__.py")}
        own = modules - packages - EXEMPT
        assert own <= declared[command], command
        step = command.split()[3]
        for path in declared[command]:
            spare[step, path] = spare.get((step, path), True) and path not in own
    # The report shows the md5 of all code, so it depends on more than it imports.
    assert {place for place, unused in spare.items() if unused and place[0] != "report"} == set()


def _modules(tree: Path, deps: list[str]) -> Iterator[str]:
    """The modules among ``deps``: files, and what lies in folders, whose own __init__.py is imported with them."""
    for path in deps:
        inside = (tree / path).rglob("*.py") if not path.startswith("data/") else []
        found = [file for file in inside if file.name not in ("__init__.py", "toy.py")]
        yield from (str(file.relative_to(tree)) for file in found) if not path.endswith(".py") else [path]


def test_packages_hold_nothing_but_a_docstring() -> None:
    """They are imported by everything and declared by nothing, but for those of the code of one step.

    The one exception, pipeline/__init__.py, finds the functions for users when they are asked for: it
    imports nothing else and decides nothing (tests/engines/test_access.py).
    """
    import ast

    for folder in ("pipeline", "schemas"):
        for file in (REPOSITORY / folder).rglob("__init__.py"):
            step = file.parent.name in STEP_PACKAGES and file.parents[2].name == "studies"
            if step or file == REPOSITORY / "pipeline/__init__.py":
                continue
            body = ast.parse(file.read_text()).body
            assert all(
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body
            ), file
