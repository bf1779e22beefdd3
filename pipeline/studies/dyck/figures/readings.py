"""What the length of training does, which the text leaves open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number

if TYPE_CHECKING:
    from pipeline.kit.results import Results

TRAINING_LENGTH = "length of training, M1"
VARIATION = "variation on D4, start token omitted"
TRAINED = {VARIATION: "attention variation on D4", "acc_close in distribution": "share of closers predicted"}


def training_length(context: Results) -> Figure:
    """Variation and accuracy of M1 after trainings of different length (ours: the text gives no number
    of steps)."""
    table = context.table("readings").filter(pl.col("quantity").is_in(list(TRAINED)), choice=TRAINING_LENGTH)
    data = table.select("steps", "reading", "quantity", "value", "lo", "hi", "n", "published").sort(
        "quantity", "steps"
    )
    # Two models have one distance, whose resampling says nothing.
    data = data.with_columns(pl.when(pl.col("n") > 2).then(pl.col("lo", "hi")))
    panels = [_against_steps(data.filter(quantity=name), title) for name, title in TRAINED.items()]
    models = ", ".join(map(str, data.filter(quantity=VARIATION)["n"]))
    confidence = (
        f"; bars: {table['confidence'][0]:.0%} bootstrap interval over models" if table.height else ""
    )
    title = alt.TitleParams(
        "Variation and accuracy against the length of training",
        subtitle=[
            f"M1, one training for each length, its learning rate falling to 0 at the end{confidence}",
            f"Models behind the points of variation: {models or 'none'}",
            "Dashed: published variation; the paper does not say how long its models were trained",
        ],
    )
    told = "; ".join(
        f"{row['steps']} steps: variation {number(row['value'])}"
        for row in data.filter(quantity=VARIATION).iter_rows(named=True)
    )
    words = f"Variation of attention of M1 on D4, and its accuracy, against the length of training. {told}."
    return alt.hconcat(*panels, spacing=40).properties(title=title, description=words), data


def _against_steps(data: pl.DataFrame, title: str) -> Any:
    x = alt.X(
        "steps:Q",
        title="steps of training (log scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(values=data["steps"].to_list(), grid=False),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data)
    layers = [
        base.mark_line(color=charts.BLUE).encode(x=x, y=y),
        base.mark_point(filled=True, opacity=1, size=60, color=charts.BLUE).encode(x=x, y=y),
    ]
    if (known := data.filter(pl.col("lo").is_not_null())).height:  # a layer without data has no extent
        bars = alt.Chart(known).mark_rule(color=charts.BLUE, strokeWidth=1.5)
        layers.append(bars.encode(x=x, y=alt.Y("lo:Q", title=title), y2="hi:Q"))
    if data["published"].drop_nulls().len():
        published = alt.Chart(data.filter(pl.col("published").is_not_null()).head(1))
        layers.append(
            published.mark_rule(color=charts.VERMILLION, strokeDash=[5, 3], strokeWidth=1.5).encode(
                y="published:Q"
            )
        )
    return alt.layer(*layers).properties(width=230, height=220)
