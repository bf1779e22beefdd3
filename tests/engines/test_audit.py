"""The command `audit`: what agrees passes, and each of the ways to spoil results is named; what it cannot see, passes.

On the toy study, and for a number that was forged with all that follows from it on the landscapes of `nce` as well.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY, Workspace, load_all

from pipeline.audit import again, elsewhere
from pipeline.audit.findings import Finding
from pipeline.engine import graph
from pipeline.engine.build import Reference
from pipeline.store import tables

TABLE = "data/tables/toy/toy-means/means.parquet"
CLAIMS = "data/claims/toy/claims.parquet"
FIGURE = "data/figures/toy/toy-means/means.svg"
OTHER = "data/figures/toy/toy-losses/losses.svg"
LOST = "data/tables/toy/toy-losses/losses.parquet"
THEORY = "data/theory/toy/toy-identity.parquet"
DATASET = "data/datasets/toy/toy-numbers/toy-numbers.parquet"


@pytest.fixture
def built(built: Workspace) -> Workspace:
    """As an auditor has it, without the site: that prints the md5s of all code, so any edit makes it stale."""
    shutil.rmtree(built.path / "data/report")
    return built


def audit(workspace: Workspace, status: int, *options: str, **env: str) -> dict[str, Any]:
    done = workspace.run("python", "-m", "pipeline", "audit", "--json", *options, **env)
    assert done.status == status, done.output
    report: dict[str, Any] = json.loads(done.output)
    assert report["passed"] == (status == 0)
    return report


def named(found: dict[str, Any], part: str) -> set[str]:
    return {each["what"] for each in found["findings"] if each["part"] == part}


def changed(path: Path, column: str) -> None:
    """Add one to the numbers of a column; the table's own checksum is right."""
    frame = pl.read_parquet(path).with_columns(pl.col(column) + 1)
    tables.store(frame, path, tables.read_metadata(path))


def recorded(workspace: Workspace, stage: str) -> None:
    """Have dvc.lock record what a stage made as it lies there, and commit that."""
    done = workspace.run("dvc", "commit", "--force", stage)
    assert done.status == 0, done.output
    workspace.git("commit", "-qam", "so it was")


def test_a_clone_with_what_was_pushed_passes(built: Workspace, tmp_path: Path) -> None:
    clone = built.pushed_clone(tmp_path / "clone")
    assert named(audit(clone, 1), "published") >= {TABLE, CLAIMS, FIGURE}  # nothing is here yet
    assert clone.run("dvc", "pull", "--allow-missing").status == 0
    report = audit(clone, 0)
    assert report["lock"] == "dvc.lock is the committed one (made on a machine that is not recorded)"
    assert report["commit"] == clone.git("rev-parse", "--short", "HEAD").strip()
    assert (report["studies"], report["sets"], report["warnings"]) == (["toy"], [], [])
    assert report["files"] > 8 and report["made_again"] > 5 and report["tables"] == 3
    assert report["recomputed"] is None
    assert set(report["kept_back"]) == {"dataset", "train", "report"}
    done = clone.run("python", "-m", "pipeline", "audit")
    assert done.status == 0 and "audit passed" in done.output and "never published" in done.output


def test_files_that_are_not_what_was_recorded_are_named_and_the_commands_that_are_named_mend_them(
    built: Workspace,
) -> None:
    """Another value, a lost file, one cut short, two in each other's place, and one that no job makes."""
    built.run("dvc", "remote", "add", "-d", "store", ".dvcstore")
    assert built.run("dvc", "push", "-q").status == 0
    committed(built)
    stray = "data/tables/toy/toy-means/more.parquet"
    changed(built.path / TABLE, "mean")
    (built.path / LOST).unlink()
    (built.path / CLAIMS).write_bytes((built.path / CLAIMS).read_bytes()[:-9])
    one, other = (built.path / name for name in (FIGURE, OTHER))
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)
    (built.path / stray).write_bytes(b"")
    findings = [each for each in audit(built, 1)["findings"] if each["part"] == "published"]
    assert {each["what"] for each in findings} == {TABLE, LOST, CLAIMS, FIGURE, OTHER, stray}
    assert all("dvc pull --force" in each["mend"] or each["mend"].startswith("rm ") for each in findings)
    # A folder that is fetched again loses what is not of it, so that what is to be removed goes first.
    for command in sorted({each["mend"] for each in findings}, reverse=True):
        done = built.run("sh", "-c", command)
        assert done.status == 0, done.output
    audit(built, 0)


