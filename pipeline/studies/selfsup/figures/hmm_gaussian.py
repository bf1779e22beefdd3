"""E10 as figures: the two solutions of Theorem 5, and errors of fits to samples (F-H3)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import GAUSSIAN_FALLS, NORMS
from pipeline.studies.selfsup.figures.common import guide, spanning
from schemas.selfsup.hmm import MIRROR, SOLUTION

CANDIDATES = plots.kinds({SOLUTION: charts.BLUE, MIRROR: charts.VERMILLION}, "candidate", shapes=True)
BY_NORM = plots.kinds(
    {f"means of norm {norm:g}": colour for norm, colour in zip(NORMS, (charts.ORANGE, charts.BLUE), strict=False)},
    "norm",
    dashes=False,
)
SHOWN = 3  # models


@plots.drawn("Two candidates for the means of a G-HMM")
def candidates(context: Results) -> Figure:
    """Means of both candidates of three models: mirror images, of which one has a stochastic T."""
    table = plots.some(context.table("ghmm_candidates")).with_columns(
        pl.concat_str(pl.lit("state "), pl.col("state").cast(pl.String)).alias("name")
    )
    first = (
        table.with_columns(shape=pl.col("instance_id").str.extract(r"^(d\d+-k\d+)"))
        .group_by("shape", maintain_order=True)
        .agg(pl.col("instance_id").first())["instance_id"]
        .to_list()[:SHOWN]
    )
    data = table.filter(pl.col("instance_id").is_in(first))
    x = Axis("along", "along the mirror", domain=[-1.05, 1.05], values=[-1, 0, 1])
    y = Axis("height", "across the mirror, v", domain=[-1.05, 1.05], values=[-1, 0, 1])
    panels = []
    for name in first:
        part = data.filter(instance_id=name)
        marks = [
            *plots.rule(y, 0, dash=plots.SOLID),
            *plots.lines(part, x, y, charts.GREY, each="state", strokeDash=[3, 3]),
            *plots.points(part, x, y, CANDIDATES, tips=["state", "column_sum", "smallest"], size=70),
        ]
        sums = [number(part.filter(candidate=kind)["column_sum"].mean(), 0) for kind in CANDIDATES.looks]  # type: ignore[arg-type]
        shape = name.rsplit("-", 1)[0].replace("-k", ", k = ").replace("d", "d = ")
        panels.append(plots.panel(marks, shape, 170, 170, f"columns of T sum to {' and '.join(sums)}"))
    checks = context.table("ghmm_checks")
    error = plots.most(checks.filter(pl.col("check").str.starts_with("error"))["value"])
    return plots.figure(
        plots.grid(panels, SHOWN, spacing=16),
        data,
        "A predictor of one token leaves two sets of means, and one of them is a model"
        if checks["holds"].all()
        else "Two candidates for the means of a G-HMM",
        f"Theorem 5 step by step on exact predictors, {plots.count([checks['instance_id'].n_unique()], 'model')}: "
        f"errors up to {error:.0e}. Dashes join the two candidates of a state; grey: the mirror",
        told=f"Means of both candidates of {len(first)} models on either side of the mirror.",
    )


@plots.drawn("Means and transitions fitted to pairs")
def gaussian(context: Results) -> Figure:
    """Errors of M and T fitted to pairs against their number, for means of norm 1 and 3."""
    table = plots.some(context.table("ghmm_fit")).with_columns(
        norm=pl.concat_str(pl.lit("means of norm "), pl.col("c").cast(pl.Int32).cast(pl.String))
    )
    long = table.unpivot(
        ["err_M", "err_T"], index=["instance_id", "norm", "N"], variable_name="what", value_name="error"
    )
    data = long.group_by("norm", "what", "N", maintain_order=True).agg(
        pl.col("error").median().alias("median"),
        pl.col("error").min().alias("low"),
        pl.col("error").max().alias("high"),
        pl.len().alias("models"),
    )
    sizes = [float(n) for n in table["N"].unique().sort()]
    x = Axis("N", "pairs N (log)", log=True, domain=[sizes[0] / 1.5, sizes[-1] * 1.5], values=sizes, form="~e")
    panels = []
    for what, title, named in (("err_M", "Means", "error of M over the norm"), ("err_T", "Transitions", "error of T")):
        y = spanning("median", named, [*data["low"], *data["high"]], room=1.6)
        curves = plots.lines(data.filter(what=what), x, y, BY_NORM, band=("low", "high"), dots=True)
        panels.append(plots.panel([*guide(x, y, sizes, -0.5, (sizes[0], 0.35)), *curves], title, 255, 230))
    slopes = comparisons.read(context, GAUSSIAN_FALLS.values()).with_columns(norm=pl.Series(list(NORMS)))
    said = plots.tell(slopes, "norm {norm:g}: slope {value:.2f}")
    return plots.figure(
        plots.grid(panels),
        data,
        "Means that lie farther apart are learned from fewer pairs"
        if _closer(data)
        else "Means and transitions fitted to pairs",
        f"Lines: medians of {plots.count(data['models'], 'model')} (d = 4, k = 3); bands: from least to most; dashed: "
        f"slope −1/2. Of M: {said}",
        told=f"Errors of M and T against pairs: {said}.",
    )


def _closer(data: pl.DataFrame) -> bool:
    """Return whether at every size the median error of M is smaller for the larger norm."""
    both = data.filter(what="err_M").pivot("norm", index="N", values="median")
    near, far = BY_NORM.looks
    return {near, far} <= set(both.columns) and bool((both[far] < both[near]).all())
