"""Accuracy of language models on the light switch."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import dashed, points
from pipeline.studies.flipflop.names import STANDINS

RULES = {"oracle": "oracle", "last bit": "copies the last bit"}
KINDS = {"standin": "stand-ins", "pretrained": "pretrained models", "oracle": "rules"}


def light_switch(context: Results) -> Figure:
    """Share of light-switch stories that are completed as they should be, over the length of the string that is told:
    mean over models of a shape, with their least and most; dashed and hollow, over those that did not learn stories
    like those of training. Stand-ins learned from other stories, rules read the prompt."""
    table = context.table("lm_eval").drop_nulls("accuracy")
    value = pl.col("accuracy")
    data = (
        table.group_by("model", "kind", "learned", "length", maintain_order=True)
        .agg(value.mean(), value.min().alias("least"), value.max().alias("most"), value.len().alias("models"))
        .with_columns(
            pl.col("model").replace(STANDINS | RULES).alias("label"),
            pl.col("kind")
            .replace({kind: KINDS.get(kind, KINDS["oracle"]) for kind in table["kind"].unique()})
            .alias("panel"),
        )
        .sort("panel", "label", "length")
    )
    told = sorted(data["length"].unique().to_list() or [1, 2])
    lengths = alt.Scale(type="log", base=2, domain=[told[0], told[-1]])
    x = alt.X("length:Q", title="tokens of the string", scale=lengths)
    y = alt.Y(
        "accuracy:Q", title="right states (share)", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(values=charts.UNIT)
    )
    panels = []
    for (panel,), rows in data.group_by("panel", maintain_order=True):
        labels = rows["label"].unique(maintain_order=True).to_list()
        legend = alt.Legend(orient="top", columns=2, symbolType="stroke", symbolStrokeWidth=2)
        scale = alt.Scale(domain=labels, range=charts.PALETTE[: len(labels)])
        colour = alt.Color("label:N", title=None, scale=scale, legend=legend)
        base = alt.Chart(rows).encode(x=x, color=colour)
        lines = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dashed(), detail="learned:N")
        tooltip = ["label:N", "learned:N", "length:Q", "accuracy:Q", "models:Q"]
        marked = points(base.encode(y=y, tooltip=tooltip), size=40)
        bars = base.mark_rule(strokeWidth=1).encode(y=alt.Y("least:Q", title="right states (share)"), y2="most:Q")
        panels.append(
            alt.layer(bars, lines, marked).properties(width=270, height=230, title=alt.TitleParams(panel, fontSize=13))
        )
    ends = data.filter(pl.col("length") == data["length"].max())
    accuracies = ", ".join(
        f"{row['label']}{'' if row['learned'] else ' (not learned)'} {row['accuracy']:.2f}"
        for row in ends.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels).resolve_scale(color="independent")
    return chart.properties(
        title="The light switch", description=f"Accuracy at the longest strings: {accuracies}."
    ), data
