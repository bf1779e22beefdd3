"""Numbers of the README are those of the committed results."""

from __future__ import annotations

import json
import re

import pytest
from ruamel.yaml import YAML
from workspace import REPOSITORY

from pipeline import params
from pipeline.engine import graph
from schemas.claims import NOT_REPRODUCED, NOT_TESTED, REPRODUCED

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
STUDIES = params.load(REPOSITORY).studies


def committed_claims(study: str) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """The claims that dvc.lock names, from the embedded store."""
    lock = YAML(typ="safe").load((REPOSITORY / "dvc.lock").read_text(encoding="utf-8"))
    outs = {out["path"]: out["md5"] for out in lock["stages"][f"claims@{study}"]["outs"]}
    md5 = outs[f"data/claims/{study}/claims.json"]
    return json.loads((REPOSITORY / ".dvcstore/files/md5" / md5[:2] / md5[2:]).read_text(encoding="utf-8"))


@pytest.mark.parametrize("study", STUDIES)
def test_counts_of_verdicts(study: str) -> None:
    gates = [gate for claim in committed_claims(study).values() for gate in claim["gates"].values()]
    counts = [
        sum(g["verdict"] == verdict for g in gates) for verdict in (REPRODUCED, NOT_REPRODUCED, NOT_TESTED)
    ]
    row = re.search(rf"^\| `{study}` \| (\d+) \| (\d+) \| (\d+) \|", README, re.MULTILINE)
    assert row is not None, f"no row of verdicts for {study}"
    assert [int(count) for count in row.groups()] == counts


@pytest.mark.parametrize("study", STUDIES)
def test_every_claim_that_fails_is_named(study: str) -> None:
    failed = {
        int(re.sub(r"\D", "", number))
        for number, claim in committed_claims(study).items()
        if any(gate["verdict"] == NOT_REPRODUCED for gate in claim["gates"].values())
    }
    row = re.search(rf"^\| `{study}` \| \d+ \| \d+ \| \d+ \| (.*) \|$", README, re.MULTILINE)
    assert row is not None
    named = {int(n) for words in re.findall(r"claims? ([\d, ]+)", row[1]) for n in re.findall(r"\d+", words)}
    assert named == failed


def test_number_of_jobs() -> None:
    jobs = len(graph.jobs(params.load(REPOSITORY)))
    assert re.search(rf"of the {jobs} jobs", README), f"there are {jobs} jobs"
