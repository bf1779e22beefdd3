"""`python -m pipeline trace`: the tree, its JSON, verification and rebuild, on the toy study."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_bad_input import flip, wait_for
from workspace import Workspace, environment

from pipeline.audit import hashing, provenance
from pipeline.engine import lockfile, machine
from pipeline.store import tables

NUMBERS = "data/datasets/toy/toy-numbers/toy-numbers.parquet"
MODEL = "data/runs/toy/toy-a/toy-a.safetensors"
MEANS = "data/tables/toy/toy-means/means.parquet"
SVG = "data/figures/toy/toy-means/means.svg"
CODE = "pipeline/studies/toy/runs.py"
DATA, A, B, IDENTITY = "dataset-toy-numbers", "train-toy-a", "train-toy-b", "theory-toy-identity"
CHAIN = [DATA, A, B, "analyse-toy-means"]


def trace(workspace: Workspace, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Its exit status and its JSON."""
    done = subprocess.run(
        ["python", "-m", "pipeline", "trace", *arguments, "--json"],
        cwd=workspace.path,
        env=environment() | workspace.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout or "{}")


def wrong(found: dict[str, Any], state: str = "mismatch") -> set[tuple[str, str]]:
    """Kind and subject of the checks in this state."""
    return {(check["kind"], check["what"]) for check in found["checks"] if check["state"] == state}


def files(found: dict[str, Any], kind: str) -> dict[str, str]:
    return {file["path"]: file["md5"] for job in found["jobs"] for file in job[kind]}


@pytest.mark.parametrize(
    ("name", "chain"),
    [
        ("figures/toy/toy-means/means", [*CHAIN, "figures-toy-means"]),
        (
            "figures/toy/toy-losses/losses",
            [DATA, A, B, IDENTITY, "analyse-toy-means", "analyse-toy-losses", "figures-toy-losses"],
        ),
        ("toy:1", [DATA, A, B, IDENTITY, "analyse-toy-means", "analyse-toy-losses", "claims-toy"]),
    ],
)
def test_the_chain_with_its_md5s_parameters_and_code(built: Workspace, name: str, chain: list[str]) -> None:
    status, lineage = trace(built, name)
    assert (status, lineage["status"], lineage["verified"]) == (0, 0, None)
    assert [job["job"] for job in lineage["jobs"]] == chain
    for path, md5 in (files(lineage, "outputs") | files(lineage, "code")).items():
        assert md5 == hashing.md5(built.path / path), path
    train = next(job for job in lineage["jobs"] if job["job"] == "train-toy-a")
    assert train["parents"] == ["dataset-toy-numbers"]
    assert CODE in [file["path"] for file in train["code"]]
    steps = {
        "name": "params/toy/runs.yaml:toy-a.steps",
        "written": {"smoke": 10, "quick": 20, "paper": 30},
        "value": 10,
    }
    assert steps in train["parameters"]
    claims = [row["verdict"] for row in lineage["claims"]]
    assert claims == (["holds"] if name == "toy:1" else [])


def test_the_tree_for_people(built: Workspace) -> None:
    done = built.run("python", "-m", "pipeline", "trace", "means", "report", "--verify", "--code")
    assert done.status == 0, done.output
    for part in (
        "'means' stands for 2 results, which follow; each has a name: figures/toy/toy-means/means, "
        "tables/toy/toy-means/means",
        f"{SVG}  md5 {hashing.md5(built.path / SVG)}",
        "rebuild it alone: snakemake data/figures/toy/toy-means/means.",
        "rebuild it alone: snakemake data/report/index.html",
        "its inputs are as committed",
        "2 × train",
        "parameters in common: ",
        "scale smoke, seed 1",
        "2 variants: toy-b, toy-c",
        "steps 10 of 10|20|30",
        f"{CODE}  md5 {hashing.md5(built.path / CODE)}",
        "train-toy-b  from dataset-toy-numbers",
        "verified: match",
    ):
        assert part in done.output, part


