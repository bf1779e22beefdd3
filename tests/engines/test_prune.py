"""What the parameters no longer ask for is gone before anything reads it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from workspace import BELOW_B, Workspace

RUN_FILES = [
    f"data/runs/toy/{name}"
    for name in ("toy-b.json", "toy-b/curves.parquet", "toy-b/toy-b.safetensors", "toy-b/toy-c.safetensors")
]


def _without_b(params: dict[str, Any]) -> None:
    del params["runs"]["toy-b"]
    params["experiments"]["toy-means"]["runs"].remove("toy-b")


def _derive(built: Workspace) -> None:
    """Bring dvc.yaml up to date, from which DVC reads the graph; a start of Snakemake does so as well."""
    assert built.run("python", "-m", "pipeline", "params", "--write").status == 0


def _remove_b(built: Workspace, engine: str) -> None:
    """What read it is made again, without it."""
    built.change_study(_without_b)
    _derive(built)
    done = built.engine(engine)
    assert done.ran == BELOW_B
    assert not (built.path / "data/runs/toy/toy-b").exists()
    assert not [name for name in built.artifacts() if "toy-b" in name]
    log = (built.path / "logs/prune.log").read_text()
    for file in RUN_FILES:
        assert f"removed {file}" in log
        assert f"removed {file}" in done.output
    assert "toy-b" not in (built.path / "dvc.lock").read_text()
    built.assert_clean()


def test_a_run_removed_by_snakemake(built: Workspace) -> None:
    _remove_b(built, "snakemake")


@pytest.mark.slow
def test_a_run_removed_by_dvc_and_added_again_by_snakemake(built: Workspace) -> None:
    before, params = built.artifacts(), built.parameters()
    _remove_b(built, "dvc")
    built.restore(params)
    built.engine("snakemake")
    assert built.artifacts() == before
    built.assert_clean()


@pytest.mark.slow
def test_removed_variant(built: Workspace) -> None:
    """The run is made again without it, and neither its checkpoint nor a row of it is left."""
    built.change_study(lambda params: params["runs"]["toy-b"]["variants"].pop("toy-c"))
    assert built.planned() == BELOW_B | {"train toy-b"}
    assert built.engine("dvc").ran == BELOW_B | {"train toy-b"}
    assert not [name for name in built.artifacts() if "toy-c" in name]
    assert (built.path / "data/runs/toy/toy-b/toy-b.safetensors").exists()
    means = pl.read_parquet(built.path / "data/tables/toy/toy-means/means.parquet")
    assert means["run"].unique().sort().to_list() == ["toy-a", "toy-b"]
    built.assert_clean()


@pytest.mark.slow
def test_removed_figures(built: Workspace) -> None:
    built.change_study(lambda params: params["experiments"]["toy-losses"].update(figures=[]))
    assert "figures toy-losses" not in built.engine("snakemake").ran
    assert not (built.path / "data/figures/toy/toy-losses").exists()
    assert (built.path / "data/tables/toy/toy-losses/losses.parquet").exists()
    built.assert_clean()


def test_stray_files_are_removed_without_running_anything(built: Workspace) -> None:
    names = (
        "tables/toy/toy-means/stray.parquet",
        "tables/toy/stray/x.parquet",
        "runs/toy/toy-a/.Wq3_x.tmp",
        ".Wq3_x.tmp",
    )
    for name in names:
        (built.path / "data" / name).parent.mkdir(exist_ok=True)
        (built.path / "data" / name).write_bytes(b"stray")
    assert built.engine("snakemake").ran == set()
    assert not built.artifacts().keys() & {*names}
    built.assert_clean()


def test_looking_deletes_nothing(built: Workspace) -> None:
    built.change_study(_without_b)
    before = built.artifacts()
    for command in ("-n", "--dag", "--lint", "--summary", "--unlock"):
        built.run("snakemake", command)
        assert built.artifacts() == before, command
