"""EXP-6: chains of lookups (DEP-D5; ours, from the paper's discussion)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty, number
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import JUDGED_SPLIT


def nested(context: Results) -> Figure:
    """Accuracy on chains of lookups by layers and hops (ours)."""
    name = "Nested lookups: accuracy by layers and hops"
    table = context.table("accuracy").filter(JUDGED_SPLIT, experiment="exp-6", among="outputs")
    data = table.select("layers", "hops", "value", "least", "most", "n", "chance").sort("layers", "hops")
    if not data.height:
        return empty(name, "no run of this experiment was trained")
    base = alt.Chart(data).encode(
        x=alt.X("hops:O", title="hops", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layers:O", title="layers", sort="descending"),
    )
    scale = alt.Scale(domain=[0, 1], range=["#EEF4FA", "#2B74B3"])
    legend = alt.Legend(orient="right", values=[0, 0.5, 1])
    cells = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("value:Q", title="accuracy", scale=scale, legend=legend),
        tooltip=["layers:O", "hops:O", "value:Q", "least:Q", "most:Q", "n:Q"],
    )
    texts = base.mark_text(fontSize=14).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition(alt.datum.value > 0.6, alt.value("white"), alt.value(charts.INK)),
    )
    fewest, most = data.select(pl.col("n").min().alias("fewest"), pl.col("n").max().alias("most")).row(0)
    models = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    title = alt.TitleParams(
        name,
        subtitle=[
            f"Medians on fresh chains, {models} model{'' if most == 1 else 's'} each; chance {data['chance'][0]:.2f}",
            "The construction takes two layers per hop (section 7), or one more than hops (ours)",
        ],
    )
    summary = "; ".join(
        f"{row['layers']} layers, {row['hops']} hop{'' if row['hops'] == 1 else 's'}: {number(row['value'])}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.layer(cells, texts).properties(width=90 * data["hops"].n_unique(), height=alt.Step(40))
    return chart.properties(title=title, description=f"{name}. {summary}."), data