def test_many_of_a_kind_are_one_line(built: Workspace) -> None:
    """Unless each is asked for: six runs more, all of them read by the claims."""

    def more(params: dict[str, Any]) -> None:
        for number in range(6):
            params["runs"][f"toy-more{number}"] = dict(params["runs"]["toy-a"])
            params["experiments"]["toy-means"]["runs"].append(f"toy-more{number}")

    built.change_study(more)
    short, full = (
        built.run("python", "-m", "pipeline", "trace", "toy:1", *option).output for option in ([], ["--full"])
    )
    assert "8 × train: train-toy-a, train-toy-b, train-toy-more0, train-toy-more1 and 4 more" in short
    assert len(short.splitlines()) <= 45 < len(full.splitlines())
    assert "all parameters: --full" in short and "--full" not in full
    assert "train-toy-more5" not in short and "train-toy-more5" in full
    assert "variants.toy-c.lr" in full and "variants.toy-c.lr" not in short


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("toy-aa", "nothing made by the pipeline is called 'toy-aa'; did you mean toy-a"),
        ("claim 7", "there is no claim 7; known are toy:1"),
    ],
)
def test_an_unknown_name_is_one_line(built: Workspace, name: str, text: str) -> None:
    done = built.run("python", "-m", "pipeline", "trace", name)
    assert done.status == 2
    assert done.output.startswith(f"sandglass: {text}") and done.output.count("\n") == 1


# --- verification ---------------------------------------------------------------------------------


def forge_a_parameter(workspace: Workspace) -> None:
    """dvc.lock edited: as if toy-a had been built with another learning rate."""
    lock = workspace.path / "dvc.lock"
    above, below = lock.read_text().split("\n  train-toy-a:\n")
    assert "lr: 0.5\n" in below
    lock.write_text(above + "\n  train-toy-a:\n" + below.replace("lr: 0.5\n", "lr: 0.75\n", 1))


def forge_the_lock(workspace: Workspace) -> None:
    """A checkpoint replaced, and its md5 in dvc.lock as well; but the analysis read another one."""
    path, lock = workspace.path / MODEL, workspace.path / "dvc.lock"
    before = hashing.digest(hashing.listing(path.parent))
    path.write_bytes(bytes(path.stat().st_size))
    after, train = hashing.digest(hashing.listing(path.parent)), "\n  train-toy-a:\n"
    above, below = lock.read_text().split(train)
    assert before in below
    lock.write_text(above + train + below.replace(before, after, 1))  # what it made, not what others read


def forge_a_size(workspace: Workspace) -> None:
    """The size of a dataset, under the same md5."""
    lock = workspace.path / "dvc.lock"
    text, before = lock.read_text(), (workspace.path / NUMBERS).stat().st_size
    assert f"size: {before}\n" in text
    lock.write_text(text.replace(f"size: {before}\n", f"size: {before + 1}\n"))


def forget_a_job(workspace: Workspace) -> None:
    """The record of an analysis removed from dvc.lock, and that of nothing else."""
    lock = workspace.path / "dvc.lock"
    parts = re.split(r"(?m)^  (?=\S+:$)", lock.read_text())
    kept = [part for part in parts if not part.startswith("analyse-toy-means:")]
    assert len(kept) == len(parts) - 1
    lock.write_text("  ".join(kept))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda w: flip(w.path / MEANS, 400), {("output", MEANS), ("seal", MEANS)}),
        (lambda w: flip(w.path / MODEL, 900_000), {("output", MODEL), ("seal", MODEL)}),
        (lambda w: w.edit(CODE), {("code", CODE)}),
        (lambda w: w.set_lr("toy-a", 0.75), {("parameter", "params/toy/runs.yaml:toy-a.lr")}),
        (forge_a_parameter, {("parameter", "params/toy/runs.yaml:toy-a.lr")}),
        (forge_the_lock, {("data", "data/runs/toy/toy-a"), ("seal", MODEL)}),
        (forge_a_size, {("lock", "dvc.lock")}),
        (forget_a_job, {("lock", "dvc.lock"), ("data", "data/tables/toy/toy-means")}),
        (
            lambda w: shutil.copy(w.path / MEANS, w.path / "data/tables/toy/toy-means/more.parquet"),
            {("output", "data/tables/toy/toy-means/more.parquet")},
        ),
    ],
    ids=["table", "checkpoint", "code", "parameter", "lock", "forged", "size", "forgotten", "surplus"],
)
def test_verification_names_what_does_not_match(
    built: Workspace, damage: Callable[[Workspace], None], expected: set[tuple[str, str]]
) -> None:
    damage(built)
    status, lineage = trace(built, SVG, "--verify")
    assert (status, lineage["verified"]) == (1, "mismatch")
    assert wrong(lineage) == expected
    edited = {what for kind, what in expected if kind == "code"} or {"params/toy/runs.yaml", "dvc.lock"}
    assert set(lineage["git"]["edited"]) <= edited


