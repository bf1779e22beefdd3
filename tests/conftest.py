"""Workspaces, each built once for the whole session and copied for each test that changes it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forkserver import serving
from workspace import REPOSITORY, Workspace, lay_out

collect_ignore = ["engines/toy", "engines/graphs.py"]


def _once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Workspace]) -> Path:
    """A folder that ``build`` fills once per session, for all workers of pytest-xdist."""
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # workers have theirs inside it
    path = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (path / "built").exists():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            build(path).git("gc", "--quiet")  # each test copies its files
            (path / "built").touch()
    return path


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy study, built by Snakemake and committed."""

    def build(path: Path) -> Workspace:
        workspace = lay_out(path / "tree")
        workspace.engine("snakemake")
        workspace.git("add", "-A")
        workspace.git("commit", "-qm", "results")
        workspace.assert_clean()  # and file times are in order, so that no test passes by disorder
        return workspace

    return _once(tmp_path_factory, "toy-template", build) / "tree"


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which steps are forked, not started (`forkserver`)."""
    with serving(tmp_path_factory.mktemp("forks")) as env:
        yield env


@pytest.fixture
def built(template: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    """A work tree in which everything is up to date; steps are forked where the tests are marked so."""
    env = request.getfixturevalue("fork_server") if request.node.get_closest_marker("forked") else {}
    return Workspace(Path(shutil.copytree(template, tmp_path / "tree", symlinks=True)), dict(env))


@pytest.fixture
def empty(tmp_path: Path) -> Workspace:
    """A work tree in which nothing is built."""
    return lay_out(tmp_path / "tree")


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All of params.yaml at smoke scale, built by Snakemake; beside it what its steps imported."""

    def build(path: Path) -> Workspace:
        workspace = lay_out(path / "tree")
        for name in ("params.yaml", "pipeline/steps/train.py", "pipeline/steps/report.py"):
            shutil.copy2(REPOSITORY / name, workspace.path / name)  # the toy study brings its own
        workspace.change(lambda params: params.update(scale="smoke"))
        # One thread each, two at a time; `test_determinism` asks for the same bytes from two threads.
        options = ("--cores", "2", "--max-threads", "1", "--resources", "gpu=2")
        with serving(path) as env:
            done = workspace.snakemake(*options, **env)
        assert done.status == 0, done.output
        return workspace

    return Workspace(_once(tmp_path_factory, "dyck-smoke", build) / "tree")


@pytest.fixture
def dyck(smoke: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the study at smoke scale, everything up to date."""
    return Workspace(Path(shutil.copytree(smoke.path, tmp_path / "tree", symlinks=True)))
