"""Figure ``tsne``: the states of mistakes and of right strings (Li 2025, Figure 3.1)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import NEAREST

LABELS = {"error": "ends with a mistake", "correct": "right"}


def tsne(context: Results) -> Figure:
    """t-SNE of the last states of the first model, from two random states; axes have no unit."""
    data = context.table("tsne").with_columns(
        pl.col("label").replace(LABELS), panel=pl.format("random state {}", "random_state")
    )
    found = comparisons.read(context, [NEAREST]).row(0, named=True)
    colour = alt.Color(
        "label:N", title="string", scale=alt.Scale(domain=list(LABELS.values()), range=[charts.VERMILLION, charts.GREY])
    )
    shape = alt.Shape("label:N", title="string", scale=alt.Scale(domain=list(LABELS.values())))
    empty = alt.Axis(labels=False, ticks=False, grid=False)
    chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=22, opacity=0.6)
        .encode(
            x=alt.X("x:Q", title="t-SNE 1", axis=empty),
            y=alt.Y("y:Q", title="t-SNE 2", axis=empty),
            color=colour,
            shape=shape,
        )
        .properties(width=270, height=250)
        .facet(facet=alt.Facet("panel:N", title=None), columns=2)
    )
    share = found["value"] * 100 if found["value"] is not None else None
    title = alt.TitleParams(
        f"Mistakes lie together: the nearest state has the same label in {number(share, 1)} % of cases",
        subtitle=f"Last states of the first model; nearest neighbours over {found['n']} models, in all channels",
    )
    return chart.properties(title=title), data
