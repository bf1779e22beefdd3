"""Figures 4.1 and 4.2: squared error against sample size, and the control in which all masks are averaged."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.parallel.comparisons import ORDER, STEPS
from pipeline.studies.parallel.figures.common import shades
from pipeline.studies.parallel.names import FLAT, MODES
from schemas.parallel.tables import ALLMASK, DESCENT, FULL

PANEL = (270, 250)


@plots.drawn("Squared error of the target that is nearly flat")
def flat(context: Results) -> Figure:
    """Figure 4.1, F1: the target that is nearly flat."""
    return _errors(context, FLAT)


@plots.drawn("Squared error of the target with two modes")
def modes(context: Results) -> Figure:
    """Figure 4.2, F2: the target with two modes."""
    return _errors(context, MODES)


def _errors(context: Results, target: str) -> Figure:
    """The published form (ten fits by gradient descent, half a standard deviation) beside all repetitions."""
    fits = plots.some(context.table("par_mple_fit").filter(dist_id=target, optimiser=DESCENT))
    ten = fits.group_by("k", "n").agg(error=pl.col("sq_err_sum").mean(), sd=pl.col("sq_err_sum").std(), count=pl.len())
    cells = plots.some(context.table("par_mple_cell").filter(dist_id=target, variant=FULL))
    traces = cells.select("k", "n", trace=pl.col("tr_gamma") / pl.col("n"))
    many = cells.select("k", "n", error="mse", sd="sd", count="repetitions")
    shown = {"few": f"{ten['count'][0]} samples, gradient descent", "many": f"{many['count'][0]:,} samples, Newton"}
    data = (
        pl.concat(
            [ten.with_columns(panel=pl.lit(shown["few"])), many.with_columns(panel=pl.lit(shown["many"]))],
            how="diagonal_relaxed",
        )
        .join(traces, on=["k", "n"], how="left")
        .with_columns(
            masked=pl.col("k").cast(pl.String),
            low=pl.col("error") - pl.col("sd") / 2,
            high=pl.col("error") + pl.col("sd") / 2,
        )
        .with_columns(low=pl.max_horizontal("low", pl.lit(plots.least(many["error"]) / 2)))
        .sort("panel", "k", "n")
    )
    ends = [0.8 * plots.least(data["n"]), 1.25 * plots.most(data["n"])]
    x = Axis("n", "samples n (log scale)", log=True, domain=ends, values=plots.between(ends), form="~s")
    panels: list[plots.Panel] = []
    for name in shown.values():
        rows = data.filter(panel=name)
        title = None if panels else "squared error, sum over parameters (log scale)"
        y = plots.log("error", title or "", [*data["low"], *data["high"]]).but(title=title)
        layers = [
            *plots.lines(rows, x, y.but(field="trace"), shades(), strokeWidth=1, strokeDash=[4, 3]),
            *plots.lines(rows, x, y, shades(), bars=("low", "high"), dots=True, tips=["count", "sd"]),
        ]
        panels.append(plots.panel(layers, name, *PANEL))
    found = comparisons.read(context, [ORDER[target, k] for k, _ in STEPS])
    falls = sum(1 for row in found.iter_rows(named=True) if row["lo"] is not None and row["lo"] > 0)
    last = cells.filter(pl.col("n") == pl.col("n").max()).sort("k")
    ratio = number(last["mse"][0] / last["mse"][-1], 1)
    return plots.figure(
        plots.grid(panels),
        data,
        f"J = {cells['J'][0]:g}: {falls} of {len(STEPS)} steps to one masked position more make the error smaller; "
        f"k = {last['k'][0]} errs {ratio} times as much as k = {last['k'][-1]}",
        f"The last at n = {last['n'][0]:,}. Bars: half a standard deviation to each side; dashed: trace of the "
        f"asymptotic covariance over n. {ten['count'][0]} samples are as many as published",
        told=f"At n = {last['n'][0]:,}: {plots.tell(last, 'k = {k}: {mse:.5f}', ', ')}.",
    )


@plots.drawn("Squared error, averaged over all masks")
def allmask(context: Results) -> Figure:
    """The control: n times the squared error where each sample has one mask, and where it is averaged over all."""
    names = {FULL: "one mask for each sample", ALLMASK: "all masks of each sample"}
    cells = plots.some(context.table("par_mple_cell").filter(pl.col("variant").is_in(list(names))))
    most = max(cells["n"].to_list())
    data = cells.filter(n=most).select(
        "J",
        "k",
        "variant",
        what=pl.col("variant").replace(names),
        panel=pl.format("J = {}", "J"),
        scaled=pl.col("mse") * pl.col("n"),
        error=2 * pl.col("sd") * pl.col("n") / pl.col("repetitions").sqrt(),
        trace="tr_gamma",
    )
    data = data.with_columns(low=pl.col("scaled") - pl.col("error"), high=pl.col("scaled") + pl.col("error")).sort(
        "J", "variant", "k"
    )
    by = plots.kinds(
        dict(zip(names.values(), (charts.VERMILLION, charts.BLUE), strict=True)), "what", dashes=False, shapes=True
    )
    x = Axis("k", "masked positions k", "O")
    panels: list[plots.Panel] = []
    for name, rows in plots.split(data, "panel"):
        y = Axis("scaled", None if panels else "n times the squared error", domain=[0, 1.05 * plots.most(data["high"])])
        layers = [
            *plots.lines(rows, x, y.but(field="trace"), by.joined(), strokeWidth=1, strokeDash=[4, 3]),
            *plots.points(rows, x, y, by, ends=("low", "high"), size=70),
        ]
        panels.append(plots.panel(layers, name, *PANEL))
    ends = data.filter(pl.col("k").is_in([1, 4])).pivot("k", index=["J", "variant"], values="scaled")
    ratio = {variant: max((part["1"] / part["4"]).to_list()) for (variant,), part in ends.group_by("variant")}
    return plots.figure(
        plots.grid(panels),
        data,
        f"Averaged over all masks, k = 1 errs {number(ratio[ALLMASK])} times as much as k = 4; with one mask for each "
        f"sample {number(ratio[FULL])} times",
        f"The larger of both targets, n = {most:,}. Points: means of {cells['repetitions'][0]:,} samples, bars: two "
        "standard errors to each side; dashed: trace of the covariance",
        told=f"n times the squared error: {plots.tell(data, '{panel}, {what}, k = {k}: {scaled:.2f}')}.",
    )
