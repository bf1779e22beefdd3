"""Figures 4.1 and 4.2: squared error against sample size, and the control in which all masks are averaged."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.comparisons import ORDER, STEPS
from pipeline.studies.parallel.figures.common import logarithmic, shades
from pipeline.studies.parallel.names import FLAT, MODES
from schemas.parallel.tables import ALLMASK, DESCENT, FULL

PANEL = {"width": 270, "height": 250}


def flat(context: Results) -> Figure:
    """Figure 4.1, F1: the target that is nearly flat."""
    return _errors(context, FLAT)


def modes(context: Results) -> Figure:
    """Figure 4.2, F2: the target with two modes."""
    return _errors(context, MODES)


def _errors(context: Results, target: str) -> Figure:
    """The published form (ten fits by gradient descent, half a standard deviation) beside all repetitions."""
    fits = context.table("par_mple_fit").filter(dist_id=target, optimiser=DESCENT)
    ten = fits.group_by("k", "n").agg(error=pl.col("sq_err_sum").mean(), sd=pl.col("sq_err_sum").std(), count=pl.len())
    cells = context.table("par_mple_cell").filter(dist_id=target, variant=FULL)
    many = cells.select("k", "n", error="mse", sd="sd", count="repetitions", trace="tr_gamma")
    shown = {"few": f"{ten['count'][0]} samples, gradient descent", "many": f"{many['count'][0]:,} samples, Newton"}
    traces = many.select("k", "n", pl.col("trace") / pl.col("n"))
    data = (
        pl.concat(
            [
                ten.with_columns(panel=pl.lit(shown["few"])).join(traces, on=["k", "n"], how="left"),
                many.with_columns(panel=pl.lit(shown["many"]), trace=pl.col("trace") / pl.col("n")),
            ],
            how="diagonal_relaxed",
        )
        .with_columns(
            masked=pl.col("k").cast(pl.String),
            low=(pl.col("error") - pl.col("sd") / 2),
            high=pl.col("error") + pl.col("sd") / 2,
        )
        .sort("panel", "k", "n")
    )
    floor = data["error"].min()
    assert isinstance(floor, float)
    data = data.with_columns(low=pl.max_horizontal("low", pl.lit(floor / 2)))
    y = logarithmic([*data["low"], *data["high"]], "squared error, sum over parameters", format="~g")
    n = logarithmic([float(each) for each in data["n"]], "samples n")
    base = alt.Chart(data).encode(x=alt.X("n:Q", **n), color=shades())
    layers = alt.layer(
        base.mark_line(strokeWidth=1, strokeDash=[4, 3]).encode(y=alt.Y("trace:Q", **y)),
        base.mark_rule(strokeWidth=1.5, opacity=0.5).encode(y="low:Q", y2="high:Q"),
        base.mark_line(point=alt.OverlayMarkDef(size=45, filled=True)).encode(y="error:Q"),
    ).properties(**PANEL)
    chart = layers.facet(column=alt.Column("panel:N", title=None, sort=list(shown.values())))
    found = comparisons.read(context, [ORDER[target, k] for k, _ in STEPS])
    falls = sum(1 for row in found.iter_rows(named=True) if row["lo"] is not None and row["lo"] > 0)
    J, last = float(cells["J"][0]), many.filter(pl.col("n") == pl.col("n").max()).sort("k")
    ratio = last["error"][0] / last["error"][-1]
    said = {len(STEPS): "each masked position more makes the error smaller"}.get(
        falls, f"{falls} of {len(STEPS)} steps of k make the error smaller"
    )
    title = alt.TitleParams(
        f"J = {J:g}: {said}",
        subtitle=[
            f"k = 1 errs {number(ratio, 1)} times as much as k = 4 at n = {last['n'][0]:,}; bars: half a standard "
            "deviation to each side",
            "Dashed: trace of the asymptotic covariance over n. Ten samples are as many as published",
        ],
    )
    words = f"Squared error against samples by masked positions, J = {J:g}; at n = {last['n'][0]:,}: " + ", ".join(
        f"k = {row['k']}: {number(row['error'], 5)}" for row in last.iter_rows(named=True)
    )
    return chart.properties(title=title, description=f"{words}."), data


def allmask(context: Results) -> Figure:
    """The control: n times the squared error where each sample has one mask, and where it is averaged over all."""
    names = {FULL: "one mask for each sample", ALLMASK: "all masks of each sample"}
    cells = context.table("par_mple_cell").filter(pl.col("variant").is_in(list(names)))
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
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=[charts.VERMILLION, charts.BLUE]),
        legend=alt.Legend(orient="bottom"),
    )
    x = alt.X("k:O", title="masked positions k", axis=alt.Axis(labelAngle=0))
    base = alt.Chart(data).encode(x=x, color=colour)
    layers = alt.layer(
        base.mark_line(strokeWidth=1, strokeDash=[4, 3]).encode(
            y=alt.Y("trace:Q", title="n times the squared error", scale=alt.Scale(zero=True))
        ),
        base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(y="scaled:Q", shape=alt.Shape("what:N", legend=None)),
    ).properties(**PANEL)
    ends = data.filter(pl.col("k").is_in([1, 4])).pivot("k", index=["J", "variant"], values="scaled")
    ratio = {variant: max((part["1"] / part["4"]).to_list()) for (variant,), part in ends.group_by("variant")}
    repetitions = cells["repetitions"][0]
    title = alt.TitleParams(
        f"Averaged over all masks, k = 1 errs {number(ratio[ALLMASK])} times as much as k = 4",
        subtitle=[
            f"With one mask for each sample {number(ratio[FULL])} times, the larger of both targets; n = {most:,}",
            f"Points: means of {repetitions:,} samples with two standard errors; dashed: trace of the covariance",
        ],
    )
    words = "n times the squared error by masked positions: " + "; ".join(
        f"{row['panel']}, {row['what']}, k = {row['k']}: {number(row['scaled'])}" for row in data.iter_rows(named=True)
    )
    chart = layers.facet(column=alt.Column("panel:N", title=None))
    return chart.properties(title=title, description=f"{words}."), data
