"""Descent on samples of two Gaussians (Liu 2024, Figure 4.2), at the step sizes that three rules select and at all."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import (
    CROSS,
    METHOD_COLOURS,
    METHOD_DASHES,
    largest,
    lines_legend,
    log_axis,
    method_name,
    panel_title,
)
from pipeline.studies.nce.names import METHODS, SAMPLES
from schemas.nce.tables import S_BEST, S_DIST, S_LOSS

RULES = {S_DIST: "η by smallest distance", S_BEST: "η by lowest loss met", S_LOSS: "η by loss at the end"}
DIMENSIONS = {1: "One dimension", 16: "16 dimensions"}
VISIBLE = 0.02  # relative change from which rounding is shown
FAINT_EVERY = 5  # updates between two points of the lines that are not selected
KEY = ["dim", "method", "eta", "step"]


def fig42(context: Results) -> Figure:
    """Figure 4.2: smallest distance so far against updates; all step sizes faint, the selected ones strong."""
    runs = _shown(context.table("gauss_runs")).with_columns(method_name())
    seeds = runs["seed"].n_unique()
    data = (
        runs.group_by(KEY)
        .agg(
            pl.col("min_dist").mean().alias("mean"),
            pl.col("min_dist").std().fill_null(0).alias("sd"),
            pl.col("diverged").any(),
        )
        .sort(KEY)
        .with_columns(low=pl.col("mean") - pl.col("sd"), high=pl.col("mean") + pl.col("sd"))
    )
    chosen = _shown(context.table("gauss_selected")).with_columns(method_name())
    rows = [
        alt.hconcat(*(_panel(data, chosen.filter(rule=rule), dim, rule) for dim in DIMENSIONS), spacing=24)
        for rule in RULES
    ]
    title = alt.TitleParams(
        "Smallest distance to τ* so far against updates, on fresh samples",
        subtitle=[
            f"Strong: the selected step size, mean ± standard deviation of {seeds} seeds; faint: all other step sizes"
        ],
    )
    summary = "; ".join(
        f"{row['dim']}-d, {row['method']}, {RULES[row['rule']]}: η = {row['eta']:g}, {row['mean_min_dist']:.3g}"
        for row in chosen.sort("dim", "rule", "method").iter_rows(named=True)
    )
    words = f"Smallest distance to the optimum against updates for four methods. {summary}."
    return alt.vconcat(*rows, spacing=18).properties(title=title, description=words), data


def _shown(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with ``SAMPLES`` per update, or with the fewest where there are none such."""
    counts = frame["n"].unique().sort().to_list()
    return frame.filter(n=SAMPLES if SAMPLES in counts or not counts else counts[0])


def _colour(legend: alt.Legend | None) -> alt.Color:
    scale = alt.Scale(domain=list(METHOD_COLOURS), range=list(METHOD_COLOURS.values()))
    return alt.Color("method:N", title=None, scale=scale, legend=legend)


def _dash(legend: alt.Legend | None) -> alt.StrokeDash:
    scale = alt.Scale(domain=list(METHOD_DASHES), range=list(METHOD_DASHES.values()))
    return alt.StrokeDash("method:N", title=None, scale=scale, legend=legend)


def _panel(data: pl.DataFrame, chosen: pl.DataFrame, dim: int, rule: str) -> Any:
    etas = dict(chosen.filter(dim=dim).select("method", "eta").iter_rows())
    rows = data.filter(dim=dim)
    taken = pl.DataFrame(
        {"method": list(etas), "eta": list(etas.values())}, schema={"method": pl.String, "eta": pl.Float64}
    )
    strong = rows.join(taken, on=["method", "eta"])
    # A path that diverges keeps the smallest distance that it had, so it is a line like the others.
    faint = rows.filter(pl.col("step") % FAINT_EVERY == 0).with_columns(
        pl.format("{} {}", "method", "eta").alias("line")
    )
    top = 1.03 * largest(rows["mean"])
    x = alt.X("step:Q", title="updates", axis=alt.Axis(tickCount=5, grid=False))
    scale = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(tickCount=5)
    named = "smallest distance |τ − τ*|" if dim == 1 else None
    y = alt.Y("mean:Q", title=named, scale=scale, axis=axis)
    colour, dash = _colour(lines_legend()), _dash(lines_legend())
    lines = [
        ", ".join(f"{method} {etas[method]:g}" for method in part if method in etas)
        for part in (list(METHODS)[:2], list(METHODS)[2:])
    ]
    layers = [
        alt.Chart(faint).mark_line(strokeWidth=1, opacity=0.3).encode(x, y, colour, dash, detail="line:N"),
        alt.Chart(strong)
        .mark_area(opacity=0.25, clip=True)
        .encode(x, alt.Y("low:Q", scale=scale, title=named), alt.Y2("high:Q"), colour),
        alt.Chart(strong).mark_line(strokeWidth=2.5).encode(x, y, colour, dash),
    ]
    title = panel_title(f"{DIMENSIONS[dim]}: {RULES[rule]}", [f"η: {lines[0]},", f"    {lines[1]}"])
    return alt.layer(*layers).properties(width=256, height=175, title=title)


