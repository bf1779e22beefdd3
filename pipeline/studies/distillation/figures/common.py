"""What figures of this study share: names and colours of arms, curves of accuracy with their intervals."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.studies.distillation.names import ARMS

COLOURS = {
    "label": charts.BLACK, "ce": charts.ORANGE, "os": charts.VERMILLION, "warm": charts.PURPLE, "prog": charts.BLUE,
    "before": charts.ORANGE, "middle": charts.BLUE, "behind": charts.VERMILLION, "cool": charts.SKY,
    "mild": charts.GREEN, "hot": charts.PURPLE, "low": charts.ORANGE, "mid": charts.GREEN, "high": charts.VERMILLION,
    "lowmid": charts.SKY, "lowhigh": charts.GREEN, "midhigh": charts.PURPLE, "peak": charts.BLUE,
    "between": charts.GREEN,
}  # fmt: skip
DASHES = {"label": [1, 0], "ce": [6, 3], "os": [2, 2], "warm": [8, 2, 2, 2], "prog": [1, 0]}
DEGREES = {1: "1 sign", 2: "2 signs", 3: "3 signs"}


def percent(title: str) -> dict[str, Any]:
    """Return the arguments of an axis of accuracies."""
    return {"title": title, "scale": alt.Scale(domain=[0, 1]), "axis": alt.Axis(values=charts.UNIT)}


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with ``label``, what an arm is called."""
    return frame.with_columns(label=pl.col("arm").replace_strict(ARMS, return_dtype=pl.String))


def coloured(arms: list[str], columns: int = 2) -> alt.Color:
    """Return the colours of arms, in the order of `names.ARMS`."""
    there = [arm for arm in ARMS if arm in arms]
    return alt.Color(
        "label:N", title=None,
        scale=alt.Scale(domain=[ARMS[arm] for arm in there], range=[COLOURS[arm] for arm in there]),
        legend=_legend(columns),
    )  # fmt: skip


def _legend(columns: int) -> alt.Legend:
    return alt.Legend(
        orient="top", columns=columns, symbolStrokeWidth=3, symbolType="stroke", symbolOpacity=1
    )


def dashed(arms: list[str], columns: int) -> alt.StrokeDash:
    """Return the dashes of arms, so that lines that lie on each other can be told apart."""
    there = [arm for arm in ARMS if arm in arms]
    solid: list[int] = [1, 0]
    return alt.StrokeDash(
        "label:N", title=None, legend=_legend(columns),
        scale=alt.Scale(domain=[ARMS[arm] for arm in there], range=[DASHES.get(arm, solid) for arm in there]),
    )  # fmt: skip


def kinds(field: str, labels: list[str], title: str | None = None, columns: int = 3) -> dict[str, Any]:
    """Return colour and dashes of up to three kinds of lines, with one legend."""
    colours = [charts.BLUE, charts.VERMILLION, charts.GREY if len(labels) == 2 else charts.GREEN]
    dashes: list[list[int]] = [[1, 0], [6, 3], [2, 2]]
    legend = _legend(columns)
    scale = alt.Scale(domain=labels, range=colours[: len(labels)])
    return {
        "color": alt.Color(f"{field}:N", title=title, scale=scale, legend=legend),
        "strokeDash": alt.StrokeDash(
            f"{field}:N",
            title=title,
            legend=legend,
            scale=alt.Scale(domain=labels, range=dashes[: len(labels)]),
        ),
    }


def courses(frame: pl.DataFrame, title: str, chance: float, width: int = 270, columns: int = 2) -> Any:
    """Return mean accuracies over steps with their intervals; a rule at the accuracy of guessing."""
    data = named(frame)
    arms = data["arm"].unique().to_list()
    base = alt.Chart(data).encode(
        x=alt.X("step:Q", title="steps of its own training", axis=alt.Axis(tickCount=4, format="~s")),
        color=coloured(arms, columns),
    )
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("lo:Q", **percent("accuracy")), y2="hi:Q")
    line = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("value:Q", **percent("accuracy")), strokeDash=dashed(arms, columns),
        tooltip=["label:N", "step:Q", alt.Tooltip("value:Q", format=".3f"), "n:Q"],
    )  # fmt: skip
    rule = (
        alt.Chart(pl.DataFrame({"y": [chance]}))
        .mark_rule(color=charts.GREY, strokeDash=[2, 2])
        .encode(y="y:Q")
    )
    return alt.layer(rule, band, line, width=width, height=200, title=alt.TitleParams(title, fontSize=13))


def by_arms(
    table: pl.DataFrame, title: str, parts: dict[str, list[str]], chance: float, width: int
) -> Figure:
    """Return panels of mean accuracies side by side, each with the arms that ``parts`` names."""
    if not table.height:
        return charts.empty(title, "nothing was trained at this scale")
    panels = [
        courses(table.filter(pl.col("arm").is_in(arms)), name, chance, width, columns=1)
        for name, arms in parts.items()
    ]
    ends = table.filter(pl.col("step") == pl.col("step").max().over("run"))
    said = "; ".join(f"{row['arm']} {row['value']:.2f}" for row in ends.iter_rows(named=True))
    chart = alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")
    return chart.properties(title=title, description=f"Accuracy at the end: {said}."), table
