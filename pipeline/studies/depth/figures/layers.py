"""EXP-1: every task at every depth (Chen and Zou 2024, Figure 2), where training ends, and at which rates (ours)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.depth.figures import common
from pipeline.studies.depth.names import (
    CONTEXTUAL,
    CONTEXTUAL_ADAM,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    MEMORIZATION,
    ONE_LAYER,
    REASONING,
    SIZES,
    SOFTMAX,
    TWO_LAYERS_HEADS,
)

FIGURE_2 = {"sc": MEMORIZATION, "ic_qa": REASONING, "tm": GENERALIZATION, "ic_tm": CONTEXTUAL}
# What sets a run apart from the one of its task and depth in Figure 2.
APART = {
    SIZES: "more sequences",
    TWO_LAYERS_HEADS: "2l heads",
    **dict.fromkeys(FROZEN.values(), "attention frozen"),
    **dict.fromkeys(ONE_LAYER.values(), "uniform start"),
    **dict.fromkeys(SOFTMAX.values(), "softmax"),
    **dict.fromkeys(CONTEXTUAL_PUBLISHED.values(), "published start"),
    **dict.fromkeys(CONTEXTUAL_ADAM.values(), "Adam"),
}
OUTPUTS, CONTEXT = "all outputs", "the context's answers"
OTHERS = {"unseen_token": "all outputs, unseen tokens", "unseen_repetition": "all outputs, AAA of other tokens"}
LOOKS = {
    OUTPUTS: Look(charts.BLUE, shape="circle"),
    CONTEXT: Look(charts.VERMILLION, shape="triangle-up"),
    OTHERS["unseen_token"]: Look(charts.GREEN, shape="diamond"),
    OTHERS["unseen_repetition"]: Look(charts.PURPLE, shape="square"),
}


@plots.drawn("Accuracy and loss by depth (Figure 2)")
def fig2(context: Results) -> Figure:
    """Figure 2: accuracy and loss by depth on the four tasks."""
    curves, summary = context.table("curves"), context.table("summary")
    parts, rows, words = [], [], []
    depths = sorted({depth for runs in FIGURE_2.values() for depth in runs})
    every, trained = FIGURE_2.values(), set(curves.filter("chosen")["run"])
    enough = []
    labels = {common.layers(depth): depth for depth in depths if any(runs.get(depth) in trained for runs in every)}
    for task, runs in FIGURE_2.items():
        names = {run: common.layers(depth) for depth, run in runs.items()}
        frame = common.medians(curves, names)
        if not frame.height:
            continue
        parts.append(frame.with_columns(pl.lit(common.TASKS[task]).alias("task")))
        guesses = common.chances(summary.filter(pl.col("run").is_in(list(runs.values()))))
        title = alt.TitleParams(
            common.TASKS[task], subtitle=common.sizes(summary, list(runs.values())), fontSize=14, offset=6
        )
        rows.append(common.pair(curves, names, labels, guesses).properties(title=title))
        words.append(f"{common.TASKS[task]}: {common.ends(parts[-1], labels)}")
        enough.append(f"{common.TASKS[task]} {common.fewest(frame, labels)}")
    if not parts:
        raise plots.NothingError(common.NO_RUN)
    return plots.figure(
        plots.grid(rows, 1),
        pl.concat(parts),
        f"Fewest layers that end at {common.LEARNED:g}: {', '.join(enough)} (Figure 2)",
        *common.BANDS,
        told=f"Accuracy and loss against steps of training, by number of layers. {'. '.join(words)}.",
    )


@plots.drawn("Final accuracy by depth")
def final_accuracy(context: Results) -> Figure:
    """Final accuracy by task and depth, with intervals and both levels of chance (claims 1 to 4)."""
    other = pl.col("split").is_in(list(OTHERS))
    shown = pl.col("experiment").is_in(["exp-1", "control", "ablation"])
    table = context.table("accuracy").filter(common.JUDGED_SPLIT | other, pl.col("n") > 0, shown)
    plots.some(table, "no run was trained")
    among = (
        pl.when(other).then(pl.col("split").replace(OTHERS)).when(pl.col("among") == "context").then(pl.lit(CONTEXT))
    )
    depth = pl.col("layers").map_elements(common.layers, return_dtype=pl.String)
    several = pl.len().over("task", "layers", "split", "among", "experiment") > 1  # of another k, l or N
    size = (
        pl.when(task="sc")
        .then(pl.format("{}, N={}", depth, "sequences"))
        .when(task="tm")
        .then(pl.format("{}, l={}", depth, "l"))
        .otherwise(pl.format("{}, k={}", depth, "k"))
    )
    apart = pl.col("run").replace_strict(APART, default=None, return_dtype=pl.String)
    row = (
        pl.when(apart.is_not_null(), task="sc")
        .then(pl.format("{}, {}, N={}", depth, apart, "sequences"))
        .when(apart.is_not_null())
        .then(pl.format("{}, {}", depth, apart))
        .when(several)
        .then(size)
        .otherwise(depth)
    )
    data = table.select(
        pl.col("task").replace_strict(common.TASKS),
        *("run", "layers", "value", "lo", "hi", "interval", "n", "chance", "confidence"),
        among.otherwise(pl.lit(OUTPUTS)).alias("among"),
        row.alias("row"),
    ).sort("task", "layers", "row", "among", "run")
    data = data.unique(("task", "row", "among"), keep="first", maintain_order=True)
    best = data.filter(among=OUTPUTS).group_by("task", "layers").agg(pl.max("value")).sort("task", "layers")
    found = [f"{task} {plots.tell(rows, '{value:.2f}', ', ')}" for task, rows in plots.split(best, "task")]
    # Not facets of one chart: each task has rows of its own, and Vega-Lite warns of scales that differ so.
    panels = [_by_depth(data.filter(task=task), task) for task in common.TASKS.values() if task in data["task"]]
    return plots.figure(
        plots.grid(panels, 1),
        data,
        f"Final accuracy, the best run of each number of layers, the fewest first: {'; '.join(found)}",
        "On what training never showed; memorization on its training data. Grey ticks: chance",
        f"Medians over {plots.count(data['n'], 'model')}; bars: "
        + f"{data['confidence'][0]:.0%} intervals".replace("%", " %")
        + ", where there are models enough",
        told=plots.tell(data, "{task}, {row}, {among}: {value:.2f} (chance {chance:.2f})") + ".",
    )


def _by_depth(data: pl.DataFrame, task: str) -> plots.Panel:
    x = plots.share("value")
    y = Axis("row", None, "N", order=data["row"].to_list())
    by = Kinds("among", LOOKS, title="largest score among", columns=2)
    marks = plots.points(data, x, y, by, ends=("lo", "hi"), apart="among", size=60)
    chance = alt.Chart(data).mark_tick(color=charts.GREY, thickness=2, size=12)
    offset = marks[-1].encoding.yOffset
    ticks = chance.encode(x=x.at(alt.X, "chance"), y=y.at(alt.Y), yOffset=offset)
    return plots.panel([ticks, *marks], task, 400, alt.Step(34, **{"for": "position"}))


@plots.drawn("Training loss by learning rate")
def learning_rates(context: Results) -> Figure:
    """Training loss against the learning rate, by task and depth."""
    table = context.table("learning_rates").filter(experiment="exp-1")
    data = (
        plots.some(table, "no run was trained")
        .select(
            pl.col("task").replace_strict(common.TASKS),
            *("run", "k", "l", "sequences", "layers", "lr", "n", "n_diverged", "training_loss", "chosen"),
            pl.col("layers").map_elements(common.layers, return_dtype=pl.String).alias("depth"),
        )
        .sort("task", "run", "lr")
    )
    panels = _by_task(_by_rate(data))
    lost = int(data["n_diverged"].sum())
    chosen = data.filter("chosen")
    tried = data.group_by("run", "sequences").agg(low=pl.min("lr"), high=pl.max("lr"), rates=pl.n_unique("lr"))
    edges = chosen.join(tried, on=["run", "sequences"]).filter(
        ((pl.col("lr") == pl.col("low")) | (pl.col("lr") == pl.col("high"))) & (pl.col("rates") > 1)
    )
    return plots.figure(
        panels,
        data,
        f"Chosen learning rates at an end of those that were tried: {edges.height} of {chosen.height}",
        "Median over models at the end of training; rings: the chosen rate, by the same rule at every depth",
        f"{lost} models diverged; a rate at which half of them did has no mark" if lost else "No model diverged",
        told=f"Chosen: {plots.tell(chosen, '{task}, {depth}: {lr:g} (loss {training_loss:.2f})')}.",
    )


def _by_rate(data: pl.DataFrame) -> Any:
    depths = data.select("layers", "depth").unique().sort("layers")
    looks = [common.DEPTHS[depth][0] for depth in depths["layers"].to_list()]
    scale = alt.Scale(domain=depths["depth"].to_list(), range=looks)
    rates = data["lr"].unique().sort().to_list()
    base = alt.Chart(data).encode(
        x=alt.X(
            "lr:Q",
            title="learning rate (log scale)",
            scale=alt.Scale(type="log", nice=False, padding=16),
            axis=alt.Axis(values=rates, format="~g", grid=False),
        ),
        y=alt.Y(
            "training_loss:Q",
            title="training loss (nats)",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(minExtent=30, tickCount=5),
        ),
        color=alt.Color("depth:N", title=None, scale=scale, legend=alt.Legend(orient="top")),
        detail=["run:N", "sequences:O"],
        tooltip=["run:N", "sequences:O", "lr:Q", alt.Tooltip("training_loss:Q", format=".3f"), "n_diverged:Q"],
    )
    rings = base.transform_filter("datum.chosen").mark_point(filled=False, size=170, strokeWidth=2)
    points = base.mark_point(filled=True, size=40, opacity=1)
    return alt.layer(base.mark_line(strokeWidth=1.5), points, rings).properties(width=240, height=140)


def _by_task(chart: Any) -> Any:
    """Return ``chart`` once for each task, each with its own vertical axis."""
    header = alt.Header(labelFontWeight="bold", labelAnchor="start", labelFontSize=14)
    field = alt.Facet("task:N", title=None, sort=list(common.TASKS.values()), header=header)
    return chart.facet(field, columns=2).resolve_scale(y="independent", yOffset="independent")


@plots.drawn("Contextual generalization under other settings")
def contextual_settings(context: Results) -> Figure:
    """Contextual generalization from small classifier weights (ours) and from the published start, with
    several heads in the last of two layers and, where that is trained, with Adam. Strong lines are medians, faint ones
    one model each."""
    curves, summary = context.table("curves"), context.table("summary")
    here = (pl.col("experiment") == "ablation") | pl.col("run").is_in([CONTEXTUAL[2], CONTEXTUAL[3]])
    known = context.table("runs").filter(here, task="ic_tm").sort("experiment", "optimizer", "run")
    runs = {row["run"]: _setting(row) for row in known.iter_rows(named=True)}
    data = common.medians(curves, runs)
    if known.filter(experiment="ablation").height == 0 or not data.height:
        raise plots.NothingError(common.NO_RUN)
    # The two at the setting of Figure 2 look as they do there.
    looks = {CONTEXTUAL[2]: 2, CONTEXTUAL[3]: 3}
    others = (number for number in common.DEPTHS if number not in looks.values())
    labels = {label: looks[run] if run in looks else next(others) for run, label in reversed(runs.items())}
    rows = summary.filter(pl.col("run").is_in(list(runs)))
    note = "classifier: upper end of its initial weights, 1 as published; [ ]: heads of each layer, if not 1"
    last = data.filter(pl.col("step") == pl.col("step").max().over("run")).sort(common.ACCURACY)
    return plots.figure(
        common.pair(curves, runs, labels, common.chances(rows)),
        data,
        "Contextual generalization under other settings ends between "
        + plots.tell(last[[0, -1]], "{accuracy:.2f} ({label})", " and "),
        *common.BANDS,
        note,
        *common.sizes(summary, list(runs)),
        told=f"Accuracy and loss against steps. {common.ends(data, labels)}.",
    )


def _setting(row: dict[str, Any]) -> str:
    """Return how a run was set, as in ``3 layers, SGD, classifier 0.01``."""
    optimizer = {"sgd": "SGD", "adam": "Adam"}.get(row["optimizer"], row["optimizer"])
    heads = "" if set(row["heads"]) <= set("1, ") else f" [{row['heads']}]"
    return f"{common.layers(row['layers'])}{heads}, {optimizer}, classifier {row['readout']:g}"
