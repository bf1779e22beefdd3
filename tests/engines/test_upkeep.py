"""why, list, accept and prune on the toy study, beside what the two engines themselves would do."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from workspace import BELOW_A_RUN, BELOW_B, Workspace

from pipeline.params.reading import PARSED

RUNS = "pipeline/studies/toy/runs.py"
TOY = "params/toy/runs.yaml"
CLAIMS = "data/claims/toy/claims.parquet"
TRAINED = "data/runs/toy/toy-a/toy-a.safetensors"


def _pipeline(workspace: Workspace, *arguments: str, **env: str) -> str:
    done = workspace.run("python", "-m", "pipeline", *arguments, **env)
    assert done.status == 0, done.output
    return done.output


def _refused(workspace: Workspace, *arguments: str) -> str:
    """The one line with which the command ends."""
    done = workspace.run("python", "-m", "pipeline", *arguments)
    assert done.status == 2, done.output
    assert done.output.startswith("sandglass: ") and done.output.count("\n") == 1, done.output
    return done.output


def _why(workspace: Workspace, *arguments: str) -> dict[str, Any]:
    """What ``why`` says, by command; the work tree is as it was, but for what follows from the parameters."""
    before = _tree(workspace)
    plan = json.loads(_pipeline(workspace, "why", "--json", *arguments))
    assert _tree(workspace) == before
    plan["jobs"] = {entry["job"].replace("-", " ", 1): entry for entry in plan["jobs"]}
    return plan


def _tree(workspace: Workspace) -> dict[str, Any]:
    apart = {"__pycache__", ".git", ".dvc"}
    derived = {workspace.path / name for name in ("params", "params/graph.json", "dvc.yaml", ".sandglass/imports.json")}
    own = [p for p in workspace.path.rglob("*") if not apart & set(p.parts) and p not in derived]
    own = [p for p in own if not p.is_relative_to(workspace.path / PARSED)]
    # Of a folder only the name: the first import of a module puts its compiled form there.
    return {str(p): None if p.is_dir() else (p.lstat().st_mtime_ns, p.lstat().st_size) for p in own}


def _causes(found: dict[str, Any], job: str) -> list[tuple[Any, ...]]:
    return [(c["kind"], c["what"], c["old"], c["new"]) for c in found["jobs"][job]["causes"]]


def _set_lr_of_b(built: Workspace) -> None:
    """Another learning rate for the first of the two models that the run toy-b trains."""
    built.change_study(lambda params: params["runs"]["toy-b"]["variants"]["toy-b"].update(lr=0.75))


def _recorded(workspace: Workspace, stage: str) -> list[dict[str, Any]]:
    """What dvc.lock says of the outputs of a stage."""
    lock = YAML(typ="safe").load((workspace.path / "dvc.lock").read_text(encoding="utf-8"))
    return list(lock["stages"][stage]["outs"])


def _md5(workspace: Workspace, file: str) -> str:
    return hashlib.md5((workspace.path / file).read_bytes()).hexdigest()


def _accepted(workspace: Workspace) -> list[dict[str, Any]]:
    """The entries of the log, without what was there before."""
    before = workspace.git("show", "HEAD:accepted.jsonl").splitlines()
    lines = (workspace.path / "accepted.jsonl").read_text().splitlines()
    assert lines[: len(before)] == before
    return [json.loads(line) for line in lines[len(before) :]]


def _listed(workspace: Workspace) -> dict[str, str]:
    listed = json.loads(_pipeline(workspace, "list", "--json"))
    return {row["job"]: row["state"] for row in listed["jobs"]}


# --- why ------------------------------------------------------------------------------------------


def test_why_two_changes_at_once_and_undone(built: Workspace) -> None:
    params, old = built.parameters(), _md5(built, RUNS)
    _set_lr_of_b(built)
    built.edit(RUNS)
    code = ("code", RUNS, old, _md5(built, RUNS))
    plan = _why(built)
    assert set(plan["jobs"]) == {"train toy-a", "train toy-b"} | BELOW_A_RUN
    assert _causes(plan, "train toy-b") == [("parameter", f"{TOY}:toy-b.variants.toy-b.lr", 0.25, 0.75), code]
    assert _causes(plan, "train toy-a") == [code]
    assert _causes(plan, "analyse toy-means") == []
    assert plan["jobs"]["analyse toy-means"]["because"] == ["train-toy-a", "train-toy-b"]
    assert plan["jobs"]["analyse toy-losses"]["because"] == ["train-toy-a"]
    assert plan["jobs"]["analyse toy-means"]["dvc"].startswith("runs if")
    assert code in _causes(plan, "report")  # of a folder that it depends on, the file
    text = _pipeline(built, "why", "data/figures/toy/toy-means/means.svg")
    assert f"  parameter {TOY}:toy-b.variants.toy-b.lr: 0.25 → 0.75\n" in text
    hint = next(line for line in text.splitlines() if f"code {RUNS}" in line)
    commit = built.git("rev-parse", "HEAD~1")[:10]
    assert hint.endswith(f"md5 {old[:8]} → {code[3][:8]} (git diff {commit} -- {RUNS})")
    assert "report" not in text and "dvc repro runs train-toy-a, train-toy-b, the others only where" in text
    assert built.planned() == set(plan["jobs"])

    built.restore(params)
    built.git("checkout", "-q", RUNS)
    assert _pipeline(built, "why", "--check") == "nothing to do: everything is up to date\n"
    assert built.planned() == set()


def test_why_tells_an_edit_from_what_is_not_here(built: Workspace) -> None:
    shutil.rmtree(built.path / "data/datasets/toy/toy-numbers")
    text = _pipeline(built, "why")
    assert "md5" in text and "none (not here)\n" in text
    assert "no edit reaches them: they make what is not here" in text and "an edit reaches" not in text
    _set_lr_of_b(built)
    text = _pipeline(built, "why", "analyse-toy-means")
    assert "\nan edit reaches train-toy-b, analyse-toy-means; the others make what is not here\n" in text


def test_why_sees_a_change_after_it_saw_none(built: Workspace) -> None:
    """Once nothing was to do, DVC is not asked again until a file is touched."""
    assert _pipeline(built, "why", "--check") == _pipeline(built, "why", "--check")
    file = built.path / "data/tables/toy/toy-means/means.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    assert built.run("python", "-m", "pipeline", "why", "--check").status == 1
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert _pipeline(built, "why", "--check") == "nothing to do: everything is up to date\n"


def test_why_a_parameter_shared_by_an_anchor(built: Workspace) -> None:
    file = built.path / TOY
    file.write_text(file.read_text().replace("steps: {smoke: 10, quick: 20", "steps: {smoke: 10, quick: 25"))
    plan = _why(built)
    for run in ("toy-a", "toy-b"):
        assert _causes(plan, f"train {run}") == [("parameter", f"{TOY}:{run}.steps.quick", 20, 25)]
    cause = f"parameter {TOY}:*.steps.quick: 20 → 25 (tracked, though of another scale)"
    lines = f"train-toy-a, train-toy-b\n  {cause}\n"
    assert lines in _pipeline(built, "why")
    assert built.planned() == set(plan["jobs"])
    assert built.run("python", "-m", "pipeline", "why", "toy-b", "--check").status == 1


def test_why_a_removed_run(built: Workspace) -> None:
    def remove(params: dict[str, Any]) -> None:
        del params["runs"]["toy-b"]
        params["experiments"]["toy-means"]["runs"].remove("toy-b")

    built.change_study(remove)
    plan = _why(built)
    runs = "params/toy/experiments.yaml:toy-means.runs"
    assert _causes(plan, "analyse toy-means")[0] == ("parameter", runs, ["toy-a", "toy-b"], ["toy-a"])
    assert ("data", "data/runs/toy/toy-b", None) in [
        (kind, what, new) for kind, what, _, new in _causes(plan, "analyse toy-means")
    ]
    assert plan["no_longer_in_params"] == ["train-toy-b"]
    assert f'parameter {runs}: without ["toy-b"]\n' in _pipeline(built, "why")
    assert built.planned() == set(plan["jobs"]) == BELOW_B


def test_why_is_right_while_the_graph_of_dvc_is_out_of_date(built: Workspace) -> None:
    """A start wrote it from parameters that were taken back since."""
    params = built.parameters()
    built.change_study(lambda params: params["experiments"].pop("toy-losses"))
    assert built.planned() == {"claims toy", "report"} == set(_why(built)["jobs"])
    built.restore(params)
    assert _pipeline(built, "why", "--check") == "nothing to do: everything is up to date\n"
    assert built.git("status", "--porcelain") == ""


def test_why_outputs_data_and_software(built: Workspace) -> None:
    numbers = "data/datasets/toy/toy-numbers/toy-numbers.parquet"
    check = "data/theory/toy/toy-identity.parquet"
    old, gone = _md5(built, numbers), _md5(built, check)
    (built.path / numbers).write_bytes(b"damaged")
    (built.path / check).unlink()
    plan = _why(built)
    assert _causes(plan, "dataset toy-numbers") == [("output", numbers, old, _md5(built, numbers))]
    assert _causes(plan, "theory toy-identity") == [("output", check, gone, None)]
    assert ("data", check, gone, None) in _causes(plan, "claims toy")
    assert plan["jobs"]["claims toy"]["dvc"].startswith("runs if")  # it is made again, and is the same
    assert built.planned() == set(plan["jobs"])

    requirements = built.path / "requirements.txt"
    text = requirements.read_text()
    version = next(line for line in text.splitlines() if line.startswith("numpy=="))
    requirements.write_text(text.replace(version, "numpy==1.0"))
    plan = _why(built, "toy-identity")
    assert _causes(plan, "theory toy-identity")[0] == ("software", "requirements.txt: numpy", version, "numpy==1.0")


@pytest.mark.slow
def test_why_after_a_partial_run_names_the_file_and_its_maker(built: Workspace) -> None:
    """The run is recorded already, so that only its bytes tell the analysis apart from its record."""
    old = _md5(built, TRAINED)
    built.set_lr("toy-a", 0.75)
    assert built.snakemake(TRAINED).status == 0
    plan = _why(built, "toy")
    assert set(plan["jobs"]) == BELOW_A_RUN - {"report"}
    assert ("data", TRAINED, old, _md5(built, TRAINED)) in _causes(plan, "analyse toy-means")
    assert f"data {TRAINED}: md5 {old[:8]} → {_md5(built, TRAINED)[:8]}, made by train-toy-a" in _pipeline(
        built, "why", "toy"
    )
    assert set(_why(built)["jobs"]) == built.planned()


def test_why_never_built(empty: Workspace) -> None:
    plan = _why(empty)
    assert set(plan["jobs"]) == empty.planned()
    assert _causes(plan, "train toy-a")[0][0] == "never built"
    assert set(_listed(empty).values()) == {"missing"}


@pytest.mark.slow
def test_why_knows_what_a_killed_snakemake_had_finished(built: Workspace) -> None:
    built.env.clear()  # a kill reaches steps that are started, not forked ones
    built.edit("pipeline/studies/toy/datasets.py")
    process = built.start("snakemake", TRAINED, **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    assert "snakemake (process" in json.loads(_pipeline(built, "why", "--json"))["at_work"]
    assert "snakemake (process" in _refused(built, "prune", "--yes")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    plan = _why(built)
    assert plan["unrecorded"] == ["dataset-toy-numbers"] and plan["at_work"] is None
    assert built.planned() == set(plan["jobs"]) == {"train toy-a"} | BELOW_A_RUN  # whose outputs are gone


# --- accept ---------------------------------------------------------------------------------------


def test_accepted_edit_leaves_only_the_report_to_build(built: Workspace) -> None:
    old = _md5(built, RUNS)
    built.edit(RUNS, "# a remark\n")
    before, tree = built.artifacts(), _tree(built)
    assert "+# a remark" in _pipeline(built, "accept", "toy", "--reason", "a comment", "--dry-run")
    assert _tree(built) == tree
    output = _pipeline(built, "accept", "toy", "--reason", "a  comment")
    text = "accepted, unproved, for train-toy-a, train-toy-b; logged in accepted.jsonl\nleft to build: report"
    assert text in output
    entries = _accepted(built)
    diff = built.git("diff", "--no-color", RUNS).split("--- ", 1)[1]
    first = {
        "job": "train-toy-a",
        "files": [{"path": RUNS, "old": old, "new": _md5(built, RUNS)}],
        "reason": "a comment",
        "proof": None,
    }
    assert [entry["job"] for entry in entries] == ["train-toy-a", "train-toy-b"]
    assert first.items() <= entries[0].items()
    assert len(entries[0]["diff"]) == 64 and f"--- {diff}".endswith("+# a remark\n")
    assert built.planned() == {"report"} == set(built.status())
    assert built.engine("dvc").ran == {"report"}
    assert built.artifacts() == before
    built.assert_clean()


def test_accepted_edit_of_unknown_origin_has_no_diff(built: Workspace) -> None:
    built.git("config", "user.name", "Ada")
    built.git("config", "user.email", "ada@example.org")
    for text in ("# one\n", "# two\n"):  # what the second edit replaces was never committed
        built.edit(RUNS, text)
        _pipeline(built, "accept", "--all", "--reason", "a comment")
    entries = _accepted(built)
    assert [entry["diff"] is None for entry in entries] == [False, False, True, True]
    assert {entry["author"] for entry in entries} == {"Ada <ada@example.org>"}
    assert built.planned() == {"report"}


def test_a_proof_is_a_rebuild_that_comes_out_identical(built: Workspace, tmp_path: Path) -> None:
    """Every job is run again with the edit; of those that others read, these others as well."""
    before = built.artifacts()
    built.edit(RUNS, "# a remark\n")
    built.edit("pipeline/studies/toy/analysis/means.py", "# a remark\n")
    env = {"TMPDIR": str(tmp_path)}
    output = _pipeline(built, "accept", "toy", "--prove", "--reason", "a comment", **env)
    assert "proved identical, and accepted for train-toy-a, train-toy-b, analyse-toy-means; logged in" in output
    entries = {entry["job"]: entry for entry in _accepted(built)}
    files = [
        f"data/runs/toy/{name}"
        for name in ("toy-b/toy-b.safetensors", "toy-b/toy-c.safetensors", "toy-b/curves.parquet", "toy-b.json")
    ]
    assert entries["train-toy-b"]["proof"] == {file: _md5(built, file) for file in files}
    assert set(entries["analyse-toy-means"]["proof"]) == {"data/tables/toy/toy-means/means.parquet"}
    assert built.planned() == {"report"} == set(built.status())
    assert list(tmp_path.glob("sandglass-proof-*")) == []
    assert built.artifacts() == before
    text = _pipeline(built, "trace", "toy-a")
    assert "edited after train-toy-a ran, proved identical by a rebuild" in text


def test_what_comes_out_different_is_not_accepted(built: Workspace, tmp_path: Path) -> None:
    code = "pipeline/studies/toy/analysis/means.py"
    lock, log = ((built.path / name).read_bytes() for name in ("dvc.lock", "accepted.jsonl"))
    env = {"TMPDIR": str(tmp_path)}

    def refused() -> str:
        done = built.run("python", "-m", "pipeline", "accept", "toy-means", "--prove", "--reason", "none", **env)
        assert done.status == 2, done.output
        return done.last_line

    double = "frame.with_columns(frame['mean'] * 2)"
    built.edit(
        code,
        f"""
