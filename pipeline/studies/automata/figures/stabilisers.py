"""Dropout against none, and averages of weights against the weights."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, accuracy, points
from pipeline.studies.automata.names import shown


def stabilisers(context: Results) -> Figure:
    """Left, accuracy of models that train with dropout and without; right, what moving averages of the weights gain
    over the weights at the end of training, by decay. A point for each model, a line through the means."""
    table = context.table("stabilisers")
    if not table.height:
        return empty("Stabilisers", "nothing was trained")
    data = table.with_columns(pl.col("task").map_elements(shown, return_dtype=pl.String).alias("name"))
    of = ["task", "depth", "dropout", "replica"]
    plain = data.filter(average=0.0).select(*of, pl.col("accuracy").alias("plain"))
    data = data.join(plain, on=of).with_columns(gain=100 * (pl.col("accuracy") - pl.col("plain")))
    dropped = data.filter(
        pl.col("average") == 0, pl.col("task").is_in(data.filter(pl.col("dropout") > 0)["task"].unique().to_list())
    )
    averaged = data.filter(pl.col("average") > 0, pl.col("dropout") == 0)
    rates = alt.X(
        "dropout:Q",
        title="dropout (share of activations)",
        # Said, since a layer without models, of those that learned for instance, has none.
        scale=alt.Scale(nice=False, padding=20, domain=_ends(dropped["dropout"])),
        axis=alt.Axis(values=sorted(set(dropped["dropout"].to_list())), format="~g"),
    )
    decays = alt.X("average:O", title="decay of the average", axis=alt.Axis(labelAngle=0))
    gained = "gain in accuracy (percentage points)"
    panels = []
    if dropped.height:
        panels.append(_panel(dropped, "Dropout", rates, "accuracy", ACCURACY, accuracy(dropped)))
    if averaged.height:
        scale = alt.Scale(domain=_ends(averaged["gain"]), nice=True)
        panels.append(_panel(averaged, "Averages of weights", decays, "gain", gained, scale))
    if not panels:
        return empty("Stabilisers", "neither dropout nor averages were tried")
    of_dropout, of_averages = _words(dropped, "dropout", "accuracy"), _words(averaged, "average", "gain")
    words = f"Mean accuracy by dropout. {of_dropout}. Mean gain by decay of the average, in points. {of_averages}."
    return alt.hconcat(*panels).properties(title="Stabilisers", description=words), data


def _ends(values: pl.Series) -> list[float]:
    return [float(values.min()), float(values.max())] if len(values) else []  # type: ignore[arg-type]


def _panel(data: pl.DataFrame, title: str, x: alt.X, column: str, label: str, scale: alt.Scale) -> Any:
    colour = alt.Color("name:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top"))
    base = alt.Chart(data).encode(x=x, color=colour)
    tooltip = ["name:N", x["shorthand"], f"{column}:Q"]
    each = points(base, y=alt.Y(f"{column}:Q", title=label, scale=scale), tooltip=tooltip)
    means = base.mark_line().encode(y=alt.Y(f"mean({column}):Q", title=label, scale=scale))
    return alt.layer(means, *each, width=270, height=200, title=title)


def _words(data: pl.DataFrame, by: str, column: str) -> str:
    means = data.group_by("name", by).agg(pl.mean(column)).sort("name", by)
    return "; ".join(f"{row['name']}, {row[by]:g}: {row[column]:.2f}" for row in means.iter_rows(named=True))
