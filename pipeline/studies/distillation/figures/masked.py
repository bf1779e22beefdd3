"""Figures 4.4 (right), 4.26 and 4.27: students of a BERT on masked tokens of a grammar."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation import published
from pipeline.studies.distillation.figures.common import COLOURS, by_horizon, dots, growth, named, sizes_of
from pipeline.studies.distillation.names import BERT, PUPILS, WIDER, root_at

TITLE = "Students of a BERT on masked tokens"
PRINTED = {"prog": "progressive", "one-shot": "one-shot, better temperature", "ce": "student of labels"}
MAIN = ("ce", "os", "warm", "half", "prog")


def masked(context: Results) -> Figure:
    """Accuracy at the end of students by how many steps they train, mean over models with its interval; a student of
    more steps is another training, with a schedule of its own. Lines: the teacher's end, and the best predictor. Beside
    it what the source has, of whole strings and larger models."""
    table = context.table("arms")
    last = table.filter(
        pl.col("run").is_in(PUPILS), pl.col("arm").is_in(MAIN), pl.col("step") == pl.col("step").max().over("run")
    )
    if not last.height:
        return empty(TITLE, "no student was trained at this scale")
    data = named(last)
    low = float(data.select(pl.min_horizontal("lo", "value").min()).item())
    teacher = table.filter(run=BERT).sort("step")["value"][-1]
    lines = [("teacher", teacher)]
    best = context.table("oracle").filter(grammar="cfg3b", task="masked", quantity="acc", mask_rate=0.3)
    best = best.filter(root=root_at(context.scale, best["root"]))
    if best.height:
        lines.append(("best predictor", best["value"].item()))
    scale = alt.Scale(domain=[int(20 * low) / 20, 1], nice=False)
    y = alt.Y("value:Q", title="accuracy at the end", scale=scale)
    marked = alt.Chart(pl.DataFrame(lines, schema=["name", "value"], orient="row")).encode(y=y)
    rules = marked.mark_rule(color=charts.GREY, strokeDash=[4, 3])
    texts = marked.mark_text(align="left", dx=4, dy=-7, color=charts.INK).encode(text="name:N", x=alt.value(0))
    accuracies = "; ".join(
        f"{row['label']}, {row['step']} steps: {row['value']:.3f}" for row in data.iter_rows(named=True)
    )
    ours = alt.layer(rules, texts, *by_horizon(data, scale)).properties(
        width=270, height=260, title=alt.TitleParams("here", fontSize=13)
    )
    description = f"Accuracy at the end: {accuracies}."
    chart = alt.hconcat(ours, _published(scale)).resolve_scale(color="independent", strokeDash="independent")
    chart = chart.properties(title=TITLE, description=description)
    return chart, data


def _published(scale: alt.Scale) -> alt.Chart:
    """Return what the source has on whole strings, with larger models."""
    rows = [
        ("teacher's size" if arm == "label" else PRINTED[arm], arm, int(share * published.STEPS), value)
        for arm, values in published.ACCURACIES.items()
        for share, value in zip(published.SHARES, values, strict=True)
    ]
    data = pl.DataFrame(rows, schema=["label", "arm", "step", "value"], orient="row")
    labels = list(dict.fromkeys(data["label"]))
    colours = [charts.BLACK, COLOURS["prog"], COLOURS["os"], COLOURS["ce"]]
    steps = alt.X(
        "step:Q", title="steps of the student", axis=alt.Axis(values=sorted(data["step"].unique()), format="~s")
    )
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=steps.scale(zero=False, padding=20),
            y=alt.Y("value:Q", title=None, scale=scale),
            color=alt.Color(
                "label:N",
                title=None,
                scale=alt.Scale(domain=labels, range=colours),
                legend=alt.Legend(orient="top", columns=2, symbolType="stroke", symbolStrokeWidth=3),
            ),
            tooltip=["label:N", "step:Q", "value:Q"],
        )
        .properties(width=250, height=260, title=alt.TitleParams("as published (Figure 4.4)", fontSize=13))
    )


def schedules(context: Results) -> Figure:
    """All schedules, by steps of the student: every model and the mean of each arm."""
    models = context.table("models")
    known = models.select("run", "horizon", "heads").unique().sort("horizon")
    panels = {
        run: f"{horizon} steps" + (f", {heads} heads" if run in WIDER else "")
        for run, horizon, heads in known.iter_rows()
        if run in (*PUPILS, *WIDER)
    }
    return dots(models, panels, "How checkpoints are shared out")


def sizes(context: Results) -> Figure:
    """Accuracy of models of several sizes while they learn from labels, mean over models with its interval; rings: 80
    % of the last one is reached. Each has the longest training of its size."""
    title = "Size, and how fast a BERT learns"
    table = context.table("arms").filter(pl.col("arm").is_in(["label", "ce"]), pl.col("run") != "distillation-plateau")
    if not table.height:
        return empty(title, "nothing was trained at this scale")
    layers, steps, data = growth(table, sizes_of(table))
    chart = layers.properties(
        width=460, height=240, title=title, description=f"80 % of the last accuracy is reached, {steps}."
    )
    return chart, data
