"""Figures ``landscape_diagonal`` and ``landscape_block`` (Li 2025, Figures 2.7 and 2.8)."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results

CLASSES = 24  # of losses, equally wide, in each panel
SIDE = 232  # pixels of a panel
STAR = "M0,-1L0.22,-0.31L0.95,-0.31L0.36,0.12L0.59,0.81L0,0.38L-0.59,0.81L-0.36,0.12L-0.95,-0.31L-0.22,-0.31Z"
VARIANT = "paper"  # as the source draws them
# Of a cell, which of its corners (0, 0), (1, 0), (1, 1), (0, 1) are low, as bits, to pairs of sides (bottom, right, top,
# left) that the edge of the low part crosses.
SIDES = {
    1: [(3, 0)], 2: [(0, 1)], 3: [(3, 1)], 4: [(1, 2)], 5: [(3, 0), (1, 2)], 6: [(0, 2)], 7: [(3, 2)], 8: [(2, 3)],
    9: [(2, 0)], 10: [(0, 1), (2, 3)], 11: [(2, 1)], 12: [(1, 3)], 13: [(1, 0)], 14: [(0, 3)],
}  # fmt: skip


def landscape_diagonal(context: Results) -> Figure:
    """Losses over alpha and beta with a diagonal value matrix, one panel and scale of colours for each tau."""
    return _landscapes(context, "diag", "Loss of stage 2 over a diagonal value matrix", ".3f")


def landscape_block(context: Results) -> Figure:
    """Losses over alpha and beta with uniform blocks, one panel and scale of colours for each tau."""
    return _landscapes(context, "block", "Loss of stage 2 over a value matrix of uniform blocks", ".4f")


def _landscapes(context: Results, kind: str, title: str, digits: str) -> Figure:
    own = {"kind": kind, "variant": VARIANT}
    grid, optima = context.table("landscape").filter(**own), context.table("stage2_opt").filter(**own)
    cells, edges, panels = [], [], []
    for row in optima.sort("tau").iter_rows(named=True):
        loss_AxB, axis = _matrix(grid.filter(tau=row["tau"]))
        found = runs(loss_AxB, axis).with_columns(tau=pl.lit(row["tau"], pl.Int32))
        edge = contour(loss_AxB, axis, row["level"])
        cells.append(found)
        edges.append(edge)
        panels.append(_panel(found, edge, row, digits, (float(axis[0]), float(axis[-1]))))
    rows: list[Any] = [alt.hconcat(*panels[i : i + 2], spacing=30) for i in range(0, len(panels), 2)]
    first = optima.row(0, named=True)
    star = (
        "where α = β = γ*; all points with the same γ = ((v − 1)α + β)/v are as good"
        if kind == "block"
        else "at β*; where the optimal α is 0 or below the axis, at its left end"
    )
    subtitle = [
        f"T = {first['T']}, v = {first['v']}. Darker is lower; each panel has colours of its own. White line:",
        f"losses within 1 % of the panel's range above its least. Star: the optimum, {star}.",
    ]
    chart = (
        alt.vconcat(*rows, spacing=24)
        .resolve_scale(color="independent")
        .properties(
            title=alt.TitleParams(title, subtitle=subtitle), description=f"{title}. {' '.join(subtitle)}"
        )
    )
    return chart, pl.concat(cells)


def _matrix(grid: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return losses (A, B) by places of alpha and beta, and the axis (A,) of both."""
    ordered = grid.sort("i", "j")
    points = int(ordered["i"].max()) + 1  # type: ignore[arg-type]
    return ordered["loss"].to_numpy().reshape(points, points), ordered["alpha"].unique().sort().to_numpy()


