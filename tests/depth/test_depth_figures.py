"""Figures of the depth study: what is drawn is what the tables say, and what is not there is said."""

from __future__ import annotations

import importlib
import io
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import depth_tables
import polars as pl
import pytest
from figure_words import unsaid
from PIL import Image
from workspace import load_study

from pipeline.kit import charts
from pipeline.studies.depth.figures import attention, contextual, examples, heads, layers, nested, random_start
from pipeline.studies.depth.names import CONTEXTUAL, MEMORIZATION, REASONING

TABLES = depth_tables.every()
WIDEST = 660
EXPERIMENTS = load_study("depth").of_study("experiments", "depth")
FIGURES = {figure: key for key, experiment in EXPERIMENTS.items() for figure in experiment.figures}


def context(**replaced: pl.DataFrame) -> Any:
    return SimpleNamespace(table=(TABLES | replaced).__getitem__)


def drawn(name: str, **replaced: pl.DataFrame) -> Any:
    """The figure ``name``, from the tables that its experiment and those beside it make."""
    own = EXPERIMENTS[FIGURES[name]]
    inputs = {table for each in (own, *(EXPERIMENTS[key] for key in own.beside)) for table in each.tables}
    tables = {table: frame for table, frame in (TABLES | replaced).items() if table in inputs}
    module = importlib.import_module(f"pipeline.studies.depth.figures.{own.module}")
    return getattr(module, name)(SimpleNamespace(table=tables.__getitem__))


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_fits_the_page(name: str, tmp_path: Path) -> None:
    chart, data = drawn(name)
    charts.save(chart, data, tmp_path, name)
    with Image.open(io.BytesIO(charts.png(charts.specification(chart)))) as image:
        assert image.width <= charts.PNG_SCALE * WIDEST
    module = importlib.import_module(f"pipeline.studies.depth.figures.{EXPERIMENTS[FIGURES[name]].module}")
    assert not unsaid(charts.specification(chart), getattr(module, name).__doc__ or "")
    description = charts.specification(chart)["description"]
    assert len(description) > 60 and "None" not in description and "–" not in description


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_without_data_says_so(name: str) -> None:
    chart, data = drawn(name, **{table: frame.clear() for table, frame in TABLES.items()})
    assert data.columns == ["why"] and data["why"][0] in charts.specification(chart)["description"]


def test_fig2_shows_medians_of_chosen_models_on_the_judged_split() -> None:
    chart, data = layers.fig2(context())
    assert set(data["lr"]) == {0.01} and "unseen_token" not in data["split"].to_list()
    last = data.filter(step=1000, run=CONTEXTUAL[4]).row(0, named=True)
    both = TABLES["curves"].filter(pl.col("chosen"), step=1000, run=CONTEXTUAL[4])["accuracy"]
    assert (last["accuracy"], last["accuracy_least"], last["accuracy_most"]) == pytest.approx(
        (both.median(), both.min(), both.max())
    )
    levels = {round(float(level), 3) for level in re.findall(r'"at": ([0-9.]+)', str(chart.to_json()))}
    chances = (0.01, 0.05, 0.2, 0.25, 0.5)
    assert levels == {round(level, 3) for chance in chances for level in (chance, -math.log(chance))}


def test_models_that_diverged_leave_the_curves_and_are_counted() -> None:
    lost = (pl.col("run") == MEMORIZATION[1]) & (pl.col("replica") == 0)
    curves = TABLES["curves"].with_columns(
        pl.when(lost).then(None).otherwise(pl.col(name)).alias(name) for name in ("accuracy", "loss")
    )
    summary = TABLES["summary"].with_columns(
        pl.when(lost).then(pl.lit(3, pl.Int32)).otherwise(pl.col("diverged_at")).alias("diverged_at")
    )
    chart, data = heads.fig4(context(curves=curves, summary=summary))
    assert "1 diverged" in str(chart.title.subtitle)
    kept = data.filter(step=1000, run=MEMORIZATION[1])
    assert kept["accuracy_least"].item() == kept["accuracy_most"].item() and kept["models"].item() == 1


