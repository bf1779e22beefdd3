"""Workspaces, each built once for the whole session and copied for each test that changes it.

``--study dyck`` runs the tests of one study: those in tests/dyck, and those elsewhere that run once for each study. No
other study is built then.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import forked
import psutil
import pytest
from hypothesis import settings
from workspace import STUDIES, Workspace, lay_out

if TYPE_CHECKING:
    from spoiling import Checked  # which imports polars and pandera

collect_ignore = ["engines/toy", "engines/graphs.py"]
# A machine that does other work as well fails no test, and what passed once passes again.
settings.register_profile("untimed", deadline=None, derandomize=True)
settings.load_profile("untimed")
HERE = Path(__file__).parent
BUILDS = "test_everything_is_built_and_recorded"  # all studies, while others have the tests of the toy study
TOGETHER = pytest.StashKey[list[str]]()
# In `smoke` where slow tests are left out: soon built, with labels, and with pages to play with
FEW = ["nce", "verifier"]
PLENTY = 8 * 2**30  # bytes; the work trees of a session take up to one eighth of it


def pytest_configure() -> None:
    """Have work trees of tests lie in memory, where there is plenty of it and nobody names another place.

    Each test leaves hundreds of files. To delete one takes a disk up to five milliseconds, all of them minutes.
    """
    memory = Path("/dev/shm")
    named = {"PYTEST_DEBUG_TEMPROOT", "TMPDIR"} & os.environ.keys()
    if not named and os.access(memory, os.W_OK):
        free = min(shutil.disk_usage(memory).free, psutil.virtual_memory().available)
        if free >= PLENTY:
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(memory)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--study", choices=STUDIES, help="only the tests of this study")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders of other studies, which may not even be importable while they are written."""
    study = config.getoption("--study")
    others = {HERE / each for each in STUDIES if each != study}
    return True if study and collection_path in others else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests of ``--study``, and put those first that take long or that others wait for.

    Without slow tests, those that want another study than `FEW` at smoke scale are left out as well.
    """
    few = config.option.markexpr == "not slow"
    if study := config.getoption("--study"):
        _choose(config, items, [item for item in items if _study(item) == study])
    elif few:
        _choose(config, items, [item for item in items if not _builds(item) or _wants(item) in (None, *FEW)])
    items.sort(key=_turn)  # within a turn they keep their order
    config.stash[TOGETHER] = _built_together(items, FEW if few else STUDIES)
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))


def _choose(config: pytest.Config, items: list[pytest.Item], chosen: list[pytest.Item]) -> None:
    kept = {*chosen}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = chosen


def _builds(item: pytest.Item) -> bool:
    """Whether the test asks for studies at smoke scale."""
    return not {"smoke", "alone"}.isdisjoint(getattr(item, "fixturenames", ()))


def _wants(item: pytest.Item) -> str | None:
    """The study that a test asks for at smoke scale; None if any will do."""
    return "dyck" if "dyck" in getattr(item, "fixturenames", ()) else _study(item)


def _built_together(items: list[pytest.Item], studies: list[str]) -> list[str]:
    """The studies of the work tree `smoke`: these, or the one of which all tests are that ask for it."""
    asked = {_study(item) for item in items if "smoke" in getattr(item, "fixturenames", ())}
    return [study for study in asked if study] if len(asked) == 1 and None not in asked else studies if asked else []


def _of_a_module(item: pytest.Item) -> list[str]:
    """The names of the test's fixtures that are made once for its module, in each worker of pytest-xdist."""
    if not isinstance(item, pytest.Function):
        return []
    fixtures = item._fixtureinfo.name2fixturedefs  # there is no public way to them
    return [name for name, definitions in fixtures.items() if definitions[-1].scope == "module"]


