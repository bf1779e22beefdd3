"""The executable theory: broken solvers, and the error of pruned parents (DYCK-TH4, TH6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.figures.common import ACCURACIES

if TYPE_CHECKING:
    from pipeline.kit.results import Results

CONFIDENCE = 0.95  # of the slopes of `theory.pruning`
# How groups of theory checks begin: the lines of both panels, and what is drawn for each number of layers.
PAIRS, LENGTHS, LAYERS = "inserted pairs, ", "length, ", "L = "
ENDS = {"fitted": "slope", "first": "lower end of the slope", "second": "upper end of the slope"}
ERROR_TITLE = "largest relative error of the pruned network (log scale)"


def broken_solvers(context: Results) -> Figure:
    """What noise on balance does (ours), under inserted pairs and at length."""
    shape: dict[str, Any] = {"line": pl.String, "x": pl.Float64, "y": pl.Float64, "panel": pl.String}
    panels, frames = [], []
    for panel, start, x_title, y_title, y_scale in (
        (
            "(a) inserted pairs",
            PAIRS,
            "inserted pairs",
            "distance of two prefixes, h",
            alt.Scale(type="log", nice=False, padding=8),
        ),
        ("(b) length", LENGTHS, "length of the string", ACCURACIES["acc_close"], alt.Scale(zero=False)),
    ):
        points = context.theory().filter(pl.col("group").str.starts_with(start))
        frame = points.select(
            pl.col("group").str.strip_prefix(start).alias("line"),
            "x",
            pl.col("measured").alias("y"),
            pl.lit(panel).alias("panel"),
        )
        frames.append(pl.DataFrame(frame, schema=shape))
        steps = frame["x"].unique().sort().to_list()
        base = alt.Chart(frame).encode(
            x=alt.X(
                "x:Q",
                title=x_title,
                scale=alt.Scale(type="log", nice=False, padding=8),
                axis=alt.Axis(values=steps, format="d"),
            ),
            y=alt.Y("y:Q", title=y_title, scale=y_scale),
            color=alt.Color("line:N", title="noise", legend=alt.Legend(orient="bottom")),
        )
        both = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=45, opacity=1))
        panels.append(both.properties(width=235, height=215, title=alt.TitleParams(panel, fontSize=charts.SIZE)))
    data = pl.concat(frames)
    title = alt.TitleParams(
        "Exact solvers with noise of spread δ on the logits of closing brackets",
        subtitle="(a) prefixes that differ in the last open bracket; (b) same solvers on random strings",
    )
    ends = [
        f"{row['panel'][:3]} {row['line']} {row['y']:.2g}"
        for row in data.sort("x")
        .unique(["panel", "line"], keep="last", maintain_order=True)
        .sort("panel", "line")
        .iter_rows(named=True)
    ]
    words = (
        "Without noise, inserted pairs and longer strings change nothing; with it, the distance of two prefixes "
        f"falls with the number of pairs, and accuracy with length. Last points: {', '.join(ends)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


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
    lines = [_slope_line(part, slopes) for _, part in points.group_by("target", maintain_order=True)]
    if not lines:
        title = alt.TitleParams("A random Transformer, pruned", subtitle="no theory check")
        return alt.Chart(points).mark_point().properties(title=title), points
    data = pl.concat([points, *lines], how="diagonal")
    shown = points["target"].unique(maintain_order=True).to_list()
    colour = alt.Color(
        "target:N",
        title="layers of the target",
        scale=alt.Scale(domain=shown, range=[charts.BLUE, charts.VERMILLION][: len(shown)]),
        legend=alt.Legend(orient="bottom", symbolOpacity=1),
    )
    shape = alt.Shape(
        "target:N",
        title="layers of the target",
        scale=alt.Scale(domain=shown, range=["circle", "triangle-up"][: len(shown)]),
    )
    ticks = sorted(set(points["candidates"]))
    x = alt.X(
        "candidates:Q",
        title="candidates per weight and sign, n",
        scale=alt.Scale(domain=[ticks[0] - 1, ticks[-1] + 1], nice=False),
        axis=alt.Axis(values=ticks, grid=False),
    )
    y = alt.Y(
        "error:Q",
        title=ERROR_TITLE,
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~e", values=[10.0**power for power in range(-9, 2)]),
    )
    base = alt.Chart(data)
    band = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.15)
    line = base.transform_filter("isValid(datum.low)").mark_line(strokeWidth=1.5)
    dots = base.transform_filter("isValid(datum.error)").mark_point(filled=True, size=55, opacity=0.75)
    layers = alt.layer(
        band.encode(x=x, y=alt.Y("low:Q", title=ERROR_TITLE), y2="high:Q", color=colour),
        line.encode(x=x, y=alt.Y("fitted:Q", title=ERROR_TITLE), color=colour),
        dots.encode(x=x, y=y, color=colour, shape=shape),
    )
    told = [_slope_told(target, slopes) for target in shown]
    parents = points.group_by("target", "candidates").len().select(pl.col("len").max()).item()
    title = alt.TitleParams(
        "A random Transformer, pruned: each candidate per weight halves the error",
        subtitle=[
            f"{parents} random parents of 4L layers for each n, their widths linear in n",
            f"Slope of log10 of the error, shaded: {CONFIDENCE:.0%} interval; halving is {number(-0.30103, 3)}",
            "; ".join(told),
        ],
    )
    words = (
        "Approximation error of pruned random Transformers on a log scale against the number of candidates per "
        f"weight, {', '.join(map(str, ticks))}. Slopes: {'; '.join(told)}."
    )
    return layers.properties(width=480, height=320, title=title, description=words), data


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


def _slope_told(target: str, slopes: dict[str, float]) -> str:
    value, low, high = (number(slopes[f"{end}, {target}"], 3) for end in ENDS.values())
    return f"{target}: {value} [{low}, {high}]"
