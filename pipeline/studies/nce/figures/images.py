"""Log-ratios of images: training loss against updates (Liu 2024, Figure 4.3), on the stand-in for MNIST."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from pipeline.kit import charts
from pipeline.kit.charts import Figure
from pipeline.kit.results import Results
from pipeline.studies.nce.names import DIGITS, LOSS_NAMES, MNIST
from schemas.nce.tables import ENCE, GD, IMAGE_SELECTIONS, NCE, NGD, S_AREA, S_LOSS

# As published: GD black in both panels, NGD yellow for NCE and blue for eNCE.
COLOURS = {NCE: {GD: charts.BLACK, NGD: charts.ORANGE}, ENCE: {GD: charts.BLACK, NGD: charts.BLUE}}
METHODS = {(loss, name): f"{shown}, {name.upper()}" for loss, shown in LOSS_NAMES.items() for name in (GD, NGD)}
IMAGES = {DIGITS: "8 × 8 digits", MNIST: "MNIST"}
NOISES = {"full": "noise with the covariance of the images", "diag": "noise with its diagonal alone"}
RULES = {S_AREA: "smallest area under the training loss", S_LOSS: "lowest test loss at the end"}
CHANCE = {NCE: math.log(2), ENCE: 1.0}  # loss of a log-ratio of 0
SMALLEST = 1e-8  # what is less is drawn there: a logarithmic axis has no 0


def fig43(context: Results) -> Figure:
    """Figure 4.3: loss against updates, all step sizes faint, the selected one strong; rows by noise and
    rule."""
    data, selected = _lines(context), context.table("digits_selected")
    blocks = list(
        data.select("dataset", "q_kind").unique().sort("dataset", "q_kind", descending=[False, True]).iter_rows()
    )
    rows = [
        _row(
            data.filter(dataset=dataset, q_kind=noise), selected.filter(dataset=dataset, q_kind=noise, rule=rule), rule
        )
        for dataset, noise in blocks
        for rule in IMAGE_SELECTIONS
    ]
    title = alt.TitleParams(
        "Loss of image log-ratios against updates, GD and normalised GD",
        subtitle=[
            "Strong: the step size η that a rule selects, mean and range over seeds; faint: the other step sizes",
            "Dashed: a log-ratio of 0, which tells nothing apart; ×: the last point before a seed diverges",
        ],
    )
    summary = "; ".join(
        f"{row['dataset']}, {row['q_kind']} noise, {METHODS[row['loss'], row['optimizer']]}, {row['rule']}: "
        f"η {row['eta']:g}, loss {row['early_loss']:.3g} early and {row['final_train_loss']:.3g} at the end"
        for row in selected.iter_rows(named=True)
    )
    chart = alt.vconcat(*rows, spacing=14) if rows else alt.Chart(data).mark_point()
    return chart.properties(title=title, description=f"Training loss against updates. {summary}."), data


def _lines(context: Results) -> pl.DataFrame:
    """Return mean, least and largest training loss over seeds of each method and step size, while none diverged."""
    key = ["dataset", "q_kind", "loss", "optimizer", "eta", "step"]
    value = pl.col("train_loss").clip(SMALLEST)
    return (
        context.table("digits_runs")
        .group_by(key)
        .agg(value.mean(), value.min().alias("least"), value.max().alias("most"), pl.col("diverged").any())
        .sort(key)
        .with_columns((pl.col("diverged").shift(-1, fill_value=False).over(key[:-1])).alias("last"))
        .filter(~pl.col("diverged"))
        .drop("diverged")
    )


def _row(data: pl.DataFrame, selected: pl.DataFrame, rule: str) -> alt.HConcatChart:
    panels = [_panel(data.filter(loss=loss), selected.filter(loss=loss), loss) for loss in (NCE, ENCE)]
    dataset, noise = data.select("dataset", "q_kind").row(0)
    words = f"{IMAGES.get(dataset, dataset)}, {NOISES[noise]}; η: {RULES[rule]}"
    title = alt.TitleParams(words, fontSize=charts.SIZE, fontWeight="normal", offset=4)
    return alt.hconcat(*panels, spacing=24).properties(title=title).resolve_scale(color="independent")


def _panel(data: pl.DataFrame, selected: pl.DataFrame, loss: str) -> Any:
    taken = selected.select("optimizer", "eta", pl.lit(True).alias("selected"))
    shown = data.join(taken, on=["optimizer", "eta"], how="left").with_columns(
        pl.col("selected").fill_null(False),
        pl.concat_str("optimizer", pl.col("eta").cast(pl.String), separator=" ").alias("line"),
    )
    etas = dict(taken.select("optimizer", "eta").iter_rows())
    names = {name: f"{METHODS[loss, name]}" + (f", η = {etas[name]:g}" if name in etas else "") for name in (GD, NGD)}
    shown = shown.with_columns(pl.col("optimizer").replace_strict(names).alias("method"))
    spans = shown.select("least", "most").to_numpy()
    low, high = (float(spans.min()), float(spans.max())) if len(spans) else (0.1, 1.0)
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=_ticks(low, high), format="~g", titlePadding=4, minExtent=34)
    y = alt.Y("train_loss:Q", title="training loss (log)" if loss == NCE else None, scale=scale, axis=axis)
    # Given, for the layer of those that diverge may have no rows to take it from.
    steps = shown["step"].to_list() or [0, 1]
    span = alt.Scale(domain=[min(steps), max(steps)], nice=False)
    x = alt.X("step:Q", title="updates", scale=span, axis=alt.Axis(tickCount=4, grid=False, titlePadding=2))
    colour = alt.Color(
        "method:N",
        title=None,
        scale=alt.Scale(domain=list(names.values()), range=list(COLOURS[loss].values())),
        legend=alt.Legend(
            orient="top", direction="horizontal", offset=2, symbolType="stroke", symbolStrokeWidth=2.5, symbolOpacity=1
        ),
    )
    base = alt.Chart(shown)
    chosen = base.transform_filter(alt.datum.selected)
    chance = alt.Chart().mark_rule(color=charts.GREY, strokeDash=[5, 3]).encode(y=alt.datum(CHANCE[loss]))
    layers = [
        chance,
        base.transform_filter(~alt.datum.selected)
        .mark_line(strokeWidth=1, opacity=0.45)
        .encode(x, y, colour, detail="line:N"),
        base.transform_filter(alt.datum.last)
        .mark_text(text="×", fontSize=19, fontWeight="bold", baseline="middle")
        .encode(x, y, colour),
        chosen.mark_area(opacity=0.2).encode(x, alt.Y("least:Q", scale=scale), alt.Y2("most:Q"), colour),
        chosen.mark_line(strokeWidth=2.5).encode(x, y, colour),
    ]
    return alt.layer(*layers).properties(width=244, height=125)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers as ticks of a logarithmic axis, more of them where it is short."""
    digits = (1, 2, 3, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 300 else (1,)
    candidates = [round(digit * 10.0**power, 8) for power in range(-8, 7) for digit in digits]
    return [tick for tick in candidates if low <= tick <= high]
