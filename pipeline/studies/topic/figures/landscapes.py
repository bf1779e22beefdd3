"""Figures ``landscape_diagonal`` and ``landscape_block`` (Li 2025, Figures 2.7 and 2.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
import polars as pl
from scipy import ndimage

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.topic.figures.common import rounded

CLASSES = 24  # of losses above the least, equally wide on a log scale, in each panel
FLOOR = 1e-3  # of the largest: losses nearer the least have one colour
SIDE = 210  # pixels of a panel
COARSER = 2  # points of the landscape's grid for each that is drawn
FINER = 2  # points of the contour's grid for each point of the landscape's
STAR = "M0,-1L0.22,-0.31L0.95,-0.31L0.36,0.12L0.59,0.81L0,0.38L-0.59,0.81L-0.36,0.12L-0.95,-0.31L-0.22,-0.31Z"
VARIANT = "paper"  # as the source draws them
# Of a cell, which of its corners (0, 0), (1, 0), (1, 1), (0, 1) are low, as bits, to pairs of sides (bottom, right,
# top, left) that the edge of the low part crosses.
SIDES = {
    1: [(3, 0)],
    2: [(0, 1)],
    3: [(3, 1)],
    4: [(1, 2)],
    5: [(3, 0), (1, 2)],
    6: [(0, 2)],
    7: [(3, 2)],
    8: [(2, 3)],
    9: [(2, 0)],
    10: [(0, 1), (2, 3)],
    11: [(2, 1)],
    12: [(1, 3)],
    13: [(1, 0)],
    14: [(0, 3)],
}


@plots.drawn("Loss of stage 2 over a diagonal value matrix")
def landscape_diagonal(context: Results) -> Figure:
    """Losses over alpha and beta with a diagonal value matrix and the normaliser as printed, above the least of each
    panel, one panel for each tau and one scale of colours."""
    return _landscapes(context, "diag", "a diagonal value matrix", "β*; an optimal α of 0 stands at the left end")


@plots.drawn("Loss of stage 2 over a value matrix of uniform blocks")
def landscape_block(context: Results) -> Figure:
    """Losses over alpha and beta with uniform blocks and the normaliser as printed, above the least of each panel, one
    panel for each tau and one scale of colours."""
    star = "α = β = γ*; all points of one γ = ((v - 1)α + β)/v are as good"
    return _landscapes(context, "block", "uniform blocks", star)


def _landscapes(context: Results, kind: str, name: str, star: str) -> Figure:
    own = {"kind": kind, "variant": VARIANT}
    grid, optima = context.table("landscape").filter(**own), context.table("stage2_opt").filter(**own).sort("tau")
    most = plots.most(plots.some(optima)["grid_max"] - optima["grid_min"])
    cells, panels = [], []
    for row in optima.iter_rows(named=True):
        loss_AxB, axis = _matrix(grid.filter(tau=row["tau"]))
        excess_AxB = np.log10(np.maximum(loss_AxB - row["grid_min"], most * FLOOR))
        tiles = rectangles(excess_AxB[::COARSER, ::COARSER], axis[::COARSER]).with_columns(
            loss=(10 ** pl.col("loss")).round_sig_figs(4)
        )
        cells.append(tiles.with_columns(tau=pl.lit(row["tau"], pl.Int32)))
        ends = (float(axis[0]), float(axis[-1]))
        panels.append(_panel(tiles, contour(loss_AxB, axis, row["level"]), row, most, ends))
    first, inside = optima.row(0, named=True), optima["inside"].sum()
    gammas = (
        f"γ* from {plots.about(plots.least(optima['gamma_star']))} to {plots.about(plots.most(optima['gamma_star']))}"
    )
    return plots.figure(
        plots.grid(panels, spacing=30),
        pl.concat(cells),
        f"Stage 2 with {name}: the optimum is where the theorem has it at {inside} of {optima.height} τ, {gammas}",
        f"T = {first['T']}, v = {first['v']}; weights α for other words of the query’s topic, β for its own word. "
        "White line: the hundredth of the panel’s range above its least loss. "
        f"Star: the optimum, {star}",
        told=f"Least losses on the grid: {plots.tell(optima, 'τ = {tau}: {grid_min:.5f}')}.",
    )


def _matrix(grid: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return losses (A, B) by places of alpha and beta, and the axis (A,) of both."""
    ordered = grid.sort("i", "j")
    axis = ordered["alpha"].unique().sort().to_numpy()
    return ordered["loss"].cast(pl.Float64).to_numpy().reshape(len(axis), len(axis)), axis


def rectangles(loss_AxB: np.ndarray, axis: np.ndarray) -> pl.DataFrame:
    """Return rectangles that cover the grid: neighbours whose losses fall into one class are one.

    Columns alpha, alpha2, beta, beta2 are their ends, ``loss`` is the middle of their class. Cells end halfway between
    points, in logarithms, and at the ends of the axis.
    """
    ends = np.concatenate([axis[:1], np.sqrt(axis[1:] * axis[:-1]), axis[-1:]])
    low, high = loss_AxB.min(), loss_AxB.max()
    classes = np.minimum((loss_AxB - low) / (high - low) * CLASSES, CLASSES - 1).astype(int)
    made: list[list[float]] = []
    before: dict[tuple[int, int, int], list[float]] = {}
    for j in range(loss_AxB.shape[1]):
        starts = np.flatnonzero(np.diff(classes[:, j], prepend=-1)).tolist()
        now: dict[tuple[int, int, int], list[float]] = {}
        for begin, end in zip(starts, [*starts[1:], len(classes)], strict=True):
            run = (begin, end, int(classes[begin, j]))
            if run in before:  # the same as in the row below: that rectangle grows
                before[run][3] = ends[j + 1]
                now[run] = before[run]
            else:
                middle = low + (run[2] + 0.5) * (high - low) / CLASSES
                now[run] = [ends[begin], ends[end], ends[j], ends[j + 1], middle]
                made.append(now[run])
        before = now
    frame = pl.DataFrame(made, schema=["alpha", "alpha2", "beta", "beta2", "loss"], orient="row")
    return rounded(frame.drop("loss"), 4).with_columns(frame["loss"].round_sig_figs(7))