def _group(item: pytest.Item) -> str:
    """Which tests one worker is to take, for the sake of the fixtures of their module (``--dist loadgroup``)."""
    names, callspec = _of_a_module(item), getattr(item, "callspec", None)
    numbers = [str(callspec.indices[name]) for name in names if callspec and name in callspec.indices]
    return "-".join([item.path.stem, *numbers]) if names else ""


def _turn(item: pytest.Item) -> int:
    """When a test is to start, for workers of pytest-xdist that take one after another (``make test``).

    The studies are built while all who ask for them wait, so one worker begins with that, and the others have the tests
    of engines on the toy study, which take long and ask for none of them. Short tests come last: no worker is left
    alone with a long one.
    """
    fixtures = {*getattr(item, "fixturenames", ())}
    if item.name == BUILDS:
        return 0
    if fixtures & {"smoke", "alone"}:
        return 3
    if item.path.parent.name == "engines":
        return 1
    return 2 if item.get_closest_marker("slow") or _of_a_module(item) else 4


def _study(item: pytest.Item) -> str | None:
    """The study that a test is of: that of its folder or its mark, or the one that it is parametrized with."""
    folder, mark = item.path.relative_to(HERE).parts[0], item.get_closest_marker("study")
    callspec = getattr(item, "callspec", None)
    named = mark.args[0] if mark else callspec.params.get("study") if callspec else None
    return folder if folder in STUDIES else named


def _shared(factory: pytest.TempPathFactory) -> Path:
    """The folder of this session that all workers of pytest-xdist see."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own  # workers have theirs inside it


def _once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], Workspace]) -> Path:
    """A folder that ``build`` fills once per session, for all workers of pytest-xdist; nor does it fail twice."""
    shared = _shared(factory)
    path = shared / name
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.mkdir()
            build(path).git("gc", "--quiet")  # each test copies its files
            (path / "built").touch()
    if not (path / "built").exists():
        pytest.fail(f"{name} was not built: see the first test that asked for it")
    return path


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Torch works on one thread, unless a test asks for more.

    The threads of an operation wait for each other at full speed. Where several workers of pytest share two cores, most
    waiting is for a thread that has no core: tests that train or run models took up to twenty times their time.
    """
    if torch := sys.modules.get("torch"):  # no test that was collected needs it otherwise
        torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def charts_are_checked_once() -> Iterator[None]:
    """Charts are checked when they are written, as in the step that draws them, and not part by part as well."""
    if "altair" not in sys.modules:  # no test that was collected draws
        yield
        return
    from altair.utils.schemapi import debug_mode

    with debug_mode(False):
        yield


@pytest.fixture(scope="session")
def fonts() -> None:
    """The renderer draws with its own fonts, though a test asks it for a picture itself, not through `kit.charts`.

    It looks for fonts once: a test that came first would have it draw with the machine's for all that follow.
    """
    from pipeline.kit import charts

    charts._set_up_fonts()


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Workspace]], Path]:
    """Gives the folder of a name, filled by a function, once for all workers of pytest-xdist (`_once`)."""
    return partial(_once, tmp_path_factory)


@pytest.fixture(scope="module")
def unspoilt(request: pytest.FixtureRequest) -> Checked:
    """Gives the theory checks that the ``checked`` of the test's module makes, each made once (`spoiling`)."""
    return cache(request.module.checked)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, fork_server: dict[str, str]) -> Path:
    """The toy study, built by Snakemake and committed."""

    def build(path: Path) -> Workspace:
        workspace = lay_out(path / "tree", env=fork_server)
        workspace.engine("snakemake")
        workspace.git("add", "-A")
        workspace.git("commit", "-qm", "results")
        workspace.assert_clean()  # and file times are in order, so that no test passes by disorder
        return workspace

    return _once(tmp_path_factory, "toy-template", build) / "tree"


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which steps are forked from a process that has loaded the libraries, as Snakemake's jobs are.

    So are the engines themselves. One server (`forked`) serves all workers of pytest-xdist, and ends with the session.
    """
    if sys.platform != "linux":
        yield {}
        return
    shared = _shared(tmp_path_factory)
    of_workers = "PYTEST_XDIST_WORKER" in os.environ
    name, server = shared / "fork-server", None
    with (shared / "fork-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not name.exists():
            environment, server = forked.launch(os.getppid() if of_workers else os.getpid(), shared / "bin")
            name.write_text(json.dumps(environment))
    yield json.loads(name.read_text())
    if server is None:
        return
    if of_workers:
        server.returncode = 0  # other workers still use it, so nobody waits for it
    else:
        server.kill()
        server.wait()


@pytest.fixture
def forks(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment for a work tree of one test: its processes are forked, unless the test is marked ``started``."""
    started = request.node.get_closest_marker("started")
    return {} if started else dict(request.getfixturevalue("fork_server"))


