"""Accuracy and loss against steps (Chen and Zou 2024, Figures 2 and 4 to 7)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline import charts
from pipeline.studies.depth.figures.common import TASKS, UNIT, Figure, empty, layers, number, scales
from schemas.depth.tables import CONTEXTUAL, GENERALIZATION, JUDGED, MEMORIZATION, REASONING

FIGURE_2 = {"sc": MEMORIZATION, "ic_qa": REASONING, "tm": GENERALIZATION, "ic_tm": CONTEXTUAL}
ACCURACY, LOSS = "accuracy", "loss"
STEPS = "steps of training"
BANDS = (
    "Lines: medians over models at the learning rate with the lowest training loss; bands: from least to most"
)
CHANCE, CHANCE_CONTEXT = "chance, all answers", "chance, the context's answers"


def fig2(context: Any) -> Figure:
    """Figure 2: accuracy and loss by depth on the four tasks."""
    curves, summary = context.table("curves"), context.table("summary")
    parts, rows, words = [], [], []
    depths = sorted({depth for runs in FIGURE_2.values() for depth in runs})
    labels = {layers(depth): depth for depth in depths}
    for task, runs in FIGURE_2.items():
        frame = _medians(curves, {run: layers(depth) for depth, run in runs.items()})
        if not frame.height:
            continue
        parts.append(frame.with_columns(pl.lit(TASKS[task]).alias("task")))
        chances = _chances(summary.filter(pl.col("run").is_in(list(runs.values()))))
        accuracy = _panel(parts[-1], ACCURACY, labels, chances)
        loss = _panel(parts[-1], LOSS, labels, [])
        title = alt.TitleParams(
            TASKS[task], subtitle=_told(summary, list(runs.values())), fontSize=14, offset=6
        )
        rows.append(alt.hconcat(accuracy, loss, spacing=36, title=title))
        words.append(f"{TASKS[task]}: {_ends(parts[-1], labels)}")
    if not parts:
        return empty("Accuracy and loss by depth (Figure 2)", "no run of this figure was trained")
    title = alt.TitleParams(
        "Accuracy and loss by depth (Figure 2)",
        subtitle=[BANDS, "Grey, dashed: chance among all answers; dotted: among those of the context"],
    )
    description = f"Accuracy and loss against steps of training, by number of layers. {'. '.join(words)}."
    return _shared(alt.vconcat(*rows, spacing=24), title, description), pl.concat(parts)


def fig4(context: Any) -> Figure:
    """Figure 4: heads on memorization."""
    return _heads(context, "sc", MEMORIZATION[1], "Heads on memorization (Figure 4)", "one layer")


def fig5(context: Any) -> Figure:
    """Figure 5: heads on reasoning."""
    return _heads(context, "ic_qa", REASONING[2], "Heads on reasoning (Figure 5)", "two layers")


def fig6(context: Any) -> Figure:
    """Figure 6: heads on generalization."""
    return _heads(context, "tm", GENERALIZATION[2], "Heads on generalization (Figure 6)", "two layers")


def fig7(context: Any) -> Figure:
    """Figure 7: heads, layers and examples on contextual generalization."""
    name = "Heads, layers and examples on contextual generalization (Figure 7)"
    curves, summary = context.table("curves"), context.table("summary")
    wanted = (pl.col("experiment") == "exp-3") | pl.col("run").is_in([CONTEXTUAL[3], CONTEXTUAL[4]])
    shapes = curves.filter(wanted).select("run", "k", "heads", "layers").unique().sort("k", "layers", "heads")
    if not shapes.height:
        return empty(name, "no run of this figure was trained")
    kinds = shapes.select("layers", "heads").unique().sort("layers", "heads")["heads"].to_list()
    labels = {f"[{heads}]": i + 1 for i, heads in enumerate(kinds)}
    parts, panels, words = [], [], []
    for (k,), part in shapes.group_by("k", maintain_order=True):
        frame = _medians(
            curves, {run: f"[{heads}]" for run, heads in part.select("run", "heads").iter_rows()}
        )
        parts.append(frame.with_columns(pl.lit(k).alias("k")))
        rows = summary.filter(pl.col("run").is_in(part["run"].to_list()))
        title = alt.TitleParams(
            f"{k} examples in the context",
            subtitle=_told(summary, part["run"].to_list()),
            fontSize=14,
            offset=6,
        )
        panels.append(
            alt.hconcat(
                _panel(parts[-1], ACCURACY, labels, _chances(rows)), _panel(parts[-1], LOSS, labels, []),
                spacing=36, title=title,
            )
        )  # fmt: skip
        words.append(f"k = {k}: {_ends(parts[-1], labels)}")
    description = (
        f"Accuracy and loss on contextual generalization by heads of each layer. {'. '.join(words)}."
    )
    title = alt.TitleParams(name, subtitle=[BANDS, "[1, 1, 2]: heads of the first, second and third layer"])
    return _shared(alt.vconcat(*panels, spacing=24), title, description), pl.concat(parts)


def _heads(context: Any, task: str, reference: str, name: str, depth: str) -> Figure:
    """The reference run and those of EXP-2 on the same task, a colour for each setting of heads."""
    curves, summary = context.table("curves"), context.table("summary")
    wanted = (pl.col("task") == task) & ((pl.col("run") == reference) | (pl.col("experiment") == "exp-2"))
    shapes = curves.filter(wanted).select("run", "heads").unique().sort("heads")
    if not shapes.height:
        return empty(name, "no run of this figure was trained")
    runs = dict(shapes.iter_rows())
    labels = {f"[{heads}]": i + 1 for i, heads in enumerate(dict.fromkeys(runs.values()))}
    data = _medians(curves, {run: f"[{heads}]" for run, heads in runs.items()})
    rows = summary.filter(pl.col("run").is_in(list(runs)))
    panels = _panel(data, ACCURACY, labels, _chances(rows)), _panel(data, LOSS, labels, [])
    title = alt.TitleParams(name, subtitle=[BANDS, *_told(summary, list(runs))])
    description = f"{name}: accuracy and loss of {depth} by heads of each layer. {_ends(data, labels)}."
    return _shared(alt.hconcat(*panels, spacing=36), title, description), data


def _shared(chart: Any, title: alt.TitleParams, description: str) -> alt.TopLevelMixin:
    """``chart`` with one legend for all panels."""
    named: alt.TopLevelMixin = chart.resolve_scale(color="shared", strokeDash="shared").properties(
        title=title, description=description
    )
    return named


def _medians(curves: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Median, least and most of accuracy and loss over models at the chosen rates, on the judged split."""
    judged = pl.col("split") == pl.col("task").replace_strict(JUDGED)
    found = curves.filter(pl.col("chosen") & judged & pl.col("run").is_in(list(names)))
    statistics = [
        getattr(pl.col(column), statistic)().alias(f"{column}{suffix}")
        for column in (ACCURACY, LOSS)
        for statistic, suffix in (("median", ""), ("min", "_least"), ("max", "_most"))
    ]
    models = pl.col(ACCURACY).is_not_null().sum().alias("models")
    medians = (
        found.group_by("run", "split", "lr", "step").agg(*statistics, models).filter(pl.col("models") > 0)
    )
    label = pl.col("run").replace_strict(names, return_dtype=pl.String).alias("label")
    return medians.with_columns(label).sort("label", "step")


