"""E7 as figures: models that predictors of one token cannot tell apart, and what tells them."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.languages.hmm import PAIR_TASKS, TRIPLE_TASKS
from pipeline.studies.selfsup.figures.common import count, lines_legend, log_axis, most, panel_title
from schemas.selfsup.hmm import CIRCULANT, HMM, PRINTED, ROTATED, UNIT

FLOOR = 1e-18  # where a difference of exactly 0 is drawn
FAMILIES = {PRINTED: "published pair", ROTATED: "exact twins"}
TASKS = {
    "pair": "x2 from x1",
    "allpair": "all of one token",
    "triple1": "x2, x3 from x1",
    "triple2": "x1, x3 from x2",
    "triple3": "x1, x2 from x3",
}
SIDES = ["model", "twin"]


def confused(context: Results) -> Figure:
    """How far the predictors of two models are apart, for each task: one token from one, two from one."""
    data = (
        context.table("hmm_equivalence")
        .filter(pl.col("family") != CIRCULANT)
        .with_columns(pl.col("family").replace_strict(FAMILIES), drawn=pl.col("max_abs_diff").clip(FLOOR))
    )
    order = [*PAIR_TASKS, *TRIPLE_TASKS]
    scale = alt.Scale(domain=list(FAMILIES.values()), range=[charts.VERMILLION, charts.BLUE])
    points = (
        alt.Chart(data)
        .mark_point(filled=True, size=45, opacity=0.7)
        .encode(
            alt.X("drawn:Q", title="largest difference of two predictors (log)", **log_axis(FLOOR, 1.0, 3)),
            alt.Y("task:N", title="predicted | shown", sort=order),
            alt.Color("family:N", title=None, scale=scale, legend=alt.Legend(orient="bottom")),
            alt.Shape("family:N", title=None, scale=alt.Scale(domain=list(FAMILIES.values()))),
            tooltip=["instance_a", "task", "max_abs_diff", "dist_O", "dist_T"],
        )
    )
    twins = data.filter(family=FAMILIES[ROTATED])
    one, two = (twins.filter(tokens=tokens)["max_abs_diff"].to_numpy() for tokens in (1, 2))
    apart = bool(len(one)) and one.max() < 1e-12 < two.min()
    title = alt.TitleParams(
        "No predictor of one token tells twins apart, every predictor of two does"
        if apart
        else "Twins under predictors of one and of two tokens",
        subtitle=[
            f"{twins['instance_a'].n_unique()} exact twins, and the published pair, which is printed with eight digits"
        ],
    )
    words = f"Largest differences of predictors of twins: of one token {one.max():.2g}, of two {two.min():.2g} or more."
    return points.properties(width=430, height=230, title=title, description=words), data


def twins(context: Results) -> Figure:
    """Both models of two pairs as matrices: the published one, and an exact twin."""
    data = context.table("hmm_matrices").with_columns(
        label=pl.col("value").map_elements("{:.2f}".format, return_dtype=pl.String),
        light=pl.col("value") > 0.45,
        state=(pl.col("col") + 1).cast(pl.String),
        place=(pl.col("row") + 1).cast(pl.String),
    )
    scale = alt.Scale(domain=[0, 0.8], range=["#F2F6FA", charts.BLUE], clamp=True)
    rows = []
    for pair in data["pair"].unique(maintain_order=True).to_list():
        panels = []
        for matrix in ("O", "T"):
            for model in SIDES:
                part = data.filter(pair=pair, matrix=matrix, model=model)
                tall = 22 * (int(part["row"].to_numpy().max()) + 1)
                base = alt.Chart(part).encode(
                    alt.X("state:N", title="state", axis=alt.Axis(labelAngle=0)),
                    alt.Y("place:N", title="symbol" if matrix == "O" else "next state"),
                )
                cells = base.mark_rect().encode(alt.Color("value:Q", title="probability", scale=scale))
                marks = base.mark_text(fontSize=11).encode(
                    text="label:N", color=alt.condition("datum.light", alt.value("white"), alt.value(charts.INK))
                )
                name = f"{matrix}{'' if model == SIDES[0] else ' of the twin'}"
                panels.append(alt.layer(cells, marks).properties(width=96, height=tall, title=panel_title(name)))
        heading = "Published pair (Eq. 2.47)" if pair.startswith("published") else f"Exact twin, model {pair}"
        rows.append(alt.hconcat(*panels, spacing=14).properties(title=panel_title(heading)))
    table = context.table("hmm_equivalence").filter(tokens=1)
    lines = []
    for pair in data["pair"].unique(maintain_order=True).to_list():
        own = table.filter(instance_a=pair)
        lines.append(
            f"{_named(pair)}: ‖O − O~‖ = {own['dist_O'][0]:.2f}, ‖T − T~‖ = {own['dist_T'][0]:.2f}, "
            f"predictors of one token within {own['max_abs_diff'].to_numpy().max():.0e}"
        )
    title = alt.TitleParams("Two pairs of models that all predictors of one token confuse", subtitle=lines)
    words = "Matrices of both models of two pairs. " + "; ".join(lines) + "."
    chart = alt.vconcat(*rows, spacing=16)
    return chart.properties(title=title, description=words), data


def _named(pair: str) -> str:
    return "published" if pair.startswith("published") else pair


def paths(context: Results) -> Figure:
    """The rotation in the triangle of hidden states: posteriors of symbols on circles about its centre."""
    data = context.table("hmm_paths")
    turns = context.table("hmm_turns")
    corners = pl.DataFrame({"u": [0.0, 1, 0.5, 0], "v": [0.0, 0, np.sqrt(0.75), 0], "order": range(4)})
    beside = pl.DataFrame({"u": [-0.05, 1.05, 0.5], "v": [0.0, 0, 0.91], "state": ["1", "2", "3"]})
    low = min(-0.08, float(data["v"].to_numpy().min()) - 0.03) if data.height else -0.08
    x = alt.X("u:Q", axis=None, scale=alt.Scale(domain=[-0.1, 1.1], nice=False, zero=False))
    y = alt.Y("v:Q", axis=None, scale=alt.Scale(domain=[low, 0.96], nice=False, zero=False))
    tall = 260 / 1.2 * (0.96 - low)  # one scale in both directions
    panels = []
    for name in data["instance_id"].unique(maintain_order=True).to_list():
        part = data.filter(instance_id=name)
        widest = turns.filter(instance_id=name)["widest"][0]
        start = part.filter(theta=0.0)
        symbol = alt.Color("symbol:N", title="symbol", legend=alt.Legend(orient="right", symbolOpacity=1))
        edge = alt.Chart(corners).mark_line(color=charts.GREY).encode(x, y, order="order:Q")
        circles = (
            alt.Chart(part)
            .mark_line(opacity=0.35, strokeWidth=1, strokeDash=[3, 3])
            .encode(x, y, symbol, order="theta:Q", detail="symbol:N")
        )
        valid = (
            alt.Chart(part.filter(pl.col("theta") <= widest + 1e-9))
            .mark_line(strokeWidth=3)
            .encode(x, y, symbol, order="theta:Q", detail="symbol:N")
        )
        dots = alt.Chart(start).mark_point(filled=True, size=70, opacity=1).encode(x, y, symbol)
        names = alt.Chart(beside).mark_text(color=charts.INK).encode(x, y, text="state:N")
        heading = "Published model" if name.startswith("published") else f"Model {name}"
        panels.append(
            alt.layer(edge, circles, valid, dots, names).properties(
                width=260, height=tall, title=panel_title(heading, [f"valid up to {np.degrees(widest):.0f}°"])
            )
        )
    title = alt.TitleParams(
        "Turning a model moves the posterior of every symbol on a circle",
        subtitle=[
            "Corners: hidden states; dot: the model; bold: its twins without a negative entry, counted from the model",
            "on; dashed: the whole turn, which relabels states at 120° and 240°",
        ],
    )
    words = f"Posteriors of symbols of {len(panels)} models in the triangle of three hidden states, and their paths."
    chart = alt.hconcat(*panels, spacing=10).resolve_scale(color="independent")
    return chart.properties(title=title, description=words), data


def turns(context: Results) -> Figure:
    """Along the turn: predictors of one token stay, those of two and the parameters move."""
    data = context.table("hmm_turns").with_columns(
        degrees=pl.col("theta").degrees(),
        drawn_pair=pl.col("pair_diff").clip(FLOOR),
        drawn_triple=pl.col("triple_diff").clip(FLOOR),
        inside=pl.col("theta") <= pl.col("widest") + 1e-9,
    )
    x = alt.X(
        "degrees:Q",
        title="angle (degrees)",
        scale=alt.Scale(domain=[0, 120], nice=False),
        axis=alt.Axis(values=[0, 30, 60, 90, 120]),
    )
    long = (
        data.filter(pl.col("theta").is_between(0, 2 * np.pi / 3, closed="none"))
        .unpivot(
            ["drawn_pair", "drawn_triple"], index=["instance_id", "degrees"], variable_name="what", value_name="drawn"
        )
        .with_columns(pl.col("what").replace_strict({"drawn_pair": "one token", "drawn_triple": "two tokens"}))
    )
    colour = alt.Color(
        "what:N",
        title="predicted",
        scale=alt.Scale(domain=["one token", "two tokens"], range=[charts.VERMILLION, charts.BLUE]),
        legend=lines_legend(),
    )
    named = "largest difference of predictors (log)"
    lines = alt.Chart(long).mark_line(opacity=0.6, strokeWidth=1.2)
    drawn = alt.Y("drawn:Q", title=named, **log_axis(FLOOR, 1.0, 3))
    left = alt.layer(lines.encode(x, drawn, colour, detail="instance_id:N"))
    span = alt.Scale(domain=[0, 1.08 * most(data["dist_O"])], nice=False)
    moved = alt.Chart(data).mark_line(opacity=0.6, strokeWidth=1.2, color=charts.GREEN)
    right = moved.encode(
        x, alt.Y("dist_O:Q", title="distance of O, best relabelling", scale=span), detail="instance_id:N"
    )
    ends = (
        alt.Chart(
            data.filter("inside").group_by("instance_id", maintain_order=True).agg(pl.all().sort_by("theta").last())
        )
        .mark_point(filled=True, size=30, opacity=1, color=charts.BLACK)
        .encode(x, alt.Y("dist_O:Q"))
    )
    models = data["instance_id"].n_unique()
    far = data.filter("inside")
    apart, least = (far["pair_diff"].to_numpy().max(), far.filter(pl.col("theta") > 0)["triple_diff"].to_numpy().min())
    title = alt.TitleParams(
        "Along the turn predictors of one token do not change at all"
        if apart < 1e-7 < least
        else "Predictors and parameters along the turn",
        subtitle=[f"{models} models, one of them the published; dots: the widest turn without a negative entry"],
    )
    words = (
        f"Differences of predictors and of parameters against the angle for {models} models: of one token at most "
        f"{apart:.1g}, of two at least {least:.1g} within the widest turn."
    )
    size = {"width": 255, "height": 230}
    both = [
        left.properties(title=panel_title("Predictors"), **size),
        alt.layer(right, ends).properties(title=panel_title("Parameters"), **size),
    ]
    return alt.hconcat(*both, spacing=26).properties(title=title, description=words), data


def deficits(context: Results) -> Figure:
    """How many directions of parameters each task leaves open, measured and predicted, by number of states."""
    data = (
        context.table("hmm_jacobian")
        .filter(model=HMM)
        .group_by("task", "k", maintain_order=True)
        .agg(
            pl.col("deficit").max(),
            pl.col("deficit").min().alias("lowest"),
            pl.col("predicted").first(),
            pl.len().alias("models"),
            (pl.col("deficit") == pl.col("predicted")).all().alias("agrees"),
        )
        .with_columns(pl.col("task").replace_strict(TASKS))
        .sort("k")
    )
    order = list(TASKS.values())
    x = alt.X("task:N", title=None, sort=order, axis=alt.Axis(labelAngle=-20))
    colour = alt.Color(
        "k:O",
        title="hidden states k",
        scale=alt.Scale(domain=[2, 3, 4, 5], range=[charts.ORANGE, charts.GREEN, charts.BLUE, charts.PURPLE]),
    )
    bars = (
        alt.Chart(data)
        .mark_bar(opacity=0.75)
        .encode(x, alt.Y("deficit:Q", title="directions that the task does not see"), colour, alt.XOffset("k:O"))
    )
    ticks = (
        alt.Chart(data)
        .mark_tick(color=charts.BLACK, thickness=2, size=16)
        .encode(x, alt.Y("predicted:Q"), alt.XOffset("k:O"), tooltip=["task", "k", "deficit", "predicted", "models"])
    )
    gaussian = context.table("hmm_jacobian").filter(model=UNIT)
    agrees = bool(data["agrees"].all())
    title = alt.TitleParams(
        "What a task leaves open is what its invariances predict" if agrees else "Rank deficits by task",
        subtitle=[
            f"Bars: measured on {data['models'].sum() // len(order)} models; strokes: (k−1)², (k−1)(k−2)/2, 0",
            f"Of a G-HMM x2 from x1 leaves {count(gaussian['deficit'])} open ({gaussian.height} models)",
        ],
    )
    words = "Rank deficits by task: " + "; ".join(
        f"{row['task']}, k = {row['k']}: {row['deficit']}" for row in data.iter_rows(named=True)
    )
    return alt.layer(bars, ticks).properties(width=470, height=240, title=title, description=f"{words}."), data


def powers(context: Results) -> Figure:
    """Claim 3: the smallest entry of T~ and its distance from every relabelling of T, against t."""
    data = context.table("hmm_power").with_columns(stay=pl.col("a").cast(pl.String))
    span = alt.X("t:Q", title="t", scale=alt.Scale(domain=[0, 51], nice=False))
    colour = alt.Color(
        "stay:N",
        title="a, the share that stays",
        scale=alt.Scale(range=[charts.ORANGE, charts.BLUE, charts.GREEN]),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape("stay:N", title="a, the share that stays")
    base = alt.Chart(data)
    zero = alt.Chart(pl.DataFrame({"y": [0.0]})).mark_rule(color=charts.GREY).encode(y="y:Q")
    left = alt.layer(
        zero,
        base.mark_point(filled=True, size=28, opacity=1).encode(
            span, alt.Y("min_entry:Q", title="smallest entry of T~"), colour, shape
        ),
    ).properties(width=265, height=210, title=panel_title("Is T~ stochastic?"))
    right = alt.layer(
        base.mark_point(filled=True, size=28, opacity=1).encode(
            span,
            alt.Y("dist_T_relabel:Q", title="max |T − T~|, best relabelling", scale=alt.Scale(domainMin=0)),
            colour,
            shape,
        )
    ).properties(width=265, height=210, title=panel_title("Is it another chain?"))
    half = data.filter(a=0.5)
    low = half["min_entry"].to_numpy().min() if half.height else np.nan
    title = alt.TitleParams(
        "At a = 1/2 every power has two chains, for every t tested" if low > -1e-12 else "Chains with one t-th power",
        subtitle=[f"T~ = G T with T~^t = T^t (within {most(half['max_power_diff']):.0e}), t = 2 to {count(half['t'])}"],
    )
    words = f"Smallest entry of T~ and its distance from T against t; at a = 1/2 the smallest is {low:.2g}."
    return alt.hconcat(left, right, spacing=28).properties(title=title, description=words), data