def contour(loss_AxB: np.ndarray, axis: np.ndarray, level: float) -> pl.DataFrame:
    """Return the edge of the part with losses up to ``level`` as lines: columns line, step, alpha, beta.

    Marching squares in the logarithms of alpha and beta, on a grid that cubic splines make `FINER` times as fine.
    """
    loss = ndimage.zoom(loss_AxB, ((len(axis) - 1) * FINER + 1) / len(axis), order=3, grid_mode=False)
    t, low = np.linspace(np.log10(axis[0]), np.log10(axis[-1]), len(loss)), loss <= level
    corners = [low[:-1, :-1], low[1:, :-1], low[1:, 1:], low[:-1, 1:]]
    kinds = np.sum([corner.astype(int) << bit for bit, corner in enumerate(corners)], axis=0)
    beside: dict[frozenset[Place], list[frozenset[Place]]] = {}  # sides of cells that a line crosses, and the next ones
    for i, j in np.argwhere((kinds > 0) & (kinds < 15)).tolist():
        places = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        for pair in SIDES[int(kinds[i, j])]:
            one, two = (frozenset((places[side], places[(side + 1) % 4])) for side in pair)
            beside.setdefault(one, []).append(two)
            beside.setdefault(two, []).append(one)
    made = []
    for line, sides in enumerate(_chains(beside)):
        for step, side in enumerate(sides):
            first, second = sorted(side)
            part = (level - loss[first]) / (loss[second] - loss[first])
            point = [10 ** (t[a] + part * (t[b] - t[a])) for a, b in zip(first, second, strict=True)]
            made.append((line, step, *point))
    points = rounded(pl.DataFrame(made, schema=["line", "step", "alpha", "beta"], orient="row"), 4)
    inside = [(point == point.shift(1)) & (point == point.shift(-1)) for point in (pl.col("alpha"), pl.col("beta"))]
    # Along an axis the points between two ends are not drawn: without them the line is the same.
    return points.filter(~pl.any_horizontal(inside).over("line").fill_null(value=False))


Place = tuple[int, int]


def _chains(beside: dict[frozenset[Place], list[frozenset[Place]]]) -> Iterator[list[frozenset[Place]]]:
    """Yield lines through all sides: those with two ends first, then rings."""
    left = dict.fromkeys(sorted(beside, key=lambda side: (len(beside[side]), sorted(side))))
    while left:
        at = next(iter(left))
        chain = [at]
        del left[at]
        while onward := [each for each in beside[at] if each in left]:
            at = onward[0]
            chain.append(at)
            del left[at]
        if chain[0] in beside[at] and len(chain) > 2:
            chain.append(chain[0])
        yield chain


def _panel(cells: pl.DataFrame, edge: pl.DataFrame, row: dict[str, Any], most: float, ends: tuple[float, float]) -> Any:
    more = {"labelExpr": "format(datum.value, '~e')", "grid": False}
    ticks = [10.0**power for power in range(-4, 8, 2)]
    x, y = (
        Axis(name, letter, log=True, domain=ends, values=ticks, more=more).at(channel)
        for name, letter, channel in (("alpha", "α", alt.X), ("beta", "β", alt.Y))
    )
    scale = alt.Scale(type="log", scheme="viridis", domain=[most * FLOOR, most], nice=False)
    decades = [
        tick for tick in plots.log("loss", "", [most * FLOOR, most]).values or () if most * FLOOR <= tick <= most
    ]
    legend = alt.Legend(orient="bottom", gradientLength=240, titleLimit=0, values=decades, format="~e")
    colour = alt.Color("loss:Q", scale=scale, title="loss above the least of the panel (log scale)", legend=legend)
    # Each reaches a little over its right and upper neighbours, which are drawn later: no seams show between them.
    over = cells.with_columns(pl.col("alpha2", "beta2") * 1.06).with_columns(
        pl.col("alpha2", "beta2").clip(upper_bound=ends[1])
    )
    tips = [alt.Tooltip("loss:Q", format=".3g")]
    area = alt.Chart(over).mark_rect().encode(x=x, x2="alpha2:Q", y=y, y2="beta2:Q", color=colour, tooltip=tips)
    line = alt.Chart(edge).mark_line(color="white", strokeWidth=1.6).encode(x=x, y=y, detail="line:N", order="step:Q")
    alpha, beta = (row[name] if row[name] is not None else row["gamma_star"] for name in ("alpha_star", "beta_star"))
    at = pl.DataFrame({"alpha": [max(alpha, ends[0])], "beta": [beta]})
    star = (
        alt.Chart(at)
        .mark_point(shape=STAR, size=130, filled=True, color=charts.ORANGE, stroke="black", strokeWidth=0.8, opacity=1)
        .encode(x=x, y=y)
    )
    return plots.panel([area, line, star], f"τ = {row['tau']}", SIDE, SIDE)
