"""Where training ends: by depth, from a random start, on nested lookups (ours; EXP-1, EXP-5, EXP-6)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.depth.figures.common import (
    TASKS,
    UNIT,
    Figure,
    empty,
    layers,
    number,
    shape_name,
)
from schemas.depth.tables import JUDGED

OUTPUTS, CONTEXT = "all outputs", "the context's answers"
OTHERS = {
    "unseen_token": "all outputs, unseen tokens",
    "unseen_repetition": "all outputs, AAA of other tokens",
}
LOOKS = {
    OUTPUTS: (charts.BLUE, "circle"),
    CONTEXT: (charts.VERMILLION, "triangle-up"),
    OTHERS["unseen_token"]: (charts.GREEN, "diamond"),
    OTHERS["unseen_repetition"]: (charts.PURPLE, "square"),
}
JUDGED_SPLIT = pl.col("split") == pl.col("task").replace_strict(JUDGED)


def final_accuracy(context: Any) -> Figure:
    """Final accuracy by task and depth, with intervals and both levels of chance (claims 1 to 4)."""
    name = "Final accuracy by depth"
    other = pl.col("split").is_in(list(OTHERS))
    shown = pl.col("experiment").is_in(["exp-1", "control"])
    table = context.table("accuracy").filter(JUDGED_SPLIT | other, pl.col("n") > 0, shown)
    if not table.height:
        return empty(name, "no run was trained")
    among = (
        pl.when(other).then(pl.col("split").replace(OTHERS))
        .when(pl.col("among") == "context").then(pl.lit(CONTEXT))
    )  # fmt: skip
    depth = pl.col("layers").map_elements(layers, return_dtype=pl.String)
    several = pl.len().over("task", "layers", "split", "among", "experiment") > 1  # of another k, l or N
    size = (
        pl.when(task="sc").then(pl.format("{}, N={}", depth, "sequences"))
        .when(task="tm").then(pl.format("{}, l={}", depth, "l"))
        .otherwise(pl.format("{}, k={}", depth, "k"))
    )  # fmt: skip
    row = (
        pl.when(experiment="control").then(pl.format("{}, uniform start", depth))
        .when(several).then(size).otherwise(depth)
    )  # fmt: skip
    data = table.select(
        pl.col("task").replace_strict(TASKS),
        *("run", "layers", "value", "lo", "hi", "n", "chance", "confidence"),
        among.otherwise(pl.lit(OUTPUTS)).alias("among"),
        row.alias("row"),
    ).sort("task", "layers", "row", "among", "run")
    data = data.unique(("task", "row", "among"), keep="first", maintain_order=True)
    title = alt.TitleParams(
        name,
        subtitle=[
            "On what training never showed; memorization on its training data. Grey ticks: chance",
            f"Medians over models, with {data['confidence'][0]:.0%} bootstrap intervals",
        ],
    )
    told = "; ".join(
        f"{row['task']}, {row['row']}, {row['among']}: {number(row['value'])} (chance {number(row['chance'])})"
        for row in data.iter_rows(named=True)
    )
    # Not facets of one chart: each task has rows of its own, and Vega-Lite warns of scales that differ so.
    panels = [
        _by_depth(data.filter(task=task)).properties(title=alt.TitleParams(task, fontSize=charts.SIZE))
        for task in TASKS.values()
        if task in data["task"]
    ]
    chart = alt.vconcat(*panels, spacing=14)
    return chart.properties(title=title, description=f"{name}. {told}."), data


def _by_depth(data: pl.DataFrame) -> Any:
    colours = alt.Scale(domain=list(LOOKS), range=[colour for colour, _ in LOOKS.values()])
    shapes = alt.Scale(domain=list(LOOKS), range=[shape for _, shape in LOOKS.values()])
    axis, told = "accuracy", "largest score among"
    colour = alt.Color("among:N", title=told, scale=colours, legend=alt.Legend(orient="top", columns=2))
    x = alt.X("value:Q", title=axis, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(values=UNIT))
    base = alt.Chart(data).encode(
        y=alt.Y("row:N", title=None, sort=data["row"].to_list(), axis=alt.Axis(ticks=False, domain=False)),
        yOffset=alt.YOffset(
            "among:N", sort=list(LOOKS), scale=alt.Scale(domain=list(LOOKS), paddingOuter=0.5)
        ),
        tooltip=["task:N", "row:N", "among:N", alt.Tooltip("value:Q", format=".3f"), "n:Q"],
    )
    return alt.layer(
        base.mark_tick(color=charts.GREY, thickness=2, size=12).encode(x=alt.X("chance:Q", title=axis)),
        base.mark_rule(strokeWidth=1.5).encode(x=alt.X("lo:Q", title=axis), x2="hi:Q", color=colour),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, color=colour, shape=alt.Shape("among:N", title=told, scale=shapes)
        ),
    ).properties(width=400, height=alt.Step(34, **{"for": "position"}))


def random_start(context: Any) -> Figure:
    """DEP-R2: how many models learn from a random start, with SGD and with Adam (EXP-5)."""
    name = "Learning from a random start"
    known = context.table("runs").select("run", "init", "optimizer").unique()
    table = context.table("accuracy").filter(JUDGED_SPLIT, among="outputs").join(known, on="run")
    tasks = table.filter(experiment="exp-5")["task"].unique().to_list()
    reference = (pl.col("experiment") == "exp-1") & (pl.col("layers") == 2)
    table = table.filter(reference | (pl.col("experiment") == "exp-5"), pl.col("task").is_in(tasks))
    if not tasks:
        return empty(name, "no run from a random start was trained")
    models = pl.col("n") + pl.col("n_diverged")
    where = pl.struct("task", "heads", "init", "optimizer").map_elements(shape_name, return_dtype=pl.String)
    text = pl.format("{} of {}; median {}", "n_solved", models, pl.col("value").round(3))
    data = (
        table.select(
            *("run", "task", "experiment", "k", "l", "lr", "n_solved", "value"),
            models.alias("models"),
            (pl.col("n_solved") / models).alias("share"),
            where.alias("where"),
            text.alias("text"),
        )
        .sort("task", "experiment", "run")
        .unique("where", keep="first", maintain_order=True)
    )
    base = alt.Chart(data).encode(
        y=alt.Y(
            "where:N", title=None, sort=data["where"].to_list(), axis=alt.Axis(labelLimit=340, ticks=False)
        )
    )
    x = alt.X(
        "share:Q",
        title="share of models with at least 99%",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(values=UNIT),
    )
    bars = base.mark_bar(color=charts.SKY, height=18).encode(x=x, tooltip=["run:N", "n_solved:Q", "models:Q"])
    texts = base.mark_text(align="left", dx=6, color=charts.INK).encode(x=alt.value(0), text="text:N")
    title = alt.TitleParams(
        name,
        subtitle=[
            "Two layers from normal weights, beside the start from the construction, at their best rates",
            "Numbers: models with at least 99% accuracy, and the median accuracy",
        ],
    )
    told = "; ".join(f"{where}: {text}" for where, text in data.select("where", "text").iter_rows())
    chart = alt.layer(bars, texts).properties(width=290, height=alt.Step(30))
    return chart.properties(title=title, description=f"{name}. {told}."), data


def nested(context: Any) -> Figure:
    """DEP-D5: accuracy on chains of lookups by layers and hops (EXP-6)."""
    name = "Nested lookups: accuracy by layers and hops"
    table = context.table("accuracy").filter(JUDGED_SPLIT, experiment="exp-6", among="outputs")
    data = table.select("layers", "hops", "value", "least", "most", "n", "chance").sort("layers", "hops")
    if not data.height:
        return empty(name, "no run of this experiment was trained")
    base = alt.Chart(data).encode(
        x=alt.X("hops:O", title="hops", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layers:O", title="layers", sort="descending"),
    )
    scale = alt.Scale(domain=[0, 1], range=["#EEF4FA", "#2B74B3"])
    legend = alt.Legend(orient="right", values=[0, 0.5, 1])
    cells = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("value:Q", title="accuracy", scale=scale, legend=legend),
        tooltip=["layers:O", "hops:O", "value:Q", "least:Q", "most:Q", "n:Q"],
    )
    texts = base.mark_text(fontSize=14).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition(alt.datum.value > 0.6, alt.value("white"), alt.value(charts.INK)),
    )
    fewest, most = data["n"].min(), data["n"].max()
    models = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    title = alt.TitleParams(
        name,
        subtitle=[
            f"Medians on fresh chains, {models} model{'' if most == 1 else 's'} each; chance {data['chance'][0]:.2f}",
            "The construction takes two layers per hop (section 7), or one more than hops (ours)",
        ],
    )
    told = "; ".join(
        f"{row['layers']} layers, {row['hops']} hop{'' if row['hops'] == 1 else 's'}: {number(row['value'])}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.layer(cells, texts).properties(width=90 * data["hops"].n_unique(), height=alt.Step(40))
    return chart.properties(title=title, description=f"{name}. {told}."), data
