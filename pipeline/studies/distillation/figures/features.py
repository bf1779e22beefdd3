"""Figures 4.7, 4.8 and 4.25: phases of a BERT, which checkpoint teaches, and what can be read from models."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.distillation.comparisons import LEANING
from pipeline.studies.distillation.figures.common import ENDS, lesson, looks, named
from pipeline.studies.distillation.names import ALONE, BERT, CHOICES, CHOOSERS, LONERS, PUPILS

LOOKS = {"robust": "L_robust", "close": "L_close"}  # without the window, and with nothing but it
STEPS = plots.steps(title="steps of the teachers' training", count=6)


def _inflection(context: Results, x: Axis, word: str | None = "inflection") -> tuple[float, plots.Layers]:
    """Return the teachers' median inflection, and a rule at it."""
    c1 = float(context.table("phases").filter(run=BERT)["c1"].median())  # type: ignore[arg-type]
    return c1, plots.rule(x, c1, word, upright=True)


@plots.drawn("What a BERT leans on while it learns")
def phases(context: Results) -> Figure:
    """Loss of the teachers, and medians over sentences of how far a prediction moves without the n-gram around it, or
    with nothing but it; means over teachers. Rule: the median inflection, at which half of the fall of the loss is
    done."""
    loss = plots.some(context.table("arms").filter(run=BERT), "no teacher was trained at this scale")
    summary = context.table("ngram_summary").filter(run=BERT)
    data = summary.group_by("measure", "ngram", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    data = data.with_columns(label=pl.format("{} tokens", "ngram"))
    ngrams = sorted(data["ngram"].unique())
    some = [ngrams[0], 3, ngrams[-1]] if len(ngrams) > 2 else ngrams
    shown = data.filter(pl.col("ngram").is_in(some))
    by, above = plots.kinds([f"{n} tokens" for n in dict.fromkeys(some)]), STEPS.but(title=None)
    c1, rule = _inflection(context, above)
    curve = plots.lines(loss, above, Axis("loss", "loss, nats", count=4), charts.BLACK)
    panels = [plots.panel([*rule, *curve], None, 520, 120)]
    for measure, name in LOOKS.items():
        x = STEPS if measure == "close" else above
        marks = plots.lines(shown.filter(measure=measure), x, Axis("value", name, count=4), by, dots=True)
        panels.append(plots.panel([*_inflection(context, x, None)[1], *marks], None, 520, 120))
    three = data.filter(measure="robust", ngram=3).sort("value", descending=True, maintain_order=True)
    peak = three.row(0, named=True)
    return plots.figure(
        plots.grid(panels, 1),
        data,
        f"BERTs lean most on windows of three tokens (L_robust {peak['value']:.2f}) at step {peak['step']}; "
        f"half of the fall of the loss is done at {c1:.0f}",
        f"Means over {plots.count(loss['n'], 'teacher')}. L_robust: how far a prediction moves without the window; "
        "L_close: with nothing but it. Dotted: the median inflection",
    )


@plots.drawn("Which checkpoint of a BERT teaches")
def choices(context: Results) -> Figure:
    """Accuracy at the end of students by the checkpoint that they learn from, before the last one or alone; mean over
    models with its interval. Dashed: students of the last one alone; dotted: the median inflection."""
    arms, chosen = context.table("arms"), context.table("chosen").filter(order=0)
    last = arms.filter(pl.col("run").is_in([*CHOOSERS, *LONERS]), pl.col("step") == pl.col("step").max().over("run"))
    plots.some(last, "no student was trained at this scale")
    names = {run: f"distillation-choices-{run[-1]}" for run in CHOOSERS} | dict.fromkeys(LONERS, "distillation-alone")
    first = chosen.select("dataset", "arm", "teacher_step", "until").unique()
    alone = pl.when(pl.col("run").is_in(LONERS)).then(pl.lit("alone"))
    data = (
        last.with_columns(dataset=pl.col("run").replace_strict(names, return_dtype=pl.String))
        .join(first, on=["dataset", "arm"])
        .filter(pl.col("arm") != "c9")
        .with_columns(label=alone.otherwise(pl.format("for {} steps, then the last", "until")))
        .sort("run", "teacher_step")
    )
    x = plots.steps("teacher_step", "step of the teacher's checkpoint", count=6)
    y = Axis("value", "accuracy at the end", zero=False)
    by = plots.kinds(data["label"].unique(maintain_order=True))
    flat = [
        layer
        for value in last.filter(pl.col("arm") == "c9", pl.col("run").is_in(CHOOSERS))["value"].to_list()
        for layer in plots.rule(y, value, "the last alone", dash=plots.DASHED, end=True)
    ]
    best = data.sort("value", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        [*_inflection(context, x)[1], *flat, *plots.lines(data, x, y, by, bars=ENDS, dots=True)],
        data,
        f"Students of a BERT end best, at {best['value']:.3f}, from its checkpoint at step {best['teacher_step']}",
        f"Points: means of {plots.count(data['n'], 'model')}; {plots.spread(data, 'bars')}. Dashed: students of the "
        "last checkpoint alone; dotted: the median inflection of the teachers' loss",
        told=f"Best: {best['label']}, checkpoint {best['teacher_step']}: {best['value']:.3f}.",
        width=520,
        height=260,
    )


@plots.drawn("What students have learned")
def features(context: Results) -> Figure:
    """What students lean on and what can be read from them after their last step: medians over sentences by width of
    the window, and accuracy of the probe by level (1/3: guessing); means over models."""
    summary = context.table("ngram_summary").filter(pl.col("run").is_in(PUPILS))
    plots.some(summary, "no student was trained at this scale")
    data = named(summary.group_by("arm", "measure", "ngram", maintain_order=True).agg(value=pl.col("q50").mean()))
    read = context.table("nt_probe").filter(pl.col("run").is_in(PUPILS))
    probed = named(read.group_by("arm", "level", maintain_order=True).agg(value=pl.col("acc_boundary").mean()))
    by = looks(data["arm"], 3)
    x = plots.listed("ngram", "tokens of the window", data, zero=False)
    panels = [
        plots.panel(plots.lines(data.filter(measure=measure), x, Axis("value", name), by, dots=True), None, 175, 170)
        for measure, name in LOOKS.items()
    ]
    right = Axis("value", "accuracy of the probe", domain=[0.3, 1], values=[1 / 3, 0.5, 0.75, 1], form=".2~f")
    marks = plots.points(probed, Axis("level", "level of symbols", "O"), right, by.along(), apart="label")
    panels.append(plots.panel([*plots.rule(right, 1 / 3, "guessing"), *marks], None, 150, 170))
    title, note = _finding(context)
    told = f"Accuracy of the probe: {plots.tell(probed, '{label}, level {level}: {value:.2f}')}."
    chart = plots.grid(panels[:2]) | panels[2]
    return plots.figure(chart.resolve_scale(color="shared", strokeDash="shared"), data, title, note, told=told)


def _finding(context: Results) -> tuple[str, str]:
    """Return what was found of progressive students beside one-shot ones, and what Figure 4.8 has."""
    row = comparisons.read(context, [LEANING["robust"]]).row(0, named=True)
    value, lo, hi = row["value"], row["lo"], row["hi"]
    clear = value is not None and lo is not None and hi is not None and lo * hi > 0
    gap = "" if value is None else f" by {charts.number(value, 3)} in L_robust(3), n = {row['n']}"
    note = f"Steps are equal;{gap or ' not measured'}. Figure 4.8 of the source has less"
    if not clear:
        return "Whether progressive students lean more on short windows than one-shot ones is open", note
    return f"Progressive students lean {'more' if value > 0 else 'less'} on short windows than one-shot ones", note


@plots.drawn("When non-terminals can be read from a BERT")
def probes(context: Results) -> Figure:
    """How well symbols of each level can be read from the teachers while they learn, at the last tokens of their spans;
    means over teachers. Upright rule: the median inflection."""
    read = plots.some(context.table("nt_probe").filter(run=BERT), "no teacher was trained at this scale")
    data = read.group_by("level", "step", maintain_order=True).agg(
        value=pl.col("acc_boundary").mean(), majority=pl.col("majority").first(), n=pl.len()
    )
    data = data.with_columns(label=pl.format("level {}", "level")).sort("level", "step")
    by, y = plots.kinds(data["label"].unique(maintain_order=True)), plots.share("value", "accuracy of the probe")
    floors = [
        layer
        for name, majority in data.select("label", "majority").unique("label", maintain_order=True).iter_rows()
        for layer in plots.rule(y, majority, f"{name}, guessing", colour=by.looks[name].colour, end=True)
    ]
    ends = data.filter(pl.col("step") == pl.col("step").max())
    told = plots.tell(ends, "{value:.2f} of {label}", ", ")
    return plots.figure(
        [*_inflection(context, STEPS)[1], *floors, *plots.lines(data, STEPS, y, by, dots=True)],
        data,
        f"At the end a probe reads {told} from BERTs",
        f"Share of symbols that are read right, means over {plots.count(data['n'], 'teacher')}; "
        "dotted: always the most frequent symbol, and the inflection of the loss",
        width=520,
        height=220,
    )


@plots.drawn("What a checkpoint knows, and what it teaches: a grammar")
def grammar_lesson(context: Results) -> Figure:
    """Each teacher's accuracy on masked tokens; by the accuracy of its checkpoints, how far predictions lean on windows
    of three widths (L_robust), and how students end that learn from one checkpoint alone, or from it and then the last.
    Dotted: as well as their teacher."""
    title = "What a checkpoint knows, and what it teaches: a grammar"
    summary = plots.some(context.table("ngram_summary").filter(run=BERT, measure="robust"))
    ends = plots.some(context.table("models").filter(pl.col("run").is_in([*LONERS, CHOOSERS[0]])))
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
