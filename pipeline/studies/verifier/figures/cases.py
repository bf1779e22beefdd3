"""Figures ``fig33``, ``settings`` and ``vgb_cases``: test cases against queries, gains by setting, and how far samplers
are from their target, on the stand-in."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit import charts, comparisons, intervals, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.verifier.comparisons import CODE_EQUAL, CODE_MORE_QUERIES, CODE_POOLED, VGB_CASES_NEARER
from pipeline.studies.verifier.figures import below
from pipeline.studies.verifier.figures.words import signed

LOOKS = {
    "no backtracks": Look(charts.BLUE),
    "Algorithm 1, threshold 0.1": Look(charts.ORANGE, plots.DASHED, "triangle-up"),
    "Algorithm 1, threshold 0.5": Look(charts.VERMILLION, plots.DASHED, "square"),
    "block best-of-2": Look(charts.GREY, plots.DOTTED),
    "block best-of-4": Look(charts.PURPLE, plots.DOTTED),
    "block best-of-8": Look(charts.BLACK, plots.DOTTED),
}
DRAWN = [kind for kind in LOOKS if kind != "Algorithm 1, threshold 0.5"]  # in Figure 3.3
SETTINGS = [kind for kind in LOOKS if not kind.startswith("block")]
SHOWN = ["0.95, 1", "1, 1", "1, 1.2"]  # top_p and temperature of the panels of Figure 3.3


@plots.drawn("Test cases against queries")
def fig33(context: Results) -> Figure:
    """Distinct right test cases against queries over the repetitions, mean over models and runs (Figures 3.3, 3.4)."""
    runs = _named(plots.some(context.table("code_runs"))).filter(pl.col("kind").is_in(DRAWN), ~pl.col("reserved"))
    chosen = runs.filter(pl.col("setting").is_in(SHOWN))
    data = plots.some(
        context.table("code_cumulative")
        .join(chosen.select("config", "replica", "run", "kind", "setting"), on=["config", "replica", "run"])
        .group_by("kind", "setting", "completion", maintain_order=True)
        .agg(pl.mean("calls", "distinct"))
        .with_columns(panel=pl.format("top_p, T = {}", "setting"))
    )
    blocks = data.filter(pl.col("kind").str.starts_with("block"))["setting"].unique()
    longer = data.filter(pl.col("setting").is_in(blocks)).with_columns(
        panel=pl.format("top_p, T = {}, with block best-of-n", "setting")
    )
    data = pl.concat([data.filter(~pl.col("kind").str.starts_with("block")), longer])
    top = plots.most(data["distinct"])
    panels: list[plots.Panel] = []
    for name, rows in plots.split(data, "panel"):
        x = Axis("calls", "queries, C", form="~s", count=4, zero=True)
        y = Axis("distinct", None if len(panels) % 2 else "distinct right test cases", domain=[0, 1.03 * top])
        panels.append(
            plots.panel(plots.lines(rows, x, y, Kinds("kind", LOOKS).among(data["kind"]), dots=True), name, 235, 190)
        )
    found, more = (comparisons.read(context, [each]).row(0, named=True) for each in (CODE_EQUAL, CODE_MORE_QUERIES))
    gain, low, high = (signed(found[name], 1, 100) for name in ("value", "lo", "hi"))
    spent = None if more["value"] is None else more["value"] - 1
    last = data.group_by("kind", "panel", maintain_order=True).last()
    return plots.figure(
        plots.grid(panels, 2, spacing=14),
        data,
        f"By as many queries Algorithm 1 changes accuracy by {gain} points ({low} to {high}) over five settings",
        f"Stand-in for CodeLlama; means over {plots.count([found['n']], 'model')} and their runs. In all Algorithm 1 "
        f"takes {signed(spent, 0, 100)} % queries. Dashed: Algorithm 1; dotted: block best-of-n",
        told=f"At the end: {plots.tell(last, '{panel}, {kind}: {distinct:.1f} for {calls:,.0f} queries')}.",
    )


@plots.drawn("Accuracy by setting")
def settings(context: Results) -> Figure:
    """Accuracy without backtracks and with Algorithm 1 at each setting, mean over models with its interval."""
    runs = _named(plots.some(context.table("code_runs"))).filter(~pl.col("reserved"))
    compared = sorted(set(runs.filter(kind="Algorithm 1, threshold 0.1")["setting"]))
    own = plots.some(runs.filter(pl.col("kind").is_in(SETTINGS), pl.col("setting").is_in(compared)))
    rows: list[dict[str, Any]] = []
    for (setting, kind), part in own.group_by("setting", "kind", maintain_order=True):
        values = part.group_by("replica", maintain_order=True).agg(pl.mean("accuracy"))["accuracy"].to_numpy()
        found = intervals.mean(values, context.settings.confidence).within(0.0, 1.0)
        lo, hi = (found.lo, found.hi) if found.n >= found.fewest else (None, None)
        rows.append({"setting": setting, "kind": kind, "value": found.value, "lo": lo, "hi": hi})
    data = pl.DataFrame(rows, schema_overrides={"lo": pl.Float64, "hi": pl.Float64})
    x = plots.share("value", "distinct right test cases, share of those requested")
    y = Axis("setting", "top_p, temperature", "N", order=compared, more={"grid": True, "tickBand": "extent"})
    by = Kinds("kind", LOOKS).among(data["kind"])
    pooled = comparisons.read(context, [CODE_POOLED]).row(0, named=True)
    return plots.figure(
        plots.points(data, x, y, by, ends=("lo", "hi"), apart="kind"),
        data,
        f"Algorithm 1 changes accuracy by {signed(pooled['value'], 1, 100)} points over "
        f"{plots.count([len(compared)], 'setting')}",
        f"Stand-in for CodeLlama; means over {plots.count([pooled['n']], 'model')}, bars: 95 % intervals",
        told=plots.tell(data.sort("setting"), "{setting}, {kind}: {value:.3f}") + ".",
        width=380,
        height=280,
    )


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


@plots.drawn("How far samplers are from their target, test cases")
def vgb_cases(context: Results) -> Figure:
    """Mean distance to the target of every sampler, a point for each model; digits of a test case."""
    return below.distances(context, "vgb_cases", VGB_CASES_NEARER, "whether right")
