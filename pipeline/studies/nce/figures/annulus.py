"""Where the gradient is flat: the regions of the proof, and the decay on circles (Liu 2024, Figure 4.1, Lemma 49)."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import CROSS, largest
from pipeline.studies.nce.names import DECAY

SHOWN = 10.0  # R of Figure 4.1, where the table has it
COLOURS = {"region V": charts.GREY, "0.2 R": charts.VERMILLION, "0.1 R": charts.GREEN}
B, C = Axis("b", "b"), Axis("c", "c − log √2π")
Ends = tuple[float, float]


@plots.drawn("What gradient descent has to cross")
def fig41(context: Results) -> Figure:
    """Figure 4.1: region V of Eq. 4.17, the annulus around the optimum, and where its gradient is largest."""
    annulus = plots.some(context.table("annulus")).sort("R", "r")
    tested = annulus["R"].to_list()
    mean = SHOWN if SHOWN in tested else max(tested)
    rows = annulus.filter(R=mean)
    shapes, rim = pl.concat([_region(mean), _circles(mean, (0.2, 0.1))]), _largest(rows, mean)
    dots = pl.DataFrame({"b": [mean, 0.0], "c": [mean**2 / 2, 0.0], "part": ["τ*", "τ_q"]})
    b, c = B.but(domain=[-0.5, 1.4 * mean]), C.but(domain=[-4, 1.1 * mean**2])
    names = alt.Chart(dots).mark_text(align="left", dx=8, dy=-8).encode(b.at(alt.X), c.at(alt.Y), text="part:N")
    wide = plots.panel([*_layers(shapes, dots, b, c), names], "From τ_q to τ*", 250, 270)
    reach = 0.3 * mean
    b, c = (axis.but(domain=[at - reach, at + reach]) for axis, at in ((B, mean), (C, mean**2 / 2)))
    crosses = plots.points(rim, b, c, charts.BLACK, shape=CROSS, size=250, strokeWidth=2)
    close = plots.panel([*_layers(shapes, dots.filter(part="τ*"), b, c), *crosses], "Around τ*, equal scales", 270, 270)
    found = plots.tell(rows, "{max_ip:.2g} on the circle of {r:g} R", ", ")
    return plots.figure(
        plots.grid([wide, close], spacing=30),
        pl.concat([shapes, rim, dots], how="diagonal"),
        f"At R = {mean:g} the gradient along the radius is at most {found}",
        "Grey: region V of Eq. 4.17; red: the annulus from 0.1R to 0.2R; green: inside it. Crosses: where on a circle "
        "of radius 0.1R, 0.15R and 0.2R the gradient along the radius is largest",
        told="Region V, annulus and optimum in the plane of b and c.",
    )


def _region(mean: float) -> pl.DataFrame:
    """Return the outline of region V: its lower edge, and back along the upper one."""
    b = np.linspace(mean / 2, 1.4 * mean, 181)
    outline = np.concatenate([b, b[::-1]])
    c = np.concatenate([b * (mean - b), (b * np.minimum(b, mean))[::-1]])
    return pl.DataFrame({"b": outline, "c": c, "order": np.arange(len(c)), "part": "region V"})


def _circles(mean: float, radii: tuple[float, ...]) -> pl.DataFrame:
    angle = np.linspace(0, 2 * np.pi, 121)
    return pl.concat(
        pl.DataFrame(
            {
                "b": mean + r * mean * np.cos(angle),
                "c": mean**2 / 2 + r * mean * np.sin(angle),
                "order": np.arange(len(angle)),
                "part": f"{r:g} R",
            }
        )
        for r in radii
    )


def _largest(rows: pl.DataFrame, mean: float) -> pl.DataFrame:
    """Return where the largest gradient along the radius was found; of two such points, the upper."""
    b = rows["b_over_R"].to_numpy() * mean
    height = np.sqrt(np.maximum((rows["r"].to_numpy() * mean) ** 2 - (b - mean) ** 2, 0))
    return pl.DataFrame({"b": b, "c": mean**2 / 2 + height, "part": "largest gradient"})


def _layers(shapes: pl.DataFrame, dots: pl.DataFrame, b: Axis, c: Axis) -> plots.Layers:
    x, y = (
        alt.X("b:Q", title=b.title, scale=alt.Scale(domain=list(b.domain or ()), nice=False)),
        alt.Y("c:Q", title=c.title, scale=alt.Scale(domain=list(c.domain or ()), nice=False)),
    )  # not clamped: what is outside is cut off
    filled = [
        alt.Chart(shapes.filter(part=name))
        .mark_line(
            fill=fill,
            fillOpacity=opacity,
            stroke=None if name == "region V" else colour,
            clip=True,
            interpolate="linear-closed",
        )
        .encode(x, y, order="order:Q")
        for name, colour in COLOURS.items()
        for fill, opacity in (("white", 1.0), (colour, 0.35))
    ]
    point = alt.Chart(dots).mark_circle(size=60, color=charts.ORANGE, opacity=1, stroke="black", clip=True)
    return [*filled, point.encode(x, y)]


@plots.drawn("The gradient on circles around τ*")
def annulus(context: Results) -> Figure:
    """Lemma 49: how fast the largest gradient on a circle decays with R, its limit, and the printed range."""
    table = plots.some(context.table("annulus")).sort("R", "r")
    data = table.with_columns(pl.format("{} R", "r").alias("radius"))
    by = plots.kinds(
        dict(zip(data["radius"].unique().sort(), [charts.GREEN, charts.ORANGE, charts.VERMILLION], strict=False)),
        "radius",
        dashes=False,
        title="radius of the circle",
    )
    x = Axis("R", "distance R of the means", domain=[0, 1.03 * largest(data["R"])])
    quarters = round(4 * plots.least(data["limit"])) - 1, round(4 * plots.most(data["kappa_min"])) + 1
    named = "κ = −8 log max |∂L/∂u| / R²"  # u: along the radius
    y = Axis("kappa_min", named, domain=[end / 4 for end in quarters])
    printed = pl.DataFrame({"low": [DECAY[0]], "high": [DECAY[1]]})
    within = alt.Chart(printed).mark_rect(color=charts.GREY, opacity=0.2).encode(y.at(alt.Y, "low"), alt.Y2("high:Q"))
    limits = (
        alt.Chart(data).mark_rule(strokeDash=[4, 3], strokeWidth=1.5).encode(y.at(alt.Y, "limit"), by.lines()["color"])
    )
    last = data.filter(pl.col("R") == pl.col("R").max())
    inside = last.filter(pl.col("kappa_min").is_between(*DECAY)).height
    return plots.figure(
        [within, limits, *plots.lines(data, x, y, by, dots=True)],
        data,
        f"The gradient decays as exp(−κR²/8): at R = {last['R'][0]:g}, κ is in the printed range on {inside} of "
        f"{last.height} circles around τ*",
        f"Dashed: limits for large R; grey: the printed range of κ, {DECAY[0]:g} to {DECAY[1]:g}. Computed exactly",
        told="κ at the largest R: " + plots.tell(last, "{radius}: {kappa_min:.2f}, limit {limit:.2f}") + ".",
        width=430,
        height=270,
    )
