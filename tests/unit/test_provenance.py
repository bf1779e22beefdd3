"""Names of artifacts, dvc.lock as data, and DVC's md5s computed without DVC."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dvc_data.hashfile.hash_info import HashInfo
from dvc_data.hashfile.meta import Meta
from dvc_data.hashfile.tree import Tree
from workspace import REPOSITORY

from pipeline import params
from pipeline.audit import elsewhere, git, hashing, listing, provenance
from pipeline.audit.rebuild import lay_out
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.store.paths import FIGURE_SUFFIXES, claims_path

LOCK = """
schema: '2.0'
stages:
  analyse-dyck-heads:
    cmd: python -m pipeline analyse dyck-heads
    deps:
    - {path: pipeline/store/tables.py, hash: md5, md5: aa, size: 3}
    params:
      params.yaml: {scale: quick}
      params/dyck/study.yaml: {analysis: {resamples: 2000}}
    outs:
    - {path: data/tables/dyck/dyck-heads, hash: md5, md5: bb.dir, size: 10, nfiles: 2}
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Params:
    """The parameters of the first study alone: names need not say whose they are."""
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(params.ROOT / "params/dyck", root / "params/dyck")
    (root / "params.yaml").write_text("scale: smoke\nseed: 1\ndevice: cpu\nstudies: [dyck]\n")
    return params.load(root)


def found(name: str, loaded: Params) -> list[tuple[str, str]]:
    return [(str(a.path), a.job.stage if a.job else "") for a in provenance.resolve(name, loaded)]


def figure(experiment: str, name: str) -> list[tuple[str, str]]:
    paths = (f"data/figures/dyck/{experiment}/{name}.{suffix}" for suffix in FIGURE_SUFFIXES)
    return [(path, f"figures-{experiment}") for path in paths]


def table(experiment: str, name: str) -> list[tuple[str, str]]:
    return [(f"data/tables/dyck/{experiment}/{name}.parquet", f"analyse-{experiment}")]


def run(entry: str, *names: str) -> list[tuple[str, str]]:
    return [(f"data/runs/dyck/{entry}/{name}", f"train-{entry}") for name in names]


FIG1 = figure("dyck-attention", "fig1")
SVG = [each for each in FIG1 if each[0].endswith(".svg")]
READINGS = table("dyck-readings", "readings")
COPIES = ("l4", "l4-heads4", "l1", "l1-no-skip", "l1-stripped")
COPY = [
    *run("dyck-copy", *(f"dyck-copy-{name}.safetensors" for name in COPIES), "curves.parquet"),
    ("data/runs/dyck/dyck-copy.json", "train-dyck-copy"),
]
PROBE = [("data/datasets/dyck/dyck-evaluation/dyck-probe16.parquet", "dataset-dyck-evaluation")]
CLAIMS = [("data/claims/dyck/claims.parquet", "claims-dyck")]


@pytest.mark.parametrize(
    ("name", "artifacts"),
    [
        *[
            (name, FIG1)
            for name in ("fig1", "dyck/fig1", "dyck/dyck-attention/fig1", "figures/dyck/dyck-attention/fig1")
        ],
        *[(f"{root}figures/dyck/dyck-attention/fig1.svg", SVG) for root in ("", "data/", "./data/")],
        *[
            (name, READINGS)
            for name in (
                "readings",
                "dyck/readings",
                "dyck/dyck-readings/readings",
                "tables/dyck/dyck-readings/readings",
                "data/tables/dyck/dyck-readings/readings.parquet",
            )
        ],
        *[(name, COPY) for name in ("train-dyck-copy",)],
        ("data/runs/dyck/dyck-copy", COPY[:-1]),
        ("dyck-copy-l1", run("dyck-copy", "dyck-copy-l1.safetensors")),
        *[(name, PROBE) for name in ("dyck-probe16", PROBE[0][0])],
        *[(name, CLAIMS) for name in ("dyck:9", "claim 9", "claim 12")],
        ("report", [("data/report/index.html", "report")]),
        ("data/reference/README.md", [("data/reference/README.md", "")]),
    ],
)
def test_names(name: str, artifacts: list[tuple[str, str]], loaded: Params) -> None:
    assert found(name, loaded) == artifacts
    assert provenance.shared_name(name, loaded) == []


