"""Sets of masks, total correlations, and the finite-sample bound."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.figures.common import logarithmic, shades
from schemas.parallel.tables import ALIGNED, PAIRS, SCHEMES

RANDOM = "random models, k-masks"


def bound(context: Results) -> Figure:
    """The Poincare constant against the worst direction, and against the trace."""
    rows = context.table("par_asymp")
    own = pl.col("dist_id").str.starts_with("pairs-")
    data = rows.select(
        "dist_id",
        "J",
        "k",
        "C",
        "tightness",
        what=pl.when(own).then(pl.col("scheme_id")).otherwise(pl.lit(RANDOM)),
        worst="worst_ratio",
        average=pl.col("tr_gamma") / pl.col("tr_fisher_inv"),
    ).sort("what", "C")
    panels = {"worst": "worst direction", "average": "trace"}
    long = data.unpivot(
        list(panels), index=["dist_id", "J", "k", "C", "what"], variable_name="panel", value_name="ratio"
    ).with_columns(pl.col("panel").replace(panels))
    kinds = [*SCHEMES, RANDOM]
    colours = [charts.ORANGE, charts.PURPLE, charts.SKY, charts.BLUE, charts.BLACK, charts.GREY]
    shapes = ["circle", "triangle-down", "square", "diamond", "cross", "circle"]
    span = [float(each) for each in (*long["C"], *long["ratio"])]
    x = logarithmic(span, "Poincaré constant C of the block dynamics", format="~g")
    y = logarithmic(span, "error over that of the MLE", format="~g")
    points = (
        alt.Chart()
        .mark_point(filled=True, size=60, opacity=0.85)
        .encode(
            alt.X("C:Q", **x),
            alt.Y("ratio:Q", **y),
            alt.Color("what:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds, range=colours)),
            shape=alt.Shape("what:N", title=None, sort=kinds, scale=alt.Scale(domain=kinds, range=shapes)),
            tooltip=["dist_id", "what", "k", "C", "ratio"],
        )
    )
    # A facet has one set of rows: the ends of the line stand beside the points.
    ends = pl.DataFrame({"from": [min(span)], "to": [max(span)]}).join(
        long.select("panel").unique(maintain_order=True), how="cross"
    )
    line = (
        alt.Chart()
        .mark_rule(color=charts.GREY, strokeDash=[4, 3])
        .encode(x=alt.X("from:Q"), y=alt.Y("from:Q"), x2="to:Q", y2="to:Q")
    )
    both = pl.concat([ends, long], how="diagonal")
    layers = alt.layer(line, points, data=both).properties(width=240, height=240)
    chart = layers.facet(column=alt.Column("panel:N", title=None, sort=list(panels.values())))
    pairs = data.filter(pl.col("what") != RANDOM)
    tight = pairs["tightness"].min()
    wide = pairs.filter(pl.col("what").is_in([ALIGNED, PAIRS])).pivot(
        "what", index="dist_id", values=["worst", "average"]
    )
    trace = (wide[f"average_{ALIGNED}"] > wide[f"average_{PAIRS}"]).sum()
    title = alt.TitleParams(
        f"For two coupled pairs the bound is met: at least {number(tight, 3)} of it in the worst direction",  # type: ignore[arg-type]
        subtitle=[
            "Aligned pairs have the smallest C of all sets of pairs, but the larger trace than all pairs "
            f"for {trace} of {wide.height} couplings",
            "Grey dots: random models of four spins with all masks of k; dashed: error = C",
        ],
    )
    words = f"Error over that of the MLE against C, {data.height} laws and mask sets: " + "; ".join(
        f"{row['dist_id']}, {row['what']}: C {number(row['C'])}, "
        f"worst {number(row['worst'])}, trace {number(row['average'])}"
        for row in pairs.filter(pl.col("J") == 1.0).iter_rows(named=True)
    )
    return chart.properties(title=title, description=f"{words}."), long


def correlation(context: Results) -> Figure:
    """What the best product law loses on a step of k-Gibbs, and what independent parallel sampling loses."""
    rows = context.table("par_tc")
    names = {"tc_nats": "best product law: total correlation", "indep_kl": "independent parallel sampling"}
    data = (
        rows.filter(pl.col("k") >= 2)
        .unpivot(list(names), index=["J", "k"], variable_name="what", value_name="loss")
        .with_columns(pl.col("what").replace(names), masked=pl.col("k").cast(pl.String))
        .sort("what", "k", "J")
    )
    y = logarithmic(data["loss"].to_list(), "loss, nats a step", format="~g")
    dashes = alt.StrokeDash(
        "what:N",
        title=None,
        sort=list(names.values()),
        legend=alt.Legend(
            orient="bottom", direction="vertical", symbolType="stroke", symbolStrokeWidth=2, symbolSize=300
        ),
        scale=alt.Scale(domain=list(names.values()), range=[[1, 0], [5, 3]]),
    )
    base = alt.Chart(data).encode(x=alt.X("J:Q", title="coupling J"), y=alt.Y("loss:Q", **y), color=shades(2))
    points = base.mark_point(filled=True, size=45, opacity=1).encode(detail="what:N")
    chart = alt.layer(base.mark_line().encode(strokeDash=dashes), points)
    whole = rows.filter((pl.col("k") == pl.col("k").max()) & (pl.col("J") == pl.col("J").max())).row(0, named=True)
    title = alt.TitleParams(
        f"At J = {whole['J']:g} any parallel decoder loses at least {number(whole['tc_nats'])} nats on an exact sample",
        subtitle=[
            f"Both modes have probability {number(whole['modes'])}, under the product of marginals "
            f"{number(whole['modes_prod'])}",
            "Clique of four spins without fields; means over states of KL from the rows of k-Gibbs, exact",
        ],
    )
    words = "Loss of product laws on steps of k-Gibbs, in nats: " + "; ".join(
        f"J = {row['J']:g}, k = {row['k']}: {number(row['tc_nats'], 3)}, "
        f"independent parallel {number(row['indep_kl'], 3)}"
        for row in rows.filter(pl.col("k") >= 2).iter_rows(named=True)
    )
    return chart.properties(width=420, height=280, title=title, description=f"{words}."), data


def finite(context: Results) -> Figure:
    """Theorem 4.1.4: both forms of the bound beside the distance that is found."""
    rows = context.table("par_finite_sample").filter(family="coupled")
    names = {"bound_nll": "bound, likelihood form", "bound_kl": "bound, divergence form", "tv": "distance"}
    data = (
        rows.group_by("n", "m", maintain_order=True)
        .agg(*(pl.col(name).mean() for name in names))
        .unpivot(list(names), index=["n", "m"], variable_name="what", value_name="value")
        .with_columns(pl.col("what").replace(names), panel=pl.format("n = {}", "n"))
        .sort("n", "what", "m")
    )
    order = [f"n = {n}" for n in sorted(rows["n"].unique())]
    x = logarithmic([float(m) for m in data["m"]], "masks of each sample m")
    x["axis"] = alt.Axis(values=[float(10**e) for e in range(3, 8, 2)], format=".0e")
    y = logarithmic(data["value"].to_list(), "total variation", format="~g")
    kinds = list(names.values())
    base = alt.Chart().encode(x=alt.X("m:Q", **x), y=alt.Y("value:Q", **y))
    lines = base.mark_line(point=alt.OverlayMarkDef(size=40, filled=True)).encode(
        color=alt.Color(
            "what:N",
            title=None,
            sort=kinds,
            scale=alt.Scale(domain=kinds, range=[charts.ORANGE, charts.BLUE, charts.BLACK]),
            legend=alt.Legend(orient="bottom"),
        )
    )
    one = alt.Chart().mark_rule(color=charts.GREY, strokeDash=[4, 3]).encode(y=alt.YDatum(1))
    layers = alt.layer(one, lines, data=data).properties(width=130, height=220)
    told = {name: rows.filter(pl.col(name) < 1).select("n", "m").unique().height for name in ("bound_kl", "bound_nll")}
    cells = rows.select("n", "m").unique().height
    broken = int(rows["violated"].sum())
    title = alt.TitleParams(
        f"The bound is below 1 in {told['bound_kl']} of {cells} cells as a divergence, {told['bound_nll']} as printed",
        subtitle=[
            f"{broken} of {rows.height:,} fits are farther off than it allows; dashed: 1, all that is possible",
            "Two spins with one coupling, masks of both; means over fits",
        ],
    )
    last = data.filter((pl.col("n") == pl.col("n").max()) & (pl.col("m") == pl.col("m").max()))
    words = "Bounds and distance, at the most samples and masks: " + ", ".join(
        f"{row['what']} {number(row['value'], 4)}" for row in last.iter_rows(named=True)
    )
    chart = layers.facet(column=alt.Column("panel:N", title=None, sort=order))
    return chart.properties(title=title, description=f"{words}."), data
