"""Descent on samples of two Gaussians (Liu 2024, Figure 4.2), at the step sizes that three rules select and at all."""

from __future__ import annotations

import polars as pl

from pipeline.kit import plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import CROSS, METHODS, largest, method_name
from pipeline.studies.nce.names import SAMPLES
from schemas.nce.tables import S_BEST, S_DIST, S_LOSS

RULES = {S_DIST: "η by smallest distance", S_BEST: "η by lowest loss met", S_LOSS: "η by loss at the end"}
DIMENSIONS = {1: "One dimension", 16: "16 dimensions"}
VISIBLE = 0.02  # relative change from which rounding is shown
FAINT_EVERY = 5  # updates between two points of the lines that are not selected
KEY = ["dim", "method", "eta", "step"]


@plots.drawn("Smallest distance to τ* so far against updates")
def fig42(context: Results) -> Figure:
    """Figure 4.2: smallest distance so far against updates, on fresh samples; all step sizes faint, the selected ones
    strong. A path that diverges keeps the smallest distance that it had; × is where."""
    runs = _shown(plots.some(context.table("gauss_runs"))).with_columns(method_name())
    data = _means(runs, KEY)
    chosen = _shown(context.table("gauss_selected")).with_columns(method_name())
    panels = [
        _panel(data.filter(dim=dim), chosen.filter(rule=rule, dim=dim), dim, rule)
        for rule in RULES
        for dim in DIMENSIONS
    ]
    told = pl.col("rule").replace_strict(RULES, return_dtype=pl.String)
    nearest = chosen.filter(dim=1, rule=S_DIST).sort("mean_min_dist")
    summary = plots.tell(
        chosen.sort("dim", "rule", "method").with_columns(told),
        "{dim}-d, {method}, {rule}: η = {eta:g}, {mean_min_dist:.3g}",
    )
    return plots.figure(
        plots.grid(panels),
        data,
        f"Smallest distance to τ* in one dimension, {RULES[S_DIST]}: "
        + plots.tell(nearest, "{method} {mean_min_dist:.3g}", ", "),
        f"Strong: the selected step size, mean of {plots.count([runs['seed'].n_unique()], 'seed')}, band: a standard "
        "deviation to each side; faint: all other step sizes, × where a seed diverges, after which the smallest "
        "distance stays. Dashes and dots tell methods apart",
        told=f"Smallest distances at the selected step sizes. {summary}.",
    )


def _means(runs: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Return means over seeds of the smallest distance, a standard deviation to each side, and whether one diverged."""
    value = pl.col("min_dist")
    return (
        runs.group_by(key)
        .agg(value.mean().alias("mean"), value.std().fill_null(0).alias("sd"), pl.col("diverged").any(), n=pl.len())
        .sort(key)
        .with_columns(low=pl.col("mean") - pl.col("sd"), high=pl.col("mean") + pl.col("sd"))
    )


def _shown(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with ``SAMPLES`` per update, or with the fewest where there are none such."""
    counts = frame["n"].unique().sort().to_list()
    return frame.filter(n=SAMPLES if SAMPLES in counts or not counts else counts[0])


def _panel(rows: pl.DataFrame, chosen: pl.DataFrame, dim: int, rule: str) -> plots.Panel:
    strong = rows.join(chosen.select("method", "eta"), on=["method", "eta"], maintain_order="left")
    lined = rows.with_columns(line=pl.format("{} {}", "method", "eta"))
    faint = lined.filter(pl.col("step") % FAINT_EVERY == 0)
    gone = lined.filter("diverged").group_by("line", maintain_order=True).first()
    x = Axis("step", "updates", more={"grid": False})
    top = 1.03 * largest(rows["mean"])
    y = Axis("mean", "smallest distance |τ − τ*|" if dim == 1 else None, domain=[0, top])
    layers = [
        *plots.lines(faint, x, y, METHODS, each="line", strokeWidth=1, opacity=0.25),
        *plots.lines(strong, x, y, METHODS, band=("low", "high"), strokeWidth=2.5),
    ]
    if gone.height:
        layers += plots.points(gone, x, y, METHODS.along(), shape=CROSS, size=120, opacity=0.8)
    order = list(METHODS.looks)
    etas = chosen.sort(pl.col("method").replace_strict(order, range(len(order))))
    note = f"η: {plots.tell(etas, '{method} {eta:g}', ', ')}"
    return plots.panel(layers, f"{DIMENSIONS[dim]}: {RULES[rule]}", 250, 170, note)


@plots.drawn("Smallest distance to τ*, by step size")
def step_sizes(context: Results) -> Figure:
    """Smallest distance within all updates against the step size: lines, mean over seeds, bars ± one standard
    deviation; squares (1-d), the population loss; × (1-d), NCE-NGD with sigmoid(−ψ) computed as
    1 − sigmoid(ψ), where that moves the mean. Step sizes at which a seed diverges are left out."""
    final = _shown(plots.some(context.table("gauss_final"))).with_columns(method_name())
    data = _means(final, ["dim", "method", "eta"])
    population = context.table("gauss_population").filter(~pl.col("diverged")).with_columns(method_name())
    rounded = (
        _shown(context.table("gauss_precision"))
        .group_by("eta", "sigmoid")
        .agg(pl.col("min_dist").mean())
        .pivot("sigmoid", index="eta", values="min_dist")
        .filter((pl.col("rounded") / pl.col("exact") - 1).abs() > VISIBLE)
        .select("eta", pl.col("rounded").alias("min_dist"), pl.lit("NCE-NGD").alias("method"))
    )
    x = plots.log("eta", "step size η (log scale)", [*data["eta"], *population["eta"]])
    kept = data.filter(~pl.col("diverged"))
    panels: list[plots.Panel] = []
    for dim, name in DIMENSIONS.items():
        rows, high = kept.filter(dim=dim), 200 if dim == 1 else 30
        named = "smallest distance (log scale)" if dim == 1 else None
        y = Axis("mean", named, log=True, domain=[0.8, high], values=[1, 2, 5, 10, 20, 50, 100])
        layers = plots.lines(rows, x, y, METHODS, bars=("low", "high"), dots=True)
        if dim == 1:
            other, by = y.but(field="min_dist"), METHODS.along()
            layers += plots.points(population, x, other, by, shape="square", size=80, fillOpacity=0)
            layers += plots.points(rounded, x, other, by, shape=CROSS, size=250, strokeWidth=2, fillOpacity=0)
        panels.append(plots.panel(layers, name, 262, 270))
    updates = int(largest(context.table("gauss_runs")["step"], 0))
    best = kept.filter(dim=1).sort("mean").unique("method", keep="first", maintain_order=True)
    return plots.figure(
        plots.grid(panels),
        data,
        f"Smallest distance to τ* within {updates} updates in one dimension, at the best step size: "
        + plots.tell(best, "{method} {mean:.3g}", ", "),
        f"Means over {plots.count(data['n'], 'seed')}, bars: a standard deviation to each side; step sizes at which a "
        "seed diverges are left out. 1-d: squares without samples (population loss); × NCE-NGD with sigmoid(−ψ) as "
        "1 − sigmoid(ψ). Dashes and dots tell methods apart",
        told=f"Smallest distances: {plots.tell(data, '{dim}-d, {method}, η = {eta:g}: {mean:.3g}')}.",
    )
