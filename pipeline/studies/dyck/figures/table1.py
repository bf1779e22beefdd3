"""Variation by layer (Table 1), and third layers (Li 2025, Figure 2.18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.studies.dyck.figures.common import LOG_TITLE, log_domain, maps
from pipeline.studies.dyck.names import PREFIX, PUBLISHED_TABLE_1_RANDOM, TABLE_1_PROBE, THREE_LAYERS

if TYPE_CHECKING:
    from pipeline.kit.results import Results

OURS, OURS_COMPLETE, PUBLISHED = "ours, on prefixes", "ours, on complete strings", "published"
LAYERS = ["layer 1", "layer 2", "layer 3"]
FIGURE_13 = [(THREE_LAYERS, which, f"initialisation {which + 1}") for which in range(4)]
CELL = 13  # pixels of one attention weight


def table1(context: Results) -> Figure:
    """Table 1: variation by layer on the sentences of D5, published and ours, on either kind of training data."""
    table = context.table("variation_table1").sort("lang_k", "lang_D", "n_layers", "layer", "data")
    data = _table1_data(table)
    cells = data["cell"].unique(maintain_order=True).to_list()
    sources = [source for source in (PUBLISHED, OURS, OURS_COMPLETE) if source in {*data["source"], OURS}]
    y = alt.Y(
        "cell:N",
        sort=cells,
        title=None,
        axis=alt.Axis(ticks=False, domain=False, grid=False, labelLimit=200, labelPadding=8),
        scale=alt.Scale(paddingInner=0.25),
    )
    offset = alt.YOffset("source:N", sort=sources, scale=alt.Scale(paddingInner=0))
    colour = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=sources, range=[charts.VERMILLION, charts.BLUE, charts.GREEN][: len(sources)]),
        legend=alt.Legend(orient="bottom", symbolType="square", labelLimit=300, columns=2),
    )
    shape = alt.Shape(
        "layer:N",
        title=None,
        scale=alt.Scale(domain=LAYERS, range=["circle", "square", "triangle-up"]),
        legend=alt.Legend(orient="bottom", symbolFillColor=charts.INK, symbolStrokeWidth=0),
    )
    x = alt.X(
        "value:Q",
        title=LOG_TITLE,
        scale=alt.Scale(type="log", domain=log_domain(data, "ci_lo", ["high", "ci_hi"], (0.003, 40)), nice=False),
        axis=alt.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"),
    )
    base = alt.Chart(data).encode(y=y, yOffset=offset, color=colour)
    numbers = base.mark_text(align="center", fontSize=12).encode(
        x=alt.X(
            "layer:N", title=None, sort=LAYERS, axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False)
        ),
        text="text:N",
    )
    bars = base.mark_rule(strokeWidth=3, clip=True).encode(x=alt.X("low:Q", title=LOG_TITLE), x2="high:Q")
    over_models = base.mark_rule(strokeWidth=1, opacity=0.7, clip=True).encode(
        x=alt.X("ci_lo:Q", title=LOG_TITLE), x2="ci_hi:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(
        x=x, shape=shape, y=alt.Y("cell:N", sort=cells, title=None, axis=None, scale=alt.Scale(paddingInner=0.25))
    )
    random = alt.Chart(data).mark_rule(color=charts.GREY, strokeDash=[5, 3], strokeWidth=1.5)
    random = random.encode(x=alt.X("mean(random):Q", title=LOG_TITLE))
    height = (14 + 16 * len(sources)) * max(len(cells), 1)
    left = numbers.properties(width=285, height=height)
    right = alt.layer(random, over_models, bars, points).properties(width=230, height=height)
    title = _table1_title(table)
    figure = alt.hconcat(left, right, spacing=12).resolve_scale(y="shared")
    return figure.properties(title=title, description=_table1_words(data)), data


def _table1_data(table: pl.DataFrame) -> pl.DataFrame:
    """Return one row per cell, layer and source (published, ours)."""
    rows: list[dict[str, Any]] = []
    for row in table.iter_rows(named=True):
        metadata = {
            "cell": f"k={row['lang_k']}, D={row['lang_D']}, {row['n_layers']} layers",
            "layer": f"layer {row['layer']}",
            "random": row["random_baseline"],
        }
        ours = OURS if row["data"] == PREFIX else OURS_COMPLETE
        for source, mean, sd in (
            (PUBLISHED, row["published_mean"], row["published_sd"]),
            (ours, row["mean"], row["sd_over_sentences"]),
        ):
            interval = {"ci_lo": row["ci_lo"], "ci_hi": row["ci_hi"]} if source == ours else {}
            if mean is None or (source == PUBLISHED and ours == OURS_COMPLETE):
                continue
            digits = 4 if mean < 0.01 else 3 if mean < 1 else 2
            text = f"{mean:.{digits}f}"
            spread = "" if sd is None else f" ({sd:.{digits}f})"
            ends = {"low": max(mean - (sd or 0), 1e-4), "high": mean + (sd or 0)}
            rows.append(metadata | {"source": source, "value": mean, "sd": sd, "text": text + spread} | ends | interval)
    numbers = dict.fromkeys(("value", "sd", "low", "high", "ci_lo", "ci_hi", "random"), pl.Float64)
    schema: dict[str, Any] = dict.fromkeys(("cell", "layer", "source", "text"), pl.String)
    return pl.DataFrame(rows, schema=schema | numbers)


def _table1_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Mean (standard deviation; thick bars) over 40 sentences of length 19, with start token"]
    if table.height:
        first = table.row(0, named=True)
        counted = " and ".join(_counted(rows, data) for (data,), rows in table.group_by("data", maintain_order=True))
        excluded = int(table.filter(layer=1)["n_excluded"].sum())
        without = f" ({excluded} of all rows excluded)" if excluded else ""
        subtitle[0] = subtitle[0].replace("40", str(first["n_sentences"]))
        subtitle.append(f"Thin bars: {first['confidence']:.0%} interval of ours over models (jackknife)")
        subtitle.append(
            f"Dashed: random causal maps, {first['random_baseline']:.2f} (published {PUBLISHED_TABLE_1_RANDOM})"
        )
        subtitle.append(f"Models per row: {counted}{without}")
    return alt.TitleParams("Variation of attention by layer (Table 1)", subtitle=subtitle)


def _counted(rows: pl.DataFrame, data: str) -> str:
    """Say how many models a row of one arm rests on."""
    sizes = sorted(set(rows["n_models"]))
    number = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{number} trained on {'prefixes' if data == PREFIX else 'complete strings'}"


def _table1_words(data: pl.DataFrame) -> str:
    summaries = [
        f"{cell}: "
        + ", ".join(f"{row['layer']} {row['text']}" for row in rows.filter(source=OURS).iter_rows(named=True))
        for (cell,), rows in data.group_by("cell", maintain_order=True)
    ]
    return f"Attention variation by layer, ours on prefixes beside the published table. {'; '.join(summaries)}."


def fig13(context: Results) -> Figure:
    """Figure 11 (Li 2025, Figure 2.18): third-layer maps of several three-layer models on one sentence."""
    title = "Attention of three-layer models, third layer"
    return maps(context, FIGURE_13, title, TABLE_1_PROBE, start=True, cell=CELL)
