"""Recovery and generalisation at equal time spans (E3, E4)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.diffusion_comparisons import COARSE, DRIFT, DRIFT_SPAN, FINE, GAP_RATE, GAP_RATIO
from pipeline.studies.selfsup.figures.diffusion_common import (
    BAND,
    guide,
    log_axis,
    panel_title,
    quartiles,
    shown,
    value,
    with_interval,
)

COLOURS = [charts.ORANGE, charts.BLUE, charts.VERMILLION, charts.GREEN]
PANELS = {"drift_rmse": "error of the drift", "l1": "L1 error of the kernel"}
SHAPES = ["circle", "square", "triangle-up", "diamond"]


def _colour(field: str, title: str, values: list[str]) -> alt.Color:
    legend = alt.Legend(orient="bottom")
    scale = alt.Scale(domain=values, range=COLOURS[: len(values)])
    return alt.Color(field, title=title, sort=values, legend=legend, scale=scale)


def _shape(field: str, title: str, values: list[str]) -> alt.Shape:
    """Return a shape for each value, which points have and lines do not: theirs would be drawn at one end."""
    legend = alt.Legend(orient="bottom")
    scale = alt.Scale(domain=values, range=SHAPES[: len(values)])
    return alt.Shape(field, title=title, sort=values, legend=legend, scale=scale)


def span(context: Results) -> Figure:
    """Errors of drift and kernel against the interval of observations, at equal time spans."""
    fits = context.table("sde_fit")
    data = quartiles(fits, ["T", "eta", "m"], list(PANELS)).with_columns(
        pl.format("{}", pl.col("T").cast(pl.Int64)).alias("span")
    )
    spans = [f"{each:g}" for each in sorted(set(fits["T"].to_list()))]
    etas = sorted(set(fits["eta"].to_list()))
    panels = []
    for name, words in PANELS.items():
        rows = data.filter(quantity=name)
        axis = log_axis([*rows["low"], *rows["high"]], format="~g")
        scale: dict[str, Any] = {
            "scale": alt.Scale(type="log", domain=[etas[0] / 1.2, etas[-1] * 1.2], nice=False),
            "axis": alt.Axis(values=etas, format="~g", grid=False, labelOverlap=True),
        }
        base = alt.Chart(rows).encode(
            alt.X("eta:Q", title="interval η (log)", **scale), _colour("span:N", "time span T", spans)
        )
        y = alt.Y("value:Q", title=f"{words} (log)", **axis)
        panels.append(
            alt.layer(
                base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
                    y=alt.Y("low:Q", title=f"{words} (log)", **axis), y2="high:Q"
                ),
                base.mark_line(strokeWidth=2).encode(y=y),
                base.mark_point(filled=True, size=50, opacity=1).encode(
                    y=y, shape=_shape("span:N", "time span T", spans), tooltip=["span", "eta", "m", "value", "n"]
                ),
            ).properties(width=255, height=250, title=panel_title(words.capitalize()))
        )
    row = value(context, DRIFT)
    longest = fits.filter(T=fits["T"].max())
    counts = sorted(set(longest["m"].to_list()))
    title = alt.TitleParams(
        [
            f"At T = {DRIFT_SPAN:g} the drift from observations every {FINE:g}, {COARSE / FINE:g} times as many pairs,",
            f"has an error {with_interval(row)} times that from every {COARSE:g}",
        ],
        subtitle=[
            f"Ornstein-Uhlenbeck process, q = π; {fits['seed'].n_unique()} trajectories, thinned. {BAND}",
            f"At T = {longest['T'][0]:g}: {counts[-1]} pairs (left) to {counts[0]} (right)",
        ],
    )
    words = "; ".join(
        f"T = {row['span']}, eta = {row['eta']:g}: {row['value']:.3g}"
        for row in data.filter(quantity="drift_rmse").iter_rows(named=True)
    )
    return alt.hconcat(*panels, spacing=22).properties(
        title=title, description=f"Median error of the drift. {words}."
    ), data


def gap(context: Results) -> Figure:
    """The generalisation gap against the time span by interval, and the quotient of the widest and finest."""
    table = context.table("sde_gap")
    data = (
        table.group_by("eta", "T", "m")
        .agg(
            pl.col("phi").mean().alias("value"),
            (pl.col("phi").std() / pl.len().sqrt()).fill_null(0).alias("se"),
            pl.len().alias("n"),
        )
        .sort("eta", "T")
        .with_columns(
            low=pl.col("value") - 2 * pl.col("se"),
            high=pl.col("value") + 2 * pl.col("se"),
            interval=pl.format("{}", pl.col("eta")),
        )
    )
    etas = [f"{each}" for each in sorted(set(data["eta"].to_list()))]
    spans = sorted(set(data["T"].to_list()))
    lowest = float(data.filter(T=spans[0])["value"].to_numpy().min())
    axis = log_axis([*data["low"], *data["high"], 0.7 * lowest * (spans[0] / spans[-1]) ** 0.5], format="~g")
    scale = log_axis(spans, room=1.3, format="~s")
    base = alt.Chart(data).encode(
        alt.X("T:Q", title="time span T (log)", **scale), _colour("interval:N", "interval η", etas)
    )
    y = alt.Y("value:Q", title="mean of Φ (log)", **axis)
    left = alt.layer(
        guide(spans, -0.5, (spans[0], 0.75 * lowest)).encode(x=alt.X("x:Q"), y=alt.Y("y:Q")),
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title="mean of Φ (log)", **axis), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=y),
        base.mark_point(filled=True, size=50, opacity=1).encode(
            y=y, shape=_shape("interval:N", "interval η", etas), tooltip=["interval", "T", "m", "value", "n"]
        ),
    ).properties(width=265, height=250, title=panel_title("Gap in a finite class", "dashed: T^(−1/2)"))
    rows = comparisons.read(context, GAP_RATIO.values()).with_columns(pl.Series("T", list(GAP_RATIO), dtype=pl.Float64))
    rows = rows.filter(pl.col("value").is_not_null())
    domain = alt.Scale(domain=[0, 5], nice=False)
    x = alt.X("T:Q", title="time span T (log)", **scale)
    levels = pl.DataFrame({"at": [4.0, 1.0], "what": ["if pairs were independent", "if T alone counted"]})
    quotient = "Φ at η = 1 over Φ at η = 1/16"
    right = alt.layer(
        alt.Chart(levels)
        .mark_rule(color=charts.GREY, strokeDash=[6, 4], strokeWidth=1.5)
        .encode(alt.Y("at:Q", scale=domain, title=quotient)),
        alt.Chart(levels)
        .mark_text(align="left", dx=4, dy=-8, color=charts.INK)
        .encode(alt.Y("at:Q", scale=domain, title=quotient), text="what:N", x=alt.value(0)),
        alt.Chart(rows).mark_rule(strokeWidth=2).encode(x, alt.Y("lo:Q", scale=domain, title=quotient), alt.Y2("hi:Q")),
        alt.Chart(rows)
        .mark_point(filled=True, size=70, color=charts.BLACK, opacity=1)
        .encode(x, alt.Y("value:Q", scale=domain, title=quotient)),
    ).properties(width=215, height=250, title=panel_title("16 times as many pairs"))
    rates = ", ".join(shown(value(context, comparison)["value"], 2) for comparison in GAP_RATE.values())
    ratios = [number for number in rows["value"].to_list() if number is not None]
    between = f"{shown(min(ratios), 2)} to {shown(max(ratios), 2)}" if ratios else "–"
    title = alt.TitleParams(
        [
            f"The generalisation gap falls with slopes {rates} in T;",
            f"16 times as many pairs at one T divide it by {between}, not by 4",
        ]
        if ratios and max(ratios) < 4
        else [f"The generalisation gap falls with slopes {rates} in T"],
        subtitle=[
            f"{table['n_class'][0]} log-quadratic classifiers, {table['seed'].n_unique()} trajectories, thinned",
            "Bars: ± two standard errors, on the right 95 %",
        ],
    )
    words = "; ".join(
        f"eta = {row['interval']}, T = {row['T']:g}: {row['value']:.3g}" for row in data.iter_rows(named=True)
    )
    chart = alt.hconcat(left, right, spacing=26).properties(title=title, description=f"Mean gap. {words}.")
    return chart, data
