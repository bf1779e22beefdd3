"""Tables 2.1 and 2.2 as figures: average attention by the kind of pair, ours and what is printed."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
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
LOOKS = {
    "same word": Look(charts.BLACK),
    "same topic, other word": Look(charts.VERMILLION, shape="square"),
    "other topic": Look(charts.SKY, shape="triangle-up"),
}
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


def _dots(table: pl.DataFrame, labels: dict[str, str], ticks: list[float], note: str) -> Figure:
    rows = plots.some(table.filter(pl.col("run").is_in(list(labels))))
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
    lowest = float(data.select(pl.min_horizontal("weight", "low").min()).item())
    highest = float(data.select(pl.max_horizontal("weight", "high").max()).item())
    domain = [max(0.9 * min(lowest, ticks[0]), ticks[0] / 4), 1.1 * max(highest, ticks[-1])]
    x = Axis("weight", "mean attention weight (log scale)", log=True, domain=domain, values=ticks)
    order = data["model"].unique(maintain_order=True)
    y = Axis("model", None, "N", order=order.to_list(), more={"grid": True, "tickBand": "extent"})
    marks = plots.points(
        data,
        x,
        y,
        Kinds("kind", LOOKS),
        ends=("low", "high"),
        hollow="learned",
        apart="kind",
        tips=["sd", "source"],
        size=45,
    )
    sides = made.with_columns(
        whose=pl.when(source="here").then(pl.lit("here")).otherwise(pl.lit("as printed")),
        topic=pl.col("same_topic") > pl.col("diff_topic"),
        word=pl.col("same_word") > pl.max_horizontal("same_topic", "diff_topic"),
    )
    counted = sides.group_by("whose", maintain_order=True).agg(pl.col("topic", "word").sum(), of=pl.len())
    shown = data.pivot("kind", index="model", values="weight", maintain_order=True)
    words = "; ".join(
        f"{row['model']}: " + ", ".join(f"{kind} {row[kind]:.2g}" for kind in LOOKS if row.get(kind) is not None)
        for row in shown.iter_rows(named=True)
    )
    return plots.figure(
        marks,
        data,
        "Most attention on the same word: "
        + plots.tell(counted, "{word} of {of} {whose}", ", ")
        + "; other words of its topic above other topics: "
        + plots.tell(counted, "{topic} of {of} {whose}", ", "),
        f"{note}Points: means over {plots.count(data['n'], 'model')}; bars: a standard deviation to each side; "
        "hollow: no model learned",
        told=f"{words}.",
        width=330,
        height=34 * len(order),
    )


def _ours(context: Results, offset: int) -> pl.DataFrame:
    return context.table("averages").filter(
        (pl.col("source") != "here") | ((pl.col("label_offset") == offset) & (pl.col("norm") == "raw"))
    )


@plots.drawn("Average attention, trained values")
def blocks(context: Results) -> Figure:
    """Table 2.1: everything is trained on cross-entropy; topics are looked up by a token's id, four above the number
    of its word, as the released code does. Claim 21 says which of the printed averages come out."""
    note = "Topics are looked up by a token’s id, four above the number of its word, as the released code does. "
    return _dots(_ours(context, 4), TRAINED, [0.005, 0.01, 0.015], note)


@plots.drawn("Average attention, frozen values")
def diagonals(context: Results) -> Figure:
    """Table 2.2: values are frozen and diagonal, attention is trained; topics are those of the words."""
    return _dots(_ours(context, 0), FROZEN, [0.001, 0.01, 0.1], "")
