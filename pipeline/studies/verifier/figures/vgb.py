"""The walk of Algorithm 2: laws of its leaves, how fast it mixes, and what errors of the value do to it."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from schemas.verifier.theory_tables import BIAS, IID

LAWS = {"target": "π*", "tokenwise": "tokenwise", "first_leaf": "VGB, first leaf", "stationary": "VGB, stationary"}
LAW_COLOURS = (charts.GREY, charts.VERMILLION, charts.ORANGE, charts.BLUE)
SHOWN = ("proposition", "biased")
REJECTION, FIRST = "action-level rejection", "VGB, first leaf"
METHODS = Kinds("method", {REJECTION: Look(charts.VERMILLION), FIRST: Look(charts.ORANGE, plots.DASHED)})
EVEN = 1e-9  # distances below that are rounding
EPS = 0.3  # of the family of biased values that is drawn, where the table has it


@plots.drawn("What samplers put on the leaves of two trees")
def leaf_laws(context: Results) -> Figure:
    """What each sampler puts on the leaves of two small trees."""
    nodes = plots.some(context.table("vgb_nodes").filter(pl.col("instance").is_in(SHOWN)))
    nodes = nodes.filter(pl.col("depth") == pl.col("depth").max().over("instance"))
    nodes = nodes.with_columns(pl.col("stationary") / pl.col("stationary").sum().over("instance"))
    data = nodes.unpivot(
        list(LAWS), index=["instance", "title", "label"], variable_name="law", value_name="probability"
    ).with_columns(pl.col("law").replace(LAWS))
    by = plots.kinds(dict(zip(LAWS.values(), LAW_COLOURS, strict=True)), "law", columns=4)
    panels: list[plots.Panel] = []
    for instance in SHOWN:
        rows = data.filter(instance=instance)
        x = Axis("label", "leaf", "N", more={"labelAngle": -90 if rows["label"].n_unique() > 8 else 0})
        y = Axis("probability", "probability", zero=True)
        offset = alt.XOffset("law:N", sort=list(by.looks))
        bars = alt.Chart(rows).mark_bar().encode(x.at(alt.X), y.at(alt.Y), offset, by.colour())
        panels.append(plots.panel([bars], rows["title"][0], 560, 150))
    apart = _distances(nodes)
    even = sum(each["stationary"] < EVEN for each in apart.values())
    nearer = sum(each["first_leaf"] < each["tokenwise"] for each in apart.values())
    told = {nodes.filter(instance=name)["title"][0]: each for name, each in apart.items()}
    return plots.figure(
        plots.grid(panels, 1).resolve_scale(xOffset="independent"),
        data,
        f"Stationary leaves of the walk have the target law on {even} of {len(apart)} trees; its first leaf is nearer "
        f"than tokenwise rejection on {nearer}",
        "Distance from π* in total variation: "
        + "; ".join(
            f"{name}, tokenwise {number(each['tokenwise'], 3)}, first leaf {number(each['first_leaf'], 3)}"
            for name, each in zip(("above", "below"), apart.values(), strict=True)
        ),
        told=" ".join(
            f"{name}: distance of tokenwise rejection {number(each['tokenwise'], 3)}, of the first leaf "
            f"{number(each['first_leaf'], 3)}, of stationary leaves {number(each['stationary'], 3)}."
            for name, each in told.items()
        ),
    )


def _distances(nodes: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return how far each law is from the target in total variation, by instance of `SHOWN`."""
    laws = [name for name in LAWS if name != "target"]
    return {
        name: nodes.filter(instance=name)
        .select((pl.col(law) - pl.col("target")).abs().sum() / 2 for law in laws)
        .row(0, named=True)
        for name in SHOWN
    }