def test_absolute_paths_and_studies(loaded: Params) -> None:
    assert found(str(Path(SVG[0][0]).absolute()), loaded) == SVG
    steps = {job.split("-")[0] for _, job in found("dyck", loaded)}
    assert steps == {"figures", "claims"}
    assert {job.stage for job in graph.jobs(loaded)} == {job for _, job in found("data", loaded)} - {""}


def test_a_claim_is_kept_with_its_table(loaded: Params) -> None:
    assert provenance.resolve("dyck:12", loaded)[0].claim == "12"


def test_a_figure_and_the_table_of_its_experiment(loaded: Params) -> None:
    """Another experiment makes a table of that name as well, which the figure does not read."""
    both = ["figures/dyck/dyck-balance/fig3", "tables/dyck/dyck-balance/fig3"]
    for name in ("fig3", "dyck/fig3", "dyck/dyck-balance/fig3"):
        assert provenance.shared_name(name, loaded) == both
        assert found(name, loaded) == found(both[0], loaded) + found(both[1], loaded)
    assert found("dyck/dyck-prefix/fig3", loaded) == table("dyck-prefix", "fig3")
    assert provenance.shared_name("fig1", loaded) == []


def test_a_table_of_several_experiments_is_all_of_them_and_lists_them(loaded: Params) -> None:
    makers = [key for key, each in loaded.experiments.items() if "runs" in each.tables]
    assert len(makers) > 2
    assert found("dyck/runs", loaded) == [artifact for key in makers for artifact in table(key, "runs")]
    assert provenance.shared_name("dyck/runs", loaded) == [f"tables/dyck/{key}/runs" for key in makers]
    assert found("dyck/dyck-prefix/runs", loaded) == table("dyck-prefix", "runs")


def test_an_id_of_several_sections_is_all_of_them(loaded: Params) -> None:
    stages = ["train-dyck-heads", "analyse-dyck-heads", "figures-dyck-heads"]
    assert provenance.shared_name("dyck-heads", loaded) == stages
    assert [job for _, job in found("dyck-heads", loaded)] == [stage for stage in stages for _ in found(stage, loaded)]


def test_every_id_and_member_is_a_name(loaded: Params) -> None:
    entries = [key for section in params.SECTIONS for key in getattr(loaded, section)]
    members = [member for section in ("datasets", "runs") for member in loaded.members(section)]
    for key in {*entries, *members}:
        assert provenance.resolve(key, loaded)
    for member in {*members} - {*entries}:
        assert [Path(path).stem for path, _ in found(member, loaded)] == [member]


def test_a_name_of_two_studies_is_refused_with_both(loaded: Params) -> None:
    twins = {
        f"other{key.removeprefix('dyck')}": each.model_copy(update={"study": "other"})
        for key, each in loaded.experiments.items()
    }
    two = replace(
        loaded,
        studies={"dyck": loaded.studies["dyck"], "other": loaded.studies["dyck"]},
        experiments=loaded.experiments | twins,
        memo={},
    )
    with pytest.raises(
        SandglassError, match="say which: figures/dyck/dyck-attention/fig1, figures/other/other-attention/fig1"
    ):
        provenance.resolve("fig1", two)
    with pytest.raises(SandglassError, match=r"'claim 9' is ambiguous; say which: dyck:9, other:9"):
        provenance.resolve("claim 9", two)
    assert provenance.resolve("dyck/fig1", two)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fig99", "did you mean fig9"),
        ("dyck-standrad", "did you mean dyck-standard"),
        ("dyck-copy-l2", "did you mean dyck-copy-l"),
        ("data/figures/dyck/dyck-attention/fig1.sgv", "did you mean data/figures/dyck/dyck-attention/fig1.svg"),
        ("dyck/dyck-attention/fig3", "did you mean dyck/dyck-attention/fig"),
        ("data/runs/dyck", None),
        ("pipeline/store/tables.py", "nothing made by the pipeline is called"),
        ("/etc/passwd", "lies outside this repository"),
        ("nothing:1", "no study is called 'nothing'; there are: dyck"),
        ("dyk", "did you mean dyck"),
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


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("nce/fig1", "did you mean nce/fig4"),  # dyck/fig1 is nearer, and not what was asked for
        ("nce/zzzzzzzzz", "known are nce/landscape, nce/"),
    ],
)
def test_a_name_in_a_study_is_looked_for_there(name: str, meant: str) -> None:
    with pytest.raises(SandglassError) as error:
        provenance.resolve(name, params.load(REPOSITORY))
    text = str(error.value)
    assert meant in text and "dyck" not in text


