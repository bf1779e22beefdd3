"""EXP-3: heads, layers and examples in contextual generalization (Chen and Zou 2024, Figure 7)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.depth.figures import common
from pipeline.studies.depth.names import CONTEXTUAL


@plots.drawn("Heads, layers and examples on contextual generalization (Figure 7)")
def fig7(context: Results) -> Figure:
    """Figure 7: heads, layers and examples on contextual generalization."""
    curves, summary = context.table("curves"), context.table("summary")
    mask = (pl.col("experiment") == "exp-3") | pl.col("run").is_in([CONTEXTUAL[3], CONTEXTUAL[4]])
    shapes = curves.filter(mask).select("run", "k", "heads", "layers").unique().sort("k", "layers", "heads")
    kinds = (
        plots.some(shapes, common.NO_RUN).select("layers", "heads").unique().sort("layers", "heads")["heads"].to_list()
    )
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
    last = pl.concat(parts).filter(pl.col("step") == pl.col("step").max().over("run"))
    best = last.sort(common.ACCURACY, descending=True).unique("k", keep="first", maintain_order=True).sort("k")
    return plots.figure(
        plots.grid(panels, 1),
        pl.concat(parts),
        "Contextual generalization ends, at best, at "
        + plots.tell(best, "{accuracy:.2f} with heads {label} and {k} examples", ", at ")
        + " (Figure 7)",
        *common.BANDS,
        "[1, 1, 2]: heads of the first, second and third layer",
        told=f"Accuracy and loss by heads of each layer. {'. '.join(words)}.",
    )
