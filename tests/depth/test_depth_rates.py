"""The committed tables: every chosen learning rate lies inside its grid, or is marked and told on the page."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

TABLES = Path(__file__).parents[2] / "data" / "tables" / "depth"
BUILT = sorted(TABLES.glob("*/learning_rates.parquet"))


@pytest.mark.skipif(not BUILT, reason="no result tables here: dvc pull --allow-missing")
@pytest.mark.parametrize("path", BUILT, ids=lambda path: path.parent.name)
def test_a_chosen_rate_is_inside_its_grid_or_marked(path: Path) -> None:
    rates = pl.read_parquet(path)
    edge = []
    for (run, *_), grid in rates.group_by("run", "hops", "sequences"):
        best = grid.filter("chosen")
        assert best.height == 1
        inside = grid["lr"].min() < best["lr"][0] < grid["lr"].max()
        assert (best["place"][0] == "inside") == inside, run
        losses = grid.with_columns(pl.col("training_loss").fill_null(float("inf")))["training_loss"]
        assert (best["training_loss"].fill_null(float("inf")) <= losses.min()).all(), run
        edge += [] if inside else [run]
    findings = path.with_name("findings.parquet")
    if edge and findings.is_file():
        finding = pl.read_parquet(findings).filter(topic="rates")["finding"].item()
        assert all(str(run) in finding for run in edge)
