"""Figures ``unseen`` and ``finding``: mistakes on unseen prompts (Li 2025, Tables 3.3 and 3.16, and beyond)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, intervals
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import ERRORS_LEFT, FINDING, HIGH, LOW, REFILLING
from pipeline.studies.verifier.names import GROUND_TRUTH, NONE, RANDOM, TRAINED

DECODERS = {
    (NONE, ""): "no backtracks",
    (RANDOM, "sample"): "random verifier, sampled refill",
    (RANDOM, "argmax"): "random verifier, greedy refill",
    (TRAINED, "sample"): "trained verifier, sampled refill",
    (TRAINED, "argmax"): "trained verifier, greedy refill (Algorithm 1)",
    (GROUND_TRUTH, "sample"): "ground truth, sampled refill",
    (GROUND_TRUTH, "argmax"): "ground truth, greedy refill",
}


def unseen(context: Results) -> Figure:
    """Mistakes per 100 prompts of every decoder and model."""
    table = context.table("unseen")
    data = table.with_columns(
        decoder=pl.struct("verifier", "refill").map_elements(
            lambda row: DECODERS[row["verifier"], row["refill"]], return_dtype=pl.String
        ),
        percent=100 * pl.col("errors") / pl.col("n"),
        panel=pl.format("top_p {}", "top_p"),
    )
    colour = alt.Color(
        "refill:N",
        title="refill",
        scale=alt.Scale(domain=["", "sample", "argmax"], range=[charts.BLACK, charts.ORANGE, charts.BLUE]),
        legend=None,
    )
    y = alt.Y("decoder:N", title=None, sort=list(DECODERS.values()), axis=alt.Axis(labelLimit=300))
    x = alt.X("percent:Q", title="wrong, per 100 prompts", scale=alt.Scale(zero=True))
    base = alt.Chart(data)
    points = base.mark_point(size=45, opacity=0.7).encode(x, y, colour)
    means = base.mark_tick(thickness=3, size=16).encode(
        alt.X("mean(percent):Q", title="wrong, per 100 prompts"), y, colour
    )
    chart = (points + means).properties(width=210, height=190).facet(facet=alt.Facet("panel:N", title=None), columns=2)
    left = [comparisons.read(context, [ERRORS_LEFT[p]]).row(0, named=True) for p in (LOW, HIGH)]
    words = " and ".join(number(None if row["value"] is None else 100 * (1 - row["value"]), 0) for row in left)
    title = alt.TitleParams(
        f"Algorithm 1 takes away {words} % of mistakes at top_p {LOW} and {HIGH}",
        subtitle=f"A circle for each of {left[0]['n']} models, mean of its runs; ticks: their means",
    )
    return chart.properties(title=title), data


def finding(context: Results) -> Figure:
    """What finding mistakes and what refilling greedily take away, each with the other part held fixed."""
    asked = {
        f"finding, {'greedy' if refill == 'argmax' else 'sampled'} refill": {p: FINDING[p, refill] for p in (LOW, HIGH)}
        for refill in ("argmax", "sample")
    } | {
        f"refilling greedily, {verifier}{' verifier' if verifier != GROUND_TRUTH else ''}": {
            p: REFILLING[p, verifier] for p in (LOW, HIGH)
        }
        for verifier in (TRAINED, GROUND_TRUTH, RANDOM)
    }
    frames = [
        comparisons.read(context, [comparison]).select(
            effect=pl.lit(name),
            top_p=pl.lit(f"top_p {p}"),
            value=100 * pl.col("value"),
            lo=100 * pl.col("lo"),
            hi=100 * pl.col("hi"),
            n=pl.col("n"),
        )
        for name, by_level in asked.items()
        for p, comparison in by_level.items()
    ]
    data = pl.concat(frames)
    levels = [f"top_p {p}" for p in (LOW, HIGH)]
    colour = alt.Color("top_p:N", title=None, scale=alt.Scale(domain=levels, range=[charts.BLUE, charts.VERMILLION]))
    shape = alt.Shape("top_p:N", title=None, scale=alt.Scale(domain=levels))
    y, offset = (alt.Y("effect:N", title=None, sort=list(asked), axis=alt.Axis(labelLimit=300)), alt.YOffset("top_p:N"))
    base = alt.Chart(data).encode(y=y, yOffset=offset, color=colour)
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=charts.GREY).encode(x="zero:Q")
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("lo:Q", title="fewer mistakes per 100 prompts"), x2="hi:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title="fewer mistakes per 100 prompts"), shape=shape
    )
    parts = [
        number(data.filter(pl.col("top_p") == f"top_p {HIGH}", pl.col("effect") == name)["value"].item(), 1)
        for name in ("finding, greedy refill", "refilling greedily, trained verifier")
    ]
    title = alt.TitleParams(
        f"At top_p {HIGH} finding mistakes takes away {parts[0]} per 100 prompts, refilling greedily {parts[1]}",
        subtitle=f"Differences within each of {max(data['n'])} models, mean and {intervals.STUDENT}'s 95 % interval",
    )
    return (zero + bars + points).properties(title=title, width=330, height=260), data
