"""What figures of this study share: names and colours of arms, curves of accuracy with their intervals."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
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
DASHES = {"label": [1, 0], "ce": [6, 3], "os": [2, 2], "warm": [8, 2, 2, 2], "prog": [1, 0]}
DEGREES = {1: "1 sign", 2: "2 signs", 3: "3 signs"}


def percent(title: str, chance: float = 0) -> dict[str, Any]:
    """Return the arguments of an axis of accuracies, which of two classes begins below guessing."""
    low = 0.4 if chance >= 0.5 else 0
    values = [tick for tick in charts.UNIT if tick >= low]
    return {"title": title, "scale": alt.Scale(domain=[low, 1], clamp=True), "axis": alt.Axis(values=values)}


def named(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with ``label``, what an arm is called."""
    return frame.with_columns(label=pl.col("arm").replace_strict(ARMS, return_dtype=pl.String))


def coloured(arms: list[str], columns: int = 2) -> alt.Color:
    """Return the colours of arms, in the order of `names.ARMS`."""
    order = [arm for arm in ARMS if arm in arms]
    return alt.Color(
        "label:N",
        title=None,
        scale=alt.Scale(domain=[ARMS[arm] for arm in order], range=[COLOURS[arm] for arm in order]),
        legend=_legend(columns),
    )


def _legend(columns: int) -> alt.Legend:
    return alt.Legend(orient="top", columns=columns, symbolStrokeWidth=3, symbolType="stroke", symbolOpacity=1)


def dashed(arms: list[str], columns: int) -> alt.StrokeDash:
    """Return the dashes of arms, so that lines that lie on each other can be told apart."""
    order = [arm for arm in ARMS if arm in arms]
    solid: list[int] = [1, 0]
    return alt.StrokeDash(
        "label:N",
        title=None,
        legend=_legend(columns),
        scale=alt.Scale(domain=[ARMS[arm] for arm in order], range=[DASHES.get(arm, solid) for arm in order]),
    )


def kinds(field: str, labels: list[str], title: str | None = None, columns: int = 3) -> dict[str, Any]:
    """Return colour and dashes of up to three kinds of lines, with one legend."""
    colours = [charts.BLUE, charts.VERMILLION, charts.GREY if len(labels) == 2 else charts.GREEN]
    dashes: list[list[int]] = [[1, 0], [6, 3], [2, 2]]
    legend = _legend(columns)
    scale = alt.Scale(domain=labels, range=colours[: len(labels)])
    return {
        "color": alt.Color(f"{field}:N", title=title, scale=scale, legend=legend),
        "strokeDash": alt.StrokeDash(
            f"{field}:N", title=title, legend=legend, scale=alt.Scale(domain=labels, range=dashes[: len(labels)])
        ),
    }


def _guessing(chance: float) -> alt.Chart:
    """Return a rule at the accuracy of guessing, on the axis of the curves."""
    rule = alt.Chart(pl.DataFrame({"y": [chance]})).mark_rule(color=charts.GREY, strokeDash=[2, 2])
    return rule.encode(y=alt.Y("y:Q", **percent("accuracy", chance)))


def courses(frame: pl.DataFrame, title: str, chance: float, width: int = 270, columns: int = 2) -> Any:
    """Return mean accuracies over steps with their intervals; a rule at the accuracy of guessing."""
    data = named(frame)
    arms = data["arm"].unique().to_list()
    base = alt.Chart(data).encode(
        x=alt.X("step:Q", title="steps of its own training", axis=alt.Axis(tickCount=4, format="~s")),
        color=coloured(arms, columns),
    )
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("lo:Q", **percent("accuracy", chance)), y2="hi:Q")
    line = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("value:Q", **percent("accuracy", chance)),
        strokeDash=dashed(arms, columns),
        tooltip=["label:N", "step:Q", alt.Tooltip("value:Q", format=".3f"), "n:Q", "interval:N"],
    )
    rule = _guessing(chance)
    return alt.layer(rule, band, line, width=width, height=200, title=alt.TitleParams(title, fontSize=13))


