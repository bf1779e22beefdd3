"""Models of the automaton: maps of attention, drift, heads (Figures 3.26 and 3.33 to 3.38)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.attention_maps import attention_map
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import dashed, points, with_learned
from pipeline.studies.flipflop.names import (
    LINEAR,
    LINEAR_ARMS,
    LINEAR_RISING,
    LINEAR_SHARP,
    MANY,
    MANY_FIRST,
    MANY_SHARP,
    ONE,
    ONE_SHARP,
)

PROBE = "1-0--01-"
PENALTIES = {
    ONE: "no penalty",
    ONE_SHARP: "entropy",
    LINEAR: "no penalty, linear",
    LINEAR_SHARP: "entropy, linear",
    MANY: "no penalty",
    MANY_SHARP: "entropy",
    MANY_FIRST: "entropy, first layer",
}
TRAINED_ON = {
    run: f"{p}{penalty}"
    for p, (plain, sharp) in LINEAR_ARMS.items()
    for run, penalty in ((plain, ""), *((run, f", {kind} penalty from the start") for kind, run in sharp.items()))
} | {run: f"0.5, rising {kind} penalty" for kind, run in LINEAR_RISING.items()}


def single_maps(context: Results) -> Figure:
    """Attention of models with one layer and one head on an input of eight symbols (a dash is a no-op), without and
    with the entropy penalty, with learned positions and with linear ones; titles say which model did not learn the
    automaton. Frames mark the last write before each query."""
    return _maps(context, [ONE, ONE_SHARP, LINEAR, LINEAR_SHARP], "Attention of one head", 4)


def deep_maps(context: Results) -> Figure:
    """Attention of all heads of models with several layers on the same input: without penalty, with the entropy penalty
    on all layers, and on the first layer alone; frames mark the last write before each query."""
    columns = int(context.table("sim_maps").filter(run=MANY)["head"].max() or 1)  # type: ignore[arg-type]
    return _maps(context, [MANY, MANY_SHARP, MANY_FIRST], "Attention of several heads", columns)


def _maps(context: Results, runs: list[str], title: str, columns: int) -> Figure:
    table = context.table("sim_maps").filter(pl.col("run").is_in(runs))
    table = table.sort(
        pl.col("run").replace_strict({run: n for n, run in enumerate(runs)}, default=-1), maintain_order=True
    )
    if not table.height:
        return empty(title, "nothing was trained at this scale")
    data = table.rename({"last_write": "box"})
    known = context.table("sim_eval").sort("replica").group_by("run").agg(pl.col("learned").first())
    learned = dict(known.iter_rows())  # the maps are those of the first model of a run
    cell = 16 if columns <= 4 else 10
    panels, words = [], []
    for run in data["run"].unique(maintain_order=True).to_list():
        for (layer, head), rows in data.filter(run=run).group_by("layer", "head", maintain_order=True):
            several = data.filter(run=run)["head"].n_unique() > 1 or data.filter(run=run)["layer"].n_unique() > 1
            name = PENALTIES[run] + (f", {layer}.{head}" if several else "")
            name += "" if learned[run] else " (not learned)"
            drawing = attention_map(rows, PROBE, cell, boxes=True)
            panels.append(drawing.properties(title=alt.TitleParams(name, fontSize=12, offset=4)))
        own = data.filter(pl.col("box"), run=run)["weight"]
        words.append(f"{PENALTIES[run]}: {float(own.mean() or 0):.2f}")  # type: ignore[arg-type]
    chart = alt.concat(*panels, columns=columns, spacing=14).resolve_scale(color="shared")
    description = f"{title}. Mean weight on the last write: {'; '.join(words)}."
    return chart.properties(title=title, description=description), data


def misleading(context: Results) -> Figure:
    """Share of rightly answered no-ops whose largest weight lies on a write of the right value: by raw weights, and by
    weights times the length of the value vector. Two joined points for each model, hollow where it did not learn the
    automaton; colours are kinds of models."""
    table = context.table("sim_eval").filter(pl.col("run").is_in([ONE, ONE_SHARP, LINEAR, LINEAR_SHARP]), set="p05")
    table = table.drop_nulls("argmax_right_type")
    if not table.height:
        return empty("Misleading maps", "nothing was trained at this scale")
    data = (
        table.with_columns(label=pl.col("run").replace_strict(PENALTIES, default=None, return_dtype=pl.String))
        .rename({"argmax_right_type": "raw weights", "value_right_type": "weighted by values"})
        .unpivot(
            ["raw weights", "weighted by values"],
            index=["run", "label", "replica", "learned"],
            variable_name="what",
            value_name="share",
        )
    )
    base = alt.Chart(data).encode(
        x=alt.X("what:N", title=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("share:Q", title="largest on a write of the right value", scale=alt.Scale(domain=[0, 1])),
        detail=["run:N", "replica:N"],
        color=alt.Color(
            "label:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top", columns=2)
        ),
    )
    chart = alt.layer(base.mark_line(opacity=0.6).encode(strokeDash=dashed()), points(base, size=45))
    means = data.group_by("label", "what", maintain_order=True).agg(pl.col("share").mean())
    words = "; ".join(f"{row['label']}, {row['what']}: {row['share']:.2f}" for row in means.iter_rows(named=True))
    return chart.properties(
        width=400, height=220, title="Raw weights and weights times values", description=f"Mean shares. {words}."
    ), data


def drift(context: Results) -> Figure:
    """Attention of queries at growing positions of an input with two writes and then no-ops alone, of models with
    linear positions: weight on the last write, and on the last 32 positions. A line for each model, dashed where it
    did not learn the automaton; rules mark the position that the weights predict for the switch."""
    table = context.table("drift").filter(pl.col("run").is_in([LINEAR, LINEAR_SHARP]), probe="two_writes")
    if not table.height:
        return empty("Drift", "nothing was trained at this scale")
    data = (
        with_learned(context, table, "sim_eval")
        .with_columns(label=pl.col("run").replace_strict(PENALTIES, default=None, return_dtype=pl.String))
        .filter(pl.col("position") > 34)
        .rename({"on_last_write": "last write", "on_recent": "last 32 positions"})
        .unpivot(
            ["last write", "last 32 positions"],
            index=["run", "label", "replica", "learned", "position"],
            variable_name="where",
            value_name="weight",
        )
    )
    summary = context.table("drift_summary").filter(pl.col("run").is_in([LINEAR, LINEAR_SHARP]))
    rules = summary.with_columns(
        label=pl.col("run").replace_strict(PENALTIES, default=None, return_dtype=pl.String)
    ).drop_nulls("switch_predicted")
    x = alt.Scale(type="log", domain=[34, 840], nice=False)
    panels = []
    for label in data["label"].unique(maintain_order=True).to_list():
        lines = (
            alt.Chart(data.filter(label=label))
            .mark_line(strokeWidth=1.6, opacity=0.85)
            .encode(
                x=alt.X(
                    "position:Q",
                    title="position of the query",
                    scale=x,
                    axis=alt.Axis(values=[40, 60, 100, 200, 400, 800]),
                ),
                y=alt.Y("weight:Q", title="attention weight", scale=alt.Scale(domain=[0, 1])),
                detail="replica:N",
                strokeDash=dashed(),
                color=alt.Color(
                    "where:N", title="weight on", scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top")
                ),
                tooltip=["replica:Q", "learned:N", "position:Q", "where:N", alt.Tooltip("weight:Q", format=".3f")],
            )
        )
        marks = (
            alt.Chart(rules.filter(label=label))
            .mark_rule(strokeDash=[3, 3], color=charts.GREY)
            .encode(x=alt.X("switch_predicted:Q", scale=x))
        )
        panels.append(alt.layer(marks, lines, width=265, height=190, title=alt.TitleParams(label, fontSize=13)))
    seen = summary.drop_nulls("switch_observed").sort("run", "replica")
    words = "; ".join(
        f"{PENALTIES[row['run']]}: predicted {row['switch_predicted']}, seen {row['switch_observed']}"
        for row in seen.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels).resolve_scale(color="shared")
    return chart.properties(title="Drift of attention with length", description=f"Switches. {words}."), data


def head_distances(context: Results) -> Figure:
    """Distance between the attention of two heads of a layer while training goes on (Frobenius norm over the root of
    the length): without penalty, with the entropy penalty on all layers, and on the first alone. Mean over models
    that learned the automaton and pairs of heads, bands from the closest to the farthest pair."""
    table = with_learned(context, context.table("head_distance"), "sim_eval").filter("learned")
    if not table.height:
        return empty("Distances of heads", "no such model learned at this scale")
    data = (
        table.with_columns(
            label=pl.col("run").replace_strict(PENALTIES, default=None, return_dtype=pl.String),
            panel=pl.format("layer {}", "layer"),
        )
        .group_by("label", "panel", "layer", "step", maintain_order=True)
        .agg(pl.col("distance").mean(), pl.col("distance").min().alias("least"), pl.col("distance").max().alias("most"))
    )
    most = float(data["most"].max())  # type: ignore[arg-type]
    colour = alt.Color("label:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top"))
    panels = []
    for (panel,), rows in data.group_by("panel", maintain_order=True):
        base = alt.Chart(rows).encode(
            x=alt.X("step:Q", title="steps of training", axis=alt.Axis(tickCount=4)), color=colour
        )
        band = base.mark_area(opacity=0.15).encode(
            y=alt.Y("least:Q", title="distance", scale=alt.Scale(domain=[0, most])), y2="most:Q"
        )
        line = base.mark_line(point=True).encode(y="distance:Q")
        panels.append(alt.layer(band, line, width=250, height=180, title=alt.TitleParams(str(panel), fontSize=13)))
    last = data.filter(pl.col("step") == pl.col("step").max())
    words = "; ".join(f"{row['label']}, {row['panel']}: {row['distance']:.2f}" for row in last.iter_rows(named=True))
    chart: Any = alt.concat(*panels, columns=2).resolve_scale(color="shared")
    return chart.properties(title="Distances between heads", description=f"Mean distances at the end. {words}."), data


def inputs(context: Results) -> Figure:
    """Errors of models of the automaton with linear positions on inputs with other shares of no-ops and of four
    times the length: a point for each model, hollow where it did not learn the inputs of training, without and with
    penalties, by the share of no-ops in training. Models without an error are drawn at half an error among the
    states of the set."""
    table = context.table("sim_eval").filter(family="linear")
    if not table.height:
        return empty("Other inputs", "nothing was trained at this scale")
    data = table.with_columns(
        name=pl.col("run").replace_strict(TRAINED_ON, default=pl.col("run"), return_dtype=pl.String),
        panel=pl.format("{} symbols", "length"),
        noops=pl.col("set").replace_strict({"p05": "0.5", "p09": "0.9", "p098": "0.98"}, return_dtype=pl.String),
        shown=pl.max_horizontal("error", 0.5 / pl.col("n")),
    )
    names = data.sort("run")["name"].unique(maintain_order=True).to_list()
    least = float(data["shown"].min())  # type: ignore[arg-type]
    ticks = [10.0**n for n in range(-6, 1) if 10.0**n >= least / 1.5]
    panels = []
    for (panel,), rows in data.sort("length").group_by("panel", maintain_order=True):
        marked = alt.Chart(rows).encode(
            x=alt.X("noops:N", title="share of no-ops", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("name:N", sort=names),
            y=alt.Y(
                "shown:Q",
                title="error (share of states)",
                scale=alt.Scale(type="log", domain=[least, 1]),
                axis=alt.Axis(values=ticks, format="~g"),
            ),
            color=alt.Color(
                "name:N",
                title="share of no-ops in training",
                scale=alt.Scale(domain=names, range=charts.PALETTE),
                legend=alt.Legend(orient="top", columns=2, labelLimit=240),
            ),
            tooltip=["name:N", "replica:Q", "learned:N", alt.Tooltip("error:Q", format=".2g")],
        )
        panels.append(
            points(marked, size=35, opacity=0.8).properties(
                width=250, height=190, title=alt.TitleParams(str(panel), fontSize=13)
            )
        )
    medians = (
        data.filter("learned").group_by("name", "panel", "noops", maintain_order=True).agg(pl.col("error").median())
    )
    words = "; ".join(
        f"{r['name']}, {r['panel']}, {r['noops']}: {r['error']:.2g}" for r in medians.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels).resolve_scale(color="shared")
    return chart.properties(
        title="The automaton on other inputs", description=f"Median errors of models that learned. {words}."
    ), data
