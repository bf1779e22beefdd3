"""Figures 2.3 and 2.9, and Table 2.3 drawn, of stand-ins for natural language."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import cosines, means, rounded
from pipeline.studies.topic.names import ENCODER, LAYERS, LAYERS_FAST, OVERLAPPING, READER_EMBEDDED

MODELS = {
    "NLM-0": "NLM-0: encoder,|untrained",
    "NLM-1": "NLM-1: one layer,|one-hot",
    "NLM-2": "NLM-2: one layer,|embedded",
    "NLM-3": "NLM-3: encoder,|trained",
}
MEASURES = {
    "cosine, layer output": "cosine, layer output",
    "cosine, word table": "cosine, word table",
    "attention, debiased": "attention, debiased",
}
EVERY = 4  # steps between two points of a line
CONTROLS = {LAYERS: "small rate", LAYERS_FAST: "ten times the rate: negative control"}
WEIGHTS = {"norm_v": "values", "norm_k": "keys", "norm_q": "queries"}


def kinships(context: Results) -> Figure:
    """Table 2.3 of stand-ins: means over same-topic and different-topic pairs of words, by ambiguity threshold; topics
    are the true ones, each word belongs to one. Medians over seeds; rules from the least to the most. Claim 29 judges
    embeddings, and claim 30 attention, that of small encoders (NLM-3) among it."""
    table = context.table("kinship").filter(corpus=OVERLAPPING, phi="true", assign="one")
    title = "Words of a topic and of different topics: stand-ins"
    note = "Points: medians over seeds; vertical lines: from the least to the most"
    return means(table, MODELS, MEASURES, title, "no model was trained at this scale", note)


def nine_words(context: Results) -> Figure:
    """Figure 2.3 of stand-ins: cosines between embeddings of three words of each of three topics, first seed, and their
    means within topics and between them."""
    panels = [
        ("NLM-0: encoder, untrained", ENCODER, "NLM-0", "layer output"),
        ("NLM-2: one layer", READER_EMBEDDED, "NLM-2", "word table"),
        ("NLM-3: small encoder", ENCODER, "NLM-3", "layer output"),
    ]
    title = "Cosines of embeddings: three words of each of three topics, stand-ins"
    table = context.table("word_map").filter(corpus=OVERLAPPING)
    return cosines(table, panels, title, "no model was trained at this scale")


def layers(context: Results) -> Figure:
    """Figure 2.9 of a stand-in: norms of queries, keys and values of each of four layers, and how far values turn in
    ten steps; below, the norms of the negative control. Medians over seeds, with bands from the least to the most."""
    title = "Two stages in four layers: stand-in"
    rows = [_layers(context, run, head) for run, head in CONTROLS.items()]
    drawn = [row for row in rows if row is not None]
    if not drawn:
        return charts.empty(title, "no model was trained at this scale")
    note = [
        "Medians over seeds; bands (norm) and vertical lines (turn) from the least to the most,",
        "of all models, whether or not they learned.",
    ]
    chart: Any = alt.vconcat(*(row for row, _ in drawn))
    data = pl.concat([own for _, own in drawn], how="diagonal")
    return chart.properties(title=alt.Title(title, subtitle=note)), data


def _layers(context: Results, run: str, title: str) -> tuple[Any, pl.DataFrame] | None:
    """Return the panels of the layers of a run; turns only where they are judged."""
    norms, turns = (context.table(name).filter(run=run) for name in ("layer_norms", "turns"))
    if not norms.height:
        return None
    if run == LAYERS_FAST:
        turns = turns.clear()
    long = rounded(norms.filter(pl.col("step") % EVERY == 0), 4).unpivot(
        list(WEIGHTS), index=["replica", "layer", "step"], variable_name="weights", value_name="norm"
    )
    long = long.with_columns(pl.col("weights").replace_strict(WEIGHTS, return_dtype=pl.String))
    above = _course(long, "norm", ["layer", "step", "weights"])
    below = _course(rounded(turns, 4), "distance", ["layer", "step"])
    scale = alt.Scale(domain=list(WEIGHTS.values()), range=[charts.BLUE, charts.VERMILLION, charts.GREEN])
    legend = alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=2, symbolOpacity=1)
    colour = alt.Color("weights:N", title=None, scale=scale, legend=legend)
    x = alt.X("step:Q", title="step", axis=alt.Axis(tickCount=4))
    drawn: list[Any] = []
    for (layer,), rows in above.group_by("layer", maintain_order=True):
        base = alt.Chart(rows.drop("layer")).encode(x=x, color=colour)
        y = alt.Y(
            "median:Q",
            title="norm" if layer == 1 else None,
            scale=alt.Scale(domain=[0, above.select(pl.col("most").max()).item()]),
        )
        lines = base.mark_line(strokeWidth=2).encode(y=y)
        bands = base.mark_area(opacity=0.2).encode(y=alt.Y("least:Q"), y2="most:Q")
        head = alt.Title(f"layer {layer}", fontSize=charts.SIZE)
        upper = alt.layer(bands, lines).properties(width=110, height=150, title=head)
        if not below.height:  # too few steps for a turn
            drawn.append(upper)
            continue
        turned = alt.Chart(below.filter(layer=layer).drop("layer"))
        y = alt.Y(
            "median:Q",
            title="turn (log)" if layer == 1 else None,
            axis=alt.Axis(format="~e", tickCount=4),
            scale=alt.Scale(type="log", domain=[1e-5, 1], clamp=True),
        )
        shown = turned.mark_line(point=alt.OverlayMarkDef(color=charts.BLACK, size=25), color=charts.BLACK).encode(
            x=x, y=y
        )
        bars = turned.mark_rule(color=charts.BLACK).encode(x=x, y="least:Q", y2="most:Q")
        drawn.append(alt.vconcat(upper, alt.layer(bars, shown).properties(width=110, height=90)))
    chart: Any = alt.hconcat(*drawn, spacing=12)
    data = pl.concat([above, below.with_columns(weights=pl.lit("turn"))], how="diagonal")
    return chart.properties(title=alt.Title(title, fontSize=charts.SIZE)), data.with_columns(run=pl.lit(run))


def _course(frame: pl.DataFrame, value: str, keys: list[str]) -> pl.DataFrame:
    column = pl.col(value)
    return frame.group_by(keys, maintain_order=True).agg(
        column.median().alias("median"), column.min().alias("least"), column.max().alias("most")
    )
