"""Figure 2.4: norms of keys, queries and values from weights near zero."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import BLACK, SKY, VERMILLION, Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import rounded
from pipeline.studies.topic.names import STAGES_A, STAGES_B, STAGES_C, STAGES_N

PANELS = {
    (STAGES_A, 0.003): "A: squared, Adam 0.003, start 1e-8",
    (STAGES_B, 0.001): "B: squared, Adam 0.001, start 1e-7",
    (STAGES_C, 5.0): "C: cross-entropy, SGD 5, start 0.001",
    (STAGES_C, 3.0): "D: cross-entropy, SGD 3, start 0.001",
    (STAGES_N, 0.01): "N: cross-entropy, Adam 0.01, start 0.001",
}
MATRICES = {"norm_v": "values", "norm_k": "keys", "norm_q": "queries"}
EVERY = 25  # steps between two points of a line


@plots.drawn("Norms from weights near zero")
def norms(context: Results) -> Figure:
    """Norms of keys, queries and values by step, a panel for each setting and a line for each seed, whether or not it
    learned; of queries the lines are dashed. Claim 26 says where values stop growing."""
    table = context.table("norms").filter(pl.col("step") % EVERY == 0)
    data = (
        rounded(plots.some(table), 4)
        .unpivot(list(MATRICES), index=["run", "lr", "replica", "step"], variable_name="matrix", value_name="norm")
        .with_columns(pl.col("matrix").replace_strict(MATRICES, return_dtype=pl.String))
    )
    by = Kinds("matrix", {"values": Look(BLACK), "keys": Look(VERMILLION), "queries": Look(SKY, plots.DASHED)})
    told: list[dict[str, object]] = []
    panels: list[plots.Panel] = []
    for (run, lr), title in PANELS.items():
        rows = data.filter(run=run, lr=lr)
        if not rows.height:
            continue
        y = Axis("norm", "Frobenius norm" if not len(panels) % 3 else None, zero=True)
        lines = plots.lines(rows, plots.steps(), y, by, each="replica", strokeWidth=1.2, opacity=0.7)
        name, _, setting = title.partition(": ")
        panels.append(plots.panel(lines, name, 150, 140, setting))
        grown = context.table("stage_metrics").filter(run=run, lr=lr)["fv_at_sk10"]
        told.append({"name": name, "share": grown.median(), "n": rows["replica"].n_unique()})
    found = pl.DataFrame(told, schema={"name": pl.String, "share": pl.Float64, "n": pl.Int64})
    return plots.figure(
        plots.grid(panels, 3, spacing=16),
        data,
        "Share of their growth that values have made when keys have made a tenth: "
        + plots.tell(found, "{name} {share:.0%}", ", ").replace("%", " %"),
        f"A line is one of {plots.count(found['n'], 'model')} a panel, dashed those of queries; shares are medians. "
        "A to D: settings of ours, as the source states none; N: the negative control",
        told="Norms of values, keys and queries by steps of training.",
    )
