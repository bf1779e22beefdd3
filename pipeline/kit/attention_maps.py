"""Maps of attention weights as figures draw them: one cell for each query and key."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts

# One hue, ever darker; steep at small weights, where most are. Even 0 is not white: white is masked.
WEIGHTS, BLUES = [0, 0.1, 0.3, 0.6, 1], ["#EEF4FA", "#C3DAEE", "#7FB2DA", "#2B74B3", "#06264D"]
QUERY, KEY = "query", "key"


def attention_map(
    frame: pl.DataFrame,
    text: str,
    cell: int,
    *,
    columns: str = KEY,
    queries: list[int] | None = None,
    shade: str = "weight",
    title: str = "attention weight",
    boxes: bool = False,
) -> Any:
    """Return a map of the rows of ``frame``: ``query``, ``key`` (positions in ``text``) and ``weight``.

    ``text`` has one letter for each position; ``cell`` is a cell's side in pixels; ``columns`` says which of query and
    key runs along the x axis; ``queries`` are the queries to draw, all by default; ``shade`` names the column in
    [0, 1] that colours a cell, if that is not the weight itself, and ``title`` what the legend calls it. With
    ``boxes``, the rows whose column ``box`` is true have a frame.
    """
    axis: dict[str, Any] = {
        "labelExpr": f"'{text}'[datum.value]",
        "labelAngle": 0,
        "ticks": False,
        "domain": False,
        "titlePadding": 4,
        "labelFontSize": min(charts.SIZE, cell - 2),
    }
    shown = {KEY: list(range(len(text)))}
    shown[QUERY] = shown[KEY] if queries is None else queries
    rows = QUERY if columns == KEY else KEY

    def placed(name: str) -> dict[str, Any]:
        domain = shown[name]
        return {"title": name, "sort": domain, "axis": alt.Axis(**axis), "scale": alt.Scale(domain=domain)}

    colour = alt.Color(
        f"{shade}:Q",
        title=title,
        scale=alt.Scale(domain=WEIGHTS, range=BLUES),
        legend=alt.Legend(orient="bottom", gradientLength=240, values=charts.UNIT),
    )
    drawn = [QUERY, KEY, "weight", *([shade] if shade != "weight" else []), *(["box"] if boxes else [])]
    base = (
        alt.Chart(frame.select(drawn))
        .transform_calculate(**{f"{name}_token": f"'{text}'[datum.{name}]" for name in (QUERY, KEY)})
        .encode(
            x=alt.X(f"{columns}:O", **placed(columns)),
            y=alt.Y(f"{rows}:O", **placed(rows)),
            tooltip=[
                alt.Tooltip("query:O"),
                alt.Tooltip("query_token:N", title="query token"),
                alt.Tooltip("key:O"),
                alt.Tooltip("key_token:N", title="key token"),
                alt.Tooltip("weight:Q", format=".3f"),
            ],
        )
    )
    layers = [base.mark_rect().encode(color=colour)]
    if boxes:
        framed = base.transform_filter(alt.datum.box)
        layers.append(framed.mark_rect(filled=False, stroke=charts.VERMILLION, strokeWidth=1.6))
    return alt.layer(*layers).properties(width=cell * len(shown[columns]), height=cell * len(shown[rows]))