def test_a_figure_that_was_replaced_with_its_record_is_named(built: Workspace) -> None:
    """A picture of other numbers, recorded as if the build had drawn it."""
    path = built.path / FIGURE
    path.write_text(path.read_text().replace("</svg>", "<text>better</text></svg>"))
    recorded(built, "figures-toy-means")
    report = audit(built, 1)
    assert named(report, "published") == set() and FIGURE in named(report, "made again")


def a_set(built: Workspace, name: str, factor: float = 1.0) -> Path:
    """Give the work tree a reference set, as `reference` makes one, but of its own results; return its folder."""
    folder = built.path / "data/reference" / name
    (folder / "claims").mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"study": "toy", "scale": "paper", "jobs": {}}))
    claims = pl.read_parquet(built.path / CLAIMS).with_columns(pl.col("value") * factor, scale=pl.lit("paper"))
    tables.store(claims, folder / "claims/claims.parquet", tables.read_metadata(built.path / CLAIMS))
    assert built.run("dvc", "add", "-q", f"data/reference/{name}").status == 0
    named_as(built, name, md5_of(built, name))
    return folder


def md5_of(built: Workspace, name: str) -> str:
    return YAML(typ="safe").load(built.path / f"data/reference/{name}.dvc")["outs"][0]["md5"]


def named_as(built: Workspace, name: str, md5: str) -> None:
    file = built.path / "data/reference/names.json"
    names = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(names | {name: md5}))


def committed(built: Workspace) -> None:
    built.git("add", "-A")
    built.git("commit", "-qm", "so it was")


def test_an_edited_reference_set_is_named(built: Workspace) -> None:
    """Its files are held against its .dvc file, and that against the commit."""
    folder = a_set(built, "toy")
    committed(built)
    assert audit(built, 0)["sets"] == ["toy"]
    changed(folder / "claims/claims.parquet", "value")
    assert named(audit(built, 1), "reference sets") == {"data/reference/toy/claims/claims.parquet"}
    assert built.run("dvc", "add", "-q", "data/reference/toy").status == 0
    assert named(audit(built, 1), "reference sets") == {"data/reference/toy.dvc"}


def test_reference_sets_that_were_swapped_with_their_records_are_named(built: Workspace) -> None:
    """Each is as its .dvc file says, and these are committed: `names.json` says which is which."""
    folder = a_set(built, "toy")
    other = a_set(built, "toy-more", factor=2.0)
    committed(built)
    audit(built, 0)
    pointers = [path.with_name(f"{path.name}.dvc") for path in (folder, other)]
    one, two = (md5_of(built, name) for name in ("toy", "toy-more"))
    for pointer, mine, theirs in zip(pointers, (one, two), (two, one), strict=True):
        pointer.write_text(pointer.read_text().replace(mine, theirs))
    folder.rename(built.path / "data/aside")
    other.rename(folder)
    (built.path / "data/aside").rename(other)
    committed(built)
    report = audit(built, 1)
    assert named(report, "reference sets") == {"data/reference/toy.dvc", "data/reference/toy-more.dvc"}
    text = next(each["text"] for each in report["findings"] if each["what"] == "data/reference/toy.dvc")
    assert text == "is the set that data/reference/names.json calls toy-more"


def test_a_reference_set_says_its_name_and_its_study(built: Workspace) -> None:
    folder = a_set(built, "toy")
    record = {"name": "toy-more", "study": "twin", "scale": "paper", "jobs": {}}
    (folder / "record.json").write_text(json.dumps(record))
    assert built.run("dvc", "add", "-q", "data/reference/toy").status == 0
    named_as(built, "toy", md5_of(built, "toy"))
    named_as(built, "toy-lost", "x")
    committed(built)
    texts = {each["text"] for each in audit(built, 1)["findings"] if each["part"] == "reference sets"}
    assert texts == {
        "says of itself that it is the set toy-more",
        "is of the study twin, which params.yaml does not list",
        "is gone, and data/reference/names.json names it",
    }


