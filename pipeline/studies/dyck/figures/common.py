"""What figures of this study share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.attention_maps import attention_map
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.dyck.comparisons import RANK, RANK_POOLED, RANK_WITHIN
from pipeline.studies.dyck.names import ARMS, PROBE, START_SIGN
from schemas.comparisons import NOT_RUN

if TYPE_CHECKING:
    from pipeline.kit.results import Results

NO_MODEL = "no model to show"
VARIATION = "attention variation"
PROBE_TEXT = "[[[[]]]](((())))"  # D4: footnote 10
CELL = 15  # pixels of one attention weight
ENDS = ("lo", "hi")
ACCURACIES = {"acc_close": "share of closers predicted", "acc_thr80": "share of positions sure of the closer"}
HOLLOW = "hollow: did not learn the task"
BOXES = "boxes: the last unmatched open bracket of each query"
BY_ARM = Kinds("arm", {"standard": Look(charts.VERMILLION), "contrastive": Look(charts.BLUE, shape="triangle-up")})

# Attention maps


def maps(
    context: Results,
    panels: list[tuple[str, int, str]],
    what: str,
    probe: str = PROBE,
    start: bool = False,
    cell: int = CELL,
    note: str = "",
) -> Figure:
    """Return maps of the last layer, two in a row; without the start token, as in the published variation, or with
    it. ``what`` is the subject of the title, ``note`` what else is to be said."""
    attention, accuracy, stack = (context.table(name) for name in ("attention", "accuracy", "stack_score"))
    frames, drawn, words, scores = [], [], [], []
    for letter, (run, which, label) in zip("abcd", panels, strict=False):
        weights = attention.filter(run=run, probe_split=probe, start_included=start, head=0)
        replicas = weights["replica"].unique().sort().to_list()
        if which >= len(replicas):
            continue
        weights = weights.filter(pl.col("layer") == pl.col("layer").max(), replica=replicas[which])
        text = weights["text"][0]
        frame = map_data(weights, f"({letter}) {label}", text)
        frames.append(frame)
        where = {"run": run, "replica": replicas[which]}
        right = accuracy.filter("in_distribution", **where).select("acc_close")
        last = stack.filter(head=0, **where).filter(pl.col("layer") == pl.col("layer").max())
        scores.append(right.join(last, how="cross"))
        above = plots.tell(scores[-1], "accuracy {acc_close:.3f}, stack score {stack_argmax:.2f}")
        drawn.append(map_panel(frame, [above], cell, text))
        boxed = frame.filter("box").select(pl.col("weight").mean()).item()
        words.append(f"{frame['panel'][0]}: {above}, mean weight in the boxes {number(boxed)}")
    if not frames:
        raise plots.NothingError(NO_MODEL)
    known = pl.concat(scores)
    return plots.figure(
        plots.grid(drawn, spacing=30),
        pl.concat(frames),
        f"{what}: stack scores {between(known['stack_argmax'])}, accuracies {between(known['acc_close'], '.3f')}",
        f"Each map is one model, on {text}, "
        + (f"where {START_SIGN} is the start token" if start else "without start token")
        + f"; {BOXES}. Stack score: share of queries of held-out strings with most weight on their box",
        note,
        told=f"Weight of every query (row) on every key (column). {'. '.join(words)}.",
    )


def between(values: pl.Series, form: str = ".2f") -> str:
    """Return the least and the largest of ``values``, once where they are the same."""
    low, high = (f"{end:{form}}".replace("-", "−") for end in (plots.least(values), plots.most(values)))
    return low if low == high else f"{low} to {high}"


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


def map_panel(frame: pl.DataFrame, above: list[str], cell: int = CELL, text: str = PROBE_TEXT) -> Any:
    """Return one map, ``cell`` pixels per weight, boxes at the last unmatched open bracket; ``above`` are the lines
    between its title and the map."""
    title = alt.TitleParams(
        frame["panel"][0], subtitle=above, fontSize=charts.SIZE, subtitleFontSize=plots.SMALL, offset=6, frame="group"
    )
    return attention_map(frame, text, cell, boxes=True).properties(title=title)


def numbers(data: pl.DataFrame, x: Axis, y: Axis, **offset: Any) -> plots.Layers:
    """Return the values of points as numbers, right of their intervals (the column ``label_at``)."""
    marks = alt.Chart(data).mark_text(align="left", dx=8, fontSize=plots.SMALL)
    return [
        marks.encode(x=x.at(alt.X, "label_at"), y=y.at(alt.Y), text=alt.Text(f"{x.field}:Q", format=".2f"), **offset)
    ]


# Balance against accuracy at length


def scatter(context: Results, trained: str, corpus: str) -> Figure:
    """Return balance violation against accuracy at length, one point per model, for both arms of one kind of data."""
    runs = ARMS[trained]
    data = context.table("fig3").filter(~pl.col("diverged"), data=trained).sort("arm", "replica")
    data = plots.some(data, NO_MODEL)
    lengths = context.table("accuracy").filter(pl.col("run").is_in(list(runs.values())), eval_split="lengen")
    ranks = {name: _ranks(context, trained, name) for name in ACCURACIES}
    x = Axis("beta", "balance violation β, mean |S| / P", domain=[0, 1.08 * plots.most(data["beta"])], count=4)
    panels = []
    for name, title in ACCURACIES.items():
        low = int(20 * plots.least(data[name])) / 20
        y = Axis(name, None, domain=[low, 1], count=4)
        points = plots.points(data, x, y, BY_ARM, hollow="learned", tips=["replica"], opacity=0.85)
        rho = plots.tell(ranks[name].filter(pl.col("label").is_in(list(runs))), "{label} {value:.2f}", ", ")
        panels.append(plots.panel(points, title, 245, 235, f"ρ: {rho or 'not measured'}"))
    means = data.filter("learned").group_by("arm", maintain_order=True)
    ends = means.agg(pl.mean("beta"), pl.mean("acc_close"), n=pl.len()).sort("arm", descending=True)
    shortest, longest = lengths.select(pl.col("shortest").min(), pl.col("longest").max()).row(0)
    told = ". ".join(
        f"{ACCURACIES[name]}: " + plots.tell(rows, "{label}: ρ = {value:.2f} [{lo:.2f}, {hi:.2f}]")
        for name, rows in ranks.items()
        if rows.height
    )
    return plots.figure(
        plots.grid(panels, spacing=30),
        data,
        "Balance violation and closers predicted at length: "
        + (plots.tell(ends, "{arm} training {beta:.2f} and {acc_close:.3f}", ", ") or "no model learned"),
        f"A point is one of {plots.count([data.height], 'model')} {corpus}; {HOLLOW}. "
        + (f"Accuracies at lengths {shortest} to {longest}" if lengths.height else ""),
        "ρ: Spearman’s rank correlation over models that learned, by training",
        told=f"Means are over models that learned. {told}.",
    )


def _ranks(context: Results, trained: str, name: str) -> pl.DataFrame:
    """Return the correlations with an accuracy that are known: of each arm, within both, and of both pooled."""
    asked = {arm: RANK[trained, arm, name] for arm in ARMS[trained]}
    asked |= {"within both": RANK_WITHIN[trained, name], "both pooled": RANK_POOLED[trained, name]}
    rows = comparisons.read(context, asked.values()).with_columns(label=pl.Series(list(asked), dtype=pl.String))
    return rows.filter(pl.col("state") != NOT_RUN)
