"""Why models err: the last layer at wrong answers and at right ones (not in the source)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, empty
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import SETS, points

PANELS = {
    "on_write": "weight on the last write",
    "votes": "more votes for the wrong bit",
    "after": "right with all weight on the write",
}


def glitches(context: Results) -> Figure:
    """Wrong and right answers of Transformers on both sets, means over the reads of each model: the weight of the last
    layer on the last write; the share of reads at which weights times lengths of values add up to more for the wrong
    bit; and the share that is right once all attention of the last layer is put on the last write. Two joined points
    for each model, hollow where it did not learn the training language."""
    table = context.table("autopsy")
    if not table.height:
        return empty("Wrong and right answers", "nothing was trained at this scale")
    table = table.rename({"mended": "after_wrong", "kept": "after_right"})
    data = (
        table.unpivot(
            [f"{what}_{kind}" for what in PANELS for kind in ("wrong", "right")],
            index=["run", "replica", "set", "learned", "n_wrong", "n_right"],
            variable_name="what",
            value_name="share",
        )
        .drop_nulls("share")
        .with_columns(
            panel=pl.col("what").str.replace("_(wrong|right)$", ""),
            answers=pl.col("what").str.extract("(wrong|right)$"),
            of=pl.col("set").replace_strict(SETS, return_dtype=pl.String),
            model=pl.format("{} {}", pl.col("run").str.strip_prefix("flipflop-"), "replica"),
        )
    )
    panels = []
    for what, title in PANELS.items():
        base = alt.Chart(data.filter(panel=what)).encode(
            x=alt.X("answers:N", title="answers", sort=["wrong", "right"], axis=alt.Axis(labelAngle=0)),
            y=alt.Y("share:Q", title="share", scale=alt.Scale(domain=[0, 1])),
            detail=["model:N", "of:N"],
            color=alt.Color(
                "of:N", title="set", scale=alt.Scale(range=charts.PALETTE), legend=alt.Legend(orient="top")
            ),
            tooltip=[
                "model:N",
                "learned:N",
                "of:N",
                "answers:N",
                alt.Tooltip("share:Q", format=".3f"),
                "n_wrong:Q",
                "n_right:Q",
            ],
        )
        lines = base.mark_line(opacity=0.5)
        panels.append(
            alt.layer(lines, points(base, size=45)).properties(
                width=170, height=220, title=alt.TitleParams(title, fontSize=12)
            )
        )
    means = data.filter("learned").group_by("of", "panel", "answers", maintain_order=True)
    words = "; ".join(
        f"{row['of']}, {PANELS[row['panel']]}, {row['answers']} answers: {row['share']:.2f}"
        for row in means.agg(pl.col("share").mean()).iter_rows(named=True)
    )
    chart = alt.hconcat(*panels).resolve_scale(color="shared")
    description = f"Means over models that learned. {words or 'None did'}."
    return chart.properties(title="Wrong and right answers", description=description), data
