"""Beyond the source, as figures: how many triples tell a twin, by its angle, and whether simulation agrees."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, comparisons, plots
from pipeline.kit.charts import Figure, number
from pipeline.kit.plots import Axis
from pipeline.kit.results import Results
from pipeline.studies.selfsup.comparisons import DETECTION_FALLS, PAIRS_TOLD, POWER_APART, TESTS
from pipeline.studies.selfsup.figures.common import GUIDE, spanning

BY_TEST = plots.kinds(dict(zip(TESTS, (charts.BLUE, charts.VERMILLION), strict=False)), "test", dashes=False)
OF = {
    "triples of the twin": charts.BLUE,
    "triples of the model itself": charts.GREY,
    "neighbours of the twin": charts.VERMILLION,
    "first and last tokens of the twin": charts.ORANGE,
}


def _angle(data: pl.DataFrame, title: str) -> Axis:
    ends = [0.6 * plots.least(data["degrees"]), 70]
    return Axis("degrees", title, log=True, domain=ends, values=[1, 2, 5, 10, 20, 60])


@plots.drawn("Triples that tell twins apart")
def detection(context: Results) -> Figure:
    """Triples that are needed against the angle, for both tests, with the law of small angles."""
    data = plots.some(context.table("hmm_detection")).with_columns(
        pl.format("{} {}", "instance_id", "test").alias("line"), degrees=pl.col("theta").degrees()
    )
    x = _angle(data, "angle between model and twin (degrees, log)")
    y = spanning("needed", "triples for power 0.9 at level 0.05", data["needed"], room=2)
    slopes = comparisons.read(context, DETECTION_FALLS.values()).with_columns(test=pl.Series(list(TESTS)))
    said = plots.tell(slopes, "{test}: slope {value:.2f}")
    quotient = data.pivot("test", index=["instance_id", "share"], values="needed")
    ratio = float((quotient[TESTS[1]] / quotient[TESTS[0]]).to_numpy().mean())
    near = bool(((slopes["lo"] >= -2.1) & (slopes["hi"] <= -1.9)).fill_null(False).all())
    return plots.figure(
        [
            *plots.lines(data, x, y.but(field="law"), BY_TEST, each="line", strokeDash=GUIDE, opacity=0.5),
            *plots.lines(data, x, y, BY_TEST, each="line", strokeWidth=1.4, opacity=0.8),
            *plots.points(data, x, y, BY_TEST.along(), tips=["instance_id", "power", "expected"], size=22, opacity=0.9),
        ],
        data.drop("line"),
        "At small angles half the angle between twins takes four times the triples"
        if near
        else "Triples that tell twins apart",
        f"A line is one of {plots.count([data['instance_id'].n_unique()], 'model')} (d = 6, k = 3); dashed: by the "
        f"Fisher information at 0; {said}",
        f"A test without a second model takes {ratio:.1f} times as many triples, on average",
        told=f"Triples needed against the angle, {said}; Pearson over likelihood ratio {ratio:.2g}.",
        width=500,
        height=300,
    )


@plots.drawn("Power in simulation")
def detection_power(context: Results) -> Figure:
    """Power in simulation beside theory, and what counts of pairs tell."""
    table = plots.some(context.table("hmm_detection")).with_columns(degrees=pl.col("theta").degrees())
    names = dict(zip(("power", "level", "pairs", "ends"), OF, strict=True))
    data = table.unpivot(list(names), index=["instance_id", "test", "degrees"], variable_name="what", value_name="told")
    data = data.with_columns(pl.col("what").replace_strict(names))
    by = plots.kinds(OF, "what", shapes=True, title="counts of")
    x = _angle(data, "angle (degrees, log)")
    y = plots.share("told", "share of samples told apart")
    bars = [*plots.rule(y, 0.9, dash=GUIDE), *plots.rule(y, 0.05, dash=GUIDE)]
    panels = [
        plots.panel(
            [*bars, *plots.points(data.filter(test=test), x, y, by, tips=["instance_id"], size=30, opacity=0.7)],
            f"Test: {test}",
            265,
            230,
        )
        for test in TESTS
    ]
    apart, pairs = (comparisons.read(context, each.values()) for each in (POWER_APART, PAIRS_TOLD))
    mean = float(table["power"].to_numpy().mean())
    good = not apart["value"].has_nulls() and plots.most(apart["value"].abs()) < 0.02
    return plots.figure(
        plots.grid(panels, spacing=22),
        data,
        "Simulated power is what theory says, and pairs tell nothing" if good else "Power in simulation",
        f"A point is one of {plots.count([table['instance_id'].n_unique()], 'model')} at one angle: "
        f"{plots.count(table['draws'], 'sample')}, as large as theory asks for",
        f"Dashed: power 0.9, level 0.05. Simulated less expected power: {plots.tell(apart, '{value:+.3f}', ', ')}",
        told="Share of samples told apart against the angle; pairs alone: "
        f"{plots.tell(pairs, '{value:.3f}', ', ')} (level 0.05). Mean power {number(mean, 3)}.",
    )
