"""Tables 2.1 and 2.2 as figures: average attention by the kind of pair, ours and what is printed."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.topic.names import (
    ATTENTION,
    ATTENTION_RELEASED,
    ATTENTION_SGD,
    ATTENTION_SGD_SHORT,
    BLOCK_SQ,
    DIAGONAL_5,
    DIAGONAL_10,
    DIAGONAL_10_RELEASED,
    DIAGONAL_SQ,
    JOINT_LONG,
    RELEASED_ADAM,
    RELEASED_SGD,
)

KINDS = {"same_word": "same word", "same_topic": "same topic, other word", "diff_topic": "other topic"}
COLOURS = [charts.BLACK, charts.VERMILLION, charts.SKY]
SHAPES = ["circle", "square", "triangle-up"]
TRAINED = {
    RELEASED_ADAM: "released model, Adam",
    RELEASED_SGD: "released model, SGD",
    ATTENTION_RELEASED: "one-hot, Adam",
    ATTENTION: "one-hot, Adam, masks are keys",
    ATTENTION_SGD: "one-hot, SGD",
    ATTENTION_SGD_SHORT: "one-hot, SGD, 1500 steps",
    "Table 2.1, adam": "Table 2.1, Adam",
    "Table 2.1, sgd": "Table 2.1, SGD",
}
FROZEN = {
    DIAGONAL_5: "5 times identity, cross-entropy",
    DIAGONAL_10: "10 times identity, cross-entropy",
    DIAGONAL_10_RELEASED: "10 times identity, masks no keys",
    DIAGONAL_SQ: "diagonal of the theorem, squared",
    BLOCK_SQ: "blocks of the theorem, squared",
    JOINT_LONG: "trained values, squared",
    "Table 2.2, adam": "Table 2.2, Adam",
}


def _dots(table: pl.DataFrame, labels: dict[str, str], title: str, subtitle: list[str], ticks: list[float]) -> Figure:
    rows = table.filter(pl.col("run").is_in(list(labels)))
    if not rows.height:
        return charts.empty(title, "no model was trained at this scale")
    name = pl.col("run").replace_strict(labels, return_dtype=pl.String) + pl.format(
        ", rate {}", pl.col("lr").map_elements(lambda lr: f"{lr:g}", return_dtype=pl.String)
    )
    keys = ["model", "source", "n", "learned"]
    made = rows.with_columns(model=name, learned=pl.col("n_learned").is_null() | (pl.col("n_learned") > 0))
    spread = made.unpivot([f"{kind}_sd" for kind in KINDS], index=keys, variable_name="kind", value_name="sd")
    data = (
        made.unpivot(list(KINDS), index=keys, variable_name="kind", value_name="weight")
        .with_columns(sd=spread["sd"], kind=pl.col("kind").replace_strict(KINDS, return_dtype=pl.String))
        .with_columns(low=pl.col("weight") - pl.col("sd"), high=pl.col("weight") + pl.col("sd"))
        .drop_nulls("weight")
    )
    order = data["model"].unique(maintain_order=True).to_list()
    kinds = list(KINDS.values())
    lowest = float(data.select(pl.min_horizontal("weight", "low").min()).item())
    highest = float(data.select(pl.max_horizontal("weight", "high").max()).item())
    domain = [max(0.9 * min(lowest, ticks[0]), ticks[0] / 4), 1.1 * max(highest, ticks[-1])]
    base = alt.Chart(data).encode(
        x=alt.X(
            "weight:Q",
            title="mean attention weight (log)",
            scale=alt.Scale(type="log", domain=domain, nice=False, clamp=True),
            axis=alt.Axis(values=ticks, format="~g"),
        ),
        y=alt.Y("model:N", title=None, sort=order, axis=alt.Axis(labelLimit=300, grid=True)),
    )
    colour = alt.Color("kind:N", title="pair", sort=kinds, scale=alt.Scale(domain=kinds, range=COLOURS))
    shape = alt.Shape("kind:N", title="pair", sort=kinds, scale=alt.Scale(domain=kinds, range=SHAPES))
    tips = [alt.Tooltip("weight:Q", format=".5f"), alt.Tooltip("sd:Q", format=".2g")]
    layers: list[Any] = [
        base.transform_filter("isValid(datum.sd)").mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=colour)
    ]
    for learned, look in ((True, {"filled": True}), (False, {"filled": False, "fill": "white"})):
        points = base.transform_filter(alt.datum.learned == learned).mark_point(size=70, opacity=0.85, **look)
        tooltip = ["model", "source", "kind", *tips, "n"]
        layers.append(points.encode(color=colour, shape=shape, tooltip=tooltip))
    chart: Any = alt.layer(*layers)
    return chart.properties(width=300, title=alt.Title(title, subtitle=subtitle)), data


SPREAD = "Means over models, with standard deviations; hollow: no model learned."


def _ours(context: Results, offset: int) -> pl.DataFrame:
    return context.table("averages").filter(
        (pl.col("source") != "here") | ((pl.col("label_offset") == offset) & (pl.col("norm") == "raw"))
    )


def blocks(context: Results) -> Figure:
    """Table 2.1: everything is trained on cross-entropy; labels are those that the released code looks up. Claim 21
    says which of the printed averages come out."""
    subtitle = ["Labels four ids too far, as the counts of the released code have them.", SPREAD]
    return _dots(_ours(context, 4), TRAINED, "Average attention, trained values", subtitle, [0.005, 0.01, 0.015])


def diagonals(context: Results) -> Figure:
    """Table 2.2: values are frozen and diagonal, attention is trained."""
    subtitle = ["Right labels.", SPREAD]
    return _dots(_ours(context, 0), FROZEN, "Average attention, frozen values", subtitle, [0.001, 0.01, 0.1])
