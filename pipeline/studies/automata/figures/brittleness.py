"""Shifted inputs: probabilities, counts, lengths; what coverage of counts predicts (Figures 3.8, 3.9, 3.20, 3.21)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.automata.figures.common import ACCURACY, accuracies_text, accuracy, lines, models, points, summary
from pipeline.studies.automata.names import shown


def probability(context: Results) -> Figure:
    """Accuracy on C2 by the probability of a one in test inputs; dashed: the probability in training. Means over all
    models, bands from the least to the most accurate."""
    table = context.table("ood_p")
    if not table.height:
        return empty("Other probabilities", "nothing was trained")
    data = summary(table, "p1")
    title = alt.TitleParams("Other probabilities of a one, C2", subtitle=models(data, table))
    chart = lines(data, "p1", "probability of a one", 0.5)
    return chart.properties(
        title=title, description=f"Mean accuracy at 0.95: {accuracies_text(data, 'p1', 0.95)}."
    ), data


def counts(context: Results) -> Figure:
    """Accuracy on C2 by the exact number of ones, at random positions of test inputs of the training length. Means over
    all models, bands from the least to the most accurate."""
    table = context.table("ood_count")
    if not table.height:
        return empty("Other counts", "nothing was trained")
    data = summary(table, "ones")
    last = float(data["ones"].max())  # type: ignore[arg-type]
    title = alt.TitleParams("Exact numbers of ones, C2", subtitle=models(data, table))
    chart = lines(data, "ones", "ones in the input", last / 2)
    return chart.properties(
        title=title, description=f"Mean accuracy with ones alone: {accuracies_text(data, 'ones', last)}."
    ), data


def lengths(context: Results) -> Figure:
    """Accuracy on C2 and Dyck (4, 2) by the length of test inputs; dashed: the length in training. Means over all
    models, bands from the least to the most accurate."""
    table = context.table("length_gen")
    if not table.height:
        return empty("Other lengths", "nothing was trained")
    data = summary(table, "length")
    trained = {task: float(length) for task, length in table.select("task", "trained").unique().iter_rows()}
    panels = [
        lines(rows, "length", "length of test inputs", trained[task], data["label"].unique().to_list()).properties(
            title=alt.TitleParams(shown(task), fontSize=13)
        )
        for task, rows in _by_task(data)
    ]
    chart = alt.vconcat(*panels, spacing=20).resolve_scale(color="shared", strokeDash="shared")
    words = "; ".join(
        f"{shown(task)}: {accuracies_text(rows, 'length', 2 * trained[task])}" for task, rows in _by_task(data)
    )
    title = alt.TitleParams("Other lengths", subtitle=models(data, table))
    return chart.properties(title=title, description=f"Mean accuracy at twice the training length. {words}."), data


def _by_task(data: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(str(task), rows) for (task,), rows in data.group_by("task", maintain_order=True)]


def coverage(context: Results) -> Figure:
    """Accuracy that coverage of counts predicts for C2, for two readings of what a shortcut knows and two numbers of
    occurrences that it needs; dots: trained Transformers, hollow where one did not learn its task."""
    table, learned = context.table("coverage"), context.table("ood_p").filter(arm="gpt")
    if not table.height or not learned.height:
        return empty("Coverage of counts", "nothing was trained")
    times = pl.when(pl.col("seen") == 1).then(pl.lit("once")).otherwise(pl.format("{} times", "seen"))
    data = table.with_columns(pl.format("{}, seen {}", "variant", times).alias("label")).sort("label", "p1")
    learned = learned.select("p1", "replica", "learned", predicted="accuracy")
    x = alt.X("p1:Q", title="probability of a one", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y(
        "predicted:Q",
        title=ACCURACY,
        scale=accuracy(pl.concat([data.select("predicted"), learned.select("predicted")]), "predicted"),
    )
    legend = alt.Legend(
        orient="top", columns=2, symbolType="stroke", symbolSize=500, symbolStrokeWidth=2, labelLimit=260
    )
    labels = data["label"].unique(maintain_order=True).to_list()
    dashes = [[1, 0], [6, 4], [3, 3], [12, 2]]  # curves that lie on each other can be told apart
    curves = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "label:N",
                title=None,
                legend=legend,
                scale=alt.Scale(domain=labels, range=charts.PALETTE[: len(labels)]),
            ),
            strokeDash=alt.StrokeDash(
                "label:N", title=None, legend=legend, scale=alt.Scale(domain=labels, range=dashes[: len(labels)])
            ),
        )
    )
    dots = points(alt.Chart(learned).encode(x=x, y=y, color=alt.value(charts.INK)))
    ends = data.filter(pl.col("p1") == data["p1"].max())
    words = ", ".join(f"{row['label']}: {row['predicted']:.2f}" for row in ends.iter_rows(named=True))
    chart = alt.layer(curves, *dots).properties(width=560, height=200, title="Coverage of counts")
    both = pl.concat([data, learned.with_columns(label=pl.lit("trained"))], how="diagonal")
    return chart.properties(description=f"Predicted accuracy at the largest probability: {words}."), both
