"""The commands `claims` and `show`: how claims stand, with the reference sets, in text and as JSON."""

from __future__ import annotations

import json

import polars as pl
from workspace import Workspace

from pipeline.store import tables
from schemas.claims import CONTRADICTED, FAILS, HOLDS, STATED, UNDECIDED, Claims


def pipeline(workspace: Workspace, *arguments: str, status: int = 0) -> str:
    done = workspace.run("python", "-m", "pipeline", *arguments)
    assert done.status == status, done.output
    return done.output


def frozen(workspace: Workspace, verdict: str) -> None:
    """A reference set at scale paper whose gates have ``verdict``."""
    ours = tables.read(workspace.path / "data/claims/toy/claims.parquet", Claims)
    file = workspace.path / "data/reference/toy/claims/claims.parquet"
    tables.write(ours.with_columns(scale=pl.lit("paper"), verdict=pl.lit(verdict), value=pl.lit(0.25)), file, Claims)


def test_a_claim_stands_as_the_best_evidence_says(built: Workspace) -> None:
    text = pipeline(built, "claims")
    assert "claims of toy" in text and "holds (1 gate)" in text and "show STUDY:NUMBER" in text
    frozen(built, FAILS)
    (line,) = json.loads(pipeline(built, "claims", "--json"))["toy"]
    assert line["claim"] == "1" and line["verdict"] == CONTRADICTED
    assert "smoke: holds" in line["evidence"] and "paper: fails" in line["evidence"]
    assert json.loads(pipeline(built, "claims", "--verdict", "holds", "--json")) == {"toy": []}
    for named in (["toy"], ["--study", "toy"]):
        found = json.loads(pipeline(built, "claims", *named, "--verdict", "contradicted", "--json"))
        assert found == {"toy": [line]}


def test_what_is_open_and_what_would_decide_it(built: Workspace) -> None:
    assert "toy: all that it can test are decided" in pipeline(built, "claims", "--open")
    file = built.path / "data/claims/toy/claims.parquet"
    ours = tables.read(file, Claims)
    few = pl.when(pl.col("kind") == STATED).then(pl.lit(UNDECIDED)).otherwise("verdict")
    numbers = {"n": pl.lit(3, pl.Int32), "replicas_needed": pl.lit(12, pl.Int32)}
    tables.write(ours.with_columns(verdict=few, **numbers), file, Claims)
    text = " ".join(pipeline(built, "claims", "toy", "--open").split())
    assert "up to 30 models" in text and "about 12 would decide it" in text and "replicas in params/<study>" in text
    (gate,) = json.loads(pipeline(built, "claims", "--open", "--json"))["toy"]
    assert (gate["verdict"], gate["decided_by"]) == (UNDECIDED, "up to 30 models")


def test_one_claim_with_its_gates(built: Workspace) -> None:
    frozen(built, HOLDS)
    text = pipeline(built, "show", "toy:1")
    assert text == pipeline(built, "show", "1")
    for part in ("toy:1", "source:", "asks:", "this build:", "reference set toy: 0.25", "trace toy:1"):
        assert part in text
    claim = json.loads(pipeline(built, "show", "toy:1", "--json"))
    (gate,) = claim["gates"]
    assert claim["verdict"] == HOLDS and gate["value"] is not None
    assert [(other["set"], other["value"]) for other in gate["references"]] == [("toy", 0.25)]


def test_what_is_not_known_is_answered_with_what_is(built: Workspace) -> None:
    for arguments, words in (
        (["claims", "--study", "ty"], "did you mean toy?"),
        (["claims", "ty"], "did you mean toy?"),
        (["claims", "toy", "--study", "toy"], "as an argument or with --study"),
        (["claims", "ty", "--open"], "did you mean toy?"),
        (["claims", "--open", "--verdict", "holds"], "not both"),
        (["claims", "--verdict", "maybe"], "there are: holds, undecided"),
        (["show", "ty:1"], "did you mean toy?"),
        (["show", "toy:2"], "did you mean toy:1?"),
        (["show", "toy"], "for instance toy:1; all of toy: python -m pipeline claims toy"),
    ):
        assert words in pipeline(built, *arguments, status=2)


def test_without_claims_the_commands_that_bring_them_are_named(empty: Workspace) -> None:
    for arguments in (["claims"], ["show", "toy:1"]):
        text = pipeline(empty, *arguments, status=2)
        assert "dvc pull --allow-missing" in text and "make reproduce" in text


def test_outside_a_clone_it_says_so(empty: Workspace) -> None:
    (empty.path / "params.yaml").unlink()
    text = pipeline(empty, "list", status=2)
    assert "there is no such file in" in text and "a clone of Sandglass" in text