def test_a_site_that_was_drawn_from_other_results_is_one_finding() -> None:
    pages = [Finding("made again", f"data/report/{name}.html", "otherwise", "draw it") for name in "abcdef"]
    assert again.together(pages[:5], 9) == pages[:5]
    (whole,) = again.together(pages, 9)
    assert (whole.what, whole.mend) == ("data/report", "draw it") and whole.text.startswith("6 of 9 files come")


@pytest.mark.slow
def test_an_edited_page_is_named(built: Workspace, template: Path) -> None:
    shutil.copytree(template / "data/report", built.path / "data/report")
    page = built.path / "data/report/index.html"
    page.write_text(page.read_text() + "and more")
    (finding,) = audit(built, 1)["findings"]
    assert finding["what"] == "data/report/index.html" and finding["part"] == "made again"
    assert finding["mend"] == "snakemake --force data/report/index.html"
    assert built.planned(*finding["mend"].split()[1:]) == {"report"}
    assert built.run("python", "-m", "pipeline", "report", "--from-store").status == 0
    audit(built, 0)  # pages from the store say that they are
    page = built.path / "data/report/study/toy.html"
    page.write_text(page.read_text().replace("holds", "fails", 1))
    (finding,) = audit(built, 1)["findings"]
    assert finding["mend"] == "python -m pipeline report --from-store"
    # One that was drawn before a `git pull` was not edited.
    built.edit("pipeline/report/index.html.j2")
    (finding,) = [each for each in audit(built, 1)["findings"] if each["part"] == "made again"]
    assert finding["what"] == "data/report" and "drawn from other code or parameters" in finding["text"]
    assert finding["mend"] == "python -m pipeline report --from-store"


def test_a_claim_that_was_edited_with_its_record_and_committed_is_named(built: Workspace) -> None:
    changed(built.path / CLAIMS, "value")
    recorded(built, "claims-toy")
    report = audit(built, 1)
    assert report["lock"].startswith("dvc.lock is the committed one (")
    assert named(report, "published") == set() and CLAIMS in named(report, "made again")


def test_results_of_other_parameters_are_named(built: Workspace) -> None:
    built.change_study(lambda params: params["claims"].update(tolerance=0.25))
    assert named(audit(built, 1), "record") == {"params/toy/study.yaml:claims.tolerance"}


def test_results_of_other_code_are_named(built: Workspace) -> None:
    built.edit("pipeline/studies/toy/figures/means.py")
    assert named(audit(built, 1), "record") == {"pipeline/studies/toy/figures/means.py"}


@pytest.mark.slow
def test_a_build_elsewhere_is_no_fault(built: Workspace) -> None:
    """Other bytes than the committed ones, but what lies here is what this lock file says."""
    built.set_lr("toy-a", 0.75)
    built.git("commit", "-qam", "another rate")
    assert built.snakemake("toy").status == 0
    report = audit(built, 0)
    where = "(this one made on a machine that is not recorded; the committed one made on"
    assert where in report["lock"]
    assert "another build, in which" in report["lock"] and "rounding" not in report["lock"]
    # As benchmarks/rounding.py writes it, here of two tables of which one was changed.
    ours = pl.read_parquet(built.path / CLAIMS)
    gates = elsewhere.beside(ours.with_columns(pl.col("value") * 1.5, verdict=pl.lit("fails")), ours)
    measured = elsewhere.Yardstick.of(gates)
    assert (measured.gates, measured.moved) == (len(ours), len(ours))
    assert measured.largest == pytest.approx(1 / 3) and measured.turned == ["toy:1 mean"]
    assert elsewhere._in_one_alone(ours, ours) == []
    assert elsewhere._in_one_alone(ours, ours.filter(pl.col("gate") != "mean")) == ["toy:1 mean"]
    (built.path / elsewhere.YARDSTICK).write_text(json.dumps({"smoke": asdict(measured)}))
    built.git("commit", "-q", str(elsewhere.YARDSTICK), "-m", "a yardstick")
    note = f"rounding alone moves {len(ours)} of {len(ours)}, by at most 0.33 of a value, and turns 1 verdict"
    assert note in audit(built, 0)["lock"]


