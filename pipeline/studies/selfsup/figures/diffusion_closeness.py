"""Beyond the source: which closeness of the noise to the kernel decides how well it is recovered."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.diffusion_comparisons import EQUALLY_CLOSE, LAW, LIMIT_SLOPE, PREDICTS, TWO_SIDED
from pipeline.studies.selfsup.figures.diffusion_common import log_axis, panel_title, shown, value, with_interval

COLOURS = [charts.BLUE, charts.GREEN, charts.ORANGE, charts.PURPLE, charts.BLACK, charts.SKY]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def closeness(context: Results) -> Figure:
    """KL over excess risk against the two-sided and the one-sided closeness of the noise; KL against its limit law."""
    table = context.table("sde_closeness")
    seeds = context.table("sde_closeness_fits")["seed"].n_unique()
    data = table.select(
        "q_id",
        "mu_q",
        "sd_q",
        "two_sided",
        "one_sided",
        pl.col("kl").is_not_null().alias("fitted"),
        (pl.col("kl") / pl.col("exc"))
        .fill_null((pl.col("limit_log_kl") - pl.col("limit_log_exc")).exp())
        .alias("ratio"),
        "kl",
        (pl.col("limit_log_kl").exp() / pl.col("m")).alias("limit"),
        pl.format("{}", pl.col("sd_q")).alias("width"),
        pl.format("{}", pl.col("mu_q")).alias("shift"),
    )
    measured, computed = data.filter("fitted"), data.filter(~pl.col("fitted"))
    widths = [f"{each}" for each in sorted(set(data["sd_q"].to_list()))]
    shifts = [f"{each}" for each in sorted(set(data["mu_q"].to_list()))]
    colour = alt.Color(
        "width:N",
        title="sd of q",
        sort=widths,
        scale=alt.Scale(domain=widths, range=COLOURS[: len(widths)]),
        legend=alt.Legend(orient="right"),
    )
    shape = alt.Shape(
        "shift:N",
        title="shift of q",
        sort=shifts,
        scale=alt.Scale(domain=shifts, range=SHAPES[: len(shifts)]),
        legend=alt.Legend(orient="right"),
    )
    named, axis = "KL(p* | p) / excess risk (log)", log_axis(data["ratio"], format="~g")
    line = np.polyfit(np.log(measured["one_sided"].to_numpy()), np.log(measured["ratio"].to_numpy()), 1)
    ends = np.array([measured["one_sided"].to_numpy().min(), measured["one_sided"].to_numpy().max()])
    fitted = pl.DataFrame({"x": ends, "y": np.exp(np.polyval(line, np.log(ends)))})
    span = [*measured["kl"], *measured["limit"]]
    same = pl.DataFrame({"x": [min(span), max(span)], "y": [min(span), max(span)]})
    panels: list[Any] = []
    for column, x_title, y_column, y_title, y_axis, under, words in (
        ("two_sided", "two-sided closeness c_q (log)", "ratio", named, axis, None, "By the c_q of Eq. 2.4"),
        ("one_sided", "one-sided closeness (log)", "ratio", None, axis, fitted, "By the excess of p* over q"),
        (
            "limit",
            "limit law (log)",
            "kl",
            "KL(p* | p) (log)",
            log_axis(span, format="~g"),
            same,
            "Without a fitted constant",
        ),
    ):
        wide = column != "limit"
        along = log_axis(data[column] if wide else span, every=4 if wide else 1, format="~e" if wide else "~g")
        x, y = alt.X(f"{column}:Q", title=x_title, **along), alt.Y(f"{y_column}:Q", title=y_title, **y_axis)
        marks: list[tuple[pl.DataFrame, dict[str, Any]]] = [(measured, {"filled": True, "opacity": 0.9})]
        if wide:
            marks.append((computed, {"filled": False, "opacity": 1.0}))
        layers: list[Any] = [
            alt.Chart(rows).mark_point(size=70, **look).encode(x, y, colour, shape, tooltip=["q_id", column, y_column])
            for rows, look in marks
        ]
        if under is not None:
            layers.insert(0, alt.Chart(under).mark_line(color=charts.GREY, strokeDash=[4, 3]).encode(x="x:Q", y="y:Q"))
        panels.append(alt.layer(*layers).properties(width=160, height=210, title=panel_title(words)))
    limit = value(context, LIMIT_SLOPE)
    law, matched, rival = (value(context, comparison) for comparison in (LAW, EQUALLY_CLOSE, PREDICTS[TWO_SIDED]))
    better = rival["hi"] is not None and rival["hi"] < 0
    found = "Error by the closeness of the noise"
    if better:
        found = "The excess of p* over q predicts the error better than c_q"
    title = alt.TitleParams(
        [
            f"{found}: slope {with_interval(law)};",
            f"of two laws with one c_q the shifted one has {with_interval(matched)} times the KL of the wide one",
        ],
        subtitle=[
            f"Ornstein-Uhlenbeck process, m = {table['m'][0]}, {seeds} trajectories, geometric means",
            f"Closeness: exp of a 95 % quantile. Hollow: limit law alone. Right: slope {with_interval(limit)}; dashed: "
            "equal",
        ],
    )
    words = "; ".join(
        f"{row['q_id']}: two-sided {shown(row['two_sided'])}, one-sided {shown(row['one_sided'])}, "
        f"KL over excess risk {shown(row['ratio'])}"
        for row in data.iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=14).properties(title=title, description=f"By law of noise. {words}.")
    return chart, data
