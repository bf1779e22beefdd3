"""What figures of this study share: looks of arms, panels of accuracies, and the lesson with a slider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.studies.distillation.names import ARMS

COLOURS = {
    "label": charts.BLACK,
    "ce": charts.ORANGE,
    "os": charts.VERMILLION,
    "warm": charts.PURPLE,
    "prog": charts.BLUE,
    "before": charts.ORANGE,
    "middle": charts.BLUE,
    "behind": charts.VERMILLION,
    "cool": charts.SKY,
    "mild": charts.GREEN,
    "hot": charts.PURPLE,
    "low": charts.ORANGE,
    "mid": charts.GREEN,
    "high": charts.VERMILLION,
    "lowmid": charts.SKY,
    "lowhigh": charts.GREEN,
    "midhigh": charts.PURPLE,
    "peak": charts.BLUE,
    "between": charts.GREEN,
    "half": charts.GREEN,
    "even": charts.BLACK,
    "halfwarm": charts.SKY,
}
DASHES = {"ce": [6, 3], "os": [2, 2], "warm": [8, 2, 2, 2]}
DEGREES = {1: "1 sign", 2: "2 signs", 3: "3 signs"}
OWN = plots.steps(title="steps of its own training")
ENDS = ("lo", "hi")


def accuracy(field: str, chance: float = 0) -> Axis:
    """Return the axis of accuracies, which of two classes begins at guessing."""
    return plots.share(field, low=0.5 if chance >= 0.5 else 0)


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with ``label``, what an arm is called."""
    return frame.with_columns(label=pl.col("arm").replace_strict(ARMS, return_dtype=pl.String))


def looks(arms: pl.Series, columns: int = 2, legend: str | None = "top") -> Kinds:
    """Return how arms look, in the order of `names.ARMS`."""
    there = {ARMS[arm]: Look(COLOURS[arm], DASHES.get(arm, plots.SOLID)) for arm in ARMS if arm in set(arms)}
    return Kinds("label", there, columns=columns, legend=legend)


