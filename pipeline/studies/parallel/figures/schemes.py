"""Which masks train a small Transformer best, beside what is exact of them."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.parallel.comparisons import CONSTANT, EXPECTED, FOLLOWS, ONLY_PAIRS, OVER_MODES, SEEN, SEEN_OFTEN
from schemas.parallel.tables import ALIGNED, ALL, CROSSED, MISALIGNED, PAIRS, SINGLES

LOOKS = {
    SINGLES: Look(charts.ORANGE),
    MISALIGNED: Look(charts.PURPLE, shape="triangle-down"),
    CROSSED: Look(charts.VERMILLION, shape="triangle-up"),
    PAIRS: Look(charts.SKY, shape="square"),
    ALIGNED: Look(charts.BLUE, shape="diamond"),
    ALL: Look(charts.BLACK, shape="cross"),
}
TICKS = [1, 2, 5, 10, 20, 50, 100, 200]
PANELS = {"C": "Poincaré constant C", "modes": "sum over all modes"}


@plots.drawn("Which masks train best")
def learning(context: Results) -> Figure:
    """Errors of masked Transformers against the Poincaré constant, and against the sum over all modes."""
    cells = plots.some(context.table("par_scheme"))
    n = cells.filter(k=2)["n"].item(0)
    same = cells.filter(n=n)
    data = (
        same.select(
            "law",
            "scheme",
            "k",
            "C",
            "modes",
            "models",
            seen=pl.col("rarest") >= SEEN_OFTEN,
            error="scaled_kl",
            low=pl.max_horizontal(pl.col("scaled_kl") - pl.col("scaled_se"), pl.lit(1.0)),
            high=pl.col("scaled_kl") + pl.col("scaled_se"),
        )
        .unpivot(
            list(PANELS),
            index=["law", "scheme", "k", "models", "seen", "error", "low", "high"],
            variable_name="panel",
            value_name="predictor",
        )
        .with_columns(pl.col("panel").replace(PANELS))
        .sort("panel", "scheme", "law", descending=[True, False, False])
    )
    by = Kinds("scheme", LOOKS).among(data["scheme"])
    panels: list[plots.Panel] = []
    for name in PANELS.values():
        own = data.filter(panel=name)
        low, high = plots.least(own["predictor"]) / 1.3, plots.most(own["predictor"]) * 1.3
        x = plots.log("predictor", f"{name} (log scale)", own["predictor"])
        x = x.but(values=[tick for tick in TICKS if low <= tick <= high], domain=[low, high])
        y = plots.log("error", "2 n times the divergence (log scale)", [*data["low"], *data["high"]])
        y = y.but(**{"title": None} if panels else {})
        layers = plots.points(
            own, x, y, by, ends=("low", "high"), hollow="seen", tips=["law", "k", "models"], opacity=0.9
        )
        if name == PANELS["modes"]:
            ends = [plots.least(own["predictor"]), plots.most(own["predictor"])]
            layers = [
                *plots.lines(pl.DataFrame({"predictor": ends, "error": ends}), x, y, charts.GREY, strokeDash=[4, 3]),
                *layers,
            ]
        panels.append(plots.panel(layers, None, 260, 260))
    asked = [EXPECTED[SEEN], FOLLOWS[CONSTANT, ONLY_PAIRS], FOLLOWS[OVER_MODES, ONLY_PAIRS]]
    ratio, constant, modes = comparisons.read(context, asked)["value"].to_list()
    mixing = same.filter((pl.col("rarest") >= SEEN_OFTEN) & (pl.col("k") < pl.col("k").max()))
    near = mixing.filter((pl.col("scaled_kl") / pl.col("modes")).is_between(0.8, 1.2)).height
    words = plots.tell(same.sort("law", "modes"), "{law}, {scheme}: C {C:.2f}, sum {modes:.1f}, error {scaled_kl:.1f}")
    return plots.figure(
        plots.grid(panels),
        data,
        f"Where contexts are seen, masked Transformers err {number(ratio, 2)} times as much as modes say, on average",
        f"Correlation within laws over sets of pairs: with C {number(constant, 2)}, with the sum over all modes "
        f"{number(modes, 2)}; {n:,} states, one mask for each. Points: means of "
        f"{plots.count(data['models'], 'model')}, bars: a standard error to each side, {same['law'].n_unique()} laws "
        f"of four spins; dashed: equal. Hollow: a mask with what it leaves is expected fewer than {SEEN_OFTEN:g} "
        f"times; they and masks of all are not in the number above, of whose {mixing.height} points {near} are within "
        "a fifth of the line",
        told=f"2 n times the divergence of a Transformer’s law from the true one: {words}.",
    )
