"""Importance of heads (Wen et al. 2023, appendix B.2; DYCK-E11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.comparisons import HEAD_RANK, IMPORTANCES
from pipeline.studies.dyck.figures.common import LEARNED, fill, with_fill
from pipeline.studies.dyck.names import HEADS

if TYPE_CHECKING:
    from pipeline.kit.results import Results

LAYERS = ["layer 1", "layer 2"]


def head_importance(context: Results) -> Figure:
    """What accuracy a head is worth, in two senses, against its stack score."""
    table = with_fill(context.table("head_importance").filter(run=HEADS))
    parts, panels, words = [], [], []
    for column, sense in IMPORTANCES.items():
        part = table.select(
            pl.lit(sense).alias("sense"),
            "replica",
            pl.format("layer {}", "layer").alias("layer"),
            "head",
            "stack_argmax",
            (100 * pl.col(column)).alias("points"),
            "filled",
        )
        parts.append(part)
        row = comparisons.read(context, [HEAD_RANK[column]]).row(0, named=True)
        ends = f"{number(row['lo'])} to {number(row['hi'])}"
        captions = [f"Spearman {number(row['value'])} ({ends}), n = {row['n'] or 0}"]
        words.append(f"{sense}: {captions[0]}")
        panels.append(_panel(part, sense, captions))
    data = pl.concat(parts)
    subtitle = [f"One mark per head of M1 with four heads; {LEARNED}", "Correlation over heads, its mean over models"]
    if table.height:
        models, steps = table["replica"].n_unique(), table["finetune_steps"][0]
        subtitle[1] += f"; {models} models, {steps} steps of further training"
    title = alt.TitleParams("What a head is worth, and how stack-like it is", subtitle=subtitle)
    description = (
        "Loss of bracket accuracy, in points, when a head is zeroed, against the share of queries whose largest weight "
        f"in that head lies on the last unmatched open bracket. {'; '.join(words)}."
    )
    return alt.hconcat(*panels, spacing=80, bounds="flush").properties(title=title, description=description), data


def _panel(data: pl.DataFrame, sense: str, captions: list[str]) -> alt.Chart:
    colours = alt.Scale(domain=LAYERS, range=[charts.SKY, charts.VERMILLION])
    shapes = alt.Scale(domain=LAYERS, range=["circle", "triangle-up"])
    legend = alt.Legend(orient="bottom")
    colour = alt.Color("layer:N", title=None, scale=colours, legend=legend)
    points = (
        alt.Chart(data)
        .mark_point(size=70, opacity=1, strokeWidth=1.5)
        .encode(
            x=alt.X("stack_argmax:Q", title="stack score of the head", scale=alt.Scale(zero=True)),
            y=alt.Y("points:Q", title="loss of accuracy, points", scale=alt.Scale(nice=False, padding=10)),
            color=colour,
            fill=fill(colour),
            shape=alt.Shape("layer:N", title=None, scale=shapes, legend=legend),
            tooltip=["replica:O", "layer:N", "head:O", "stack_argmax:Q", "points:Q"],
        )
    )
    title = alt.TitleParams(sense, subtitle=captions, fontSize=charts.SIZE, offset=6)
    return points.properties(width=250, height=220, title=title)
