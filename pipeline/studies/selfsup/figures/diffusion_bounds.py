"""Mixing beside its bound (Lemma 5), and how much room the inequalities of section 2.1.3 leave."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.figures.diffusion_common import log_axis, shown
from schemas.selfsup.diffusions import CURVATURE, LOCAL, OVERALL, REMARK_1, UNCAPPED

LINES = {
    "bound": ("B/√(2πt), Lemma 5", charts.BLACK, [6, 3]),
    "beta": ("β(t), mean over z ~ π", charts.BLUE, [1, 0]),
    "tv_z0": ("from z = 0", charts.GREEN, [2, 2]),
    "tv_z5": ("from five standard deviations", charts.VERMILLION, [8, 2, 2, 2]),
}
CHECKS = {
    LOCAL: "Theorem 2: KL over its bound",
    UNCAPPED: "Theorem 2 without the cap on p/p*",
    OVERALL: "Eq. 2.32: L1 error over its bound",
    REMARK_1: "Remark 1: its expectation over its bound",
    CURVATURE: "2/(1 + c)^5 over r''",
}


def mixing(context: Results) -> Figure:
    """Distance to the stationary law against time: its mean, from two starts, and the bound."""
    table = context.table("sde_beta")
    first = table["process_id"][0]
    rows = table.filter(process_id=first).sort("t")
    names = {key: name for key, (name, _, _) in LINES.items()}
    data = rows.unpivot(list(LINES), index="t", variable_name="line", value_name="distance").with_columns(
        pl.col("line").replace_strict(names)
    )
    kept: dict[str, Any] = {"sort": list(names.values()), "title": None}
    legend = alt.Legend(
        orient="bottom", columns=2, symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=400, symbolOpacity=1
    )
    colour = alt.Color(
        "line:N",
        legend=legend,
        scale=alt.Scale(domain=list(names.values()), range=[c for _, c, _ in LINES.values()]),
        **kept,
    )
    dash = alt.StrokeDash(
        "line:N",
        legend=legend,
        scale=alt.Scale(domain=list(names.values()), range=[d for _, _, d in LINES.values()]),
        **kept,
    )
    x = alt.X("t:Q", title="time t (log)", **log_axis(rows["t"], room=1.0))
    y = alt.Y(
        "distance:Q", title="total variation distance to π (log)", **log_axis(data["distance"].clip(1e-3), every=1)
    )
    chart: Any = (
        alt.Chart(data)
        .mark_line(strokeWidth=2.2, clip=True, point=alt.OverlayMarkDef(size=30))
        .encode(x, y, colour, dash)
    )
    inside = bool((rows["beta"] <= rows["bound"]).all())
    over = rows.filter(pl.col("tv_z5") > pl.col("bound"))
    title = alt.TitleParams(
        [
            f"The mean distance to the stationary law {'stays below' if inside else 'exceeds'} the bound of Lemma 5;",
            f"that from a far start {'exceeds it' if over.height else 'does not exceed it'}",
        ],
        subtitle=[
            f"Ornstein-Uhlenbeck process, ρ = 1, d = 1, exact; a far start is above the bound at "
            f"{over.height} of {rows.height} times"
        ],
    )
    words = "; ".join(
        f"t = {row['t']:g}: {row['beta']:.3g}, bound {row['bound']:.3g}" for row in rows.iter_rows(named=True)
    )
    return chart.properties(width=560, height=260, title=title, description=f"beta(t) and its bound. {words}."), data


def bounds(context: Results) -> Figure:
    """How far the left sides of inequalities are below their right sides, over random instances."""
    table = context.table("sde_bounds").filter(pl.col("expected") & pl.col("check").is_in(list(CHECKS)))
    data = (
        table.group_by("check")
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
    y = alt.Y("name:N", title=None, sort=list(CHECKS.values()), axis=alt.Axis(labelLimit=300, grid=True))
    axis = log_axis([*data["low"], 2.0], every=2, format="~e")
    x = alt.X("low:Q", title="left side over right side (log)", **axis)
    base = alt.Chart(data).encode(y=y)
    limit = alt.Chart(pl.DataFrame({"at": [1.0]})).mark_rule(color=charts.BLACK, strokeDash=[6, 3], strokeWidth=1.5)
    layers: list[Any] = [
        limit.encode(x=alt.X("at:Q", **axis)),
        base.mark_rule(strokeWidth=7, color=charts.SKY).encode(x, x2="high:Q"),
        base.mark_tick(color=charts.BLUE, thickness=3, size=18).encode(alt.X("median:Q", **axis)),
        base.mark_point(filled=True, color=charts.VERMILLION, size=60, opacity=1).encode(alt.X("largest:Q", **axis)),
    ]
    local = data.filter(check=LOCAL).row(0, named=True)
    violated = int(data["violated"].sum())
    title = alt.TitleParams(
        [
            f"Violations of these inequalities on random instances: {violated or 'none'};",
            f"KL is at most {shown(local['largest'])} of the bound of Theorem 2",
        ],
        subtitle=[
            "Bars: from 5 to 95 %; ticks: medians; points: largest of all; dashed: where sides are equal",
            f"n = {local['n']} random chains",
        ],
    )
    words = "; ".join(
        f"{row['name']}: largest {row['largest']:.3g} of {row['n']}" for row in data.iter_rows(named=True)
    )
    chart = alt.layer(*layers).properties(
        width=410, height=150, title=title, description=f"Left side over right side of inequalities. {words}."
    )
    return chart, data
