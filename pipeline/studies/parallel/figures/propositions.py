"""Propositions 4.1.4 and 4.1.5: the steps that they speak of, beside the steps that their statement is true for."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from schemas.parallel.tables import REACH, STUCK


@plots.drawn("The steps of Proposition 4.1.4")
def reach(context: Results) -> Figure:
    """Proposition 4.1.4: steps after which k-Gibbs has reached the mode, as stated and as it is."""
    rows = plots.some(context.table("par_prop_cell").filter(pl.col("exact_T").is_not_null(), check_id=REACH))
    delta = float(min(rows["delta"].to_list()))
    data = (
        rows.filter(pl.col("delta") == delta)
        .select("c", "N", "k", "J0", "h_G", "delta", "exact_T", stated="T", gap=pl.format("J0 = {}", "J0"))
        .with_columns(over=pl.col("stated") / pl.col("exact_T"))
        .sort("c", "N", "k", "J0", "h_G")
    )
    gaps = [f"J0 = {J0}" for J0 in sorted(rows["J0"].unique())]
    colours = (charts.ORANGE, charts.SKY, charts.BLUE, charts.BLACK)
    by = plots.kinds(dict(zip(gaps, colours, strict=False)), "gap", shapes=True, columns=4)
    span = [float(each) for each in (*data["stated"], *data["exact_T"])]
    x = plots.log("exact_T", "steps that are needed, from the worst start (log scale)", span).but(form="~s")
    y = plots.log("stated", "steps as stated, T (log scale)", span).but(form="~s")
    equal = pl.DataFrame({"exact_T": [min(span), max(span)], "stated": [min(span), max(span)]})
    layers = [
        *plots.lines(equal, x, y, charts.GREY, strokeDash=[4, 3]),
        *plots.points(data, x, y, by, tips=["c", "N", "k", "h_G"], size=40, opacity=0.8),
    ]
    enough = data.filter(pl.col("stated") >= pl.col("exact_T")).height
    middle, most = (float(each) for each in data.select(pl.median("over"), most=pl.max("over")).row(0))
    return plots.figure(
        layers,
        data,
        f"The steps of Proposition 4.1.4 are enough in {enough} of {data.height} cells, at the median "
        f"{number(middle, 1)} times what it takes",
        f"Cliques and masks of at least their size, δ = {delta:g}; exact by lumped chains. Dashed: both are equal",
        told=f"Median ratio {middle:.2f}, largest {most:.2f}.",
        width=380,
        height=330,
    )


@plots.drawn("Steps with masks of the clique's size")
def reach_map(context: Results) -> Figure:
    """Proposition 4.1.4 with masks of the clique's size: a map of the steps that k-Gibbs needs, and those stated."""
    rows = context.table("par_prop_cell").filter(pl.col("exact_T").is_not_null(), check_id=REACH)
    rows = plots.some(rows.filter(pl.col("k") == pl.col("c")))
    delta, fields = float(min(rows["delta"].to_list())), sorted(rows["h_G"].unique())
    h_G = fields[len(fields) // 2]
    data = (
        rows.filter(pl.col("delta") == delta, pl.col("h_G") == h_G)
        .select(
            "c",
            "N",
            "J0",
            steps=pl.col("exact_T").log10(),
            stated="T",
            needed="exact_T",
            clique=pl.format("c = {}, N = {}", "c", "N"),
        )
        .sort("c", "N", "J0")
    )
    printed = data["stated"].map_elements(lambda T: f"{T:,.0f}", return_dtype=pl.String)
    x = Axis("J0", "excess of the coupling, J0", "O")
    y = Axis("clique", None, "N", order=data["clique"].unique(maintain_order=True).to_list())
    cells = plots.cells(
        data.with_columns(printed=printed),
        x,
        y,
        "steps",
        "steps that are needed, log10",
        domain=(0, plots.most(data["steps"])),
        text="printed",
        tips=["needed", "stated"],
        size=11,
    )
    last = data.filter(pl.col("N") == pl.col("N").max()).sort("needed").row(-1, named=True)
    words = plots.tell(data, "{clique}, J0 = {J0:g}: {needed:.0f}, stated {stated}")
    return plots.figure(
        cells,
        data,
        f"A mask as large as the clique takes up to {last['needed']:,.0f} steps among {last['N']} spins",
        f"Colour: steps after which k-Gibbs has come to R_1 with probability {1 - delta:g}, from the worst start. "
        f"Numbers: T of Proposition 4.1.4. k = c, h_G = {h_G:g}; exact by lumped chains",
        told=f"Steps of k-Gibbs to R_1: {words}.",
        width=340,
        height=320,
    )


@plots.drawn("For how long independent parallel sampling is stuck")
def stuck(context: Results) -> Figure:
    """Proposition 4.1.5: for how long independent parallel sampling is stuck, as stated and as it is."""
    rows = plots.some(context.table("par_prop_cell").filter(check_id=STUCK))
    delta = sorted(rows["delta"].unique())[rows["delta"].n_unique() // 2]
    data = rows.filter(delta=delta).select(
        "c",
        "J0",
        stated="T",
        steps=pl.col("exact_T").log10(),
        shown=pl.when(pl.col("T") > 0).then(pl.format("{}", "T")).otherwise(pl.lit("none")),
    )
    x, y = Axis("c", "clique size c", "O"), Axis("J0", "excess of the coupling, J0", "O", order="descending")
    most = plots.most(data["steps"])
    cells = plots.cells(data, x, y, "steps", "steps it is stuck for, log10", domain=(0, most), text="shown")
    longer = data.filter(10 ** pl.col("steps") > pl.col("stated")).height
    silent = data.filter(pl.col("stated") == 0).height
    return plots.figure(
        cells,
        data,
        f"Independent parallel sampling is stuck for longer than stated in {longer} of {data.height} cells; "
        f"in {silent} the bound says nothing",
        "Colour: steps for which the clique’s sum stays at most −2, from the worst start, with probability "
        f"{1 - delta:g}. Numbers: T of Proposition 4.1.5. Exact by lumped chains, at most 1e300",
        told=f"Steps: {plots.tell(data, 'c = {c}, J0 = {J0:g}: 10^{steps:.1f}, stated {shown}')}.",
        width=400,
        height=190,
    )
