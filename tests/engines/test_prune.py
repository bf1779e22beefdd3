"""What params.yaml no longer asks for is gone before anything reads it."""

from __future__ import annotations

from typing import Any

import pytest
from workspace import Workspace

pytestmark = pytest.mark.forked

RUN_FILES = ["data/runs/toy/toy-b/curves.parquet", "data/runs/toy/toy-b/model.safetensors"]
engines = pytest.mark.parametrize("engine", ["snakemake", "dvc"])


def _without_b(params: dict[str, Any]) -> None:
    del params["runs"]["toy-b"]
    params["studies"]["toy"]["runs"].remove("toy-b")


@engines
def test_removed_run(built: Workspace, engine: str) -> None:
    built.change(_without_b)
    done = built.engine(engine)
    assert done.ran == {"analyse toy", "figures toy", "claims toy", "report"}
    assert not (built.path / "data/runs/toy/toy-b").exists()
    log = (built.path / "logs/prune.log").read_text()
    for file in RUN_FILES:
        assert f"removed {file}" in log
        assert f"removed {file}" in done.output
    assert "toy-b" not in (built.path / "dvc.lock").read_text()
    built.assert_clean()


def test_removed_run_added_again(built: Workspace) -> None:
    before, params = built.artifacts(), (built.path / "params.yaml").read_text()
    built.change(_without_b)
    built.engine("dvc")
    (built.path / "params.yaml").write_text(params)
    built.engine("snakemake")
    assert built.artifacts() == before
    built.assert_clean()


def test_removed_table(built: Workspace) -> None:
    built.change(lambda params: params["studies"]["toy"]["tables"].remove("losses"))
    built.engine("snakemake")
    assert not (built.path / "data/tables/toy/losses.parquet").exists()
    built.assert_clean()


def test_renamed_theory_check(built: Workspace) -> None:
    def edit(params: dict[str, Any]) -> None:
        params["theory"]["toy-other"] = params["theory"].pop("toy-identity")
        params["studies"]["toy"]["theory"] = ["toy-other"]

    built.change(edit)
    assert {"claims toy", "figures toy"} <= built.engine("dvc").ran
    built.assert_clean()


@pytest.mark.parametrize("name", ["tables/toy/stray.parquet", "runs/toy/toy-a/.Wq3_x.tmp", ".Wq3_x.tmp"])
def test_stray_file_is_removed_without_running_anything(built: Workspace, name: str) -> None:
    stray = built.path / "data" / name
    stray.write_bytes(b"stray")
    assert built.engine("snakemake").ran == set()
    assert not stray.exists()
    built.assert_clean()


@pytest.mark.parametrize("command", ["-n", "--dag", "--lint", "--summary", "--unlock"])
def test_looking_deletes_nothing(built: Workspace, command: str) -> None:
    built.change(_without_b)
    before = built.artifacts()
    built.run("snakemake", command)
    assert built.artifacts() == before
