"""Figures of the Dyck study and how figures are saved: what is drawn is what the tables say, in the same bytes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from pipeline import charts
from pipeline.studies.dyck import figures
from schemas.dyck.tables import ARMS, LINEAR, MINIMAL, STANDARD


def variation() -> pl.DataFrame:
    rows = []
    for run, means in {STANDARD: (2.33, 6.25), LINEAR: (2.61, 6.4), MINIMAL: (0.08, 0.18)}.items():
        excluded = int(run == LINEAR)
        for start, mean in enumerate(means):
            rows.append(
                {"run": run, "probe_split": "probe16", "seq_id": 0, "layer": 2, "head": 0, "last_layer": True,
                 "start_included": bool(start), "causal": True, "n_models": 10 - excluded, "n_rows": 16 + start,
                 "variation_mean": mean, "ci_lo": mean * 0.8, "ci_hi": mean * 1.2, "confidence": 0.9,
                 "random_baseline": 3.0 + start / 10, "n_excluded": excluded,
                 "excluded_reason": "1 diverged" if excluded else ""}
            )  # fmt: skip
            rows.append(rows[-1] | {"last_layer": False, "layer": 1, "variation_mean": 99.0})
    return pl.DataFrame(rows)


def fig3() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for arm, run in ARMS.items():
        for replica in range(6):
            beta = rng.normal(0.23 if arm == "standard" else 0.05, 0.01)
            rows.append({"run": run, "replica": replica, "arm": arm, "beta": beta, "acc_close": 1 - beta,
                         "acc_thr80": 1 - 2 * beta, "diverged": replica == 5})  # fmt: skip
    return pl.DataFrame(rows)


def contrasts() -> pl.DataFrame:
    rows = []
    for name in ("acc_close", "acc_thr80"):
        metric = f"beta, {name}"
        for statistic, run, value in (
            ("spearman", ARMS["standard"], -0.551), ("spearman", ARMS["contrastive"], 0.124),
            ("spearman of both arms pooled", ARMS["contrastive"], None),
        ):  # fmt: skip
            rows.append({"contrast": "rank", "statistic": statistic, "first": run, "metric": metric, "value": value,
                         "lo": -0.8, "hi": 0.3, "confidence": 0.9})  # fmt: skip
    return pl.DataFrame(rows)


TABLES = {
    "variation": variation(),
    "fig3": fig3(),
    "contrasts": contrasts(),
    "accuracy": pl.DataFrame(
        {"run": [ARMS["standard"]], "eval_split": ["lengen"], "shortest": [403], "longest": [498]}
    ),
}
THEORY = pl.DataFrame({"check": ["published-16", "other"], "bound": [2.85, 7.77]})


def context(theory: pl.DataFrame = THEORY, **replaced: pl.DataFrame) -> Any:
    return SimpleNamespace(table=(TABLES | replaced).__getitem__, theory=lambda: theory)


def texts(chart: alt.TopLevelMixin, folder: Path) -> list[str]:
    """What is written in the rendered figure."""
    charts.save(chart, pl.DataFrame({"x": [1]}), folder, "f")
    return re.findall(r">([^<>]+)</t", (folder / "f.svg").read_text(encoding="utf-8"))


def test_variation_shows_ours_published_and_random(tmp_path: Path) -> None:
    chart, data = figures.variation(context())
    assert data.height == 2 * (3 * 2 + 2) and 99.0 not in data["value"].to_list()
    first = data.filter(panel="start token omitted (16 × 16)", model="standard (M1)").sort("source")
    assert first.select("source", "value").rows() == [("published", 2.27), ("this reproduction", 2.33)]
    found = texts(chart, tmp_path)
    for text in ("2.33", "2.61", "0.08", "3.00", "2.27", "2.20", "0.24", "2.85", "6.25", "3.10"):
        assert text in found, text
    assert {"this reproduction", "published", "closed form"} <= set(found)
    assert any("90% bootstrap interval" in text for text in found)
    assert "linear position code (M2): 9 models, without 1 diverged" in found
    assert found.index("start token omitted (16 × 16)") < found.index("start token included (17 × 17)")


def test_fig3_shows_both_arms_and_their_correlations(tmp_path: Path) -> None:
    chart, data = figures.fig3(context())
    assert data.height == 10 and not data["diverged"].any()
    found = texts(chart, tmp_path)
    assert "Balance violation against accuracy at lengths 403 to 498" in found
    assert found.count("standard: ρ = −0.55 [−0.80, 0.30]") == 2
    assert found.count("contrastive: ρ = 0.12 [−0.80, 0.30]") == 2
    assert found.count("both: ρ = – [−0.80, 0.30]") == 2
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    points = svg.count('aria-roledescription="point"') + svg.count('aria-roledescription="circle"')
    assert points == 20  # ten models in each of two panels
    assert svg.count('aria-roledescription="line mark"') == 4  # one line per arm and panel


@pytest.mark.parametrize("name", figures.FIGURES)
def test_figures_survive_missing_runs(name: str, tmp_path: Path) -> None:
    few = {
        "variation": variation().filter(run=STANDARD),
        "fig3": fig3().filter(arm="standard"),
        "contrasts": contrasts().filter(first=ARMS["standard"]),
    }
    none = {table: TABLES[table].clear() for table in TABLES}
    undefined = {"variation": variation().with_columns(variation_mean=pl.lit(None, pl.Float64))}
    for replaced in (few, none, undefined):
        chart, data = figures.FIGURES[name](context(**replaced))
        charts.save(chart, data, tmp_path, name)
    chart, _ = figures.FIGURES[name](context(theory=THEORY.clear()))
    charts.save(chart, data, tmp_path, name)


@pytest.mark.parametrize("name", figures.FIGURES)
def test_the_same_figure_has_the_same_bytes_whatever_was_drawn_before(name: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        charts.save(*figures.FIGURES[name](context()), tmp_path / folder, name)
        alt.Chart(pl.DataFrame({"x": [1]})).mark_point().interactive().to_dict()  # moves altair's counters
    for suffix in ("vl.json", "svg", "png", "parquet"):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second and len(first) > 500, suffix


def test_the_specification_stands_alone(tmp_path: Path) -> None:
    data = pl.DataFrame({"x": range(6000), "y": range(6000)})  # more rows than altair allows by default
    chart = alt.Chart(data).mark_point().encode(x="x", y="y").configure_axis(labelFontSize=20)
    spec = charts.specification(chart)
    assert len(next(iter(spec["datasets"].values()))) == 6000
    assert spec["config"]["axis"]["labelFontSize"] == 20  # a chart may differ from the common look
    assert spec["config"]["axis"]["titleFontSize"] == charts.SIZE
    charts.save(alt.Chart(data[:5]).mark_point().encode(x="x"), data[:5], tmp_path, "f")
    assert "url" not in json.loads((tmp_path / "f.vl.json").read_text()).get("data", {})
    assert pl.from_arrow(pq.read_table(tmp_path / "f.parquet")).equals(data[:5])  # type: ignore[union-attr]
