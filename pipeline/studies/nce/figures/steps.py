"""How many updates it takes (Liu 2024, Theorems 17 to 19)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import LOSSES, largest, loss_name
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


@plots.drawn("Updates until the distance to τ* meets a target")
def steps(context: Results) -> Figure:
    """Steps of GD and Newton's method against R², of NGD against R, with fitted lines (Theorems 17 to
    19)."""
    table = plots.some(context.table("steps").filter(pl.col("rule") != THEOREM_19, pl.col("steps") > 0))
    frames = [
        table.filter(loss=loss, optimizer=optimizer, target=target).with_columns(walk=pl.lit(name))
        for (loss, optimizer, target), (name, _) in WALKS.items()
    ]
    data = pl.concat(frames).sort("walk", "R").with_columns((pl.col("R") ** 2).alias("R2"))
    lines = _lines(context)
    looks = zip(WALKS.values(), plots.SHAPES, strict=False)
    by = Kinds("walk", {name: Look(colour, shape=shape) for (name, colour), shape in looks}).joined()
    names = list(by.looks)
    ticks = [mean for mean in MEANS if mean <= largest(data["R"], 10)]
    panels: list[plots.Panel] = []
    for field, walks, heading in (
        ("R2", names[:3], "Exponential: straight against R²"),
        ("R", [names[0], *names[3:]], "Polynomial: straight against log R"),
    ):
        rows = data.filter(pl.col("walk").is_in(walks))
        x = Axis("R2", "R²", domain=[0, 1.04 * largest(rows["R2"])])
        if field == "R":
            x = Axis("R", "R (log scale)", log=True, domain=[1.8, 1.1 * max([*ticks, 9])], values=ticks)
        y = plots.log("steps", "steps (log scale)", data["steps"]).but(**{"title": None} if panels else {})
        fits = lines.filter(pl.col("walk").is_in(walks if field == "R2" else names[3:]))
        layers = [*plots.lines(fits, x, y, by, strokeWidth=1.5, strokeDash=[4, 3]), *plots.points(rows, x, y, by)]
        slopes = "; ".join(dict.fromkeys(fits["told"].to_list()))
        panels.append(plots.panel(layers, heading, 265, 270, slopes))
    common = plots.least(data.group_by("walk").agg(pl.col("R").max())["R"])
    at = data.filter(R=common).with_columns(
        pl.col("walk").replace_strict({n: i for i, n in enumerate(names)}).alias("i")
    )
    return plots.figure(
        plots.grid(panels),
        data,
        f"Updates on the population loss at R = {common:g}: {plots.tell(at.sort('i'), '{walk} {steps:,}')}",
        "Dashed: lines by least squares, with their slopes and largest residuals in natural logarithms: points bend, "
        "there is no noise",
        told="Steps: "
        + ". ".join(
            f"{name}: " + plots.tell(rows, "{steps} at R = {R:g}", ", ") for name, rows in plots.split(data, "walk")
        )
        + ".",
    )


def _lines(context: Results) -> pl.DataFrame:
    """Return the fitted lines, over the R of their points."""
    rates, frames = context.table("rates"), []
    for (loss, optimizer, _), (name, _) in WALKS.items():
        for row in rates.filter(loss=loss, quantity=FITTED[optimizer]).iter_rows(named=True):
            r = np.linspace(row["first_R"], row["last_R"], 40)
            x = r**2 if row["against"] == "R^2" else np.log(r)
            residuals = f"residuals up to {row['largest_residual']:.2g}"
            label = f"{name.rpartition(',')[0]}: slope {number(row['slope'])}, {residuals}"
            value = np.exp(row["intercept"] + row["slope"] * x)
            frames.append(pl.DataFrame({"R": r, "R2": r**2, "steps": value, "walk": name, "told": label}))
    columns = {"R": pl.Float64, "R2": pl.Float64, "steps": pl.Float64, "walk": pl.String, "told": pl.String}
    return pl.concat([pl.DataFrame(schema=columns), *frames])


@plots.drawn("How the steps of GD and Newton's method grow with R: two laws")
def growth(context: Results) -> Figure:
    """Two laws of growth, exp(aR²)·R^b and exp(aR)·R^b, fitted to the steps of GD and Newton's method: by how much the
    AICc of the second is above that of the first, over a short and a long range of R. Above 0 the first describes the
    steps better."""
    fits = plots.some(context.table("growth_fits").filter("corrected", pl.col("against").is_in(list(LAWS))))
    method = pl.format("{}, {}", pl.col("loss").replace_strict(LOSS_NAMES), pl.col("optimizer").replace_strict(WALKERS))
    data = (
        fits.with_columns(method=method, until=pl.format("R up to {}", pl.col("last_R").cast(pl.Int32)))
        .pivot("against", index=["method", "until", "last_R"], values=["aicc", "largest_residual"])
        .with_columns(gain=pl.col(f"aicc_{PLAIN_R}") - pl.col(f"aicc_{R_SQUARED}"))
        .drop_nulls("gain")
        .sort("last_R", "method")
    )
    most = 1.15 * largest(data["gain"].abs(), 1)
    x = Axis("gain", f"AICc of {LAWS[PLAIN_R]} minus AICc of {LAWS[R_SQUARED]}", domain=[-most, most], count=7)
    by = plots.kinds(data["until"].unique(maintain_order=True), "until", shapes=True)
    y = Axis("method", None, "N", order=sorted(set(data["method"])), more={"grid": True})
    marks = plots.points(data, x, y, by, tips=[f"aicc_{PLAIN_R}", f"aicc_{R_SQUARED}"], size=80)
    better = data.group_by("until", maintain_order=True).agg((pl.col("gain") > 0).sum().alias("k"), of=pl.len())
    return plots.figure(
        [*plots.rule(x, 0, "no difference", upright=True), *marks],
        data,
        f"{LAWS[R_SQUARED]} describes the steps better than {LAWS[PLAIN_R]}: "
        + plots.tell(better, "{until}, {k} of {of}"),
        "Least squares in logarithms, steps to 0.1R from the modified equation; right of 0 the law in R² is better",
        told=plots.tell(data, "{method}, {until}: {gain:.1f}") + ".",
        width=400,
        height=150,
    )


@plots.drawn("The bound on NGD")
def bounds(context: Results) -> Figure:
    """Theorem 19: steps that NGD takes with the step size of the theorem, and the bound on them."""
    table = plots.some(context.table("steps").filter(rule=THEOREM_19)).sort("loss", "R").with_columns(loss_name())
    told = {"steps": "{}, steps taken", "bound": "{}, bound of Theorem 19"}
    data = pl.concat(
        table.select("R", "name", what=pl.lit(what), kind=pl.format(words, "name"), value=pl.col(what).cast(pl.Float64))
        for what, words in told.items()
    )
    by = Kinds(
        "kind",
        {
            words.format(name): Look(look.colour, plots.DASHED if what == "bound" else plots.SOLID)
            for what, words in told.items()
            for name, look in LOSSES.looks.items()
        },
        columns=2,
    )
    ratio = table["bound"] / table["steps"]
    within = table.filter(pl.col("steps") <= pl.col("bound")).height
    x, y = plots.listed("R", "R", data, pad=20), plots.log("value", "steps (log scale)", data["value"])
    return plots.figure(
        plots.lines(data, x, y, by, dots=True),
        data,
        f"NGD takes no more steps than the bound of Theorem 19 in {within} of {table.height} cases; the bound is "
        f"{plots.about(plots.least(ratio))} to {plots.about(plots.most(ratio))} times as large",
        "Until the distance is 1/R, with η = √(β_l / β_u κ*) / R and measured β_u, β_l",
        told=plots.tell(table, "{name}, R = {R:g}: {steps} steps, bound {bound:.3g}") + ".",
        width=380,
        height=260,
    )


@plots.drawn("Newton's method with step size 1")
def newton(context: Results) -> Figure:
    """Newton's method with step size 1, which Theorem 18 does not cover: so its exponential cost is that of the step
    size λ_ρ/λ_M. Distances below 0.0001 are not shown."""
    data = plots.some(context.table("full_newton")).sort("loss", "R", "step").with_columns(loss_name())
    shown = data.filter(pl.col("dist") >= 1e-4).with_columns(mean=pl.format("R = {}", pl.col("R").cast(pl.Int32)))
    near = data.filter(pl.col("dist") <= 0.1 * pl.col("R")).group_by("loss", "R", "name", maintain_order=True).first()
    by = plots.kinds(shown["mean"].unique(maintain_order=True), "mean", columns=4)
    x = Axis("step", "Newton steps, η = 1", domain=[0, largest(shown["step"])], count=6)
    panels: list[plots.Panel] = []
    for loss in (NCE, ENCE):
        y = plots.log("dist", "distance to τ* (log scale)", shown["dist"]).but(**{"title": None} if panels else {})
        panels.append(
            plots.panel(plots.lines(shown.filter(loss=loss), x, y, by, dots=True), LOSS_NAMES[loss], 245, 230)
        )
    starts = data.select("loss", "R").unique().height
    return plots.figure(
        plots.grid(panels),
        data,
        f"Within 0.1R of τ* after {plots.count(near['step'], 'step')} of size 1, from {near.height} of {starts} starts",
        "Newton's method, each R with a start of its own; distances below 0.0001 are not shown".replace("'", "’"),
        told=f"Steps until the distance is 0.1R: {plots.tell(near, '{name}, R = {R:g}: {step}')}.",
    )