def last(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of each run's last step, with what arms are called."""
    return named(table.filter(pl.col("step") == pl.col("step").max().over("run")))


def ending(table: pl.DataFrame, arm: str, run: str | None = None) -> str:
    """Return the accuracy at which an arm ends, of one run or of the first that has it; a dash where none has."""
    rows = last(table).filter(pl.col("arm") == arm, pl.lit(True) if run is None else pl.col("run") == run)
    return charts.number(rows["value"][0] if rows.height else None)


def means_of(table: pl.DataFrame) -> str:
    """Return what lines and bands of `courses` are, and of how many models."""
    return f"Lines: means of {plots.count(table['n'], 'model')}; {plots.spread(table, 'bands')}"


def courses(
    frame: pl.DataFrame, title: str, chance: float, width: int = 270, columns: int = 2, legend: str = "top"
) -> Any:
    """Return mean accuracies over steps with their intervals; a rule at the accuracy of guessing."""
    data, y = named(frame), accuracy("value", chance)
    curves = plots.lines(data, OWN, y, looks(data["arm"], columns, legend), band=ENDS)
    return plots.panel([*plots.rule(y, chance, "guessing", end=True, below=chance >= 0.5), *curves], title, width)


def dots(models: pl.DataFrame, panels: dict[str, str], columns: int = 2, width: int = 150) -> tuple[Any, pl.DataFrame]:
    """Return final accuracies of all models (points) and their means (bars), a row for each arm, a panel for each run
    that ``panels`` names; and what is drawn."""
    names = pl.col("run").replace_strict(panels, default=None, return_dtype=pl.String)
    data = plots.some(named(models.filter(pl.col("run").is_in(list(panels)))).with_columns(panel=names))
    low, high = data.select(low=pl.col("final").min(), high=pl.col("final").max()).row(0)
    step = 0.05 if high - low > 0.1 else 0.02
    ticks = [round(i * step, 2) for i in range(int(low / step), int(high / step) + 2)]
    shown = ticks[:: max(1, -(-len(ticks) // 4))]
    x = Axis("final", "accuracy at the end", domain=[ticks[0], ticks[-1]], values=shown, form=".2f")
    drawn = []
    for run, name in panels.items():
        own = data.filter(run=run)
        if own.height:
            y = Axis("label", None, "N", order=list(looks(own["arm"]).looks))
            marks = plots.seeds(own, x, y, looks(data["arm"], legend=None), hollow=None, tips=["model"])
            drawn.append(plots.panel(marks, name, width, alt.Step(24)))
    return plots.grid(drawn, columns), data


def mean_ends(data: pl.DataFrame) -> str:
    """Return the mean accuracies that `dots` draws, in words."""
    mean = named(data.group_by("panel", "arm", maintain_order=True).agg(pl.col("final").mean()))
    return f"Mean accuracies: {plots.tell(mean, '{panel}, {label}: {final:.3f}')}."


def by_horizon(data: pl.DataFrame, y: Axis, legend: str = "top") -> plots.Layers:
    """Return the layers of mean accuracies at the end by how many steps a student takes, a line for each arm, with
    their intervals."""
    x = plots.listed("step", "steps of the student", data, zero=False, pad=20, more={"labelOverlap": True})
    return plots.lines(data, x, y, looks(data["arm"], legend=legend), bars=ENDS, dots=True)


def horizons(table: pl.DataFrame, panels: dict[str, str], what: str) -> Figure:
    """Return panels of `by_horizon`, those of runs of one name in one; ``table`` has averages (`Arms`), ``panels``
    names the panel of each run, ``what`` is the subject of the title."""
    ends = plots.some(last(table.filter(pl.col("run").is_in(list(panels)))))
    data = ends.with_columns(panel=pl.col("run").replace_strict(panels, return_dtype=pl.String))
    low = float(data.select(pl.min_horizontal("lo", "value").min()).item())
    y = Axis("value", "accuracy at the end", domain=[int(20 * low) / 20, 1])
    kinds = data["arm"]
    drawn = []
    for name in dict.fromkeys(panels.values()):
        own = data.filter(panel=name)
        if own.height:
            x = plots.listed("step", "steps of the student", own, zero=False, pad=20, more={"labelOverlap": True})
            marks = plots.lines(own, x, y, looks(kinds), bars=ENDS, dots=True)
            drawn.append(plots.panel(marks, name, 250, 170))
    best = data.sort("value", descending=True, maintain_order=True).row(0, named=True)
    return plots.figure(
        plots.grid(drawn),
        data,
        f"{what}: at best {best['value']:.3f}, {best['label']}, {best['panel']}, {best['step']} steps",
        f"Points: means of {plots.count(data['n'], 'model')}, each point another training; "
        + plots.spread(data, "bars"),
        told=f"Accuracy at the end: {plots.tell(data, '{panel}, {label}, {step} steps: {value:.3f}')}.",
    )


LEARNED = {
    "learned": Look(charts.BLUE),
    "not until its last step": Look(charts.VERMILLION, shape="triangle-up", fill="white"),
}


def learning(models: pl.DataFrame, x: Axis, form: str = "~g") -> plots.Layers:
    """Return the step at which each model has an accuracy of 0.9, or its last one, hollow, where it has not learned;
    ``models`` come from `with_step`."""
    y = Axis("shown", "steps to an accuracy of 0.9", zero=True, form=form)
    tips = ["width", "model", "final"]
    return plots.points(models, x, y, Kinds("learned", LEARNED), tips=tips, size=70)


def with_step(models: pl.DataFrame) -> pl.DataFrame:
    """Return ``models`` with ``shown``, the step at which one has learned or its last, and ``learned`` in words."""
    late, words = pl.col("t90").is_null(), list(LEARNED)
    return models.with_columns(
        shown=pl.col("t90").fill_null(pl.col("horizon")),
        has_learned=~late,
        learned=pl.when(late).then(pl.lit(words[1])).otherwise(pl.lit(words[0])),
    )


SIZE = pl.format("{} heads, width {}", "heads", "width")


def sizes_of(table: pl.DataFrame) -> list[str]:
    """Return what the sizes of models are called, the widest first."""
    return table.sort("width", descending=True).select(size=SIZE)["size"].unique(maintain_order=True).to_list()


def growth(table: pl.DataFrame, sizes: list[str]) -> tuple[plots.Layers, pl.DataFrame, pl.DataFrame]:
    """Return accuracies of models of several sizes while they learn from labels (``table``: averages, `Arms`), mean
    over models with its interval; rings: 80 % of the last one is reached. Each size has its longest training, and a
    colour by its place in ``sizes``. Also returned are where the rings are, and what is drawn."""
    longest = pl.col("step") == pl.col("step").max()
    runs = table.filter(longest.over("width")).select("run").unique()["run"].to_list()
    data = table.filter(pl.col("run").is_in(runs)).with_columns(
        size=SIZE, reached=pl.col("value") >= 0.8 * pl.col("value").sort_by("step").last().over("run")
    )
    by = plots.kinds(dict(zip(sizes, [charts.BLACK, charts.BLUE, charts.VERMILLION], strict=False)), "size")
    x = Axis("step", "steps", log=True, form="~s", values=plots.between(data["step"]) if data.height else None)
    y = Axis("value", "accuracy", zero=False)
    first = data.filter("reached").sort("step").unique("run", keep="first", maintain_order=True)
    white = {name: look._replace(fill="white") for name, look in by.looks.items()}
    rings = plots.points(first, x, y, replace(by, looks=white).along(), size=90, strokeWidth=2)
    return [*plots.lines(data, x, y, by, band=ENDS), *rings], first, data


STUDENTS_END = "student's end"


def lesson(
    course: pl.DataFrame, known: pl.DataFrame, students: pl.DataFrame, labels: list[str], axis: str, title: str
) -> Any:
    """Return a chart with a slider over the accuracy of a teacher's checkpoint and a menu of teachers.

    Panels: when each teacher has an accuracy (``teacher``, ``step``, ``accuracy``); what it knows there (with
    ``label``, ``value``; ``axis`` is the title); and how its students end (``teacher``, ``accuracy``, ``final``,
    ``label``). Teachers learn at steps of their own, so that nothing is averaged over them: a point is one model.
    """
    low = float(np.concatenate([course["accuracy"].to_numpy(), students["accuracy"].to_numpy()]).min())
    teachers = sorted(course["teacher"].unique())
    slider = alt.param(
        name="at",
        value=0.75,
        bind=alt.binding_range(min=round(low, 2), max=1.0, step=0.01, name="accuracy of the teacher's checkpoint: "),
    )
    menu = alt.param(name="who", value="all", bind=alt.binding_select(options=["all", *teachers], name="teacher: "))
    chosen = "who == 'all' || datum.teacher == who"
    span = alt.Scale(domain=[int(20 * low) / 20, 1], nice=False)
    x = alt.X("accuracy:Q", title=None, scale=span, axis=alt.Axis(format=".2f", tickCount=6))
    zero = alt.Chart(pl.DataFrame({"zero": [0]})).transform_calculate(now="at")
    upright = zero.mark_rule(color=charts.GREY, strokeWidth=2).encode(x=alt.X("now:Q", scale=span))
    level = zero.mark_rule(color=charts.GREY, strokeWidth=2).encode(y=alt.Y("now:Q", scale=span))
    curves = (
        alt.Chart(course)
        .transform_filter(chosen)
        .mark_line(color=charts.BLACK, strokeWidth=1.5, opacity=0.7)
        .encode(
            x=alt.X("step:Q", title="steps of the teacher", axis=alt.Axis(tickCount=6, format="~s")),
            y=alt.Y("accuracy:Q", title="its accuracy", scale=span, axis=alt.Axis(format=".1f", tickCount=4)),
            detail="teacher:N",
            tooltip=["teacher:N", "step:Q", alt.Tooltip("accuracy:Q", format=".3f")],
        )
    )
    near = "abs(datum.accuracy - at) <= 0.03"
    points = (
        alt.Chart(known)
        .transform_filter(chosen)
        .mark_point(filled=True)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=axis),
            color=alt.Color("label:N", title=None, scale=_several(labels), legend=_points(3)),
            shape=alt.Shape("label:N", title=None, scale=alt.Scale(domain=labels), legend=_points(3)),
            size=alt.condition(near, alt.value(70), alt.value(14)),
            tooltip=["teacher:N", "step:Q", "label:N", alt.Tooltip("value:Q", format=".2f")],
        )
    )
    ways = students["label"].unique(maintain_order=True).to_list()
    titled = x.title("accuracy of the teacher's checkpoint")
    same = alt.Chart(pl.DataFrame({"accuracy": [low, 1.0], "final": [low, 1.0]})).mark_line(
        color=charts.GREY, strokeDash=[2, 2], strokeWidth=1.5
    )
    ends = (
        alt.Chart(students)
        .transform_filter(chosen)
        .mark_point(filled=True, opacity=0.9)
        .encode(
            x=titled,
            y=alt.Y("final:Q", title=STUDENTS_END, scale=alt.Scale(zero=False)),
            color=alt.Color("label:N", title=None, scale=_several(ways), legend=_points(1)),
            shape=alt.Shape("label:N", title=None, scale=alt.Scale(domain=ways), legend=_points(1)),
            size=alt.condition(near, alt.value(200), alt.value(60)),
            tooltip=["teacher:N", "teacher_step:Q", "label:N", alt.Tooltip("final:Q", format=".3f")],
        )
    )
    here = (
        alt.Chart(students)
        .transform_filter(chosen)
        .transform_filter(near)
        .transform_aggregate(low="min(final)", high="max(final)", count="count()")
        .transform_calculate(
            text="'students near the slider: ' + datum.count + ', which end at ' + format(datum.low, '.2f') + ' to ' + "
            "format(datum.high, '.2f')"
        )
        .mark_text(align="left", baseline="top", dx=6, dy=4)
        .encode(text="text:N", x=alt.value(0), y=alt.value(0))
    )
    parts = [
        alt.layer(level, curves).properties(width=520, height=110),
        alt.layer(upright, points).properties(width=520, height=130),
        alt.layer(upright, same.encode(x=titled, y=alt.Y("final:Q", title=STUDENTS_END)), ends, here).properties(
            width=520, height=160
        ),
    ]
    best = students.sort("final", descending=True).row(0, named=True)
    return (
        alt.vconcat(*parts)
        .resolve_scale(color="independent", shape="independent", size="independent")
        .add_params(slider, menu)
        .properties(
            title=alt.TitleParams(
                title, subtitle="A point is one model. Move the slider below the figure, or choose one teacher."
            ),
            description=f"The best student ends at {best['final']:.2f}; its checkpoint has an accuracy of "
            f"{best['accuracy']:.2f}.",
        )
    )


def _points(columns: int) -> alt.Legend:
    return alt.Legend(orient="top", columns=columns, symbolOpacity=1, labelLimit=400)


def _several(labels: list[str]) -> alt.Scale:
    return alt.Scale(domain=labels, range=charts.PALETTE[: len(labels)])
