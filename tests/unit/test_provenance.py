"""Names of artifacts, dvc.lock as data, and DVC's md5s computed without DVC."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from dvc_data.hashfile.hash_info import HashInfo
from dvc_data.hashfile.meta import Meta
from dvc_data.hashfile.tree import Tree

from pipeline import params
from pipeline.audit import hashing, provenance
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params

LOCK = """
schema: '2.0'
stages:
  analyse@dyck:
    cmd: python -m pipeline analyse dyck
    deps:
    - {path: pipeline/store/tables.py, hash: md5, md5: aa, size: 3}
    params:
      params.yaml: {scale: quick, studies.dyck.analysis: {resamples: 2000}}
    outs:
    - {path: data/tables/dyck, hash: md5, md5: bb.dir, size: 10, nfiles: 2}
"""


@pytest.fixture(scope="module")
def loaded() -> Params:
    """The first study alone: names need not say whose they are."""
    full = params.load()
    own = {
        section: {key: entry for key, entry in getattr(full, section).items() if entry.study == "dyck"}
        for section in params.SECTIONS
    }
    return replace(full, **own, studies={"dyck": full.studies["dyck"]})


def found(name: str, loaded: Params) -> list[tuple[str, str]]:
    return [(str(a.path), a.job.stage if a.job else "") for a in provenance.resolve(name, loaded)]


FIG1 = [(f"data/figures/dyck/fig1.{suffix}", "figures@dyck") for suffix in graph.FIGURE_SUFFIXES]
RUNS = [("data/tables/dyck/runs.parquet", "analyse@dyck")]
STANDARD = [(f"data/runs/dyck/dyck-standard/{name}", "train@dyck-standard") for name in graph.RUN_FILES]
CLAIMS = [("data/claims/dyck/claims.parquet", "claims@dyck")]


@pytest.mark.parametrize(
    ("name", "artifacts"),
    [
        *[(name, FIG1) for name in ("fig1", "dyck/fig1", "figures/dyck/fig1")],
        *[(f"{root}figures/dyck/fig1.svg", FIG1[2:3]) for root in ("", "data/", "./data/")],
        *[(name, RUNS) for name in ("runs", "tables/dyck/runs", "data/tables/dyck/runs.parquet")],
        *[(name, STANDARD) for name in ("dyck-standard", "train@dyck-standard", "data/runs/dyck/dyck-standard")],
        *[(name, CLAIMS) for name in ("dyck:9", "claim 9", "claim 12")],
        ("report", [("data/report/index.html", "report")]),
        ("data/reference/README.md", [("data/reference/README.md", "")]),
    ],
)  # fmt: skip
def test_names(name: str, artifacts: list[tuple[str, str]], loaded: Params) -> None:
    assert found(name, loaded) == artifacts


def test_absolute_paths_and_studies(loaded: Params) -> None:
    path = Path("data/figures/dyck/fig1.svg")
    assert found(str(path.absolute()), loaded) == FIG1[2:3]
    assert {job for _, job in found("dyck", loaded)} == {"figures@dyck", "claims@dyck"}
    assert {job.stage for job in graph.jobs(loaded)} == {job for _, job in found("data", loaded)} - {""}


def test_a_claim_is_kept_with_its_table(loaded: Params) -> None:
    assert provenance.resolve("dyck:12", loaded)[0].claim == "12"


def test_a_figure_and_a_table_of_one_name(loaded: Params) -> None:
    both = ["figures/dyck/fig3", "tables/dyck/fig3"]
    assert provenance.shared_name("fig3", loaded) == both
    assert found("fig3", loaded) == found(both[0], loaded) + found(both[1], loaded)
    assert provenance.shared_name("fig1", loaded) == []


def test_a_name_of_two_studies_is_refused_with_both(loaded: Params) -> None:
    two = replace(loaded, studies={"dyck": loaded.studies["dyck"], "other": loaded.studies["dyck"]})
    with pytest.raises(SandglassError, match="say which: figures/dyck/fig1, figures/other/fig1"):
        provenance.resolve("fig1", two)
    with pytest.raises(SandglassError, match=r"'claim 9' is ambiguous; say which: dyck:9, other:9"):
        provenance.resolve("claim 9", two)
    assert provenance.resolve("dyck/fig1", two)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fig99", "did you mean fig9"),
        ("dyck-standrad", "did you mean dyck-standard"),
        ("data/figures/dyck/fig1.sgv", "did you mean data/figures/dyck/fig1.svg"),
        ("data/runs/dyck", None),
        ("pipeline/store/tables.py", "nothing made by the pipeline is called"),
        ("/etc/passwd", "lies outside this repository"),
        ("nothing:1", "no study is called 'nothing'; known are dyck"),
        ("", "known are dyck, "),
    ],
)
def test_unknown_names(name: str, message: str | None, loaded: Params) -> None:
    if message is None:
        assert provenance.resolve(name, loaded)
        return
    with pytest.raises(SandglassError) as error:
        provenance.resolve(name, loaded)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_dvc_lock_as_data(tmp_path: Path) -> None:
    assert provenance.read_lock(tmp_path) == {}
    (tmp_path / "dvc.lock").write_text(LOCK)
    stage = provenance.read_lock(tmp_path)["analyse@dyck"]
    assert stage.params == {"scale": "quick", "studies.dyck.analysis": {"resamples": 2000}}
    code, table = stage.deps[Path("pipeline/store/tables.py")], stage.outs[Path("data/tables/dyck")]
    assert (code.md5, code.size, code.is_folder) == ("aa", 3, False)
    assert (table.nfiles, table.is_folder) == (2, True)


@pytest.mark.parametrize(
    "text", ["{", "stages: [1]", "stages: {a: {}}", "stages: {a: {cmd: x, outs: [{path: y}]}}"]
)
def test_a_damaged_lock_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_text(text)
    with pytest.raises(
        SandglassError, match=r"dvc.lock is not a lock file of DVC \(.*\); git checkout dvc.lock"
    ):
        provenance.read_lock(tmp_path)


# --- md5s -----------------------------------------------------------------------------------------

FILES = {"b.txt": "1\r\n", "a/é.txt": "2", "a.txt": "3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (tmp_path / "folder" / "__pycache__").mkdir()
    (tmp_path / "folder" / "__pycache__" / "x.pyc").touch()
    return tmp_path / "folder"


def test_the_md5_of_a_folder_is_that_of_dvc(folder: Path) -> None:
    listing = hashing.listing(folder)
    assert listing.keys() == FILES.keys()
    tree = Tree()
    for name, md5 in listing.items():
        tree.add(tuple(name.split("/")), Meta(), HashInfo("md5", md5))
    tree.digest()
    assert tree.hash_info.value == hashing.digest(listing)


@pytest.mark.parametrize(
    ("config", "store"),
    [
        ("", ".dvc/cache"),
        ("[cache]\n    dir = ../elsewhere\n", "elsewhere"),
        ("[core]\n    remote = s\n['remote \"s\"']\n    url = ../.dvcstore\n", ".dvcstore"),
        ("['remote \"t\"']\n    url = s3://bucket\n", None),
    ],
)
def test_the_list_of_a_folder_is_found_in_caches_and_remotes(
    config: str, store: str | None, folder: Path, tmp_path: Path
) -> None:
    listing = hashing.listing(folder)
    md5 = hashing.digest(listing)
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text(config)
    assert hashing.stored_listing(md5, tmp_path) is None
    if store:
        file = tmp_path / store / "files/md5" / md5[:2] / md5[2:]
        file.parent.mkdir(parents=True)
        entries = [{"md5": each, "relpath": name} for name, each in sorted(listing.items())]
        file.write_text(json.dumps(entries))
        assert hashing.stored_listing(md5, tmp_path) == listing
        file.write_text(json.dumps(entries[1:]))  # damaged
        assert hashing.stored_listing(md5, tmp_path) is None