def _chances(summary: pl.DataFrame) -> list[tuple[str, float]]:
    """Levels of guessing that the panels draw."""
    levels = [(CHANCE, "chance"), (CHANCE_CONTEXT, "chance_context")]
    return [
        (name, value)
        for name, column in levels
        for value in summary[column].drop_nulls().unique().sort().to_list()
    ]


def _told(summary: pl.DataFrame, runs: list[str]) -> list[str]:
    """How many models there are, which task they have, and how many diverged."""
    rows = summary.filter(pl.col("chosen") & pl.col("run").is_in(runs))
    if not rows.height:
        return ["nothing trained"]
    counts = sorted(set(rows.group_by("run").len()["len"].to_list()))
    models = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    first = rows.row(0, named=True)
    size = (
        f"{first['sequences']} sequences"
        if first["task"] == "sc"
        else f"length {first['l']}"
        if first["l"]
        else ""
    )
    shape = ", ".join(part for part in (f"k = {first['k']}" if first["k"] else "", size) if part)
    plural = "model" if models == "1" else "models"
    lost = rows["diverged_at"].is_not_null().sum()
    return [f"{shape}; {models} {plural} of each shape" + (f", {lost} diverged" if lost else "")]


def _ends(data: pl.DataFrame, labels: dict[str, int]) -> str:
    last = data.filter(pl.col("step") == pl.col("step").max().over("run"))
    found = {row["label"]: row[ACCURACY] for row in last.iter_rows(named=True)}
    return ", ".join(f"{label} {number(found[label])}" for label in labels if label in found)


def _panel(data: pl.DataFrame, column: str, labels: dict[str, int], chances: list[tuple[str, float]]) -> Any:
    colours, dashes = scales(labels)
    share = column == ACCURACY
    name = f"{column}{'' if share else ' (nats)'}"
    y = alt.Y(
        f"{column}:Q",
        title=name,
        scale=alt.Scale(domain=[0, 1]) if share else alt.Scale(zero=True, nice=True),
        axis=alt.Axis(minExtent=30, **({"values": UNIT} if share else {"tickCount": 5})),
    )
    axis = alt.Axis(tickCount=5, grid=False, format="~s")
    x = alt.X("step:Q", title=STEPS, axis=axis, scale=alt.Scale(nice=False))
    legend = alt.Legend(
        orient="top", symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, symbolOpacity=1
    )
    colour = alt.Color("label:N", title=None, sort=list(labels), scale=colours, legend=legend)
    dash = alt.StrokeDash("label:N", title=None, sort=list(labels), scale=dashes, legend=legend)
    base = alt.Chart(data).encode(x=x)
    bands = base.mark_area(opacity=0.2).encode(
        y=alt.Y(f"{column}_least:Q", title=name),
        y2=f"{column}_most:Q",
        color=colour,
    )
    lines = base.mark_line(strokeWidth=2, clip=True).encode(
        y=y,
        color=colour,
        strokeDash=dash,
        tooltip=["label:N", "step:Q", alt.Tooltip(f"{column}:Q", format=".3f")],
    )
    drawn: list[alt.Chart] = []
    for what, value in chances:
        rule = alt.Chart(pl.DataFrame({"level": [value], "what": [what]})).mark_rule(
            color=charts.GREY, strokeWidth=1.5, strokeDash=[6, 4] if what == CHANCE else [2, 2]
        )
        drawn.append(rule.encode(y=alt.Y("level:Q", title=name), tooltip=["what:N", "level:Q"]))
    return alt.layer(*drawn, bands, lines).properties(width=240, height=140)
