"""Figure 4.9, on a generated text that stands in for English: a BERT's training, and its students by horizon."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import comparisons
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.distillation.comparisons import COMMON
from pipeline.studies.distillation.figures.common import dots, quantity
from pipeline.studies.distillation.names import ARMS, READER, TEXT_PUPILS

TITLE = "BERTs on generated text, a stand-in for English"


def text(context: Results) -> Figure:
    """Mean loss of the teachers, and the median of how far their predictions move where the n-gram around a masked word
    is masked as well, mean over teachers; below, accuracies of all students at the end."""
    loss = context.table("arms").filter(run=READER)
    if not loss.height:
        return empty(TITLE, "no teacher was trained at this scale")
    summary = context.table("ngram_summary").filter(run=READER, measure="robust")
    near = summary.group_by("ngram", "step", maintain_order=True).agg(value=pl.col("q50").mean())
    widths = sorted(near["ngram"].unique())[:3]
    near = near.filter(pl.col("ngram").is_in(widths)).with_columns(label=pl.format("n = {}", "ngram"))
    loss = loss.with_columns(label=pl.lit("loss"))
    axis = alt.Axis(tickCount=6, format="~s")
    labels = [f"n = {width}" for width in widths]
    panels: list[Any] = [
        quantity(loss, alt.X("step:Q", title=None, axis=axis), "loss", "loss, nats", "label", ["loss"]).encode(
            y=alt.Y("loss:Q", title="loss, nats", scale=alt.Scale(zero=False))
        ),
        quantity(
            near,
            alt.X("step:Q", title="steps of the teachers' training", axis=axis),
            "value",
            "L_robust(n)",
            "label",
            labels,
        ),
    ]
    models = context.table("models").filter(pl.col("run") != READER)
    horizons = dict(models.select("run", "horizon").unique().iter_rows())
    students: Any = dots(
        models,
        {run: f"{horizons[run]} steps" for run in TEXT_PUPILS if run in horizons},
        "Students by horizon",
        columns=3,
    )[0]
    top = [panel.properties(width=520, height=130) for panel in panels]
    parts = alt.vconcat(*top, students).resolve_scale(color="independent", strokeDash="independent")
    common = comparisons.read(context, [COMMON])["value"].item()
    ends = models.group_by("run", "arm", maintain_order=True).agg(pl.col("final").mean()).sort("run", "arm")
    accuracies = "; ".join(f"{horizons[run]} steps, {ARMS[arm]}: {value:.3f}" for run, arm, value in ends.iter_rows())
    baseline = f"Always naming the most frequent word is right in {common:.3f} of the cases."
    chart = parts.properties(
        title=alt.TitleParams(TITLE, subtitle=baseline), description=f"Accuracy at the end: {accuracies}. {baseline}"
    )
    return chart, models