@pytest.mark.slow
def test_another_build_than_the_committed_one_matches(built: Workspace) -> None:
    """What lies here is what this lock file says; that it is not what was committed is said beside it."""
    built.set_lr("toy-a", 0.75)
    assert built.snakemake(SVG).status == 0
    status, lineage = trace(built, SVG, "--verify")
    assert (status, lineage["verified"]) == (0, "match")
    assert wrong(lineage, "another build") == {("lock", "dvc.lock")}
    done = built.run("python", "-m", "pipeline", "trace", SVG, "--verify")
    assert "another build than the committed one: 3 of 5 jobs" in done.output
    assert done.output.index("verified: match") < done.output.index("\nfigures-toy-means")


def test_what_was_asked_for_and_is_lost_fails(built: Workspace) -> None:
    (built.path / SVG).unlink()
    status, lineage = trace(built, SVG, "--verify")
    assert (status, lineage["verified"]) == (1, "mismatch")
    assert wrong(lineage) == {("output", SVG)}


def test_a_claim_that_was_edited_is_not_printed(built: Workspace) -> None:
    assert [row["value"] for row in trace(built, "toy:1")[1]["claims"]] != []
    path = built.path / "data/claims/toy/claims.parquet"
    frame = pl.read_parquet(path).with_columns(value=pl.lit(0.123))
    tables.store(frame, path, tables.read_metadata(path))
    done = built.run("python", "-m", "pipeline", "trace", "toy:1", "--verify")
    assert done.status == 1 and "0.123" not in done.output and "does not match: output" in done.output


def test_what_is_not_here_is_not_checked(built: Workspace) -> None:
    (built.path / MODEL).unlink()
    status, lineage = trace(built, SVG, "--verify")
    assert (status, lineage["verified"]) == (3, "not checked")
    assert wrong(lineage) == set()
    assert wrong(lineage, "not checked") == {("output", MODEL)}


def test_only_the_chain_is_verified(built: Workspace) -> None:
    flip(built.path / SVG, 40)
    built.edit("pipeline/studies/toy/figures/means.py")
    assert trace(built, "toy:1", "--verify")[0] == 0
    assert trace(built, SVG, "--verify")[0] == 1


def test_without_the_list_of_a_folder_its_md5_still_tells(built: Workspace) -> None:
    shutil.rmtree(built.path / ".dvc/cache")
    assert trace(built, SVG, "--verify")[0] == 0
    flip(built.path / MEANS, 400)
    status, lineage = trace(built, SVG, "--verify")
    assert status == 1
    assert wrong(lineage) == {("output", "data/tables/toy/toy-means"), ("seal", MEANS)}


def test_without_git_the_lock_is_not_checked(built: Workspace) -> None:
    shutil.rmtree(built.path / ".git")
    status, lineage = trace(built, SVG, "--verify")
    assert (status, lineage["git"]["commit"]) == (3, None)
    assert wrong(lineage, "not checked") == {("lock", "dvc.lock")}


def test_a_clone_with_what_was_pushed(built: Workspace, tmp_path: Path) -> None:
    clone = built.pushed_clone(tmp_path / "clone")
    assert clone.run("dvc", "pull", "--allow-missing").status == 0
    shutil.rmtree(clone.path / ".dvc/cache")  # the store in the repository knows the files of folders as well
    status, lineage = trace(clone, "report", "--verify")
    assert (status, lineage["verified"]) == (3, "not checked")
    assert wrong(lineage) == set()
    # Of a folder that was not pushed nothing knows the list of files, unless each was read by name.
    assert wrong(lineage, "not checked") == {
        ("output", "data/datasets/toy/toy-numbers/toy-numbers.parquet"),
        ("output", "data/runs/toy/toy-a"),
        ("output", "data/runs/toy/toy-b"),
        ("output", "data/report"),
        ("data", "data/runs"),
    }
    flip(clone.path / MEANS, 400)
    assert trace(clone, "report", "--verify")[0] == 1