def test_the_machine_is_that_of_the_results_at_hand(built: Workspace) -> None:
    """Where a build was made is recorded with what it made, and said of nothing else."""
    done = built.run("python", "-c", "from pipeline.engine.build import record; record(1.0)")
    assert done.status == 0, done.output
    times = built.path / "profiles/times.json"
    machine = json.loads(times.read_text())["smoke"]["machine"]
    built.git("commit", "-qam", "times")
    assert audit(built, 0)["lock"] == f"dvc.lock is the committed one (made on {machine})"
    changed(built.path / TABLE, "mean")
    recorded(built, "analyse-toy-means")
    assert audit(built, 1)["lock"] == "dvc.lock is the committed one (made on a machine that is not recorded)"


def test_jobs_that_the_reference_machine_never_ran_have_the_times_of_another(built: Workspace) -> None:
    file = built.path / "profiles/times.json"
    job = "train-toy-a"

    def record(elapsed: float | None) -> dict[str, Any]:
        done = built.run("python", "-c", f"from pipeline.engine.build import record; record({elapsed})")
        assert done.status == 0, done.output
        times: dict[str, Any] = json.loads(file.read_text())["smoke"]
        return times

    whole = record(100.0)
    assert job in whole["jobs"] and "elsewhere" not in whole
    without = {name: seconds for name, seconds in whole["jobs"].items() if name != job}
    file.write_text(json.dumps({"smoke": whole | {"jobs": without, "machine": "another", "elapsed": 50.0}}))
    more = record(None)
    assert (more["machine"], more["elapsed"], more["jobs"]) == ("another", 50.0, without)
    assert more["elsewhere"] == {whole["machine"]: {job: whole["jobs"][job]}}
    assert record(None) == more
    assert Reference.load("smoke", built.path).jobs == whole["jobs"]
    assert record(100.0) == whole


def test_a_link_to_the_same_content_is_refused(built: Workspace, tmp_path: Path) -> None:
    """In the place of a file, of a folder, and of all that is made of one kind."""
    links = [TABLE, "data/tables/toy/toy-losses", "data/figures/toy"]
    for number, link in enumerate(links):
        here, outside = built.path / link, tmp_path / f"outside{number}"
        here.rename(outside)
        here.symlink_to(outside)
    findings = {each["what"]: each for each in audit(built, 1)["findings"]}
    assert findings.keys() == {*links}
    for link, finding in findings.items():
        assert "is a link" in finding["text"] and finding["mend"].startswith(f"rm {link} && dvc pull")
    for artifact in (TABLE, LOST, FIGURE):
        assert built.run("python", "-m", "pipeline", "trace", artifact, "--verify").status == 1


def test_an_object_of_the_store_that_is_no_longer_whole_is_told_from_a_lost_file(
    built: Workspace, tmp_path: Path
) -> None:
    clone = built.pushed_clone(tmp_path / "clone")
    stored = {}
    for file in (TABLE, CLAIMS):
        md5 = hashlib.md5((built.path / file).read_bytes()).hexdigest()
        stored[file] = clone.path / ".dvcstore/files/md5" / md5[:2] / md5[2:]
        stored[file].chmod(0o644)
    stored[TABLE].write_bytes(stored[TABLE].read_bytes()[:-1])
    stored[CLAIMS].unlink()
    report = audit(clone, 1)
    names = {file: str(path.relative_to(clone.path)) for file, path in stored.items()}
    assert named(report, "commit") == {*names.values()}
    lost = {each["what"]: each for each in report["findings"] if each["part"] == "published"}
    mends = {
        file: lost.pop(file)["mend"]
        for file, how in ((TABLE, "damaged"), (CLAIMS, "lost"))
        if lost[file]["text"] == f"lost; its stored copy is {how}: {names[file]}"
    }
    assert mends.keys() == {TABLE, CLAIMS}
    assert all(each["mend"].startswith("dvc pull --force ") for each in lost.values())
    for mend in (*mends.values(), "dvc pull --allow-missing"):  # the last brings all others
        for step in mend.split(" && "):
            done = clone.run(*step.split())
            assert done.status == 0, done.output
    audit(clone, 0)