def one_by_one(frame: pl.DataFrame, title: str, chance: float, width: int = 270, columns: int = 1) -> Any:
    """Return accuracies of all models over steps (``arm``, ``model``, ``step``, ``accuracy``); a rule at the accuracy
    of guessing."""
    data = named(frame)
    arms = data["arm"].unique().to_list()
    line = (
        alt.Chart(data)
        .mark_line(strokeWidth=1.5, opacity=0.8)
        .encode(
            x=alt.X("step:Q", title="steps of its own training", axis=alt.Axis(tickCount=4, format="~s")),
            y=alt.Y("accuracy:Q", **percent("accuracy", chance)),
            color=coloured(arms, columns),
            strokeDash=dashed(arms, columns),
            detail="model:N",
            tooltip=["label:N", "model:Q", "step:Q", alt.Tooltip("accuracy:Q", format=".3f")],
        )
    )
    rule = _guessing(chance)
    return alt.layer(rule, line, width=width, height=200, title=alt.TitleParams(title, fontSize=13))


def by_arms(table: pl.DataFrame, title: str, parts: dict[str, list[str]], chance: float, width: int) -> Figure:
    """Return panels of mean accuracies side by side, each with the arms that ``parts`` names."""
    if not table.height:
        return charts.empty(title, "nothing was trained at this scale")
    panels = [
        courses(table.filter(pl.col("arm").is_in(arms)), name, chance, width, columns=1) for name, arms in parts.items()
    ]
    ends = table.filter(pl.col("step") == pl.col("step").max().over("run"))
    accuracies = "; ".join(f"{ARMS[row['arm']]}: {row['value']:.2f}" for row in ends.iter_rows(named=True))
    chart = alt.hconcat(*panels).resolve_scale(color="independent", strokeDash="independent")
    return chart.properties(title=title, description=f"Accuracy at the end: {accuracies}."), table