def runs(loss_AxB: np.ndarray, axis: np.ndarray) -> pl.DataFrame:
    """Return rectangles that cover the grid: neighbours along alpha whose losses fall into one class are one.

    Columns alpha, alpha2, beta, beta2 are their ends, ``loss`` is the mean of theirs. Cells end halfway between points,
    in logarithms, and at the ends of the axis.
    """
    ends = np.concatenate([axis[:1], np.sqrt(axis[1:] * axis[:-1]), axis[-1:]])
    low, high = loss_AxB.min(), loss_AxB.max()
    classes = np.minimum((loss_AxB - low) / (high - low) * CLASSES, CLASSES - 1).astype(int)
    made = []
    for j in range(loss_AxB.shape[1]):
        starts = np.flatnonzero(np.diff(classes[:, j], prepend=-1))
        for begin, end in zip(starts, [*starts[1:], len(classes)], strict=True):
            made.append((ends[begin], ends[end], ends[j], ends[j + 1], float(loss_AxB[begin:end, j].mean())))
    return pl.DataFrame(made, schema=["alpha", "alpha2", "beta", "beta2", "loss"], orient="row")


def contour(loss_AxB: np.ndarray, axis: np.ndarray, level: float) -> pl.DataFrame:
    """Return the edge of the part with losses up to ``level`` as lines from (alpha, beta) to (alpha2, beta2).

    Marching squares, with linear interpolation in the logarithms of alpha and beta.
    """
    t, low = np.log10(axis), loss_AxB <= level
    made = []
    corners = [low[:-1, :-1], low[1:, :-1], low[1:, 1:], low[:-1, 1:]]
    kinds = sum(corner.astype(int) << bit for bit, corner in enumerate(corners))
    for i, j in zip(*np.nonzero((kinds > 0) & (kinds < 15)), strict=True):
        places = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]

        def crossing(side: int, places: list[tuple[int, int]] = places) -> tuple[float, float]:
            one, two = places[side], places[(side + 1) % 4]
            part = (level - loss_AxB[one]) / (loss_AxB[two] - loss_AxB[one])
            return tuple(10 ** (t[a] + part * (t[b] - t[a])) for a, b in zip(one, two, strict=True))  # type: ignore[return-value]

        made += [crossing(first) + crossing(second) for first, second in SIDES[int(kinds[i, j])]]
    return pl.DataFrame(made, schema=["alpha", "beta", "alpha2", "beta2"], orient="row")


def _panel(
    cells: pl.DataFrame, edge: pl.DataFrame, row: dict[str, Any], digits: str, ends: tuple[float, float]
) -> Any:
    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    ticks = alt.Axis(format="~e", values=[10.0**power for power in (-4, -2, 0, 2, 4, 6)], grid=False)
    x = alt.X("alpha:Q", scale=scale, axis=ticks, title="α")
    y = alt.Y("beta:Q", scale=scale, axis=ticks, title="β")
    colour = alt.Color(
        "loss:Q", scale=alt.Scale(scheme="viridis", domain=[row["grid_min"], row["grid_max"]]), title=None,
        legend=alt.Legend(orient="right", format=digits, gradientLength=SIDE - 20, gradientThickness=10, tickCount=5),
    )  # fmt: skip
    # Rectangles overlap by a hair, so that no seams show between them.
    area = alt.Chart(cells).mark_rect(strokeWidth=0.6).encode(
        x=x, x2="alpha2:Q", y=y, y2="beta2:Q", color=colour, stroke=alt.Stroke("loss:Q", scale=colour.scale, legend=None),
        tooltip=[alt.Tooltip("loss:Q", format=".6f")],
    )  # fmt: skip
    line = alt.Chart(edge).mark_rule(color="white", strokeWidth=1.6).encode(
        x=x, x2="alpha2:Q", y=y, y2="beta2:Q"
    )  # fmt: skip
    alpha, beta = (
        row[name] if row[name] is not None else row["gamma_star"] for name in ("alpha_star", "beta_star")
    )
    at = pl.DataFrame({"alpha": [max(alpha, ends[0])], "beta": [beta]})
    star = alt.Chart(at).mark_point(
        shape=STAR, size=130, filled=True, color=charts.ORANGE, stroke="black", strokeWidth=0.8, opacity=1
    ).encode(x=x, y=y)  # fmt: skip
    layers: Any = alt.layer(area, line, star).resolve_scale(stroke="shared")
    return layers.properties(
        width=SIDE, height=SIDE, title=alt.TitleParams(f"τ = {row['tau']}", fontSize=13, offset=4)
    )