def test_a_tree_that_is_not_its_commit_is_not_what_was_published(built: Workspace) -> None:
    """Above all where the audit itself was edited."""
    built.edit("pipeline/audit/inspection.py")
    (built.path / "pipeline/unknown.py").write_text("")
    (built.path / "notes.txt").write_text("nothing reads this")
    assert named(audit(built, 1), "commit") == {"pipeline/audit/inspection.py", "pipeline/unknown.py"}
    done = built.run("python", "-m", "pipeline", "audit")
    assert done.status == 1 and "✗ commit: 2 do not agree" in done.output
    (built.path / "pipeline/unknown.py").unlink()
    built.git("commit", "-qam", "an audit of one's own")
    commit = built.git("rev-parse", "--short", "HEAD").strip()
    done = built.run("python", "-m", "pipeline", "audit")
    assert done.status == 0, done.output
    assert f"✓ commit {commit}: every file that it has is here as it has it" in done.output


def test_an_acceptance_that_nobody_proved_is_named(built: Workspace) -> None:
    """Code that changes a result, declared cosmetic. What was proved is not named, nor what is made again anyway."""
    analysis = "pipeline/studies/toy/analysis/means.py"
    text = (built.path / analysis).read_text()
    (built.path / analysis).write_text(text.replace("context.settings.offset", "context.settings.offset + 1"))
    built.edit("pipeline/studies/toy/figures/means.py")
    accept = ("python", "-m", "pipeline", "accept", "--reason", "cosmetic")
    for job in ("analyse-toy-means", "figures-toy-means"):
        assert built.run(*accept, job).status == 0
    committed(built)
    report = audit(built, 0)
    assert [each["what"] for each in report["warnings"]] == ["analyse-toy-means"]
    assert analysis in report["warnings"][0]["text"] and "“cosmetic”" in report["warnings"][0]["text"]
    done = built.run("python", "-m", "pipeline", "audit")
    assert "⚠ analyse-toy-means: rests on an edit" in done.output
    assert done.last_line == "audit passed, with 1 warning"
    built.git("reset", "-q", "--hard", "HEAD~1")
    built.edit(analysis)
    assert built.run(*accept, "--prove", "analyse-toy-means").status == 0
    committed(built)
    assert audit(built, 0)["warnings"] == []


def test_a_study_that_was_dropped_from_the_parameters_is_named(built: Workspace) -> None:
    """dvc.lock still records its jobs; its parameters are still there."""
    lock = built.path / "dvc.lock"
    block = re.search(r"^  claims-toy:\n(?:    .*\n)+", lock.read_text(), re.MULTILINE)
    assert block is not None
    lock.write_text(lock.read_text() + re.sub(r"\btoy\b", "twin", block[0]))
    shutil.copytree(built.path / "params/toy", built.path / "params/twin")
    committed(built)
    report = audit(built, 1)
    (finding,) = report["findings"]
    assert finding["what"] == "twin"
    assert finding["text"] == "dvc.lock records 1 jobs of this study, which params.yaml does not list"
    assert [each["what"] for each in report["warnings"]] == ["params/twin"]
    lock.write_text(lock.read_text().replace("twin/", "toy/"))
    committed(built)
    (finding,) = audit(built, 1)["findings"]
    assert (finding["what"], finding["part"]) == ("claims-twin", "record")


def test_the_order_of_rows_is_not_audited(built: Workspace) -> None:
    """Where nothing depends on it."""
    path = built.path / TABLE
    tables.store(pl.read_parquet(path).reverse(), path, tables.read_metadata(path))
    redrawn(built, "analyse-toy-means", "figures-toy-means", "figures-toy-losses", "claims-toy")
    audit(built, 0)


def renamed(path: Path, column: str, old: str, new: str) -> None:
    frame = pl.read_parquet(path).with_columns(pl.col(column).replace(old, new))
    tables.store(frame, path, tables.read_metadata(path))


