"""Models trained on prefixes (Wen et al. 2023, Figures 7 to 10, appendix D.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.dyck.comparisons import VIOLATION_BY_LENGTH
from pipeline.studies.dyck.figures.common import ENDS, NO_MODEL, VARIATION, maps, scatter
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
LONG_CELL = 10  # pixels of one attention weight

CLOSING, ALL = "closing brackets", "all positions"
PREFIX_RUNS = {
    PREFIX_STANDARD: ("M1", CLOSING),
    PREFIX_STANDARD_ALL: ("M1", ALL),
    PREFIX_LINEAR: ("M2", CLOSING),
    PREFIX_LINEAR_ALL: ("M2", ALL),
    PREFIX_MINIMAL: ("M4", CLOSING),
}
PROBES = {PROBE: "D4", TABLE_1_PROBE: "D5", LONG_PROBE: "a prefix of 28"}
LOSSES = Kinds("loss", {CLOSING: Look(charts.BLUE), ALL: Look(charts.VERMILLION, shape="triangle-up")}, title="loss at")
NAMES = {run: ", loss at ".join(PREFIX_RUNS[run]) for run in FAMILY_RUNS}
BY_MODEL = Kinds(
    "model",
    {
        NAMES[run]: Look(LOSSES.looks[loss].colour, shape=shape)
        for run, shape in zip(FAMILY_RUNS, ("circle", "circle", "square", "square"), strict=True)
        for loss in PREFIX_RUNS[run][1:]
    },
    columns=2,
)


@plots.drawn("Attention of standard models trained on prefixes")
def fig7(context: Results) -> Figure:
    """Figure 7: second-layer maps of standard models trained on prefixes, two setups with two
    initialisations each."""
    return maps(context, FIGURE_7, "Standard models trained on prefixes, second layer", start=True)


@plots.drawn("Attention on a longer prefix")
def fig8(context: Results) -> Figure:
    """Figure 8: second-layer maps of models trained on prefixes, on a prefix as long as the training data."""
    return maps(context, FIGURE_8, "On a longer prefix, second layer", LONG_PROBE, start=True, cell=LONG_CELL)


@plots.drawn("Attention of minimal-first-layer models trained on prefixes")
def fig9(context: Results) -> Figure:
    """Figure 9: maps of models with a minimal first layer that were trained on prefixes."""
    return maps(context, FIGURE_9, "Models with a minimal first layer, trained on prefixes", start=True)


@plots.drawn("Variation of models trained on prefixes, reading by reading")
def prefix_variation(context: Results) -> Figure:
    """Variation of models trained on prefixes, for every reading of what the text leaves open."""
    table = context.table("variation").filter(
        pl.col("last_layer"), pl.col("causal"), pl.col("run").is_in(list(PREFIX_RUNS)), head=0
    )
    alone = pl.len() == 1  # of several sentences intervals are not averaged
    read = ("run", "probe_split", "start_included")
    groups = (
        table.sort(read)
        .group_by(read, maintain_order=True)
        .agg(
            value=pl.col("variation_mean").mean(),
            lo=pl.when(alone).then(pl.col("ci_lo").mean()),
            hi=pl.when(alone).then(pl.col("ci_hi").mean()),
            random=pl.col("random_baseline").first(),
            n=pl.col("n_models").first().cast(pl.Int32),
            interval=pl.when(alone).then(pl.col("interval").first()),
        )
    )
    model, loss = ({run: names[i] for run, names in PREFIX_RUNS.items()} for i in (0, 1))
    word = pl.when("start_included").then(pl.lit("included")).otherwise(pl.lit("omitted"))
    data = plots.some(groups, NO_MODEL).select(
        pl.col("run").replace_strict(model, return_dtype=pl.String).alias("model"),
        pl.col("run").replace_strict(loss, return_dtype=pl.String).alias("loss"),
        pl.format("{}, start token {}", pl.col("probe_split").replace_strict(PROBES), word).alias("where"),
        *("value", "lo", "hi", "random"),
        published=pl.col("run").replace_strict({run: PUBLISHED_PREFIX_VARIATION[name] for run, name in model.items()}),
        n="n",
        interval="interval",
    )
    ends = pl.concat([data[name] for name in ("value", "lo", "random", "published")])
    x = plots.log("value", f"{VARIATION} (log scale)", ends, plots.least(data["value"]) / 5)
    order = [f"{name}, start token {word}" for name in PROBES.values() for word in ("omitted", "included")]
    y = Axis("where", None, "N", order=order)
    panels = []
    for name, rows in plots.split(data.sort("model", maintain_order=True), "model"):
        ticks = alt.Chart(rows).mark_tick(color=charts.GREY, thickness=2, size=14)
        marks = plots.points(rows, x, y, LOSSES, ends=ENDS, apart="loss", size=50)
        published = plots.rule(x, rows["published"][0], upright=True, colour=charts.INK, dash=plots.DASHED)
        layers = [ticks.encode(x=x.at(alt.X, "random"), y=y.at(alt.Y)), *published, *marks]
        title = f"{name}, {plots.count(rows['n'], 'model')} a point"
        panels.append(plots.panel(layers, title, 400, 26 * rows["where"].n_unique()))
    known = data.drop_nulls(ENDS)
    inside = known.group_by("model").agg(pl.col("published").is_between("lo", "hi").sum(), n=pl.len()).sort("model")
    return plots.figure(
        plots.grid(panels, 1),
        data,
        "The published variation lies within intervals of models trained on prefixes: "
        + plots.tell(inside, "{published} of {n} ({model})", ", "),
        "Dashed: published, on a sentence that is not stated; grey: random causal maps of the same size",
        "Bars: intervals over all models of a point (jackknife), where the probe is one sentence (D5 is several), cut "
        "off at the ends of the axis",
        told=plots.tell(data, "{model}, loss at {loss}, {where}: {value:.2f}") + ".",
    )


@plots.drawn("Balance violation and accuracy at length, trained on prefixes")
def fig10(context: Results) -> Figure:
    """Figure 10: balance violation against accuracy at length, for models trained on prefixes."""
    return scatter(context, PREFIX, "trained on prefixes")


@plots.drawn("Two families of maps of models trained on prefixes")
def families(context: Results) -> Figure:
    """Mean weight of last-layer maps on the current and on the first position of D4, one point per model trained on
    prefixes (appendix D.2 tells of two families)."""
    conventions = {False: "start token omitted", True: "start token included"}
    data = plots.some(context.table("families"), NO_MODEL).select(
        pl.col("start_included").replace_strict(conventions).alias("convention"),
        pl.col("run").replace_strict(NAMES).alias("model"),
        *("replica", "current", "first", "family"),
    )
    distances = context.table("family_distances").filter(run="all")
    distances = distances.with_columns(convention=pl.col("start_included").replace_strict(conventions))
    x = plots.share("current", "mean weight on the current position")
    y = plots.share("first", "mean weight on the first position")
    ends = pl.DataFrame({"current": [0.0, 1.0], "first": [0.0, 1.0]})
    equal = plots.lines(ends, x, y, charts.GREY, strokeDash=plots.DASHED, strokeWidth=1.5)
    by = BY_MODEL.among(data["model"])
    split = "variation within a family {within:.2f}, between {between:.2f}"
    side = "{n_first} of {n_models} at the first position; bimodality {bimodality:.2f}"
    panels = [
        plots.panel(
            [*equal, *plots.points(rows, x, y, by, tips=["replica"], opacity=0.85)],
            name,
            240,
            240,
            plots.tell(distances.filter(convention=name), f"{split}; {side}"),
        )
        for name, rows in plots.split(data.sort("convention", descending=True, maintain_order=True), "convention")
    ]
    return plots.figure(
        plots.grid(panels, spacing=40),
        data,
        "Maps of models trained on prefixes that look more at the first position than at the current one: "
        + plots.tell(distances, "{n_first} of {n_models} ({convention})", ", "),
        "Last layer, D4, queries behind the first position; a point is one of "
        f"{plots.count(distances['n_models'], 'model')}; dashed: equal weights",
        "Bimodality of the difference of both: 1 for two points, 0.56 for a uniform law, 0.33 for a normal one",
        told=plots.tell(distances, f"{{convention}}: {split}; {side}") + ".",
    )


@plots.drawn("Balance violation against the length of the training strings")
def beta_length(context: Results) -> Figure:
    """Balance violation of models with a minimal first layer against the length of the prefixes that they were trained
    on (Theorem 3 bounds it by a constant over the length, at a loss that falls exponentially with it)."""
    table = comparisons.read(context, VIOLATION_BY_LENGTH.values())
    table = table.with_columns(length=pl.Series(list(VIOLATION_BY_LENGTH), dtype=pl.Int32)).drop_nulls("value")
    data = plots.some(table, NO_MODEL).select("length", "value", "lo", "hi", "interval", "n").sort("length")
    shortest = data.row(0, named=True)
    data = data.with_columns((shortest["value"] * shortest["length"] / pl.col("length")).alias("law"))
    x = plots.listed("length", "length of the training prefixes (log scale)", data, log=True, pad=20)
    y = Axis("value", "balance violation β, mean |S| / P", zero=True)
    law = plots.lines(data, x, y.but(field="law"), charts.GREY, strokeDash=plots.DASHED)
    return plots.figure(
        [*law, *plots.lines(data, x, y, bars=ENDS, dots=True)],
        data,
        "Balance violation of M4 trained on prefixes: " + plots.tell(data, "{value:.2f} at {length} tokens", ", "),
        f"One training for each length, {plots.count(data['n'], 'model')} a point; {plots.spread(table, 'bars')}; "
        "dashed: 1/N from the first point on",
        told=plots.tell(data, "{length} tokens: {value:.2f}") + ".",
        width=400,
        height=230,
    )