def test_fig7_has_a_panel_for_each_number_of_examples() -> None:
    data = contextual.fig7(context())[1]
    assert {key: set(part["label"]) for (key,), part in data.group_by("k")} == {
        2: {"[1, 1, 1]", "[1, 1, 2]", "[1, 1, 1, 1]"},
        4: {"[1, 1, 1]", "[1, 1, 1, 1]"},
    }


def test_maps_are_relative_to_their_largest_weight_and_end_with_the_last_query() -> None:
    data = attention.fig3(context())[1]
    assert set(data["probe"]) == {"A=1B=2A=", "A=1B=2B="}
    assert data.group_by("probe", "source", "layer").agg(pl.col("share").max())["share"].to_list() == [1.0] * 8
    assert set(data.filter(layer=2)["query"]) == {7} and set(data.filter(layer=1)["query"]) == set(range(8))
    dead = TABLES["attention"].with_columns(weight=pl.lit(0.0))
    assert set(attention.fig3b(context(attention=dead))[1]["share"]) == {0.0}


def test_fig1_tells_tokens_signs_and_answers_apart() -> None:
    data = examples.fig1(context())[1]
    kinds = dict(data.select("token", "kind").unique().iter_rows())
    assert kinds["="] == "response sign" and kinds["1"] == "answer" and kinds["A"] == "question token"
    assert data.filter(task="ic_qa", line=1).sort("position")["token"].str.join("").item() == "A=1B=2C=3D=4D="


def test_final_accuracy_has_both_levels_of_chance() -> None:
    data = layers.final_accuracy(context())[1]
    chances = data.filter(run=CONTEXTUAL[2]).select("among", "chance").rows()
    assert dict(chances) == {"all outputs": 0.05, "the context's answers": 0.5}
    splits = {"all outputs", "all outputs, unseen tokens", "all outputs, AAA of other tokens"}
    assert set(data.filter(task="generalization")["among"]) == splits


def test_models_that_did_not_learn_are_drawn_hollow() -> None:
    lost = pl.col("run") == REASONING[2]
    summary = TABLES["summary"].with_columns(learned=~lost & pl.col("learned"))
    chart, data = attention.agreement(context(summary=summary))
    assert dict(data.filter(run=REASONING[2]).group_by("learned").len().iter_rows()).keys() == {False}
    assert "reasoning [1, 1]: layer 2" in data["where"].to_list()
    assert "reasoning [1, 1]: layer 2" not in charts.specification(chart)["description"]


def test_one_rate_is_chosen_for_each_run() -> None:
    data = layers.learning_rates(context())[1]
    assert data.group_by("run").agg(pl.col("chosen").sum())["chosen"].unique().to_list() == [1]


def test_random_starts_stand_beside_the_construction() -> None:
    data = random_start.random_start(context())[1]
    assert dict(data.select("where", "n_solved").iter_rows()) == {
        "reasoning [1, 1]": 2,
        "reasoning [1, 1], random start": 0,
        "generalization [1, 1]": 2,
        "generalization [1, 1], random start, Adam": 0,
    }


def test_nested_has_a_cell_for_layers_and_hops() -> None:
    data = nested.nested(context())[1]
    assert data.select("layers", "hops").rows() == [(2, 1), (2, 2), (3, 1), (3, 2)]
    assert data.filter(layers=2, hops=2)["value"].item() == pytest.approx(0.05)


def test_other_settings_are_told_by_what_differs() -> None:
    data = layers.contextual_settings(context())[1]
    last = data.filter(step=1000).select("label", (pl.col("accuracy") > 0.9).alias("learned"))
    assert dict(last.iter_rows()) == {
        "2 layers, SGD, classifier 0.01": False,
        "3 layers, SGD, classifier 0.01": True,
        "2 layers, Adam, classifier 0.01": False,
        "3 layers, Adam, classifier 0.01": True,
        "2 layers, SGD, classifier 1": False,
        "3 layers, SGD, classifier 1": True,
        "4 layers, SGD, classifier 1": True,
        "2 layers [1, 6], SGD, classifier 0.01": False,
    }
