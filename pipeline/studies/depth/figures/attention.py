"""EXP-4: attention maps, trained beside constructed (Chen and Zou 2024, Figure 3 and section 6.2; DEP-A1)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.attention_maps import QUERY, attention_map
from pipeline.kit.charts import Figure, empty, number
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import shape_name
from pipeline.studies.depth.names import CONSTRUCTED, GENERALIZATION, PROBES, TRAINED, TWO_PAIRS

CELL = 24  # pixels of one weight
SCALED = "Weights relative to the largest of each map: ReLU attention has no scale of its own"


def fig3(context: Results) -> Figure:
    """Figure 3: a two-layer model on reasoning probes."""
    probes = [probe for probe, run in PROBES.items() if run == TWO_PAIRS]
    return _maps(context, probes, "Attention on reasoning probes (Figure 3)")


def fig3b(context: Results) -> Figure:
    """A two-layer model on template probes (section 6.2)."""
    probes = [probe for probe, run in PROBES.items() if run == GENERALIZATION[2]]
    return _maps(context, probes, "Attention on template probes (section 6.2)")


def _maps(context: Results, probes: list[str], name: str) -> Figure:
    """Draw a row per probe: maps of both layers, of one trained model and of the construction."""
    table = context.table("attention").filter(pl.col("probe").is_in(probes), head=0)
    if not table.height:
        return empty(name, "the runs of this figure train nothing at this scale")
    first = (pl.col("replica") == pl.col("replica").first().over("probe", "source")) | pl.col("replica").is_null()
    largest = pl.col("weight").max().over("probe", "source", "layer")
    data = (
        table.filter(first)
        .with_columns(pl.when(largest > 0).then(pl.col("weight") / largest).otherwise(0.0).alias("share"))
        .select(
            "probe",
            "run",
            "source",
            "replica",
            "learned",
            "layer",
            "query",
            "key",
            "query_token",
            "key_token",
            "weight",
            "share",
        )
        .sort("probe", "layer", "source", "query", "key")
    )
    rows, words = [], []
    for probe in probes:
        part = data.filter(probe=probe)
        drawn = [
            _map(part.filter(layer=layer, source=source), probe, layer, source)
            for layer in part["layer"].unique().sort().to_list()
            for source in (TRAINED, CONSTRUCTED)
            if part.filter(layer=layer, source=source).height
        ]
        if drawn:
            title = alt.TitleParams(probe, fontSize=14, offset=4)
            rows.append(alt.hconcat(*drawn, spacing=22, title=title))
            words += _sentences(part, probe)
    title = alt.TitleParams(name, subtitle=[SCALED, "Last layer: its last query alone, which is all that is read"])
    description = f"{name}: share of the map's largest weight that each query puts on each key. {'. '.join(words)}."
    figure = alt.vconcat(*rows, spacing=20).resolve_scale(color="shared")
    return figure.properties(title=title, description=description), data


def _map(frame: pl.DataFrame, probe: str, layer: int, source: str) -> Any:
    """Draw a map, keys below each other, queries beside each other, as in the columns of the paper."""
    failed = source == TRAINED and not frame["learned"].all()
    drawn_of = f"{source}, unsolved" if failed else source
    title = alt.TitleParams([f"layer {layer},", drawn_of], fontSize=charts.SIZE, fontWeight="normal", offset=4)
    drawn = attention_map(
        frame,
        probe,
        CELL,
        columns=QUERY,
        queries=frame["query"].unique().sort().to_list(),
        shade="share",
        title="weight",
    )
    return drawn.properties(title=title)


def _sentences(part: pl.DataFrame, probe: str) -> list[str]:
    """Return, in words, which key the last query reads most in the last layer."""
    last = part.filter(pl.col("layer") == pl.col("layer").max(), pl.col("query") == pl.col("query").max())
    sentences = []
    for source in (TRAINED, CONSTRUCTED):
        best = last.filter(source=source).sort("share", descending=True).head(1)
        sentences += [
            f"{probe}, {source}: the last query reads {row['key_token']} at position {row['key']} most"
            for row in best.iter_rows(named=True)
        ]
    return sentences


def agreement(context: Results) -> Figure:
    """Cosine of trained and constructed attention, layer by layer, before and after training."""
    name = "Agreement of trained with constructed attention"
    shown = pl.col("experiment").is_in(["exp-1", "exp-5", "ablation"])
    table = context.table("agreement").filter(shown & pl.col("cosine").is_not_null())
    if not table.height:
        return empty(name, "nothing that has a construction was trained")
    known = context.table("runs").select("run", "init", "optimizer", "readout").unique()
    ended = context.table("summary").select("run", "lr", "replica", "learned")
    table = table.join(known, on="run", how="left", maintain_order="left")
    table = table.join(ended, on=("run", "lr", "replica"), how="left", maintain_order="left")
    named = pl.struct("task", "heads", "init", "optimizer").map_elements(shape_name, return_dtype=pl.String)
    table = table.with_columns(named.alias("name"))
    more = [  # where runs of one name differ in it
        pl.when(pl.col(column).n_unique().over("name") > 1).then(pl.format(words, column)).otherwise(pl.lit(""))
        for column, words in (("k", ", k={}"), ("readout", ", classifier {}"))
    ]
    where = pl.format("{}{}{}: layer {}", "name", *more, "layer")
    long = table.select(
        where.alias("where"),
        "run",
        "task",
        "layers",
        "layer",
        "head",
        "replica",
        "learned",
        pl.col("cosine_start").alias("at the start"),
        pl.col("cosine").alias("trained"),
    ).unpivot(
        ["at the start", "trained"],
        index=["where", "run", "task", "layers", "layer", "head", "replica", "learned"],
        variable_name="when",
        value_name="cosine",
    )
    data = long.sort("task", "layers", "run", "layer", "head", "replica", "when")
    order = list(dict.fromkeys(data["where"].to_list()))
    colours = alt.Scale(domain=["at the start", "trained"], range=[charts.GREY, charts.BLUE])
    shapes = alt.Scale(domain=["at the start", "trained"], range=["diamond", "circle"])
    base = alt.Chart(data).encode(
        x=alt.X("cosine:Q", title="cosine (one mark per head and model)", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("where:N", title=None, sort=order, axis=alt.Axis(labelLimit=360, grid=True, ticks=False)),
        color=alt.Color("when:N", title=None, scale=colours, legend=alt.Legend(orient="top")),
        shape=alt.Shape("when:N", title=None, scale=shapes),
        tooltip=["where:N", "when:N", "replica:O", "head:O", "learned:N", alt.Tooltip("cosine:Q", format=".3f")],
    )
    points = alt.layer(
        base.transform_filter("datum.learned").mark_point(filled=True, size=55, opacity=0.8),
        base.transform_filter("!datum.learned").mark_point(filled=False, size=55, opacity=0.8),
    )
    learned = data.filter("learned")
    medians = learned.group_by("where", "when", maintain_order=True).agg(pl.col("cosine").median())
    summary = "; ".join(f"{where}, {when}: {number(value)}" for where, when, value in medians.iter_rows())
    words = f"Medians of models that learned: {summary or 'there are none'}"
    title = alt.TitleParams(
        name,
        subtitle=[
            "Mean cosine of attention matrices over test sequences; of the last layer, of its last query",
            "First layers start from their construction (R1), unless the run is one of random starts",
            "Hollow: models that did not learn their task",
        ],
    )
    chart = points.properties(width=290, height=alt.Step(22), title=title, description=f"{name}. {words}.")
    return chart, data
