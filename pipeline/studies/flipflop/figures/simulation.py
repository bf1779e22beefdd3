"""Models of the automaton: maps of attention, drift, heads (Figures 3.26 and 3.33 to 3.38)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.attention_maps import attention_map
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import by_learned, log_axis, with_learned
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


UNLEARNED = "did not learn the automaton"


def named(run: pl.Expr) -> pl.Expr:
    """Return how runs were trained."""
    return run.replace_strict(PENALTIES, default=None, return_dtype=pl.String)


@plots.drawn("Attention of one head")
def single_maps(context: Results) -> Figure:
    """Attention of models with one layer and one head on an input of eight symbols (a dash is a no-op), without and
    with the entropy penalty, with learned positions and with linear ones; titles say which model did not learn the
    automaton. Frames mark the last write before each query."""
    return _maps(context, [ONE, ONE_SHARP, LINEAR, LINEAR_SHARP], 4)


@plots.drawn("Attention of several heads")
def deep_maps(context: Results) -> Figure:
    """Attention of all heads of models with several layers on the same input: without penalty, with the entropy penalty
    on all layers, and on the first layer alone; frames mark the last write before each query."""
    columns = int(context.table("sim_maps").filter(run=MANY)["head"].max() or 1)  # type: ignore[arg-type]
    return _maps(context, [MANY, MANY_SHARP, MANY_FIRST], columns)


def _maps(context: Results, runs: list[str], columns: int) -> Figure:
    table = plots.some(context.table("sim_maps").filter(pl.col("run").is_in(runs)))
    order = pl.col("run").replace_strict({run: n for n, run in enumerate(runs)}, default=-1)
    data = table.sort(order, maintain_order=True).rename({"last_write": "box"})
    known = (
        context.table("sim_eval").sort("replica").group_by("run", maintain_order=True).agg(pl.col("learned").first())
    )
    learned = dict(known.iter_rows())  # the maps are those of the first model of a run
    cell = 16 if columns <= 4 else 10
    panels = []
    for run, own in plots.split(data, "run"):
        several = own["head"].n_unique() > 1 or own["layer"].n_unique() > 1
        for (layer, head), rows in own.group_by("layer", "head", maintain_order=True):
            name = PENALTIES[run] + (f", {layer}.{head}" if several else "")
            name += "" if learned[run] else " (not learned)"
            drawing = attention_map(rows, PROBE, cell, boxes=True)
            panels.append(plots.panel([drawing], name, cell * len(PROBE), cell * len(PROBE)))
    boxed = data.filter("box").group_by("run", maintain_order=True).agg(pl.col("weight").mean())
    words = plots.tell(boxed.with_columns(name=named(pl.col("run"))), "{name} {weight:.2f}", ", ")
    return plots.figure(
        plots.grid(panels, columns, spacing=14),
        data,
        f"Mean weight on the last write: {words}",
        "One model of each kind. Frames: the last write before each query; a dash is a no-op"
        + ("; numbers: layer and head" if len(panels) > len(boxed) else ""),
        told=f"Mean weight on the last write: {words}.",
    )


@plots.drawn("Misleading maps")
def misleading(context: Results) -> Figure:
    """Share of rightly answered no-ops whose largest weight lies on a write of the right value: by raw weights, and by
    weights times the length of the value vector. Two joined points for each model, hollow and dashed where it did not
    learn the automaton; colours are kinds of models."""
    table = context.table("sim_eval").filter(pl.col("run").is_in([ONE, ONE_SHARP, LINEAR, LINEAR_SHARP]), set="p05")
    table = plots.some(table.drop_nulls("argmax_right_type"))
    what = {"argmax_right_type": "raw weights", "value_right_type": "weighted by values"}
    data = (
        table.with_columns(label=named(pl.col("run")), model=pl.format("{} {}", "run", "replica"))
        .rename(what)
        .unpivot(
            list(what.values()),
            index=["run", "label", "replica", "model", "learned"],
            variable_name="what",
            value_name="share",
        )
    )
    by = plots.kinds(data["label"].unique(maintain_order=True), dashes=False, columns=2)
    x, y = Axis("what", None, "N"), plots.share("share", "largest on a write of the right value")
    points = plots.points(data, x, y, by, hollow="learned", tips=["replica"], size=45)
    means = data.group_by("label", "what", maintain_order=True).agg(pl.col("share").mean(), n=pl.len())
    of = data.group_by("what", maintain_order=True).agg(pl.col("share").mean())
    return plots.figure(
        [*by_learned(data, x, y, by.joined(), "model", opacity=0.6), *points],
        data,
        f"The largest weight lies on a write of the right value: {plots.tell(of, '{what} {share:.2f}', ', ')}",
        f"Two joined points are one model, {plots.count(means['n'], 'model')} of each kind; "
        f"hollow and dashed: {UNLEARNED}",
        told=f"Mean shares. {plots.tell(means, '{label}, {what}: {share:.2f}')}.",
        width=400,
        height=220,
    )


@plots.drawn("Drift")
def drift(context: Results) -> Figure:
    """Attention of queries at growing positions of an input with two writes and then no-ops alone, of models with
    linear positions: weight on the last write, and on the last 32 positions. A line for each model, dashed where it
    did not learn the automaton; dotted rules mark the position that the weights predict for the switch."""
    table = plots.some(context.table("drift").filter(pl.col("run").is_in([LINEAR, LINEAR_SHARP]), probe="two_writes"))
    where = {"on_last_write": "last write", "on_recent": "last 32 positions"}
    data = (
        with_learned(context, table, "sim_eval")
        .with_columns(label=named(pl.col("run")))
        .filter(pl.col("position") > 34)
        .rename(where)
        .unpivot(
            list(where.values()),
            index=["run", "label", "replica", "learned", "position"],
            variable_name="where",
            value_name="weight",
        )
    )
    summary = context.table("drift_summary").filter(pl.col("run").is_in([LINEAR, LINEAR_SHARP]))
    rules = summary.with_columns(label=named(pl.col("run"))).drop_nulls("switch_predicted")
    x = Axis("position", "position of the query (log scale)", log=True, domain=[34, 840])
    x, y = x.but(values=[40, 60, 100, 200, 400, 800]), plots.share("weight", "attention weight")
    by = plots.kinds(where.values(), "where", title="weight on", dashes=False)
    panels = []
    for label, rows in plots.split(data, "label"):
        predicted = rules.filter(label=label)["switch_predicted"].to_list()
        marks = [layer for at in predicted for layer in plots.rule(x, at, upright=True)]
        curves = by_learned(rows, x, y, by, "replica", strokeWidth=1.6, opacity=0.85)
        panels.append(plots.panel([*marks, *curves], label, 265, 190))
    seen = summary.drop_nulls("switch_observed").sort("run", "replica").with_columns(name=named(pl.col("run")))
    words = plots.tell(seen, "{name}: predicted {switch_predicted}, seen {switch_observed}")
    models = data.select("run", "replica").unique().height
    first, last = (f"{at(seen['switch_observed']):.0f}" for at in (plots.least, plots.most))
    switched = f", {f'at position {first}' if first == last else f'at positions {first} to {last}'}"
    return plots.figure(
        plots.grid(panels),
        data,
        f"Attention leaves the last write in {seen.height} of {models} models{switched if seen.height else ''}",
        f"A line is one model; dashed: {UNLEARNED}. Dotted: where its weights predict the switch",
        told=f"Switches. {words or 'None'}.",
    )


@plots.drawn("Distances of heads")
def head_distances(context: Results) -> Figure:
    """Distance between the attention of two heads of a layer while training goes on (Frobenius norm over the root of
    the length): without penalty, with the entropy penalty on all layers, and on the first alone. Mean over models
    that learned the automaton and pairs of heads, bands from the closest to the farthest pair."""
    table = with_learned(context, context.table("head_distance"), "sim_eval").filter("learned")
    table = plots.some(table, "no such model learned at this scale")
    distance = pl.col("distance")
    data = (
        table.with_columns(label=named(pl.col("run")), panel=pl.format("layer {}", "layer"))
        .group_by("label", "panel", "layer", "step", maintain_order=True)
        .agg(distance.mean(), distance.min().alias("least"), distance.max().alias("most"), n=pl.len())
    )
    y = Axis("distance", "distance", domain=[0, plots.most(data["most"])])
    by, x = plots.kinds(data["label"].unique(maintain_order=True)), plots.steps()
    panels = [
        plots.panel(plots.lines(rows, x, y, by, band=("least", "most"), dots=True), name, 250, 180)
        for name, rows in plots.split(data, "panel")
    ]
    last = data.filter(pl.col("step") == pl.col("step").max())
    of = last.group_by("label", maintain_order=True).agg(distance.mean())
    return plots.figure(
        plots.grid(panels),
        data,
        f"Distances of heads at the end: {plots.tell(of, '{label} {distance:.2f}', ', ')}",
        f"Lines: means over {plots.count(data['n'], 'pair')} of heads of models that learned; bands: from the closest "
        "to the farthest pair; dashes tell penalties apart",
        told=f"Mean distances at the end. {plots.tell(last, '{label}, {panel}: {distance:.2f}')}.",
    )


@plots.drawn("Other inputs")
def inputs(context: Results) -> Figure:
    """Errors of models of the automaton with linear positions on inputs with other shares of no-ops and of four
    times the length: a point for each model, hollow where it did not learn the inputs of training, without and with
    penalties, by the share of no-ops in training. Models without an error are drawn at half an error among the
    states of the set."""
    table = plots.some(context.table("sim_eval").filter(family="linear"))
    data = table.with_columns(
        name=pl.col("run").replace_strict(TRAINED_ON, default=pl.col("run"), return_dtype=pl.String),
        panel=pl.format("{} symbols", "length"),
        noops=pl.col("set").replace_strict({"p05": "0.5", "p09": "0.9", "p098": "0.98"}, return_dtype=pl.String),
        shown=pl.max_horizontal("error", 0.5 / pl.col("n")),
    )
    names = data.sort("run")["name"].unique(maintain_order=True)
    by = plots.kinds(names, "name", dashes=False, columns=2, title="share of no-ops in training")
    y = log_axis("shown", "error, share of states", plots.least(data["shown"]))
    panels = [
        plots.panel(
            [
                *plots.rule(y, plots.least(rows["shown"]), "no error", end=True, below=False),
                *plots.points(
                    rows,
                    Axis("noops", "share of no-ops", "N"),
                    y,
                    by,
                    apart="name",
                    hollow="learned",
                    tips=["replica", "error"],
                    size=35,
                    opacity=0.8,
                ),
            ],
            name,
            250,
            190,
        )
        for name, rows in plots.split(data.sort("length", maintain_order=True), "panel")
    ]
    learned = data.filter("learned")
    medians = learned.group_by("name", "panel", "noops", maintain_order=True).agg(pl.col("error").median(), n=pl.len())
    clean = learned.group_by("run", "replica", maintain_order=True).agg((pl.col("error") == 0).all().alias("clean"))
    return plots.figure(
        plots.grid(panels),
        data,
        f"{clean['clean'].sum()} of {clean.height} models that learned make no error on any of these inputs",
        "A point is one model; hollow: did not learn the inputs of training. No error is drawn at half an error among "
        "the states of the set, where the lowest dotted line is",
        told="Median errors of models that learned. "
        + plots.tell(medians, "{name}, {panel}, {noops}: {error:.2g}")
        + ".",
    )
