"""Figures ``forced`` and ``algorithm_1``: backtracking from error-inducing prefixes (Li 2025, Tables 3.1 and 3.2)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, intervals
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import FORCED, LARGEST_CELL
from pipeline.studies.verifier.names import SEEN

REFILLS = {"argmax": "refilled greedily", "sample": "refilled by sampling"}
BASELINES = {"none": "nucleus sampling, nothing erased", "greedy": "greedy, nothing erased"}
# Tables 3.1 and 3.2 of the source.
PUBLISHED = {1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}
PUBLISHED_CELLS = {
    (1, 2): 0.421,
    (1, 4): 0.500,
    (1, 6): 0.604,
    (2, 2): 0.457,
    (2, 4): 0.634,
    (2, 6): 0.762,
    (4, 2): 0.518,
    (4, 4): 0.762,
    (4, 6): 0.921,
}
SHARE = alt.Scale(domain=[0, 1])
TITLE = "completed rightly"
APART = 0.25  # on the axis of strides


def forced(context: Results) -> Figure:
    """How often prefixes are completed rightly after one backtrack, by how much it erases; and as published."""
    table = context.table("forced").filter(prefixes=SEEN)
    data = _summarised(context, table, "stride", "refill").with_columns(
        decoder=pl.col("refill").replace_strict(REFILLS | BASELINES)
    )
    printed = pl.DataFrame({"stride": list(PUBLISHED), "value": list(PUBLISHED.values())}).with_columns(
        decoder=pl.lit("published, refilled greedily")
    )
    data = pl.concat([data, printed], how="diagonal_relaxed")
    names = [*REFILLS.values(), *BASELINES.values(), "published, refilled greedily"]
    colours = [charts.BLUE, charts.ORANGE, charts.BLACK, charts.GREY, charts.VERMILLION]
    colour = alt.Color("decoder:N", title=None, sort=names, scale=alt.Scale(domain=names, range=colours))
    shape = alt.Shape("decoder:N", title=None, sort=names, scale=alt.Scale(domain=names))
    x = alt.X("stride:Q", title="signs erased at once, B", axis=alt.Axis(values=[0, *PUBLISHED]))
    base = alt.Chart(data)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        x, alt.Y("value:Q", title=TITLE, scale=SHARE), colour, shape
    )
    bars = (
        base.transform_filter("isValid(datum.lo)")
        .mark_rule()
        .encode(x, alt.Y("lo:Q", title=TITLE), alt.Y2("hi:Q"), colour)
    )
    found = comparisons.read(context, [FORCED[SEEN]]).row(0, named=True)
    gain = number(found["value"] * 100, 0) if found["value"] is not None else "–"
    title = alt.TitleParams(
        f"Erasing eight signs before a mistake gains {gain} points of accuracy",
        subtitle=f"Mean of {found['n']} models and its 95 % interval; error-inducing prefixes, top_p 0.9",
    )
    return (bars + points).properties(title=title, width=430, height=280), data


def algorithm_1(context: Results) -> Figure:
    """How often Algorithm 1 completes prefixes rightly, by quota and stride, on both sets of prefixes."""
    table = context.table("algorithm_1")
    data = _summarised(context, table, "prefixes", "quota", "stride").with_columns(
        line=pl.format("Q = {}", "quota"),
        panel=pl.col("prefixes").replace_strict({"seen": "trained on their mistakes", "held": "further prefixes"}),
    )
    printed = pl.DataFrame(
        [
            {"prefixes": "seen", "quota": Q, "stride": B, "value": value, "line": f"Q = {Q}", "panel": "published"}
            for (Q, B), value in PUBLISHED_CELLS.items()
        ]
    )
    data = pl.concat([data, printed], how="diagonal_relaxed")
    baseline = (
        context.table("forced").filter(refill="none").group_by("prefixes", maintain_order=True).agg(pl.mean("accuracy"))
    )
    levels = dict(baseline.iter_rows())
    rules = pl.DataFrame(
        {
            "panel": ["trained on their mistakes", "further prefixes", "published"],
            "level": [levels["seen"], levels["held"], 0.331],
        }
    )
    quotas = sorted(set(data["line"]))
    scale = alt.Scale(domain=quotas, range=[charts.SKY, charts.BLUE, charts.BLACK])
    colour = alt.Color("line:N", title="quota", scale=scale)
    shape = alt.Shape("line:N", title="quota", scale=alt.Scale(domain=quotas))
    strides = sorted(set(data["stride"]))
    # Quotas lie side by side: their intervals are long, and their means near each other.
    aside = {quota: APART * (n - (len(quotas) - 1) / 2) for n, quota in enumerate(quotas)}
    data = data.with_columns(x=pl.col("stride") + pl.col("line").replace_strict(aside, return_dtype=pl.Float64))
    axis, scale_x = alt.Axis(values=strides), alt.Scale(domain=[min(strides) - 0.5, max(strides) + 0.5], nice=False)
    x = alt.X("x:Q", title="stride, B", axis=axis, scale=scale_x)
    order = ["trained on their mistakes", "further prefixes", "published"]
    panels: list[Any] = []
    for panel in order:
        own, rule = data.filter(panel=panel), rules.filter(panel=panel)
        y = alt.Y("value:Q", title=TITLE if panel == order[0] else None, scale=SHARE)
        layers = [
            alt.Chart(rule).mark_rule(strokeDash=[4, 3], color=charts.GREY).encode(y="level:Q"),
            alt.Chart(own).mark_line().encode(x, y, colour),
            alt.Chart(own).mark_point(filled=True, size=60, opacity=1).encode(x, y, colour, shape),
        ]
        if (spread := own.filter(pl.col("lo").is_not_null())).height:  # a layer of no rows has no extent
            layers.append(alt.Chart(spread).mark_rule().encode(x, alt.Y("lo:Q"), alt.Y2("hi:Q"), colour))
        panels.append(alt.layer(*layers).properties(width=165, height=230, title=alt.TitleParams(panel, fontSize=13)))
    found = comparisons.read(context, [LARGEST_CELL[SEEN]]).row(0, named=True)
    gain = number(found["value"] * 100, 0) if found["value"] is not None else "–"
    title = alt.TitleParams(
        f"Algorithm 1 with Q = 4, B = 6 gains {gain} points where a model is about to make a mistake",
        subtitle=f"Mean of {found['n']} models and its 95 % interval; dashed: nucleus sampling with top_p 0.9",
    )
    return alt.hconcat(*panels).properties(title=title), data


def _summarised(context: Results, table: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the mean over models of each group with its interval."""
    rows = []
    for keys, own in table.group_by(by, maintain_order=True):
        found = intervals.mean(own["accuracy"].to_numpy(), context.settings.confidence).within(0.0, 1.0)
        ends = {"lo": found.lo, "hi": found.hi} if found.n >= found.fewest else {"lo": None, "hi": None}
        rows.append(dict(zip(by, keys, strict=True)) | {"value": found.value, "n": found.n} | ends)
    return pl.DataFrame(rows, schema_overrides={"lo": pl.Float64, "hi": pl.Float64})