@pytest.fixture
def forking(fork_server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers of a training that the test itself asks for are forked too."""
    for name, value in fork_server.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def calmed(fork_server: dict[str, str]) -> Callable[[Workspace], Workspace]:
    """Gives the same work tree once nothing is at work in it that a test has started: what follows may be forked."""
    return lambda workspace: Workspace(workspace.path, dict(fork_server))


@pytest.fixture
def built(template: Path, tmp_path: Path, forks: dict[str, str]) -> Workspace:
    """A work tree in which everything is up to date."""
    return Workspace(Path(shutil.copytree(template, tmp_path / "tree", symlinks=True)), forks)


@pytest.fixture
def empty(tmp_path: Path, forks: dict[str, str]) -> Workspace:
    """A work tree in which nothing is built."""
    return lay_out(tmp_path / "tree", env=forks)


def _build(path: Path, studies: list[str], env: dict[str, str]) -> Workspace:
    """One thread each, four at a time: as many as workers. `test_determinism` asks for these bytes from two threads."""
    workspace = lay_out(path / "tree", studies, env)
    done = workspace.snakemake("--cores", "4", "--max-threads", "1", "--resources", "gpu=4")
    assert done.status == 0, done.output
    return workspace


@pytest.fixture(scope="session")
def smoke(
    tmp_path_factory: pytest.TempPathFactory, fork_server: dict[str, str], request: pytest.FixtureRequest
) -> Workspace:
    """All studies at smoke scale in one work tree, built by Snakemake; nobody changes it.

    Where only tests of one study are run it holds that one.
    """
    build = partial(_build, studies=request.config.stash[TOGETHER], env=fork_server)
    return Workspace(_once(tmp_path_factory, "smoke", build) / "tree", fork_server)


@pytest.fixture(scope="session")
def alone(
    tmp_path_factory: pytest.TempPathFactory, fork_server: dict[str, str], request: pytest.FixtureRequest
) -> Callable[[str], Workspace]:
    """Gives a study at smoke scale in a work tree of its own, in which both engines start sooner; nobody changes it.

    Where `smoke` is built as well it has what was built there, and needs no job but the report: results of a study are
    the same whatever else is there.
    """
    together = request.config.stash[TOGETHER]

    def build(path: Path, study: str) -> Workspace:
        if study not in together:
            return _build(path, [study], fork_server)
        workspace = lay_out(path / "tree", [study], fork_server)
        workspace.take(study, request.getfixturevalue("smoke"))
        done = workspace.snakemake()
        assert done.status == 0, done.output
        assert done.ran == {"report"}, done.output
        return workspace

    return lambda study: Workspace(
        _once(tmp_path_factory, f"alone-{study}", partial(build, study=study)) / "tree", fork_server
    )


@pytest.fixture
def dyck(alone: Callable[[str], Workspace], tmp_path: Path, forks: dict[str, str]) -> Workspace:
    """A copy of the study of Dyck languages at smoke scale, everything up to date."""
    built = alone("dyck").path
    return Workspace(Path(shutil.copytree(built, tmp_path / "tree", symlinks=True)), forks)
