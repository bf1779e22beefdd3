"""Mixing beside its bound (Lemma 5), and how much room the inequalities of section 2.1.3 leave."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.selfsup.figures.common import spanning
from pipeline.studies.selfsup.figures.diffusion_common import shown
from schemas.selfsup.diffusions import CURVATURE, LOCAL, OVERALL, REMARK_1, UNCAPPED

LINES = {
    "bound": "B/√(2πt), Lemma 5",
    "beta": "β(t), mean over z ~ π",
    "tv_z0": "from z = 0",
    "tv_z5": "from five standard deviations",
}
DISTANCES = Kinds(
    "line",
    {
        LINES["bound"]: Look(charts.BLACK, plots.DASHED),
        LINES["beta"]: Look(charts.BLUE),
        LINES["tv_z0"]: Look(charts.GREEN, plots.DOTTED),
        LINES["tv_z5"]: Look(charts.VERMILLION, [8, 2, 2, 2]),
    },
    columns=2,
)
CHECKS = {
    LOCAL: "Theorem 2: KL over its bound",
    UNCAPPED: "Theorem 2 without the cap on p/p*",
    OVERALL: "Eq. 2.32: L1 error over its bound",
    REMARK_1: "Remark 1: its expectation over its bound",
    CURVATURE: "2/(1 + c)^5 over r''",
}


@plots.drawn("Mixing beside its bound")
def mixing(context: Results) -> Figure:
    """Distance to the stationary law against time: its mean, from two starts, and the bound; dashes: see the legend."""
    table = plots.some(context.table("sde_beta"))
    rows = table.filter(process_id=table["process_id"][0]).sort("t")
    data = rows.unpivot(list(LINES), index="t", variable_name="line", value_name="distance").with_columns(
        pl.col("line").replace_strict(LINES)
    )
    x = spanning("t", "time t", rows["t"], room=1.0)
    y = spanning("distance", "total variation distance to π", data["distance"].clip(1e-3))
    inside = bool((rows["beta"] <= rows["bound"]).all())
    over = rows.filter(pl.col("tv_z5") > pl.col("bound"))
    return plots.figure(
        plots.lines(data, x, y, DISTANCES, dots=True),
        data,
        f"The mean distance to the stationary law {'stays below' if inside else 'exceeds'} the bound of Lemma 5; that "
        f"from a far start {'exceeds it' if over.height else 'does not exceed it'}",
        f"Ornstein-Uhlenbeck process, ρ = 1, d = 1, exact; a far start is above the bound at {over.height} of "
        f"{rows.height} times",
        told=f"Mean distance. {plots.tell(rows, 't = {t:g}: {beta:.3g}, bound {bound:.3g}')}.",
        width=560,
        height=260,
    )


@plots.drawn("How much room the inequalities leave")
def bounds(context: Results) -> Figure:
    """How far the left sides of inequalities are below their right sides, over random instances."""
    table = context.table("sde_bounds").filter(pl.col("expected") & pl.col("check").is_in(list(CHECKS)))
    data = (
        plots.some(table)
        .group_by("check")
        .agg(
            pl.len().alias("n"),
            (~pl.col("holds")).sum().alias("violated"),
            pl.col("ratio").quantile(0.05, "linear").alias("low"),
            pl.col("ratio").median().alias("median"),
            pl.col("ratio").quantile(0.95, "linear").alias("high"),
            pl.col("ratio").max().alias("largest"),
        )
        .with_columns(pl.col("check").replace_strict(CHECKS).alias("name"))
        .sort("check")
    )
    x = spanning("largest", "left side over right side", [*data["low"], 2.0], every=2, form="~e")
    y = Axis("name", None, "N", order=list(CHECKS.values()), more={"grid": True})
    base = alt.Chart(data).encode(y=y.at(alt.Y))
    local = data.filter(check=LOCAL).row(0, named=True)
    violated = int(data["violated"].sum())
    return plots.figure(
        [
            *plots.rule(x, 1, upright=True, dash=plots.DASHED),
            base.mark_rule(strokeWidth=7, color=charts.SKY).encode(x=x.at(alt.X, "low"), x2="high:Q"),
            base.mark_tick(color=charts.BLUE, thickness=3, size=18).encode(x=x.at(alt.X, "median")),
            *plots.points(data, x, y, charts.VERMILLION, tips=["median", "n"]),
        ],
        data,
        f"Violations of these inequalities on random instances: {violated or 'none'}; KL is at most "
        f"{shown(local['largest'])} of the bound of Theorem 2",
        f"Bars: from 5 to 95 % of {plots.count(data['n'], 'random draw')} of chains; ticks: medians; points: the "
        "largest; dashed: where sides are equal",
        told=f"Left side over right side. {plots.tell(data, '{name}: largest {largest:.3g} of {n}')}.",
        width=410,
        height=160,
    )