def test_an_accepted_edit_is_shown(built: Workspace) -> None:
    old = hashing.md5(built.path / CODE)
    built.edit(CODE)
    new = hashing.md5(built.path / CODE)
    for name in ("dvc.lock", "accepted.jsonl"):
        path = built.path / name
        edit = {"job": "train-toy-a", "files": [{"path": CODE, "old": old, "new": new}], "reason": "a comment"}
        text = json.dumps(edit | {"author": "t", "diff": ""}) + "\n"
        path.write_text(text if name == "accepted.jsonl" else path.read_text().replace(old, new))
    built.git("commit", "-qam", "accepted")
    _, lineage = trace(built, "toy-a")
    assert wrong(lineage) == set()
    assert [edit["reason"] for job in lineage["jobs"] for edit in job["accepted"]] == ["a comment"]
    assert "accepted as harmless, unproved" in built.run("python", "-m", "pipeline", "trace", "toy-a").output
    text = (built.path / "accepted.jsonl").read_text()
    (built.path / "accepted.jsonl").write_text(text.replace('"author"', f'"proof": {{"{MODEL}": "x"}}, "author"'))
    assert "proved identical by a rebuild" in built.run("python", "-m", "pipeline", "trace", "toy-a").output


# --- rebuild --------------------------------------------------------------------------------------


def nudge(path: Path, factor: float) -> None:
    """Write the table again, properly, with other means."""
    frame = pl.read_parquet(path).with_columns(pl.col("mean") * factor)
    tables.store(frame, path, tables.read_metadata(path))


@pytest.mark.slow
def test_rebuild_compares(built: Workspace, tmp_path: Path) -> None:
    scratch, names = (str(tmp_path / "scratch"), ("tables/toy/toy-means/means", "figures/toy/toy-means/means", "toy:1"))
    before = built.artifacts()
    again = ("--rebuild", "--workspace", scratch)

    def states() -> tuple[int, dict[str, Any]]:
        status, lineage = trace(built, *names, *again)
        return status, {each["path"]: each for each in lineage["rebuilt"]["comparisons"]}

    status, lineage = trace(built, *names, *again)
    assert (status, lineage["rebuilt"]["state"]) == (0, "identical")
    assert set(lineage["rebuilt"]["made"]) == {
        *CHAIN,
        IDENTITY,
        "analyse-toy-losses",
        "figures-toy-means",
        "claims-toy",
    }
    assert lineage["rebuilt"]["kept"] == []
    assert built.artifacts() == before  # the work tree is not touched

    nudge(built.path / MEANS, 1 + 1e-9)
    status, compared = states()
    assert (status, compared[MEANS]["state"], compared[MEANS]["column"]) == (4, "within tolerance", "mean")
    assert compared[MEANS]["difference"] == pytest.approx(1e-9, rel=0.1)
    assert compared[SVG]["state"] == "identical"

    nudge(built.path / MEANS, 1.1)
    flip(built.path / SVG, 40)
    status, compared = states()
    assert status == 1
    assert {path for path, each in compared.items() if each["state"] == "different"} == {MEANS, SVG}

    for path in (MEANS, SVG):
        (built.path / path).unlink()
    status, compared = states()
    assert status == 3
    assert compared[MEANS]["state"] == compared[SVG]["state"] == "not compared"

    for folder in (built.path, built.path / "params.yaml"):
        status, _ = trace(built, "toy:1", "--rebuild", "--workspace", str(folder))
        assert status == 2