before = analyse

def analyse(context):
    frame = before(context)["means"]
    return {{"means": {double}}}
""",
    )
    text = refused()
    assert "nothing was accepted, because analyse-toy-means, run again with this code, makes data/tables/" in text
    assert "means.parquet different" in text
    assert list(tmp_path.glob("sandglass-proof-*/data/tables/toy/toy-means/means.parquet"))
    built.git("checkout", "-q", code)
    built.edit(code, "raise RuntimeError\n")
    assert "analyse-toy-means fails with this code: see " in refused()
    assert lock == (built.path / "dvc.lock").read_bytes()
    assert log == (built.path / "accepted.jsonl").read_bytes()


def test_an_edit_of_what_one_analysis_imports_is_accepted_for_it_alone(built: Workspace) -> None:
    code = "pipeline/studies/toy/measures/metrics.py"
    built.edit(code, "# one\n")
    assert "it is up to date" in _refused(built, "accept", "analyse-toy-losses", "--reason", "a comment")
    _pipeline(built, "accept", "analyse-toy-means", "--reason", "a comment")
    assert [file["path"] for file in _accepted(built)[0]["files"]] == [code]
    assert built.planned() == {"report"} == set(built.status())


def test_a_module_that_code_was_moved_to_is_accepted(built: Workspace) -> None:
    """The step reads it since; the lock of before does not name it."""
    lock = (built.path / "dvc.lock").read_text(encoding="utf-8")
    stages = YAML(typ="safe").load(lock)["stages"]
    entry = next(dep for dep in stages["train-toy-a"]["deps"] if dep["path"] == RUNS)
    start, end = lock.index("  train-toy-a:"), lock.index("  train-toy-b:")
    words = "".join(f"    {'- ' if key == 'path' else '  '}{key}: {value}\n" for key, value in entry.items())
    without = lock[:start] + lock[start:end].replace(words, "") + lock[end:]
    assert len(without) == len(lock) - len(words)
    (built.path / "dvc.lock").write_text(without, encoding="utf-8")
    _pipeline(built, "accept", "train-toy-a", "--reason", "moved")
    assert _accepted(built)[0]["files"] == [{"path": RUNS, "old": None, "new": entry["md5"]}]
    deps = YAML(typ="safe").load(built.path / "dvc.lock")["stages"]["train-toy-a"]["deps"]
    assert sorted(map(str, deps)) == sorted(map(str, stages["train-toy-a"]["deps"]))
    assert built.planned() <= {"report"}


def test_a_module_that_is_read_no_more_is_accepted_with_the_edit_that_left_it(built: Workspace) -> None:
    lock = (built.path / "dvc.lock").read_text(encoding="utf-8")
    stages = YAML(typ="safe").load(lock)["stages"]
    gone, md5 = "pipeline/gone.py", "f" * 32
    start = lock.index("    deps:\n", lock.index("  train-toy-a:")) + len("    deps:\n")
    entry = f"    - path: {gone}\n      hash: md5\n      md5: {md5}\n      size: 3\n"
    (built.path / "dvc.lock").write_text(lock[:start] + entry + lock[start:], encoding="utf-8")
    built.edit(RUNS, "# its import is gone\n")
    _pipeline(built, "accept", "train-toy-a", "--reason", "an import")
    files = {file["path"]: (file["old"], file["new"]) for file in _accepted(built)[0]["files"]}
    assert files[gone] == (md5, None) and RUNS in files
    deps = YAML(typ="safe").load(built.path / "dvc.lock")["stages"]["train-toy-a"]["deps"]
    assert {dep["path"] for dep in deps} == {dep["path"] for dep in stages["train-toy-a"]["deps"]}
    assert "train-toy-a" not in built.planned()


def test_results_that_are_not_here_were_not_edited(built: Workspace) -> None:
    """A clone that pulled only some results can accept an edit of the code that made the others, but prove nothing."""
    built.edit(RUNS, "# a remark\n")
    built.run("rm", "-r", TRAINED, "data/datasets/toy")
    assert "data data/datasets/toy" in _refused(built, "accept", "toy-a", "--reason", "a comment", "--prove")
    output = _pipeline(built, "accept", "--all", "--reason", "a comment")
    assert "accepted, unproved, for train-toy-a, train-toy-b; logged in accepted.jsonl" in output
    assert [entry["job"] for entry in _accepted(built)] == ["train-toy-a", "train-toy-b"]


@pytest.mark.slow
def test_only_edits_of_code_are_accepted(built: Workspace) -> None:
    built.edit(RUNS)
    built.set_lr("toy-a", 0.75)
    lock, log = ((built.path / name).read_bytes() for name in ("dvc.lock", "accepted.jsonl"))
    refused = _refused(built, "accept", "--all", "--reason", "none")
    assert "for train-toy-a not only code was edited: parameter params/toy/runs.yaml:toy-a.lr: 0.5 →" in refused
    assert "simply built again" in _refused(built, "accept", "report", "--reason", "none")
    assert "it waits for train-toy-a, train-toy-b" in _refused(built, "accept", "analyse-toy-means", "--reason", "none")
    assert "it is up to date" in _refused(built, "accept", "toy-numbers", "--reason", "none")
    built.set_lr("toy-a", 0.5)
    requirements = built.path / "requirements.txt"
    requirements.write_text(requirements.read_text() + "# a remark\n")
    assert "software requirements.txt" in _refused(built, "accept", "toy-a", "--reason", "none")
    built.git("checkout", "-q", "requirements.txt")
    (built.path / TRAINED).write_bytes(b"damaged")
    assert f"output {TRAINED}" in _refused(built, "accept", "toy-a", "--reason", "none")
    assert lock == (built.path / "dvc.lock").read_bytes()
    assert log == (built.path / "accepted.jsonl").read_bytes()
    _pipeline(built, "accept", "toy-b", "--reason", "the other run is whole")
    assert set(built.status()) >= {"train-toy-a"} and "train-toy-b" not in built.status()


# --- list -----------------------------------------------------------------------------------------


def test_list_states_and_costs(built: Workspace) -> None:
    assert set(_listed(built).values()) == {"fresh"}
    built.set_lr("toy-a", 0.75)
    inventory = json.loads(_pipeline(built, "list", "toy", "--json"))
    states = {row["job"]: row["state"] for row in inventory["jobs"]}
    stale = {"train-toy-a"} | {job.replace(" ", "-") for job in BELOW_A_RUN - {"report"}}
    assert states == {job: "stale" if job in stale else "fresh" for job in states}
    assert len(states) == 9
    logs = [json.loads((built.path / f"logs/steps/{job.replace('@', '-')}.json").read_text()) for job in stale]
    assert inventory["to_bring_up_to_date"] == {
        "jobs": 6,
        "seconds": round(sum(log["seconds"] for log in logs), 2),
        "unknown": 0,
    }
    (built.path / "logs/steps/train-toy-a.json").unlink()
    text = _pipeline(built, "list")
    assert "3 fresh, 7 stale" in text
    assert "to bring up to date: 7 jobs" in text and "and 1 that never ran here" in text
    assert "did you mean toy?" in _refused(built, "list", "tyo")


@pytest.mark.slow
def test_list_after_a_clone_and_a_pull(built: Workspace) -> None:
    """What an auditor sees: results without the data behind them."""
    folder = built.path / "data/reference/toy-wide"
    folder.mkdir()
    record = {"study": "toy", "scale": "paper", "jobs": {"train-toy-a": {"device": "cuda"}}}
    (folder / "record.json").write_text(json.dumps(record))
    built.run("dvc", "add", "-q", "data/reference/toy-wide")
    assert built.run("dvc", "push", "-q").status == 0
    built.run(
        "rm",
        "-rf",
        ".dvc/cache",
        *(f"data/{kind}" for kind in ("datasets", "runs", "theory", "tables")),
        "data/figures",
        "data/claims",
        "data/report",
        str(folder),
    )
    states = _listed(built)
    assert states["dataset-toy-numbers"] == states["train-toy-a"] == "missing"
    assert states["analyse-toy-means"] == states["theory-toy-identity"] == "not pulled"
    built.run("dvc", "pull", "-q", "--allow-missing")
    states = _listed(built)
    assert states["theory-toy-identity"] == "fresh"
    assert states["analyse-toy-means"] == states["claims-toy"] == "recorded"
    references = json.loads(_pipeline(built, "list", "toy", "--json"))["reference"]
    assert [{k: v for k, v in references[0].items() if k != "bytes"}] == [
        {
            "name": "toy-wide",
            "study": "toy",
            "state": "present",
            "scale": "paper",
            "made_from": "1 jobs on cuda",
            "files": 1,
        }
    ]
    built.run("rm", "-rf", str(folder))
    text = _pipeline(built, "list", "toy")
    assert "not pulled" in text and "recorded: as dvc.lock has it" in text
    # What a newcomer is told is what is here, not that nothing of what made it has run here.
    built.run("rm", "-rf", "logs")
    text = _pipeline(built, "summary")
    assert "6 of 10 jobs have their results" in text and "not here: 1 dataset, 2 train, 1 report" in text
    assert "has not run" not in text and "toy-a" not in text
    assert "python -m pipeline report --from-store" in text


# --- prune ----------------------------------------------------------------------------------------


def _leave(built: Workspace) -> dict[str, Path]:
    """One leftover of each kind."""
    _set_lr_of_b(built)
    built.snakemake("data/runs/toy/toy-b/toy-b.safetensors")  # DVC's cache holds what it was before
    built.git("commit", "-qam", "other rate")
    built.set_lr("toy-a", 0.75)  # unfinished
    node = os.uname().nodename
    left = {
        "files that no job makes": "data/runs/toy/toy-d/toy-d.safetensors",
        "of a fresh run": ".work/toy/toy-b/step.safetensors",
        "of a run that is gone": ".work/toy/toy-c/toy-c/step.safetensors",
        "of an unfinished run": ".work/toy/toy-a/step.safetensors",
        "of a dead process": f"data/.tmp/train-toy-a.{node}.999999999/x",
        "of another machine": "data/.tmp/train-toy-a.elsewhere.1/x",
        "log": "logs/train-toy-c.log",
        "reference": "data/reference/toy/x.parquet",
        "remote": ".dvcstore/files/md5/00/00",
    }
    paths = {kind: built.path / name for kind, name in left.items()}
    for path in paths.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 1000)
    return paths


@pytest.mark.slow
def test_prune_shows_first_and_deletes_then(built: Workspace) -> None:
    paths = _leave(built)
    before, status = _tree(built), set(built.status())
    shown = _pipeline(built, "prune")
    assert "nothing was deleted; --yes frees " in shown
    assert _tree(built) == before
    listing = json.loads(_pipeline(built, "prune", "--json"))
    going = {entry["path"] for entry in listing["leftovers"] if not entry["kept"]}
    assert {"data/runs/toy/toy-d/toy-d.safetensors", ".work/toy/toy-b", "logs/train-toy-c.log"} <= going
    caches = [entry for entry in listing["leftovers"] if entry["kind"] == "DVC's cache"]
    assert sum(entry["bytes"] for entry in caches) > 1_000_000 and all(entry["kept"] for entry in caches)

    _pipeline(built, "prune", "--yes")
    kept = {"of an unfinished run", "of another machine", "reference", "remote"}
    assert {kind for kind, path in paths.items() if path.exists()} == kept
    built.git("checkout", "-q", "HEAD~1", "dvc.lock")
    assert built.run("dvc", "checkout").status == 0  # the older results are still there
    built.git("checkout", "-q", "HEAD", "dvc.lock")
    assert built.run("dvc", "checkout").status == 0

    assert "freed " in _pipeline(built, "prune", "--yes", "--cache", "--work")
    assert {kind for kind, path in paths.items() if path.exists()} == kept - {"of an unfinished run"}
    assert "DVC's cache" not in _pipeline(built, "prune")
    (built.path / "data/reference/toy/x.parquet").unlink()
    assert set(built.status()) == status
    built.git("checkout", "-q", "HEAD~1", "dvc.lock")
    assert built.run("dvc", "checkout").status != 0


@pytest.mark.slow
def test_prune_where_most_was_never_pulled(built: Workspace, tmp_path: Path) -> None:
    """Neither the cache nor the remote knows what was in the folders of datasets and runs."""
    clone = built.pushed_clone(tmp_path / "clone")
    assert clone.run("dvc", "pull", "--allow-missing").status == 0
    assert _pipeline(clone, "prune") == "nothing is left over\n"
    old = _md5(clone, CLAIMS)
    clone.change_study(lambda params: params["claims"].update(tolerance=0.25))
    assert clone.run("python", "-m", "pipeline", "judge", "toy").status == 0
    assert clone.run("dvc", "commit", "--force", "claims-toy").status == 0
    folder = next(out for out in _recorded(clone, "analyse-toy-means") if out["path"] == "data/tables/toy/toy-means")
    lists = list(clone.path.glob(f".dv*/**/{folder['md5'][2:]}"))
    assert len(lists) == 2  # in the cache and in the remote
    for each in lists:  # what the folder held lies here
        each.unlink()
    listing = json.loads(_pipeline(clone, "prune", "--json"))
    caches = [entry["path"] for entry in listing["leftovers"] if entry["kind"] == "DVC's cache"]
    assert [Path(path).parts[-2:] for path in caches] == [(old[:2], old[2:])]
    kept = {path for path in (clone.path / ".dvc/cache/files").rglob("*") if path.is_file()}
    _pipeline(clone, "prune", "--yes", "--cache")
    assert kept - {path for path in kept if path.is_file()} == {Path(path) for path in caches}


# --- what can be wrong ----------------------------------------------------------------------------


def test_what_is_wrong_is_one_line(built: Workspace) -> None:
    assert "did you mean" in _refused(built, "why", "means.sgv")
    lock = built.path / "dvc.lock"
    content = lock.read_text()
    lock.write_text("stages: [")
    assert "dvc.lock" in _refused(built, "why")
    lock.unlink()
    assert "never built" in _refused(built, "accept", "--all", "--reason", "none")
    lock.write_text(content)
    built.change_study(lambda params: params["runs"]["toy-a"].update(lr="fast"))
    assert f"{TOY}: toy-a.lr" in _refused(built, "prune")
    built.git("checkout", "-q", "params")
    built.run("rm", "-rf", ".git")
    assert "git" in _refused(built, "list")


def test_a_dvc_repro_at_work_is_named(built: Workspace) -> None:
    built.env.clear()
    built.set_lr("toy-a", 0.75)
    process = built.start("dvc", "repro", **built.hold("toy-a"))
    built.wait_for_step("train-toy-a", process)
    text = _pipeline(built, "list")
    assert "note: `dvc repro` (process " in text and "train-toy-a" in text
    assert "`dvc repro` (process " in _refused(built, "accept", "--all", "--reason", "none")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
