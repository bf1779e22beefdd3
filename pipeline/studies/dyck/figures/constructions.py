"""The executable theory: broken solvers, and the error of pruned parents (DYCK-TH4, TH6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.studies.dyck.figures.common import ACCURACIES

if TYPE_CHECKING:
    from pipeline.kit.results import Results

NO_CHECK = "no theory check"
# How groups of theory checks begin: the lines of both panels, and what is drawn for each number of layers.
PAIRS, LENGTHS, LAYERS = "inserted pairs, ", "length, ", "L = "
NOISE = [charts.BLACK, charts.BLUE, charts.SKY, charts.GREEN, charts.ORANGE, charts.VERMILLION]  # the least first
ENDS = {"fitted": "slope", "first": "lower end of the slope", "second": "upper end of the slope"}


@plots.drawn("Exact solvers with noise on the logits of closing brackets")
def broken_solvers(context: Results) -> Figure:
    """What noise on balance does (ours), under inserted pairs and at length."""
    theory = context.theory()
    near = theory.filter(pl.col("group").str.starts_with(PAIRS))["measured"]
    parts = {
        "(a) inserted pairs": (PAIRS, "inserted pairs", plots.log("y", "distance of two prefixes, h", near)),
        "(b) length": (LENGTHS, "length of the string", Axis("y", ACCURACIES["acc_close"], zero=False)),
    }
    found = {
        panel: theory.filter(pl.col("group").str.starts_with(start)).select(
            line=pl.col("group").str.strip_prefix(start), x="x", y="measured", panel=pl.lit(panel)
        )
        for panel, (start, _, _) in parts.items()
    }
    data = plots.some(pl.concat(found.values()), NO_CHECK)
    size = pl.col("line").str.strip_prefix("delta = ").cast(pl.Float64)
    levels = data.sort(size)["line"].unique(maintain_order=True)
    named = {line: line.replace("delta", "δ") for line in levels}
    by = plots.kinds(dict(zip(named.values(), NOISE, strict=False)), "noise", shapes=True, columns=3)
    panels = []
    for panel, (_, title, y) in parts.items():
        rows = found[panel].with_columns(noise=pl.col("line").replace(named))
        if rows.height:
            x = plots.listed("x", f"{title} (log scale)", rows, log=True, pad=8)
            marks = plots.lines(rows, x, y, by, dots=True)
            panels.append(plots.panel(marks, panel, 240, 215))
    ends = data.sort("x").unique(["panel", "line"], keep="last", maintain_order=True).sort("panel", size)
    last = ends.filter(panel="(b) length").with_columns(noise=pl.col("line").replace(named))
    return plots.figure(
        plots.grid(panels, spacing=30),
        data,
        f"Exact solvers with noise on closing brackets, right at length {plots.about(plots.most(last['x']))}: "
        + plots.tell(last, "{y:.3f} with {noise}", ", "),
        "δ: spread of the noise on the logits. (a) Prefixes that differ in the last open bracket; (b) the same solvers "
        "on random strings; each panel has the levels that were executed",
        told=f"Last points: {plots.tell(ends, '{panel}, {line}: {y:.2g}')}.",
    )


@plots.drawn("A random Transformer, pruned")
def pruning_error(context: Results) -> Figure:
    """Error of a pruned random parent (ours) against the candidates per weight, to which its width is
    linear."""
    theory = context.theory()
    slopes = dict(theory.select("group", "measured").iter_rows())
    points = theory.filter(pl.col("group").str.starts_with(LAYERS)).select(
        pl.col("group").alias("target"),
        pl.col("x").cast(pl.Int32).alias("candidates"),
        pl.col("measured").alias("error"),
    )
    points = plots.some(points, NO_CHECK)
    fits = pl.concat(_slope_line(part, slopes) for _, part in points.group_by("target", maintain_order=True))
    data = pl.concat([points, fits], how="diagonal")
    shown = points["target"].unique(maintain_order=True).to_list()
    by = plots.kinds(
        dict(zip(shown, [charts.BLUE, charts.VERMILLION], strict=False)), "target", shapes=True, dashes=False
    )
    x = plots.listed("candidates", "candidates per weight and sign, n", points)
    y = plots.log("error", "largest relative error of the pruned network", pl.concat([points["error"], fits["low"]]))
    y = y.but(form="~e")
    told = pl.DataFrame(
        [{"target": each} | {end: slopes[f"{name}, {each}"] for end, name in ENDS.items()} for each in shown]
    )
    factors = told.with_columns(factor=10 ** pl.col("fitted"))
    parents = points.group_by("target", "candidates").len()["len"]
    slopes_told = plots.tell(told, "{target}: {fitted:.3f} [{first:.3f}, {second:.3f}]")
    return plots.figure(
        [
            *plots.lines(fits, x, y.but(field="fitted"), by.joined(), band=("low", "high"), strokeWidth=1.5),
            *plots.points(points, x, y, by, opacity=0.75),
        ],
        data,
        "A random Transformer, pruned: each further candidate per weight multiplies the error by "
        + plots.tell(factors, "{factor:.2f} ({target})", ", by "),
        f"L: layers of the target. Points: {plots.count(parents, 'random parent')} of 4L layers for each n, their "
        "widths linear in n. Lines: least squares on all points",
        f"Slope of log10 of the error, with bands of 95 % over all draws of a parent: {slopes_told}; at "
        f"{charts.number(-0.30103, 3)} it would halve",
        told=f"Error on a log scale against candidates per weight. Slopes: {slopes_told}.",
        width=480,
        height=300,
    )


def _slope_line(points: pl.DataFrame, slopes: dict[str, float]) -> pl.DataFrame:
    """Return the least-squares line through the centre of ``points``, and the lines of the ends of its
    slope's interval."""
    target = points["target"][0]
    centre, height = points["candidates"].mean(), points["error"].log10().mean()
    ends = pl.DataFrame({"candidates": points["candidates"].unique().sort()})
    at = {name: slopes[f"{end}, {target}"] * (pl.col("candidates") - centre) + height for name, end in ENDS.items()}
    lines = ends.with_columns(**{name: 10**value for name, value in at.items()})
    return lines.select(
        "candidates",
        "fitted",
        pl.min_horizontal("first", "second").alias("low"),
        pl.max_horizontal("first", "second").alias("high"),
        pl.lit(target).alias("target"),
    )
