"""Figures ``forced`` and ``algorithm_1``: backtracking from error-inducing prefixes (Li 2025, Tables 3.1 and 3.2)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, intervals, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import FORCED, LARGEST_CELL, OVER_GREEDY_CELLS
from pipeline.studies.verifier.figures.words import signed
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
PRINTED = "published, refilled greedily"
LOOKS = {
    REFILLS["argmax"]: Look(charts.BLUE),
    REFILLS["sample"]: Look(charts.ORANGE, shape="triangle-up"),
    BASELINES["none"]: Look(charts.BLACK, shape="square"),
    BASELINES["greedy"]: Look(charts.GREY, shape="diamond"),
    PRINTED: Look(charts.VERMILLION, shape="cross"),
}
PANELS = {"seen": "trained on their mistakes", "held": "further prefixes", "published": "published"}
PUBLISHED_LEVELS = {("published", "none"): 0.331, ("published", "greedy"): 0.334}  # Table 3.2
RIGHT = plots.share("value", "completed rightly")
APART = 0.25  # on the axis of strides


@plots.drawn("Prefixes that are completed rightly after one backtrack")
def forced(context: Results) -> Figure:
    """How often prefixes are completed rightly after one backtrack, by how much it erases; and as published."""
    table = plots.some(context.table("forced").filter(prefixes=SEEN))
    ours = _summarised(context, table, "stride", "refill").with_columns(
        decoder=pl.col("refill").replace_strict(REFILLS | BASELINES)
    )
    printed = pl.DataFrame({"stride": list(PUBLISHED), "value": list(PUBLISHED.values())}).with_columns(
        decoder=pl.lit(PRINTED)
    )
    data = pl.concat([ours, printed], how="diagonal_relaxed")
    x = Axis("stride", "signs erased at once, B", values=[0, *PUBLISHED], domain=[-0.5, max(PUBLISHED) + 0.5])
    by = Kinds("decoder", LOOKS, columns=2).among(data["decoder"])
    # Decoders lie side by side: their intervals overlap.
    aside = {name: 0.1 * (n - (len(by.looks) - 1) / 2) for n, name in enumerate(by.looks)}
    drawn = data.with_columns(x=pl.col("stride") + pl.col("decoder").replace_strict(aside, return_dtype=pl.Float64))
    found = comparisons.read(context, [FORCED[SEEN]]).row(0, named=True)
    return plots.figure(
        plots.points(drawn, x.but(field="x"), RIGHT, by, ends=("lo", "hi"), tips=["stride"], size=70),
        data,
        f"Erasing {max(PUBLISHED)} signs before a mistake changes accuracy by {signed(found['value'], 0, 100)} points",
        f"Means over {plots.count([found['n']], 'model')}, bars: 95 % intervals; error-inducing prefixes, top_p 0.9",
        told=plots.tell(data, "{decoder}, B = {stride}: {value:.2f}") + ".",
        width=430,
        height=280,
    )


@plots.drawn("Prefixes that Algorithm 1 completes rightly")
def algorithm_1(context: Results) -> Figure:
    """How often Algorithm 1 completes prefixes rightly, by quota and stride, on both sets of prefixes."""
    ours = _summarised(context, plots.some(context.table("algorithm_1")), "prefixes", "quota", "stride")
    printed = pl.DataFrame(
        [
            {"prefixes": "published", "quota": Q, "stride": B, "value": value}
            for (Q, B), value in PUBLISHED_CELLS.items()
        ]
    )
    data = pl.concat([ours, printed], how="diagonal_relaxed").with_columns(
        line=pl.format("Q = {}", "quota"), panel=pl.col("prefixes").replace_strict(PANELS, return_dtype=pl.String)
    )
    without = context.table("forced").filter(stride=0).group_by("prefixes", "refill").agg(pl.mean("accuracy"))
    levels = {(prefixes, refill): level for prefixes, refill, level in without.iter_rows()} | PUBLISHED_LEVELS
    quotas = sorted(set(data["line"]))
    by = plots.kinds(
        dict(zip(quotas, (charts.SKY, charts.BLUE, charts.BLACK), strict=False)), "line", dashes=False, shapes=True
    ).joined()
    strides = sorted(set(data["stride"]))
    # Quotas lie side by side: their intervals are long, and their means near each other.
    aside = {quota: APART * (n - (len(quotas) - 1) / 2) for n, quota in enumerate(quotas)}
    data = data.with_columns(x=pl.col("stride") + pl.col("line").replace_strict(aside, return_dtype=pl.Float64))
    x = Axis("x", "stride, B", values=strides, domain=[min(strides) - 0.5, max(strides) + 0.5])
    panels: list[plots.Panel] = []
    for prefixes, name in PANELS.items():
        own, y = data.filter(prefixes=prefixes), RIGHT.but(**{"title": None} if panels else {})
        layers = [*plots.lines(own, x, y, by), *plots.points(own, x, y, by, ends=("lo", "hi"), size=60)]
        for refill, dash in (("none", [4, 3]), ("greedy", plots.DOTTED)):
            if (prefixes, refill) in levels:
                layers = [*plots.rule(y, levels[prefixes, refill], dash=dash), *layers]
        panels.append(plots.panel(layers, name, 165, 230))
    found, likeliest = (
        comparisons.read(context, [each[SEEN]]).row(0, named=True) for each in (LARGEST_CELL, OVER_GREEDY_CELLS)
    )
    return plots.figure(
        plots.grid(panels, 3, spacing=14),
        data,
        f"Where a model is about to make a mistake Algorithm 1 with Q = 4, B = 6 changes accuracy by "
        f"{signed(found['value'], 0, 100)} points; its weakest setting, from the likeliest signs alone, by "
        f"{signed(likeliest['value'], 0, 100)}",
        f"Means over {plots.count([found['n']], 'model')}, bars: 95 % intervals. "
        "Dashed: nucleus sampling with top_p 0.9; dotted: the likeliest signs alone",
        told=plots.tell(data, "{panel}, {line}, B = {stride}: {value:.2f}") + ".",
    )


def _summarised(context: Results, table: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Return the mean over models of each group with its interval."""
    rows = []
    for keys, own in table.group_by(by, maintain_order=True):
        found = intervals.mean(own["accuracy"].to_numpy(), context.settings.confidence).within(0.0, 1.0)
        ends = {"lo": found.lo, "hi": found.hi} if found.n >= found.fewest else {"lo": None, "hi": None}
        rows.append(dict(zip(by, keys, strict=True)) | {"value": found.value, "n": found.n} | ends)
    return pl.DataFrame(rows, schema_overrides={"lo": pl.Float64, "hi": pl.Float64})