@plots.drawn("How fast the walk mixes")
def mixing(context: Results) -> Figure:
    """Measured mixing times and the bound that follows from the conductance, by horizon and error."""
    table = plots.some(context.table("vgb_chain").filter(pl.col("tmix_001").is_not_null()))
    data = table.with_columns(
        tree=pl.format("A = {}, H = {}", "A", "H"),
        error=pl.format("ε = {}", pl.col("eps").map_elements("{:g}".format, pl.String)),
    )
    times, bounds = data["tmix_001"], data["tmix_bound"]
    errors = [f"ε = {eps:g}" for eps in sorted(data["eps"].unique())]
    colours = (charts.GREEN, charts.ORANGE, charts.VERMILLION, charts.PURPLE, charts.BLUE)
    by = plots.kinds(dict(zip(errors, colours, strict=False)), "error", columns=5)
    trees = data["tree"].unique(maintain_order=True).to_list()
    looks = {tree: Look(charts.INK, shape=shape) for tree, shape in zip(trees, plots.SHAPES, strict=False)}
    found = Kinds("tree", looks, columns=5).points()
    x = plots.log("tmix_001", "steps to a distance of 0.01 (log scale)", times)
    x = x.but(values=plots.between(times), domain=[plots.least(times) / 1.2, plots.most(times) * 1.2])
    y = plots.log("tmix_bound", "bound on these steps (log scale)", bounds).but(form="~s")
    (marks,) = plots.points(data, x, y, by, tips=["tree", "seed"], size=60, opacity=0.8)
    within = data.filter(pl.col("tmix_001") <= pl.col("tmix_bound")).height
    ratio = bounds / times
    return plots.figure(
        [marks.encode(shape=found["shape"]) if "shape" in found else marks],
        data.select("tree", "error", "seed", "tmix_001", "tmix_bound", "gap", "gap_bound"),
        f"The walk mixes in {plots.least(times):.0f} to {plots.most(times):.0f} steps, within the bound for "
        f"{within} of {data.height}",
        f"Random trees; the bound is {plots.least(ratio):.0f} to {plots.most(ratio):.0f} times the time",
        told=f"Bounds from {plots.least(bounds):.0f} to {plots.most(bounds):.0f} on {data.height} random trees.",
        width=400,
        height=280,
    )


@plots.drawn("How far samplers are from the target as the horizon grows")
def amplification(context: Results) -> Figure:
    """How far samplers are from the target as the horizon grows, with values that are wrong by a factor 1 +
    eps."""
    table = plots.some(context.table("vgb_amplification"))
    known = table["eps"].unique().to_list()
    eps = EPS if EPS in known else min(known)
    biased = table.filter(family=BIAS, eps=eps).sort("H")
    drawn_ = table.filter(family=IID, eps=eps)
    means = drawn_.group_by("H").agg(pl.col("tv_alrs", "tv_first", "kl_alrs", "kl_first").mean())
    bias, signs = _long(biased), _long(means)
    data = pl.concat([bias.with_columns(panel=pl.lit("biased")), signs.with_columns(panel=pl.lit("random signs"))])
    far = Axis("H", "horizon H (log scale)", log=True, values=[2, 10, 40, 160], pad=8)
    near = Axis("H", "horizon H", values=[2, 4, 6, 8, 10], pad=8, zero=False)
    panels = [
        plots.panel(
            plots.lines(rows.drop_nulls(field), x, Axis(field, title, zero=True), METHODS, dots=True), name, 155, 220
        )
        for rows, field, title, name, x in (
            (bias, "tv", "total variation distance", "biased values", far),
            (bias, "kl", "KL(π* ‖ law), nats", "biased values", far),
            (signs, "tv", "mean distance", "random signs", near),
        )
    ]
    both = biased.filter(pl.col("tv_first").is_not_null()).row(-1, named=True)
    last = biased.row(-1, named=True)
    return plots.figure(
        plots.grid(panels, 3, spacing=16),
        data,
        f"At H = {both['H']} rejection is {both['tv_alrs'] / both['tv_first']:.1f} times as far from the target as the "
        "walk",
        f"Values at inner prefixes wrong by 1 + ε, ε = {eps:g}; means of {drawn_['draw'].n_unique()} trees where signs "
        "are random. Dashed: the walk",
        told=f"Biased values: at H = {both['H']} action-level rejection {number(both['tv_alrs'], 3)}, first leaf of "
        f"the walk {number(both['tv_first'], 3)}; divergence at H = {last['H']} {number(last['kl_alrs'], 3)} and "
        f"{number(last['kl_first'], 4)}.",
    )


def _long(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each horizon and method, with its distance and divergence."""
    parts = [
        rows.select("H", method=pl.lit(method), tv=f"tv_{short}", kl=f"kl_{short}")
        for method, short in ((REJECTION, "alrs"), (FIRST, "first"))
    ]
    return pl.concat(parts).sort("method", "H")
