"""E7 as figures: what predictors of one token cannot tell apart."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.languages.hmm import PAIR_TASKS, TRIPLE_TASKS
from pipeline.studies.selfsup.figures.common import log_axis

FLOOR = 1e-18  # where a difference of exactly 0 is drawn


def confused(context: Results) -> Figure:
    """How far the predictors of two models are apart, for each task: one token from one, two from one."""
    data = context.table("hmm_equivalence").with_columns(
        tokens=pl.when(pl.col("task").is_in(PAIR_TASKS))
        .then(pl.lit("one token"))
        .otherwise(pl.lit("two tokens")),
        drawn=pl.col("max_abs_diff").clip(FLOOR),
    )
    order = [*PAIR_TASKS, *TRIPLE_TASKS]
    base = alt.Chart(data).encode(
        alt.X("drawn:Q", title="largest difference of the two predictors (log)", **log_axis(FLOOR, 1.0, 3)),
        alt.Y("task:N", title="predicted | shown", sort=order),
    )
    points = base.mark_point(filled=True, size=45, opacity=0.7).encode(
        color=alt.Color(
            "family:N", title="pair",
            scale=alt.Scale(domain=["published", "rotated"], range=[charts.VERMILLION, charts.BLUE]),
            legend=alt.Legend(orient="bottom"),
        ),
        shape=alt.Shape("family:N", title="pair", scale=alt.Scale(domain=["published", "rotated"])),
        tooltip=["instance_a", "instance_b", "task", "max_abs_diff", "dist_O", "dist_T"],
    )  # fmt: skip
    twins = data.filter(family="rotated")
    one, two = (
        twins.filter(tokens=tokens)["max_abs_diff"].to_numpy() for tokens in ("one token", "two tokens")
    )
    count = twins["instance_a"].n_unique()
    title = alt.TitleParams(
        "No predictor of one token tells the twins apart, every predictor of two does"
        if len(one) and one.max() < 1e-12 < two.min()
        else "Twins under predictors of one and of two tokens",
        subtitle=[f"{count} exact twins and the published pair, which is printed with eight digits"],
    )
    words = f"Largest difference of predictors: of one token at most {one.max():.2g}, of two {two.min():.2g}"
    return points.properties(width=430, height=230, title=title, description=f"{words} or more."), data
