"""Figure 4.3: steps to the larger mode against the coupling, and where each sampler arrives."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.figures.common import logarithmic
from schemas.parallel.tables import GIBBS, INDEPENDENT

PARALLEL = "independent parallel"
# From few masked positions to many: viridis, whose order is seen without its hues
SHADES = ("#bddf26", "#7ad151", "#44bf70", "#22a884", "#21918c", "#2a788e", "#355f8d", "#414487", "#482475", "#440154")
COLOURS = {f"k = {k}": shade for k, shade in enumerate(SHADES, 1)} | {PARALLEL: charts.VERMILLION}


def _named() -> pl.Expr:
    return pl.when(pl.col("sampler") == INDEPENDENT).then(pl.lit(PARALLEL)).otherwise(pl.format("k = {}", "k"))


def steps(context: Results) -> Figure:
    """Figure 4.3, F3: means of the published ten runs, with half a standard deviation, on the exact means."""
    exact = context.table("par_hit_exact").with_columns(name=_named()).filter(pl.col("name").is_in(list(COLOURS)))
    runs = context.table("par_hit_sim").with_columns(name=_named())
    ten = runs.group_by("name", "J").agg(mean=pl.col("steps").mean(), sd=pl.col("steps").std(), runs=pl.len())
    budget = int(exact["budget"][0])
    data = (
        exact.select("name", "sampler", "k", "J", exact="mean_censored")
        .join(ten, on=["name", "J"], how="left")
        .with_columns(
            low=pl.max_horizontal(pl.col("mean") - pl.col("sd") / 2, pl.lit(0.8)),
            high=pl.col("mean") + pl.col("sd") / 2,
        )
        .sort("sampler", "k", "J", descending=[True, False, False])  # the ceiling's line is drawn last
    )
    colour = alt.Color(
        "name:N",
        title=None,
        sort=list(COLOURS),
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="right", symbolOpacity=1),
    )
    y = logarithmic([1.0, float(budget)], f"steps to R_1, at most {budget:,}")
    base = alt.Chart(data).encode(
        x=alt.X("J:Q", title="coupling J", axis=alt.Axis(values=exact["J"].unique().to_list()))
    )
    layers = alt.layer(
        base.mark_line(strokeWidth=1.5).encode(
            y=alt.Y("exact:Q", **y),
            color=colour,
            strokeDash=alt.condition(f"datum.sampler == '{INDEPENDENT}'", alt.value([6, 3]), alt.value([1, 0])),
            detail="name:N",
        ),
        base.mark_rule(strokeWidth=1.5, opacity=0.5, clip=True).encode(y="low:Q", y2="high:Q", color=colour),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            y="mean:Q", color=colour, tooltip=["name", "J", "exact", "mean", "sd", "runs"]
        ),
    )
    never = context.table("par_hit_exact").filter(pl.col("miss_prob") > 0.99, sampler=INDEPENDENT)["J"].min()
    late = context.table("par_hit_cell").filter(sampler=INDEPENDENT).sort("J")
    soon = late.filter(pl.col("reached") == pl.col("runs"))["J"].to_list()
    said = f"from J = {never:g} on" if isinstance(never, float) else "at no J here"
    shown = int(ten["runs"][0])
    most = context.table("par_hit_exact").filter(pl.col("J") == pl.col("J").max(), sampler=GIBBS)
    slow = most.filter(pl.col("miss_prob") > 0.99)["k"].sort().to_list()
    title = alt.TitleParams(
        f"Independent parallel sampling stays away from the mode {said}",
        subtitle=[
            f"At J = {', '.join(f'{J:g}' for J in soon) or 'none'} all of its {late['runs'][0]:,} runs arrive; at the "
            f"largest J k-Gibbs is stuck as well for k = {', '.join(map(str, slow)) or 'none'}",
            f"Points: means of {shown} runs, as published, half a standard deviation to each side; lines: exact means",
        ],
    )
    words = "Mean steps to R_1 against the coupling: " + "; ".join(
        f"{row['name']}, J = {row['J']:g}: {number(row['exact'], 1)}"
        for row in data.filter(pl.col("J").is_in([1.0, 4.0, 6.0])).iter_rows(named=True)
    )
    return layers.properties(width=430, height=320, title=title, description=f"{words}."), data


def reached(context: Results) -> Figure:
    """A map of where a sampler arrives: expected steps of every k and coupling, by the lumped chain."""
    exact = context.table("par_hit_exact")
    budget = int(exact["budget"][0])
    order = [PARALLEL, *[f"k = {k}" for k in sorted(exact.filter(sampler=GIBBS)["k"].unique())]]
    data = exact.select(
        "J",
        "miss_prob",
        steps="mean_censored",
        name=_named(),
        shown=pl.when(pl.col("mean_censored") > 0.995 * budget)
        .then(pl.lit("never"))
        .otherwise(pl.col("mean_censored").round_sig_figs(3).cast(pl.String)),
    ).with_columns(
        pl.when(pl.col("steps") >= 99.5)
        .then(pl.col("steps").round(0).cast(pl.Int64).cast(pl.String))
        .otherwise(pl.col("shown"))
        .alias("number"),
        light=pl.col("steps") < budget**0.6,
    )
    data = data.with_columns(number=pl.when(pl.col("shown") == "never").then(pl.lit("never")).otherwise("number"))
    base = alt.Chart(data).encode(
        x=alt.X("J:O", title="coupling J", axis=alt.Axis(labelAngle=0)), y=alt.Y("name:N", title=None, sort=order)
    )
    colour = alt.Color(
        "steps:Q",
        title="expected steps",
        scale=alt.Scale(type="log", domain=[1, budget], scheme="viridis", reverse=True),
        legend=alt.Legend(values=[1, 10, 100, 1000], format="~s"),
    )
    text = base.mark_text(fontSize=11).encode(
        text="number:N", color=alt.condition("datum.light", alt.value(charts.INK), alt.value("white"))
    )
    cells = base.mark_rect().encode(color=colour)
    c = int(exact["c"][0])
    small = exact.filter((pl.col("J") == pl.col("J").max()) & (pl.col("k") > 0))
    least = min(small.filter(pl.col("miss_prob") < 0.5)["k"].to_list(), default=0)
    title = alt.TitleParams(
        f"At the largest coupling masks of {least} and more positions arrive; the clique has {c}",
        subtitle=[f"Expected steps to R_1, none beyond {budget:,}; ten spins with h = 5, exact by the lumped chain"],
    )
    words = "Expected steps to R_1 by sampler and coupling; at the largest coupling: " + ", ".join(
        f"{row['name']}: {row['number']}" for row in data.filter(pl.col("J") == pl.col("J").max()).iter_rows(named=True)
    )
    return alt.layer(cells, text).properties(width=420, height=280, title=title, description=f"{words}."), data
