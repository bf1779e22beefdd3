"""What figures of this study share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.attention_maps import attention_map
from pipeline.kit.charts import Figure, number
from pipeline.kit.intervals import NONE
from pipeline.studies.dyck.comparisons import RANK, RANK_POOLED, RANK_WITHIN
from pipeline.studies.dyck.names import ARMS, PROBE, START_SIGN
from schemas.comparisons import NOT_RUN

if TYPE_CHECKING:
    from pipeline.kit.results import Results

LOG_TITLE = "attention variation (log scale)"
PROBE_TEXT = "[[[[]]]](((())))"  # D4: footnote 10
CELL = 15  # pixels of one attention weight
ARM_COLOURS = {"standard": charts.VERMILLION, "contrastive": charts.BLUE}
ACCURACIES = {"acc_close": "share of closers predicted", "acc_thr80": "share of positions sure of the closer"}


def log_domain(data: pl.DataFrame, low: str, highs: list[str], least: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis that ``least`` and every value fit on, with its interval down to a
    hundredth of it."""
    value = pl.col("value")
    low_end = pl.max_horizontal(pl.coalesce(low, value), value / 100) / 1.2
    high_end = pl.max_horizontal(value, *highs) * 1.2
    ends = data.filter(value > 0).select(low=low_end, high=high_end)
    return min([least[0], *ends["low"]]), max([least[1], *ends["high"]])


# Attention maps


def maps(
    context: Results,
    panels: list[tuple[str, int, str]],
    title: str,
    probe: str = PROBE,
    start: bool = False,
    cell: int = CELL,
    note: str = "",
) -> Figure:
    """Return maps of the last layer, two in a row; without the start token, as in the published variation, or with
    it. ``note`` is what else the title says."""
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
    description = (
        f"{title}, on {text}, {convention}: weight of every query (row) on every key (column). "
        f"Boxes mark the last unmatched open bracket of each query. {'. '.join(words) or 'No model to show'}."
    )
    if not frames:
        return charts.empty(title, "no model to show")
    subtitle = [
        f"Probe {'with ' if start else ''}{convention}; boxes: the last unmatched open bracket of each query.",
        "Stack score: share of queries of held-out strings with most weight on their box.",
        *([note] if note else []),
    ]
    rows = [alt.hconcat(*charts_[i : i + 2], spacing=40) for i in range(0, len(charts_), 2)]
    figure = alt.vconcat(*rows, spacing=26).resolve_scale(color="shared")
    return figure.properties(title=alt.TitleParams(title, subtitle=subtitle), description=description), pl.concat(
        frames
    )


def map_data(weights: pl.DataFrame, panel: str, text: str = PROBE_TEXT) -> pl.DataFrame:
    """Return the rows that one map on ``text`` draws: weights of a map, with tokens, and where the boxes are."""
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
    """Return the position of the last unmatched open bracket after each character, -1 where there is none."""
    stack: list[int] = []
    positions = []
    for i, char in enumerate(text):
        stack = [*stack, i] if char in "[({<" else stack[:-1]
        positions.append(stack[-1] if stack else -1)
    return positions


def _map_scores(accuracy: pl.DataFrame, stack: pl.DataFrame, run: str, replica: int) -> list[str]:
    where = {"run": run, "replica": replica}
    scores = []
    for row in accuracy.filter(**where).filter("in_distribution").iter_rows(named=True):
        scores.append(f"accuracy {row['acc_close']:.3f}")
    last = stack.filter(**where).filter(pl.col("layer") == pl.col("layer").max(), head=0)
    for row in last.iter_rows(named=True):
        scores.append(f"stack score {row['stack_argmax']:.2f}")
    return scores


def map_panel(frame: pl.DataFrame, scores: list[str], cell: int = CELL, text: str = PROBE_TEXT) -> Any:
    """Return one map, ``cell`` pixels per weight, boxes at the last unmatched open bracket."""
    title = alt.TitleParams(frame["panel"][0], subtitle=", ".join(scores), fontSize=charts.SIZE, offset=6)
    return attention_map(frame, text, cell, boxes=True).properties(title=title)


# Models that did not learn

LEARNED = "hollow: did not learn the task"


