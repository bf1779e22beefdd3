"""Figures of the theory of sparse parity (experiment ``distillation-two-stages``)."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results

TARGETS = {
    "aligned": "stage-one teacher, aligned start",
    "iid": "stage-one teacher, printed start",
    "labels": "labels",
    "final": "final teacher, raw outputs",
}
COLOURS = {"aligned": charts.BLUE, "iid": charts.VERMILLION, "labels": charts.GREEN, "final": charts.PURPLE}
LEAST_LOSS = 1e-4  # where figures show a loss of 0


def _log(
    field: str, title: str, domain: list[float] | None = None, values: list[float] | None = None, form: str = "~s"
) -> dict[str, Any]:
    """Return the arguments of a log axis; what lies outside its domain is drawn at its end."""
    scale = alt.Scale(type="log", clamp=True, domain=domain) if domain else alt.Scale(type="log")
    axis = alt.Axis(values=values, format=form) if values else alt.Axis(format="~g", tickCount=5)
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def _colour(column: str, names: dict[str, str], **legend: Any) -> alt.Color:
    scale = alt.Scale(domain=list(names.values()), range=[COLOURS[name] for name in names])
    return alt.Color(
        f"{column}:N", title=None, scale=scale, legend=alt.Legend(orient="top", columns=1, symbolOpacity=1, **legend)
    )


def majority_sizes(context: Results) -> Figure:
    """Absolute Fourier coefficients of the majority of d coordinates (dots), and two forms of their size: as
    printed, and with the root and the power of the cited book."""
    data = context.table("majority_sizes").sort("d", "i").with_columns(panel=pl.format("d = {}", "d"))
    forms = {"printed": "printed: i^(−1/3)/C(d, i)", "corrected": "corrected: i^(−3/4)/√C(d, i)"}
    long = data.unpivot(index=["panel", "i"], on=list(forms), variable_name="form", value_name="size").with_columns(
        pl.col("form").replace_strict(forms)
    )
    x = alt.X("i:Q", title="coordinates of the set, i", axis=alt.Axis(values=data["i"].unique().sort().to_list()))
    panels = []
    for panel in data["panel"].unique(maintain_order=True):
        y = alt.Y(**_log("size", "absolute coefficient"))
        colour = alt.Color(
            "form:N",
            title=None,
            scale=alt.Scale(domain=list(forms.values()), range=[charts.VERMILLION, charts.BLUE]),
            legend=alt.Legend(orient="top", columns=1, symbolType="stroke", symbolStrokeWidth=2),
        )
        lines = alt.Chart(long.filter(panel=panel)).mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
        exact = alt.Chart(data.filter(panel=panel))
        dots = exact.mark_point(filled=True, size=60, color=charts.BLACK, opacity=1).encode(
            x=x, y=alt.Y(**_log("exact", "absolute coefficient"))
        )
        panels.append(
            alt.layer(lines, dots).properties(width=240, height=220, title=alt.TitleParams(panel, fontSize=13))
        )
    third = data.filter(i=3)
    coefficients = "; ".join(
        f"{row['panel']}, i = 3: exact {row['exact']:.3g}, printed {row['printed']:.3g}, "
        f"corrected {row['corrected']:.3g}"
        for row in third.iter_rows(named=True)
    )
    title = alt.TitleParams("Fourier coefficients of the majority", subtitle="Dots: exact")
    return alt.hconcat(*panels, spacing=30).properties(title=title, description=f"{coefficients}."), data


def stage_correlations(context: Results) -> Figure:
    """Mean absolute correlation of the stage-one teacher's output with coordinates inside the support, over its
    width, from both starts: a dot is a replica, the dashed line the printed bound 1/8k, the line the closed form for
    the printed start. Grey dots are coordinates outside the support (mean)."""
    data = context.table("stage_correlations").sort("mode", "m", "seed")
    names = {mode: TARGETS[mode].split(", ")[1] for mode in ("aligned", "iid")}
    data = data.with_columns(start=pl.col("mode").replace_strict(names))
    widths = data["m"].unique().sort().to_list()
    every = pl.concat([data["in_mean"], data["off_mean"]]).to_numpy()
    title, domain = "mean |correlation|", [float(every.min()) / 1.5, float(every.max()) * 1.5]
    panels = []
    for start in names.values():
        rows = data.filter(start=start)
        x = alt.X(**_log("m", "neurons of the teacher, m", [widths[0] / 1.5, widths[-1] * 1.5], widths, "d"))
        inside = (
            alt.Chart(rows)
            .mark_point(filled=True, size=35, opacity=0.7)
            .encode(
                x=x,
                y=alt.Y(**_log("in_mean", title, domain)),
                color=alt.value(charts.BLUE),
                tooltip=["m", "seed", "in_mean", "in_min"],
            )
        )
        outside = (
            alt.Chart(rows)
            .mark_point(filled=True, size=35, opacity=0.7)
            .encode(
                x=x,
                y=alt.Y(**_log("off_mean", title, domain)),
                color=alt.value(charts.GREY),
                tooltip=["m", "seed", "off_mean"],
            )
        )
        bound = (
            alt.Chart(rows.head(1))
            .mark_rule(strokeDash=[5, 4], color=charts.BLACK)
            .encode(y=alt.Y(**_log("bound", title, domain)))
        )
        layers = [outside, inside, bound]
        if start == names["iid"]:
            layers.append(
                alt.Chart(rows.unique("m", maintain_order=True))
                .mark_line(color=charts.VERMILLION, strokeWidth=1.5)
                .encode(x=x, y=alt.Y(**_log("spread", title, domain)))
            )
        panels.append(alt.layer(*layers).properties(width=240, height=230, title=alt.TitleParams(start, fontSize=13)))
    d, k = data["d"][0], data["k"][0]
    means = data.group_by("start", "m", maintain_order=True).agg(pl.col("in_mean").mean())
    correlations = ", ".join(
        f"{row['start']}, m = {row['m']}: {row['in_mean']:.4f}" for row in means.iter_rows(named=True)
    )
    title_ = alt.TitleParams(
        f"What the stage-one teacher tells of single coordinates (d = {d}, k = {k})",
        subtitle="Blue: inside the support; grey: outside. Dashed: 1/8k, as printed; red: closed form",
    )
    return alt.hconcat(*panels, spacing=30).properties(title=title_, description=f"Inside: {correlations}."), data


def support_recovery(context: Results) -> Figure:
    """Samples at which nine of ten neurons of a student show the support in their first gradient, over d: dots with 95%
    intervals over replicas; lines are normal noise on the whole population's gradient; dashed lines are the formulas of
    Theorem 23, moved to the first dot. Triangles: not reached with so many samples."""
    data = context.table("support_recovery").sort("mode", "d")
    names = {mode: TARGETS[mode] for mode in ("aligned", "iid", "labels")}
    first = (
        data.drop_nulls("value")
        .group_by("mode", maintain_order=True)
        .agg((pl.col("value").first() / pl.col("formula").first()).alias("constant"))
    )
    data = data.join(first, on="mode", how="left").with_columns(
        target=pl.col("mode").replace_strict(names), moved=pl.col("formula") * pl.col("constant")
    )
    sizes = data["d"].unique().sort().to_list()
    ticks = [size for size in sizes if size not in (13, 17)]  # where there is room
    x = alt.X(**_log("d", "coordinates, d", [sizes[0] * 0.9, sizes[-1] * 1.1], ticks))
    highest = pl.concat([data[name].cast(pl.Float64).drop_nulls() for name in ("value", "predicted", "largest")])
    domain = [20.0, 10.0 ** math.ceil(math.log10(highest.to_numpy().max()) + 0.2)]
    colour = _colour("target", names)

    def y(column: str) -> alt.Y:
        return alt.Y(**_log(column, "samples", domain, [10.0**n for n in range(1, 9)]))

    base = alt.Chart(data.drop_nulls("value"))
    short = alt.Chart(data.filter(pl.col("value").is_null()).with_columns(some=pl.format("{}/{}", "ever", "seeds")))
    layers = [
        alt.Chart(data.drop_nulls("predicted")).mark_line(strokeWidth=1.5).encode(x=x, y=y("predicted"), color=colour),
        base.mark_line(strokeDash=[5, 4], strokeWidth=1).encode(x=x, y=y("moved"), color=colour),
        alt.Chart(data.drop_nulls(["lo", "hi"])).mark_rule().encode(x=x, y=y("lo"), y2="hi:Q", color=colour),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x=x,
            y=y("value"),
            color=colour,
            tooltip=["target", "d", "value", "lo", "hi", "interval", "predicted", "ever", "seeds"],
        ),
        short.mark_text(dy=-13, fontSize=11).encode(x=x, y=y("largest"), text="some:N", color=colour),
        short.mark_point(shape="triangle-up", size=60).encode(
            x=x, y=y("largest"), color=colour, tooltip=["target", "d", "largest", "ever", "seeds"]
        ),
    ]
    samples = "; ".join(
        f"{row['target']}, d = {row['d']}: "
        + (f"{row['value']:.0f}" if row["value"] is not None else f"not with {row['largest']}")
        for row in data.iter_rows(named=True)
    )
    title = alt.TitleParams(
        "Samples that show the support in one step",
        subtitle=[
            "Lines: predicted from the population's gradient; dashed: formulas, moved to the first dot;",
            "triangles: not enough at so many, with how many of the teachers are good enough for it",
        ],
    )
    return alt.layer(*layers).properties(width=480, height=320, title=title, description=f"{samples}."), data


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
    colour = alt.Color(
        "name:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=[charts.BLUE, charts.VERMILLION]),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolStrokeWidth=2),
    )
    panels = []
    for panel in data["panel"].unique(maintain_order=True):
        rows = data.filter(panel=panel)
        most = int(rows["step"].max())  # type: ignore[arg-type]
        x = alt.X(
            "step:Q",
            title="steps of one input each",
            axis=alt.Axis(format="~s", values=[n * most // 4 for n in range(5)]),
        )
        y = alt.Y(**_log("shown", "hinge loss", [LEAST_LOSS, 10.0]))
        lines = alt.Chart(rows).mark_line(strokeWidth=1.3, opacity=0.8).encode(x=x, y=y, color=colour, detail="seed:N")
        panels.append(lines.properties(width=240, height=220, title=alt.TitleParams(panel, fontSize=13)))
    best = data.filter("is_best").group_by("panel", "name", maintain_order=True).agg(pl.col("hinge").max())
    losses = "; ".join(f"{row['panel']}, {row['name']}: {row['hinge']:.4f}" for row in best.iter_rows(named=True))
    title = alt.TitleParams("Stage two", subtitle=f"A loss below {LEAST_LOSS:g} is drawn there")
    chart = alt.hconcat(*panels, spacing=30).properties(
        title=title, description=f"Largest of the best losses: {losses}."
    )
    return chart, data


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
    shape = alt.Color(
        "samples:N",
        title="first step",
        scale=alt.Scale(domain=sizes, range=[charts.SKY, charts.BLUE]),
        legend=alt.Legend(orient="top"),
    )
    panels = []
    for n, panel in enumerate(data["panel"].unique(maintain_order=True)):
        rows = data.filter(panel=panel)
        x = alt.X("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0.4, 1]))
        axis = alt.Axis(labelLimit=300) if n == 0 else None
        y = alt.Y("name:N", title=None, sort=list(TARGETS.values()), axis=axis)
        dots = (
            alt.Chart(rows)
            .mark_point(filled=True, size=55, opacity=0.8)
            .encode(
                x=x,
                y=y,
                yOffset=alt.YOffset("samples:N", sort=sizes),
                color=shape,
                tooltip=["name", "samples", "seed", "accuracy", "hinge", "precision"],
            )
        )
        panels.append(dots.properties(width=200, height=200, title=alt.TitleParams(panel, fontSize=13)))
    means = data.group_by("panel", "name", "samples", maintain_order=True).agg(pl.col("accuracy").mean())
    accuracies = "; ".join(
        f"{row['panel']}, {row['name']}, {row['samples']}: {row['accuracy']:.3f}" for row in means.iter_rows(named=True)
    )
    title = alt.TitleParams("Students after both stages")
    return alt.hconcat(*panels, spacing=20).properties(title=title, description=f"Mean accuracy: {accuracies}."), data
