"""Why models err: the last layer at wrong answers and at right ones (not in the source)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.flipflop.figures.common import HOLLOW, SETS

PANELS = {
    "on_write": "weight on the last write",
    "votes": "more votes for the wrong bit",
    "after": "right with all weight on the write",
}


@plots.drawn("Wrong and right answers")
def glitches(context: Results) -> Figure:
    """Wrong and right answers of Transformers on both sets, means over the reads of each model: the weight of the last
    layer on the last write; the share of reads at which weights times lengths of values add up to more for the wrong
    bit; and the share that is right once all attention of the last layer is put on the last write. Two joined points
    for each model, hollow where it did not learn the training language."""
    table = plots.some(context.table("autopsy"))
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
    by = plots.kinds(data["of"].unique(maintain_order=True).sort(), "of", dashes=False, shapes=True, title="set")
    x, y = Axis("answers", "answers", "N", order=["wrong", "right"]), plots.share("share", "share")
    tips = ["model", "learned", "n_wrong", "n_right"]
    data = data.with_columns(each=pl.format("{} {}", "model", "of"))
    panels = [
        plots.panel(
            [
                *plots.lines(rows, x, y, by.joined(), each="each", opacity=0.5),
                *plots.points(rows, x, y, by, hollow="learned", tips=tips, size=45),
            ],
            title,
            170,
            220,
        )
        for what, title in PANELS.items()
        if (rows := data.filter(panel=what)).height
    ]
    learned = data.filter("learned").with_columns(what=pl.col("panel").replace_strict(PANELS, return_dtype=pl.String))
    means = learned.group_by("of", "what", "answers", maintain_order=True).agg(pl.col("share").mean(), n=pl.len())
    words = plots.tell(means, "{of}, {what}, {answers} answers: {share:.2f}")
    on = means.filter(what=PANELS["on_write"])
    found = {each: rows["share"].mean() for each, rows in plots.split(on, "answers")}
    wrong, right = (plots.about(found.get(each)) for each in ("wrong", "right"))  # type: ignore[arg-type]
    return plots.figure(
        plots.grid(panels, 3),
        data.drop("each"),
        f"Attention on the last write: {wrong} at wrong answers, {right} at right ones",
        f"Two joined points are one model, {plots.count(means['n'], 'model')} that learned; {HOLLOW}",
        told=f"Means over models that learned. {words or 'None did'}.",
    )
