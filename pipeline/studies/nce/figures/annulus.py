"""Where the gradient is flat: the regions of the proof, and the decay on circles (Liu 2024, Figure 4.1, Lemma 49)."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import CROSS, panel_title
from pipeline.studies.nce.names import DECAY

SHOWN = 10.0  # R of Figure 4.1, where the table has it
B_TITLE, C_TITLE = "b", "c − log √2π"


def fig41(context: Results) -> Figure:
    """Figure 4.1: region V of Eq. 4.17, the annulus around the optimum, and where its gradient is largest."""
    annulus = context.table("annulus").sort("R", "r")
    tested = annulus["R"].to_list()
    mean = SHOWN if SHOWN in tested or not tested else max(tested)
    circles, rim = _circles(mean, (0.2, 0.1)), _largest(annulus.filter(R=mean), mean)
    dots = pl.DataFrame({"b": [mean, 0.0], "c": [mean**2 / 2, 0.0], "part": ["τ*", "τ_q"]})
    region = _region(mean)
    data = pl.concat([region, circles, rim, dots], how="diagonal")
    far = ((-0.5, 1.4 * mean), (-4, 1.1 * mean**2))
    wide = alt.layer(
        *_layers(region, circles, dots, *far),
        alt.Chart(dots).mark_text(align="left", dx=8, dy=-8).encode(_x(far[0]), _y(far[1]), text="part:N"),
    ).properties(width=250, height=270, title=panel_title("From τ_q to τ*"))
    reach = 0.3 * mean
    near = ((mean - reach, mean + reach), (mean**2 / 2 - reach, mean**2 / 2 + reach))
    close = alt.layer(
        *_layers(region, circles, dots.filter(part="τ*"), *near),
        alt.Chart(rim)
        .mark_point(shape=CROSS, size=250, color=charts.BLACK, strokeWidth=2, opacity=1)
        .encode(_x(near[0]), _y(near[1])),
    ).properties(width=270, height=270, title=panel_title("Around τ*, equal scales"))
    title = alt.TitleParams(
        f"What gradient descent has to cross, R = {mean:g}",
        subtitle=[
            "Grey: region V of Eq. 4.17; red: the annulus from 0.1R to 0.2R; green: inside it",
            "Crosses: where on a circle of radius 0.1R, 0.15R and 0.2R the gradient along the radius is largest",
        ],
    )
    words = (
        f"Region V, annulus and optimum in the plane of b and c for R = {mean:g}. The gradient along the radius is "
        + "; ".join(
            f"at most {row['max_ip']:.2g} on the circle of {row['r']:g} R"
            for row in annulus.filter(R=mean).iter_rows(named=True)
        )
        + "."
    )
    return alt.hconcat(wide, close, spacing=30).properties(title=title, description=words), data


def _region(mean: float) -> pl.DataFrame:
    b = np.linspace(mean / 2, 1.4 * mean, 181)
    upper = b * np.minimum(b, mean)
    return pl.DataFrame({"b": b, "c": b * (mean - b), "upper": upper, "part": "region V"})


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


def _x(domain: tuple[float, float]) -> alt.X:
    return alt.X("b:Q", title=B_TITLE, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=5))


def _y(domain: tuple[float, float]) -> alt.Y:
    return alt.Y("c:Q", title=C_TITLE, scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=5))


def _layers(
    region: pl.DataFrame, circles: pl.DataFrame, dots: pl.DataFrame, b: tuple[float, float], c: tuple[float, float]
) -> list[alt.Chart]:
    colours = {"0.2 R": charts.VERMILLION, "0.1 R": charts.GREEN}
    rings = [
        alt.Chart(circles.filter(part=name))
        .mark_line(fill=fill, fillOpacity=opacity, stroke=colour, clip=True, interpolate="linear-closed")
        .encode(_x(b), _y(c), order="order:Q")
        for name, colour in colours.items()
        for fill, opacity in (("white", 1.0), (colour, 0.35))
    ]
    shade = (
        alt.Chart(region).mark_area(color=charts.GREY, opacity=0.3, clip=True).encode(_x(b), _y(c), alt.Y2("upper:Q"))
    )
    point = alt.Chart(dots).mark_circle(size=60, color=charts.ORANGE, opacity=1, stroke="black", clip=True)
    return [shade, *rings, point.encode(_x(b), _y(c))]


def annulus(context: Results) -> Figure:
    """Lemma 49: how fast the largest gradient on a circle decays with R, its limit, and the printed range."""
    data = context.table("annulus").sort("R", "r").with_columns(pl.col("r").cast(pl.String).alias("radius"))
    colour = alt.Color(
        "radius:N",
        title="radius / R",
        scale=alt.Scale(range=[charts.GREEN, charts.ORANGE, charts.VERMILLION]),
        legend=alt.Legend(orient="right"),
    )
    x = alt.X("R:Q", title="distance R of the means", scale=alt.Scale(domain=[0, 31], nice=False))
    span = alt.Scale(domain=[0.4, 1.6], nice=False, zero=False)
    named = "κ = −8 log max |∂L/∂u| / R²"  # u: along the radius
    y = alt.Y("kappa_min:Q", title=named, scale=span)
    band = alt.Chart(pl.DataFrame({"low": [DECAY[0]], "high": [DECAY[1]]}))
    low, limit = (alt.Y(field, title=named, scale=span) for field in ("low:Q", "limit:Q"))
    layers = [
        band.mark_rect(color=charts.GREY, opacity=0.2).encode(low, alt.Y2("high:Q")),
        alt.Chart(data).mark_rule(strokeDash=[4, 3], strokeWidth=1.5).encode(limit, colour),
        alt.Chart(data).mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=45)).encode(x, y, colour),
    ]
    title = alt.TitleParams(
        "The gradient on circles around τ* decays as exp(−κR²/8)",
        subtitle=["Dashed: limits for large R; grey: the printed range of κ"],
    )
    last = data.filter(pl.col("R") == pl.col("R").max())
    words = "Decay exponent against R: " + "; ".join(
        f"at radius {row['r']:g} R it is {number(row['kappa_min'])} for R = {row['R']:g}, limit {number(row['limit'])}"
        for row in last.iter_rows(named=True)
    )
    return alt.layer(*layers).properties(width=430, height=270, title=title, description=f"{words}."), data
