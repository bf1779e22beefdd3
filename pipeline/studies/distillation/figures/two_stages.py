"""Figures of the theory of sparse parity (experiment ``distillation-two-stages``)."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds
from pipeline.kit.results import Results

TARGETS = {
    "aligned": "stage-one teacher, aligned start",
    "iid": "stage-one teacher, printed start",
    "labels": "labels",
    "final": "final teacher, raw outputs",
}
COLOURS = {"aligned": charts.BLUE, "iid": charts.VERMILLION, "labels": charts.GREEN, "final": charts.PURPLE}
LEAST_LOSS = 1e-4  # where figures show a loss of 0


def majority_sizes(context: Results) -> Figure:
    """Absolute Fourier coefficients of the majority of d coordinates (dots), and two forms of their size: as
    printed, and with the root and the power of the cited book."""
    data = context.table("majority_sizes").sort("d", "i").with_columns(panel=pl.format("d = {}", "d"))
    forms = {"printed": "printed: i^(−1/3)/C(d, i)", "corrected": "corrected: i^(−3/4)/√C(d, i)"}
    long = data.unpivot(index=["panel", "i"], on=list(forms), variable_name="form", value_name="size").with_columns(
        pl.col("form").replace_strict(forms)
    )
    by = plots.kinds(dict(zip(forms.values(), [charts.VERMILLION, charts.BLUE], strict=True)), "form", columns=1)
    x = plots.listed("i", "coordinates of the set, i", data)
    panels = []
    for name, rows in plots.split(data, "panel"):
        own = long.filter(panel=name)
        y = plots.log("size", "absolute coefficient", pl.concat([own["size"], rows["exact"]])).but(form=".0e")
        marks = [*plots.lines(own, x, y, by), *plots.points(rows, x, y.but(field="exact"), charts.BLACK)]
        panels.append(plots.panel(marks, name, 240, 220))
    pattern = "{panel}, i = 3: exact {exact:.3g}, printed {printed:.3g}, corrected {corrected:.3g}"
    off = data.select(*((pl.col(form) / pl.col("exact")).log10().abs().max().alias(form) for form in forms))
    far = {form: plots.about(10 ** off[form][0]) for form in forms}
    return plots.figure(
        plots.grid(panels),
        data,
        f"Sizes of the majority's coefficients: the printed form is off by up to {far['printed']} times, "
        f"the corrected one by {far['corrected']}",
        "Dots: exact coefficients; dashes tell the forms apart",
        told=f"{plots.tell(data.filter(i=3), pattern)}.",
    )


def stage_correlations(context: Results) -> Figure:
    """Mean absolute correlation of the stage-one teacher's output with coordinates inside the support, over its
    width, from both starts: a dot is a replica, the dashed line the printed bound 1/8k, the line the closed form for
    the printed start. Grey dots are coordinates outside the support (mean)."""
    data = context.table("stage_correlations").sort("mode", "m", "seed")
    names = {mode: TARGETS[mode].split(", ")[1] for mode in ("aligned", "iid")}
    data = data.with_columns(start=pl.col("mode").replace_strict(names))
    widths = data["m"].unique().sort().to_list()
    every = pl.concat([data["in_mean"], data["off_mean"]])
    x = Axis("m", "neurons of the teacher, m", log=True, values=widths, domain=[widths[0] / 1.5, widths[-1] * 1.5])
    y = plots.log("in_mean", "mean |correlation|", every)
    panels = []
    for start in names.values():
        rows = data.filter(start=start)
        marks = [
            *plots.points(rows, x, y.but(field="off_mean"), charts.GREY, tips=["seed"], size=35),
            *plots.points(rows, x, y, tips=["seed"], size=35),
            *plots.rule(y, rows["bound"][0], "bound as printed, 1/8k", dash=plots.DASHED, colour=charts.BLACK),
        ]
        if start == names["iid"]:
            marks += plots.lines(rows.unique("m", maintain_order=True), x, y.but(field="spread"), charts.VERMILLION)
        panels.append(plots.panel(marks, start, 240, 230))
    d, k, seeds = data["d"][0], data["k"][0], data["seed"].n_unique()
    means = data.group_by("start", "m", maintain_order=True).agg(
        pl.col("in_mean").mean(), above=(pl.col("in_mean") >= pl.col("bound")).sum(), n=pl.len()
    )
    above = {start: f"{rows['above'].sum()} of {rows['n'].sum()}" for start, rows in plots.split(means, "start")}
    return plots.figure(
        plots.grid(panels),
        data,
        "Mean correlations exceed the printed bound for "
        + " and ".join(f"{n} teachers from the {start}" for start, n in above.items()),
        f"d = {d}, k = {k}; a dot is one teacher, {plots.count([seeds], 'seed')} of each width. Blue: coordinates "
        "inside the support; grey: outside. Dashed: the bound; red: closed form",
        told=f"Inside: {plots.tell(means, '{start}, m = {m}: {in_mean:.4f}', ', ')}.",
    )


def support_recovery(context: Results) -> Figure:
    """Samples at which nine of ten neurons of a student show the support in their first gradient, over d: dots with 95%
    intervals over replicas; lines are normal noise on the whole population's gradient; dashed lines are the formulas of
    Theorem 23, moved to the first dot. Triangles: not reached with so many samples."""
    data = context.table("support_recovery").sort("mode", "d")
    names = {mode: TARGETS[mode] for mode in ("aligned", "iid", "labels")}
    ratio = (pl.col("value").first() / pl.col("formula").first()).alias("constant")
    first = data.drop_nulls("value").group_by("mode", maintain_order=True).agg(ratio)
    data = data.join(first, on="mode", how="left", maintain_order="left").with_columns(
        target=pl.col("mode").replace_strict(names), moved=pl.col("formula") * pl.col("constant")
    )
    sizes = data["d"].unique().sort().to_list()
    ticks = [size for size in sizes if size not in (13, 17)]  # where there is room
    x = Axis("d", "coordinates, d", log=True, domain=[sizes[0] * 0.9, sizes[-1] * 1.1], values=ticks)
    reached = data.drop_nulls("value")
    highest = pl.concat([data[name].cast(pl.Float64).drop_nulls() for name in ("value", "predicted", "largest")])
    y = plots.log("value", "samples", [20.0, *(1.6 * highest)]).but(form="~s")
    by = plots.kinds({name: COLOURS[mode] for mode, name in names.items()}, "target", dashes=False, columns=1)
    short = data.filter(pl.col("value").is_null())
    tips = ["predicted", "ever", "seeds", "interval"]
    dashed = plots.lines(reached, x, y.but(field="moved"), by, strokeWidth=1, strokeDash=plots.DASHED)
    unreached = plots.points(short, x, y.but(field="largest"), by.along(), tips=tips, shape="triangle-up", filled=False)
    layers = [
        *plots.lines(data.drop_nulls("predicted"), x, y.but(field="predicted"), by, strokeWidth=1.5),
        *dashed,
        *plots.points(reached, x, y, by.along(), ends=("lo", "hi"), tips=tips),
        *unreached,
    ]
    told = reached.with_columns(samples=pl.format("{}", pl.col("value").round(0).cast(pl.Int64)))
    missed = short.with_columns(samples=pl.format("not with {}", "largest"))
    words = plots.tell(pl.concat([told, missed]).sort("mode", "d"), "{target}, d = {d}: {samples}")
    last = reached.sort("d").unique("target", keep="last", maintain_order=True)
    last = last.with_columns(about=pl.col("value").map_elements(plots.about, return_dtype=pl.String))
    title = plots.tell(last, "{about} samples at d = {d} from {target}", ", ").replace("from labels", "from the labels")
    return plots.figure(
        layers,
        data,
        f"The support shows in one step with {title}",
        f"Dots: nine of ten neurons show it, with 95 % intervals over {plots.count(data['seeds'], 'seed')} (bars). "
        "Lines: predicted from the population's gradient; dashed: formulas, moved to the first dot; "
        "triangles: not reached with so many",
        told=f"{words}.",
        width=480,
        height=320,
    )


def stage_two(context: Results) -> Figure:
    """Hinge loss on held-out inputs in stage two, from the weights of the whole population: a line is a replica, at the
    learning rate of this study and at the printed one, which is meant for far more steps."""
    table = context.table("stage_two").sort("d", "rate_name", "seed", "step")
    names = {"ours": "learning rate of this study", "printed": "printed learning rate"}
    data = table.with_columns(
        pl.col("rate_name").replace_strict(names).alias("name"),
        pl.max_horizontal("hinge", pl.lit(LEAST_LOSS)).alias("shown"),
        pl.format("d = {}, k = {}, m = {}", "d", "k", "m").alias("panel"),
    )
    by = plots.kinds(names.values(), "name", dashes=False)
    y = plots.log("shown", "hinge loss", [LEAST_LOSS, 10.0])
    panels = []
    for name, rows in plots.split(data, "panel"):
        most = int(plots.most(rows["step"]))
        x = plots.steps(title="steps of one input each").but(values=[n * most // 4 for n in range(5)])
        curves = plots.lines(rows, x, y, by, each="seed", strokeWidth=1.3, opacity=0.8)
        panels.append(plots.panel(curves, name, 240, 220))
    best = data.filter("is_best").group_by("panel", "name", maintain_order=True).agg(pl.col("hinge").max())
    highest = {name: plots.most(rows["hinge"]) for name, rows in plots.split(best, "name")}
    return plots.figure(
        plots.grid(panels),
        data,
        "Best losses of stage two: up to "
        + ", ".join(f"{plots.about(highest.get(name))} at the {name}" for name in names.values()),
        f"A line is one student, {plots.count([data['seed'].n_unique()], 'seed')}; a loss below {LEAST_LOSS:g} "
        "is drawn there",
        told=f"Largest of the best losses: {plots.tell(best, '{panel}, {name}: {hinge:.4f}')}.",
    )


def end_to_end(context: Results) -> Figure:
    """Accuracy of students after both stages, by the target of their first step and by its number of samples: a dot
    is a student, at its best step of stage two."""
    table = context.table("end_to_end").sort("k", "target", "batch", "seed")
    data = table.with_columns(
        pl.col("target").replace_strict(TARGETS).alias("name"),
        pl.format("{} samples", "batch").alias("samples"),
        pl.format("d = {}, k = {}, m = {}", "d", "k", "m_student").alias("panel"),
    )
    sizes = data["samples"].unique(maintain_order=True).to_list()
    by = plots.kinds(dict(zip(sizes, [charts.SKY, charts.BLUE], strict=False)), "samples", title="first step")
    x = plots.share("accuracy", low=0.5)
    panels = []
    for n, (name, rows) in enumerate(plots.split(data, "panel")):
        y = Axis("name", None, "N", order=list(TARGETS.values()), more={} if n == 0 else {"labels": False})
        tips = ["seed", "hinge", "precision"]
        marks = plots.points(rows, x, y, Kinds(by.field, by.looks, by.title), apart="samples", tips=tips, opacity=0.8)
        panels.append(plots.panel([*plots.rule(x, 0.5, upright=True), *marks], name, 200))
    means = data.group_by("panel", "name", "samples", maintain_order=True).agg(pl.col("accuracy").mean(), n=pl.len())
    best = means.sort("accuracy", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        plots.grid(panels),
        data,
        f"After both stages students are best, {best['accuracy']:.2f}, of the {best['name']} with {best['samples']}",
        f"A dot is one student, {plots.count(means['n'], 'student')} of each kind; dotted: guessing",
        told=f"Mean accuracy: {plots.tell(means, '{panel}, {name}, {samples}: {accuracy:.3f}')}.",
    )
