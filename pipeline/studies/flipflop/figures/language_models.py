"""Accuracy of language models on the light switch."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import by_learned
from pipeline.studies.flipflop.names import STANDINS

RULES = {"oracle": "oracle", "last bit": "copies the last bit"}
KINDS = {"standin": "stand-ins", "pretrained": "pretrained models", "oracle": "rules"}


@plots.drawn("The light switch")
def light_switch(context: Results) -> Figure:
    """Share of light-switch stories that are completed as they should be, over the length of the string that is told:
    mean over models of a shape, with their least and most; dashed and hollow, over those that did not learn stories
    like those of training. Stand-ins learned from other stories, rules read the prompt."""
    table = plots.some(context.table("lm_eval").drop_nulls("accuracy"), "no language model is judged at this scale")
    value = pl.col("accuracy")
    kinds = {kind: KINDS.get(kind, KINDS["oracle"]) for kind in table["kind"].unique()}
    data = (
        table.group_by("model", "kind", "learned", "length", maintain_order=True)
        .agg(value.mean(), value.min().alias("least"), value.max().alias("most"), value.len().alias("n"))
        .with_columns(label=pl.col("model").replace(STANDINS | RULES), panel=pl.col("kind").replace(kinds))
        .sort("panel", "label", "length")
    )
    told = sorted(data["length"].unique().to_list())
    x = Axis("length", "tokens of the string (log scale)", log=True, domain=[told[0], max(told[-1], told[0] + 1)])
    x, y = x.but(values=told[:: -(-len(told) // 6)]), plots.share("accuracy", "right states (share)")
    panels = []
    for name, rows in plots.split(data, "panel"):
        by = plots.kinds(rows["label"].unique(maintain_order=True), dashes=False, columns=2)
        points = plots.points(rows, x, y, by, ends=("least", "most"), hollow="learned", size=40)
        panels.append(plots.panel([*by_learned(rows, x, y, by.joined(), "learned"), *points], name, 270, 230))
    ends = data.filter(pl.col("length") == told[-1])
    not_learned = pl.when("learned").then(pl.lit("")).otherwise(pl.lit(" (not learned)"))
    words = plots.tell(ends.with_columns(more=not_learned.fill_null("")), "{label}{more} {accuracy:.2f}", ", ")
    return plots.figure(
        plots.grid(panels, shared=False),
        data,
        f"At {told[-1]} tokens the light switch is told rightly in: {words}",
        f"Means of {plots.count(data['n'], 'model')} of a shape, bars from least to most; dashed and hollow: did not "
        "learn the stories of training",
        told=f"Accuracy at the longest strings: {words}.",
    )
