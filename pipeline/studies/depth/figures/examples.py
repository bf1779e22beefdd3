"""The example table of the tasks (Chen and Zou 2024, Table 1 and Figure 1)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.depth.figures.common import TASKS

TILE, ROW = 22, 52  # pixels
WIDEST = 25  # tiles in a line, so that a figure is at most 660 pixels wide
SIGN, ANSWER, TOKEN = "response sign", "answer", "question token"


@plots.drawn("Examples of the tasks (Table 1, Figure 1)")
def fig1(context: Results) -> Figure:
    """Sequences of every task as tiles, with the label and why it is the label."""
    table = context.table("examples").sort(pl.col("task").replace_strict({t: i for i, t in enumerate(TASKS)}), "number")
    plots.some(table, "no dataset was made")
    panels, parts, words = [], [], []
    for (task,), rows in table.group_by("task", maintain_order=True):
        frame = _tiles(rows)
        parts.append(frame.with_columns(pl.lit(task).alias("task")))
        panels.append(_panel(frame, rows, TASKS[str(task)]))
        words += [f"{TASKS[str(task)]}: {row['text']} gives {row['answer']}" for row in rows.iter_rows(named=True)]
    return plots.figure(
        plots.grid(panels, 1),
        pl.concat(parts),
        f"Examples of the {len(panels)} tasks (Table 1, Figure 1)",
        "Letters: question tokens; =: response sign; digits: answers; → label",
        told=f"{'; '.join(words)}.",
    )


def _tiles(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per token: where its tile stands, in tiles and lines."""
    tiles = []
    for line, row in enumerate(rows.iter_rows(named=True)):
        for position, token in enumerate(row["text"]):
            kind = SIGN if token == "=" else ANSWER if token.isdigit() else TOKEN
            tiles.append({"line": line, "position": position, "token": token, "kind": kind})
    return pl.DataFrame(tiles, schema={"line": pl.Int32, "position": pl.Int32, "token": pl.String, "kind": pl.String})


def _panel(frame: pl.DataFrame, rows: pl.DataFrame, name: str) -> Any:
    """Draw one task: a line of tiles for each sequence, the label behind it, the explanation below."""
    longest = max(len(text) for text in rows["text"])
    size = min(float(TILE), WIDEST * TILE / longest)
    labels = pl.DataFrame(
        [
            {"line": line, "end": len(row["text"]), "label": f"→ {row['answer']}", "why": row["explanation"]}
            for line, row in enumerate(rows.iter_rows(named=True))
        ]
    )
    x, y = f"datum.position * {size}", f"datum.line * {ROW}"
    places = alt.Chart(frame).transform_calculate(x=x, y=y, x2=f"{x} + {size - 2}", y2=f"{y} + {TILE}")
    places = places.transform_calculate(middle=f"{x} + {(size - 2) / 2}", center=f"{y} + {TILE / 2}")
    axis: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[0, 640], nice=False)}
    height = ROW * len(labels)
    across = alt.X("x:Q", **axis)
    down: dict[str, Any] = {"axis": None, "scale": alt.Scale(domain=[height, 0], nice=False)}
    colours = alt.Scale(domain=[TOKEN, SIGN, ANSWER], range=["#D6EAF8", "#E5E5E5", "#FBE3C0"])
    legend = alt.Legend(orient="top", symbolType="square", symbolSize=200)
    tiles = places.mark_rect(cornerRadius=2).encode(
        x=across,
        x2="x2:Q",
        y=alt.Y("y:Q", **down),
        y2="y2:Q",
        color=alt.Color("kind:N", title=None, scale=colours, legend=legend),
    )
    letters = places.mark_text(color=charts.INK, fontSize=min(charts.SIZE, size - 4)).encode(
        x=alt.X("middle:Q", **axis), y=alt.Y("center:Q", **down), text="token:N"
    )
    ends = alt.Chart(labels).transform_calculate(
        x=f"datum.end * {size} + 8", y=f"datum.line * {ROW} + {TILE / 2}", below=f"datum.line * {ROW} + {TILE + 11}"
    )
    label = ends.mark_text(align="left", fontWeight="bold", color=charts.VERMILLION).encode(
        x=alt.X("x:Q", **axis), y=alt.Y("y:Q", **down), text="label:N"
    )
    why = ends.mark_text(align="left", color=charts.INK, fontSize=12).encode(
        x=alt.value(0), y=alt.Y("below:Q", **down), text="why:N"
    )
    title = alt.TitleParams(name, fontSize=14, offset=6)
    return alt.layer(tiles, letters, label, why).properties(width=640, height=height, title=title)
