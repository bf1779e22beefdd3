"""What figures of this study share: names of tasks and depths, and curves against steps of training."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import number
from pipeline.studies.depth.names import JUDGED

TASKS = {
    "sc": "memorization",
    "ic_qa": "reasoning",
    "tm": "generalization",
    "ic_tm": "contextual generalization",
    "nested": "nested lookups",
}
# Of a number of layers: colour, and a dash for those who see no colours.
DEPTHS: dict[int, tuple[str, list[int]]] = {
    1: (charts.ORANGE, [1, 0]),
    2: (charts.BLUE, [6, 4]),
    3: (charts.VERMILLION, [12, 2]),
    4: (charts.PURPLE, [7, 2, 2, 2]),
    5: (charts.GREEN, [3, 3]),
    6: (charts.BLACK, [1, 2]),
    7: (charts.SKY, [1, 0]),
    8: (charts.GREY, [6, 4]),
}
JUDGED_SPLIT = pl.col("split") == pl.col("task").replace_strict(JUDGED)
ACCURACY, LOSS = "accuracy", "loss"  # columns of curves
STEPS = "steps of training"
HIGHEST = 1.3  # loss that is drawn, in that of a guess: the first steps can be far above
BANDS = [
    "Lines: medians over models at the learning rate with the lowest training loss; bands: from least to most",
    "Grey: chance among all answers (dashed), among those of the context (dotted)",
]
CHANCE, CHANCE_CONTEXT = "chance, all answers", "chance, the context's answers"


def layers(number: int) -> str:
    """Return the number of layers in words: ``1 layer``, ``2 layers``."""
    return f"{number} layer{'' if number == 1 else 's'}"


def shape_name(metadata: dict[str, Any]) -> str:
    """Return a run's task and heads, as in ``reasoning [1, 1]``, and what else is particular to it.

    That is its start and optimizer, where they are not its construction and SGD.
    """
    start = ", random start" if metadata["init"] == "random" else ""
    optimizer = "" if metadata["optimizer"] == "sgd" else ", Adam"
    return f"{TASKS[metadata['task']]} [{metadata['heads']}]{start}{optimizer}"


def scales(labels: dict[str, int]) -> tuple[alt.Scale, alt.Scale]:
    """Return the scales of colours and dashes of labels.

    Each label comes with the number whose look in `DEPTHS` it takes.
    """
    looks = [DEPTHS[number] for number in labels.values()]
    names = list(labels)
    return alt.Scale(domain=names, range=[colour for colour, _ in looks]), alt.Scale(
        domain=names, range=[dash for _, dash in looks]
    )


def shared(chart: Any, title: alt.TitleParams, description: str) -> alt.TopLevelMixin:
    """Return ``chart`` with one legend for all panels."""
    named: alt.TopLevelMixin = chart.resolve_scale(color="shared", strokeDash="shared").properties(
        title=title, description=description
    )
    return named


def medians(curves: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return median, least and most of accuracy and loss over models at the chosen rates, on the judged split."""
    rows = curves.filter(pl.col("chosen") & JUDGED_SPLIT & pl.col("run").is_in(list(names)))
    statistics = [
        getattr(pl.col(column), statistic)().alias(f"{column}{suffix}")
        for column in (ACCURACY, LOSS)
        for statistic, suffix in (("median", ""), ("min", "_least"), ("max", "_most"))
    ]
    models = pl.col(ACCURACY).is_not_null().sum().alias("models")
    by_step = rows.group_by("run", "split", "lr", "step").agg(*statistics, models).filter(pl.col("models") > 0)
    label = pl.col("run").replace_strict(names, return_dtype=pl.String).alias("label")
    return by_step.with_columns(label).sort("label", "step")


def chances(summary: pl.DataFrame) -> list[tuple[str, float]]:
    """Return the levels of guessing that the panels draw, with their names."""
    levels = [(CHANCE, "chance"), (CHANCE_CONTEXT, "chance_context")]
    return [
        (name, value) for name, column in levels for value in summary[column].drop_nulls().unique().sort().to_list()
    ]


