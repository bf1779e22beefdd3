"""The walk of Algorithm 2: laws of its leaves, how fast it mixes, and what errors of the value do to it."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from schemas.verifier.theory_tables import BIAS, IID

LAWS = {"target": "π*", "tokenwise": "tokenwise", "first_leaf": "VGB, first leaf", "stationary": "VGB, stationary"}
LAW_COLOURS = [charts.GREY, charts.VERMILLION, charts.ORANGE, charts.BLUE]
SHOWN = ("proposition", "biased")
REJECTION, FIRST = "action-level rejection", "VGB, first leaf"
METHOD_COLOURS = {REJECTION: charts.VERMILLION, FIRST: charts.ORANGE}
EPS = 0.3  # of the family of biased values that is drawn, where the table has it


def leaf_laws(context: Results) -> Figure:
    """What each sampler puts on the leaves of two small trees."""
    nodes = context.table("vgb_nodes").filter(pl.col("instance").is_in(SHOWN))
    nodes = nodes.filter(pl.col("depth") == pl.col("depth").max().over("instance"))
    nodes = nodes.with_columns(pl.col("stationary") / pl.col("stationary").sum().over("instance"))
    data = nodes.unpivot(
        list(LAWS), index=["instance", "title", "label"], variable_name="law", value_name="probability"
    ).with_columns(pl.col("law").replace(LAWS))
    names = list(LAWS.values())
    panels = []
    for instance in SHOWN:
        rows = data.filter(instance=instance)
        panels.append(
            alt.Chart(rows)
            .mark_bar()
            .encode(
                alt.X("label:N", title="leaf", axis=alt.Axis(labelAngle=-90 if rows["label"].n_unique() > 8 else 0)),
                alt.Y("probability:Q", title="probability"),
                alt.XOffset("law:N", sort=names),
                alt.Color(
                    "law:N",
                    title=None,
                    sort=names,
                    scale=alt.Scale(domain=names, range=LAW_COLOURS),
                    legend=alt.Legend(orient="bottom"),
                ),
            )
            .properties(width=560, height=150, title=alt.TitleParams(rows["title"][0], fontSize=13, offset=6))
        )
    apart = _distances(nodes)
    title = alt.TitleParams(
        "Stationary leaves of the walk have the target law; its first leaf comes nearer than rejection"
        if all(each["stationary"] < 1e-9 and each["first_leaf"] < each["tokenwise"] for each in apart.values())
        else "What samplers put on the leaves of two trees",
        subtitle=[
            f"Distance from π* in total variation, {name}: tokenwise {number(each['tokenwise'], 3)}, "
            f"first leaf {number(each['first_leaf'], 3)}"
            for name, each in zip(("above", "below"), apart.values(), strict=True)
        ],
    )
    words = "Laws over the leaves of two trees. " + " ".join(
        f"{nodes.filter(instance=name)['title'][0]}: distance of tokenwise rejection "
        f"{number(each['tokenwise'], 3)}, of the first leaf {number(each['first_leaf'], 3)}, of stationary "
        f"leaves {number(each['stationary'], 3)}."
        for name, each in apart.items()
    )
    chart = alt.vconcat(*panels, spacing=20).resolve_scale(xOffset="independent")
    chart = chart.properties(title=title, description=words)
    return chart, data


def _distances(nodes: pl.DataFrame) -> dict[str, dict[str, float]]:
    """Return how far each law is from the target in total variation, by instance of `SHOWN`."""
    laws = [name for name in LAWS if name != "target"]
    return {
        name: nodes.filter(instance=name)
        .select((pl.col(law) - pl.col("target")).abs().sum() / 2 for law in laws)
        .row(0, named=True)
        for name in SHOWN
    }


def mixing(context: Results) -> Figure:
    """Measured mixing times and the bound that follows from the conductance, by horizon and error."""
    data = context.table("vgb_chain").with_columns(
        tree=pl.format("A = {}, H = {}", "A", "H"), error=pl.col("eps").map_elements("{:g}".format, pl.String)
    )
    data = data.filter(pl.col("tmix_001").is_not_null())
    times, bounds = (data[name].to_list() or [1] for name in ("tmix_001", "tmix_bound"))
    low, high = min(times), max(bounds)
    wide: dict[str, Any] = {"type": "log", "nice": False, "padding": 12}
    decades = [10.0**e for e in range(1, 7)]
    colours = [charts.GREEN, charts.ORANGE, charts.VERMILLION, charts.PURPLE, charts.BLUE]
    errors = sorted(data["error"].unique(), key=float)
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=60, opacity=0.8)
        .encode(
            alt.X(
                "tmix_001:Q",
                title="steps to a distance of 0.01",
                scale=alt.Scale(**wide),
                axis=alt.Axis(values=[10, 20, 50, 100, 200, 500], format="d"),
            ),
            alt.Y(
                "tmix_bound:Q",
                title="bound on these steps",
                scale=alt.Scale(**wide),
                axis=alt.Axis(values=decades, format="~s"),
            ),
            alt.Color("error:N", title="ε", sort=errors, scale=alt.Scale(domain=errors, range=colours[: len(errors)])),
            alt.Shape("tree:N", title="tree"),
        )
    )
    below = data.filter(pl.col("tmix_001") > pl.col("tmix_bound")).height
    ratio = (data["tmix_bound"] / data["tmix_001"]).to_numpy()
    title = alt.TitleParams(
        f"The walk mixes in {low} to {max(times)} steps, within the bound for {data.height - below} of {data.height}",
        subtitle=[f"{data.height} random trees; the bound is {ratio.min():.0f} to {ratio.max():.0f} times the time"],
    )
    words = (
        f"Bound on the mixing time against the measured time on {data.height} random trees: "
        f"times from {low} to {max(times)} steps, bounds from {min(bounds)} to {high}."
    )
    chart = points.properties(width=400, height=280, title=title, description=words)
    return chart, data.select("tree", "error", "seed", "tmix_001", "tmix_bound", "gap", "gap_bound")


def amplification(context: Results) -> Figure:
    """How far samplers are from the target as the horizon grows, with values that are wrong by a factor 1 +
    eps."""
    table = context.table("vgb_amplification")
    known = table["eps"].unique().to_list()
    eps = EPS if EPS in known else min(known)
    bias = _long(table.filter(family=BIAS, eps=eps)).with_columns(panel=pl.lit("biased"))
    means = (
        table.filter(family=IID, eps=eps).group_by("H").agg(pl.col("tv_alrs", "tv_first", "kl_alrs", "kl_first").mean())
    )
    data = pl.concat([bias, _long(means).with_columns(panel=pl.lit("random signs"))])
    colour = alt.Color(
        "method:N",
        title=None,
        scale=alt.Scale(domain=list(METHOD_COLOURS), range=list(METHOD_COLOURS.values())),
        legend=alt.Legend(orient="bottom"),
    )
    wide = {"type": "log", "nice": False, "padding": 8}
    ticks = alt.Axis(values=[2, 10, 40, 160], format="d")

    def panel(
        rows: pl.DataFrame, field: str, title: str, words: str, scale: dict[str, Any], axis: alt.Axis
    ) -> alt.Chart:
        return (
            alt.Chart(rows.filter(pl.col(field).is_not_null()))
            .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=50, filled=True, opacity=1))
            .encode(
                alt.X("H:Q", title="horizon H", scale=alt.Scale(**scale), axis=axis),
                alt.Y(f"{field}:Q", title=title),
                colour,
                shape=alt.Shape("method:N", legend=None),
            )
            .properties(width=155, height=220, title=alt.TitleParams(words, fontSize=13, offset=6))
        )

    plain = {"nice": False, "padding": 8}
    even = alt.Axis(values=[2, 4, 6, 8, 10], format="d")
    panels = [
        panel(bias, "tv", "total variation distance", "biased values", wide, ticks),
        panel(bias, "kl", "KL(π* ‖ law), nats", "biased values", wide, ticks),
        panel(data.filter(panel="random signs"), "tv", "mean distance", "random signs", plain, even),
    ]
    both = table.filter(pl.col("tv_first").is_not_null(), family=BIAS, eps=eps).sort("H").row(-1, named=True)
    more = both["tv_alrs"] / both["tv_first"]
    title = alt.TitleParams(
        f"At H = {both['H']} rejection is {more:.1f} times as far from the target as the walk",
        subtitle=[
            f"Values at inner prefixes wrong by 1 + ε, ε = {eps:g}; means of "
            f"{table.filter(family=IID)['draw'].n_unique()} trees where signs are random"
        ],
    )
    far = table.filter(family=BIAS, eps=eps).sort("H").row(-1, named=True)
    words = (
        f"Distance from the target against the horizon, biased values: at H = {both['H']} action-level "
        f"rejection {number(both['tv_alrs'], 3)}, first leaf of the walk {number(both['tv_first'], 3)}; "
        f"divergence at H = {far['H']} {number(far['kl_alrs'], 3)} and {number(far['kl_first'], 4)}."
    )
    return alt.hconcat(*panels, spacing=16).properties(title=title, description=words), data


def _long(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each horizon and method, with its distance and divergence."""
    parts = [
        rows.select("H", method=pl.lit(method), tv=f"tv_{short}", kl=f"kl_{short}")
        for method, short in ((REJECTION, "alrs"), (FIRST, "first"))
    ]
    return pl.concat(parts).sort("method", "H")
