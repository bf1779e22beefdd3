"""What a verifier saves in calls: Proposition 3.1.1, the hidden prefix of Theorem 3.1.1, and the coin."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from schemas.verifier.theory_tables import METHODS, RANDOM, REJECTION, TOKENWISE

NAMES = {REJECTION: "rejection sampling", TOKENWISE: "tokenwise rejection"}
COLOURS = {NAMES[REJECTION]: charts.VERMILLION, NAMES[TOKENWISE]: charts.BLUE}


def _logarithmic(title: str, values: list[float]) -> dict[str, Any]:
    """Return title, scale and axis of a logarithmic channel that spans ``values``, a tick for each decade."""
    low, high = min(values), max(values)
    ticks = [10.0**e for e in range(7) if low / 2 <= 10.0**e <= high * 2]
    scale = alt.Scale(type="log", domain=[low / 1.5, high * 1.5], nice=False)
    return {"title": title, "scale": scale, "axis": alt.Axis(values=ticks, format="~s")}


def calls(context: Results) -> Figure:
    """Proposition 3.1.1: calls that produce 0^D, simulated beside expected."""
    table = context.table("theory_queries").filter(pl.col("algorithm").is_in(list(NAMES)))
    data = table.select(
        "D", pl.col("algorithm").replace(NAMES), calls="mean_calls", expected="expected_calls", se="se_calls"
    ).sort("algorithm", "D")
    colour = alt.Color(
        "algorithm:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="bottom"),
    )
    y = _logarithmic("calls of the oracle", [*data["calls"], *data["expected"]])
    x = alt.X("D:Q", title="length D", axis=alt.Axis(values=sorted({*data["D"]}), format="d"))
    line = alt.Chart(data).mark_line(strokeWidth=1.5, strokeDash=[5, 3])
    layers = [
        line.encode(x, alt.Y("expected:Q", **y), colour),
        alt.Chart(data)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(x, alt.Y("calls:Q", **y), colour, shape=alt.Shape("algorithm:N", legend=None)),
    ]
    last = table.filter(pl.col("D") == pl.col("D").max())
    at = {row["algorithm"]: row for row in last.iter_rows(named=True)}
    saved = at[REJECTION]["mean_calls"] / at[TOKENWISE]["mean_calls"]
    D, trials = last["D"][0], last["trials"][0]
    title = alt.TitleParams(
        f"At D = {D} the process verifier saves a factor of {saved:.0f} in calls",
        subtitle=[f"Points: means of {trials:,} trials; dashed: 2^D D and 2 D, as expected"],
    )
    words = "Calls to produce the string of zeros against its length: " + "; ".join(
        f"{NAMES[row['algorithm']]} {number(row['mean_calls'], 1)}, expected {number(row['expected_calls'], 0)}"
        for row in last.iter_rows(named=True)
    )
    words += f", at D = {D}."
    chart = alt.layer(*layers).properties(width=430, height=280, title=title, description=words)
    return chart, data


def hidden_parity(context: Results) -> Figure:
    """Theorem 3.1.1: expected queries of the best searcher, and the number that is printed as their bound."""
    table = context.table("parity_minimax").filter(searcher=RANDOM).sort("D")
    names = {"mean_queries": "best searcher", "printed_bound": "printed lower bound, 2^(D − 1)"}
    data = table.unpivot(list(names), index="D", variable_name="what", value_name="calls").with_columns(
        pl.col("what").replace(names)
    )
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=[charts.BLUE, charts.VERMILLION]),
        legend=alt.Legend(orient="bottom"),
    )
    x = alt.X("D:Q", title="length D", axis=alt.Axis(values=sorted({*data["D"]}), format="d"))
    y = _logarithmic("expected queries of whole prefixes", data["calls"].to_list())
    line = alt.Chart(data).mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=70, filled=True, opacity=1))
    last = table.row(-1, named=True)
    share = last["mean_queries"] / last["printed_bound"]
    title = alt.TitleParams(
        f"The hidden prefix costs {number(share)} of the printed bound at D = {last['D']}",
        subtitle=["Expected number over all oracles, by enumeration: (N + 1)/2 − 1/N with N = 2^(D − 1)"],
    )
    each = (f"D = {row['D']}, {row['mean_queries']:g} of {row['printed_bound']:g}" for row in table.to_dicts())
    words = "Expected queries that find the hidden prefix, and the printed bound, against D: " + "; ".join(each)
    chart = line.encode(x, alt.Y("calls:Q", **y), colour, shape=alt.Shape("what:N", legend=None))
    return chart.properties(width=430, height=260, title=title, description=f"{words}."), data


def frontier(context: Results) -> Figure:
    """Accuracy against calls of Algorithm 1 and of block best-of-n, on an oracle of independent errors."""
    data = context.table("coin_frontier").with_columns(
        setting=pl.when(pl.col("Q").is_not_null())
        .then(pl.format("Q = {}, B = {}", "Q", "B"))
        .otherwise(pl.format("{} candidates, blocks of {}", "n", "block"))
    )
    # Settings of no candidate beside the first, and of no backtrack, are the oracle alone.
    data = data.filter(pl.col("Q").ne_missing(0), pl.col("n").ne_missing(1)).sort("method", "calls")
    legend = alt.Legend(orient="bottom")  # one of colour and shape
    colour = alt.Color(
        "method:N",
        title=None,
        sort=METHODS,
        scale=alt.Scale(domain=METHODS, range=[charts.ORANGE, charts.PURPLE, charts.BLUE]),
        legend=legend,
    )
    chart = (
        alt.Chart(data)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            alt.X(
                "calls:Q",
                title="expected calls",
                scale=alt.Scale(type="log", nice=False, padding=12),
                axis=alt.Axis(values=[32, 64, 128, 256], format="d"),
            ),
            alt.Y(
                "accuracy:Q",
                title="strings without an error",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(values=charts.UNIT),
            ),
            colour,
            shape=alt.Shape("method:N", title=None, sort=METHODS, scale=alt.Scale(domain=METHODS), legend=legend),
            tooltip=["method:N", "setting:N", "calls:Q", "accuracy:Q"],
        )
    )
    greedy = data.filter(method=METHODS[0]).sort(-pl.col("accuracy"), "calls").row(0, named=True)
    blocks = data.filter(pl.col("accuracy") >= greedy["accuracy"], method=METHODS[2]).sort("calls")
    needed = f"{blocks['calls'][0]:.0f}" if blocks.height else "more than any here"
    eta, D = data["eta"][0], data["D"][0]
    title = alt.TitleParams(
        f"Algorithm 1 is right {greedy['accuracy'] * 100:.0f} times in 100 for {greedy['calls']:.0f} calls",
        subtitle=[
            f"Block best-of-n needs {needed} calls for as much; D = {D}, an error at each token with {eta:g}",
            "Perfect verifiers, closed forms",
        ],
    )
    best = (
        f"{method}: {number(rows['accuracy'][0], 3)} at {rows['calls'][0]:.0f} calls"
        for method in METHODS
        for rows in [data.filter(method=method).sort(-pl.col("accuracy"), "calls")]
        if rows.height
    )
    words = "Share of strings without an error against expected calls; the best of each method: " + "; ".join(best)
    return chart.properties(width=470, height=290, title=title, description=f"{words}."), data
