"""What the texts leave open, and what it does: training length, and the probe of the prefix results."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.dyck.figures.common import Figure, log_domain, number
from pipeline.studies.dyck.figures.variation import LOG_TITLE
from schemas.dyck.tables import (
    LONG_PROBE,
    PREFIX_LINEAR,
    PREFIX_LINEAR_ALL,
    PREFIX_MINIMAL,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PROBE,
    PUBLISHED_PREFIX_VARIATION,
    TABLE_1_PROBE,
)

TRAINING_LENGTH = "length of training, M1"
VARIATION = "variation on D4, start token omitted"
TRAINED = {VARIATION: "attention variation on D4", "acc_close in distribution": "share of closers predicted"}

CLOSING, ALL = "closing brackets", "all positions"
PREFIX_RUNS = {
    PREFIX_STANDARD: ("M1", CLOSING),
    PREFIX_STANDARD_ALL: ("M1", ALL),
    PREFIX_LINEAR: ("M2", CLOSING),
    PREFIX_LINEAR_ALL: ("M2", ALL),
    PREFIX_MINIMAL: ("M4", CLOSING),
}
PROBES = {PROBE: "D4", TABLE_1_PROBE: "D5", LONG_PROBE: "a prefix of 28"}


def training_length(context: Any) -> Figure:
    """Variation and accuracy of M1 after trainings of different length (ours: the text gives no number of steps)."""
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


def prefix_variation(context: Any) -> Figure:
    """DYCK-E6: variation of models trained on prefixes, for every reading of what the text leaves open."""
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("run").is_in(list(PREFIX_RUNS)), head=0
    )
    rows = [
        {
            "model": PREFIX_RUNS[run][0],
            "loss": PREFIX_RUNS[run][1],
            "where": f"{PROBES[probe]}, start token {'included' if start else 'omitted'}",
            "value": group["variation_mean"].mean(),
            "lo": group["ci_lo"].mean() if group.height == 1 else None,
            "hi": group["ci_hi"].mean() if group.height == 1 else None,
            "random": group["random_baseline"][0],
            "published": PUBLISHED_PREFIX_VARIATION[PREFIX_RUNS[run][0]],
            "n": group["n_models"][0],
        }
        for (run, probe, start), group in table.sort("run", "probe_split", "start_included").group_by(
            "run", "probe_split", "start_included", maintain_order=True
        )
    ]
    numbers = dict.fromkeys(("value", "lo", "hi", "random", "published"), pl.Float64)
    schema = dict.fromkeys(("model", "loss", "where"), pl.String) | numbers | {"n": pl.Int32}
    data = pl.DataFrame(rows, schema=schema)
    order = [f"{name}, start token {word}" for name in PROBES.values() for word in ("omitted", "included")]
    y = alt.Y("where:N", sort=order, title=None, axis=alt.Axis(labelLimit=240, ticks=False, domain=False))
    x = alt.X(
        "value:Q",
        title=LOG_TITLE,
        scale=alt.Scale(type="log", domain=log_domain(data, "lo", ["hi"], (0.03, 50)), nice=False),
        axis=alt.Axis(values=[0.01, 0.1, 1, 10], format="~g"),
    )
    colour = alt.Color(
        "loss:N",
        title="loss at",
        scale=alt.Scale(domain=[CLOSING, ALL], range=[charts.BLUE, charts.VERMILLION]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape(
        "loss:N", title="loss at", scale=alt.Scale(domain=[CLOSING, ALL], range=["circle", "triangle-up"])
    )
    apart = alt.YOffset("loss:N", sort=[CLOSING, ALL], scale=alt.Scale(padding=0.5))
    base = alt.Chart(data).encode(y=y)
    ours = base.encode(yOffset=apart, color=colour)
    layers = alt.layer(
        base.mark_tick(color=charts.GREY, thickness=2, size=14).encode(x=alt.X("random:Q", title=LOG_TITLE)),
        ours.mark_rule(strokeWidth=1.5, clip=True).encode(x=alt.X("lo:Q", title=LOG_TITLE), x2="hi:Q"),
        ours.mark_point(filled=True, size=55, opacity=1, clip=True).encode(x=x, shape=shape),
        alt.Chart(data)
        .mark_rule(color=charts.INK, strokeDash=[5, 3])
        .encode(x=alt.X("mean(published):Q", title=LOG_TITLE)),
    )
    panels = layers.properties(width=400, height=alt.Step(26, **{"for": "position"})).facet(
        alt.Facet("model:N", title=None, header=alt.Header(labelFontWeight="bold", labelAnchor="start")),
        columns=1,
    )
    counted = (
        data.group_by("model").agg(pl.col("n").unique().sort().cast(pl.String).str.join(" to ")).sort("model")
    )
    title = alt.TitleParams(
        "Variation of models trained on prefixes, reading by reading",
        subtitle=[
            "Dashed: published, on a sentence that is not stated; grey: random causal maps of the same size",
            "Bars: bootstrap interval over models, where the probe is one sentence (D5 is 40)",
            f"Models per point: {', '.join(f'{model} {n}' for model, n in counted.iter_rows())}",
        ],
    )
    told = "; ".join(
        f"{row['model']}, loss at {row['loss']}, {row['where']}: {number(row['value'])}"
        for row in data.iter_rows(named=True)
    )
    return panels.properties(
        title=title, description=f"Attention variation of prefix-trained models. {told}."
    ), data
