"""Propositions 4.1.4 and 4.1.5: the steps that they speak of, beside the steps that their statement is true for."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.figures.common import logarithmic
from schemas.parallel.tables import REACH, STUCK


def reach(context: Results) -> Figure:
    """Proposition 4.1.4: steps after which k-Gibbs has reached the mode, as stated and as it is."""
    rows = context.table("par_prop_cell").filter(pl.col("exact_T").is_not_null(), check_id=REACH)
    delta = float(min(rows["delta"].to_list()))
    data = (
        rows.filter(pl.col("delta") == delta)
        .select("c", "N", "k", "J0", "h_G", "delta", "exact_T", stated="T", gap=pl.format("J0 = {}", "J0"))
        .with_columns(over=pl.col("stated") / pl.col("exact_T"))
        .sort("c", "N", "k", "J0", "h_G")
    )
    gaps = [f"J0 = {J0}" for J0 in sorted(rows["J0"].unique())]
    colours = [charts.ORANGE, charts.SKY, charts.BLUE, charts.BLACK][: len(gaps)]
    shapes = ["circle", "square", "triangle-up", "diamond"][: len(gaps)]
    span = [float(each) for each in (*data["stated"], *data["exact_T"])]
    x, y = logarithmic(span, "steps that are needed, from the worst start"), logarithmic(span, "steps as stated, T")
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=40, opacity=0.8)
        .encode(
            alt.X("exact_T:Q", **x),
            alt.Y("stated:Q", **y),
            alt.Color("gap:N", title=None, sort=gaps, scale=alt.Scale(domain=gaps, range=colours)),
            shape=alt.Shape("gap:N", sort=gaps, scale=alt.Scale(domain=gaps, range=shapes), title=None),
            tooltip=["c", "N", "k", "J0", "h_G", "exact_T", "stated"],
        )
    )
    ends = pl.DataFrame({"exact_T": [min(span), max(span)], "stated": [min(span), max(span)]})
    line = alt.Chart(ends).mark_line(color=charts.GREY, strokeDash=[4, 3]).encode(x="exact_T:Q", y="stated:Q")
    broken = data.filter(pl.col("stated") < pl.col("exact_T")).height
    middle, most = (float(each) for each in data.select(pl.median("over"), most=pl.max("over")).row(0))
    head = "enough in every cell" if not broken else f"too few in {broken} cells"
    title = alt.TitleParams(
        f"The steps of Proposition 4.1.4 are {head}, at the median {number(middle, 1)} times what it takes",
        subtitle=[f"{data.height} cliques and masks of at least their size, δ = {delta:g}; exact by lumped chains"],
    )
    words = f"Steps as stated against steps needed, {data.height} cells: median ratio {middle:.2f}, largest {most:.2f}."
    return alt.layer(line, points).properties(width=380, height=330, title=title, description=words), data


def reach_map(context: Results) -> Figure:
    """Proposition 4.1.4 with masks of the clique's size: a map of the steps that k-Gibbs needs, and those stated."""
    rows = context.table("par_prop_cell").filter(pl.col("exact_T").is_not_null(), check_id=REACH)
    rows = rows.filter(pl.col("k") == pl.col("c"))
    delta, fields = float(min(rows["delta"].to_list())), sorted(rows["h_G"].unique())
    h_G = fields[len(fields) // 2]
    data = rows.filter(pl.col("delta") == delta, pl.col("h_G") == h_G).select(
        "c",
        "N",
        "J0",
        steps=pl.col("exact_T").log10(),
        stated="T",
        needed="exact_T",
        clique=pl.format("c = {}, N = {}", "c", "N"),
    )
    data = data.sort("c", "N", "J0")
    most = float(max(data["steps"].to_list()))
    order = data["clique"].unique(maintain_order=True).to_list()
    base = alt.Chart(data.with_columns(light=pl.col("steps") < 0.45 * most)).encode(
        x=alt.X("J0:O", title="excess of the coupling, J0", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("clique:N", title=None, sort=order),
    )
    scale = alt.Scale(scheme="viridis", reverse=True, domain=[0, most])
    cells = base.mark_rect().encode(
        color=alt.Color("steps:Q", title="log10 of steps", scale=scale, legend=alt.Legend(tickCount=4)),
        tooltip=["c", "N", "J0", "needed", "stated"],
    )
    text = base.mark_text(fontSize=11).encode(
        text=alt.Text("stated:Q", format=",d"),
        color=alt.condition("datum.light", alt.value(charts.INK), alt.value("white")),
    )
    last = data.filter(pl.col("N") == pl.col("N").max()).sort("needed").row(-1, named=True)
    title = alt.TitleParams(
        f"A mask as large as the clique takes up to {last['needed']:,.0f} steps among {last['N']} spins",
        subtitle=[
            f"Colour: steps after which k-Gibbs has come to R_1 with probability {1 - delta:g}, from the worst start",
            f"Numbers: T of Proposition 4.1.4. k = c, h_G = {h_G:g}; exact by lumped chains",
        ],
    )
    words = f"Steps of k-Gibbs to R_1, k = c, h_G = {h_G:g}: " + "; ".join(
        f"{row['clique']}, J0 = {row['J0']:g}: {row['needed']:.0f}, stated {row['stated']}"
        for row in data.iter_rows(named=True)
    )
    return alt.layer(cells, text).properties(width=300, height=320, title=title, description=f"{words}."), data


def stuck(context: Results) -> Figure:
    """Proposition 4.1.5: for how long independent parallel sampling is stuck, as stated and as it is."""
    rows = context.table("par_prop_cell").filter(check_id=STUCK)
    delta = sorted(rows["delta"].unique())[rows["delta"].n_unique() // 2]
    data = rows.filter(delta=delta).select(
        "c",
        "J0",
        stated="T",
        steps=pl.col("exact_T").log10(),
        shown=pl.when(pl.col("T") > 0).then(pl.format("{}", "T")).otherwise(pl.lit("none")),
    )
    capped = float(data["steps"].max())  # type: ignore[arg-type]
    base = alt.Chart(data.with_columns(light=pl.col("steps") < 0.6 * capped)).encode(
        x=alt.X("c:O", title="clique size c", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("J0:O", title="excess of the coupling, J0", sort="descending"),
    )
    scale = alt.Scale(scheme="viridis", reverse=True, domain=[0, capped])
    cells = base.mark_rect().encode(
        color=alt.Color("steps:Q", title="log10 of steps", scale=scale, legend=alt.Legend(tickCount=4))
    )
    text = base.mark_text(fontSize=12).encode(
        text="shown:N", color=alt.condition("datum.light", alt.value(charts.INK), alt.value("white"))
    )
    silent = data.filter(pl.col("stated") == 0).height
    title = alt.TitleParams(
        f"Stuck for far longer than stated: in {silent} of {data.height} cells the bound says nothing",
        subtitle=[
            "Colour: steps for which the clique's sum stays at most −2, from the worst start, with probability "
            f"{1 - delta:g}",
            "Numbers: T of Proposition 4.1.5. Exact by lumped chains, at most 1e300",
        ],
    )
    words = "Steps for which independent parallel sampling is stuck: " + "; ".join(
        f"c = {row['c']}, J0 = {row['J0']:g}: 10^{row['steps']:.1f}, stated {row['shown']}"
        for row in data.iter_rows(named=True)
    )
    return alt.layer(cells, text).properties(width=380, height=190, title=title, description=f"{words}."), data
