"""Figures 4.7, 4.8 and 4.25: phases of a BERT, which checkpoint teaches, and what can be read from models."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.comparisons import LEANING
from pipeline.studies.distillation.figures.common import COLOURS, lesson, quantity, several
from pipeline.studies.distillation.names import ALONE, ARMS, BERT, CHOICES, CHOOSERS, LONERS, PUPILS

LOOKS = {"robust": "L_robust: without the window", "close": "L_close: nothing but the window"}


def _inflection(context: Results) -> tuple[float, alt.Chart]:
    """Return the teachers' median inflection, and a rule at it."""
    c1 = float(context.table("phases").filter(run=BERT)["c1"].median())  # type: ignore[arg-type]
    rule = alt.Chart(pl.DataFrame({"c1": [c1]})).mark_rule(color=charts.GREY, strokeDash=[4, 3])
    return c1, rule.encode(x="c1:Q")


def phases(context: Results) -> Figure:
    """Loss of the teachers, and medians over sentences of how far a prediction moves without the n-gram around it, or
    with nothing but it; means over teachers. Rule: the median inflection, at which half of the fall of the loss is
    done."""
    title = "What a BERT leans on while it learns"
    loss = context.table("arms").filter(run=BERT)
    summary = context.table("ngram_summary").filter(run=BERT)
    if not loss.height:
        return empty(title, "no teacher was trained at this scale")
    data = summary.group_by("measure", "ngram", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    data = data.with_columns(label=pl.format("{} tokens", "ngram"))
    ngrams = sorted(data["ngram"].unique())
    some = [ngrams[0], 3, ngrams[-1]] if len(ngrams) > 2 else ngrams
    shown = data.filter(pl.col("ngram").is_in(some))
    labels = [f"{n} tokens" for n in dict.fromkeys(some)]
    x = alt.X("step:Q", title=None, axis=alt.Axis(tickCount=6, format="~s"))
    below = alt.X("step:Q", title="steps of the teachers' training", axis=alt.Axis(tickCount=6, format="~s"))
    c1, rule = _inflection(context)
    curve = alt.Chart(loss).mark_line(color=charts.BLACK, strokeWidth=2)
    panels: list[Any] = [
        alt.layer(rule, curve.encode(x=x, y=alt.Y("loss:Q", title="loss, nats"))).properties(width=520, height=120)
    ]
    for measure, name in LOOKS.items():
        lines = quantity(
            shown.filter(measure=measure),
            below if measure == "close" else x,
            "value",
            name.split(":")[0],
            "label",
            labels,
        )
        panels.append(alt.layer(rule, lines).properties(width=520, height=120))
    peak = data.filter(measure="robust", ngram=3).sort("value", descending=True).row(0, named=True)
    chart = alt.vconcat(*panels).properties(
        title=title,
        description=f"L_robust(3) is largest, {peak['value']:.2f}, at step {peak['step']}; inflection at {c1:.0f}.",
    )
    return chart, data


def choices(context: Results) -> Figure:
    """Accuracy at the end of students by the checkpoint that they learn from, before the last one or alone; mean over
    models with its interval. Dashed: students of the last one alone; rule: the median inflection."""
    title = "Which checkpoint of a BERT teaches"
    arms, chosen = context.table("arms"), context.table("chosen").filter(order=0)
    last = arms.filter(pl.col("run").is_in([*CHOOSERS, *LONERS]), pl.col("step") == pl.col("step").max().over("run"))
    if not last.height:
        return empty(title, "no student was trained at this scale")
    names = {run: f"distillation-choices-{run[-1]}" for run in CHOOSERS} | dict.fromkeys(LONERS, "distillation-alone")
    first = chosen.select("dataset", "arm", "teacher_step", "until").unique()
    data = (
        last.with_columns(dataset=pl.col("run").replace_strict(names, return_dtype=pl.String))
        .join(first, on=["dataset", "arm"])
        .filter(pl.col("arm") != "c9")
        .with_columns(
            label=pl.when(pl.col("run").is_in(LONERS))
            .then(pl.lit("alone"))
            .otherwise(pl.format("for {} steps, then the last", "until"))
        )
        .sort("run", "teacher_step")
    )
    labels = data["label"].unique(maintain_order=True).to_list()
    x = alt.X("teacher_step:Q", title="step of the teacher's checkpoint", axis=alt.Axis(tickCount=6, format="~s"))
    base = quantity(data, x, "value", "accuracy at the end", "label", labels)
    base = base.encode(y=alt.Y("value:Q", title="accuracy at the end", scale=alt.Scale(zero=False)))
    spread = data.drop_nulls("lo")  # one model alone has no interval
    bars = (
        alt.Chart(spread)
        .mark_rule()
        .encode(
            x=x,
            y=alt.Y("lo:Q", title="accuracy at the end"),
            y2="hi:Q",
            color=alt.Color("label:N", title=None, scale=several(labels)),
        )
    )
    once = last.filter(pl.col("arm") == "c9", pl.col("run").is_in(CHOOSERS))
    flat = alt.Chart(once).mark_rule(color=charts.BLACK, strokeDash=[6, 3]).encode(y="value:Q")
    _, rule = _inflection(context)
    best = data.sort("value", descending=True).row(0, named=True)
    chart = alt.layer(rule, flat, *([bars] if spread.height else []), base).properties(
        width=520,
        height=260,
        title=title,
        description=f"Best: {best['label']}, checkpoint {best['teacher_step']}: {best['value']:.3f}.",
    )
    return chart, data


def features(context: Results) -> Figure:
    """What students lean on and what can be read from them after their last step: medians over sentences by width of
    the window, and accuracy of the probe by level (bars at 1/3: guessing); means over models."""
    summary = context.table("ngram_summary").filter(pl.col("run").is_in(PUPILS))
    if not summary.height:
        return empty("What students have learned", "no student was trained at this scale")
    title = _finding(context)
    data = summary.group_by("arm", "measure", "ngram", maintain_order=True).agg(value=pl.col("q50").mean())
    data = data.with_columns(label=pl.col("arm").replace_strict(ARMS, return_dtype=pl.String))
    arms = [arm for arm in ARMS if arm in data["arm"].to_list()]
    read = context.table("nt_probe").filter(pl.col("run").is_in(PUPILS))
    probed = read.group_by("arm", "level", maintain_order=True).agg(value=pl.col("acc_boundary").mean())
    probed = probed.with_columns(label=pl.col("arm").replace_strict(ARMS, return_dtype=pl.String))
    labels = [ARMS[arm] for arm in arms]
    colour = alt.Scale(domain=labels, range=[COLOURS[arm] for arm in arms])
    panels: list[Any] = []
    widths = sorted(data["ngram"].unique())
    for measure, name in LOOKS.items():
        axis = alt.X(
            "ngram:Q",
            title="tokens of the window",
            axis=alt.Axis(values=widths, format="d"),
            scale=alt.Scale(zero=False),
        )
        lines = quantity(data.filter(measure=measure), axis, "value", name.split(":")[0], "label", labels, colour)
        panels.append(lines.properties(width=175, height=170))
    levels = (
        alt.Chart(probed)
        .mark_point(size=70, strokeWidth=2)
        .encode(
            x=alt.X("level:O", title="level of symbols", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("label:N", sort=labels),
            y=alt.Y("value:Q", title="accuracy of the probe", scale=alt.Scale(domain=[0.3, 1])),
            color=alt.Color("label:N", title=None, scale=colour),
            tooltip=["label:N", "level:O", "value:Q"],
        )
    )
    panels.append(levels.properties(width=150, height=170))
    accuracies = "; ".join(
        f"{row['label']}, level {row['level']}: {row['value']:.2f}" for row in probed.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels).properties(title=title, description=f"Accuracy of the probe: {accuracies}.")
    return chart, data


def _finding(context: Results) -> alt.TitleParams:
    """Return what was found of progressive students beside one-shot ones, and what Figure 4.8 has."""
    row = comparisons.read(context, [LEANING["robust"]]).row(0, named=True)
    value, lo, hi = row["value"], row["lo"], row["hi"]
    clear = value is not None and lo is not None and hi is not None and lo * hi > 0
    how = "may lean more or less" if not clear else "lean more" if value > 0 else "lean less"
    gap = "" if value is None else f" by {charts.number(value, 3)} in L_robust(3), n = {row['n']}"
    return alt.TitleParams(
        f"Progressive students {how} on short windows than one-shot ones",
        subtitle=f"Steps are equal;{gap or ' not measured'}. Figure 4.8 of the source has less.",
    )


def probes(context: Results) -> Figure:
    """How well symbols of each level can be read from the teachers while they learn, at the last tokens of their spans;
    means over teachers. Rule: the median inflection."""
    title = "When non-terminals can be read from a BERT"
    read = context.table("nt_probe").filter(run=BERT)
    if not read.height:
        return empty(title, "no teacher was trained at this scale")
    data = read.group_by("level", "step", maintain_order=True).agg(
        value=pl.col("acc_boundary").mean(), majority=pl.col("majority").first()
    )
    data = data.with_columns(label=pl.format("level {}", "level")).sort("level", "step")
    labels = data["label"].unique(maintain_order=True).to_list()
    x = alt.X("step:Q", title="steps of the teachers' training", axis=alt.Axis(tickCount=6, format="~s"))
    lines = quantity(data, x, "value", "accuracy of the probe", "label", labels)
    _, rule = _inflection(context)
    guess = data.unique("label", maintain_order=True)
    floor = (
        alt.Chart(guess)
        .mark_rule(strokeDash=[2, 2], opacity=0.7)
        .encode(y="majority:Q", color=alt.Color("label:N", title=None, scale=several(labels)))
    )
    ends = data.filter(pl.col("step") == pl.col("step").max())
    accuracies = "; ".join(f"{row['label']} {row['value']:.2f}" for row in ends.iter_rows(named=True))
    chart = alt.layer(rule, floor, lines).properties(
        width=520,
        height=220,
        description=f"Accuracy at the end: {accuracies}.",
        title=alt.TitleParams(title, subtitle="dotted: the most frequent symbol"),
    )
    return chart, data


def grammar_lesson(context: Results) -> Figure:
    """Each teacher's accuracy on masked tokens; by the accuracy of its checkpoints, how far predictions lean on windows
    of three widths (L_robust), and how students end that learn from one checkpoint alone, or from it and then the last.
    Dotted: as well as their teacher."""
    title = "What a checkpoint knows, and what it teaches: a grammar"
    summary = context.table("ngram_summary").filter(run=BERT, measure="robust")
    ends = context.table("models").filter(pl.col("run").is_in([*LONERS, CHOOSERS[0]]))
    if not summary.height or not ends.height:
        return empty(title, "nothing was trained at this scale")
    course = (
        context.table("courses").filter(run=BERT).with_columns(teacher=pl.format("teacher {}", pl.col("model") + 1))
    )
    widths = sorted(summary["ngram"].unique())
    some = list(dict.fromkeys([widths[0], widths[len(widths) // 2], widths[-1]]))
    known = summary.filter(pl.col("ngram").is_in(some)).join(course, on=["model", "step"])
    known = known.with_columns(label=pl.format("{} tokens", "ngram"), value="q50")
    first = context.table("chosen").filter(pl.col("dataset").is_in([ALONE, CHOICES[0]]), pl.col("order") == 0)
    names = {ALONE: "of this checkpoint alone", CHOICES[0]: "of this checkpoint, then of the last"}
    by_run = dict.fromkeys(LONERS, ALONE) | {CHOOSERS[0]: CHOICES[0]}
    students = (
        ends.with_columns(dataset=pl.col("run").replace_strict(by_run, return_dtype=pl.String))
        .select("dataset", "arm", "model", "final")
        .join(
            first.select("dataset", "arm", "model", "teacher_step", "accuracy", "teacher"),
            on=["dataset", "arm", "model"],
        )
        .drop_nulls("accuracy")
        .with_columns(
            teacher=pl.format("teacher {}", pl.col("teacher") + 1),
            label=pl.col("dataset").replace_strict(names, return_dtype=pl.String),
        )
        .sort("label", "teacher", "teacher_step")
    )
    shown = known.select("teacher", "step", "accuracy", "label", "value")
    course = course.select("teacher", "step", "accuracy")
    labels = [f"{width} tokens" for width in some]
    return lesson(course, shown, students, labels, "L_robust", title), students