def step_sizes(context: Results) -> Figure:
    """Smallest distance within all updates against the step size: lines, mean over seeds, bars ± one standard
    deviation; squares (1-d), the population loss; × (1-d), NCE-NGD with sigmoid(−ψ) computed as
    1 − sigmoid(ψ), where that moves the mean. Step sizes at which a seed diverges are left out."""
    final = _shown(context.table("gauss_final")).with_columns(method_name())
    data = (
        final.group_by("dim", "method", "eta")
        .agg(
            pl.col("min_dist").mean().alias("mean"),
            pl.col("min_dist").std().fill_null(0).alias("sd"),
            pl.col("diverged").any(),
        )
        .sort("dim", "method", "eta")
        .with_columns(low=pl.col("mean") - pl.col("sd"), high=pl.col("mean") + pl.col("sd"))
    )
    population = context.table("gauss_population").filter(~pl.col("diverged")).with_columns(method_name())
    rounded = (
        _shown(context.table("gauss_precision"))
        .group_by("eta", "sigmoid")
        .agg(pl.col("min_dist").mean())
        .pivot("sigmoid", index="eta", values="min_dist")
        .filter((pl.col("rounded") / pl.col("exact") - 1).abs() > VISIBLE)
        .select("eta", pl.col("rounded").alias("min_dist"), pl.lit("NCE-NGD").alias("method"))
    )
    panels = []
    tried = [*data["eta"], *population["eta"]] or [1.0]
    for dim, name in DIMENSIONS.items():
        rows = data.filter(~pl.col("diverged"), dim=dim)
        scale = alt.Scale(type="log", domain=[0.8, 200 if dim == 1 else 30], nice=False)
        axis = alt.Axis(values=[1, 2, 5, 10, 20, 50, 100], format="~g")
        x = alt.X("eta:Q", title="step size η (log)", **log_axis([0.8 * min(tried), 1.5 * max(tried)]))
        named = "smallest distance (log)" if dim == 1 else None
        y = alt.Y("mean:Q", title=named, scale=scale, axis=axis)
        colour, dash = _colour(lines_legend()), _dash(lines_legend())
        low, high = alt.Y("low:Q", scale=scale, title=named), alt.Y2("high:Q")
        base = alt.Chart(rows)
        layers: list[alt.Chart] = [
            base.mark_rule(strokeWidth=1.5, clip=True).encode(x, low, high, colour),
            base.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=35)).encode(x, y, colour, dash),
        ]
        if dim == 1:
            hollow = alt.Y("min_dist:Q", scale=scale, axis=axis, title=named)
            marks = alt.Chart(population).mark_point(filled=False, shape="square", size=70)
            crosses = alt.Chart(rounded).mark_point(filled=False, shape=CROSS, size=250, strokeWidth=2, opacity=1)
            layers += [chart.encode(x, hollow, colour) for chart in (marks, crosses)]
        panels.append(alt.layer(*layers).properties(width=262, height=270, title=panel_title(name)))
    updates = int(largest(context.table("gauss_runs")["step"], 0))
    title = alt.TitleParams(
        f"Smallest distance to τ* within {updates} updates, by step size",
        subtitle=[
            "Mean ± standard deviation over seeds; step sizes at which a seed diverges are left out",
            "1-d: squares without samples (population loss); × NCE-NGD with sigmoid(−ψ) as 1 − sigmoid(ψ)",
        ],
    )
    summary = "; ".join(
        f"{row['dim']}-d, {row['method']}, η = {row['eta']:g}: {row['mean']:.3g}" for row in data.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=24).properties(title=title, description=f"Smallest distances. {summary}.")
    return chart, data