def test_ids_that_the_parameters_do_not_have_are_named(built: Workspace) -> None:
    """Recorded and committed, and figures and claims drawn from it: a run that there never was."""
    renamed(built.path / TABLE, "run", "toy-c", "toy-d")
    renamed(built.path / THEORY, "theory", "toy-identity", "toy-other")
    for stage in ("analyse-toy-means", "theory-toy-identity"):
        recorded(built, stage)
    report = audit(built, 1)
    assert named(report, "ids") == {TABLE, THEORY}
    texts = {each["what"]: each["text"] for each in report["findings"] if each["part"] == "ids"}
    assert texts[TABLE] == ("column run holds 'toy-d', which params/toy/experiments.yaml:toy-means.runs does not name")


def redrawn(workspace: Workspace, *stages: str) -> None:
    """Make figures and claims from the tables as they lie here now, and record and commit all of it."""
    for stage in stages:
        step, key = stage.split("-", 1)
        if step in ("figures", "claims"):
            verb = "judge" if step == "claims" else step
            done = workspace.run("python", "-m", "pipeline", verb, key)
            assert done.status == 0, done.output
    done = workspace.run("dvc", "commit", "--force", *stages)
    assert done.status == 0, done.output
    committed(workspace)


@pytest.mark.slow
def test_a_number_that_was_forged_with_all_that_follows_is_found_by_computing_it_again(built: Workspace) -> None:
    """A theory check, with figures and claims made from it and dvc.lock's md5s corrected: what lies here agrees."""
    report = audit(built, 0, "--recompute")
    assert report["recomputed"] == 2 and report["left_out"] == {}  # the dataset and the theory check
    assert set(report["kept_back"]) == {"train", "report"}
    path = built.path / THEORY
    frame = pl.read_parquet(path).with_columns(measured=pl.lit(-1.0))
    tables.store(frame, path, tables.read_metadata(path))
    redrawn(built, "theory-toy-identity", "figures-toy-losses", "claims-toy")
    assert audit(built, 0)["findings"] == []
    report = audit(built, 1, "--recompute")
    (finding,) = report["findings"]
    assert (finding["part"], finding["what"], finding["mend"]) == ("recomputed", THEORY, f"snakemake --force {THEORY}")
    assert built.run(*finding["mend"].split()).status == 0


def test_what_another_processor_may_have_is_a_warning_there(built: Workspace) -> None:
    """Of the jobs that are listed; on the machine of the results nothing may differ."""
    frame = pl.read_parquet(built.path / THEORY).with_columns(measured=pl.lit(-1.0))
    tables.store(frame, built.path / THEORY, tables.read_metadata(built.path / THEORY))
    (built.path / again.PROCESSORS).write_text(json.dumps(["theory-toy-identity"]))
    redrawn(built, "theory-toy-identity", "figures-toy-losses", "claims-toy")
    report = audit(built, 0, "--recompute")
    assert [each["what"] for each in report["warnings"]] == [THEORY]
    assert built.run("python", "-c", "from pipeline.engine.build import record; record(1.0)").status == 0
    committed(built)
    report = audit(built, 1, "--recompute")
    assert named(report, "recomputed") == {THEORY} and report["warnings"] == []


def test_the_jobs_that_another_processor_changes_have_no_training_behind_them() -> None:
    listed = json.loads((REPOSITORY / again.PROCESSORS).read_text(encoding="utf-8"))
    loaded = load_all()
    jobs = {job.stage: job for job in graph.jobs(loaded)}
    assert listed and all(loaded.experiments[jobs[name].id].runs == [] for name in listed)


def test_what_needs_a_package_that_is_not_installed_is_said_not_to_be_computed_again(built: Workspace) -> None:
    built.edit("pipeline/studies/toy/theory/identity.py", "import no_such_package.inside\n")
    recorded(built, "theory-toy-identity")
    report = audit(built, 3, "--recompute")
    assert report["left_out"] == {"no_such_package": {"theory": 1}} and report["recomputed"] == 1
    done = built.run("python", "-m", "pipeline", "audit", "--recompute")
    assert "? recomputed: not 1 theory, which need no_such_package" in done.output
    built.edit("pipeline/studies/toy/theory/identity.py", "import pipeline.no_such_module\n")
    text = (built.path / "pipeline/studies/toy/theory/identity.py").read_text()
    text = text.replace("import no_such_package.inside\n", "")
    (built.path / "pipeline/studies/toy/theory/identity.py").write_text(text)
    recorded(built, "theory-toy-identity")
    assert named(audit(built, 1, "--recompute"), "recomputed") == {"theory-toy-identity"}


