"""E10 as figures: the two solutions of Theorem 5, and errors of fits to samples (F-H3)."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import GAUSSIAN_FALLS, NORMS
from pipeline.studies.selfsup.figures.common import count, lines_legend, log_axis, panel_title
from schemas.selfsup.hmm import MIRROR, SOLUTION

COLOURS = {SOLUTION: charts.BLUE, MIRROR: charts.VERMILLION}
SHOWN = 3  # models


def candidates(context: Results) -> Figure:
    """Means of both candidates of three models: mirror images, of which one has a stochastic T."""
    table = context.table("ghmm_candidates").with_columns(
        pl.concat_str(pl.lit("state "), pl.col("state").cast(pl.String)).alias("name")
    )
    first = (
        table.with_columns(shape=pl.col("instance_id").str.extract(r"^(d\d+-k\d+)"))
        .group_by("shape", maintain_order=True)
        .agg(pl.col("instance_id").first())["instance_id"]
        .to_list()[:SHOWN]
    )
    data = table.filter(pl.col("instance_id").is_in(first))
    span = alt.Scale(domain=[-1.05, 1.05], nice=False)
    colour = alt.Color(
        "candidate:N",
        title=None,
        scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        legend=alt.Legend(orient="bottom"),
    )
    panels = []
    for place, name in enumerate(first):
        part = data.filter(instance_id=name)
        x = alt.X("along:Q", title="along the mirror", scale=span, axis=alt.Axis(tickCount=3))
        y = alt.Y(
            "height:Q", title="across the mirror, v" if place == 0 else None, scale=span, axis=alt.Axis(tickCount=3)
        )
        mirror = alt.Chart(pl.DataFrame({"height": [0.0]})).mark_rule(color=charts.GREY).encode(alt.Y("height:Q"))
        links = alt.Chart(part).mark_line(color=charts.GREY, strokeDash=[3, 3]).encode(x, y, detail="state:N")
        points = (
            alt.Chart(part)
            .mark_point(filled=True, size=75, opacity=1)
            .encode(
                x,
                y,
                colour,
                alt.Shape("candidate:N", title=None, scale=alt.Scale(domain=list(COLOURS))),
                tooltip=["candidate", "state", "column_sum", "smallest"],
            )
        )
        sums = {kind: float(part.filter(candidate=kind)["column_sum"].to_numpy().mean()) for kind in COLOURS}
        shape = name.rsplit("-", 1)[0].replace("-k", ", k = ").replace("d", "d = ")
        line = f"columns of T sum to {' and '.join(number(sums[kind], 0) for kind in COLOURS)}"
        panels.append(
            alt.layer(mirror, links, points).properties(width=175, height=175, title=panel_title(shape, [line]))
        )
    checks = context.table("ghmm_checks")
    error = checks.filter(pl.col("check").str.starts_with("error"))["value"].to_numpy().max()
    title = alt.TitleParams(
        "A predictor of one token leaves two sets of means, and one of them is a model"
        if checks["holds"].all()
        else "Two candidates for the means of a G-HMM",
        subtitle=[
            f"Theorem 5 step by step on exact predictors, {checks['instance_id'].n_unique()} models: "
            f"errors up to {error:.0e}"
        ],
    )
    words = f"Means of both candidates of {len(first)} models on either side of the mirror; errors up to {error:.1g}."
    return alt.hconcat(*panels, spacing=16).properties(title=title, description=words), data


def gaussian(context: Results) -> Figure:
    """Errors of M and T fitted to pairs against their number, for means of norm 1 and 3."""
    table = context.table("ghmm_fit").with_columns(
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
    sizes = [float(n) for n in sorted(table["N"].unique().to_list())]
    low, high = 0.6 * data["low"].to_numpy().min(), 1.6 * data["high"].to_numpy().max()
    x = alt.X(
        "N:Q",
        title="pairs N (log)",
        scale=alt.Scale(type="log", domain=[sizes[0] / 1.5, sizes[-1] * 1.5], nice=False),
        axis=alt.Axis(values=sizes, format=".0e"),
    )
    names = [f"means of norm {norm:g}" for norm in NORMS]
    colour = alt.Color(
        "norm:N", title=None, scale=alt.Scale(domain=names, range=[charts.ORANGE, charts.BLUE]), legend=lines_legend()
    )
    panels = []
    for what, named in (("err_M", "error of M over the norm (log)"), ("err_T", "error of T (log)")):
        part = alt.Chart(data.filter(what=what))
        y = alt.Y("median:Q", title=named, **log_axis(low, high))
        guide = pl.DataFrame({"N": sizes, "median": [0.35 * (n / sizes[0]) ** -0.5 for n in sizes]})
        panels.append(
            alt.layer(
                alt.Chart(guide).mark_line(color=charts.GREY, strokeDash=[4, 3], clip=True).encode(x, y),
                part.mark_area(opacity=0.15).encode(
                    x, alt.Y("low:Q", title=named, **log_axis(low, high)), alt.Y2("high:Q"), colour
                ),
                part.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=40)).encode(x, y, colour),
            ).properties(width=260, height=230, title=panel_title("Means" if what == "err_M" else "Transitions"))
        )
    slopes = comparisons.read(context, GAUSSIAN_FALLS.values())
    said = "; ".join(
        f"norm {norm:g}: slope {number(value)}" for norm, value in zip(NORMS, slopes["value"].to_list(), strict=True)
    )
    title = alt.TitleParams(
        "Means that lie farther apart are learned from fewer pairs"
        if _closer(data, names)
        else "Means and transitions fitted to pairs",
        subtitle=[
            f"Medians of {count(data['models'])} models (d = 4, k = 3), and their range; of M: {said}",
            "Dashed: slope −1/2",
        ],
    )
    words = f"Errors of M and T against pairs: {said}."
    return alt.hconcat(*panels, spacing=26).properties(title=title, description=words), data


def _closer(data: pl.DataFrame, names: list[str]) -> bool:
    """Return whether at every size the median error of M is smaller for the larger norm."""
    both = data.filter(what="err_M").pivot("norm", index="N", values="median")
    return set(names) <= set(both.columns) and bool((both[names[1]] < both[names[0]]).all())
