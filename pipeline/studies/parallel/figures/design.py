"""Sets of masks, total correlations, and the finite-sample bound."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.parallel.figures.common import shades
from schemas.parallel.tables import ALIGNED, FULL, PAIRS, SCHEMES

RANDOM = "random models, k-masks"


@plots.drawn("The Poincaré constant and the error")
def bound(context: Results) -> Figure:
    """The Poincaré constant against the worst direction, and against the trace."""
    rows = plots.some(context.table("par_asymp").filter(variant=FULL))
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
    names = {"worst": "worst direction", "average": "trace"}
    long = data.unpivot(
        list(names), index=["dist_id", "J", "k", "C", "what"], variable_name="panel", value_name="ratio"
    ).with_columns(pl.col("panel").replace(names))
    colours = [charts.ORANGE, charts.PURPLE, charts.SKY, charts.BLUE, charts.BLACK, charts.GREY]
    shapes = ["circle", "triangle-down", "square", "diamond", "cross", "circle"]
    looks = zip([*SCHEMES, RANDOM], colours, shapes, strict=True)
    by = Kinds("what", {kind: Look(colour, shape=shape) for kind, colour, shape in looks})
    span = [float(each) for each in (*long["C"], *long["ratio"])]
    x = plots.log("C", "Poincaré constant C of the block dynamics", span)
    panels: list[plots.Panel] = []
    for name, part in plots.split(long.sort("panel", descending=True, maintain_order=True), "panel"):
        y = plots.log("ratio", "error over that of the MLE", span).but(**{"title": None} if panels else {})
        ends = pl.DataFrame({"C": [min(span), max(span)], "ratio": [min(span), max(span)]})
        layers = [
            *plots.lines(ends, x, y, charts.GREY, strokeDash=[4, 3]),
            *plots.points(part, x, y, by, tips=["dist_id", "k"]),
        ]
        panels.append(plots.panel(layers, name, 250, 240))
    pairs = data.filter(pl.col("what") != RANDOM)
    wide = pairs.filter(pl.col("what").is_in([ALIGNED, PAIRS])).pivot(
        "what", index="dist_id", values=["worst", "average"]
    )
    trace = (wide[f"average_{ALIGNED}"] > wide[f"average_{PAIRS}"]).sum()
    worst = (wide[f"worst_{ALIGNED}"] < wide[f"worst_{PAIRS}"]).sum()
    words = plots.tell(pairs.filter(J=1.0), "{dist_id}, {what}: C {C:.2f}, worst {worst:.2f}, trace {average:.2f}")
    return plots.figure(
        plots.grid(panels),
        long,
        "For two coupled pairs the error in the worst direction is at least "
        f"{number(plots.least(pairs['tightness']), 3)} of the bound",
        f"Aligned pairs err less than all pairs in the worst direction for {worst} of {wide.height} couplings, and "
        f"more in the trace for {trace}. Grey dots: random models of four spins with all masks of k; dashed: error = C",
        told=f"Error over that of the MLE against C, {data.height} laws and mask sets: {words}.",
    )


@plots.drawn("What parallel decoding loses on a step")
def correlation(context: Results) -> Figure:
    """What the best product law loses on a step of k-Gibbs, and what independent parallel sampling loses."""
    rows = plots.some(context.table("par_tc"))
    names = {"tc_nats": "best product law", "indep_kl": "independent parallel"}
    more = rows.filter(pl.col("k") >= 2)
    data = (
        more.unpivot(list(names), index=["J", "k"], variable_name="what", value_name="loss")
        .with_columns(pl.col("what").replace(names))
        .with_columns(kind=pl.format("k = {}, {}", "k", "what"))
        .sort("what", "k", "J")
    )
    looks = {
        f"k = {k}, {what}": Look(look.colour, plots.SOLID if column == "tc_nats" else plots.DASHED)
        for column, what in names.items()
        for k, look in shades(2).looks.items()
    }
    y = plots.log("loss", "loss, nats a step (log scale)", data["loss"])
    whole = rows.filter((pl.col("k") == pl.col("k").max()) & (pl.col("J") == pl.col("J").max())).row(0, named=True)
    words = plots.tell(more, "J = {J:g}, k = {k}: {tc_nats:.3f}, independent parallel {indep_kl:.3f}")
    return plots.figure(
        plots.lines(data, Axis("J", "coupling J"), y, Kinds("kind", looks), dots=True),
        data,
        f"At J = {whole['J']:g} one parallel pass loses at least {number(whole['tc_nats'])} nats on an exact sample",
        f"Both modes have probability {number(whole['modes'])}, under the product of marginals "
        f"{number(whole['modes_prod'])}. Clique of four spins without fields; means over states of KL from the rows of "
        "k-Gibbs, exact; the best product law loses the total correlation",
        told=f"Loss of product laws on steps of k-Gibbs, in nats: {words}.",
        width=440,
        height=280,
    )


@plots.drawn("The finite-sample bound")
def finite(context: Results) -> Figure:
    """Theorem 4.1.4: both forms of the bound beside the distance that is found."""
    rows = plots.some(context.table("par_finite_sample").filter(family="coupled"))
    names = {"bound_nll": "bound, likelihood form", "bound_kl": "bound, divergence form", "tv": "distance"}
    data = (
        rows.group_by("n", "m", maintain_order=True)
        .agg(*(pl.col(name).mean() for name in names), fits=pl.len())
        .unpivot(list(names), index=["n", "m", "fits"], variable_name="what", value_name="value")
        .with_columns(pl.col("what").replace(names))
        .sort("n", "what", "m")
    )
    colours = (charts.ORANGE, charts.BLUE, charts.BLACK)
    by = plots.kinds(dict(zip(names.values(), colours, strict=True)), "what", dashes=False)
    x = plots.log("m", "masks of each sample m", data["m"]).but(form="~e")
    x = x.but(values=[tick for tick in x.values or () if tick <= plots.most(data["m"])][1::2])
    panels: list[plots.Panel] = []
    for n, part in plots.split(data, "n"):
        y = plots.log("value", "total variation (log scale)", data["value"]).but(**{"title": None} if panels else {})
        layers = [*plots.rule(y, 1, dash=[4, 3]), *plots.lines(part, x, y, by, dots=True)]
        panels.append(plots.panel(layers, f"n = {int(n):,}", 112, 220))
    told = {name: rows.filter(pl.col(name) < 1).select("n", "m").unique().height for name in ("bound_kl", "bound_nll")}
    cells = rows.select("n", "m").unique().height
    last = data.filter((pl.col("n") == pl.col("n").max()) & (pl.col("m") == pl.col("m").max()))
    return plots.figure(
        plots.grid(panels, len(panels), spacing=14),
        data,
        f"The bound is below 1 in {told['bound_kl']} of {cells} cells as a divergence, {told['bound_nll']} as printed",
        f"{int(rows['violated'].sum())} of {rows.height:,} fits are farther off than it allows; dashed: 1, all that is "
        f"possible. Two spins with one coupling, masks of both; means over {plots.count(data['fits'], 'fit')}",
        told=f"At the most samples and masks: {plots.tell(last, '{what} {value:.4f}', ', ')}.",
    )
