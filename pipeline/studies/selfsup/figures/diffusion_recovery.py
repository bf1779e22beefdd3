"""Kernels recovered by log-quadratic classifiers (E2): by sample size, by the law of noise, and as maps."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.languages.diffusions import MARGINAL
from pipeline.studies.selfsup.diffusion_comparisons import ENDS, RATES, SHIFTS, STATIONARY
from pipeline.studies.selfsup.figures.diffusion_common import (
    BAND,
    guide,
    log_axis,
    noise_scales,
    panel_title,
    quartiles,
    shown,
    value,
    with_interval,
)
from schemas.selfsup.diffusions import LEARNED, TRUE

OVERLAP = 1.15  # of the cells of a map, which are drawn a hair apart without it
PANELS = {"kl": ("KL(p* | p)", -1.0), "l1": ("L1 error", -0.5), "exc": ("excess risk", -1.0)}


def kernel_errors(context: Results) -> Figure:
    """KL, L1 error and excess risk against the number of pairs, by law of noise."""
    fits = context.table("sde_fit").filter(d=1)
    data = quartiles(fits, ["q_id", "m"], list(PANELS))
    sizes = sorted(set(data["m"].to_list()))
    panels = []
    for name, (words, power) in PANELS.items():
        rows = data.filter(quantity=name)
        x = alt.X("m:Q", title="pairs m (log)", **log_axis(sizes, room=1.25, format="~s"))
        y = alt.Y("value:Q", title=f"{words} (log)", **log_axis([*rows["low"], *rows["high"]], format="~g"))
        base = alt.Chart(rows).encode(x=x, **noise_scales(rows["q_id"]))
        own = rows.filter(q_id=STATIONARY).sort("m")
        start = (sizes[0], 0.5 * own["value"][0]) if own.height else (sizes[0], 1.0)
        line = guide(sizes, power, start).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
        layers: list[Any] = [
            line,
            base.mark_rule(strokeWidth=1.5, opacity=0.6, strokeDash=[1, 0])
            .encode(y=y.copy(), y2="high:Q")
            .encode(y=alt.Y("low:Q", title=f"{words} (log)", **log_axis([*rows["low"], *rows["high"]], format="~g"))),
            base.mark_line(strokeWidth=2).encode(y=y),
            base.mark_point(filled=True, size=35, opacity=1).encode(y=y),
        ]
        panels.append(alt.layer(*layers).properties(width=178, height=230, title=panel_title(words)))
    seeds = fits["seed"].n_unique()
    rates = {name: with_interval(value(context, comparison)) for name, comparison in RATES.items()}
    title = alt.TitleParams(
        [
            f"Slope of the error in the number of pairs: KL {rates['kl']},",
            f"L1 {rates['l1']}, excess risk {rates['exc']}",
        ],
        subtitle=[
            f"Ornstein-Uhlenbeck process, η = {fits['eta'][0]:g}; {seeds} trajectories. {BAND}",
            "Dashed grey: slopes −1, −1/2 and −1",
        ],
    )
    words = "; ".join(
        f"{row['q_id']}, m = {row['m']}: {row['value']:.3g}" for row in data.filter(quantity="kl").iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=14).properties(title=title, description=f"Median KL by noise and m. {words}.")
    return chart, data


def noise(context: Results) -> Figure:
    """KL and excess risk at the largest number of pairs, against the shift of the noise and KL(p* | q)."""
    fits = context.table("sde_fit").filter(d=1)
    largest = fits.filter(m=fits["m"].max())
    data = quartiles(largest, ["q_id", "q_kind", "mu_q", "sd_q", "kl_star_q"], ["kl", "exc"])
    shifts = data.filter(pl.col("mu_q").is_in([float(s) for s in SHIFTS]), q_kind=MARGINAL, sd_q=1.0)
    names = {"kl": "KL(p* | p)", "exc": "excess risk"}
    scale = alt.Scale(domain=list(names.values()), range=[charts.VERMILLION, charts.BLUE])
    shifts = shifts.with_columns(pl.col("quantity").replace_strict(names).alias("name"))
    axis = log_axis([*data["low"], *data["high"]], format="~g")
    colour = alt.Color("name:N", title=None, scale=scale, legend=alt.Legend(orient="bottom"))
    y = alt.Y("value:Q", title="error (log)", **axis)
    x = alt.X("mu_q:Q", title="shift of q = N(shift, 1)", axis=alt.Axis(values=list(SHIFTS), grid=False))
    base = alt.Chart(shifts).encode(x=x, color=colour)
    left = alt.layer(
        base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title="error (log)", **axis), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=y),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=y),
    ).properties(width=220, height=250, title=panel_title("By the shift of q"))
    kl = data.filter(quantity="kl")
    along = alt.X("kl_star_q:Q", title="KL(p* | q), how far q is from the kernel", scale=alt.Scale(zero=True))
    points = alt.Chart(kl).encode(x=along)
    looks = noise_scales(kl["q_id"])
    looks.pop("strokeDash")
    looks["color"].legend = alt.Undefined
    right = alt.layer(
        points.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=None, **axis), y2="high:Q", **looks),
        points.mark_point(filled=True, size=70, opacity=1).encode(y=alt.Y("value:Q", title=None, **axis), **looks),
    ).properties(width=250, height=250, title=panel_title("KL(p* | p), all laws q"))
    ends = {name: value(context, comparison) for name, comparison in ENDS.items()}
    title = alt.TitleParams(
        [
            f"From q = N(0, 1) to N(3, 1) KL(p* | p) becomes {with_interval(ends['kl'])} times as large,",
            f"the excess risk {with_interval(ends['exc'])} times",
        ],
        subtitle=[f"m = {largest['m'][0]}; {largest['seed'].n_unique()} trajectories. {BAND}"],
    )
    words = "; ".join(
        f"{row['q_id']}: {row['quantity']} {row['value']:.3g}" for row in data.sort("q_id").iter_rows(named=True)
    )
    chart = alt.hconcat(left, right, spacing=24).resolve_scale(color="independent")
    return chart.properties(title=title, description=f"Medians by law of noise. {words}."), data


def kernels(context: Results) -> Figure:
    """The true kernel, and those recovered with the closest and with the farthest of shifted laws of noise."""
    table = context.table("sde_kernel_ref")
    farthest = f"N({SHIFTS[-1]}, 1)"
    wanted = [
        ("true p*", TRUE, ""),
        (f"recovered, q = {STATIONARY}", LEARNED, STATIONARY),
        (f"recovered, q = {farthest}", LEARNED, farthest),
    ]
    parts = [
        table.filter(source=source, q_id=q).with_columns(pl.lit(name).alias("panel")) for name, source, q in wanted
    ]
    steps = {axis: _step(table[axis]) for axis in ("z", "z_prime")}
    data = pl.concat(parts).select(
        "panel",
        pl.col("z").round(3),
        pl.col("z_prime").round(3),
        pl.col("p").round_sig_figs(3),
        (pl.col("z") + OVERLAP * steps["z"]).round(3).alias("z2"),
        (pl.col("z_prime") + OVERLAP * steps["z_prime"]).round(3).alias("z_prime2"),
    )
    high = float(data["p"].max() or 1.0)  # type: ignore[arg-type]
    legend = alt.Legend(orient="right", gradientLength=160, titleLimit=120)
    scale = alt.Scale(scheme="viridis", domain=[0, high])
    colour = alt.Color("p:Q", title="density", scale=scale, legend=legend)
    panels = [
        alt.Chart(data.filter(panel=name))
        .mark_rect()
        .encode(
            alt.X(
                "z:Q", title="z, now", scale=alt.Scale(nice=False, zero=False), axis=alt.Axis(grid=False, tickCount=5)
            ),
            alt.Y(
                "z_prime:Q",
                title="z', a time η later" if place == 0 else None,
                scale=alt.Scale(nice=False, zero=False),
                axis=alt.Axis(grid=False, tickCount=5),
            ),
            alt.X2("z2:Q"),
            alt.Y2("z_prime2:Q"),
            colour,
        )
        .properties(width=160, height=220, title=panel_title(name))
        for place, (name, _, _) in enumerate(wanted)
    ]
    fits = context.table("sde_fit").filter(d=1, seed=0)
    last = fits.filter(m=fits["m"].max())
    found = {q: last.filter(q_id=q)["kl"].to_list()[0] for q in (STATIONARY, farthest) if q in last["q_id"].to_list()}
    said = " and ".join(f"KL {shown(kl)} with q = {q}" for q, kl in found.items())
    title = alt.TitleParams(
        f"The kernel of one trajectory: {said}",
        subtitle=[
            f"Ornstein-Uhlenbeck process, η = {table['eta'][0]:g}, m = {last['m'][0]} pairs; columns are densities"
        ],
    )
    chart = alt.hconcat(*panels, spacing=16).properties(
        title=title, description=f"Maps of the true kernel and of two recovered ones. {said}."
    )
    return chart, data


def _step(values: pl.Series) -> float:
    """Return the distance between neighbouring values."""
    ordered = values.unique().sort()
    return float(ordered[1] - ordered[0])