def test_a_dataset_that_comes_out_otherwise_is_named(built: Workspace) -> None:
    """It is never published, and dvc.lock has its md5."""
    renumbered(built, r"path: data/datasets/toy/toy-numbers\n +hash: md5\n +md5: (\w+)\.dir")
    report = audit(built, 1, "--recompute")
    (finding,) = (each for each in report["findings"] if each["part"] == "recomputed")
    assert finding["what"] == "data/datasets/toy/toy-numbers"
    assert finding["mend"] == f"snakemake --force {DATASET}"


def renumbered(built: Workspace, pattern: str) -> None:
    """Write another md5 in each place in dvc.lock that the pattern finds, and commit that."""
    lock = built.path / "dvc.lock"
    text, count = re.subn(pattern, lambda hit: hit[0].replace(hit[1], "f" * 32), lock.read_text())
    assert count
    lock.write_text(text)
    committed(built)


def test_a_record_of_other_data_than_was_made_is_named(built: Workspace) -> None:
    """Of data that is never published, too: what a training read is what the dataset's job made."""
    renumbered(built, rf"path: {DATASET}\n +hash: md5\n +md5: (\w+)")
    texts = {each["text"] for each in audit(built, 1)["findings"] if each["what"] == DATASET}
    assert len(texts) == 1 and texts.pop().startswith("the job read ffffffff, recorded as made is ")


@pytest.mark.slow
def test_a_slope_that_was_forged_with_all_that_follows(
    alone: Callable[[str], Workspace], tmp_path: Path, forks: dict[str, str]
) -> None:
    """A rate in the landscapes of `nce`, its claims judged and its figures drawn again: an analysis reads no run."""
    nce = Workspace(Path(shutil.copytree(alone("nce").path, tmp_path / "tree", symlinks=True)), forks)
    shutil.rmtree(nce.path / "data/report", ignore_errors=True)
    committed(nce)
    rates = "data/tables/nce/nce-landscape/rates.parquet"
    frame = pl.read_parquet(nce.path / rates)
    tables.store(frame.with_columns(pl.col("slope") / 4), nce.path / rates, tables.read_metadata(nce.path / rates))
    redrawn(nce, "analyse-nce-landscape", "figures-nce-landscape", "figures-nce-rates", "claims-nce")
    assert audit(nce, 0)["findings"] == []
    assert rates in named(audit(nce, 1, "--recompute"), "recomputed")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_a_signed_release_is_checked(built: Workspace, tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    assert built.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)).status == 0
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key))):
        built.git("config", name, value)
    built.git("tag", "-a", "draft", "-m", "not signed")
    assert audit(built, 0)["releases"] == []
    built.git("tag", "-s", "v1", "-m", "results")
    (release,) = audit(built, 3)["releases"]
    assert (release["tag"], release["state"]) == ("v1", "not checked")
    assert "? release v1: is signed, but that was not checked" in built.run("python", "-m", "pipeline", "audit").output
    signers.write_text(f"a@lab.org {key.with_suffix('.pub').read_text()}")
    built.git("config", "gpg.ssh.allowedSignersFile", str(signers))
    (release,) = audit(built, 0)["releases"]
    assert (release["state"], release["text"]) == ("good", "signed by a@lab.org")
    assert "✓ release: v1, signed by a@lab.org" in built.run("python", "-m", "pipeline", "audit").output
    forged = built.git("cat-file", "-p", "v1").replace("results", "better results")
    (tmp_path / "tag").write_text(forged)
    tag = built.git("hash-object", "-t", "tag", "-w", str(tmp_path / "tag")).strip()
    built.git("update-ref", "refs/tags/v1", tag)
    assert named(audit(built, 1), "release") == {"v1"}
    # Where git does not answer, nothing that it was asked for may pass: another owner's folder, no git, no repository.
    without = {"PATH": str(Path(sys.executable).parent)}
    others = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    for environment, words in ((without, "git is not installed"), (others, "dubious ownership")):
        report = audit(built, 3, **environment)
        assert report["findings"] == [] and not report["passed"]
        assert words in report["unchecked"][0]["text"] and words in report["lock"]