def test_stages_are_parsed_one_by_one_and_are_the_same(tmp_path: Path) -> None:
    """In the layout of DVC each when it is asked for; in another, all at once."""
    stage = LOCK.split("stages:\n")[1]
    whole = f"schema: '2.0'\nstages:\n{stage}{stage.replace('dyck-heads', 'dyck-copying')}"
    lazy, eager = provenance.Lock(whole, "x"), provenance.Lock(f"# a remark\n{whole}", "x")
    assert list(lazy) == list(eager) == ["analyse-dyck-heads", "analyse-dyck-copying"]
    assert lazy._parsed == {} and len(eager._parsed) == 2
    assert lazy.made == eager.made != {} and lazy._parsed == {}  # of a stage that nobody asked for, only its outputs
    aliased = provenance.Lock(whole.replace("size: 10", "size: &id001 10", 1).replace("size: 10", "size: *id001"), "x")
    with pytest.raises(SandglassError, match="not a lock file of DVC"):  # across stages, which DVC never writes
        aliased.made  # noqa: B018
    assert dict(lazy) == dict(eager) and len(lazy) == 2
    assert lazy.get("analyse-dyck") is None and "analyse-dyck" not in lazy
    for damaged in (whole.replace("cmd:", "cmd"), f"<<<<<<< HEAD\n{whole}", whole.replace("    outs", "   outs")):
        with pytest.raises(SandglassError, match=r"x is not a lock file of DVC \(.*\); git checkout dvc.lock"):
            dict(provenance.Lock(damaged, "x"))
    assert dict(provenance.Lock("", "x")) == {}


def test_the_files_of_a_lock_by_folder() -> None:
    lock = provenance.Lock(LOCK, "x")
    below = provenance.outs_below(lock)
    table = Path("data/tables/dyck/dyck-heads")
    assert [entry.path for entry in below[table]] == [entry.path for entry in below[Path("data")]] == [table]
    assert Path("data/runs") not in below


def test_dvc_lock_as_data(tmp_path: Path) -> None:
    assert dict(provenance.read_lock(tmp_path)) == {}
    (tmp_path / "dvc.lock").write_text(LOCK)
    stage = provenance.read_lock(tmp_path)["analyse-dyck-heads"]
    assert stage.params == {"scale": "quick", "params/dyck/study.yaml:analysis": {"resamples": 2000}}
    code, table = (stage.deps[Path("pipeline/store/tables.py")], stage.outs[Path("data/tables/dyck/dyck-heads")])
    assert (code.md5, code.size, code.is_folder) == ("aa", 3, False)
    assert (table.nfiles, table.is_folder) == (2, True)


@pytest.mark.parametrize("text", ["{", "stages: [1]", "stages: {a: {}}", "stages: {a: {cmd: x, outs: [{path: y}]}}"])
def test_a_damaged_lock_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "dvc.lock").write_text(text)
    with pytest.raises(SandglassError, match=r"dvc.lock is not a lock file of DVC \(.*\); git checkout dvc.lock"):
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
        assert hashing.listing_text(listing) == file.read_text()
        file.write_text(json.dumps(entries[1:]))  # damaged
        assert hashing.stored_listing(md5, tmp_path) is None


def test_a_stored_file_is_returned_undamaged_or_not_at_all(tmp_path: Path) -> None:
    md5 = hashlib.md5(b"content").hexdigest()
    assert hashing.stored_file(md5, tmp_path) is None
    file = tmp_path / ".dvc/cache/files/md5" / md5[:2] / md5[2:]
    file.parent.mkdir(parents=True)
    file.write_bytes(b"content")
    assert hashing.stored_file(md5, tmp_path) == b"content"
    file.write_bytes(b"Content")
    assert hashing.stored_file(md5, tmp_path) is None


