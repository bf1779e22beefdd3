"""Which masks train a small Transformer best, beside what is exact of them."""

from __future__ import annotations

import altair as alt
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.parallel.comparisons import CONSTANT, EXPECTED, FOLLOWS, ONLY_PAIRS, OVER_MODES, SEEN, SEEN_OFTEN
from pipeline.studies.parallel.figures.common import logarithmic
from schemas.parallel.tables import ALIGNED, ALL, CROSSED, MISALIGNED, PAIRS, SINGLES

LOOKS = {
    SINGLES: (charts.ORANGE, "circle"),
    MISALIGNED: (charts.PURPLE, "triangle-down"),
    CROSSED: (charts.VERMILLION, "triangle-up"),
    PAIRS: (charts.SKY, "square"),
    ALIGNED: (charts.BLUE, "diamond"),
    ALL: (charts.BLACK, "cross"),
}
RARE = "rare contexts"
TICKS = [1, 2, 5, 10, 20, 50, 100, 200]
PANELS = {"C": "Poincaré constant C", "modes": "sum over all modes"}


def learning(context: Results) -> Figure:
    """Errors of masked Transformers against the Poincare constant, and against the sum over all modes."""
    cells = context.table("par_scheme")
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
            shown=pl.when(pl.col("rarest") >= SEEN_OFTEN).then(pl.lit("all contexts seen")).otherwise(pl.lit(RARE)),
            error="scaled_kl",
            low=pl.max_horizontal(pl.col("scaled_kl") - pl.col("scaled_se"), pl.lit(1.0)),
            high=pl.col("scaled_kl") + pl.col("scaled_se"),
        )
        .unpivot(
            list(PANELS),
            index=["law", "scheme", "k", "models", "shown", "error", "low", "high"],
            variable_name="panel",
            value_name="predictor",
        )
        .with_columns(pl.col("panel").replace(PANELS))
        .sort("panel", "scheme", "law", descending=[True, False, False])
    )
    names = [scheme for scheme in LOOKS if scheme in data["scheme"].unique().to_list()]
    colours, shapes = zip(*(LOOKS[scheme] for scheme in names), strict=True)
    y = logarithmic([*data["low"], *data["high"]], "2 n times the divergence", format="~g")
    colour = alt.Color(
        "scheme:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=list(colours)),
        legend=alt.Legend(symbolOpacity=1),
    )
    shape = alt.Shape("scheme:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(shapes)))
    parts = []
    for panel in PANELS.values():
        own = data.filter(panel=panel)
        x = logarithmic(own["predictor"].to_list(), panel) | {"axis": alt.Axis(values=TICKS)}
        base = alt.Chart(own).encode(x=alt.X("predictor:Q", **x), color=colour)
        layers = [
            base.mark_rule(strokeWidth=1.2, opacity=0.5).encode(y=alt.Y("low:Q", **y), y2="high:Q"),
            base.mark_point(size=55, opacity=0.9, strokeWidth=1.5).encode(
                y=alt.Y("error:Q", **y),
                shape=shape,
                fill=alt.condition(f"datum.shown == '{RARE}'", alt.value("transparent"), colour),
                tooltip=["law", "scheme", "k", "predictor", "error", "models", "shown"],
            ),
        ]
        if panel == PANELS["modes"]:
            both = [*own["predictor"], *own["error"]]
            span = max(min(own["predictor"]), min(both)), min(max(own["predictor"]), max(both))
            ends = pl.DataFrame({"predictor": span, "error": span})
            line = alt.Chart(ends).mark_line(color=charts.GREY, strokeDash=[4, 3])
            layers.insert(0, line.encode(x="predictor:Q", y="error:Q"))
        parts.append(alt.layer(*layers).properties(width=250, height=260))
    asked = [EXPECTED[SEEN], FOLLOWS[CONSTANT, ONLY_PAIRS], FOLLOWS[OVER_MODES, ONLY_PAIRS]]
    ratio, constant, modes = comparisons.read(context, asked)["value"].to_list()
    title = alt.TitleParams(
        f"Where contexts are seen, masked Transformers err {number(ratio, 2)} times as much as modes say",
        subtitle=[
            f"Correlation within laws over sets of pairs: with C {number(constant, 2)}, "
            f"with the sum over all modes {number(modes, 2)}; {n:,} states, one mask for each",
            f"Points: means of {data['models'][0]} models with their standard error, {same['law'].n_unique()} laws "
            "of four spins; dashed: equal",
            f"Hollow: a mask with what it leaves is expected fewer than {SEEN_OFTEN:g} times; not in the number above",
        ],
    )
    words = "2 n times the divergence of a Transformer's law from the true one: " + "; ".join(
        f"{row['law']}, {row['scheme']}: C {number(row['C'])}, sum {number(row['modes'], 1)}, "
        f"error {number(row['scaled_kl'], 1)}"
        for row in same.sort("law", "modes").iter_rows(named=True)
    )
    return alt.hconcat(*parts).properties(title=title, description=f"{words}."), data
