"""Maps of models trained on complete strings, and their variation (Wen et al. 2023, section 4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.figures.common import PROBE_TEXT, maps, where_measured
from pipeline.studies.dyck.names import (
    LINEAR,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    PROBE,
    PUBLISHED_VARIATION,
    STANDARD,
    WIDE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

# Panels: run, which of its stored replicas, what it is.
FIGURE_1 = [
    (WIDE, 0, "width 200 (M3)"),
    (STANDARD, 0, "width 50 (M1)"),
    (STANDARD, 1, "width 50 (M1), another initialisation"),
    (LINEAR, 1, "as (c), with position code (M2)"),
]
FIGURE_2 = [
    (MINIMAL, 0, "embedding (15), learning rate 0.01 (M4)"),
    (MINIMAL_SLOW, 0, "embedding (15), learning rate 0.003 (M4)"),
    (MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
MODEL_LABELS = {STANDARD: "standard (M1)", LINEAR: "linear position code (M2)", MINIMAL: "minimal first layer (M4)"}
RANDOM = "random causal maps"
OURS, CLOSED_FORM, PUBLISHED = "this reproduction", "closed form", "published"
ABOVE = -18  # pixels: published values stand above the bar they belong to
# Groups of theory checks: what was published of random maps of the probe's size, and their closed form.
PUBLISHED_RANDOM, MEAN_RANDOM = "published, N = 16", "mean, N = 16"
SOLVERS = "exact solvers"
EXACT, TRAINED = "exact by construction", "trained"
DEVIATIONS = 1.96  # standard deviations on either side that 95 % of averages lie within


def fig1(context: Results) -> Figure:
    """Figure 1: last-layer maps of four standard models on D4, boxes at the last unmatched open bracket."""
    (first, _, _), (second, _, _) = FIGURE_1[2:]
    starts = [
        context.table("runs").filter(run=run).sort("replica").select("replica", "stream").rows()
        for run in (first, second)
    ]
    alike = starts[0] and starts[0] == starts[1]
    note = "(c) and (d) start from the same weights and see the same batches." if alike else ""
    return maps(context, FIGURE_1, "Attention of standard models, second layer", note=note)


def fig2(context: Results) -> Figure:
    """Figure 2: maps of models with a minimal first layer on D4."""
    return maps(context, FIGURE_2, "Attention of models with a minimal first layer")


def variation(context: Results) -> Figure:
    """Variation of last-layer attention on D4, both start conventions, beside the published values.

    The paper does not say whether its maps include the start token: the published values stand in both panels.
    """
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("run").is_in(list(MODEL_LABELS)), probe_split=PROBE, seq_id=0, head=0, causal=True
    )
    random = context.theory().filter(group=PUBLISHED_RANDOM)["bound"].to_list()
    data = _variation_data(table, random[0] if random else None)
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
        bars.mark_bar(height=20).encode(x=x, color=colour, tooltip=["model:N", "value:Q", "n:Q", "interval:N"]),
        *where_measured(
            data,
            ours.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q"),
            *(ours.mark_tick(size=9, thickness=1.5, color="black").encode(x=f"{end}:Q") for end in ("lo", "hi")),
        ),
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
    """Return one row per panel, model and source (ours, closed form, published)."""
    rows: list[dict[str, Any]] = []
    for row in table.sort("run", "start_included").iter_rows(named=True):
        labels = {"panel": _panel(row), "model": MODEL_LABELS[row["run"]]}
        numbers = {
            "value": row["variation_mean"],
            "lo": row["ci_lo"],
            "hi": row["ci_hi"],
            "n": row["n_models"],
            "interval": row["interval"],
        }
        rows.append(labels | numbers | {"source": OURS})
        rows.append(labels | {"value": PUBLISHED_VARIATION[row["run"]], "source": PUBLISHED})
    for panel, baseline in {_panel(row): row["random_baseline"] for row in table.iter_rows(named=True)}.items():
        rows.append({"panel": panel, "model": RANDOM, "value": baseline, "source": CLOSED_FORM})
        if published_random is not None:
            rows.append({"panel": panel, "model": RANDOM, "value": published_random, "source": PUBLISHED})
    schema: dict[str, Any] = dict.fromkeys(("panel", "model", "source", "interval"), pl.String)
    schema |= dict.fromkeys(("value", "lo", "hi"), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema | {"n": pl.Int32})
    return frame.with_columns(label_at=pl.coalesce("hi", "value")).sort("panel", "model", "source")


def _variation_words(data: pl.DataFrame) -> str:
    """Describe the figure in words, for those who cannot see it."""
    summaries = [
        f"{panel[0]}: " + ", ".join(f"{row['model']} {number(row['value'])}" for row in rows.iter_rows(named=True))
        for panel, rows in data.filter(pl.col("source") != PUBLISHED).group_by("panel", maintain_order=True)
    ]
    return (
        "Attention variation, the mean squared distance between the last-layer maps of two models trained "
        f"from different initialisations. {'; '.join(summaries)}."
    )


def _panel(row: dict[str, Any]) -> str:
    n = row["n_rows"]
    return f"start token {'included' if row['start_included'] else 'omitted'} ({n} × {n})"


def _variation_title(table: pl.DataFrame) -> alt.TitleParams:
    subtitle = ["Last layer, probe [[[[]]]](((())))"]
    if table.height:
        subtitle[0] += f"; whiskers: {table['confidence'][0]:.0%} interval over models (jackknife)"
    models = {row["run"]: row for row in table.iter_rows(named=True)}
    for run, label in MODEL_LABELS.items():
        if run in models:
            row = models[run]
            without = f", without {row['excluded_reason']}" if row["n_excluded"] else ""
            subtitle.append(f"{label}: {row['n_models']} models{without}")
    return alt.TitleParams("How much attention maps vary between initialisations", subtitle=subtitle)


def exact_solvers(context: Results) -> Figure:
    """Attention of solvers that are exact by construction (ours), beside trained models and random maps."""
    rows: list[dict[str, Any]] = []
    for row in context.theory().filter(group=SOLVERS).sort("x").iter_rows(named=True):
        rows.append({"what": f"exact, σ = {row['x']:g}", "value": row["measured"], "kind": EXACT})
    table = context.table("variation").filter(
        pl.col("last_layer"), probe_split=PROBE, seq_id=0, head=0, causal=True, start_included=False
    )
    for run, label in MODEL_LABELS.items():
        for row in table.filter(pl.col("variation_mean").is_not_null(), run=run).iter_rows(named=True):
            ends = {"lo": row["ci_lo"], "hi": row["ci_hi"]}
            rows.append({"what": label, "value": row["variation_mean"], "kind": TRAINED} | ends)
    for value in context.theory().filter(group=MEAN_RANDOM)["measured"]:
        rows.append({"what": RANDOM, "value": value, "kind": RANDOM})
    data = pl.DataFrame(
        rows, schema={"what": pl.String, "kind": pl.String} | dict.fromkeys(("value", "lo", "hi"), pl.Float64)
    ).with_columns(label_at=pl.coalesce("hi", "value"))
    y = alt.Y(
        "what:N", sort=data["what"].to_list(), title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=200)
    )
    x = alt.X("value:Q", title="attention variation, mean ‖A − B‖² over pairs of models")
    kinds = alt.Scale(domain=[EXACT, TRAINED, RANDOM], range=[charts.GREEN, charts.SKY, charts.GREY])
    base = alt.Chart(data).encode(x=x, y=y)
    bars = base.mark_bar(height=18).encode(
        color=alt.Color("kind:N", title=None, scale=kinds, legend=alt.Legend(orient="bottom"))
    )
    intervals = base.mark_rule(strokeWidth=1.5).encode(x="lo:Q", x2="hi:Q")
    numbers = base.mark_text(align="left", dx=5).encode(x="label_at:Q", text=alt.Text("value:Q", format=".2f"))
    title = alt.TitleParams(
        "How much attention may vary among models that are never wrong",
        subtitle=[
            "Exact solvers of Theorem 1: logits of spread σ, balanced and else random; every prediction is exact",
            f"Probe {PROBE_TEXT}; trained models without start token, solvers without its row and column",
            "For comparison: trained models, with intervals over models (jackknife), and random causal maps",
        ],
    )
    summary = ", ".join(f"{row['what']} {number(row['value'])}" for row in data.iter_rows(named=True))
    words = f"Attention variation of exact solvers, trained models and random maps: {summary or 'none measured'}."
    chart = alt.layer(bars, *where_measured(data, intervals), numbers).properties(width=400, height=alt.Step(28))
    return chart.properties(title=title, description=words), data


def random_law(context: Results) -> Figure:
    """Mean and 95 % interval of the variation of random causal maps, against the number of maps behind the average,
    beside the published values (evidence for claim 2)."""
    theory = context.theory()
    of_group = {row["group"]: row for row in theory.iter_rows(named=True)}
    # The bound of these rows is the standard deviation of an average.
    rows = theory.filter(pl.format("mean, {}", "group").is_in(list(of_group)))
    if not rows.height:
        return charts.empty("How much random attention maps vary", "no theory check")
    means = {group: of_group[f"mean, {group}"]["measured"] for group in rows["group"].unique()}
    data = rows.select(
        pl.col("group").alias("panel"),
        pl.col("x").cast(pl.Int32).alias("maps"),
        pl.col("group").replace_strict(means, return_dtype=pl.Float64).alias("mean"),
        pl.col("bound").alias("deviation"),
    ).sort("panel", "maps")
    half = DEVIATIONS * pl.col("deviation")
    data = data.with_columns((pl.col("mean") - half).alias("lo"), (pl.col("mean") + half).alias("hi"))
    panels, intervals = [], []
    for (panel,), part in data.group_by("panel", maintain_order=True):
        published = of_group[f"published, {panel}"]["bound"]
        x = alt.X(
            "maps:Q",
            title="maps behind the average (log scale)",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=part["maps"].to_list(), grid=False),
        )
        y = alt.Y("lo:Q", title="attention variation", scale=alt.Scale(zero=False))
        base = alt.Chart(part).encode(x=x)
        layers = [
            base.mark_area(color=charts.GREY, opacity=0.3).encode(y=y, y2="hi:Q"),
            base.mark_line(color=charts.GREY).encode(y=alt.Y("mean:Q", title="attention variation")),
            alt.Chart(pl.DataFrame({"at": [published]}))
            .mark_rule(color=charts.VERMILLION, strokeDash=[5, 3], strokeWidth=1.5)
            .encode(y=alt.Y("at:Q", title="attention variation")),
        ]
        panels.append(alt.layer(*layers).properties(width=240, height=190, title=panel))
        intervals += [
            f"{panel}, {row['maps']} maps: {number(row['lo'])} to {number(row['hi'])} (published {number(published)})"
            for row in part.iter_rows(named=True)
        ]
    title = "How much random attention maps vary"
    subtitle = [
        "Rows uniform on the simplex of the keys that a query sees; line: closed form, band: 95 % of averages",
        "Dashed: published; the paper does not say how many maps its averages are over",
    ]
    words = f"Interval of the variation of random causal maps against their number. {'; '.join(intervals)}."
    figure = alt.hconcat(*panels, spacing=40)
    return figure.properties(title=alt.TitleParams(title, subtitle=subtitle), description=words), data
