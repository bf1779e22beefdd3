"""The commands of README.md and docs/, run as printed, on the real studies: where they train at scale smoke."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import REPOSITORY, Done, Workspace, copy_of_repository, environment

from pipeline import params
from pipeline.engine import graph

PAGES = ("README.md", *(f"docs/{name}.md" for name in ("reproduce", "change", "audit", "add-a-study")))
README = "\n".join((REPOSITORY / page).read_text(encoding="utf-8") for page in PAGES)

# Not run here: the tests that you read, what is run by tests of its own, and 83 MB of weights.
ELSEWHERE = {"make test", "pip install --no-deps -r requirements-pretrained.txt"}
SETTING_UP = (
    "git clone <this repository> && cd sandglass",
    "make audit",
    ". .venv-audit/bin/activate",
    "python -m pipeline claims --study dyck",
    "make look",
)
BUILDING = ("make reproduce",)
CHANGING = ("dvc exp run -S 'params/dyck/runs.yaml:dyck-balance.variants.dyck-minimal-contrastive.contrastive=1.0'",)
SHARING = (
    "dvc exp run -S 'params/nce/runs.yaml:shared.nce-digits.steps.quick=300'",
    "dvc exp run -S 'params/nce/runs.yaml:+nce-digits-diag.steps.quick=300'",
)
LOOKING = (
    "python -m pipeline claims",
    "python -m pipeline trace dyck/fig3",
    "python -m pipeline trace dyck:9 --verify",
    "python -m pipeline trace dyck/fig3 --rebuild",
    "python -m pipeline why [X]",
    "python -m pipeline list",
    "python -m pipeline prune",
    "python -m pipeline accept X --reason … --prove",
    "snakemake data/figures/dyck/dyck-balance/fig3.svg",
)
ADDING = ("python -m pipeline new mystudy", "snakemake mystudy")
BACK = "git reset --quiet && git checkout params.yaml params dvc.lock && dvc checkout --allow-missing"


def printed() -> list[str]:
    """The commands that these pages print behind a prompt, or in the first column of a table."""
    blocks = re.findall(r"^```console\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    rows = re.findall(r"^\| `((?:python|snakemake|-S) .*?)` \|", README, re.MULTILINE)
    lines += [f"dvc exp run {each}" if each.startswith("-S") else each for each in rows]
    return [re.sub(r"\s\s+#.*", "", line).strip() for line in lines]


def as_typed(workspace: Workspace, command: str, **env: str) -> Done:
    done = workspace.run("bash", "-c", command, **env)
    assert done.status == 0, done.output
    return done


def copied(built: Workspace, path: Path) -> Workspace:
    """A copy of a work tree in which everything is built, with its results committed."""
    workspace = Workspace(Path(shutil.copytree(built.path, path, symlinks=True)), built.env)
    workspace.git("add", "-A")
    workspace.git("commit", "-qm", "results")
    return workspace


def test_every_command_is_run() -> None:
    run = {*SETTING_UP, *BUILDING, *CHANGING, *SHARING, *LOOKING, *ADDING, *ELSEWHERE}
    assert set(printed()) == run
    assert f"`{BACK}`" in README.replace("\n", " ")


@pytest.mark.slow
def test_a_changed_parameter_and_the_way_back(dyck: Workspace, tmp_path: Path) -> None:
    workspace = copied(dyck, tmp_path / "changed")
    before = workspace.artifacts()
    done = as_typed(workspace, *CHANGING)
    assert "That runs this run, the experiments that use it, claims and report, and no other job;" in README
    loaded = params.load(workspace.path)
    below = {graph.job("train", "dyck-balance", loaded)}
    for job in graph.jobs(loaded):  # each after those that it depends on
        if below & {*graph.parents(job, loaded)}:
            below.add(job)
    assert done.ran == {"report" if job.step == "report" else f"{job.step} {job.id}" for job in below}
    assert workspace.planned() == set()
    arms = loaded.runs["dyck-balance"].members
    assert arms["dyck-minimal-contrastive"].contrastive == 1.0
    assert arms["dyck-minimal-own-corpus"].contrastive == 0.0
    assert "contrastive" in as_typed(workspace, "dvc params diff").output
    for command in ("dvc metrics diff", "dvc plots diff", "dvc exp show --only-changed"):
        assert command in README.replace("\n", " ")
        as_typed(workspace, command)
    as_typed(workspace, BACK)
    assert workspace.planned() <= {"report"}
    drawn = {name: content for name, content in before.items() if not name.startswith("report/")}
    assert workspace.artifacts().items() >= drawn.items()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "digits_full"), [(SHARING[0], 300), (SHARING[1], 200)])
def test_a_shared_value_is_set_for_all_or_for_one(
    alone: Callable[[str], Workspace], tmp_path: Path, command: str, digits_full: int
) -> None:
    workspace = copied(alone("nce"), tmp_path / "shared")
    trained = {"train nce-digits-diag"} | ({"train nce-digits-full"} if digits_full == 300 else set())
    done = as_typed(workspace, command)
    assert {step for step in done.ran if step.startswith("train")} >= trained
    assert ("train nce-digits-full" in done.ran) == (digits_full == 300)
    loaded = params.load(workspace.path, "quick")
    steps = {run: {m.steps for m in loaded.runs[run].members.values()} for run in loaded.runs}
    assert steps["nce-digits-diag"] == {300} and steps["nce-digits-full"] == {digits_full}
    assert workspace.planned() == set()


@pytest.mark.slow
def test_what_looks_at_results(dyck: Workspace, tmp_path: Path) -> None:
    workspace = copied(dyck, tmp_path / "looked")
    for command in LOOKING:
        if " accept " in command:
            workspace.edit("pipeline/studies/dyck/figures/balance.py", "# edited\n")
            command = command.replace(" X ", " fig3 ").replace("…", "comment")
        if command.startswith("snakemake"):
            (workspace.path / command.split()[1]).unlink()
        done = as_typed(workspace, command.replace("[X]", "dyck/fig3"), TMPDIR=str(tmp_path))
        if "--rebuild" in command:
            assert "identical" in done.output and "different" not in done.output
            assert not [*tmp_path.glob("sandglass-*")]
    assert (workspace.path / LOOKING[-1].split()[1]).is_file()


@pytest.mark.slow
def test_a_study_is_added(alone: Callable[[str], Workspace], tmp_path: Path) -> None:
    workspace = copied(alone("nce"), tmp_path / "added")
    before = workspace.artifacts()
    for command in ADDING:
        as_typed(workspace, command)
    assert (workspace.path / "data/figures/mystudy/mystudy-accuracy/accuracy.svg").is_file()
    assert workspace.artifacts().items() >= before.items()
    assert workspace.planned("nce") == set()


@pytest.mark.slow
def test_a_build_by_make(alone: Callable[[str], Workspace], tmp_path: Path) -> None:
    """With the environment that is there: to set one up takes minutes, and `make test` has done so."""
    workspace = copied(alone("nce"), tmp_path / "made")
    for name in ("Makefile", "requirements-dev.txt", "constraints.txt", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, workspace.path / name)
    (workspace.path / ".venv").mkdir()
    (workspace.path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    (workspace.path / ".venv/.stamp").touch()
    (workspace.path / "data/figures/nce/nce-rates").rename(tmp_path / "lost")
    done = as_typed(workspace, *BUILDING)
    assert (workspace.path / "data/figures/nce/nce-rates").is_dir() and (
        workspace.path / "data/report/index.html"
    ).is_file()
    assert len(done.output.splitlines()) < 40, done.output
    again = as_typed(workspace, *BUILDING)
    assert len(again.output.splitlines()) < 20, again.output


@pytest.mark.slow
@pytest.mark.started
def test_an_auditors_first_commands(tmp_path: Path) -> None:
    """In a fresh clone of what lies here, in the environment that `make audit` installs from the package index."""
    source = copy_of_repository(tmp_path / "source")
    # Of this interpreter's programs nothing is to be found.
    here = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in environment()["PATH"].split(os.pathsep) if each != here)
    typed = "\n".join(("set -e", *SETTING_UP)).replace("<this repository>", f"-q {source.path} sandglass")
    typed = typed.replace("make audit", f"make audit PYTHON={sys._base_executable}")
    typed += "\npython -m pipeline trace dyck:5 --rebuild || test $? = 2"  # what trains is not there
    done = Workspace(tmp_path, {"PATH": path}).run("bash", "-c", typed)
    if "(from versions: none)" in done.output:
        pytest.skip("no package index answers, so nothing can be installed")
    assert done.status == 0, done.output
    assert "audit passed" in done.output
    assert "torch is missing" in done.last_line and "pip install -r requirements.txt" in done.last_line
    assert (tmp_path / "sandglass/data/report/index.html").is_file()
    assert not (tmp_path / "sandglass/.venv").exists()
