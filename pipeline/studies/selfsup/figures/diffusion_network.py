"""F-S6: kernels of the log-cosh process that neural classifiers recover, beside Euler's."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.selfsup.figures.diffusion_common import log_axis, panel_title, shown
from schemas.selfsup.diffusions import EULER, LEARNED, MLP, TRUE

LINES = {TRUE: ("true p*", charts.BLACK, [1, 0]), EULER: ("Euler's", charts.GREY, [5, 3])}


def network(context: Results) -> Figure:
    """Slices of kernels at some z, true, Euler's and learned from the fewest and the most pairs; KL by pairs."""
    table, fits = context.table("sde_kernel_ref"), context.table("sde_fit")
    learned = table.filter(source=LEARNED)
    sizes = sorted(set(learned["m"].to_list()))
    ends = dict.fromkeys([sizes[0], sizes[-1]])
    drawn = dict(zip(ends, (charts.ORANGE, charts.BLUE), strict=False))
    names = {m: f"learned, m = {m}" for m in drawn}
    parts = [
        table.filter(source=source).select("z", "z_prime", pl.lit(name).alias("line"), "p", low="p", high="p")
        for source, (name, _, _) in LINES.items()
    ] + [
        learned.filter(m=m)
        .group_by("z", "z_prime")
        .agg(
            pl.lit(names[m]).alias("line"),
            pl.col("p").median(),
            pl.col("p").min().alias("low"),
            pl.col("p").max().alias("high"),
        )
        .sort("z", "z_prime")
        for m in drawn
    ]
    data = pl.concat(parts)
    order = [name for name, _, _ in LINES.values()] + list(names.values())
    colours = [c for _, c, _ in LINES.values()] + list(drawn.values())
    dashes = [d for _, _, d in LINES.values()] + [[8, 2]] * (len(drawn) > 1) + [[2, 2]]
    legend = alt.Legend(
        orient="bottom", symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=400, symbolOpacity=1, columns=4
    )
    looks: dict[str, Any] = {
        "color": alt.Color(
            "line:N", title=None, sort=order, legend=legend, scale=alt.Scale(domain=order, range=colours)
        ),
        "strokeDash": alt.StrokeDash(
            "line:N", title=None, sort=order, legend=legend, scale=alt.Scale(domain=order, range=dashes)
        ),
    }
    high = 1.15 * float(data["p"].to_numpy().max())  # bands of the fewest pairs go beyond
    panels = []
    for place, z in enumerate(sorted(set(data["z"].to_list()))):
        rows = data.filter(z=z)
        y_title = "density of z'" if place == 0 else None
        scale = alt.Scale(domain=[0, high], nice=False)
        base = alt.Chart(rows).encode(
            alt.X("z_prime:Q", title="z'", scale=alt.Scale(domain=[-3, 3]), axis=alt.Axis(grid=False, tickCount=5))
        )
        panels.append(
            alt.layer(
                base.mark_area(opacity=0.25, clip=True).encode(
                    alt.Y("low:Q", scale=scale, title=y_title), alt.Y2("high:Q"), color=looks["color"]
                ),
                base.mark_line(strokeWidth=2).encode(alt.Y("p:Q", scale=scale, title=y_title), **looks),
            ).properties(width=140, height=200, title=panel_title(f"z = {z:g}".replace("-", "−")))
        )
    euler = fits.filter(model=EULER)["kl"][0]
    models = fits.filter(model=MLP)
    axis = log_axis([*models["kl"], euler], format="~g")
    scale_m = log_axis(sizes, room=1.5, format="~s")
    level = pl.DataFrame({"at": [euler]})
    x, y = alt.X("m:Q", title="pairs m (log)", **scale_m), alt.Y("kl:Q", title="KL(p* | p) (log)", **axis)
    panels.append(
        alt.layer(
            alt.Chart(level)
            .mark_rule(color=charts.GREY, strokeDash=[5, 3], strokeWidth=2)
            .encode(alt.Y("at:Q", title="KL(p* | p) (log)", **axis)),
            alt.Chart(models).mark_point(filled=True, size=40, color=charts.BLUE, opacity=0.7).encode(x, y),
            alt.Chart(models.group_by("m").agg(pl.median("kl")).sort("m"))
            .mark_line(color=charts.BLUE, strokeWidth=2)
            .encode(x, y),
        ).properties(width=130, height=200, title=panel_title("Error by pairs"))
    )
    best = float(np.median(models.filter(m=sizes[-1])["kl"].to_numpy()))
    title = alt.TitleParams(
        f"From {sizes[-1]} pairs a network finds a kernel with KL {shown(best)}, where Euler's has {shown(euler)}",
        subtitle=[
            f"Log-cosh process, η = {table['eta'][0]:g}; {models['seed'].n_unique()} models of each size",
            "Lines: medians; bands: from least to most; grey dashes: Euler's kernel N(z − η f'(z), 2η)",
        ],
    )
    words = "; ".join(
        f"m = {row['m']}: {row['kl']:.3g}"
        for row in models.group_by("m").agg(pl.median("kl")).sort("m").iter_rows(named=True)
    )
    chart = alt.hconcat(*panels, spacing=10).properties(
        title=title, description=f"Slices of kernels. Median KL: {words}; Euler {euler:.3g}."
    )
    return chart, data.with_columns(pl.col("p", "low", "high").round_sig_figs(4))
