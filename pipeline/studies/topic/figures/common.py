"""What figures of this study share: maps of matrices of words, and means over pairs of words."""

from __future__ import annotations

import base64
import io
from typing import NamedTuple

import altair as alt
import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image, ImageColor

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.studies.topic.measures import blocks

BELOW, ZERO, ABOVE = plots.DIVERGING
SIDE, PIXELS = 200, 4  # of a map, and of a cell in its picture
STANDS_OUT = 10  # times the other entries of its blocks: then a diagonal does


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


def maps(matrices: pl.DataFrame, panels: list[Panel], what: str, words: int, axes: tuple[str, str]) -> Figure:
    """Return maps of matrices of all words, topic by topic, two in a row, in shares of the largest entry of each.

    ``what`` are the entries, ``words`` is how many words a topic has; ``axes`` names rows and columns. Panels without a
    matrix at this scale are left out. A map is a picture, as it has thousands of cells; the data hold its entries.
    """
    drawn, data, told = [], [], []
    for panel in panels:
        rows = matrices.filter(run=panel.run, cell=panel.cell, matrix=panel.matrix).sort("row")
        if not rows.height:
            continue
        matrix = np.array(rows["values"].to_list(), dtype=float)
        size = len(matrix)
        same, diagonal = blocks.same_topic(size // words, words), np.eye(size, dtype=bool)
        row = {
            "panel": panel.title,
            "most": plots.about(float(np.abs(matrix).max())),
            "own": float(matrix[diagonal].mean()),
            "others": float(matrix[same & ~diagonal].mean()),
            "inside": float(matrix[same].mean()),
            "outside": float(matrix[~same].mean()),
        }
        told.append(row)
        note = f"largest {row['most']}; means: {row['inside']:.2g} in blocks, {row['outside']:.2g} outside"
        drawn.append(plots.panel(_map(matrix, words, axes), panel.title, SIDE, SIDE, note.replace("-", "−")))
        frame = pl.DataFrame(
            {
                "panel": [panel.title] * size**2,
                "row": np.repeat(np.arange(1, size + 1), size).astype(np.int16),
                "column": np.tile(np.arange(1, size + 1), size).astype(np.int16),
                "entry": matrix.ravel(),
            }
        )
        data.append(rounded(frame, 3))
    chart = plots.grid(drawn, spacing=40)
    found = pl.DataFrame(told)
    within = found.filter(pl.col("inside") > pl.col("outside")).height
    stands = found.filter(pl.col("own") > STANDS_OUT * pl.col("others").abs()).height
    return plots.figure(
        chart,
        pl.concat(data),
        f"{what}: larger within topics than between in {within} of {found.height} matrices; in {stands} a diagonal "
        "stands out",
        f"All words, topic by topic, first seed; a diagonal stands out whose mean is {STANDS_OUT} times that of the "
        "other entries of its blocks. Colours: shares of the largest entry of each matrix, by size; white is none",
        told=f"Means on the diagonal, elsewhere in blocks, outside: "
        f"{plots.tell(found, '{panel}: {own:.2g}, {others:.2g}, {outside:.2g}')}.",
    )


def _map(matrix: NDArray[np.float64], words: int, axes: tuple[str, str]) -> plots.Layers:
    size = len(matrix)
    ticks = list(range(2 * words, size + 1, 2 * words))
    more = {"ticks": False, "domain": False, "grid": False}
    x = Axis("x", axes[1], domain=[0.5, size + 0.5], values=ticks, more=more).at(alt.X)
    y = Axis("y", axes[0], domain=[size + 0.5, 0.5], values=ticks, more=more).at(alt.Y)
    middle, shares = (size + 1) / 2, matrix / np.abs(matrix).max()
    base = alt.Chart(alt.Data(values=[{"x": middle, "y": middle, "image": _picture(shares), "share": 0}]))
    picture = base.mark_image(width=SIDE, height=SIDE).encode(x=x, y=y, url="image:N", tooltip=alt.value(None))
    scale = alt.Scale(domain=[-1, 0, 1], range=plots.DIVERGING, interpolate="rgb")
    legend = alt.Legend(orient="bottom", gradientLength=240, titleLimit=0, values=[-1, -0.5, 0, 0.5, 1])
    colour = alt.Color("share:Q", title="share of the largest entry of the matrix", scale=scale, legend=legend)
    return [picture, base.mark_point(opacity=0).encode(x=x, y=y, color=colour)]


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


def means(table: pl.DataFrame, models: dict[str, str], measures: dict[str, str]) -> Figure:
    """Return means over same-topic and different-topic pairs of words, by threshold: a row for each of ``measures``, a
    panel for each of ``models``."""
    value = pl.col("value")
    data = (
        table.filter(pl.col("measure").is_in(list(measures)), pl.col("model").is_in(list(models)))
        .unpivot(["same", "different"], index=["model", "run", "replica", "threshold", "measure"])
        .group_by("model", "threshold", "measure", "variable", maintain_order=True)
        .agg(value.median().alias("median"), value.min().alias("least"), value.max().alias("most"), n=pl.len())
        .with_columns(pairs=pl.col("variable").replace_strict(KIN, return_dtype=pl.String))
        .sort("model", "measure", "threshold")
    )
    sides = data.pivot("variable", index=["model", "measure", "threshold"], values="median", maintain_order=True)
    sides = sides.with_columns(above=pl.col("same") > pl.col("different"))
    by = plots.kinds(KIN.values(), "pairs", shapes=True)
    x, rows = Axis("threshold", "ambiguity threshold", "O"), []
    for measure, name in measures.items():
        panels: list[plots.Panel] = []
        for model, label in models.items():
            own, here = (frame.filter(model=model, measure=measure) for frame in (data, sides))
            if not own.height:
                continue
            y = Axis("median", None if panels else name, zero=True, count=4, more={"minExtent": 40})
            marks = plots.points(own, x, y, by, ends=("least", "most"), apart="pairs")
            note = f"above at {here['above'].sum()} of {here.height}"
            panels.append(plots.panel(marks, label, 112, 120, note))
        if panels:
            rows.append(plots.grid(panels, len(models), spacing=14))
    counted = sides.group_by("measure", maintain_order=True).agg(pl.col("above").sum(), of=pl.len())
    return plots.figure(
        plots.grid(rows, 1),
        data.drop("variable"),
        "Words that share a topic above those of different topics: "
        + plots.tell(counted, "{measure} {above} of {of}", "; "),
        f"Points: medians over {plots.count(data['n'], 'model')}; bars: from the least to the most. Above: at how many "
        "thresholds of ambiguity the first median is above the second",
        told=f"Medians: {plots.tell(sides, '{model}, {measure}, {threshold}: {same:.2g} and {different:.2g}')}.",
    )


def cosines(table: pl.DataFrame, panels: list[tuple[str, str, str, str]]) -> Figure:
    """Return maps of cosines between words, a panel for each title, run, model and embedding; all have one scale."""
    drawn, data, told = [], [], []
    for name, run, model, embedding in panels:
        rows = table.filter(run=run, model=model, embedding=embedding).sort("row", "column")
        if not rows.height:
            continue
        words = rows.filter(pl.col("column") == 0)["row_word"].to_list()
        printed = pl.col("cosine").map_elements(_short, return_dtype=pl.String)
        own = rows.select(pl.lit(name).alias("panel"), "row_word", "column_word", "cosine", text=printed)
        x = Axis("column_word", None, "N", order=words, more={"labelAngle": -60})
        y = Axis("row_word", None, "N", order=words)
        cells = plots.cells(
            own, x, y, "cosine", "cosine", domain=(-1, 1), colours=plots.DIVERGING, text="text", size=11
        )
        pairs = rows.filter(pl.col("row") < pl.col("column"))
        within, between = (
            float(pairs.filter(same_topic=same).select(pl.col("cosine").mean()).item()) for same in (True, False)
        )
        told.append({"panel": name, "within": within, "between": between})
        means_of = f"means: {within:.2f} within topics, {between:.2f} between"
        drawn.append(plots.panel(cells, name, 26 * len(words), 26 * len(words), means_of))
        data.append(rows.select(pl.lit(name).alias("panel"), "row", "column", "row_word", "column_word", "cosine"))
    chart, found = plots.grid(drawn), pl.DataFrame(told)
    above = found.filter(pl.col("within") > pl.col("between")).height
    return plots.figure(
        chart,
        pl.concat(data),
        f"Mean cosines are larger within topics than between them in {above} of {found.height} embeddings",
        "Words topic by topic, one model each. In the cells: cosines, without the zero before the point",
        told=f"Mean cosines: {plots.tell(found, '{panel}: {within:.2f} within topics, {between:.2f} between them')}.",
    )


def _short(value: float) -> str:
    """Return a cosine with two digits, as tables of correlations have it: ``.63``."""
    return charts.number(value).replace("0.", ".", 1)
