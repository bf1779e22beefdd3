"""The command `audit` on the toy study: what agrees passes, and each of the ways to spoil results is named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from workspace import REPOSITORY, Workspace

from pipeline.audit import elsewhere
from pipeline.store import tables

TABLE = "data/tables/toy/toy-means/means.parquet"
CLAIMS = "data/claims/toy/claims.parquet"
FIGURE = "data/figures/toy/toy-means/means.svg"
OTHER = "data/figures/toy/toy-losses/losses.svg"


def audit(workspace: Workspace, status: int) -> dict[str, Any]:
    done = workspace.run("python", "-m", "pipeline", "audit", "--json")
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
    report = audit(built, 0)
    assert report["lock"] == "dvc.lock is the committed one (made on a machine that is not recorded)"
    assert report["files"] > 8 and report["made_again"] > 5
    assert set(report["kept_back"]) == {"dataset", "train", "report"}
    clone = built.pushed_clone(tmp_path / "clone")
    assert named(audit(clone, 1), "published") >= {TABLE, CLAIMS, FIGURE}  # nothing is here yet
    assert clone.run("dvc", "pull", "--allow-missing").status == 0
    assert audit(clone, 0)["files"] == report["files"]
    done = clone.run("python", "-m", "pipeline", "audit")
    assert done.status == 0 and "audit passed" in done.output and "never published" in done.output


def _value(built: Workspace) -> None:
    changed(built.path / TABLE, "mean")


def _lost(built: Workspace) -> None:
    (built.path / TABLE).unlink()


def _truncated(built: Workspace) -> None:
    (built.path / CLAIMS).write_bytes((built.path / CLAIMS).read_bytes()[:-9])


def _swapped(built: Workspace) -> None:
    one, other = (built.path / name for name in (FIGURE, OTHER))
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)


def _strange(built: Workspace) -> None:
    (built.path / "data/tables/toy/toy-means/more.parquet").write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (_value, {TABLE}),
        (_lost, {TABLE}),
        (_truncated, {CLAIMS}),
        (_swapped, {FIGURE, OTHER}),
        (_strange, {"data/tables/toy/toy-means/more.parquet"}),
    ],
)
def test_a_file_that_is_not_what_was_recorded_is_named(
    built: Workspace, spoil: Callable[[Workspace], None], what: set[str]
) -> None:
    spoil(built)
    report = audit(built, 1)
    assert named(report, "published") == what
    mend = {each["mend"] for each in report["findings"] if each["part"] == "published"}
    assert all("dvc pull --force" in each or each.startswith("rm ") for each in mend)


def test_the_command_that_is_named_mends_a_lost_file(built: Workspace) -> None:
    built.run("dvc", "remote", "add", "-d", "store", ".dvcstore")
    assert built.run("dvc", "push", "-q").status == 0
    _lost(built)
    _swapped(built)
    for each in audit(built, 1)["findings"]:
        if each["part"] == "published":
            done = built.run(*each["mend"].split())
            assert done.status == 0, done.output
    audit(built, 0)


def test_a_figure_that_was_replaced_with_its_record_is_named(built: Workspace) -> None:
    """A picture of other numbers, recorded as if the build had drawn it."""
    path = built.path / FIGURE
    path.write_text(path.read_text().replace("</svg>", "<text>better</text></svg>"))
    recorded(built, "figures@toy-means")
    report = audit(built, 1)
    assert named(report, "published") == set() and FIGURE in named(report, "made again")


@pytest.mark.parametrize("recorded_too", [False, True])
def test_an_edited_reference_set_is_named(built: Workspace, recorded_too: bool) -> None:
    """Its files are held against its .dvc file, and that against the commit."""
    folder = built.path / "data/reference/toy"
    folder.mkdir()
    (folder / "record.json").write_text(json.dumps({"study": "toy", "scale": "paper", "jobs": {}}))
    claims = pl.read_parquet(built.path / CLAIMS).with_columns(scale=pl.lit("paper"))
    (folder / "claims").mkdir()
    tables.store(claims, folder / "claims/claims.parquet", tables.read_metadata(built.path / CLAIMS))
    assert built.run("dvc", "add", "-q", "data/reference/toy").status == 0
    built.git("add", "-A")
    built.git("commit", "-qm", "a set")
    assert not named(audit(built, 1), "reference sets")  # the report is stale, the set is as recorded
    changed(folder / "claims/claims.parquet", "value")
    if recorded_too:
        assert built.run("dvc", "add", "-q", "data/reference/toy").status == 0
    file = "data/reference/toy.dvc" if recorded_too else "data/reference/toy/claims/claims.parquet"
    assert named(audit(built, 1), "reference sets") == {file}


def test_an_edited_page_is_named(built: Workspace) -> None:
    page = built.path / "data/report/index.html"
    page.write_text(page.read_text() + "and more")
    (finding,) = audit(built, 1)["findings"]
    assert finding["what"] == "data/report/index.html" and finding["part"] == "made again"
    assert finding["mend"] == "snakemake --force report"
    assert built.run("python", "-m", "pipeline", "report", "--from-store").status == 0
    audit(built, 0)  # pages from the store say that they are
    page = built.path / "data/report/study/toy.html"
    page.write_text(page.read_text().replace("holds", "fails", 1))
    (finding,) = audit(built, 1)["findings"]
    assert finding["mend"] == "python -m pipeline report --from-store"


def test_a_claim_that_was_edited_with_its_record_and_committed_is_named(built: Workspace) -> None:
    changed(built.path / CLAIMS, "value")
    recorded(built, "claims@toy")
    report = audit(built, 1)
    assert report["lock"] == "dvc.lock is the committed one (made on a machine that is not recorded)"
    assert named(report, "published") == set() and CLAIMS in named(report, "made again")


def test_results_of_other_parameters_are_named(built: Workspace) -> None:
    built.change(lambda params: params["claims"].update(tolerance=0.25), "params/toy.yaml")
    assert named(audit(built, 1), "record") == {"params/toy.yaml:claims.tolerance"}


def test_results_of_other_code_are_named(built: Workspace) -> None:
    built.edit("pipeline/studies/toy/figures/means.py")
    assert named(audit(built, 1), "record") == {"pipeline/studies/toy/figures/means.py"}


def test_a_build_elsewhere_is_no_fault(built: Workspace) -> None:
    """Other bytes than the committed ones, but what lies here is what this lock file says."""
    built.set_lr("toy-a", 0.75)
    built.engine("snakemake")
    report = audit(built, 0)
    assert "another build, in which" in report["lock"] and "rounding" not in report["lock"]
    # As benchmarks/rounding.py writes it, here of two tables of which one was changed.
    ours = pl.read_parquet(built.path / CLAIMS)
    gates = elsewhere.beside(ours.with_columns(pl.col("value") * 1.5, verdict=pl.lit("fails")), ours)
    measured = elsewhere.Yardstick.of(gates)
    assert (measured.gates, measured.moved) == (len(ours), len(ours))
    assert measured.largest == pytest.approx(1 / 3) and measured.turned == ["toy:1 mean"]
    (built.path / elsewhere.YARDSTICK).write_text(json.dumps({"smoke": asdict(measured)}))
    note = f"rounding alone moves {len(ours)} of {len(ours)}, by at most 0.33 of a value, and turns 1 verdict"
    assert note in audit(built, 0)["lock"]


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_a_signed_release_is_checked(built: Workspace, tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    assert built.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)).status == 0
    for name, value in (("gpg.format", "ssh"), ("user.signingkey", str(key))):
        built.git("config", name, value)
    built.git("tag", "-a", "draft", "-m", "not signed")
    assert audit(built, 0)["releases"] == []
    built.git("tag", "-s", "v1", "-m", "results")
    (release,) = audit(built, 0)["releases"]
    assert (release["tag"], release["state"]) == ("v1", "not checked")
    assert "v1 is signed, but that was not checked" in built.run("python", "-m", "pipeline", "audit").output
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


WITHOUT = ("torch", "scipy", "sklearn", "snakemake")  # what requirements-audit.txt leaves out


@pytest.mark.started
@pytest.mark.parametrize(
    "command", ["audit", "claims", "show toy:1", "trace toy:1", "list", "report --from-store"]
)
def test_reading_and_auditing_need_no_torch(built: Workspace, command: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({WITHOUT}))"
    done = built.run(
        "python", "-c", f"{blocked}; from pipeline.__main__ import main; main()", *command.split()
    )
    assert done.status == 0, done.output


def test_the_pins_of_an_audit_are_those_of_a_build() -> None:
    pins = {
        name: dict(re.findall(r"^([\w.\[\]-]+)==(\S+)", (REPOSITORY / name).read_text(), re.MULTILINE))
        for name in ("requirements.txt", "requirements-audit.txt")
    }
    assert pins["requirements-audit.txt"].items() <= pins["requirements.txt"].items()
    left = {
        name.partition("[")[0] for name in pins["requirements.txt"].keys() - pins["requirements-audit.txt"]
    }
    assert left == {"snakemake", "torch", "scipy", "scikit-learn"}
