"""Figure ``tsne``: the states of mistakes and of right strings (Li 2025, Figure 3.1)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import NEAREST

LABELS = {"error": "ends with a mistake", "correct": "right"}
LOOKS = {"right": Look(charts.GREY), "ends with a mistake": Look(charts.VERMILLION, shape="triangle-up")}
EMPTY = {"labels": False, "ticks": False, "grid": False}


@plots.drawn("States of mistakes and of right strings")
def tsne(context: Results) -> Figure:
    """t-SNE of the last states of the first model, from two random states; axes have no unit."""
    data = plots.some(context.table("tsne")).with_columns(
        pl.col("label").replace(LABELS), panel=pl.format("random state {}", "random_state")
    )
    x, y = (Axis(name, f"t-SNE {n}", more=EMPTY) for n, name in enumerate("xy", 1))
    found = comparisons.read(context, [NEAREST]).row(0, named=True)
    share = found["value"] * 100 if found["value"] is not None else None
    counted = data.filter(panel=data["panel"][0]).group_by("label", maintain_order=True).len()
    return plots.figure(
        plots.grid(
            [
                plots.panel(plots.points(rows, x, y, Kinds("label", LOOKS), size=22, opacity=0.6), name, 270, 250)
                for name, rows in plots.split(data, "panel")
            ]
        ),
        data,
        f"The nearest state has the same label, mistake or right, in {number(share, 1)} % of cases",
        "Last states of the first model; nearest neighbours over "
        f"{plots.count([found['n']], 'model')}, in all channels",
        told=f"Strings drawn: {plots.tell(counted, '{len} {label}', ', ')}.",
    )
