"""The worst glitch of each model, taken apart (not in the source)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import SETS

SHOWN = 12  # glitches that are drawn
AGAIN = "seeds"  # of its models those with both seeds equal are the baseline's, which would be drawn twice
LOOKS = {
    "last write": charts.GREEN, "older write, same bit": charts.SKY, "older write, other bit": charts.VERMILLION,
    "earlier read, same bit": charts.BLUE, "earlier read, other bit": charts.ORANGE, "ignored, same bit": "#BBBBBB",
    "ignored, other bit": charts.PURPLE, "the read itself": charts.BLACK,
}  # fmt: skip


def glitches(context: Results) -> Figure:
    """Worst wrong answers of trained models, a row each, without the factorial of seeds: the pairs of the string up to
    the read, coloured by what they are to it, with frames at the last write; triangles mark where the heaviest head of
    the last layer looks."""
    table = context.table("autopsy").filter(pl.col("learned"), pl.col("family") != AGAIN)
    if not table.height:
        return empty("Worst glitches", "no trained model errs at this scale")
    table = (
        table.sort("set", "margin", descending=[False, True])
        .group_by("set", maintain_order=True)
        .head(SHOWN // 2)
    )
    heads = context.table("autopsy_heads")
    rows: list[dict[str, Any]] = []
    for place, row in enumerate(table.iter_rows(named=True)):
        string, same = row["string"], {key: row[key] for key in ("run", "replica", "set")}
        layer = heads.filter(**same).filter(pl.col("layer") == pl.col("layer").max())
        key = int(layer.filter(head=row["top_head"])["key"][0])
        name = f"{row['run'].removeprefix('flipflop-')} {row['replica']}, {row['set']}"
        last = row["pairs"] - row["dist_write"]
        for pair in range(row["pairs"]):
            letters = string[2 * pair : 2 * pair + 2]
            kind = {"w": "older write", "r": "earlier read", "i": "ignored"}[letters[0]]
            bit = "same bit" if letters[1] == str(row["target"]) else "other bit"
            rows.append(
                {
                    "place": place, "name": name, "pair": pair, "text": letters, "looked": key // 2 == pair,
                    "kind": "last write" if pair == last else f"{kind}, {bit}", "last": pair == last,
                }
            )  # fmt: skip
    data = pl.DataFrame(rows)
    names = data["name"].unique(maintain_order=True).to_list()
    colours = alt.Scale(domain=list(LOOKS), range=list(LOOKS.values()))
    base = alt.Chart(data).encode(
        x=alt.X(
            "pair:O", title="pair of the string", axis=alt.Axis(labelAngle=0, values=list(range(0, 256, 5)))
        ),
        y=alt.Y("name:N", title=None, sort=names),
    )
    cells = base.mark_rect().encode(
        color=alt.Color("kind:N", title=None, scale=colours, legend=alt.Legend(orient="bottom", columns=3)),
        opacity=alt.condition("indexof(datum.kind, 'ignored') == 0", alt.value(0.4), alt.value(0.95)),
        tooltip=["name:N", "pair:Q", "text:N", "kind:N"],
    )
    frames = base.transform_filter("datum.last").mark_rect(filled=False, stroke=charts.BLACK, strokeWidth=2)
    looked = base.transform_filter("datum.looked").mark_point(
        shape="triangle-down", filled=True, size=60, color="white", stroke=charts.BLACK, strokeWidth=1.2
    )
    words = "; ".join(
        f"{row['run'].removeprefix('flipflop-')} {row['replica']}, {row['set']}: looks at {row['top_looks_at']}"
        for row in table.iter_rows(named=True)
    )
    width = min(620, max(300, 16 * int(data["pair"].max() + 1)))  # type: ignore[operator]
    return alt.layer(cells, frames, looked).properties(
        width=width, height=24 * len(names), title="Worst glitches", description=f"Worst glitches. {words}."
    ), data


def removals(context: Results) -> Figure:
    """Fewest ignored pairs found whose removal mends the worst glitch (all choices of up to two pairs were
    tried, and beyond them runs of neighbouring ignored pairs), against how many ignored pairs precede the read.
    A point for each model and set on which it errs, also of models that did not learn the language, without the
    factorial of seeds; crosses at the bottom: nothing that was tried mends it."""
    table = context.table("autopsy").filter(pl.col("family") != AGAIN)
    if not table.height:
        return empty("Mending glitches", "no model errs at this scale")
    data = table.with_columns(
        removed=pl.col("ignored_removed").fill_null(0),
        mended=pl.when(pl.col("ignored_removed").is_null()).then(pl.lit("no")).otherwise(pl.lit("yes")),
        panel=pl.col("set").replace_strict(SETS, return_dtype=pl.String),
        looks=pl.col("top_looks_at"),
    ).drop("string")  # fmt: skip
    chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            x=alt.X("ignored:Q", title="ignored pairs before the read"),
            y=alt.Y("removed:Q", title="fewest found to mend it", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color(
                "panel:N", title=None, scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top")
            ),
            shape=alt.Shape(
                "mended:N",
                title="mended",
                scale=alt.Scale(domain=["yes", "no"], range=["circle", "cross"]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=["run:N", "replica:Q", "panel:N", "removed:Q", "ignored:Q", "looks:N"],
        )
    )
    known = data.filter(mended="yes")
    words = f"{known.height} of {data.height} worst glitches are mended by a removal that was tried"
    return chart.properties(
        width=440, height=240, title="Mending the worst glitches", description=f"{words}."
    ), data