@pytest.mark.slow
def test_a_rebuild_says_what_moved_what_turned_and_where(built: Workspace, tmp_path: Path) -> None:
    """On another processor numbers move; a verdict that turned is named, and what was built is kept."""
    made = {path: out.md5 for path, out in provenance.read_lock(built.path).made.items()}
    times = {"smoke": {"machine": "Abacus, 2 cores", "elapsed": 1.0, "jobs": {}, "outputs": lockfile.digest(made)}}
    (built.path / "profiles/times.json").write_text(json.dumps(times))
    yardstick = {"smoke": {"gates": 9, "moved": 4, "largest": 1.73, "turned": ["toy:1 mean"]}}
    (built.path / "profiles/rounding.json").write_text(json.dumps(yardstick))
    path = built.path / "data/claims/toy/claims.parquet"
    frame = pl.read_parquet(path)
    rebuild = ("python", "-m", "pipeline", "trace", "toy:1", "--rebuild")

    def recorded(*options: str, **columns: pl.Expr) -> str:
        tables.store(frame.with_columns(**columns), path, tables.read_metadata(path))
        return built.run(*rebuild, *options, TMPDIR=str(tmp_path)).output

    output = recorded(verdict=pl.lit("fails"))
    assert "(1 turned: 1 mean fails → holds)" in output and "rebuilt: different" in output
    (folder,) = tmp_path.glob("sandglass-*")
    assert re.search(rf"workspace: {folder} \([\d.]+ MB; kept to be looked at, remove it: rm -r {folder}\)", output)

    output = recorded("--workspace", str(folder), value=pl.col("value") * 1.07)
    assert "1 moved on the same side of their bounds: 1 mean" in output
    assert "rebuilt: moved inside intervals" in output
    last = output.strip().splitlines()[-1]
    assert last.startswith(f"the record was made on Abacus, 2 cores; rebuilt on {machine.description()}: last bits")
    assert last.endswith(
        "moves 4 of the 9 gates of all claims, by up to 1.7 of a value, and turns 1 verdict; single models move as far"
    )


@pytest.mark.slow
def test_rebuild_with_the_runs_from_here(built: Workspace, tmp_path: Path) -> None:
    flip(built.path / "data/runs/toy/toy-b/toy-b.safetensors", 900_000)  # not as recorded: not taken
    scratch = str(tmp_path / "scratch")
    kept = ("python", "-m", "pipeline", "trace", "toy:1", "--rebuild", "--keep-runs", "--workspace", scratch)
    done = built.run(*kept)
    assert done.status == 2 and "add --train to train 1 of them again" in done.output
    assert "train-toy-b" in done.output and not (tmp_path / "scratch").exists()
    done = built.run(*kept, "--train")
    assert done.status == 0, done.output
    assert "taken from here, not made again: dataset-toy-numbers, train-toy-a" in done.output
    assert "training was not repeated for 1 run" in done.output
    assert (
        "built again: train-toy-b, theory-toy-identity, analyse-toy-means, analyse-toy-losses, claims-toy"
        in done.output
    )
    assert "rebuilt: identical" in done.output
    again = built.run("python", "-m", "pipeline", "trace", "toy:1", "--rebuild", "--workspace", scratch)
    assert again.status == 2
    assert "holds runs that were taken from here; add --keep-runs" in again.output


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [False, True], ids=["failed", "interrupted"])
def test_a_rebuild_that_stops_keeps_its_workspace(built: Workspace, interrupted: bool, tmp_path: Path) -> None:
    if interrupted:
        built.env.clear()  # a signal reaches steps that are started, not forked ones
    variables = built.hold("toy-a") if interrupted else {"TOY_FAIL": "toy-a"}
    process = built.start("python", "-m", "pipeline", "trace", "toy-a", "--rebuild", TMPDIR=str(tmp_path), **variables)
    if interrupted:
        wait_for(tmp_path, "sandglass-*/.sandglass/jobs/train-toy-a.lock")
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    (folder,) = tmp_path.glob("sandglass-*")
    assert process.returncode == (130 if interrupted else 2), output
    assert output.splitlines()[-1].endswith(f"go on with --workspace {folder}")
    assert "Traceback" not in output
    assert (folder / "data/datasets/toy/toy-numbers/toy-numbers.parquet").is_file()
