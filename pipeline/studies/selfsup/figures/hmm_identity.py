"""E7 as figures: models that predictors of one token cannot tell apart, and what tells them."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.languages.hmm import PAIR_TASKS, TRIPLE_TASKS
from pipeline.studies.selfsup.figures.common import most, spanning
from schemas.selfsup.hmm import CIRCULANT, HMM, PRINTED, ROTATED, UNIT

FLOOR = 1e-18  # where a difference of exactly 0 is drawn
FAMILIES = {PRINTED: "published pair", ROTATED: "exact twins"}
BY_FAMILY = plots.kinds(
    dict(zip(FAMILIES.values(), (charts.VERMILLION, charts.BLUE), strict=True)), "family", shapes=True
)
TASKS = {
    "pair": "x2 from x1",
    "allpair": "all of one token",
    "triple1": "x2, x3 from x1",
    "triple2": "x1, x3 from x2",
    "triple3": "x1, x2 from x3",
}
TOKENS = plots.kinds(
    {"one token": charts.VERMILLION, "two tokens": charts.BLUE}, "what", title="predicted", dashes=False
)
STATES = plots.kinds(
    {"2": charts.ORANGE, "3": charts.GREEN, "4": charts.BLUE, "5": charts.PURPLE},
    "states",
    title="hidden states k",
    columns=4,
)
STAYS = [charts.ORANGE, charts.BLUE, charts.GREEN]
SIDES = ["model", "twin"]


@plots.drawn("Twins under predictors of one and of two tokens")
def confused(context: Results) -> Figure:
    """How far the predictors of two models are apart, for each task: one token from one, two from one."""
    data = plots.some(context.table("hmm_equivalence").filter(pl.col("family") != CIRCULANT)).with_columns(
        pl.col("family").replace_strict(FAMILIES), drawn=pl.col("max_abs_diff").clip(FLOOR)
    )
    x = spanning("drawn", "largest difference of two predictors", [FLOOR, 1.0], 3, room=1.0, form="~e")
    y = Axis("task", "predicted | shown", "N", order=[*PAIR_TASKS, *TRIPLE_TASKS], more={"grid": True})
    exact = data.filter(family=FAMILIES[ROTATED])
    one, two = (exact.filter(tokens=tokens)["max_abs_diff"].to_numpy() for tokens in (1, 2))
    apart = bool(len(one)) and one.max() < 1e-12 < two.min()
    return plots.figure(
        plots.points(data, x, y, BY_FAMILY, tips=["instance_a", "dist_O", "dist_T"], size=45, opacity=0.7),
        data,
        "No predictor of one token tells twins apart, every predictor of two does"
        if apart
        else "Twins under predictors of one and of two tokens",
        f"A point is one of {plots.count([exact['instance_a'].n_unique()], 'pair')} of exact twins, or the published "
        f"pair, which is printed with eight digits; no difference is drawn at {FLOOR:.0e}",
        told=f"Differences of predictors of twins: of one token up to {one.max():.2g}, of two from {two.min():.2g} on.",
        width=430,
        height=230,
    )


@plots.drawn("Pairs of models that predictors of one token confuse")
def twins(context: Results) -> Figure:
    """Both models of two pairs as matrices: the published one, and an exact twin."""
    data = plots.some(context.table("hmm_matrices")).with_columns(
        label=pl.col("value").map_elements("{:.2f}".format, return_dtype=pl.String),
        state=(pl.col("col") + 1).cast(pl.String),
        place=(pl.col("row") + 1).cast(pl.String),
    )
    table, x = context.table("hmm_equivalence").filter(tokens=1), Axis("state", "state", "N")
    panels, words, distances = [], [], []
    for pair, rows in plots.split(data, "pair"):
        own = table.filter(instance_a=pair)
        name, short = ("published (Eq. 2.47)", "published") if pair.startswith("published") else (f"twin {pair}", pair)
        distances.append(f"{own['dist_T'][0]:.2f}")
        words.append(
            f"{name}: ‖O − O~‖ = {own['dist_O'][0]:.2f}, ‖T − T~‖ = {own['dist_T'][0]:.2f}, predictors of one token "
            f"within {plots.most(own['max_abs_diff']):.0e}"
        )
        for matrix in ("O", "T"):
            y = Axis("place", "symbol" if matrix == "O" else "next state", "N")
            for model in SIDES:
                part = rows.filter(matrix=matrix, model=model)
                marks = plots.cells(part, x, y, "value", "probability", domain=[0, 0.8], text="label", size=11)
                title = f"{matrix}{'' if model == SIDES[0] else '~'}, {short}"
                panels.append(plots.panel(marks, title, 100, 22 * part["place"].n_unique()))
    return plots.figure(
        plots.grid(panels, 4, spacing=14),
        data,
        f"{plots.count([len(words)], 'pair')} of models that predictors of one token confuse, apart in T by "
        + " and ".join(distances),
        *words,
        "O: probabilities of symbols in a state; T: of the next state; ~: the other model of the pair",
        told="Matrices of both models of two pairs.",
    )


@plots.drawn("Paths of posteriors as a model turns")
def paths(context: Results) -> Figure:
    """The rotation in the triangle of hidden states: posteriors of symbols on circles about its centre."""
    data = plots.some(context.table("hmm_paths"))
    turns = context.table("hmm_turns")
    corners = pl.DataFrame({"u": [0.0, 1, 0.5, 0], "v": [0.0, 0, np.sqrt(0.75), 0], "order": range(4)})
    beside = pl.DataFrame({"u": [-0.05, 1.05, 0.5], "v": [0.0, 0, 0.91], "state": ["1", "2", "3"]})
    low = min(-0.08, plots.least(data["v"]) - 0.03)
    x = alt.X("u:Q", axis=None, scale=alt.Scale(domain=[-0.1, 1.1], nice=False, zero=False))
    y = alt.Y("v:Q", axis=None, scale=alt.Scale(domain=[low, 0.96], nice=False, zero=False))
    tall = 260 / 1.2 * (0.96 - low)  # one scale in both directions
    panels, widths = [], []
    for name, part in plots.split(data, "instance_id"):
        widest = turns.filter(instance_id=name)["widest"][0]
        widths.append(f"{np.degrees(widest):.0f}°")
        symbol = alt.Color("symbol:N", title="symbol", legend=alt.Legend(orient="top", symbolOpacity=1, columns=8))
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
        dots = alt.Chart(part.filter(theta=0.0)).mark_point(filled=True, size=70, opacity=1).encode(x, y, symbol)
        names = alt.Chart(beside).mark_text(color=charts.INK).encode(x, y, text="state:N")
        heading = "Published model" if name.startswith("published") else f"Model {name}"
        layers = [edge, circles, valid, dots, names]
        panels.append(plots.panel(layers, heading, 260, tall, f"valid up to {widths[-1]}"))
    return plots.figure(
        plots.grid(panels, spacing=30),
        data,
        "Turning a model moves the posterior of every symbol on a circle; it stays valid to "
        f"{' and '.join(widths)} at least",
        "Corners: hidden states; dot: the model; bold: its twins without a negative entry, up to 60° from it; "
        "dashed: the whole turn, which relabels states at 120° and 240°",
        told=f"Posteriors of symbols of {len(panels)} models in the triangle of three hidden states, and their paths.",
    )


@plots.drawn("Predictors and parameters along the turn")
def turns(context: Results) -> Figure:
    """Along the turn: predictors of one token stay, those of two and the parameters move."""
    data = plots.some(context.table("hmm_turns")).with_columns(
        degrees=pl.col("theta").degrees(),
        drawn_pair=pl.col("pair_diff").clip(FLOOR),
        drawn_triple=pl.col("triple_diff").clip(FLOOR),
        inside=pl.col("theta") <= pl.col("widest") + 1e-9,
    )
    long = (
        data.filter(pl.col("theta").is_between(0, 2 * np.pi / 3, closed="none"))
        .unpivot(
            ["drawn_pair", "drawn_triple"], index=["instance_id", "degrees"], variable_name="what", value_name="drawn"
        )
        .with_columns(
            pl.col("what").replace_strict(dict(zip(("drawn_pair", "drawn_triple"), TOKENS.looks, strict=True)))
        )
        .with_columns(line=pl.format("{} {}", "instance_id", "what"))
    )
    x = Axis("degrees", "angle (degrees)", domain=[0, 120], values=[0, 30, 60, 90, 120])
    drawn = spanning("drawn", "largest difference of predictors", [FLOOR, 1.0], 3, room=1.0, form="~e")
    far = Axis("dist_O", "distance of O, best relabelling", domain=[0, 1.08 * most(data["dist_O"])])
    within = data.filter("inside")
    ends = within.group_by("instance_id", maintain_order=True).agg(pl.all().sort_by("theta").last())
    left = plots.lines(long, x, drawn, TOKENS, each="line", opacity=0.6, strokeWidth=1.2)
    right = [
        *plots.lines(data, x, far, charts.GREEN, each="instance_id", opacity=0.6, strokeWidth=1.2),
        *plots.points(ends, x, far, charts.BLACK, tips=["instance_id"], size=30),
    ]
    apart, least = most(within["pair_diff"]), plots.least(within.filter(pl.col("theta") > 0)["triple_diff"])
    return plots.figure(
        plots.grid([plots.panel(left, "Predictors", 255, 230), plots.panel(right, "Parameters", 255, 230)]),
        data,
        "Along the turn predictors of one token do not change at all"
        if apart < 1e-7 < least
        else "Predictors and parameters along the turn",
        f"A line is one of {plots.count([data['instance_id'].n_unique()], 'model')}, one of them the published; dots: "
        "the widest turn without a negative entry, or 60°",
        told=f"Differences of predictors and of parameters against the angle: of one token at most {apart:.1g}, of two "
        f"at least {least:.1g} within the widest turn.",
    )


@plots.drawn("Directions of parameters that tasks leave open")
def deficits(context: Results) -> Figure:
    """How many directions of parameters each task leaves open, measured and predicted, by number of states."""
    jacobian = context.table("hmm_jacobian")
    data = (
        plots.some(jacobian.filter(model=HMM))
        .group_by("task", "k", maintain_order=True)
        .agg(
            pl.col("deficit").max(),
            pl.col("deficit").min().alias("lowest"),
            pl.col("predicted").first(),
            pl.len().alias("models"),
            (pl.col("deficit") == pl.col("predicted")).all().alias("agrees"),
        )
        .with_columns(pl.col("task").replace_strict(TASKS))
        .with_columns(states=pl.col("k").cast(pl.String))
        .sort("k")
    )
    x = Axis("task", None, "N", order=list(TASKS.values()), more={"labelAngle": -20})
    y = Axis("deficit", "directions that the task does not see", zero=True)
    by = STATES.among(data["states"])
    beside = alt.XOffset("states:N", scale=alt.Scale(domain=list(by.looks)))
    base = alt.Chart(data).encode(x=x.at(alt.X), xOffset=beside)
    gaussian = jacobian.filter(model=UNIT)
    agrees = bool(data["agrees"].all())
    return plots.figure(
        [
            base.mark_bar(opacity=0.75).encode(y=y.at(alt.Y), color=by.colour()),
            base.mark_tick(color=charts.BLACK, thickness=2, size=16).encode(y=y.at(alt.Y, "predicted")),
        ],
        data.drop("states"),
        "What a task leaves open is what its invariances predict" if agrees else "Rank deficits by task",
        f"Bars: measured on {plots.count([int(data.filter(task=TASKS['pair'])['models'].sum())], 'model')}; strokes: "
        "(k−1)², (k−1)(k−2)/2, 0",
        f"Of a G-HMM x2 from x1 leaves {most(gaussian['deficit']):.0f} open "
        f"({plots.count([gaussian.height], 'model')})",
        told=f"Rank deficits by task: {plots.tell(data, '{task}, k = {k}: {deficit}')}.",
        width=470,
        height=240,
    )


@plots.drawn("Chains with one t-th power")
def powers(context: Results) -> Figure:
    """Claim 3: the smallest entry of T~ and its distance from every relabelling of T, against t."""
    data = plots.some(context.table("hmm_power")).with_columns(stay=pl.col("a").cast(pl.String))
    names = data["stay"].unique().sort()
    by = plots.kinds(dict(zip(names, STAYS, strict=False)), "stay", title="a, the share that stays", shapes=True)
    x = Axis("t", "t", domain=[0, 51])
    small, far = (
        Axis("min_entry", "smallest entry of T~"),
        Axis("dist_T_relabel", "max |T − T~|, best relabelling", zero=True),
    )
    left = [*plots.rule(small, 0, dash=plots.SOLID), *plots.points(data, x, small, by, size=28)]
    half = data.filter(a=0.5)
    low = plots.least(half["min_entry"])
    return plots.figure(
        plots.grid(
            [
                plots.panel(left, "Is T~ stochastic?", 260, 210),
                plots.panel(plots.points(data, x, far, by, size=28), "Is it another chain?", 260, 210),
            ]
        ),
        data,
        "At a = 1/2 every power has two chains, for every t tested" if low > -1e-12 else "Chains with one t-th power",
        f"T~ = G T with T~^t = T^t (within {most(half['max_power_diff']):.0e}), t = 2 to {most(half['t']):.0f}; grey: "
        "0, below which T~ is no chain",
        told=f"Smallest entry of T~ and its distance from T against t; at a = 1/2 the smallest is {low:.2g}.",
    )
