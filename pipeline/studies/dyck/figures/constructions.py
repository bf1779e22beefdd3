"""The executable theory: broken solvers, and the error of pruned parents (DYCK-TH4, TH6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.studies.dyck.figures.common import ACCURACIES, theory_points

if TYPE_CHECKING:
    from pipeline.kit.results import Results

CONFIDENCE = 0.95  # of the slopes of `theory.pruning`
# Theory, DYCK-TH6: of each parent the largest and the median error, and that of a weight.
PRUNING_CHECK = r"^pruning-(?<what>error|median|weight)-l(?<layers>\d+)-n(?<candidates>\d+)-seed(?<seed>\d+)$"
ERROR_TITLE = "largest relative error of the pruned network (log scale)"


def broken_solvers(context: Results) -> Figure:
    """What noise on balance does (ours), under inserted pairs and at length."""
    shape: dict[str, Any] = {"δ": pl.String, "x": pl.Float64, "y": pl.Float64, "panel": pl.String}
    panels, frames = [], []
    for panel, pattern, x_title, y_title, y_scale in (
        ("(a) inserted pairs", r"pumped-delta(?<delta>[0-9.]+)-pairs(?<x>[0-9]+)", "inserted pairs",
         "distance of two prefixes, h", alt.Scale(type="log", nice=False, padding=8)),
        ("(b) length", r"broken-delta(?<delta>[0-9.]+)-length(?<x>[0-9]+)", "length of the string",
         ACCURACIES["acc_close"], alt.Scale(zero=False)),
    ):  # fmt: skip
        points = theory_points(context, pattern)
        frame = points.select(
            pl.col("delta").alias("δ"), "x", pl.col("measured").alias("y"), pl.lit(panel).alias("panel")
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
            color=alt.Color("δ:N", title="noise δ", legend=alt.Legend(orient="bottom")),
        )
        both = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=45, opacity=1))
        panels.append(
            both.properties(width=235, height=215, title=alt.TitleParams(panel, fontSize=charts.SIZE))
        )
    data = pl.concat(frames)
    title = alt.TitleParams(
        "Exact solvers with noise of spread δ on the logits of closing brackets",
        subtitle="(a) prefixes that differ in the last open bracket; (b) same solvers on random strings",
    )
    ends = [f"{row['panel'][:3]} δ={row['δ']} {row['y']:.2g}" for row in data.sort("x").unique(
        ["panel", "δ"], keep="last", maintain_order=True).sort("panel", "δ").iter_rows(named=True)]  # fmt: skip
    words = (
        "Without noise, inserted pairs and longer strings change nothing; with it, the distance of two prefixes "
        f"falls with the number of pairs, and accuracy with length. Last points: {', '.join(ends)}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def pruning_error(context: Results) -> Figure:
    """Error of a pruned random parent (ours) against the candidates per weight, to which its width is
    linear."""
    theory = context.theory()
    numbers = {row["check"]: row["measured"] for row in theory.iter_rows(named=True)}
    groups = pl.col("check").str.extract_groups(PRUNING_CHECK)
    points = theory.filter(pl.col("check").str.contains(PRUNING_CHECK)).select(
        pl.format("L = {}", groups.struct.field("layers")).alias("target"),
        groups.struct.field("layers").cast(pl.Int32).alias("layers"),
        groups.struct.field("candidates").cast(pl.Int32).alias("candidates"),
        groups.struct.field("seed").cast(pl.Int32).alias("seed"),
        groups.struct.field("what")
        .replace({"median": "median_error", "weight": "weight_error"})
        .alias("what"),
        "measured",
    )
    points = points.pivot("what", index=["target", "layers", "candidates", "seed"], values="measured")
    lines = [_slope_line(part, numbers) for _, part in points.group_by("layers", maintain_order=True)]
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
    slopes = [_slope_told(int(label.split()[-1]), numbers) for label in shown]
    seeds = points["seed"].n_unique()
    title = alt.TitleParams(
        "A random Transformer, pruned: each candidate per weight halves the error",
        subtitle=[
            f"{seeds} random parents of 4L layers for each n, their widths linear in n",
            f"Slope of log10 of the error, shaded: {CONFIDENCE:.0%} interval; halving is {number(-0.30103, 3)}",
            "; ".join(slopes),
        ],
    )
    words = (
        "Approximation error of pruned random Transformers on a log scale against the number of candidates per "
        f"weight, {', '.join(map(str, ticks))}. Slopes: {'; '.join(slopes)}."
    )
    return layers.properties(width=480, height=320, title=title, description=words), data


def _slope_line(points: pl.DataFrame, numbers: dict[str, float]) -> pl.DataFrame:
    """Return the least-squares line through the centre of ``points``, and the lines of the ends of its
    slope's interval."""
    layers = points["layers"][0]
    centre, height = points["candidates"].mean(), points["error"].log10().mean()
    ends = pl.DataFrame({"candidates": points["candidates"].unique().sort()})
    slopes = {
        name: numbers[f"pruning-slope{suffix}-l{layers}"]
        for name, suffix in (("fitted", ""), ("first", "-low"), ("second", "-high"))
    }
    at = {name: (slope * (pl.col("candidates") - centre) + height) for name, slope in slopes.items()}
    lines = ends.with_columns(**{name: 10**value for name, value in at.items()})
    return lines.select(
        "candidates",
        "fitted",
        pl.min_horizontal("first", "second").alias("low"),
        pl.max_horizontal("first", "second").alias("high"),
        pl.lit(points["target"][0]).alias("target"),
        pl.lit(layers).alias("layers"),
    )


def _slope_told(layers: int, numbers: dict[str, float]) -> str:
    value, low, high = (
        number(numbers[f"pruning-slope{suffix}-l{layers}"], 3) for suffix in ("", "-low", "-high")
    )
    return f"L = {layers}: {value} [{low}, {high}]"