def sizes(summary: pl.DataFrame, runs: list[str]) -> list[str]:
    """Return a subtitle: the size of the task, how many models of each shape there are, how many diverged."""
    rows = summary.filter(pl.col("chosen") & pl.col("run").is_in(runs))
    if not rows.height:
        return ["nothing trained"]
    counts = sorted(set(rows.group_by("run").len()["len"].to_list()))
    models = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    first = rows.row(0, named=True)
    size = f"{first['sequences']} sequences" if first["task"] == "sc" else f"length {first['l']}" if first["l"] else ""
    shape = ", ".join(part for part in (f"k = {first['k']}" if first["k"] else "", size) if part)
    plural = "model" if models == "1" else "models"
    lost = rows["diverged_at"].is_not_null().sum()
    return [f"{shape}; {models} {plural} of each shape" + (f", {lost} diverged" if lost else "")]


def ends(data: pl.DataFrame, labels: dict[str, int]) -> str:
    """Return, in words, the accuracy at which each curve ends."""
    last = data.filter(pl.col("step") == pl.col("step").max().over("run"))
    accuracies = {row["label"]: row[ACCURACY] for row in last.iter_rows(named=True)}
    return ", ".join(f"{label} {number(accuracies[label])}" for label in labels if label in accuracies)


def pair(data: pl.DataFrame, labels: dict[str, int], guesses: list[tuple[str, float]]) -> Any:
    """Draw accuracy, and beside it loss; a guess among n has the accuracy 1/n and the loss log n."""
    losses = [(name, -math.log(value)) for name, value in guesses]
    highest = HIGHEST * max((value for _, value in losses), default=1.0)
    above = bool((data[LOSS] > highest).any())
    return alt.hconcat(
        _panel(data, ACCURACY, labels, guesses, 1.0, "accuracy"),
        _panel(data, LOSS, labels, losses, highest, f"loss (nats{', cut' if above else ''})"),
        spacing=36,
    )


def _panel(
    data: pl.DataFrame, column: str, labels: dict[str, int], guesses: list[tuple[str, float]], highest: float, name: str
) -> Any:
    colours, dashes = scales(labels)
    axis = alt.Axis(minExtent=30, **({"values": [0, 0.5, 1]} if column == ACCURACY else {"tickCount": 5}))
    y = alt.Y(f"{column}:Q", title=name, scale=alt.Scale(domain=[0, highest], nice=False), axis=axis)
    along = alt.Axis(tickCount=5, grid=False, format="~s")
    x = alt.X("step:Q", title=STEPS, axis=along, scale=alt.Scale(nice=False))
    columns = 4 if max(map(len, labels)) < 16 else 2
    legend = alt.Legend(
        orient="top", symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, symbolOpacity=1, columns=columns
    )
    colour = alt.Color("label:N", title=None, sort=list(labels), scale=colours, legend=legend)
    dash = alt.StrokeDash("label:N", title=None, sort=list(labels), scale=dashes, legend=legend)
    base = alt.Chart(data).encode(x=x)
    bands = base.mark_area(opacity=0.2, clip=True).encode(
        y=alt.Y(f"{column}_least:Q", title=name), y2=f"{column}_most:Q", color=colour
    )
    lines = base.mark_line(strokeWidth=2, clip=True).encode(
        y=y, color=colour, strokeDash=dash, tooltip=["label:N", "step:Q", alt.Tooltip(f"{column}:Q", format=".3f")]
    )
    drawn: list[Any] = []
    for what, value in guesses:
        rule = alt.Chart(pl.DataFrame({"level": [value], "what": [what]})).mark_rule(
            color=charts.GREY, strokeWidth=1.5, strokeDash=[6, 4] if what == CHANCE else [2, 2]
        )
        drawn.append(rule.encode(y=alt.Y("level:Q", title=name), tooltip=["what:N", "level:Q"]))
    return alt.layer(*drawn, bands, lines).properties(width=240, height=140)
