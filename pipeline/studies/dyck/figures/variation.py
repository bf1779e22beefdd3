"""How much attention maps vary (Wen et al. 2023, section 4.1 and Table 1)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.dyck.figures.common import Figure, log_domain, number
from schemas.dyck.tables import (
    LINEAR,
    MINIMAL,
    PREFIX,
    PROBE,
    PUBLISHED_TABLE_1_RANDOM,
    PUBLISHED_VARIATION,
    STANDARD,
)

MODEL_LABELS = {
    STANDARD: "standard (M1)",
    LINEAR: "linear position code (M2)",
    MINIMAL: "minimal first layer (M4)",
}
RANDOM = "random causal maps"
OURS, CLOSED_FORM, PUBLISHED = "this reproduction", "closed form", "published"
ABOVE = -18  # pixels: published values stand above the bar they belong to
PUBLISHED_RANDOM = "published-16"  # theory check that holds the published variation of random maps
OURS_COMPLETE = "on complete strings"
LOG_TITLE = "attention variation (log scale)"
LAYERS = ["layer 1", "layer 2", "layer 3"]


def variation(context: Any) -> Figure:
    """DYCK-E3: variation of last-layer attention on D4, both start conventions, beside the published values.

    The paper does not say whether its maps include the start token: the published values stand in both panels.
    """
    table = context.table("variation").filter(
        pl.col("last_layer"),
        pl.col("run").is_in(list(MODEL_LABELS)),
        probe_split=PROBE,
        seq_id=0,
        head=0,
        causal=True,
    )
    theory = {row["check"]: row["bound"] for row in context.theory().iter_rows(named=True)}
    data = _variation_data(table, theory.get(PUBLISHED_RANDOM))
    order = [*MODEL_LABELS.values(), RANDOM]
    x = alt.X("value:Q", title="attention variation, mean ‖A − B‖² over pairs of models")
    y = alt.Y("model:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200))
    colour = alt.Color(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[OURS, CLOSED_FORM], range=[charts.SKY, charts.GREY]),
        legend=alt.Legend(orient="bottom"),
    )
    diamond = alt.Shape(
        "source:N",
        title=None,
        scale=alt.Scale(domain=[PUBLISHED], range=["diamond"]),
        legend=alt.Legend(orient="bottom", symbolFillColor=charts.VERMILLION, symbolStrokeWidth=0),
    )
    base = alt.Chart(data).encode(y=y)
    bars = base.transform_filter(alt.datum.source != PUBLISHED)
    ours = base.transform_filter(alt.datum.source == OURS)
    published = base.transform_filter(alt.datum.source == PUBLISHED).encode(x=x)
    number = alt.Text("value:Q", format=".2f")
    layers = alt.layer(
        bars.mark_bar(height=20).encode(x=x, color=colour),
        ours.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q"),
        *(ours.mark_tick(size=9, thickness=1.5, color="black").encode(x=f"{end}:Q") for end in ("lo", "hi")),
        bars.mark_text(align="left", dx=6).encode(x="label_at:Q", text=number),
        published.mark_point(filled=True, opacity=1, size=80, yOffset=ABOVE, color=charts.VERMILLION).encode(
            shape=diamond
        ),
        published.mark_text(align="left", dx=8, yOffset=ABOVE, color=charts.VERMILLION).encode(text=number),
    )
    header = alt.Header(labelFontWeight="bold", labelAnchor="start")
    panels = layers.properties(width=400, height=alt.Step(50)).facet(
        alt.Facet("panel:N", title=None, sort="descending", header=header), columns=1
    )
    return panels.properties(title=_variation_title(table), description=_variation_words(data)), data


def _variation_data(table: pl.DataFrame, published_random: float | None) -> pl.DataFrame:
    """One row per panel, model and source (ours, closed form, published)."""
    rows: list[dict[str, Any]] = []
    for row in table.sort("run", "start_included").iter_rows(named=True):
        about = {"panel": _panel(row), "model": MODEL_LABELS[row["run"]]}
        numbers = {
            "value": row["variation_mean"],
            "lo": row["ci_lo"],
            "hi": row["ci_hi"],
            "n": row["n_models"],
        }
        rows.append(about | numbers | {"source": OURS})
        rows.append(about | {"value": PUBLISHED_VARIATION[row["run"]], "source": PUBLISHED})
    for panel, baseline in {
        _panel(row): row["random_baseline"] for row in table.iter_rows(named=True)
    }.items():
        rows.append({"panel": panel, "model": RANDOM, "value": baseline, "source": CLOSED_FORM})
        if published_random is not None:
            rows.append({"panel": panel, "model": RANDOM, "value": published_random, "source": PUBLISHED})
    schema = {"panel": pl.String, "model": pl.String, "source": pl.String} | dict.fromkeys(
        ("value", "lo", "hi"), pl.Float64
    )
    frame = pl.DataFrame(rows, schema=schema | {"n": pl.Int32})
    return frame.with_columns(label_at=pl.coalesce("hi", "value")).sort("panel", "model", "source")


def _variation_words(data: pl.DataFrame) -> str:
    """The figure in words, for those who cannot see it."""
    told = [
        f"{panel[0]}: "
        + ", ".join(f"{row['model']} {number(row['value'])}" for row in rows.iter_rows(named=True))
        for panel, rows in data.filter(pl.col("source") != PUBLISHED).group_by("panel", maintain_order=True)
    ]
    return (
        "Attention variation, the mean squared distance between the last-layer maps of two models trained "
        f"from different initialisations. {'; '.join(told)}."
    )


def _panel(row: dict[str, Any]) -> str:
    n = row["n_rows"]
    return f"start token {'included' if row['start_included'] else 'omitted'} ({n} × {n})"


def _variation_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Last layer, probe [[[[]]]](((())))"]
    if table.height:
        subtitle[0] += f"; whiskers: {table['confidence'][0]:.0%} bootstrap interval over models"
    models = {row["run"]: row for row in table.iter_rows(named=True)}
    for run, label in MODEL_LABELS.items():
        if run in models:
            row = models[run]
            without = f", without {row['excluded_reason']}" if row["n_excluded"] else ""
            subtitle.append(f"{label}: {row['n_models']} models{without}")
    return alt.TitleParams("How much attention maps vary between initialisations", subtitle=subtitle)


def table1(context: Any) -> Figure:
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
        legend=alt.Legend(orient="bottom", symbolType="square", labelLimit=300),
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
        scale=alt.Scale(
            type="log", domain=log_domain(data, "ci_lo", ["high", "ci_hi"], (0.003, 40)), nice=False
        ),
        axis=alt.Axis(values=[0.001, 0.01, 0.1, 1, 10], format="~g"),
    )
    base = alt.Chart(data).encode(y=y, yOffset=offset, color=colour)
    numbers = base.mark_text(align="center", fontSize=12).encode(
        x=alt.X(
            "layer:N",
            title=None,
            sort=LAYERS,
            axis=alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False),
        ),
        text="text:N",
    )
    bars = base.mark_rule(strokeWidth=3, clip=True).encode(x=alt.X("low:Q", title=LOG_TITLE), x2="high:Q")
    over_models = base.mark_rule(strokeWidth=1, opacity=0.7, clip=True).encode(
        x=alt.X("ci_lo:Q", title=LOG_TITLE), x2="ci_hi:Q"
    )
    points = base.mark_point(filled=True, size=60, opacity=1, clip=True).encode(
        x=x,
        shape=shape,
        y=alt.Y("cell:N", sort=cells, title=None, axis=None, scale=alt.Scale(paddingInner=0.25)),
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
    """One row per cell, layer and source (published, ours)."""
    rows: list[dict[str, Any]] = []
    for row in table.iter_rows(named=True):
        about = {
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
            rows.append(
                about | {"source": source, "value": mean, "sd": sd, "text": text + spread} | ends | interval
            )
    numbers = dict.fromkeys(("value", "sd", "low", "high", "ci_lo", "ci_hi", "random"), pl.Float64)
    schema: dict[str, Any] = dict.fromkeys(("cell", "layer", "source", "text"), pl.String)
    return pl.DataFrame(rows, schema=schema | numbers)


def _table1_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Mean (standard deviation; thick bars) over 40 sentences of length 19, with start token"]
    if table.height:
        first = table.row(0, named=True)
        counted = " and ".join(
            _counted(rows, data) for (data,), rows in table.group_by("data", maintain_order=True)
        )
        excluded = int(table.filter(layer=1)["n_excluded"].sum())
        without = f" ({excluded} of all rows excluded)" if excluded else ""
        subtitle[0] = subtitle[0].replace("40", str(first["n_sentences"]))
        subtitle.append(f"Thin bars: {first['confidence']:.0%} bootstrap interval of ours over models")
        subtitle.append(
            f"Dashed: random causal maps, {first['random_baseline']:.2f} (published {PUBLISHED_TABLE_1_RANDOM})"
        )
        subtitle.append(f"Models per row: {counted}{without}")
    return alt.TitleParams("Variation of attention by layer (Table 1)", subtitle=subtitle)


def _counted(rows: pl.DataFrame, data: str) -> str:
    """How many models a row of one arm rests on."""
    sizes = sorted(set(rows["n_models"]))
    number = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{number} trained on {'prefixes' if data == PREFIX else 'complete strings'}"


def _table1_words(data: pl.DataFrame) -> str:
    told = [
        f"{cell}: "
        + ", ".join(f"{row['layer']} {row['text']}" for row in rows.filter(source=OURS).iter_rows(named=True))
        for (cell,), rows in data.group_by("cell", maintain_order=True)
    ]
    return f"Attention variation by layer, this reproduction beside the published table. {'; '.join(told)}."
