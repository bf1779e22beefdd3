"""Variation by layer (Table 1), and third layers (Li 2025, Figure 2.18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.dyck.figures.common import NO_MODEL, VARIATION, between, maps
from pipeline.studies.dyck.names import PREFIX, PUBLISHED_TABLE_1_RANDOM, TABLE_1_PROBE, THREE_LAYERS

if TYPE_CHECKING:
    from pipeline.kit.results import Results

OURS, OURS_COMPLETE, PUBLISHED = "ours, on prefixes", "ours, on complete strings", "published"
SOURCES = Kinds(
    "source",
    {
        PUBLISHED: Look(charts.VERMILLION, shape="diamond"),
        OURS: Look(charts.BLUE),
        OURS_COMPLETE: Look(charts.GREEN, shape="triangle-up"),
    },
)
FIGURE_13 = [(THREE_LAYERS, which, f"initialisation {which + 1}") for which in range(4)]
CELL = 13  # pixels of one attention weight


@plots.drawn("Variation of attention by layer (Table 1)")
def table1(context: Results) -> Figure:
    """Table 1: variation by layer on the sentences of D5, published and ours, on either kind of training data."""
    table = context.table("variation_table1").sort("lang_k", "lang_D", "n_layers", "layer", "data")
    data = plots.some(_table1_data(table), NO_MODEL)
    y = Axis("cell", None, "N", order=data["cell"].unique(maintain_order=True).to_list())
    panels: list[plots.Panel] = []
    for name, rows in plots.split(data.sort("layer", maintain_order=True), "layer"):
        spans = pl.concat([rows["value"], rows["high"], rows["ci_hi"], rows["low"], rows["ci_lo"]])
        x = plots.log("value", VARIATION, spans, plots.least(rows["value"]) / 100).but(more={"labelOverlap": True})
        y = y.but(more={"labels": not panels})
        thick, *_ = plots.points(rows, x, y, SOURCES, ends=("low", "high"), apart="source")
        marks = plots.points(
            rows, x, y, SOURCES.among(data["source"]), ends=("ci_lo", "ci_hi"), apart="source", size=50
        )
        random = rows["random"][0]
        at = plots.rule(x, random, upright=True) if x.domain and x.domain[0] < random < x.domain[1] else []
        panels.append(
            plots.panel([*at, thick.mark_rule(strokeWidth=4, opacity=0.4), *marks], name, 150, 44 * len(y.order or ""))
        )
    first = table.row(0, named=True)
    ours = data.filter(source=OURS)
    both = plots.some(data.filter(source=PUBLISHED).join(ours, on=["cell", "layer"], suffix="_ours"), NO_MODEL)
    means = [
        f"{name} {between(rows['value_ours'], '.2g')} (published {between(rows['value'], '.2g')})"
        for name, rows in plots.split(both.sort("layer"), "layer")
    ]
    counted = " and ".join(_counted(rows, str(kind)) for (kind,), rows in table.group_by("data", maintain_order=True))
    excluded = int(table.filter(layer=1)["n_excluded"].sum())
    return plots.figure(
        plots.grid(panels, 3, spacing=14).resolve_scale(y="shared"),
        data,
        f"Variation of attention, trained on prefixes: {', '.join(means)}",
        f"Means over {first['n_sentences']} sentences of length 19 with start token; thick bars: standard deviation "
        f"over sentences; {plots.spread(table.rename({'ci_lo': 'lo'}), 'thin bars')}",
        f"Models per row: {counted}"
        + (f" ({excluded} of all rows excluded)" if excluded else "")
        + f". Dotted: random causal maps, {first['random_baseline']:.2f} (published {PUBLISHED_TABLE_1_RANDOM})",
        told=plots.tell(data, "{source}, {cell}, {layer}: {text}") + ".",
    )


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


def _counted(rows: pl.DataFrame, data: str) -> str:
    """Say how many models a row of one arm rests on."""
    sizes = sorted(set(rows["n_models"]))
    number = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{number} trained on {'prefixes' if data == PREFIX else 'complete strings'}"


@plots.drawn("Attention of three-layer models, third layer")
def fig13(context: Results) -> Figure:
    """Figure 11 (Li 2025, Figure 2.18): third-layer maps of several three-layer models on one sentence."""
    return maps(context, FIGURE_13, "Three-layer models, third layer", TABLE_1_PROBE, start=True, cell=CELL)
