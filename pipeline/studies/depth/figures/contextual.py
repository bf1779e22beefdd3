"""EXP-3: heads, layers and examples in contextual generalization (Chen and Zou 2024, Figure 7)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.depth.figures import common
from pipeline.studies.depth.names import CONTEXTUAL


def fig7(context: Results) -> Figure:
    """Figure 7: heads, layers and examples on contextual generalization."""
    name = "Heads, layers and examples on contextual generalization (Figure 7)"
    curves, summary = context.table("curves"), context.table("summary")
    mask = (pl.col("experiment") == "exp-3") | pl.col("run").is_in([CONTEXTUAL[3], CONTEXTUAL[4]])
    shapes = curves.filter(mask).select("run", "k", "heads", "layers").unique().sort("k", "layers", "heads")
    if not shapes.height:
        return charts.empty(name, "no run of this figure was trained")
    kinds = shapes.select("layers", "heads").unique().sort("layers", "heads")["heads"].to_list()
    labels = {f"[{heads}]": i + 1 for i, heads in enumerate(kinds)}
    parts, panels, words = [], [], []
    for (k,), part in shapes.group_by("k", maintain_order=True):
        names = {run: f"[{heads}]" for run, heads in part.select("run", "heads").iter_rows()}
        frame = common.medians(curves, names)
        parts.append(frame.with_columns(pl.lit(k).alias("k")))
        rows = summary.filter(pl.col("run").is_in(part["run"].to_list()))
        title = alt.TitleParams(
            f"{k} examples in the context", subtitle=common.sizes(summary, part["run"].to_list()), fontSize=14, offset=6
        )
        panels.append(common.pair(curves, names, labels, common.chances(rows)).properties(title=title))
        words.append(f"k = {k}: {common.ends(parts[-1], labels)}")
    description = f"Accuracy and loss on contextual generalization by heads of each layer. {'. '.join(words)}."
    title = alt.TitleParams(name, subtitle=[*common.BANDS, "[1, 1, 2]: heads of the first, second and third layer"])
    return common.shared(alt.vconcat(*panels, spacing=24), title, description), pl.concat(parts)
