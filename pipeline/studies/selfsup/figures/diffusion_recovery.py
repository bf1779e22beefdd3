"""Kernels recovered by log-quadratic classifiers (E2): by sample size, by the law of noise, and as maps."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.languages.diffusions import MARGINAL
from pipeline.studies.selfsup.diffusion_comparisons import ENDS, RATES, SHIFTS, STATIONARY
from pipeline.studies.selfsup.figures.common import guide, spanning
from pipeline.studies.selfsup.figures.diffusion_common import (
    BAND,
    QUARTILES,
    noises,
    quartiles,
    shown,
    value,
    with_interval,
)
from schemas.selfsup.diffusions import LEARNED, TRUE

OVERLAP = 1.15  # of the cells of a map, which are drawn a hair apart without it
PANELS = {"kl": ("KL(p* | p)", -1.0), "l1": ("L1 error", -0.5), "exc": ("excess risk", -1.0)}
ERRORS = {"KL(p* | p)": charts.VERMILLION, "excess risk": charts.BLUE}


@plots.drawn("Errors by the number of pairs")
def kernel_errors(context: Results) -> Figure:
    """KL, L1 error and excess risk against the number of pairs, by law of noise."""
    fits = plots.some(context.table("sde_fit").filter(d=1))
    data = quartiles(fits, ["q_id", "m"], list(PANELS))
    sizes = data["m"].unique().sort().to_list()
    x, by = spanning("m", "pairs m", sizes, room=1.25, form="~s"), noises(data["q_id"])
    panels = []
    for name, (words, power) in PANELS.items():
        rows = data.filter(quantity=name)
        y = spanning("value", words, [*rows["low"], *rows["high"]])
        own = rows.filter(q_id=STATIONARY).sort("m")
        line = guide(x, y, sizes, power, (sizes[0], 0.5 * own["value"][0] if own.height else 1.0))
        panels.append(plots.panel([*line, *plots.lines(rows, x, y, by, bars=QUARTILES, dots=True)], words, 168, 230))
    rates = {name: with_interval(value(context, comparison)) for name, comparison in RATES.items()}
    return plots.figure(
        plots.grid(panels, 3, spacing=12),
        data,
        f"Slope of the error in the number of pairs: KL {rates['kl']}, L1 {rates['l1']}, excess risk {rates['exc']}",
        f"Ornstein-Uhlenbeck process, η = {fits['eta'][0]:g}. {BAND} over {fits['seed'].n_unique()} trajectories; "
        "dashed grey: slopes −1, −1/2 and −1",
        told=f"Median KL. {plots.tell(data.filter(quantity='kl'), '{q_id}, m = {m}: {value:.3g}')}.",
    )


@plots.drawn("Errors by the law of noise")
def noise(context: Results) -> Figure:
    """KL and excess risk at the largest number of pairs, against the shift of the noise and KL(p* | q)."""
    fits = plots.some(context.table("sde_fit").filter(d=1))
    largest = fits.filter(m=fits["m"].max())
    data = quartiles(largest, ["q_id", "q_kind", "mu_q", "sd_q", "kl_star_q"], ["kl", "exc"])
    shifts = data.filter(pl.col("mu_q").is_in([float(s) for s in SHIFTS]), q_kind=MARGINAL, sd_q=1.0)
    shifts = shifts.with_columns(
        pl.col("quantity").replace_strict(dict(zip(("kl", "exc"), ERRORS, strict=True))).alias("name")
    )
    y, kl = spanning("value", "error", [*data["low"], *data["high"]]), data.filter(quantity="kl")
    by = plots.kinds(ERRORS, "name", shapes=True, columns=1)
    left = plots.lines(
        shifts, Axis("mu_q", "shift of q = N(shift, 1)", values=list(SHIFTS)), y, by, bars=QUARTILES, dots=True
    )
    far = Axis("kl_star_q", "KL(p* | q), how far q is from the kernel", zero=True)
    right = plots.points(kl, far, y, replace(noises(kl["q_id"]), columns=4), ends=QUARTILES, size=65)
    ends = {name: with_interval(value(context, comparison)) for name, comparison in ENDS.items()}
    return plots.figure(
        plots.grid(
            [plots.panel(left, "By the shift of q", 225, 250), plots.panel(right, "KL(p* | p), all laws q", 260, 250)],
            shared=False,
        ),
        data,
        f"From q = N(0, 1) to N(3, 1) KL(p* | p) becomes {ends['kl']} times as large, the excess risk "
        f"{ends['exc']} times",
        f"m = {largest['m'][0]}. {BAND} over {largest['seed'].n_unique()} trajectories",
        told=f"Medians by law of noise. {plots.tell(data.sort('q_id'), '{q_id}: {quantity} {value:.3g}')}.",
    )


@plots.drawn("The true kernel and recovered ones")
def kernels(context: Results) -> Figure:
    """The true kernel, and those recovered with the closest and with the farthest of shifted laws of noise."""
    table = plots.some(context.table("sde_kernel_ref"))
    farthest = f"N({SHIFTS[-1]}, 1)"
    wanted = {
        "true p*": (TRUE, ""),
        f"recovered, q = {STATIONARY}": (LEARNED, STATIONARY),
        f"recovered, q = {farthest}": (LEARNED, farthest),
    }
    parts = [
        table.filter(source=source, q_id=q).with_columns(panel=pl.lit(name)) for name, (source, q) in wanted.items()
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
    legend = alt.Legend(orient="right", gradientLength=160, titleLimit=120)
    colour = alt.Color(
        "p:Q", title="density", scale=alt.Scale(range=plots.BLUES, domain=[0, plots.most(data["p"])]), legend=legend
    )
    x, y = Axis("z", "z, now", zero=False), Axis("z_prime", "z', a time η later", zero=False)
    panels = [
        plots.panel(
            [
                alt.Chart(rows)
                .mark_rect()
                .encode(x.at(alt.X), y.at(alt.Y), alt.X2("z2:Q"), alt.Y2("z_prime2:Q"), colour)
            ],
            name,
            155,
            220,
        )
        for name, rows in plots.split(data, "panel")
    ]
    fits = context.table("sde_fit").filter(d=1, seed=0)
    last = fits.filter(pl.col("q_id").is_in([STATIONARY, farthest]), m=fits["m"].max())
    said = " and ".join(f"KL {shown(kl)} with q = {q}" for q, kl in last.select("q_id", "kl").iter_rows())
    return plots.figure(
        plots.grid(panels, 3, spacing=14),
        data,
        f"The kernel of one trajectory: {said}",
        f"Ornstein-Uhlenbeck process, η = {table['eta'][0]:g}, m = {last['m'][0]} pairs; columns are densities",
        told="Maps of the true kernel and of two recovered ones.",
    )


def _step(values: pl.Series) -> float:
    """Return the distance between neighbouring values."""
    ordered = values.unique().sort()
    return float(ordered[1] - ordered[0])
