"""Log-ratios of images: loss against updates (Liu 2024, Figure 4.3), on the stand-in for MNIST."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.charts import Figure
from pipeline.kit.plots import Axis, Kinds, Look
from pipeline.kit.results import Results
from pipeline.studies.nce.figures.common import CROSS
from pipeline.studies.nce.names import DIGITS, LOSS_NAMES, MNIST
from schemas.nce.tables import ENCE, GD, IMAGE_SELECTIONS, NCE, NGD, S_AREA, S_LOSS

# As published: GD black in both panels, NGD yellow for NCE and blue for eNCE.
COLOURS = {NCE: {GD: charts.BLACK, NGD: charts.ORANGE}, ENCE: {GD: charts.BLACK, NGD: charts.BLUE}}
METHODS = {(loss, name): f"{shown}, {name.upper()}" for loss, shown in LOSS_NAMES.items() for name in (GD, NGD)}
IMAGES = {DIGITS: "8 × 8 digits", MNIST: "MNIST"}
NOISES = {"full": "noise with the covariance of the images", "diag": "noise with its diagonal alone"}
RULES = {S_AREA: "smallest area under the training loss", S_LOSS: "lowest test loss at the end"}
DRAWN = {S_AREA: "train_loss", S_LOSS: "test_loss"}  # the loss that the rule looks at
NAMED = {"train_loss": "training loss", "test_loss": "test loss"}
CHANCE = {NCE: math.log(2), ENCE: 1.0}  # loss of a log-ratio of 0
SMALLEST = 1e-8  # what is less is drawn there: a logarithmic axis has no 0


@plots.drawn("Loss of image log-ratios against updates")
def fig43(context: Results) -> Figure:
    """Figure 4.3: loss against updates, all step sizes faint, the selected one strong; rows by noise and rule, each
    with the loss that its rule looks at. × is the last point before a seed diverges."""
    data, selected = _lines(plots.some(context.table("digits_runs"))), context.table("digits_selected")
    blocks = list(
        data.select("dataset", "q_kind").unique().sort("dataset", "q_kind", descending=[False, True]).iter_rows()
    )
    rows = []
    for dataset, noise in blocks:
        for rule in IMAGE_SELECTIONS:
            own, taken = (
                data.filter(dataset=dataset, q_kind=noise),
                selected.filter(dataset=dataset, q_kind=noise, rule=rule),
            )
            panels = [_panel(own.filter(loss=loss), taken.filter(loss=loss), loss, DRAWN[rule]) for loss in (NCE, ENCE)]
            words = f"{IMAGES.get(dataset, dataset)}, {NOISES[noise]}; η: {RULES[rule]}"
            title = alt.TitleParams(words, fontSize=charts.SIZE, fontWeight="normal", offset=4)
            rows.append(plots.grid(panels, shared=False, spacing=24).properties(title=title))
    method = pl.struct("loss", "optimizer").map_elements(
        lambda row: METHODS[row["loss"], row["optimizer"]], return_dtype=pl.String
    )
    told = selected.with_columns(method=method)
    first = told.filter(dataset=blocks[0][0], q_kind=blocks[0][1], rule=S_AREA).sort("final_train_loss")
    summary = plots.tell(
        told,
        "{dataset}, {q_kind} noise, {method}, {rule}: η {eta:g}, loss {early_loss:.3g} early and "
        "{final_train_loss:.3g} at the end",
    )
    return plots.figure(
        plots.grid(rows, 1, shared=False),
        data,
        f"Training loss at the end, η by the {RULES[S_AREA]}: " + plots.tell(first, "{method} {final_train_loss:.2g}"),
        f"Strong: the step size η that a rule selects, mean of {plots.count(data['n'], 'seed')}, band from the least "
        "to the largest; faint: the other step sizes. Dashed: a log-ratio of 0, which tells nothing apart; ×: the last "
        "point before a seed diverges",
        told=f"Loss against updates. {summary}.",
    )


def _lines(runs: pl.DataFrame) -> pl.DataFrame:
    """Return mean, least and largest losses over seeds of each method and step size, while none diverged."""
    key = ["dataset", "q_kind", "loss", "optimizer", "eta", "step"]
    train, test = (pl.col(name).clip(SMALLEST) for name in NAMED)
    return (
        runs.group_by(key)
        .agg(
            train.mean(),
            train.min().alias("least"),
            train.max().alias("most"),
            test.mean(),
            test.min().alias("test_least"),
            test.max().alias("test_most"),
            pl.col("diverged").any(),
            n=pl.len(),
        )
        .sort(key)
        .with_columns((pl.col("diverged").shift(-1, fill_value=False).over(key[:-1])).alias("last"))
        .filter(~pl.col("diverged"))
        .drop("diverged")
    )


def _panel(data: pl.DataFrame, selected: pl.DataFrame, loss: str, drawn: str) -> plots.Panel:
    ends = ("least", "most") if drawn == "train_loss" else ("test_least", "test_most")
    taken = selected.select("optimizer", "eta", pl.lit(True).alias("selected"))
    etas = dict(taken.select("optimizer", "eta").iter_rows())
    names = {name: f"{METHODS[loss, name]}" + (f", η = {etas[name]:g}" if name in etas else "") for name in (GD, NGD)}
    shown = data.join(taken, on=["optimizer", "eta"], how="left", maintain_order="left").with_columns(
        pl.col("selected").fill_null(False),
        line=pl.format("{} {}", "optimizer", "eta"),
        method=pl.col("optimizer").replace_strict(names, return_dtype=pl.String),
    )
    spans = shown.select(*ends).to_numpy()
    low, high = (float(spans.min()), float(spans.max())) if len(spans) else (0.1, 1.0)
    low, high = min(low, 0.95 * CHANCE[loss]), max(high, 1.05 * CHANCE[loss])
    title = f"{NAMED[drawn]} (log scale)" if loss == NCE else None
    y = Axis(drawn, title, log=True, domain=[low, high], values=_ticks(low, high), more={"minExtent": 34})
    steps = shown["step"].to_list() or [0, 1]
    x = Axis("step", "updates", domain=[min(steps), max(steps)], count=4, more={"grid": False})
    by = Kinds("method", {name: Look(COLOURS[loss][own]) for own, name in names.items()})
    layers = [
        *plots.rule(y, CHANCE[loss], dash=[5, 3]),
        *plots.lines(shown.filter(~pl.col("selected")), x, y, by, each="line", strokeWidth=1, opacity=0.45),
        *plots.lines(shown.filter("selected"), x, y, by, band=ends, strokeWidth=2.5),
    ]
    if (last := shown.filter("last")).height:
        layers += plots.points(last, x, y, by.along(), shape=CROSS, size=110, strokeWidth=2)
    return plots.panel(layers, None, 244, 125)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers as ticks of a logarithmic axis, more of them where it is short."""
    digits = (1, 2, 3, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 300 else (1,)
    candidates = [round(digit * 10.0**power, 8) for power in range(-8, 7) for digit in digits]
    return [tick for tick in candidates if low <= tick <= high]
