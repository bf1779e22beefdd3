"""The real study through Snakemake at smoke scale, and what its steps import against what they declare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from workspace import REPOSITORY, Workspace

FIGURES = (
    "fig1", "stack_score", "fig2", "variation", "fig3", "table1", "exact_solvers", "broken_solvers",
    "pruning_error", "pruning_maps", "fig4", "fig5", "fig6", "head_importance", "fig7", "fig8", "fig9", "fig10",
    "fig13", "prefix_variation", "training_length",
)  # fmt: skip
# Cannot change a result: they refuse, name paths, lock, log, and hold docstrings.
EXEMPT = {
    "pipeline/__main__.py",
    "pipeline/engines.py",
    "pipeline/errors.py",
    "pipeline/graph.py",
    "pipeline/params.py",
    "pipeline/reading.py",
    "pipeline/runner.py",
    "pipeline/software.py",
    "pipeline/studies/dyck/params.py",
}
STEP_PACKAGES = {"analysis", "figures", "claims"}  # dvc.yaml declares these folders
# Every theory entry declares what some check of its study needs.
SPARE = {
    "pipeline/checkpoints.py",
    "pipeline/languages/dyck.py",
    "pipeline/models/theory_transformer.py",
    "pipeline/stats.py",
    "pipeline/streams.py",
    "pipeline/studies/dyck/constructions.py",
}


def test_everything_is_built_and_recorded(smoke: Workspace) -> None:
    code = (
        "from pipeline import graph, params; p = params.load(); "
        "print(*[f for j in graph.jobs(p) for f in graph.outputs(j, p) if not f.is_file()])"
    )
    assert smoke.run("python", "-c", code).output.strip() == ""
    smoke.assert_clean()
    assert "&id" not in (smoke.path / "dvc.lock").read_text()  # entries of params.yaml share values


def test_no_claim_is_judged_at_smoke_scale(smoke: Workspace) -> None:
    claims = pl.read_parquet(smoke.path / "data/claims/dyck/claims.parquet")
    assert claims["claim"].unique().sort().to_list() == sorted(map(str, range(1, 23)))
    assert claims["verdict"].unique().to_list() == ["not tested at this scale"]


def test_figures_carry_their_data_in_four_forms(smoke: Workspace) -> None:
    for name in FIGURES:
        base = smoke.path / "data/figures/dyck" / name
        assert base.with_suffix(".svg").read_text().startswith("<svg")
        assert base.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert json.loads(base.with_suffix(".vl.json").read_text())["$schema"].startswith("https://vega")
        assert pl.read_parquet(base.with_suffix(".parquet")).height > 0


def test_the_report_shows_every_figure_claim_and_artifact(smoke: Workspace) -> None:
    site = smoke.path / "data/report"
    page = (site / "study/dyck.html").read_text()
    for name in FIGURES:
        assert f'src="../figures/dyck/{name}.view.svg"' in page
        for suffix in ("js", "svg", "png", "parquet", "vl.json"):
            assert (site / f"figures/dyck/{name}.{suffix}").is_file()
    claims = pl.read_parquet(smoke.path / "data/claims/dyck/claims.parquet")
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


def test_each_step_imports_exactly_the_code_that_it_declares(smoke: Workspace) -> None:
    stages, used = _stages(smoke), _used(smoke)
    declared = {cmd: set(_modules(smoke.path, deps)) for cmd, deps in stages.items()}
    assert used.keys() == declared.keys()
    for command, modules in used.items():
        packages = {path for path in modules if path.endswith("__init__.py")}
        own = modules - packages - EXEMPT
        if command.endswith(" report"):  # it shows the md5 of all code, so it depends on more than it imports
            assert own <= declared[command]
            continue
        assert own <= declared[command], command
        assert declared[command] - own <= (SPARE if " theory " in command else set()), command


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
