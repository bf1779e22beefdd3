"""Reference sets: frozen from another clone, checked, and fetched by whichever engine needs them."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path

import pandera.polars as pa
import polars as pl
import pytest
from workspace import Workspace

from pipeline.audit import hashing
from pipeline.errors import SandglassError
from pipeline.references import reading
from pipeline.store import tables
from pipeline.store.paths import FIGURE_SUFFIXES

CLAIMS = "data/reference/toy/claims/claims.parquet"


def freeze(workspace: Workspace, clone: Path, *options: str) -> str:
    done = workspace.run("python", "-m", "pipeline", "reference", "toy", str(clone), *options)
    return f"{done.status} {done.last_line}"


def _files(workspace: Workspace) -> list[Path]:
    return [path for path in (workspace.path / "data/reference/toy").rglob("*") if path.is_file()]


def verify(workspace: Workspace) -> int:
    return workspace.run("python", "-m", "pipeline", "trace", CLAIMS, "--verify").status


@pytest.fixture
def clone(built: Workspace, tmp_path: Path) -> Workspace:
    """A second work tree at another scale; ``built`` stays at its own."""
    other = Workspace(Path(shutil.copytree(built.path, tmp_path / "clone", symlinks=True)), dict(built.env))
    other.change(lambda params: params.update(scale="long"))
    return other


@pytest.mark.slow
def test_a_set_is_frozen_shown_and_fetched_again(built: Workspace, clone: Workspace, tmp_path: Path) -> None:
    assert freeze(built, clone.path).startswith("2 sandglass: ")  # nothing is built there at this scale
    assert not (built.path / "data/reference/toy").exists()
    clone.engine("snakemake")
    built.run("dvc", "remote", "add", "-d", "store", ".dvcstore")
    assert freeze(built, clone.path).startswith("0 data/reference/toy is in DVC's cache")
    record = json.loads((built.path / "data/reference/toy/record.json").read_text())
    assert (record["name"], record["scale"]) == ("toy", "long")
    train = record["jobs"]["train-toy-a"]
    assert train["params"]["params/toy/runs.yaml:toy-a"]["lr"] == 0.5
    assert train["params"]["scale"] == "long" and train["device"] is None  # noted by the trainer alone
    assert "pipeline/studies/toy/runs.py" in train["code"]
    assert "data/datasets/toy/toy-numbers/toy-numbers.parquet" in train["inputs"]
    kept = {str(path.relative_to(built.path / "data/reference/toy")) for path in _files(built)}
    figures = {f"figures/toy-{name}/{name}.{end}" for name in ("means", "losses") for end in FIGURE_SUFFIXES}
    assert kept == figures | {
        "record.json",
        "claims/claims.parquet",
        "claims/claims.json",
        "theory/toy-identity.parquet",
        "tables/toy-means/means.parquet",
        "tables/toy-losses/losses.parquet",
    }
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
        fresh = Workspace(tmp_path / engine, dict(built.env))
        built.git("clone", "-q", str(built.path), str(fresh.path))
        fresh.engine(engine)
        assert (fresh.path / CLAIMS).is_file()
        assert (fresh.path / "dvc.lock").read_bytes() == lock
        fresh.assert_clean()

    for name in ("../toy", "Toy", ""):
        assert "is no name of a set" in freeze(built, clone.path, "--name", name)
    assert freeze(built, clone.path, "--name", "toy-more").startswith("0 data/reference/toy-more is in")
    names = json.loads((built.path / "data/reference/names.json").read_text())
    assert list(names) == ["toy", "toy-more"] and names["toy"] != names["toy-more"]
    for name, md5 in names.items():
        assert md5 in (built.path / f"data/reference/{name}.dvc").read_text()
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


@pytest.mark.slow
def test_a_set_asks_for_no_run_that_its_experiments_do_not_read(built: Workspace, clone: Workspace) -> None:
    """What was not built is taken out of the experiments of the clone, and need not be there."""
    file = clone.path / "params/toy/experiments.yaml"
    file.write_text(file.read_text().replace("runs: [toy-a, toy-b]", "runs: [toy-a]"))
    assert clone.snakemake("--cores", "2", "toy").status == 0
    assert "train-toy-b" in clone.run("dvc", "status").output
    assert freeze(built, clone.path).startswith("0 ")
    record = json.loads((built.path / "data/reference/toy/record.json").read_text())
    assert {"train-toy-a", "analyse-toy-means", "claims-toy"} <= record["jobs"].keys()
    assert "train-toy-b" not in record["jobs"]


def test_a_set_is_made_from_a_clone_of_what_is_published(built: Workspace, tmp_path: Path) -> None:
    pulled = built.pushed_clone(tmp_path / "pulled")
    assert pulled.run("dvc", "pull", "--allow-missing").status == 0
    assert not [*(pulled.path / "data/runs").rglob("*.safetensors")]
    assert freeze(built, pulled.path, "--name", "toy-before").startswith("0 ")
    assert (built.path / "data/reference/toy-before/claims/claims.parquet").read_bytes() == (
        built.path / "data/claims/toy/claims.parquet"
    ).read_bytes()
    pulled.set_lr("toy-a", 0.75)
    assert "not up to date, so nothing was copied" in freeze(built, pulled.path, "--name", "toy-before")
    pulled.git("checkout", "params")
    pulled.edit("pipeline/studies/toy/runs.py")
    assert "not up to date, so nothing was copied" in freeze(built, pulled.path, "--name", "toy-before")
    pulled.git("checkout", "pipeline")
    (pulled.path / "data/claims/toy/claims.parquet").unlink()
    assert "claims-toy" in freeze(built, pulled.path, "--name", "toy-before")


def test_what_cannot_be_fetched_is_named_and_the_rest_is_built(built: Workspace) -> None:
    pointer = {"md5": "0" * 32 + ".dir", "nfiles": 1, "size": 1, "hash": "md5", "path": "gone"}
    (built.path / "data/reference/gone.dvc").write_text(json.dumps({"outs": [pointer]}))
    done = built.snakemake()
    assert done.status == 0, done.output
    assert "the report goes without gone of data/reference" in done.output


def test_a_set_of_the_old_layout_is_read(built: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables beside each other, and a record that names one job for them; in both layouts it is verified."""
    assert freeze(built, built.path).startswith("0 ")
    folder = built.path / "data/reference/toy"
    monkeypatch.chdir(built.path)
    (new,) = reading.load("toy")
    _all_verified(new)
    record = json.loads((folder / "record.json").read_text())
    jobs = record["jobs"]
    jobs["analyse-toy"] = jobs.pop("analyse-toy-means")
    del jobs["analyse-toy-losses"]
    for file in [*folder.glob("tables/*/*.parquet")]:
        file.rename(folder / "tables" / file.name)
        file.parent.rmdir()
    listing = {path.name: hashing.md5(path) for path in (folder / "tables").iterdir()}
    jobs["analyse-toy"]["outputs"] = {"data/tables/toy": hashing.digest(listing)}
    (folder / "record.json").write_text(json.dumps(record))
    (old,) = reading.load("toy")
    _all_verified(old)
    assert old.claims == new.claims and old.theory == new.theory
    read = [
        reading.table_files("toy", [Path(f"data/tables/toy/{name}.parquet")])
        for name in ("toy-means/means", "toy-other/means", "toy-means/none")
    ]
    means = Path("data/reference/toy/tables/means.parquet")
    assert read == [[means], [means], []]
    (folder / "tables/means.parquet").write_bytes(b"x")
    assert not reading.load("toy")[0].verified(hashing)[means]


def _all_verified(reference: reading.Reference) -> None:
    verified = reference.verified(hashing)
    assert set(verified) == {path for path in reference.files if path.name != "record.json"}
    assert all(verified.values())


def test_a_column_that_the_schema_got_since_is_empty(tmp_path: Path) -> None:
    class Table(pa.DataFrameModel):
        run: pl.String
        new: pl.Float64 = pa.Field(nullable=True)
        mean: pl.Float64

        class Config:
            strict = True
            ordered = True

    path = tmp_path / "t.parquet"
    tables.store(pl.DataFrame({"run": ["a"], "mean": [1.0]}), path)
    assert reading.read_table(path, Table).rows() == [("a", None, 1.0)]
    tables.store(pl.DataFrame({"run": ["a"]}), path)  # that one may not be null
    with pytest.raises(SandglassError, match="mean"):
        reading.read_table(path, Table)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SandglassError, match="truncated or damaged"):
        reading.read_table(path, Table)