def with_fill(data: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of models with the column ``filled``: false for those that did not learn their task."""
    return data.with_columns(filled=pl.col("learned").fill_null(True))


def fill(colour: alt.Color) -> alt.Fill:
    """Return how points of models are filled (`with_fill`): in their ``colour``, or white; both have one legend."""
    white = {"test": "!datum.filled", "value": "white"}
    return alt.Fill(
        colour["shorthand"], title=colour["title"], scale=colour["scale"], legend=colour["legend"], condition=white
    )


def where_measured(data: pl.DataFrame, *layers: alt.Chart) -> list[alt.Chart]:
    """Return the layers that draw intervals; none where no row of ``data`` has one, which an axis cannot span."""
    return list(layers) if data["lo"].drop_nulls().len() else []


# Balance against accuracy at length


def scatter(context: Results, trained: str, corpus: str) -> Figure:
    """Return balance violation against accuracy at length, one point per model, for both arms of one kind of data."""
    runs = ARMS[trained]
    data = with_fill(context.table("fig3").filter(~pl.col("diverged"), data=trained).sort("arm", "replica"))
    lengths = context.table("accuracy").filter(pl.col("run").is_in(list(runs.values())), eval_split="lengen")
    ranks = {name: _ranks(context, trained, name) for name in ACCURACIES}
    panels = [_scatter_panel(data, ranks[name], name, runs) for name in ACCURACIES]
    shortest, longest = lengths.select(pl.col("shortest").min(), pl.col("longest").max()).row(0)
    span = f" at lengths {shortest} to {longest}" if lengths.height else ""
    known = ranks["acc_thr80"].filter(pl.col("interval") != NONE)
    kinds = "; ".join(known["interval"].unique(maintain_order=True))
    confidence = f", {known['confidence'][0]:.0%} interval ({kinds})" if known.height else ""
    title = alt.TitleParams(
        f"Balance violation against accuracy{span}",
        subtitle=[
            f"One point per model, {corpus}; lines by least squares; {LEARNED}",
            f"ρ: Spearman's rank correlation over models that learned{confidence}",
        ],
    )
    told = ". ".join(f"{name}: " + "; ".join(_rank_lines(ranks[name])) for name in ACCURACIES)
    words = (
        f"Length generalisation against balance violation, one point per model, {corpus}, for standard and contrastive "
        f"training. {told}."
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=words), data


def _scatter_panel(data: pl.DataFrame, ranks: pl.DataFrame, accuracy: str, runs: dict[str, str]) -> Any:
    arms = list(runs)
    colour = alt.Color(
        "arm:N",
        title="training",
        scale=alt.Scale(domain=arms, range=[ARM_COLOURS[arm] for arm in arms]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape("arm:N", title="training", scale=alt.Scale(domain=arms, range=["circle", "triangle-up"]))
    x = alt.X(
        "beta:Q", title="balance violation β, mean |S| / P", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=4)
    )
    y = alt.Y(f"{accuracy}:Q", title=ACCURACIES[accuracy], scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(data)
    points = base.mark_point(size=55, opacity=0.8, strokeWidth=1.5)
    points = points.encode(x=x, y=y, color=colour, shape=shape, fill=fill(colour))
    lines = (
        base.transform_regression("beta", accuracy, groupby=["arm"])
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour)
    )
    title = alt.TitleParams(accuracy, subtitle=_rank_lines(ranks), fontSize=charts.SIZE, offset=8)
    return alt.layer(points, lines).properties(width=235, height=235, title=title)


def _ranks(context: Results, trained: str, name: str) -> pl.DataFrame:
    """Return the correlations with an accuracy: of each arm, within both, and of both pooled."""
    asked = {arm: RANK[trained, arm, name] for arm in ARMS[trained]}
    asked |= {"within both": RANK_WITHIN[trained, name], "both pooled": RANK_POOLED[trained, name]}
    return comparisons.read(context, asked.values()).with_columns(label=pl.Series(list(asked), dtype=pl.String))


def _rank_lines(ranks: pl.DataFrame) -> list[str]:
    """Return each correlation and its interval."""
    rows = ranks.filter(pl.col("state") != NOT_RUN).iter_rows(named=True)
    lines = [f"{row['label']}: ρ = {number(row['value'])} [{number(row['lo'])}, {number(row['hi'])}]" for row in rows]
    return lines or ["no correlation measured"]
