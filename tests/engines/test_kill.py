"""One round of `make kill` on the toy study, and that it notices what it is there to notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from workspace import REPOSITORY, Workspace, environment, lay_out

pytestmark = pytest.mark.started


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    import kill

    return kill


def test_it_starts_and_says_what_it_does() -> None:
    code = [sys.executable, str(REPOSITORY / "benchmarks/kill.py"), "--help"]
    done = subprocess.run(code, capture_output=True, text=True, check=True, env=environment())
    assert "at random moments" in done.stdout and "--rounds" in done.stdout


def test_one_round(kill: ModuleType, template: Path, tmp_path: Path) -> None:
    rounds = sys.modules["rounds"]
    empty = lay_out(tmp_path / "empty")
    bench = rounds.Bench(tmp_path, Workspace(template), {"empty": empty.path})
    bench.durations["empty", "snakemake"] = 10.0
    trial = bench.run(rounds.Plan(1, "empty", "snakemake", "dvc", (0.5,)))
    assert trial.complaints == []
    assert len(trial.kills) == 1 and trial.kills[0].at
    assert kill.summary([trial]).startswith("1 rounds, 1 identical (1 kills, ")
    assert "| 1 | empty | snakemake |" in kill.render([trial], seed=1)


def test_what_a_kill_could_leave_is_noticed(kill: ModuleType, built: Workspace, template: Path) -> None:
    rounds = sys.modules["rounds"]
    bench = rounds.Bench(template, Workspace(template), {})
    data = built.path / "data"
    table = data / "tables/toy/toy-means/means.parquet"
    table.write_bytes(table.read_bytes()[:-1])
    (data / "theory/toy/toy-identity.parquet").unlink()
    (data / ".tmp/train-toy-a.host.1").mkdir(parents=True)
    (built.path / ".work/toy/toy-a").mkdir(parents=True)
    shutil.rmtree(built.path / ".dvc/cache/files/md5")
    complaints = "\n".join(bench.compare(built))
    for complaint in (
        "data/tables/toy/toy-means/means.parquet differs",
        "data/theory/toy/toy-identity.parquet is missing",
        "data/.tmp/train-toy-a.host.1 is left over",
        ".work/toy/toy-a is left over",
        "DVC's cache has lost data/tables/toy/toy-means",
        "dvc status names",
        "snakemake would run",
    ):
        assert complaint in complaints, complaints


def test_the_rounds_cover_both_engines_both_starts_and_both_successors(kill: ModuleType) -> None:
    rounds = sys.modules["rounds"]
    plans = list(rounds.plans(50, seed=1))
    assert {(p.engine, p.start, p.then) for p in plans} == {
        (engine, start, then) for engine in rounds.COMMANDS for start in rounds.STARTS for then in rounds.COMMANDS
    }
    assert sum(len(p.moments) == 2 for p in plans) == 10
    assert plans == list(rounds.plans(50, seed=1)) != list(rounds.plans(50, seed=2))


def test_the_reduced_study_is_there_to_be_built(kill: ModuleType, tmp_path: Path) -> None:
    tree = sys.modules["rounds"].lay_out_reduced(tmp_path / "tree")
    assert len(tree.planned()) == 9  # two datasets, two runs, a check, and analyse, figures, claims, report


@pytest.mark.slow
def test_the_reduced_study_builds(kill: ModuleType, dyck: Workspace) -> None:
    """Here on models that are trained already."""
    sys.modules["rounds"].reduce(dyck)
    assert dyck.engine("snakemake").ran == {"analyse dyck-attention", "figures dyck-attention", "claims dyck", "report"}
