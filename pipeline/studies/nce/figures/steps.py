"""How many updates it takes (Liu 2024, Theorems 17 to 19)."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import largest, lines_legend, log_axis, loss_colour, loss_name, panel_title
from pipeline.studies.nce.names import LOSS_NAMES
from schemas.nce.tables import ENCE, GD, INVERSE, NCE, NEWTON, NGD, PLAIN_R, R_SQUARED, TENTH, THEOREM_19

WALKS = {  # (loss, optimizer, target) -> name, colour
    (NCE, GD, TENTH): ("NCE, GD, to 0.1R", charts.BLACK),
    (NCE, NEWTON, TENTH): ("NCE, Newton, to 0.1R", charts.PURPLE),
    (ENCE, NEWTON, TENTH): ("eNCE, Newton, to 0.1R", charts.SKY),
    (NCE, NGD, INVERSE): ("NCE, NGD, to 1/R", charts.ORANGE),
    (ENCE, NGD, INVERSE): ("eNCE, NGD, to 1/R", charts.BLUE),
}
FITTED = {GD: "GD steps", NEWTON: "Newton steps", NGD: "NGD steps"}
LAWS = {R_SQUARED: "exp(aR²)·R^b", PLAIN_R: "exp(aR)·R^b"}
WALKERS = {GD: "GD", NEWTON: "Newton's method"}
MEANS = [2, 3, 4, 5, 6, 8, 10, 16]


def steps(context: Results) -> Figure:
    """Steps of GD and Newton's method against R², of NGD against R, with fitted lines (Theorems 17 to
    19)."""
    table = context.table("steps").filter(pl.col("rule") != THEOREM_19, pl.col("steps") > 0)
    frames = [
        table.filter(loss=loss, optimizer=optimizer, target=target).with_columns(walk=pl.lit(name))
        for (loss, optimizer, target), (name, _) in WALKS.items()
    ]
    data = pl.concat(frames).sort("walk", "R").with_columns((pl.col("R") ** 2).alias("R2"))
    lines = _lines(context)
    high = largest(data["steps"], 10) * 2
    names = list(dict(WALKS.values()))
    scale = alt.Scale(domain=names, range=list(dict(WALKS.values()).values()))
    colour = alt.Color("walk:N", title=None, scale=scale, legend=alt.Legend(orient="bottom", columns=3))
    shape = alt.Shape("walk:N", title=None, scale=alt.Scale(domain=names))
    ticks = [mean for mean in MEANS if mean <= largest(data["R"], 10)]
    reach = [0, 26] if high < 1e6 else [0, 50]
    squares = alt.X("R2:Q", title="R²", scale=alt.Scale(domain=reach, nice=False))
    logarithms = alt.Scale(type="log", domain=[1.8, 1.1 * max([*ticks, 9])], nice=False)
    means = alt.X("R:Q", title="R (log)", scale=logarithms, axis=alt.Axis(values=ticks))
    panels = []
    for x, walks, heading in (
        (squares, names[:3], "Exponential: straight against R²"),
        (means, [names[0], *names[3:]], "Polynomial: straight against log R"),
    ):
        y = alt.Y("steps:Q", title="steps (log)" if x is squares else None, **log_axis([8.0, high]))
        fits = lines.filter(pl.col("walk").is_in(walks if x is squares else names[3:]))
        slopes = list(dict.fromkeys(fits["told"].to_list()))
        layers = [
            alt.Chart(fits).mark_line(strokeWidth=1.5, strokeDash=[4, 3], clip=True).encode(x, y, colour),
            alt.Chart(data.filter(pl.col("walk").is_in(walks)))
            .mark_point(filled=True, size=55, clip=True, opacity=1)
            .encode(x, y, colour, shape),
        ]
        panels.append(alt.layer(*layers).properties(width=265, height=270, title=panel_title(heading, slopes)))
    title = alt.TitleParams(
        "Updates on the population loss until the distance to τ* meets a target",
        subtitle=["Dashed: lines by least squares, slope and residuals (bend of the points, not noise)"],
    )
    summaries = [
        f"{name}: " + ", ".join(f"{count} at R = {mean:g}" for mean, count in rows.select("R", "steps").iter_rows())
        for name in names
        for rows in [data.filter(walk=name)]
    ]
    words = f"Steps against R. {'. '.join(summaries)}"
    return alt.hconcat(*panels, spacing=24).properties(title=title, description=f"{words}."), data


def _lines(context: Results) -> pl.DataFrame:
    """Return the fitted lines, over the R of their points."""
    rates, frames = context.table("rates"), []
    for (loss, optimizer, _), (name, _) in WALKS.items():
        for row in rates.filter(loss=loss, quantity=FITTED[optimizer]).iter_rows(named=True):
            r = np.linspace(row["first_R"], row["last_R"], 40)
            x = r**2 if row["against"] == "R^2" else np.log(r)
            residuals = f"residuals up to {row['largest_residual']:.2g}"
            label = f"{name.rpartition(',')[0]}: {number(row['slope'])}, {residuals}"
            value = np.exp(row["intercept"] + row["slope"] * x)
            frames.append(pl.DataFrame({"R": r, "R2": r**2, "steps": value, "walk": name, "told": label}))
    columns = {"R": pl.Float64, "R2": pl.Float64, "steps": pl.Float64, "walk": pl.String, "told": pl.String}
    return pl.concat([pl.DataFrame(schema=columns), *frames])


def growth(context: Results) -> Figure:
    """Two laws of growth, exp(aR²)·R^b and exp(aR)·R^b, fitted to the steps of GD and Newton's method: residuals of
    both, over a short and a long range of R."""
    fits = context.table("growth_fits").filter(pl.col("corrected"))
    points = context.table("continued").select("R", "loss", "optimizer", "steps")
    x = pl.when(against=R_SQUARED).then(pl.col("R") ** 2).otherwise("R")
    fitted = pl.col("slope") * x + pl.col("power") * pl.col("R").log() + pl.col("intercept")
    data = (
        points.join(fits, on=["loss", "optimizer"])
        .filter(pl.col("R") <= pl.col("last_R"))
        .with_columns(
            (pl.col("steps").log() - fitted).alias("residual"),
            pl.col("against").replace_strict(LAWS, default=None).alias("law"),
            pl.concat_str(
                pl.col("loss").replace_strict(LOSS_NAMES), pl.col("optimizer").replace_strict(WALKERS), separator=", "
            ).alias("method"),
        )
        .select("method", "law", "last_R", "R", "residual", "aicc")
        .sort("method", "last_R", "law", "R")
    )
    scale = alt.Scale(domain=list(LAWS.values()), range=[charts.BLUE, charts.VERMILLION])
    colour = alt.Color("law:N", title=None, scale=scale, legend=lines_legend())
    rows = []
    for method in data["method"].unique().sort().to_list():
        panels: list[alt.Chart] = []
        for last in data["last_R"].unique().sort().to_list():
            part = data.filter(method=method, last_R=last)
            preferred = part.sort("aicc")["law"][0]
            axis = alt.X("R:Q", title="R", scale=alt.Scale(domain=[1.5, last + 0.5], nice=False))
            y = alt.Y("residual:Q", title="log steps − fit" if not panels else None, axis=alt.Axis(tickCount=4))
            heading = panel_title(f"{method}, R to {last:g}", [f"smaller AICc: {preferred}"])
            line = alt.Chart(part).mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=30))
            panels.append(line.encode(axis, y, colour).properties(width=235, height=95, title=heading))
        rows.append(alt.hconcat(*panels, spacing=24))
    title = alt.TitleParams(
        "How the steps of GD and Newton's method grow with R: two laws",
        subtitle=["Residuals of least squares; steps to 0.1R from the modified equation"],
    )
    words = "; ".join(
        f"{row['method']}, R to {row['last_R']:g}, {row['law']}: largest residual {row['residual']:.3f}, "
        f"AICc {row['aicc']:.1f}"
        for row in data.group_by("method", "last_R", "law", maintain_order=True)
        .agg(pl.col("residual").abs().max(), pl.col("aicc").first())
        .iter_rows(named=True)
    )
    chart = alt.vconcat(*rows, spacing=12) if rows else alt.Chart(data).mark_point()
    return chart.properties(title=title, description=f"Residuals of two laws of growth. {words}."), data


def bounds(context: Results) -> Figure:
    """Theorem 19: steps that NGD takes with the step size of the theorem, and the bound on them."""
    table = context.table("steps").filter(rule=THEOREM_19).sort("loss", "R").with_columns(loss_name())
    data = table.unpivot(["steps", "bound"], index=["R", "name"], variable_name="what", value_name="value").sort(
        "name", "what", "R"
    )
    data = data.with_columns(pl.col("what").replace_strict({"steps": "steps taken", "bound": "bound of Theorem 19"}))
    x = alt.X("R:Q", title="R", axis=alt.Axis(values=sorted(set(data["R"].to_list()))), scale=alt.Scale(padding=20))
    y = alt.Y("value:Q", title="steps (log)", **log_axis([0.8, 2 * largest(data["value"], 10)]))
    dashes = alt.Scale(domain=["steps taken", "bound of Theorem 19"], range=[[1, 0], [5, 3]])
    dash = alt.StrokeDash("what:N", title=None, scale=dashes, legend=lines_legend("right", symbolStrokeColor="black"))
    base = alt.Chart(data)
    chart = alt.layer(
        base.mark_line(strokeWidth=2).encode(x, y, loss_colour(lines_legend("right")), dash),
        base.mark_point(filled=True, size=45, opacity=1).encode(x, y, loss_colour(lines_legend("right"))),
    )
    title = alt.TitleParams(
        "The bound on NGD holds, and is loose",
        subtitle=["Until the distance is 1/R, with η = √(β_l / β_u κ*) / R and measured β_u, β_l"],
    )
    words = "; ".join(
        f"{row['name']}, R = {row['R']:g}: {row['steps']} steps, bound {row['bound']:.3g}"
        for row in table.iter_rows(named=True)
    )
    return chart.properties(width=380, height=260, title=title, description=f"{words}."), data


def newton(context: Results) -> Figure:
    """Newton's method with step size 1, which Theorem 18 does not cover."""
    data = context.table("full_newton").sort("loss", "R", "step").with_columns(loss_name())
    shown = data.filter(pl.col("dist") >= 1e-4).with_columns(pl.col("R").cast(pl.String).alias("mean"))
    most = int(largest(shown["step"]))
    colour = alt.Color(
        "R:O", title="R", scale=alt.Scale(range=[charts.SKY, charts.BLUE, charts.ORANGE, charts.VERMILLION])
    )
    y = alt.Y("dist:Q", title="distance to τ* (log)", **log_axis([1e-4, 20]))
    x = alt.X("step:Q", title="Newton steps, η = 1", axis=alt.Axis(tickCount=6), scale=alt.Scale(domain=[0, most]))
    panels = [
        alt.Chart(shown.filter(loss=loss))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=35))
        .encode(x, y if loss == NCE else alt.Y("dist:Q", title=None, **log_axis([1e-4, 20])), colour)
        .properties(width=235, height=230, title=panel_title(LOSS_NAMES[loss]))
        for loss in (NCE, ENCE)
    ]
    title = alt.TitleParams(
        "Newton's method with step size 1 needs few steps",
        subtitle=["So its exponential cost is that of the step size λ_ρ/λ_M; distances below 0.0001 not shown"],
    )
    words = "Distance to the optimum after each Newton step of size 1, for NCE and eNCE and several R."
    return alt.hconcat(*panels, spacing=24).properties(title=title, description=words), data
