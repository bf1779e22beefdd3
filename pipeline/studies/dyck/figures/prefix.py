"""Models trained on prefixes (Wen et al. 2023, Figures 7 to 10, appendix D.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.comparisons import VIOLATION_BY_LENGTH
from pipeline.studies.dyck.figures.common import LOG_TITLE, log_domain, maps, scatter
from pipeline.studies.dyck.names import (
    FAMILY_RUNS,
    LONG_PROBE,
    PREFIX,
    PREFIX_LINEAR,
    PREFIX_LINEAR_ALL,
    PREFIX_MINIMAL,
    PREFIX_MINIMAL_ANGLE,
    PREFIX_MINIMAL_SUM,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PROBE,
    PUBLISHED_PREFIX_VARIATION,
    TABLE_1_PROBE,
)

if TYPE_CHECKING:
    from pipeline.kit.results import Results

FIGURE_7 = [
    (PREFIX_STANDARD, 0, "M1, loss at closing brackets"),
    (PREFIX_STANDARD, 1, "M1, the same, another initialisation"),
    (PREFIX_STANDARD_ALL, 0, "M1, loss at all positions"),
    (PREFIX_STANDARD_ALL, 1, "M1, the same, another initialisation"),
]
FIGURE_8 = [
    (PREFIX_STANDARD_ALL, 0, "M1, loss at all positions"),
    (PREFIX_STANDARD_ALL, 1, "M1, the same, another initialisation"),
]
FIGURE_9 = [
    (PREFIX_MINIMAL, 0, "embedding (15) (M4)"),
    (PREFIX_MINIMAL, 1, "embedding (15) (M4), another initialisation"),
    (PREFIX_MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (PREFIX_MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
LONG_CELL = 9  # pixels of one attention weight

CLOSING, ALL = "closing brackets", "all positions"
PREFIX_RUNS = {
    PREFIX_STANDARD: ("M1", CLOSING),
    PREFIX_STANDARD_ALL: ("M1", ALL),
    PREFIX_LINEAR: ("M2", CLOSING),
    PREFIX_LINEAR_ALL: ("M2", ALL),
    PREFIX_MINIMAL: ("M4", CLOSING),
}
PROBES = {PROBE: "D4", TABLE_1_PROBE: "D5", LONG_PROBE: "a prefix of 28"}


def fig7(context: Results) -> Figure:
    """Figure 7: second-layer maps of standard models trained on prefixes, two setups with two
    initialisations each."""
    return maps(context, FIGURE_7, "Attention of standard models trained on prefixes, second layer", start=True)


def fig8(context: Results) -> Figure:
    """Figure 8: second-layer maps of models trained on prefixes, on a prefix as long as the training data."""
    title = "Attention on a longer prefix, second layer"
    return maps(context, FIGURE_8, title, LONG_PROBE, start=True, cell=LONG_CELL)


def fig9(context: Results) -> Figure:
    """Figure 9: maps of models with a minimal first layer that were trained on prefixes."""
    return maps(context, FIGURE_9, "Attention of minimal-first-layer models trained on prefixes", start=True)


def prefix_variation(context: Results) -> Figure:
    """Variation of models trained on prefixes, for every reading of what the text leaves open."""
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("causal"), pl.col("run").is_in(list(PREFIX_RUNS)), head=0
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
            "interval": group["interval"][0] if group.height == 1 else None,
        }
        for (run, probe, start), group in table.sort("run", "probe_split", "start_included").group_by(
            "run", "probe_split", "start_included", maintain_order=True
        )
    ]
    numbers = dict.fromkeys(("value", "lo", "hi", "random", "published"), pl.Float64)
    schema = dict.fromkeys(("model", "loss", "where", "interval"), pl.String) | numbers | {"n": pl.Int32}
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
        ours.mark_point(filled=True, size=55, opacity=1, clip=True).encode(
            x=x, shape=shape, tooltip=["model:N", "where:N", "value:Q", "n:Q", "interval:N"]
        ),
        alt.Chart(data)
        .mark_rule(color=charts.INK, strokeDash=[5, 3])
        .encode(x=alt.X("mean(published):Q", title=LOG_TITLE)),
    )
    panels = layers.properties(width=400, height=alt.Step(26, **{"for": "position"})).facet(
        alt.Facet("model:N", title=None, header=alt.Header(labelFontWeight="bold", labelAnchor="start")), columns=1
    )
    counted = data.group_by("model").agg(pl.col("n").unique().sort().cast(pl.String).str.join(" to ")).sort("model")
    title = alt.TitleParams(
        "Variation of models trained on prefixes, reading by reading",
        subtitle=[
            "Dashed: published, on a sentence that is not stated; grey: random causal maps of the same size",
            "Bars: interval over models (jackknife), where the probe is one sentence (D5 is 40)",
            f"Models per point: {', '.join(f'{model} {n}' for model, n in counted.iter_rows())}",
        ],
    )
    summary = "; ".join(
        f"{row['model']}, loss at {row['loss']}, {row['where']}: {number(row['value'])}"
        for row in data.iter_rows(named=True)
    )
    return panels.properties(title=title, description=f"Attention variation of prefix-trained models. {summary}."), data


def fig10(context: Results) -> Figure:
    """Figure 10: balance violation against accuracy at length, for models trained on prefixes."""
    return scatter(context, PREFIX, "trained on prefixes")


def families(context: Results) -> Figure:
    """Mean weight of last-layer maps on the current and on the first position of D4, one point per model trained on
    prefixes (appendix D.2 tells of two families)."""
    conventions = {False: "start token omitted", True: "start token included"}
    data = context.table("families").select(
        pl.col("start_included").replace_strict(conventions).alias("convention"),
        pl.col("run").replace_strict({run: ", loss at ".join(PREFIX_RUNS[run]) for run in FAMILY_RUNS}).alias("model"),
        *("replica", "current", "first", "family"),
    )
    distances = context.table("family_distances").filter(run="all")
    names = [", loss at ".join(PREFIX_RUNS[run]) for run in FAMILY_RUNS]
    colour = alt.Color(
        "model:N",
        title=None,
        scale=alt.Scale(domain=names, range=[charts.BLUE, charts.VERMILLION, charts.SKY, charts.ORANGE]),
        legend=alt.Legend(orient="bottom", columns=2, labelLimit=300),
    )
    panels, summaries = [], []
    for start, convention in conventions.items():
        title = []
        for row in distances.filter(start_included=start).iter_rows(named=True):
            title = [
                f"variation within a family {number(row['within'])}, between {number(row['between'])}",
                f"{row['n_first']} of {row['n_models']} at the first position; bimodality {number(row['bimodality'])}",
            ]
            summaries.append(f"{convention}: {', '.join(title)}")
        rows = data.filter(convention=convention)
        axis = alt.Axis(values=charts.UNIT)
        unit = alt.Scale(domain=[0, 1])
        points = alt.Chart(rows).mark_point(filled=True, size=55, opacity=0.8)
        points = points.encode(
            x=alt.X("current:Q", title="mean weight on the current position", scale=unit, axis=axis),
            y=alt.Y("first:Q", title="mean weight on the first position", scale=unit, axis=axis),
            color=colour,
        )
        ends = pl.DataFrame({"at": [0.0, 1.0]})
        equal = alt.Chart(ends).mark_line(color=charts.GREY, strokeDash=[5, 3]).encode(x="at:Q", y="at:Q")
        head = alt.TitleParams(convention, subtitle=title, fontSize=charts.SIZE, offset=8)
        panels.append(alt.layer(equal, points).properties(width=235, height=235, title=head))
    heading = alt.TitleParams(
        "Do maps of models trained on prefixes fall into two families?",
        subtitle=[
            "Last layer, D4, queries behind the first position; one point per model; dashed: equal weights",
            "Bimodality of the difference of both: 1 for two points, 0.56 for a uniform law, 0.33 for a normal one",
        ],
    )
    words = f"Weight on the current against weight on the first position. {'; '.join(summaries) or 'No model'}."
    return alt.hconcat(*panels, spacing=40).properties(title=heading, description=words), data


def beta_length(context: Results) -> Figure:
    """Balance violation of models with a minimal first layer against the length of the prefixes that they were trained
    on (Theorem 3 bounds it by a constant over the length, at a loss that falls exponentially with it)."""
    table = comparisons.read(context, VIOLATION_BY_LENGTH.values())
    table = table.with_columns(length=pl.Series(list(VIOLATION_BY_LENGTH), dtype=pl.Int32)).drop_nulls("value")
    data = table.select("length", "value", "lo", "hi", "interval", "n").sort("length")
    title = "Balance violation against the length of the training strings"
    if not data.height:
        return charts.empty(title, "no model to show")
    shortest = data.row(0, named=True)
    data = data.with_columns((shortest["value"] * shortest["length"] / pl.col("length")).alias("law"))
    x = alt.X(
        "length:Q",
        title="length of the training prefixes (log scale)",
        scale=alt.Scale(type="log", nice=False, padding=20),
        axis=alt.Axis(values=data["length"].to_list(), grid=False),
    )
    y_title = "balance violation β, mean |S| / P"
    base = alt.Chart(data).encode(x=x)
    layers = [
        base.mark_line(color=charts.GREY, strokeDash=[5, 3]).encode(y=alt.Y("law:Q", title=y_title)),
        base.mark_line(color=charts.BLUE).encode(y=alt.Y("value:Q", title=y_title)),
        base.mark_point(filled=True, opacity=1, size=60, color=charts.BLUE).encode(
            y="value:Q", tooltip=["length:Q", "value:Q", "n:Q", "interval:N"]
        ),
        base.mark_rule(color=charts.BLUE, strokeWidth=1.5).encode(y=alt.Y("lo:Q", title=y_title), y2="hi:Q"),
    ]
    models = ", ".join(map(str, data["n"]))
    subtitle = [
        f"M4, one training for each length; models per point: {models}",
        f"Bars: {table['confidence'][0]:.0%} interval over models ({table['interval'][0]}); dashed: 1/N from the first "
        "point on",
    ]
    listed = "; ".join(f"{row['length']} tokens: {number(row['value'])}" for row in data.iter_rows(named=True))
    chart = alt.layer(*layers).properties(width=330, height=230)
    return chart.properties(title=alt.TitleParams(title, subtitle=subtitle), description=f"{title}. {listed}."), data
