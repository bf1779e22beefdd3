"""What a verifier saves in calls: Proposition 3.1.1, the hidden prefix of Theorem 3.1.1, and the coin."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Kinds, Look
from pipeline.kit.results import Results
from schemas.verifier.theory_tables import METHODS, RANDOM, REJECTION, TOKENWISE

NAMES = {REJECTION: "rejection sampling", TOKENWISE: "tokenwise rejection"}
LOOKS = {NAMES[REJECTION]: Look(charts.VERMILLION), NAMES[TOKENWISE]: Look(charts.BLUE, shape="square")}


@plots.drawn("Calls that produce the string of zeros")
def calls(context: Results) -> Figure:
    """Proposition 3.1.1: calls that produce 0^D, simulated beside expected."""
    table = plots.some(context.table("theory_queries").filter(pl.col("algorithm").is_in(list(NAMES))))
    data = table.select(
        "D", pl.col("algorithm").replace(NAMES), calls="mean_calls", expected="expected_calls", se="se_calls"
    ).sort("algorithm", "D")
    x = plots.listed("D", "length D", data)
    y = plots.log("calls", "calls of the oracle (log scale)", [*data["calls"], *data["expected"]]).but(form="~s")
    by = Kinds("algorithm", LOOKS)
    last = table.filter(pl.col("D") == pl.col("D").max())
    at = {row["algorithm"]: row for row in last.iter_rows(named=True)}
    saved = at[REJECTION]["mean_calls"] / at[TOKENWISE]["mean_calls"]
    D, named = last["D"][0], last.with_columns(pl.col("algorithm").replace(NAMES))
    return plots.figure(
        [
            *plots.lines(data, x, y.but(field="expected"), by.joined(), strokeWidth=1.5, strokeDash=[5, 3]),
            *plots.points(data, x, y, by, size=70),
        ],
        data,
        f"At D = {D} the process verifier saves a factor of {saved:.0f} in calls",
        f"Points: means of {last['trials'][0]:,} trials; dashed: 2^D D and 2 D, as expected",
        told=f"Calls at D = {D}: "
        + plots.tell(named, "{algorithm} {mean_calls:.1f}, expected {expected_calls:.0f}")
        + ".",
        width=430,
        height=280,
    )


@plots.drawn("Queries that find the hidden prefix")
def hidden_parity(context: Results) -> Figure:
    """Theorem 3.1.1: expected queries of the best searcher, and the number that is printed as their bound."""
    table = plots.some(context.table("parity_minimax").filter(searcher=RANDOM)).sort("D")
    names = {"mean_queries": "best searcher", "printed_bound": "printed lower bound, 2^(D − 1)"}
    data = table.unpivot(list(names), index="D", variable_name="what", value_name="calls").with_columns(
        pl.col("what").replace(names)
    )
    x = plots.listed("D", "length D", data)
    y = plots.log("calls", "expected queries of whole prefixes (log scale)", data["calls"]).but(form="~s")
    by = plots.kinds(names.values(), "what")
    last = table.row(-1, named=True)
    return plots.figure(
        plots.lines(data, x, y, by, dots=True),
        data,
        f"The hidden prefix costs {number(last['mean_queries'] / last['printed_bound'])} of the printed bound at "
        f"D = {last['D']}",
        "Expected number over all oracles, by enumeration: (N + 1)/2 − 1/N with N = 2^(D − 1)",
        told=plots.tell(table, "D = {D}: {mean_queries:g} of {printed_bound:g}") + ".",
        width=430,
        height=260,
    )


@plots.drawn("Accuracy against calls")
def frontier(context: Results) -> Figure:
    """Accuracy against calls of Algorithm 1 and of block best-of-n, on an oracle of independent errors."""
    data = plots.some(context.table("coin_frontier")).with_columns(
        setting=pl.when(pl.col("Q").is_not_null())
        .then(pl.format("Q = {}, B = {}", "Q", "B"))
        .otherwise(pl.format("{} candidates, blocks of {}", "n", "block"))
    )
    # Settings of no candidate beside the first, and of no backtrack, are the oracle alone.
    data = data.filter(pl.col("Q").ne_missing(0), pl.col("n").ne_missing(1)).sort("method", "calls")
    colours = (charts.ORANGE, charts.PURPLE, charts.BLUE)
    by = plots.kinds(dict(zip(METHODS, colours, strict=True)), "method", shapes=True)
    x = plots.log("calls", "expected calls (log scale)", data["calls"])
    x = x.but(values=[32, 64, 128, 256], domain=[plots.least(data["calls"]) / 1.1, plots.most(data["calls"]) * 1.1])
    greedy = data.filter(method=METHODS[0]).sort(-pl.col("accuracy"), "calls").row(0, named=True)
    blocks = data.filter(pl.col("accuracy") >= greedy["accuracy"], method=METHODS[2]).sort("calls")
    needed = f"{blocks['calls'][0]:.0f}" if blocks.height else "more than any here"
    best = data.sort(-pl.col("accuracy"), "calls").unique("method", keep="first", maintain_order=True)
    return plots.figure(
        plots.points(data, x, plots.share("accuracy", "strings without an error"), by, tips=["setting"], size=70),
        data,
        f"Algorithm 1 is right {greedy['accuracy'] * 100:.0f} times in 100 for {greedy['calls']:.0f} calls",
        f"Block best-of-n needs {needed} calls for as much; D = {data['D'][0]}, an error at each token with "
        f"{data['eta'][0]:g}. Perfect verifiers, closed forms",
        told=f"The best of each method: {plots.tell(best, '{method}: {accuracy:.3f} at {calls:.0f} calls')}.",
        width=470,
        height=290,
    )
