"""What a fresh clone can have without training: the embedded remote, or another of one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from workspace import Workspace

PULLED = {"tables", "theory", "figures", "claims"}


@pytest.mark.parametrize("remote", ["embedded", "elsewhere"])
def test_results_come_with_a_pull_and_large_artifacts_stay(built: Workspace, tmp_path: Path, remote: str) -> None:
    if remote == "elsewhere":
        done = built.run("dvc", "remote", "add", "--default", "elsewhere", str(tmp_path / "bucket"))
        assert done.status == 0, done.output
        built.git("commit", "-qam", "another remote")
    assert built.run("dvc", "push").status == 0
    stored = built.path / ".dvcstore" if remote == "embedded" else tmp_path / "bucket"
    assert (stored / "files").is_dir() and (built.path / ".dvcstore").is_dir() == (remote == "embedded")
    built.git("add", "-A")
    built.git("commit", "-qm", "published", "--allow-empty")

    fresh = Workspace(tmp_path / "fresh", dict(built.env))
    built.git("clone", "-q", str(built.path), str(fresh.path))
    done = fresh.run("dvc", "pull", "--allow-missing")
    assert done.status == 0, done.output
    before, after = built.artifacts(), fresh.artifacts()
    assert after.items() <= before.items()
    assert {path for path in before if path.split("/")[0] in PULLED} <= after.keys()
    large = {path for path in before if path.startswith(("runs/", "report/")) and not path.endswith(".json")}
    assert large and not large & after.keys()
    assert not [path for path in after if path.startswith("datasets/")]
