"""Reference sets: frozen from another clone, checked, and fetched by whichever engine needs them."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path

import pytest
from workspace import Workspace

CLAIMS = "data/reference/toy/claims/claims.parquet"


def freeze(workspace: Workspace, clone: Path, *options: str) -> str:
    done = workspace.run("python", "-m", "pipeline", "reference", "toy", str(clone), *options)
    return f"{done.status} {done.last_line}"


def verify(workspace: Workspace) -> int:
    return workspace.run("python", "-m", "pipeline", "trace", CLAIMS, "--verify").status


@pytest.fixture
def clone(built: Workspace, tmp_path: Path) -> Workspace:
    """A second work tree at another scale; ``built`` stays at its own."""
    other = Workspace(Path(shutil.copytree(built.path, tmp_path / "clone", symlinks=True)))
    other.change(lambda params: params.update(scale="quick"))
    return other


def test_a_set_is_frozen_shown_and_fetched_again(built: Workspace, clone: Workspace, tmp_path: Path) -> None:
    assert freeze(built, clone.path).startswith("1 sandglass: ")  # nothing is built there at this scale
    assert not (built.path / "data/reference/toy").exists()
    clone.engine("snakemake")
    built.run("dvc", "remote", "add", "-d", "store", ".dvcstore")
    assert freeze(built, clone.path).startswith("0 data/reference/toy is in DVC's cache")
    record = json.loads((built.path / "data/reference/toy/record.json").read_text())
    assert record["scale"] == "quick"
    train = record["jobs"]["train@toy-a"]
    assert (
        train["params"]["runs.toy-a"]["lr"] == 0.5 and train["device"] is None
    )  # noted by the trainer alone
    assert "pipeline/studies/toy/runs.py" in train["code"]
    assert "data/datasets/toy/toy-numbers.parquet" in train["inputs"]
    assert (built.path / CLAIMS).read_bytes() == (clone.path / "data/claims/toy/claims.parquet").read_bytes()
    assert built.planned() == {"report"}
    built.engine("snakemake")
    built.assert_clean()
    assert built.run("dvc", "push").status == 0
    built.git("add", "-A")
    built.git("commit", "-qm", "a reference set")
    assert verify(built) == 0
    lock = (built.path / "dvc.lock").read_bytes()
    for engine in ("snakemake", "dvc"):
        fresh = Workspace(tmp_path / engine)
        built.git("clone", "-q", str(built.path), str(fresh.path))
        fresh.engine(engine)
        assert (fresh.path / CLAIMS).is_file()
        assert (fresh.path / "dvc.lock").read_bytes() == lock
        fresh.assert_clean()

    for name in ("../toy", "Toy", ""):
        assert "is no name of a set" in freeze(built, clone.path, "--name", name)
    assert freeze(built, clone.path, "--name", "toy-more").startswith("0 data/reference/toy-more is in")
    assert (built.path / "data/reference/toy-more.dvc").is_file()
    assert verify(built) == 0  # the set of the study's own name is as it was
    record["study"] = "other"
    (built.path / "data/reference/toy-more/record.json").write_text(json.dumps(record))
    assert "is for results of other" in freeze(built, clone.path, "--name", "toy-more")
    (built.path / "data/reference/toy-more/record.json").write_text("damaged")
    assert freeze(built, clone.path, "--name", "toy-more").startswith("0 ")  # replaced

    # What cannot be recorded leaves the set as it was: here an engine is at work.
    before = (built.path / CLAIMS).read_bytes()
    with (built.path / ".sandglass/lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "is at work in this folder" in freeze(built, clone.path)
    assert (built.path / CLAIMS).read_bytes() == before and verify(built) == 0

    # A set that is not what git says, as after a pull of another one, is named and not overwritten.
    lost = built.path / "data/reference/toy/tables"
    shutil.rmtree(lost)
    assert "data/reference/toy is not what data/reference/toy.dvc says" in built.snakemake("-n").output
    assert built.run("python", "-m", "pipeline", "trace", "data/reference/toy", "--verify").status == 3
    assert built.run("dvc", "checkout", "--force", "data/reference/toy.dvc").status == 0
    assert built.run("python", "-m", "pipeline", "trace", "data/reference/toy", "--verify").status == 0

    flipped = built.path / CLAIMS
    flipped.write_bytes(flipped.read_bytes()[:-1] + b"x")
    assert verify(built) == 1


def test_what_cannot_be_fetched_is_named_and_the_rest_is_built(built: Workspace) -> None:
    pointer = {"md5": "0" * 32 + ".dir", "nfiles": 1, "size": 1, "hash": "md5", "path": "gone"}
    (built.path / "data/reference/gone.dvc").write_text(json.dumps({"outs": [pointer]}))
    done = built.snakemake()
    assert done.status == 0, done.output
    assert "the report goes without gone of data/reference" in done.output
