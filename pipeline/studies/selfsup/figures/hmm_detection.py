"""Beyond the source, as figures: how many triples tell a twin, by its angle, and whether simulation agrees."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from pipeline.kit import charts, comparisons
from pipeline.kit.charts import Figure, number
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import DETECTION_FALLS, PAIRS_TOLD, POWER_APART, TESTS
from pipeline.studies.selfsup.figures.common import count, lines_legend, log_axis, panel_title

COLOURS = {TESTS[0]: charts.BLUE, TESTS[1]: charts.VERMILLION}

NEEDED = "triples for power 0.9 at level 0.05 (log)"


def detection(context: Results) -> Figure:
    """Triples that are needed against the angle, for both tests, with the law of small angles."""
    data = context.table("hmm_detection").with_columns(degrees=pl.col("theta").degrees())
    low, high = 0.5 * data["needed"].to_numpy().min(), 2 * data["needed"].to_numpy().max()
    x = alt.X(
        "degrees:Q",
        title="angle between model and twin (degrees, log)",
        scale=alt.Scale(type="log", domain=[0.6 * data["degrees"].to_numpy().min(), 70], nice=False),
        axis=alt.Axis(values=[1, 2, 5, 10, 20, 60]),
    )
    y = alt.Y("needed:Q", title=NEEDED, **log_axis(low, high))
    colour = alt.Color(
        "test:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=lines_legend()
    )
    base = alt.Chart(data)
    law = base.mark_line(strokeDash=[4, 3], opacity=0.5).encode(
        x, alt.Y("law:Q", title=NEEDED, **log_axis(low, high)), colour, detail=["instance_id:N", "test:N"]
    )
    lines = base.mark_line(strokeWidth=1.4, opacity=0.8).encode(x, y, colour, detail=["instance_id:N", "test:N"])
    points = base.mark_point(filled=True, size=22, opacity=0.9).encode(
        x, y, colour, tooltip=["instance_id", "test", "degrees", "needed", "law", "power", "expected"]
    )
    slopes = comparisons.read(context, DETECTION_FALLS.values())
    said = "; ".join(
        f"{test}: slope {number(value)}" for test, value in zip(TESTS, slopes["value"].to_list(), strict=True)
    )
    quotient = data.pivot("test", index=["instance_id", "share"], values="needed")
    ratio = float((quotient[TESTS[1]] / quotient[TESTS[0]]).to_numpy().mean())
    near = bool(((slopes["lo"] >= -2.1) & (slopes["hi"] <= -1.9)).fill_null(False).all())
    title = alt.TitleParams(
        "Half the angle between twins takes four times the triples" if near else "Triples that tell twins apart",
        subtitle=[
            f"{data['instance_id'].n_unique()} models (d = 6, k = 3); dashed: by the Fisher information at 0; {said}",
            f"A test without a second model takes {ratio:.1f} times as many triples, on average",
        ],
    )
    words = f"Triples needed against the angle, {said}; Pearson over likelihood ratio {ratio:.2g}."
    return alt.layer(law, lines, points).properties(width=500, height=300, title=title, description=words), data


def detection_power(context: Results) -> Figure:
    """Power in simulation beside theory, and what counts of pairs tell."""
    table = context.table("hmm_detection").with_columns(degrees=pl.col("theta").degrees())
    names = {"power": "triples of the twin", "level": "triples of the model itself", "pairs": "pairs of the twin"}
    data = table.unpivot(list(names), index=["instance_id", "test", "degrees"], variable_name="what", value_name="told")
    data = data.with_columns(pl.col("what").replace_strict(names))
    colours = [charts.BLUE, charts.GREY, charts.VERMILLION]
    colour = alt.Color(
        "what:N",
        title="counts of",
        scale=alt.Scale(domain=list(names.values()), range=colours),
        legend=alt.Legend(orient="bottom"),
    )
    shape = alt.Shape("what:N", title="counts of", scale=alt.Scale(domain=list(names.values())))
    bars = (
        alt.Chart(pl.DataFrame({"told": [0.05, 0.9]}))
        .mark_rule(color=charts.BLACK, strokeDash=[4, 3])
        .encode(y="told:Q")
    )
    panels = []
    for place, test in enumerate(TESTS):
        points = (
            alt.Chart(data.filter(test=test))
            .mark_point(filled=True, size=30, opacity=0.7)
            .encode(
                alt.X(
                    "degrees:Q",
                    title="angle (degrees, log)",
                    axis=alt.Axis(values=[1, 2, 5, 10, 20, 60]),
                    scale=alt.Scale(type="log", domain=[0.6 * data["degrees"].to_numpy().min(), 70], nice=False),
                ),
                alt.Y(
                    "told:Q",
                    title="share of samples told apart" if place == 0 else None,
                    scale=alt.Scale(domain=[0, 1]),
                    axis=alt.Axis(values=charts.UNIT),
                ),
                colour,
                shape,
            )
        )
        panels.append(alt.layer(bars, points).properties(width=270, height=230, title=panel_title(f"Test: {test}")))
    apart = comparisons.read(context, POWER_APART.values())["value"].to_list()
    pairs = comparisons.read(context, PAIRS_TOLD.values())["value"].to_list()
    good = None not in apart and max(map(abs, apart)) < 0.02
    title = alt.TitleParams(
        "Simulated power is what theory says, and pairs tell nothing" if good else "Power in simulation",
        subtitle=[
            f"{count(table['draws'])} samples a point, as large as theory asks for; dashed: power 0.9, level 0.05",
            f"Simulated less expected power: {', '.join(f'{value:+.3f}' for value in apart)}",
        ],
    )
    words = (
        f"Share of samples told apart against the angle; pairs alone: {', '.join(f'{value:.3f}' for value in pairs)} "
        f"(level 0.05). Mean power {np.mean(table['power'].to_numpy()):.3f}."
    )
    return alt.hconcat(*panels, spacing=22).properties(title=title, description=words), data
