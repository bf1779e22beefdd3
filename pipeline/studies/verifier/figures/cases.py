"""Figures ``fig33`` and ``settings``: test cases against queries, and gains by setting, on the stand-in."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, intervals
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import CODE_PER_QUERY, CODE_POOLED

KINDS = {
    "no backtracks": charts.BLUE,
    "Algorithm 1, threshold 0.1": charts.ORANGE,
    "block best-of-2": charts.GREY,
    "block best-of-4": charts.PURPLE,
    "block best-of-8": charts.BLACK,
}
SHOWN = ["0.95, 1", "1, 1", "1, 1.2"]  # top_p and temperature of the panels of Figure 3.3


def fig33(context: Results) -> Figure:
    """Distinct right test cases against queries over the repetitions, mean over models and runs (Figures 3.3, 3.4)."""
    runs = _named(context.table("code_runs")).filter(pl.col("kind").is_in(list(KINDS)), ~pl.col("reserved"))
    chosen = runs.filter(pl.col("setting").is_in(SHOWN))
    data = (
        context.table("code_cumulative")
        .join(chosen.select("config", "replica", "run", "kind", "setting"), on=["config", "replica", "run"])
        .group_by("kind", "setting", "completion", maintain_order=True)
        .agg(pl.mean("calls", "distinct"))
        .with_columns(panel=pl.format("top_p, T = {}", "setting"))
    )
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())))
    chart = (
        alt.Chart(data)
        .mark_line(point=True)
        .encode(
            x=alt.X("calls:Q", title="queries, C", axis=alt.Axis(format="~s", tickCount=5)),
            y=alt.Y("distinct:Q", title="distinct right test cases"),
            color=colour,
            strokeDash=alt.StrokeDash("kind:N", title=None, scale=alt.Scale(domain=list(KINDS))),
        )
        .properties(width=190, height=220)
        .facet(facet=alt.Facet("panel:N", title=None), columns=3)
        .resolve_scale(x="independent")
    )
    found = comparisons.read(context, [CODE_PER_QUERY[8]]).row(0, named=True)
    title = alt.TitleParams(
        f"Algorithm 1 finds {number(found['value'], 1)} times as many test cases per query as block best-of-8",
        subtitle=f"Stand-in for CodeLlama; mean of {found['n']} models and their runs",
    )
    return chart.properties(title=title), data


def settings(context: Results) -> Figure:
    """Accuracy without backtracks and with Algorithm 1 at each setting, mean over models with its interval."""
    runs = _named(context.table("code_runs")).filter(~pl.col("reserved"))
    colours = {
        "no backtracks": charts.BLUE,
        "Algorithm 1, threshold 0.1": charts.ORANGE,
        "Algorithm 1, threshold 0.5": charts.VERMILLION,
    }
    kinds = [kind for kind in colours if kind in set(runs["kind"])]
    compared = sorted(set(runs.filter(kind="Algorithm 1, threshold 0.1")["setting"]))
    own = runs.filter(pl.col("kind").is_in(kinds), pl.col("setting").is_in(compared))
    rows: list[dict[str, Any]] = []
    for (setting, kind), part in own.group_by("setting", "kind", maintain_order=True):
        values = part.group_by("replica", maintain_order=True).agg(pl.mean("accuracy"))["accuracy"].to_numpy()
        found = intervals.mean(values, context.settings.confidence).within(0.0, 1.0)
        lo, hi = (found.lo, found.hi) if found.n >= found.fewest else (None, None)
        rows.append({"setting": setting, "kind": kind, "value": found.value, "lo": lo, "hi": hi})
    data = pl.DataFrame(rows, schema_overrides={"lo": pl.Float64, "hi": pl.Float64})
    scale = alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds])
    colour = alt.Color("kind:N", title=None, scale=scale)
    shape = alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds))
    y, offset = alt.Y("setting:N", title="top_p, temperature"), alt.YOffset("kind:N", sort=kinds)
    base = alt.Chart(data).encode(y=y, yOffset=offset, color=colour)
    title = "distinct right test cases, share of those requested"
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1])), shape=shape
    )
    bars = base.transform_filter("isValid(datum.lo)").mark_rule().encode(x=alt.X("lo:Q", title=title), x2="hi:Q")
    pooled = comparisons.read(context, [CODE_POOLED]).row(0, named=True)
    gain = None if pooled["value"] is None else 100 * pooled["value"]
    heading = alt.TitleParams(
        f"Over five settings Algorithm 1 gains {number(gain, 1)} points",
        subtitle=f"Stand-in for CodeLlama; mean of {pooled['n']} models and its 95 % interval",
    )
    return (bars + points).properties(title=heading, width=380, height=280), data


def _named(runs: pl.DataFrame) -> pl.DataFrame:
    """Return decoders with their setting and kind: of Algorithm 1 the one with a linear verifier of the last state."""
    last = max(runs["layer"])
    ours = (
        (pl.col("verifier") == "trained")
        & (pl.col("quota") == 4)
        & (pl.col("stride") == 4)
        & (pl.col("depth") == 1)
        & (pl.col("refill") == "argmax")
        & (pl.col("layer") == last)
        & (pl.col("read") == last)
    )
    kind = (
        pl.when(pl.col("candidates") > 0)
        .then(pl.format("block best-of-{}", "candidates"))
        .when(pl.col("verifier") == "none")
        .then(pl.lit("no backtracks"))
        .when(ours)
        .then(pl.format("Algorithm 1, threshold {}", "threshold"))
    )
    shown = [
        pl.col(name).map_elements(lambda value: f"{value:g}", return_dtype=pl.String)
        for name in ("top_p", "temperature")
    ]
    return runs.with_columns(kind=kind, setting=pl.concat_str(shown, separator=", "))