def dots(models: pl.DataFrame, panels: dict[str, str], title: str, columns: int = 2, width: int = 150) -> Figure:
    """Return final accuracies of all models (rings) and their means (bars), a row for each arm, a panel for each run
    that ``panels`` names."""
    data = named(models.filter(pl.col("run").is_in(list(panels)))).with_columns(
        panel=pl.col("run").replace_strict(panels, default=None, return_dtype=pl.String)
    )
    if not data.height:
        return charts.empty(title, "nothing was trained at this scale")
    arms = [arm for arm in ARMS if arm in data["arm"].to_list()]
    low, high = data.select(low=pl.col("final").min(), high=pl.col("final").max()).row(0)
    step = 0.05 if high - low > 0.1 else 0.02
    ticks = [round(i * step, 2) for i in range(int(low / step), int(high / step) + 2)]
    encoding: dict[str, Any] = {
        "title": "accuracy at the end",
        "scale": alt.Scale(domain=[ticks[0], ticks[-1]], nice=False),
        "axis": alt.Axis(values=ticks[:: max(1, -(-len(ticks) // 4))], format=".2f"),
    }
    colour = alt.Color(
        "label:N",
        legend=None,
        scale=alt.Scale(domain=[ARMS[arm] for arm in arms], range=[COLOURS[arm] for arm in arms]),
    )
    drawn = []
    for run, name in panels.items():
        own = data.filter(run=run)
        if not own.height:
            continue
        here = [ARMS[arm] for arm in arms if arm in own["arm"].to_list()]
        y = alt.Y("label:N", title=None, sort=here, axis=alt.Axis(labelLimit=200))
        base = alt.Chart(own)
        rings = base.mark_point(size=55, strokeWidth=1.6).encode(
            x=alt.X("final:Q", **encoding),
            y=y,
            color=colour,
            tooltip=["label:N", "model:Q", alt.Tooltip("final:Q", format=".3f")],
        )
        means = base.mark_tick(thickness=3, size=17).encode(x=alt.X("mean(final):Q", **encoding), y=y, color=colour)
        drawn.append(
            alt.layer(means, rings).properties(
                width=width, height=alt.Step(24), title=alt.TitleParams(name, fontSize=13)
            )
        )
    mean = data.group_by("panel", "arm", maintain_order=True).agg(pl.col("final").mean())
    accuracies = "; ".join(
        f"{row['panel']}, {ARMS[row['arm']]}: {row['final']:.3f}" for row in mean.iter_rows(named=True)
    )
    chart = alt.concat(*drawn, columns=columns).properties(title=title, description=f"Mean accuracies. {accuracies}.")
    return chart, data


def by_horizon(data: pl.DataFrame, scale: alt.Scale) -> list[alt.Chart]:
    """Return the layers of mean accuracies at the end by how many steps a student takes, a line for each arm, with
    their intervals."""
    arms = data["arm"].unique().to_list()
    title = "accuracy at the end"
    base = alt.Chart(data).encode(
        x=alt.X(
            "step:Q",
            title="steps of the student",
            scale=alt.Scale(zero=False, padding=20),
            axis=alt.Axis(values=sorted(data["step"].unique()), format="d", labelOverlap=True),
        ),
        color=coloured(arms, 2),
    )
    spread = data.drop_nulls("lo")  # one model alone has no interval
    bars = base.properties(data=spread).mark_rule(strokeWidth=1.5)
    curve = base.mark_line(strokeWidth=2, point=True).encode(
        y=alt.Y("value:Q", title=title, scale=scale),
        strokeDash=dashed(arms, 2),
        tooltip=["label:N", "step:Q", alt.Tooltip("value:Q", format=".3f"), "n:Q", "interval:N"],
    )
    drawn = [bars.encode(y=alt.Y("lo:Q", title=title, scale=scale), y2="hi:Q")] if spread.height else []
    return [*drawn, curve]


def horizons(table: pl.DataFrame, panels: dict[str, str], title: str) -> Figure:
    """Return panels of `by_horizon`, those of runs of one name in one; ``table`` has averages (`Arms`), ``panels``
    names the panel of each run."""
    last = table.filter(pl.col("run").is_in(list(panels)), pl.col("step") == pl.col("step").max().over("run"))
    if not last.height:
        return charts.empty(title, "no student was trained at this scale")
    data = named(last).with_columns(panel=pl.col("run").replace_strict(panels, return_dtype=pl.String))
    low, high = data.select(pl.min_horizontal("lo", "value").min(), pl.max_horizontal("hi", "value").max()).row(0)
    scale = alt.Scale(domain=[int(20 * low) / 20, min(1, (int(20 * high) + 1) / 20)], nice=False)
    drawn = [
        alt.layer(*by_horizon(data.filter(panel=panel), scale)).properties(
            width=240, height=170, title=alt.TitleParams(panel, fontSize=13)
        )
        for panel in dict.fromkeys(panels.values())
        if panel in data["panel"].to_list()
    ]
    accuracies = "; ".join(
        f"{row['panel']}, {row['label']}, {row['step']} steps: {row['value']:.3f}" for row in data.iter_rows(named=True)
    )
    chart = alt.concat(*drawn, columns=2).properties(title=title, description=f"Accuracy at the end. {accuracies}.")
    return chart, data


def learnt(x: alt.X, axis: alt.Axis, title: str = "steps to an accuracy of 0.9") -> dict[str, Any]:
    """Return how models are drawn by when they learn (columns ``shown`` and ``learned`` of `with_step`): a filled
    circle, or hollow where they have not until their last step."""
    words, legend = ["learned", "not until its last step"], alt.Legend(orient="top")
    return {
        "x": x,
        "y": alt.Y("shown:Q", title=title, axis=axis, scale=alt.Scale(zero=True)),
        "color": alt.Color(
            "learned:N",
            title=None,
            legend=legend,
            scale=alt.Scale(domain=words, range=[charts.BLUE, charts.VERMILLION]),
        ),
        "shape": alt.Shape(
            "learned:N", title=None, legend=legend, scale=alt.Scale(domain=words, range=["circle", "triangle-up"])
        ),
        "fill": alt.Fill(
            "learned:N", title=None, legend=legend, scale=alt.Scale(domain=words, range=[charts.BLUE, "white"])
        ),
    }


def with_step(models: pl.DataFrame) -> pl.DataFrame:
    """Return ``models`` with ``shown``, the step at which one has learned or its last, and ``learned`` in words."""
    late = pl.col("t90").is_null()
    return models.with_columns(
        shown=pl.col("t90").fill_null(pl.col("horizon")),
        learned=pl.when(late).then(pl.lit("not until its last step")).otherwise(pl.lit("learned")),
    )


SIZE = pl.format("{} heads, width {}", "heads", "width")


def sizes_of(table: pl.DataFrame) -> list[str]:
    """Return what the sizes of models are called, the widest first."""
    return table.sort("width", descending=True).select(size=SIZE)["size"].unique(maintain_order=True).to_list()


def growth(table: pl.DataFrame, sizes: list[str]) -> tuple[Any, str, pl.DataFrame]:
    """Return accuracies of models of several sizes while they learn from labels (``table``: averages, `Arms`), mean
    over models with its interval; rings: 80 % of the last one is reached. Each size has its longest training, and a
    colour by its place in ``sizes``. Also returned are where the rings are, in words, and what is drawn."""
    longest = pl.col("step") == pl.col("step").max()
    runs = table.filter(longest.over("width")).select("run").unique()["run"].to_list()
    data = table.filter(pl.col("run").is_in(runs)).with_columns(
        size=SIZE, reached=pl.col("value") >= 0.8 * pl.col("value").sort_by("step").last().over("run")
    )
    scale = alt.Scale(domain=sizes, range=[charts.BLACK, charts.BLUE, charts.VERMILLION][: len(sizes)])
    colour = alt.Color("size:N", title=None, sort=sizes, legend=alt.Legend(orient="top"), scale=scale)
    x = alt.X("step:Q", title="steps", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~s", tickCount=5))
    base = alt.Chart(data).encode(x=x, color=colour)
    spread = data.drop_nulls("lo")
    band = base.properties(data=spread).mark_area(opacity=0.2).encode(y=alt.Y("lo:Q", title="accuracy"), y2="hi:Q")
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("value:Q", title="accuracy", scale=alt.Scale(zero=False)))
    first = data.filter("reached").sort("step").unique("run", keep="first", maintain_order=True)
    rings = alt.Chart(first).mark_point(size=90, filled=False, fill="white", strokeWidth=2, opacity=1)
    marks = rings.encode(x=x, y="value:Q", color=colour)
    steps = "; ".join(f"{row['size']}: step {row['step']}" for row in first.iter_rows(named=True))
    return alt.layer(*([band] if spread.height else []), line, marks), steps, data


def several(labels: list[str]) -> alt.Scale:
    """Return the colours of up to six kinds of lines."""
    colours = [charts.BLUE, charts.VERMILLION, charts.GREEN, charts.PURPLE, charts.ORANGE, charts.BLACK]
    return alt.Scale(domain=labels, range=colours[: len(labels)])


def quantity(
    frame: pl.DataFrame, x: alt.X, y: str, title: str, field: str, labels: list[str], colours: alt.Scale | None = None
) -> alt.Chart:
    """Return lines of ``y`` over ``x``, one for each of ``labels``, told apart by colour (`several` if none are given)
    and dashes."""
    dashes: list[list[int]] = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 1], [1, 1]]
    legend = alt.Legend(
        orient="top", columns=3, symbolStrokeWidth=3, symbolType="stroke", symbolOpacity=1, labelLimit=260
    )
    return (
        alt.Chart(frame)
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=26, filled=True))
        .encode(
            x=x,
            y=alt.Y(f"{y}:Q", title=title),
            color=alt.Color(f"{field}:N", title=None, scale=colours or several(labels), legend=legend),
            strokeDash=alt.StrokeDash(
                f"{field}:N", title=None, scale=alt.Scale(domain=labels, range=dashes[: len(labels)]), legend=legend
            ),
            tooltip=[f"{field}:N", x["shorthand"], alt.Tooltip(f"{y}:Q", format=".3f")],
        )
    )


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
            color=alt.Color("label:N", title=None, scale=several(labels), legend=_points(3)),
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
            color=alt.Color("label:N", title=None, scale=several(ways), legend=_points(1)),
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
