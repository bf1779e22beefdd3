"""Shifted inputs: probabilities, counts, lengths; what coverage of counts predicts (Figures 3.8, 3.9, 3.20, 3.21)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import UNTRAINED, accuracy, at, lines, models, summary
from pipeline.studies.automata.names import shown

WIDE, HIGH = 560, 200
P1 = Axis("p1", "probability of a one in test inputs", domain=[0, 1])


@plots.drawn("Other probabilities of a one")
def probability(context: Results) -> Figure:
    """Accuracy on C2 by the probability of a one in test inputs; dotted: the probability in training. Means over all
    models, bands from the least to the most accurate."""
    table = context.table("ood_p")
    data = summary(table, "p1")
    last = plots.most(data["p1"])
    return plots.figure(
        lines(data, P1, 0.5),
        data,
        f"Trained on even odds, right on C2 where {last:.0%} of symbols are ones: ".replace("%", " %")
        + at(data, "p1", last),
        models(data, table),
        told=f"Mean accuracy at {last:g}: {at(data, 'p1', last)}.",
        width=WIDE,
        height=HIGH,
    )


@plots.drawn("Exact numbers of ones")
def counts(context: Results) -> Figure:
    """Accuracy on C2 by the exact number of ones, at random positions of test inputs of the training length. Means over
    all models, bands from the least to the most accurate."""
    table = context.table("ood_count")
    data = summary(table, "ones")
    last = plots.most(data["ones"])
    x = Axis("ones", "ones in the input", domain=[0, last])
    return plots.figure(
        lines(data, x, last / 2),
        data,
        f"Right on C2 where all {last:.0f} symbols are ones: {at(data, 'ones', last)}",
        models(data, table, "; dotted: the most frequent number in training"),
        told=f"Mean accuracy with ones alone: {at(data, 'ones', last)}.",
        width=WIDE,
        height=HIGH,
    )


@plots.drawn("Other lengths")
def lengths(context: Results) -> Figure:
    """Accuracy on C2 and Dyck (4, 2) by the length of test inputs; dotted: the length in training. Means over all
    models, bands from the least to the most accurate."""
    table = context.table("length_gen")
    data = summary(table, "length")
    trained = {task: float(length) for task, length in table.select("task", "trained").unique().iter_rows()}
    panels, words = [], []
    for task, rows in plots.split(data, "task"):
        x = Axis("length", "length of test inputs", domain=[plots.least(rows["length"]), plots.most(rows["length"])])
        panels.append(plots.panel(lines(rows, x, trained[task], data["label"]), shown(task), WIDE, HIGH))
        words.append(f"{shown(task)}: {at(rows, 'length', 2 * trained[task])}")
    return plots.figure(
        plots.grid(panels, 1),
        data,
        f"Right at twice the training length: {'; '.join(words)}",
        models(data, table),
        told=f"Mean accuracy at twice the training length. {'; '.join(words)}.",
    )


@plots.drawn("Coverage of counts")
def coverage(context: Results) -> Figure:
    """Accuracy that coverage of counts predicts for C2, for two readings of what a shortcut knows and two numbers of
    occurrences that it needs; dots: trained Transformers, hollow where one did not learn its task."""
    table = plots.some(context.table("coverage"), UNTRAINED)
    learned = plots.some(context.table("ood_p").filter(arm="gpt"), UNTRAINED)
    times = pl.when(pl.col("seen") == 1).then(pl.lit("once")).otherwise(pl.format("{} times", "seen"))
    data = table.with_columns(pl.format("{}, seen {}", "variant", times).alias("label")).sort("label", "p1")
    learned = learned.select("p1", "replica", "learned", predicted="accuracy")
    y = accuracy(pl.concat([data["predicted"], learned["predicted"]]), "predicted")
    y = y.but(title="share of tokens: predicted, right")
    by = plots.kinds(data["label"].unique(maintain_order=True), columns=2)
    ends = data.filter(pl.col("p1") == data["p1"].max())
    return plots.figure(
        [
            *plots.lines(data, P1, y, by),
            *plots.points(learned, P1, y, charts.INK, hollow="learned", tips=["replica"], size=40),
        ],
        pl.concat([data, learned.with_columns(label=pl.lit("trained"))], how="diagonal"),
        f"At a probability of {plots.most(data['p1']):g} coverage of counts predicts from "
        f"{plots.least(ends['predicted']):.2f} to {plots.most(ends['predicted']):.2f}",
        "Lines: accuracy on C2 that a shortcut would have that knows the counts it has seen. Dots: "
        f"{plots.count([learned['replica'].n_unique()], 'Transformer')} as trained; hollow: did not learn the task",
        told=f"Predicted accuracy at the largest probability: {plots.tell(ends, '{label}: {predicted:.2f}', ', ')}.",
        width=WIDE,
        height=HIGH,
    )
