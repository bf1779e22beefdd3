"""Sites and changes stand in nobody's way: not of the next pull, and not of the way back that docs/change.md prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from workspace import REPOSITORY, Workspace

README = (REPOSITORY / "docs/change.md").read_text(encoding="utf-8")
PAGE = "data/report/index.html"
MODEL = "data/runs/toy/toy-b/toy-b.safetensors"


def _commands(pattern: str) -> str:
    """The commands that the page prints and that match ``pattern``, as one line for a shell."""
    (found,) = set(re.findall(rf"`({pattern}[^`]*)`", README))
    return str(found)


def _results(workspace: Workspace) -> dict[str, bytes]:
    return {name: content for name, content in workspace.artifacts().items() if "report/" not in name}


def _draw(workspace: Workspace) -> None:
    done = workspace.run("python", "-m", "pipeline", "report", "--from-store")
    assert done.status == 0, done.output


@pytest.fixture(params=["pulled", "partly built"])
def tree(request: pytest.FixtureRequest, built: Workspace, tmp_path: Path) -> Workspace:
    """A clone that shows a site from the store; where all is built, `test_readme_commands` goes the way back."""
    clone = built.pushed_clone(tmp_path / "clone")
    assert clone.run("dvc", "pull", "--allow-missing").status == 0
    if request.param == "partly built":
        assert clone.snakemake(MODEL).status == 0
    _draw(clone)
    return clone


@pytest.mark.slow
def test_the_way_back_of_the_readme(tree: Workspace) -> None:
    drawn = (tree.path / PAGE).read_bytes()
    done = tree.run("dvc", "pull", "--allow-missing")
    assert done.status == 0, done.output
    assert (tree.path / PAGE).read_bytes() == drawn  # no pull touches the site
    before, to_do = _results(tree), tree.planned()
    tree.change(lambda params: params.update(seed=2))
    tree.set_lr("toy-a", 0.75)
    tree.engine("snakemake")
    _draw(tree)
    assert before.items() - _results(tree).items()
    done = tree.run("sh", "-c", _commands("git reset --quiet && git checkout params"))
    assert done.status == 0, done.output
    assert before.items() <= _results(tree).items()
    assert not tree.git("status", "--porcelain")
    assert tree.planned() <= to_do | {"report"}
    _draw(tree)
    done = tree.run("python", "-m", "pipeline", "audit")
    assert done.status == 0, done.output


@pytest.mark.slow
def test_a_site_is_kept_nowhere(built: Workspace) -> None:
    """Not in DVC's cache, by either engine, nor in the commit of an experiment."""
    pages = [(built.path / PAGE).read_bytes()]
    done = built.run("dvc", "exp", "run", "-S", "params/toy/runs.yaml:toy-a.lr=0.75")
    assert done.status == 0, done.output
    pages.append((built.path / PAGE).read_bytes())
    assert pages[0] != pages[1]
    cached = {path.read_bytes() for path in (built.path / ".dvc/cache/files").rglob("*") if path.is_file()}
    assert len(cached) > 20 and not cached & set(pages)
    kept = built.git("log", "--format=%H", "-1", "--all", "--", "data/report", "data/runs")
    assert not kept and len(built.git("for-each-ref", "refs/exps").splitlines()) > 0
