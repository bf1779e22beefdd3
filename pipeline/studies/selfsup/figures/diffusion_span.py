"""Recovery and generalisation at equal time spans (E3, E4)."""

from __future__ import annotations

import math

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.comparisons import Comparison
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.diffusion_comparisons import (
    COARSE,
    DEPENDENCE,
    DRIFT,
    DRIFT_CONTROL,
    DRIFT_SPAN,
    FINE,
    GAP_APART,
    GAP_RATE,
    GAP_RATIO,
)
from pipeline.studies.selfsup.figures.common import guide, spanning
from pipeline.studies.selfsup.figures.diffusion_common import BAND, QUARTILES, quartiles, shown, value, with_interval
from schemas.selfsup.diffusions import DRIFT_ERROR

COLOURS = [charts.ORANGE, charts.BLUE, charts.VERMILLION, charts.GREEN]
BESIDE = 1.15  # on an axis of logarithms, so that neither covers the other
PANELS = {"drift_rmse": "error of the drift", "l1": "L1 error of the kernel"}


def _kinds(field: str, title: str, values: list[str]) -> plots.Kinds:
    return plots.kinds(dict(zip(values, COLOURS, strict=False)), field, title=title, shapes=True, columns=4)


@plots.drawn("Errors at equal time spans")
def span(context: Results) -> Figure:
    """Errors of drift and kernel against the interval of observations, at equal time spans."""
    fits = plots.some(context.table("sde_fit"))
    control = context.table("sde_independent").filter(quantity=DRIFT_ERROR).rename({"value": "drift_rmse"})
    spans = [f"{each:g}" for each in fits["T"].unique().sort()]
    apart = f"{spans[-1]}, independent pairs"
    data = pl.concat(
        [
            quartiles(fits, ["T", "eta", "m"], list(PANELS)).with_columns(
                pl.format("{}", pl.col("T").cast(pl.Int64)).alias("span")
            ),
            quartiles(control, ["T", "eta", "m"], ["drift_rmse"]).with_columns(pl.lit(apart).alias("span")),
        ]
    )
    by = _kinds("span", "time span T", [*spans, apart])
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
        f"At T = {DRIFT_SPAN:g}, {COARSE / FINE:g} times as many pairs leave {with_interval(value(context, DRIFT))} "
        f"times the error of the drift; as many independent pairs {with_interval(value(context, DRIFT_CONTROL))}",
        f"Ornstein-Uhlenbeck process, q = π. {BAND} over {fits['seed'].n_unique()} trajectories, thinned; dashes tell "
        "time spans apart",
        f"At T = {longest['T'][0]:g}: {counts[-1]} pairs (left) to {counts[0]} (right)",
        told="Median error of the drift. "
        + plots.tell(data.filter(quantity="drift_rmse"), "T = {span}, eta = {eta:g}: {value:.3g}")
        + ".",
    )


@plots.drawn("The generalisation gap")
def gap(context: Results) -> Figure:
    """The generalisation gap against the time span by interval, and that of as many independent pairs."""
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
    trajectory, independent = (_quotients(context, kind, "T") for kind in (GAP_RATIO, GAP_APART))
    top = math.ceil(max([3.0, *trajectory["hi"].drop_nulls(), *independent["hi"].drop_nulls()]))
    quotient = Axis("value", "Φ at η = 1 over Φ at η = 1/16", domain=[0, top], values=[*range(top + 1)])
    beside = independent.with_columns(pl.col("T") * BESIDE)
    middle = [
        *plots.rule(quotient, 1, "if T alone counted", below=True),
        *plots.points(trajectory, x, quotient, charts.INK, ends=("lo", "hi"), size=65),
        *plots.points(beside, x, quotient, charts.PURPLE, ends=("lo", "hi"), size=65),
    ]
    rates = ", ".join(shown(value(context, comparison)["value"], 2) for comparison in GAP_RATE.values())
    dependence = _quotients(context, DEPENDENCE, "eta")
    ends = [0.8, 1.4, *dependence["lo"].drop_nulls(), *dependence["hi"].drop_nulls()]
    times = Axis("value", "Φ over that of independent pairs", domain=[min(ends), max(ends)])
    interval = plots.listed("eta", "interval η (log)", dependence, log=True)
    right = [
        *plots.rule(times, 1, "as independent pairs", below=True),
        *plots.points(dependence, interval, times, charts.INK, ends=("lo", "hi"), size=65),
    ]
    worth = with_interval(value(context, DEPENDENCE[min(DEPENDENCE)]))
    divided = f"; at η = 1/16 it is {worth} times that of as many independent pairs"
    return plots.figure(
        plots.grid(
            [
                plots.panel(left, "Gap in a finite class", 200, 240, "dashed grey: T^(−1/2)"),
                plots.panel(middle, "16 times as many pairs", 165, 240, "purple: independent pairs"),
                plots.panel(right, "Dependence alone", 150, 240, "mean over all T"),
            ],
            3,
            spacing=16,
        ),
        data,
        f"The generalisation gap falls with slopes {rates} in T{divided}",
        f"{table['n_class'][0]} log-quadratic classifiers. Points: means of {table['seed'].n_unique()} trajectories, "
        "thinned; bars: ± two standard errors; others: 95 % intervals, by the jackknife over trajectories or samples",
        told=f"Mean gap. {plots.tell(data, 'eta = {interval}, T = {T:g}: {value:.3g}')}.",
    )


def _quotients(context: Results, kind: dict[float, Comparison], field: str) -> pl.DataFrame:
    """Return what was measured of comparisons, with the number that belongs to each in a column."""
    rows = comparisons.read(context, kind.values()).with_columns(pl.Series(field, list(kind), dtype=pl.Float64))
    return rows.filter(pl.col("value").is_not_null())
