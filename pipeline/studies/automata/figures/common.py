"""What figures of this study share: arms and their looks, and accuracy of several arms against one quantity."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.automata.names import ARMS, shown

LOOKS: dict[str, tuple[str, list[int]]] = {
    ARMS["gpt"]: (charts.BLUE, [1, 0]),
    ARMS["shift"]: (charts.SKY, [6, 4]),
    ARMS["none"]: (charts.GREY, [2, 2]),
    ARMS["scratchpad"]: (charts.ORANGE, [6, 4]),
    ARMS["recency"]: (charts.GREEN, [12, 2]),
    ARMS["lstm"]: (charts.VERMILLION, [3, 3]),
}
ACCURACY = "accuracy (share of tokens)"


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with columns ``label`` (the arm) and ``panel`` (the task) in words."""
    return frame.with_columns(
        pl.col("arm").replace_strict(ARMS, return_dtype=pl.String).alias("label"),
        pl.col("task").map_elements(shown, return_dtype=pl.String).alias("panel"),
    )


def summary(frame: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return mean, least and most accuracy over models by task, arm and the column ``by``."""
    value = pl.col("accuracy")
    accuracies = frame.group_by("task", "arm", by).agg(
        value.mean(), value.min().alias("least"), value.max().alias("most"), value.len().alias("models")
    )
    return named(accuracies).sort("panel", "label", by)


def looks(labels: list[str]) -> tuple[Any, Any]:
    """Return colour and dash of arms, with one legend on top."""
    domain = [label for label in LOOKS if label in labels]
    legend = alt.Legend(
        orient="top", columns=3, symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, symbolOpacity=1
    )
    colours = alt.Scale(domain=domain, range=[LOOKS[label][0] for label in domain])
    dashes = alt.Scale(domain=domain, range=[LOOKS[label][1] for label in domain])
    return (
        alt.Color("label:N", title=None, scale=colours, legend=legend),
        alt.StrokeDash("label:N", title=None, scale=dashes, legend=legend),
    )


def accuracy(data: pl.DataFrame, column: str = "accuracy") -> alt.Scale:
    """Return the scale of accuracies in ``column``: up to 1, from the tenth below the least of them."""
    least = data[column].min()
    return alt.Scale(domain=[0.0 if least is None else math.floor(10 * float(least)) / 10, 1])  # type: ignore[arg-type]


def points(base: Any, **encoding: Any) -> list[Any]:
    """Return a point for each model of a chart with the column ``learned``: hollow where it did not learn its task."""
    solved = base.transform_filter("datum.learned").mark_point(filled=True, size=45, opacity=1)
    others = base.transform_filter("!datum.learned").mark_point(
        filled=False, fill="white", size=45, strokeWidth=1.6, opacity=1
    )
    return [marks.encode(**encoding) for marks in (solved, others)]


def lines(data: pl.DataFrame, by: str, title: str, rule: float | None = None, labels: list[str] | None = None) -> Any:
    """Draw mean accuracy of each arm against ``by``, with bands from the least to the most accurate model.

    ``labels`` are the arms of a legend that several panels share: by default those of ``data``.
    """
    colour, dash = looks(labels or data["label"].unique().to_list())
    base = alt.Chart(data).encode(x=alt.X(f"{by}:Q", title=title, scale=alt.Scale(nice=False, zero=False)))
    scale = accuracy(data, "least")
    y = alt.Y("accuracy:Q", title=ACCURACY, scale=scale)
    band = base.mark_area(opacity=0.2).encode(
        y=alt.Y("least:Q", title=ACCURACY, scale=scale), y2="most:Q", color=colour
    )
    line = base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=20)).encode(
        y=y,
        color=colour,
        strokeDash=dash,
        tooltip=["label:N", f"{by}:Q", alt.Tooltip("accuracy:Q", format=".3f"), "models:Q"],
    )
    layers = [band, line]
    if rule is not None:
        layers.insert(
            0, alt.Chart(pl.DataFrame({"at": [rule]})).mark_rule(color=charts.GREY, strokeDash=[6, 4]).encode(x="at:Q")
        )
    return alt.layer(*layers).properties(width=560, height=200)


def models(data: pl.DataFrame, table: pl.DataFrame) -> str:
    """Return how many models each arm has, and how many of all did not learn their task, as a subtitle."""
    counts = sorted(set(data["models"].to_list()))
    number = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    every = table.unique(["run", "replica"])
    missed = every.height - int(every["learned"].sum())
    words = f"; {missed} of {every.height} did not learn their task" if missed else ""
    return f"{number} model{'' if counts[-1] == 1 else 's'} of each arm{words}"


def accuracies_text(data: pl.DataFrame, by: str, at: float) -> str:
    """Return the mean accuracies at one value of ``by``, in words."""
    rows = data.filter((pl.col(by) - at).abs() < 1e-9)
    return ", ".join(f"{row['label']} {charts.number(row['accuracy'])}" for row in rows.iter_rows(named=True))
