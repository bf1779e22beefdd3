"""Recovery and generalisation at equal time spans (E3, E4)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.diffusion_comparisons import COARSE, DRIFT, DRIFT_SPAN, FINE, GAP_RATE, GAP_RATIO
from pipeline.studies.selfsup.figures.common import guide, spanning
from pipeline.studies.selfsup.figures.diffusion_common import BAND, QUARTILES, quartiles, shown, value, with_interval

COLOURS = [charts.ORANGE, charts.BLUE, charts.VERMILLION, charts.GREEN]
PANELS = {"drift_rmse": "error of the drift", "l1": "L1 error of the kernel"}


def _kinds(field: str, title: str, values: list[str]) -> plots.Kinds:
    return plots.kinds(dict(zip(values, COLOURS, strict=False)), field, title=title, shapes=True, columns=4)


@plots.drawn("Errors at equal time spans")
def span(context: Results) -> Figure:
    """Errors of drift and kernel against the interval of observations, at equal time spans."""
    fits = plots.some(context.table("sde_fit"))
    data = quartiles(fits, ["T", "eta", "m"], list(PANELS)).with_columns(
        pl.format("{}", pl.col("T").cast(pl.Int64)).alias("span")
    )
    by = _kinds("span", "time span T", [f"{each:g}" for each in fits["T"].unique().sort()])
    x = plots.listed("eta", "interval η (log)", fits, log=True, more={"labelOverlap": True, "grid": False})
    panels = []
    for name, words in PANELS.items():
        rows = data.filter(quantity=name)
        y = spanning("value", words, [*rows["low"], *rows["high"]])
        marks = [
            *plots.lines(rows, x, y, by.joined(), bars=QUARTILES),
            *plots.points(rows, x, y, by, tips=["m"], size=45),
        ]
        panels.append(plots.panel(marks, words.capitalize(), 255, 250))
    longest = fits.filter(T=fits["T"].max())
    counts = longest["m"].unique().sort()
    return plots.figure(
        plots.grid(panels, spacing=22),
        data,
        f"At T = {DRIFT_SPAN:g} the drift from observations every {FINE:g}, {COARSE / FINE:g} times as many pairs, has "
        f"an error {with_interval(value(context, DRIFT))} times that from every {COARSE:g}",
        f"Ornstein-Uhlenbeck process, q = π. {BAND} over {fits['seed'].n_unique()} trajectories, thinned; dashes tell "
        "time spans apart",
        f"At T = {longest['T'][0]:g}: {counts[-1]} pairs (left) to {counts[0]} (right)",
        told="Median error of the drift. "
        + plots.tell(data.filter(quantity="drift_rmse"), "T = {span}, eta = {eta:g}: {value:.3g}")
        + ".",
    )


@plots.drawn("The generalisation gap")
def gap(context: Results) -> Figure:
    """The generalisation gap against the time span by interval, and the quotient of the widest and finest."""
    table = plots.some(context.table("sde_gap"))
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
    by = _kinds("interval", "interval η", [f"{each}" for each in data["eta"].unique().sort()])
    spans = data["T"].unique().sort().to_list()
    lowest = plots.least(data.filter(T=spans[0])["value"])
    x = spanning("T", "time span T", spans, form="~s")
    y = spanning("value", "mean of Φ", [*data["low"], *data["high"], 0.7 * lowest * (spans[0] / spans[-1]) ** 0.5])
    left = [
        *guide(x, y, spans, -0.5, (spans[0], 0.75 * lowest)),
        *plots.lines(data, x, y, by.joined(), bars=QUARTILES),
        *plots.points(data, x, y, by, tips=["m"], size=45),
    ]
    rows = comparisons.read(context, GAP_RATIO.values()).with_columns(pl.Series("T", list(GAP_RATIO), dtype=pl.Float64))
    rows = rows.filter(pl.col("value").is_not_null())
    quotient = Axis("value", "Φ at η = 1 over Φ at η = 1/16", domain=[0, 5], values=[0, 1, 2, 3, 4])
    right = [
        *plots.rule(quotient, 4, "if pairs were independent"),
        *plots.rule(quotient, 1, "if T alone counted", below=True),
        *plots.points(rows, x, quotient, charts.INK, ends=("lo", "hi"), size=65),
    ]
    rates = ", ".join(shown(value(context, comparison)["value"], 2) for comparison in GAP_RATE.values())
    ratios = rows["value"].to_list()
    between = f"{shown(min(ratios), 2)} to {shown(max(ratios), 2)}" if ratios else "–"
    divided = (
        f"; 16 times as many pairs at one T divide it by {between}, not by 4" if ratios and max(ratios) < 4 else ""
    )
    return plots.figure(
        plots.grid(
            [
                plots.panel(left, "Gap in a finite class", 265, 250, "dashed grey: T^(−1/2)"),
                plots.panel(right, "16 times as many pairs", 215, 250),
            ]
        ),
        data,
        f"The generalisation gap falls with slopes {rates} in T{divided}",
        f"{table['n_class'][0]} log-quadratic classifiers. Points: means of {table['seed'].n_unique()} trajectories, "
        f"thinned; bars: ± two standard errors; {plots.spread(rows, 'right', 'over trajectories')}",
        told=f"Mean gap. {plots.tell(data, 'eta = {interval}, T = {T:g}: {value:.3g}')}.",
    )
