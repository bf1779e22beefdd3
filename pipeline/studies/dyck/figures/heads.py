"""Importance of heads (Wen et al. 2023, appendix B.2; DYCK-E11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.studies.dyck.comparisons import HEAD_RANK, IMPORTANCES
from pipeline.studies.dyck.figures.common import HOLLOW, NO_MODEL
from pipeline.studies.dyck.names import HEADS

if TYPE_CHECKING:
    from pipeline.kit.results import Results

BY_LAYER = plots.kinds({"layer 1": charts.SKY, "layer 2": charts.VERMILLION}, "layer", shapes=True)


@plots.drawn("What a head is worth, and how stack-like it is")
def head_importance(context: Results) -> Figure:
    """What accuracy a head is worth, in two senses, against its stack score."""
    table = plots.some(context.table("head_importance").filter(run=HEADS), NO_MODEL)
    same = ("replica", pl.format("layer {}", "layer").alias("layer"), "head", "stack_argmax", "learned")
    data = pl.concat(
        table.select(pl.lit(sense).alias("sense"), *same, (100 * pl.col(column)).alias("points"))
        for column, sense in IMPORTANCES.items()
    )
    ranks = comparisons.read(context, HEAD_RANK.values())
    ranks = ranks.with_columns(sense=pl.Series(list(IMPORTANCES.values()), dtype=pl.String))
    words = {row["sense"]: row for row in ranks.iter_rows(named=True)}
    x = Axis("stack_argmax", "stack score of the head", domain=[0, 1], values=[0, 0.25, 0.5, 0.75, 1])
    y = Axis("points", "accuracy lost without it (points)", pad=10)
    panels = [
        plots.panel(
            [
                *plots.rule(y, 0, "nothing lost", end=True),
                *plots.points(rows, x, y, BY_LAYER, hollow="learned", tips=["replica", "head"], size=65),
            ],
            sense,
            250,
            220,
            plots.tell(pl.DataFrame([words[sense]]), "Spearman {value:.2f} ({lo:.2f} to {hi:.2f})"),
        )
        for sense, rows in plots.split(data, "sense")
    ]
    return plots.figure(
        plots.grid(panels, spacing=40),
        data,
        "Stack score of a head and what it is worth, rank correlation: "
        + plots.tell(ranks, "{sense} {value:.2f} ({lo:.2f} to {hi:.2f})", ", "),
        f"A point is one head of {plots.count([table['replica'].n_unique()], 'model')} (M1 with four heads); {HOLLOW}. "
        f"Correlations over the heads of a model, means of {plots.count(ranks['n'], 'model')}; "
        + plots.spread(ranks, "in brackets"),
        f"Further training: {plots.count([table['finetune_steps'][0]], 'step')}",
        told=f"Largest loss {plots.most(data['points']):.2g} points.",
    )