def test_old_versions_of_code_are_found_in_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    subprocess.run(["git", "init", "-q"], check=True)
    folder = Path("code")
    folder.mkdir()
    texts = ["", "one\n", "two\r\n\n", "one\n"]
    listings = []
    for text in texts:
        (folder / "a.py").write_bytes(text.encode())
        (folder / "é b.py").write_bytes(text.encode() * 2)
        listings.append({folder / name: hashing.md5(folder / name) for name in ("a.py", "é b.py")})
        subprocess.run(["git", "add", "-A"], check=True)
        subprocess.run(["git", *who, "commit", "-qm", "x"], check=True)
    git.find.cache_clear()
    for text in texts:
        version = git.find(folder / "é b.py", hashlib.md5(text.encode() * 2).hexdigest())
        assert version is not None and version.content == text.encode() * 2
    assert git.find(folder / "a.py", hashlib.md5(b"three").hexdigest()) is None
    assert list(git.listings(folder)) == listings[::-1]


def test_git_that_does_not_answer_holds_no_old_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks only wants to add where an old version lies."""
    monkeypatch.chdir(tmp_path)
    for command in (None, ["git", "init", "-q"]):  # no repository; one without a commit
        if command:
            subprocess.run(command, check=True)
        git.find.cache_clear()
        assert git.trouble()
        assert git.find(Path("a.py"), hashlib.md5(b"").hexdigest()) is None
        assert list(git.listings(Path("code"))) == []


def test_no_folder_is_laid_out_anew_while_an_engine_is_at_work_there(tmp_path: Path) -> None:
    code = tmp_path / "pipeline/module.py"
    code.parent.mkdir()
    code.touch()
    lock = tmp_path / graph.STATE / "lock"
    lock.parent.mkdir()
    lock.write_text(str(os.getpid()))
    with pytest.raises(SandglassError, match=r"snakemake \(process \d+\) is at work in"):
        lay_out(tmp_path)
    assert code.is_file()


def test_a_damaged_claims_table_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "committed_claims", lambda *_: pl.DataFrame())
    monkeypatch.chdir(tmp_path)
    lock = provenance.Lock("", "dvc.lock")
    assert elsewhere._tables("toy", lock) is None
    path = claims_path("toy", "parquet")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 and no more")
    assert elsewhere._tables("toy", lock) is None


def test_the_time_of_another_scale_is_not_that_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    job = graph.Job("train", "toy-a", "toy")
    noted = graph.LOGS / "steps" / f"{job.name}.json"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({"status": "done", "scale": "smoke", "seconds": 0.4}))
    assert listing._seconds(job, "smoke") == 0.4
    assert listing._seconds(job, "quick") is None


def _edits(*steps: tuple[str | None, str | None], path: str = "a.py") -> list[dict[str, Any]]:
    return [{"job": "train-a", "files": [{"path": path, "old": old, "new": new}]} for old, new in steps]


def _moved() -> list[dict[str, Any]]:
    files = [{"path": "a.py", "old": "1", "new": "2"}, {"path": "b.py", "old": "1", "new": None}]
    return [{"job": "train-a", "files": files}]


@pytest.mark.parametrize(
    ("edits", "recorded", "stand"),
    [
        (_edits(("1", "2"), ("2", "3")), {"a.py": "3"}, [0, 1]),  # one upon the other
        (_edits(("1", "2"), ("2", "3")), {"a.py": "2"}, [0]),  # the second was taken back
        (_edits(("1", "2"), ("2", "3")), {"a.py": "4"}, []),  # built again with other code
        (_edits(("1", "2"), ("3", "4")), {"a.py": "4"}, [1]),  # built between the two
        (_edits((None, "2"), path="b.py"), {"a.py": "1", "b.py": "2"}, [0]),  # code was moved to a new file
        (_edits(("1", None), path="b.py"), {"a.py": "1"}, []),  # nothing tells such an edit from a build
        (_moved(), {"a.py": "2"}, [0]),  # with an edit of a.py, b.py is read no more
        (_moved(), {"a.py": "2", "b.py": "1"}, []),  # built again, and b.py is read again
        (_edits(("1", "2"), path="b.py"), {"a.py": "1"}, []),  # a file that the job reads no more
    ],
)
def test_an_accepted_edit_stands_until_its_job_is_built_with_other_code(
    edits: list[dict[str, Any]], recorded: dict[str, str | None], stand: list[int]
) -> None:
    assert graph.standing(edits, "train-a", recorded) == [edits[i] for i in stand]
    assert graph.standing(edits, "train-b", recorded) == []
