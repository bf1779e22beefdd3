"""Results are read and audited without torch: what requirements-audit.txt names is enough, and no more is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from workspace import REPOSITORY, Done, Workspace, environment, one_after_another

AUDIT = "requirements-audit.txt"
WITHOUT = {"PYTHONPATH": str(Path(__file__).parent)}


def requirements(name: str) -> dict[str, Requirement]:
    lines = (REPOSITORY / name).read_text(encoding="utf-8").splitlines()
    stated = [Requirement(line) for each in lines if (line := each.partition("#")[0].strip())]
    return {canonicalize_name(each.name): each for each in stated}


@cache
def absent() -> set[str]:
    """The modules that are installed here and that an environment of requirements-audit.txt lacks."""
    todo, there = list(requirements(AUDIT).values()), set[str]()
    while todo:
        each = todo.pop()
        there.add(canonicalize_name(each.name))
        for text in metadata.requires(each.name) or []:
            needed = Requirement(text)
            extras = each.extras or {""}
            wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras)
            if wanted and canonicalize_name(needed.name) not in there:
                todo.append(needed)
    owners = metadata.packages_distributions()
    ours = {"pipeline", "schemas"}
    return {name for name, of in owners.items() if not {canonicalize_name(each) for each in of} & there} - ours


def without_them(code: str) -> str:
    """``code`` that runs as in an environment of requirements-audit.txt; `WITHOUT` goes with it."""
    packages = sorted(requirements("requirements.txt").keys() - requirements(AUDIT).keys())
    return f"import without; without.hide({sorted(absent())}, {packages}); {code}"


def test_what_is_left_out_is_what_trains() -> None:
    assert {"torch", "snakemake", "sklearn", "pytest"} <= absent()
    assert not {"dvc", "polars", "scipy", "sympy", "numpy", "rich"} & absent()


def test_all_that_draws_judges_and_reads_can_be_imported() -> None:
    """Of every study that is shipped: the toy study's figures and tables need less than the real ones'."""
    patterns = (
        "pipeline/studies/*/figures/*.py",
        "pipeline/studies/*/claims/*.py",
        "pipeline/report/*.py",
        "pipeline/audit/*.py",
        "pipeline/references/*.py",
        "schemas/**/*.py",
    )
    files = [path.relative_to(REPOSITORY) for each in patterns for path in REPOSITORY.glob(each)]
    names = sorted(".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files)
    assert len(names) > 100
    code = f"import importlib; [importlib.import_module(name) for name in {names}]"
    env, words = environment() | WITHOUT, [sys.executable, "-c", without_them(code)]
    done = subprocess.run(words, cwd=REPOSITORY, env=env, capture_output=True, text=True)
    assert not done.returncode, done.stderr


READING = ("audit", "audit --recompute", "claims", "show toy:1", "trace toy:1", "list", "why", "report --from-store")
BUILDING = ("trace toy:1 --rebuild", "accept --all --reason none --prove", "build toy")


@pytest.mark.slow
@pytest.mark.started
def test_reading_and_auditing_need_no_more(built: Workspace) -> None:
    done = built.run("python", "-c", without_them(f"exec({one_after_another(READING)!r})"), **WITHOUT)
    ended = [line for line in done.output.splitlines() if line.startswith("status ")]
    assert ended == ["status 0"] * len(READING), done.output


@pytest.mark.started
def test_what_needs_more_says_in_one_line_what_to_install(built: Workspace, tmp_path: Path) -> None:
    built.edit("pipeline/studies/toy/runs.py")
    code = without_them(f"exec({one_after_another(BUILDING)!r})")
    done = built.run("python", "-c", code, **WITHOUT, TMPDIR=str(tmp_path))
    lines = done.output.splitlines()
    ends = [0, *(number for number, line in enumerate(lines, 1) if line.startswith("status "))]
    assert len(ends) == 1 + len(BUILDING), done.output
    for start, end in pairwise(ends):
        *said, status = lines[start:end]
        refused(Done(int(status.split()[1]), "\n".join(said)), "torch")
    assert not list(tmp_path.glob("sandglass-*"))


def refused(done: Done, package: str) -> None:
    (line,) = [line for line in done.output.splitlines() if line.startswith("sandglass: ")]
    assert done.status == 2 and line == done.last_line and "Traceback" not in done.output, done.output
    assert f"{package} is missing" in line and "pip install -r requirements.txt" in line


def test_the_pins_of_an_audit_are_those_of_a_build() -> None:
    build, audit = requirements("requirements.txt"), requirements(AUDIT)
    pins = {name: each.specifier for name, each in (requirements("constraints.txt") | build).items()}
    assert {name: each.specifier for name, each in audit.items()}.items() <= pins.items()
    assert build.keys() - audit.keys() == {"snakemake", "torch", "scikit-learn"}


def test_make_sets_up_the_small_environment_where_there_is_none(tmp_path: Path) -> None:
    """And takes the large one where it is, for what reads and audits; nothing is set up twice."""
    for name in ("Makefile", "requirements.txt", "requirements-dev.txt", AUDIT, "constraints.txt", "pyproject.toml"):
        shutil.copy2(REPOSITORY / name, tmp_path / name)

    def planned(target: str) -> str:
        env = environment()
        return subprocess.check_output(["make", "-n", target], cwd=tmp_path, env=env, text=True)

    def made(environment: str) -> None:
        (tmp_path / environment).mkdir()
        (tmp_path / environment / ".stamp").touch()

    for target in ("audit", "site"):
        assert AUDIT in planned(target) and "requirements.txt" not in planned(target)
    made(".venv-audit")
    assert "pip install" not in planned("audit") and "-r requirements.txt" in planned("reproduce")
    made(".venv")
    (tmp_path / AUDIT).touch()
    for target in ("audit", "site", "reproduce"):
        assert "pip install" not in planned(target)
