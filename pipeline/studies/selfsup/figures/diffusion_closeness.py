"""Beyond the source: which closeness of the noise to the kernel decides how well it is recovered."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.diffusion_comparisons import EQUALLY_CLOSE, LAW, LIMIT_SLOPE, PREDICTS, TWO_SIDED
from pipeline.studies.selfsup.figures.common import GUIDE, spanning
from pipeline.studies.selfsup.figures.diffusion_common import shown, value, with_interval

COLOURS = [charts.BLUE, charts.GREEN, charts.ORANGE, charts.PURPLE, charts.BLACK, charts.SKY]


@plots.drawn("Error by the closeness of the noise")
def closeness(context: Results) -> Figure:
    """KL over excess risk against the two-sided and the one-sided closeness of the noise; KL against its limit law."""
    table = plots.some(context.table("sde_closeness"))
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
    measured = data.filter("fitted")
    widths, shifts = ([f"{each}" for each in data[name].unique().sort()] for name in ("sd_q", "mu_q"))
    by = plots.kinds(
        dict(zip(widths, COLOURS, strict=False)), "width", title="sd of q", dashes=False, legend="right", columns=1
    )
    ink = dict.fromkeys(shifts, charts.INK)
    by_shift = plots.kinds(ink, "shift", title="shift of q", shapes=True, dashes=False, legend="right", columns=1)
    ratio = spanning("ratio", "KL(p* | p) / excess risk", data["ratio"])
    line = np.polyfit(np.log(measured["one_sided"].to_numpy()), np.log(measured["ratio"].to_numpy()), 1)
    ends = measured["one_sided"].sort()[[0, -1]]
    fitted = pl.DataFrame({"one_sided": ends, "ratio": np.exp(np.polyval(line, np.log(ends.to_numpy())))})
    span = [*measured["kl"], *measured["limit"]]
    same = pl.DataFrame({"limit": [min(span), max(span)], "kl": [min(span), max(span)]})
    parts = [
        (spanning("two_sided", "two-sided closeness c_q", data["two_sided"], 4, form="~e"), ratio, data, None),
        (spanning("one_sided", "one-sided closeness", data["one_sided"], 4, form="~e"), ratio, data, fitted),
        (spanning("limit", "limit law", span), spanning("kl", "KL(p* | p)", span), measured, same),
    ]
    panels = []
    for (x, y, rows, under), title in zip(
        parts, ("By the c_q of Eq. 2.4", "By the excess of p* over q", "Without a fitted constant"), strict=True
    ):
        # The shapes under the points are there for their legend: with colours, it would have none.
        shapes = plots.points(rows, x, y, by_shift, size=65)
        *_, marks = plots.points(rows, x, y, by, hollow="fitted", tips=["q_id"], size=65)
        marks = marks.encode(shape=by_shift.points()["shape"])
        dashed = [] if under is None else plots.lines(under, x, y, charts.GREY, strokeDash=GUIDE, strokeWidth=1.5)
        panels.append(plots.panel([*dashed, *shapes, marks], title, 140, 210))
    limit, law, matched = (value(context, comparison) for comparison in (LIMIT_SLOPE, LAW, EQUALLY_CLOSE))
    rival = value(context, PREDICTS[TWO_SIDED])
    better = rival["hi"] is not None and rival["hi"] < 0
    found = (
        "The excess of p* over q predicts the error better than c_q"
        if better
        else "Error by the closeness of the noise"
    )
    words = "; ".join(
        f"{row['q_id']}: two-sided {shown(row['two_sided'])}, one-sided {shown(row['one_sided'])}, "
        f"KL over excess risk {shown(row['ratio'])}"
        for row in data.iter_rows(named=True)
    )
    return plots.figure(
        plots.grid(panels, 3, spacing=10),
        data,
        f"{found}: slope {with_interval(law)}; of two laws with one c_q the shifted one has {with_interval(matched)} "
        "times the KL of the wide one",
        f"Ornstein-Uhlenbeck process, m = {table['m'][0]}; a point: geometric mean of {seeds} trajectories. Closeness: "
        "exp of a 95 % quantile. Hollow: limit law alone",
        f"Dashed: least squares; right: equal (slope {with_interval(limit)})",
        told=f"By law of noise. {words}.",
    )
