"""Attention maps on the probe (Wen et al. 2023, Figures 1, 2 and 7 to 9; Li 2025, Figure 2.18)."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.studies.dyck.figures.common import UNIT, Figure
from schemas.dyck.tables import (
    LINEAR,
    LONG_PROBE,
    MINIMAL,
    MINIMAL_ANGLE,
    MINIMAL_SLOW,
    MINIMAL_SUM,
    PREFIX_MINIMAL,
    PREFIX_MINIMAL_ANGLE,
    PREFIX_MINIMAL_SUM,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PROBE,
    STANDARD,
    START_SIGN,
    TABLE_1_PROBE,
    THREE_LAYERS,
    WIDE,
)

PROBE_TEXT = "[[[[]]]](((())))"  # D4: footnote 10
# Panels: run, which of its stored replicas, what it is.
FIGURE_1 = [
    (WIDE, 0, "width 200 (M3)"),
    (STANDARD, 0, "width 50 (M1)"),
    (STANDARD, 1, "width 50 (M1), another initialisation"),
    (LINEAR, 0, "width 50, position code (M2)"),
]
FIGURE_2 = [
    (MINIMAL, 0, "embedding (15), learning rate 0.01 (M4)"),
    (MINIMAL_SLOW, 0, "embedding (15), learning rate 0.003 (M4)"),
    (MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
CELL = 15  # pixels of one attention weight
MIDDLE_CELL, LONG_CELL = 13, 9  # for longer strings
# One hue, ever darker; steep at small weights, where most are. Even 0 is not white: white is masked.
WEIGHTS, BLUES = [0, 0.1, 0.3, 0.6, 1], ["#EEF4FA", "#C3DAEE", "#7FB2DA", "#2B74B3", "#06264D"]


FIGURE_7 = [
    (PREFIX_STANDARD, 0, "M1, loss at closing brackets"),
    (PREFIX_STANDARD, 1, "M1, the same, another initialisation"),
    (PREFIX_STANDARD_ALL, 0, "M1, loss at all positions"),
    (PREFIX_STANDARD_ALL, 1, "M1, the same, another initialisation"),
]
FIGURE_8 = [
    (PREFIX_STANDARD_ALL, 0, "M1, loss at all positions"),
    (PREFIX_STANDARD_ALL, 1, "M1, the same, another initialisation"),
]
FIGURE_9 = [
    (PREFIX_MINIMAL, 0, "embedding (15) (M4)"),
    (PREFIX_MINIMAL, 1, "embedding (15) (M4), another initialisation"),
    (PREFIX_MINIMAL_ANGLE, 0, "embedding (17) (M6)"),
    (PREFIX_MINIMAL_SUM, 0, "embedding (16) (M5)"),
]
FIGURE_13 = [(THREE_LAYERS, which, f"initialisation {which + 1}") for which in range(4)]


def fig1(context: Any) -> Figure:
    """Figure 1: last-layer maps of four standard models on D4, boxes at the last unmatched open bracket."""
    return _maps(context, FIGURE_1, "Attention of standard models, second layer")


def fig2(context: Any) -> Figure:
    """Figure 2: maps of models with a minimal first layer on D4."""
    return _maps(context, FIGURE_2, "Attention of models with a minimal first layer")


def fig7(context: Any) -> Figure:
    """Figure 7: second-layer maps of standard models trained on prefixes, two setups with two initialisations each."""
    return _maps(
        context, FIGURE_7, "Attention of standard models trained on prefixes, second layer", start=True
    )


def fig8(context: Any) -> Figure:
    """Figure 8: the same on a longer prefix, as long as the training data."""
    title = "Attention on a longer prefix, second layer"
    return _maps(context, FIGURE_8, title, LONG_PROBE, start=True, cell=LONG_CELL)


def fig9(context: Any) -> Figure:
    """Figure 9: maps of models with a minimal first layer that were trained on prefixes."""
    return _maps(context, FIGURE_9, "Attention of minimal-first-layer models trained on prefixes", start=True)


def fig13(context: Any) -> Figure:
    """DYCK-F13 (Li 2025, Figure 2.18): third-layer maps of several three-layer models on one fixed sentence."""
    title = "Attention of three-layer models, third layer"
    return _maps(context, FIGURE_13, title, TABLE_1_PROBE, start=True, cell=MIDDLE_CELL)


def _maps(
    context: Any,
    panels: list[tuple[str, int, str]],
    title: str,
    probe: str = PROBE,
    start: bool = False,
    cell: int = CELL,
) -> Figure:
    """Maps of the last layer, two in a row; without the start token, as in the published variation, or with it."""
    attention, accuracy, stack = (context.table(name) for name in ("attention", "accuracy", "stack_score"))
    frames, charts_, words = [], [], []
    text = ""
    for letter, (run, which, label) in zip("abcd", panels, strict=False):
        weights = attention.filter(run=run, probe_split=probe, start_included=start, head=0)
        replicas = weights["replica"].unique().sort().to_list()
        if which >= len(replicas):
            continue
        weights = weights.filter(pl.col("layer") == pl.col("layer").max(), replica=replicas[which])
        text = weights["text"][0]
        frame = map_data(weights, f"({letter}) {label}", text)
        frames.append(frame)
        scores = _map_scores(accuracy, stack, run, replicas[which])
        charts_.append(map_panel(frame, scores, cell, text))
        boxed = frame.filter("box").select(pl.col("weight").mean()).item()
        words.append(f"{frame['panel'][0]}: {', '.join(scores)}, mean weight in the boxes {boxed:.2f}")
    convention = f"start token, drawn as {START_SIGN}" if start else "without start token"
    told = (
        f"{title}, on {text}, {convention}: weight of every query (row) on every key (column). "
        f"Boxes mark the last unmatched open bracket of each query. {'. '.join(words) or 'No model to show'}."
    )
    if not frames:
        empty = pl.DataFrame(schema={"panel": pl.String, "weight": pl.Float64})
        return alt.Chart(empty).mark_rect().properties(title=title, description=told), empty
    subtitle = [
        f"Probe {'with ' if start else ''}{convention}; boxes: the last unmatched open bracket of each query.",
        "Stack score: share of queries of held-out strings with most weight on their box.",
    ]
    rows = [alt.hconcat(*charts_[i : i + 2], spacing=40) for i in range(0, len(charts_), 2)]
    figure = alt.vconcat(*rows, spacing=26).resolve_scale(color="shared")
    return figure.properties(title=alt.TitleParams(title, subtitle=subtitle), description=told), pl.concat(
        frames
    )


def map_data(weights: pl.DataFrame, panel: str, text: str = PROBE_TEXT) -> pl.DataFrame:
    """The rows that one map on ``text`` draws: weights of a map, with tokens, and where the boxes are."""
    top = last_unmatched(text)
    tokens = dict(enumerate(text))
    position = {name: pl.col(name).cast(pl.Int32) for name in ("query", "key")}
    return weights.sort("query", "key").select(
        pl.lit(panel).alias("panel"),
        "run",
        "replica",
        *position.values(),
        *(column.replace_strict(tokens).alias(f"{name}_token") for name, column in position.items()),
        "weight",
        (position["query"].replace_strict(dict(enumerate(top))) == position["key"]).alias("box"),
    )


def last_unmatched(text: str) -> list[int]:
    """Position of the last unmatched open bracket after each character, -1 where there is none."""
    stack: list[int] = []
    found = []
    for i, char in enumerate(text):
        stack = [*stack, i] if char in "[({<" else stack[:-1]
        found.append(stack[-1] if stack else -1)
    return found


def _map_scores(accuracy: pl.DataFrame, stack: pl.DataFrame, run: str, replica: int) -> list[str]:
    where = {"run": run, "replica": replica}
    found = []
    for row in accuracy.filter(**where).filter("in_distribution").iter_rows(named=True):
        found.append(f"accuracy {row['acc_close']:.3f}")
    last = stack.filter(**where).filter(pl.col("layer") == pl.col("layer").max(), head=0)
    for row in last.iter_rows(named=True):
        found.append(f"stack score {row['stack_argmax']:.2f}")
    return found


def map_panel(frame: pl.DataFrame, scores: list[str], cell: int = CELL, text: str = PROBE_TEXT) -> Any:
    """One map, ``cell`` pixels per weight, boxes at the last unmatched open bracket."""
    label = f"'{text}'[datum.value]"
    axis: dict[str, Any] = {
        "labelExpr": label,
        "labelAngle": 0,
        "ticks": False,
        "domain": False,
        "titlePadding": 4,
        "labelFontSize": min(charts.SIZE, cell - 2),
    }
    order = list(range(len(text)))
    x = alt.X("key:O", title="key", sort=order, axis=alt.Axis(**axis), scale=alt.Scale(domain=order))
    y = alt.Y("query:O", title="query", sort=order, axis=alt.Axis(**axis), scale=alt.Scale(domain=order))
    colour = alt.Color(
        "weight:Q",
        title="attention weight",
        scale=alt.Scale(domain=WEIGHTS, range=BLUES),
        legend=alt.Legend(orient="bottom", gradientLength=240, values=UNIT),
    )
    base = alt.Chart(frame).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("query:O"),
            alt.Tooltip("query_token:N", title="query token"),
            alt.Tooltip("key:O"),
            alt.Tooltip("key_token:N", title="key token"),
            alt.Tooltip("weight:Q", format=".3f"),
        ],
    )
    weights = base.mark_rect().encode(color=colour)
    boxes = base.transform_filter(alt.datum.box).mark_rect(
        filled=False, stroke=charts.VERMILLION, strokeWidth=1.6
    )
    title = alt.TitleParams(frame["panel"][0], subtitle=", ".join(scores), fontSize=charts.SIZE, offset=6)
    side = cell * len(text)
    return alt.layer(weights, boxes).properties(width=side, height=side, title=title)
