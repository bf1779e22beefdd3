"""F-S6: kernels of the log-cosh process that neural classifiers recover, beside Euler's and normal ones."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.selfsup.figures.common import spanning
from pipeline.studies.selfsup.figures.diffusion_common import QUARTILES, shown
from schemas.selfsup.diffusions import EULER, LEARNED, LOGQUAD, MLP, NORMAL, TRUE

NAMES = {TRUE: "true p*", EULER: "Euler’s"}
LEARNERS = {MLP: "network", LOGQUAD: "log-quadratic classifier"}


@plots.drawn("Kernels that networks recover")
def network(context: Results) -> Figure:
    """Slices of kernels at some z, true, Euler's and learned from the fewest and the most pairs; KL by pairs."""
    table, fits = plots.some(context.table("sde_kernel_ref")), context.table("sde_fit")
    learned = table.filter(source=LEARNED)
    sizes = learned["m"].unique().sort().to_list()
    names = {m: f"learned, m = {m}" for m in dict.fromkeys([sizes[0], sizes[-1]])}
    looks = {NAMES[TRUE]: Look(charts.BLACK), NAMES[EULER]: Look(charts.GREY, plots.DASHED)}
    ours = (Look(charts.ORANGE, [8, 2]), Look(charts.BLUE, plots.DOTTED))
    learners = dict(zip(LEARNERS.values(), (Look(charts.VERMILLION), Look(charts.GREEN)), strict=True))
    by = Kinds("line", looks | dict(zip(names.values(), ours, strict=False)) | learners, columns=4)
    exact = table.filter(pl.col("source").is_in(list(NAMES))).select(
        "z", "z_prime", pl.col("source").replace_strict(NAMES).alias("line"), "p", low="p", high="p"
    )
    of_models = (
        learned.filter(pl.col("m").is_in(list(names)))
        .group_by("z", "z_prime", "m")
        .agg(pl.col("p").median(), low=pl.col("p").min(), high=pl.col("p").max())
    )
    of_models = of_models.sort("m", "z", "z_prime").select(
        "z", "z_prime", pl.col("m").replace_strict(names, return_dtype=pl.String).alias("line"), "p", "low", "high"
    )
    data = pl.concat([exact, of_models])
    x = Axis("z_prime", "z'", domain=[-3, 3], more={"grid": False})
    y = Axis("p", "density of z'", domain=[0, 1.15 * plots.most(data["p"])])  # bands of the fewest pairs go beyond
    panels = [
        plots.panel(
            plots.lines(rows, x, y.but(title="density of z'" if not place else None), by, band=QUARTILES),
            f"z = {z}".replace("-", "−"),
            135,
            200,
        )
        for place, (z, rows) in enumerate(plots.split(data.sort("z", maintain_order=True), "z"))
    ]
    euler, best = (fits.filter(model=model)["kl"][0] for model in (EULER, NORMAL))
    models = fits.filter(pl.col("model").is_in(list(LEARNERS))).with_columns(
        pl.col("model").replace_strict(LEARNERS).alias("line")
    )
    medians = models.group_by("line", "m").agg(pl.median("kl")).sort("line", "m")
    network_alone, quadratic = (medians.filter(line=LEARNERS[each]) for each in (MLP, LOGQUAD))
    along = spanning("m", "pairs m", sizes, room=1.5, form="~s")
    error = spanning("kl", "KL(p* | p)", [*models["kl"], euler, best])
    marks = [
        *plots.rule(error, euler, "Euler’s", dash=plots.DASHED, end=True),
        *plots.rule(error, best, "best normal", dash=plots.DASHED),
        *plots.points(models, along, error, by.along(), size=35, opacity=0.7),
        *plots.lines(medians, along, error, by),
    ]
    panels.append(plots.panel(marks, "Error by pairs", 125, 200))
    return plots.figure(
        plots.grid(panels, len(panels), spacing=10),
        data.with_columns(pl.col("p", "low", "high").round_sig_figs(4)),
        f"From {sizes[-1]} pairs a network finds a kernel with KL {shown(network_alone['kl'][-1])}, where Euler’s has "
        f"{shown(euler)} and a log-quadratic classifier finds {shown(quadratic['kl'][-1])}",
        f"Log-cosh process, η = {table['eta'][0]:g}; {plots.count([models['seed'].n_unique()], 'model')} of each size. "
        "Lines: medians; bands: from least to most; grey dashes: Euler’s kernel N(z − η f'(z), 2η), and "
        "right the normal kernel with a linear mean that is closest to p*",
        told=f"Median KL: {plots.tell(medians, '{line}, m = {m}: {kl:.3g}')}; Euler {euler:.3g}; the closest normal "
        f"kernel with a linear mean {best:.3g}.",
    )
