"""What figures of this study share: maps of matrices of words."""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, ImageColor

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.studies.topic.measures import blocks

# From blue over white to orange, which readers with any colour vision tell apart; white is 0.
BELOW, ZERO, ABOVE = charts.BLUE, "#FFFFFF", charts.VERMILLION
SIDE, PIXELS = 200, 4  # of a map, and of a cell in its picture
_SHORT = "format(datum.value, '.2g')"


def rounded(frame: pl.DataFrame, digits: int) -> pl.DataFrame:
    """Return ``frame`` with so many significant digits, so that a figure's file holds none that cannot be seen."""
    return frame.with_columns(
        pl.col(name).cast(pl.Float64).round_sig_figs(digits) for name, kind in frame.schema.items() if kind.is_float()
    )


class Panel(NamedTuple):
    """A map of the matrix of the first seed of a cell."""

    title: str
    run: str
    cell: str
    matrix: str


def maps(
    matrices: pl.DataFrame, panels: list[Panel], title: str, words: int, axes: tuple[str, str], columns: int = 2
) -> Figure:
    """Return maps of matrices of all words, topic by topic, side by side, each with a scale of colours of its own.

    ``words`` is how many words a topic has; ``axes`` names rows and columns. Panels without a matrix at this scale are
    left out. A map is a picture, as it has thousands of cells; the data of the figure hold its entries.
    """
    drawn, data = [], []
    for panel in panels:
        rows = matrices.filter(run=panel.run, cell=panel.cell, matrix=panel.matrix).sort("row")
        if not rows.height:
            continue
        matrix = np.array(rows["values"].to_list(), dtype=float)
        drawn.append(_map(matrix, panel.title, words, axes))
        size = len(matrix)
        frame = pl.DataFrame(
            {
                "panel": [panel.title] * size**2,
                "row": np.repeat(np.arange(1, size + 1), size).astype(np.int16),
                "column": np.tile(np.arange(1, size + 1), size).astype(np.int16),
                "entry": matrix.ravel(),
            }
        )
        data.append(rounded(frame, 3))
    if not drawn:
        return charts.empty(title, "no model was trained at this scale")
    chart: Any = alt.concat(*drawn, columns=columns).resolve_scale(color="independent")
    note = "All words, topic by topic, first seed; white is 0. Means are of entries in blocks and outside them."
    return chart.properties(title=alt.Title(title, subtitle=note)), pl.concat(data)


