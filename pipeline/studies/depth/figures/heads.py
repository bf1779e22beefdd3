"""EXP-2: heads on memorization, reasoning and generalization (Chen and Zou 2024, Figures 4 to 6)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.depth.figures import common
from pipeline.studies.depth.names import GENERALIZATION, MEMORIZATION, REASONING


@plots.drawn("Heads on memorization (Figure 4)")
def fig4(context: Results) -> Figure:
    """Figure 4: heads on memorization."""
    return _heads(context, "sc", MEMORIZATION[1], "Figure 4", "one layer")


@plots.drawn("Heads on reasoning (Figure 5)")
def fig5(context: Results) -> Figure:
    """Figure 5: heads on reasoning."""
    return _heads(context, "ic_qa", REASONING[2], "Figure 5", "two layers")


@plots.drawn("Heads on generalization (Figure 6)")
def fig6(context: Results) -> Figure:
    """Figure 6: heads on generalization."""
    return _heads(context, "tm", GENERALIZATION[2], "Figure 6", "two layers")


def _heads(context: Results, task: str, reference: str, published: str, depth: str) -> Figure:
    """Draw the reference run and those of EXP-2 on the same task, a colour for each setting of heads."""
    curves, summary = context.table("curves"), context.table("summary")
    mask = (pl.col("task") == task) & ((pl.col("run") == reference) | (pl.col("experiment") == "exp-2"))
    shapes = curves.filter(mask).select("run", "heads").unique().sort("heads")
    runs = dict(plots.some(shapes, common.NO_RUN).iter_rows())
    labels = {f"[{heads}]": i + 1 for i, heads in enumerate(dict.fromkeys(runs.values()))}
    names = {run: f"[{heads}]" for run, heads in runs.items()}
    data = common.medians(curves, names)
    rows = summary.filter(pl.col("run").is_in(list(runs)))
    ends = common.ends(data, labels)
    return plots.figure(
        common.pair(curves, names, labels, common.chances(rows)),
        data,
        f"{common.TASKS[task].capitalize()} with {depth}, by heads of each layer, ends at {ends} ({published})",
        *common.BANDS,
        *common.sizes(summary, list(runs)),
        told="Accuracy and loss against steps of training.",
    )
