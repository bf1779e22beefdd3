"""Figure 4.3: steps to the larger mode against the coupling, and where each sampler arrives."""

from __future__ import annotations

import math

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from schemas.parallel.tables import GIBBS, INDEPENDENT

PARALLEL = "independent parallel"
# From few masked positions to many: viridis, whose order is seen without its hues
SHADES = ("#bddf26", "#7ad151", "#44bf70", "#22a884", "#21918c", "#2a788e", "#355f8d", "#414487", "#482475", "#440154")
LOOKS = {f"k = {k}": Look(shade) for k, shade in enumerate(SHADES, 1)} | {
    PARALLEL: Look(charts.VERMILLION, plots.DASHED)
}
NEVER = 0.99  # share of runs that do not arrive: then the sampler stays away


def _named() -> pl.Expr:
    return pl.when(pl.col("sampler") == INDEPENDENT).then(pl.lit(PARALLEL)).otherwise(pl.format("k = {}", "k"))


@plots.drawn("Steps to the larger mode against the coupling")
def steps(context: Results) -> Figure:
    """Figure 4.3, F3: means of the published ten runs, with half a standard deviation, on the exact means."""
    every = plots.some(context.table("par_hit_exact"))
    exact = every.with_columns(name=_named()).filter(pl.col("name").is_in(list(LOOKS)))
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
    by = Kinds("name", LOOKS, legend="right", columns=1).joined()
    x = Axis("J", "coupling J", values=exact["J"].unique().to_list())
    y = plots.log("exact", f"steps to R_1, at most {budget:,} (log scale)", [1.0, float(budget)])
    layers = [
        *plots.lines(data, x, y, by, strokeWidth=1.5),
        *plots.points(data, x, y.but(field="mean"), by, ends=("low", "high"), tips=["exact", "sd", "runs"], size=50),
    ]
    never = every.filter(pl.col("miss_prob") > NEVER, sampler=INDEPENDENT)["J"].min()
    late = context.table("par_hit_cell").filter(sampler=INDEPENDENT).sort("J")
    soon = late.filter(pl.col("reached") == pl.col("runs"))["J"].to_list()
    said = f"from J = {never:g} on" if isinstance(never, float) else "at no J here"
    most = every.filter(pl.col("J") == pl.col("J").max(), sampler=GIBBS)
    slow = most.filter(pl.col("miss_prob") > NEVER)["k"].sort().to_list()
    shown = data.filter(pl.col("J").is_in([1.0, 4.0, 6.0]))
    return plots.figure(
        layers,
        data,
        f"Independent parallel sampling misses the mode in over {NEVER:.0%} of runs {said}".replace("%", " %"),
        f"At J = {', '.join(f'{J:g}' for J in soon) or 'none'} all of its {late['runs'][0]:,} runs arrive; at the "
        f"largest J k-Gibbs is stuck as well for k = {', '.join(map(str, slow)) or 'none'}. Points: means of "
        f"{plots.count(ten['runs'], 'run')}, as published, bars: half a standard deviation to each side; lines: exact "
        "means, dashed of independent parallel sampling",
        told=f"Mean steps to R_1: {plots.tell(shown, '{name}, J = {J:g}: {exact:.1f}')}.",
        width=430,
        height=320,
    )


@plots.drawn("Where each sampler arrives")
def reached(context: Results) -> Figure:
    """A map of where a sampler arrives: expected steps of every k and coupling, by the lumped chain."""
    exact = plots.some(context.table("par_hit_exact"))
    budget = int(exact["budget"][0])
    order = [PARALLEL, *[f"k = {k}" for k in sorted(exact.filter(sampler=GIBBS)["k"].unique())]]
    digits = pl.col("mean_censored").round_sig_figs(3)
    whole = digits.round(0).cast(pl.Int64).cast(pl.String)
    data = exact.select(
        "J",
        "miss_prob",
        steps="mean_censored",
        name=_named(),
        log=pl.col("mean_censored").log10(),
        number=pl.when(pl.col("mean_censored") > 0.995 * budget)
        .then(pl.when(pl.col("miss_prob") > 0.9999).then(pl.lit("never")).otherwise(pl.lit("rarely")))
        .otherwise(pl.when(pl.col("mean_censored") >= 99.5).then(whole).otherwise(digits.cast(pl.String))),
    )
    x, y = Axis("J", "coupling J", "O"), Axis("name", None, "N", order=order)
    top = math.log10(budget)
    cells = plots.cells(
        data, x, y, "log", "expected steps, log10", domain=(0, top), text="number", tips=["steps"], size=11
    )
    last = exact.filter((pl.col("J") == pl.col("J").max()) & (pl.col("k") > 0))
    least = min(last.filter(pl.col("miss_prob") < 0.5)["k"].to_list(), default=0)
    shown = data.filter(pl.col("J") == pl.col("J").max())
    return plots.figure(
        cells,
        data,
        f"At J = {last['J'][0]:g} masks arrive from {plots.count([least], 'position')} on; "
        f"the clique has {exact['c'][0]}",
        f"Expected steps to R_1, none beyond {budget:,}; ten spins with h = 5, exact by the lumped chain. Above "
        f"{0.995 * budget:g} steps: never, where fewer than one run in ten thousand arrives, or rarely",
        told=f"Expected steps at the largest coupling: {plots.tell(shown, '{name}: {number}', ', ')}.",
        width=420,
        height=280,
    )
