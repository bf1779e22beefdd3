"""A full disk, a folder that cannot be written: one clear line, nothing half-written, and the next run continues."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import pytest
from test_bad_input import one_line, step
from workspace import Workspace, one_after_another


def limited(workspace: Workspace, kibibytes: int, *arguments: str):  # type: ignore[no-untyped-def]
    """A step that may not write a file larger than this: what a full disk or a quota looks like."""
    return workspace.run("bash", "-c", f"ulimit -f {kibibytes}; exec python -m pipeline {' '.join(arguments)}")


@pytest.mark.slow
@pytest.mark.started  # the limit is that of the process
@pytest.mark.parametrize(
    ("arguments", "kibibytes"),
    [(("dataset", "dyck-train-complete"), 1), (("train", "dyck-minimal"), 30), (("figures", "dyck-attention"), 4)],
)
def test_a_full_disk_is_one_line_and_leaves_the_old_results(
    dyck: Workspace, calmed: Callable[[Workspace], Workspace], arguments: tuple[str, str], kibibytes: int
) -> None:
    before = dyck.artifacts()
    one_line(limited(dyck, kibibytes, *arguments), " ".join(arguments[:1]), "File too large")
    assert dyck.artifacts() == before
    assert not [path for path in (dyck.path / "data").rglob("*.tmp") if path.is_file()]
    done = step(calmed(dyck), *arguments)
    assert done.status == 0, done.output
    assert dyck.artifacts() == before


def test_a_folder_that_cannot_be_written_is_one_line(dyck: Workspace) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    folder = dyck.path / "data/datasets/dyck/dyck-evaluation"
    folder.chmod(0o555)
    try:
        one_line(step(dyck, "dataset", "dyck-evaluation"), "Permission denied", "dyck-evaluation")
    finally:
        folder.chmod(0o755)
    assert step(dyck, "dataset", "dyck-evaluation").status == 0


WRITES = [
    "report --from-store",
    "accept --all --reason none",
    "new counting",
    "theory toy-identity",
    "build",
    "export toy claims --csv claims.csv",
]


@pytest.mark.started  # a process that is forked elsewhere does not see the mount
@pytest.mark.slow
def test_a_clone_that_cannot_be_written_is_one_line(built: Workspace) -> None:
    mount = "mount --bind . . && mount -o remount,ro,bind . && cd $PWD"
    space = ("unshare", "--mount", "--map-root-user", "sh", "-c")
    if built.run(*space, mount).status:
        pytest.skip("no mounts can be made here")
    code = shlex.quote(one_after_another(WRITES))
    done = built.run(*space, f"{mount}; python -c {code}; snakemake; echo status $?")
    assert "Traceback" not in done.output, done.output
    lines = [line for line in done.output.splitlines() if line.startswith(("sandglass: ", "status"))]
    assert lines[1::2] == ["status 2"] * len(WRITES) + ["status 1"], done.output
    assert all(line.endswith("Read-only file system") for line in lines[::2]), done.output


def test_code_that_no_source_names_is_no_way_into_a_result(built: Workspace) -> None:
    """What a step imports as it runs is held against what its source says."""
    built.edit("pipeline/studies/toy/analysis/means.py", "exec('import pipeline.kit.drawings')\n")
    done = built.repro()
    assert done.status != 0 and "Traceback" not in done.output
    assert "analyse toy-means imported pipeline/kit/drawings.py, which dvc.yaml does not name" in done.output
    assert not (built.path / "data/tables/toy/toy-means/means.parquet").exists()