def _map(matrix: NDArray[np.float64], title: str, words: int, axes: tuple[str, str]) -> Any:
    largest, size = float(np.abs(matrix).max()), len(matrix)
    block = blocks.same_topic(size // words, words)
    axis = alt.Axis(
        values=list(range(2 * words, size + 1, 2 * words)), labelAngle=0, ticks=False, domain=False, grid=False
    )
    x = alt.X("x:Q", title=axes[1], axis=axis, scale=alt.Scale(domain=[0.5, size + 0.5], nice=False))
    y = alt.Y("y:Q", title=axes[0], axis=axis, scale=alt.Scale(domain=[size + 0.5, 0.5], nice=False))
    middle = (size + 1) / 2
    base = alt.Chart(alt.Data(values=[{"x": middle, "y": middle, "image": _picture(matrix / largest), "entry": 0}]))
    picture = base.mark_image(width=SIDE, height=SIDE).encode(x=x, y=y, url="image:N", tooltip=alt.value(None))
    scale = alt.Scale(domain=[-largest, 0, largest], range=[BELOW, ZERO, ABOVE], interpolate="rgb")
    legend = alt.Legend(gradientLength=150, format="~g", values=[-largest, 0, largest], labelExpr=_SHORT)
    colours = base.mark_point(opacity=0).encode(
        x=x, y=y, color=alt.Color("entry:Q", title="entry", scale=scale, legend=legend)
    )
    inside, outside = float(matrix[block].mean()), float(matrix[~block].mean())
    means = f"means: {inside:.2g} in blocks, {outside:.2g} outside".replace("-", "−")
    return (picture + colours).properties(
        width=SIDE, height=SIDE, title=alt.Title(title, subtitle=means, fontSize=charts.SIZE)
    )


def _picture(shares: NDArray[np.float64]) -> str:
    """Return the picture of a matrix of entries from -1 to 1, several pixels a cell, as the address of an image."""
    below, zero, above = (np.array(ImageColor.getrgb(colour), float) for colour in (BELOW, ZERO, ABOVE))
    levels = np.linspace(-1, 1, 255)  # a palette: two thirds of the bytes of three channels
    colours = zero + np.abs(levels)[:, None] * (np.where(levels[:, None] < 0, below, above) - zero)
    cells = (np.clip(shares, -1, 1) * 127).round().astype(np.int64) + 127
    image = Image.fromarray(cells.astype(np.uint8).repeat(PIXELS, 0).repeat(PIXELS, 1), "P")
    image.putpalette(colours.round().astype(np.uint8).tobytes())
    packed = io.BytesIO()
    image.save(packed, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(packed.getvalue()).decode()}"


# --- words of natural language ---------------------------------------------------------------------------

KIN = {"same": "share a topic", "different": "different topics"}


def means(
    table: pl.DataFrame, models: dict[str, str], measures: dict[str, str], title: str, why: str, note: str = ""
) -> Figure:
    """Return means over same-topic and different-topic pairs of words, by threshold: a row for each of ``measures``, a
    column for each of ``models``.

    ``why`` says why there is nothing, where ``table`` has no rows; ``note`` stands below the title.
    """
    if not table.height:
        return charts.empty(title, why)
    value = pl.col("value")
    data = (
        table.filter(pl.col("measure").is_in(list(measures)))
        .unpivot(["same", "different"], index=["model", "run", "replica", "threshold", "measure"])
        .group_by("model", "threshold", "measure", "variable", maintain_order=True)
        .agg(value.median().alias("median"), value.min().alias("least"), value.max().alias("most"))
        .with_columns(pairs=pl.col("variable").replace_strict(KIN, return_dtype=pl.String))
        .sort("model", "measure", "threshold")
    )
    scale = alt.Scale(domain=list(KIN.values()), range=[charts.BLUE, charts.VERMILLION])
    colour = alt.Color("pairs:N", title=None, scale=scale, legend=alt.Legend(orient="top", symbolOpacity=1))
    lines = []
    for measure, name in measures.items():
        drawn: list[Any] = []
        for model, label in models.items():
            own = data.filter(model=model, measure=measure)
            if not own.height:
                continue
            y_title = None if drawn else name
            base = alt.Chart(own.select("threshold", "pairs", "median", "least", "most")).encode(
                x=alt.X("threshold:O", title="threshold", axis=alt.Axis(labelAngle=0)),
                xOffset=alt.XOffset("pairs:N", sort=list(KIN.values())),
                color=colour,
            )
            axis = alt.Axis(format="~g", tickCount=4)
            y = alt.Y("median:Q", title=y_title, scale=alt.Scale(zero=True), axis=axis)
            tips = ["threshold:O", "pairs:N", alt.Tooltip("median:Q", format=".4g")]
            points = base.mark_point(filled=True, size=60, opacity=1).encode(y=y, tooltip=tips)
            rules = base.mark_rule(strokeWidth=2).encode(y=alt.Y("least:Q", title=y_title), y2="most:Q")
            head = alt.Title(label.split("|"), fontSize=charts.SIZE)
            drawn.append(alt.layer(rules, points).properties(width=110, height=120, title=head))
        if drawn:
            lines.append(alt.hconcat(*drawn, spacing=14))
    chart: Any = alt.vconcat(*lines)
    return chart.properties(title=alt.Title(title, subtitle=note) if note else title), data.drop("variable")


def cosines(table: pl.DataFrame, panels: list[tuple[str, str, str, str]], title: str, why: str) -> Figure:
    """Return maps of cosines between words, a panel for each title, run, model and embedding; all have one scale.

    ``why`` says why there is nothing, where ``table`` has no rows.
    """
    drawn, data = [], []
    for name, run, model, embedding in panels:
        rows = table.filter(run=run, model=model, embedding=embedding).sort("row", "column")
        if not rows.height:
            continue
        data.append(rows.select(pl.lit(name).alias("panel"), "row", "column", "row_word", "column_word", "cosine"))
        words = rows.filter(pl.col("column") == 0)["row_word"].to_list()
        axis: dict[str, Any] = {
            "title": None,
            "sort": words,
            "axis": alt.Axis(labelAngle=-60, ticks=False, domain=False),
        }
        shade = alt.Scale(domain=[-1, 0, 1], range=[BELOW, ZERO, ABOVE], interpolate="lab")
        base = alt.Chart(rows.select("row_word", "column_word", "cosine"))
        cells = base.mark_rect().encode(
            x=alt.X("column_word:N", **axis),
            y=alt.Y("row_word:N", **axis | {"axis": alt.Axis(ticks=False, domain=False)}),
            color=alt.Color("cosine:Q", title="cosine", scale=shade, legend=alt.Legend(gradientLength=150)),
            tooltip=["row_word:N", "column_word:N", alt.Tooltip("cosine:Q", format=".3f")],
        )
        text = base.mark_text(fontSize=8).encode(
            x=alt.X("column_word:N", **axis), y=alt.Y("row_word:N", sort=words), text=alt.Text("cosine:Q", format=".2f")
        )
        pairs = rows.filter(pl.col("row") < pl.col("column"))
        within, between = (
            float(pairs.filter(same_topic=same).select(pl.col("cosine").mean()).item()) for same in (True, False)
        )
        means_of = f"means: {within:.2f} within topics, {between:.2f} between them"
        side = 22 * len(words)
        drawn.append(
            alt.layer(cells, text).properties(
                width=side, height=side, title=alt.Title(name, subtitle=means_of, fontSize=charts.SIZE)
            )
        )
    if not drawn:
        return charts.empty(title, why)
    chart: Any = alt.concat(*drawn, columns=2)
    return chart.properties(title=title), pl.concat(data)
