"""N7: log-ratios of images while they train, step sizes selected by two rules, GD against NGD (Figure 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.studies.nce.comparisons import EVERY_SEED, FASTER, QUANTITIES, SETTINGS
from pipeline.studies.nce.measures.edges import at_edge
from pipeline.studies.nce.measures.seeds import compare
from pipeline.studies.nce.names import DIGITS, RUN_OF
from schemas.nce.tables import AREA, GD, IMAGE_SELECTIONS, NGD, S_AREA

if TYPE_CHECKING:
    from pipeline.studies.nce.params import ImageRuns

OPTIMIZERS = {"sgd": GD, "normalised_sgd": NGD}
TABLES = ("digits_noise", "digits_runs", "digits_final", "digits_selected", "comparisons")
METHOD = ["dataset", "q_kind", "loss", "optimizer"]
MODEL = [*METHOD, "eta", "seed"]
MEASURED = [
    *("train_loss", "test_loss", "train_nce_loss", "min_train_loss", "batch_loss"),
    *("clip_fraction", "grad_norm", "skipped", "diverged"),
]
# Of the curves, what the objective and the optimizer measure beside loss and accuracy
CURVES = ("train_loss", "test_loss", "train_nce_loss", "clip_fraction", "gradient_norm", "skipped")


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the tables of N7; without trained runs those of models have no rows."""
    runs, settings, found = context.runs(), context.entry, Measurements(context)
    tables: dict[str, pl.DataFrame | None] = dict.fromkeys(TABLES)
    if runs:
        curves = pl.concat(_curves(context, run, settings.clipped) for run in runs).sort(*MODEL, "step")
        final = _final(curves, settings)
        selected = pl.concat(_selected(final, rule) for rule in IMAGE_SELECTIONS)
        _compare(context, found, final, selected)
        tables |= {"digits_runs": curves, "digits_final": final, "digits_selected": selected}
        if noise := list(_noise(context, runs)):
            tables["digits_noise"] = pl.DataFrame(noise).unique(["q_kind", "seed"]).sort("q_kind", "seed")
    return tables | {"comparisons": found.table()}


def _curves(context: Inputs, run: str, clipped: float) -> pl.DataFrame:
    """Return the curves of a run with step size and seed of each model, and from where it counts as diverged.

    It does from where a loss is not finite (null here, as are all that follow), or more than ``clipped`` of
    the log-ratios are cut off.
    """
    header = context.run_header(run)
    entry = header["entry"]
    models = pl.DataFrame(
        {"replica": pl.Series(range(len(header["lr"])), dtype=pl.Int32), "eta": header["lr"], "seed": header["streams"]}
    )
    frame = context.curves(run).join(models, on="replica").sort("replica", "step")
    # A column without any value is not there: gradient descent skips no step, and every model may diverge at once.
    absent = {name for name in CURVES if name not in frame.columns}
    frame = frame.with_columns(pl.lit(0.0 if name == "skipped" else None, pl.Float64).alias(name) for name in absent)
    gone = pl.col("train_loss").is_null() | (pl.col("clip_fraction") > clipped).fill_null(False)
    since = pl.col("step") - pl.col("step").shift(1, fill_value=0).over("replica")
    kept = pl.when(~pl.col("diverged")).then("train_loss")
    named = {name: pl.lit(entry[name]).alias(name) for name in ("dataset", "q_kind", "loss")}
    return (
        frame.rename({"loss": "batch_loss", "gradient_norm": "grad_norm"})
        .with_columns(gone.cum_max().over("replica").alias("diverged"))
        .with_columns(
            kept.cum_min().forward_fill().over("replica").alias("min_train_loss"),
            (pl.col("skipped").fill_null(0.0) * since).round().cast(pl.Int32).alias("skipped"),
            pl.lit(OPTIMIZERS[entry["optimizer"]]).alias("optimizer"),
            *named.values(),
        )
        .select(*MODEL, "step", *MEASURED)
    )


def _final(curves: pl.DataFrame, settings: ImageRuns) -> pl.DataFrame:
    """Return one row per model: areas per update, up to ``settings.area_until``; early and last losses."""
    until = pl.col("dataset").replace_strict(settings.area_until, default=None, return_dtype=pl.Int32)
    within = (pl.col("step") <= until).fill_null(True)
    areas = curves.filter(within).group_by(MODEL).agg(*_areas())
    step, sound = pl.col("step"), ~pl.col("diverged").any()
    measured = {
        "early_loss": pl.col("train_loss").filter(step == settings.early).first(),
        "final_train_loss": pl.col("train_loss").last(),
        "final_test_loss": pl.col("test_loss").last(),
    }
    final = curves.group_by(MODEL, maintain_order=True).agg(
        *(pl.when(sound).then(value).alias(name) for name, value in measured.items()),
        pl.lit(settings.early, pl.Int32).alias("early_step"),
        pl.col("min_train_loss").last(),
        pl.col("skipped").sum(),
        pl.col("diverged").any(),
    )
    return final.join(areas, on=MODEL, how="left", maintain_order="left")


def _areas() -> list[pl.Expr]:
    """Return expressions of two areas per update, by model.

    One is under the training loss from its first measurement on, by trapezoids, the other under that of all
    batches.
    """
    step, since = pl.col("step"), pl.col("step") - pl.col("step").shift(1, fill_value=0)
    trapezoids = (pl.col("train_loss") + pl.col("train_loss").shift(1)) / 2 * since
    span = step.last() - step.first()
    area = pl.when(span > 0).then(trapezoids.slice(1).sum() / span).otherwise(pl.col("train_loss").last())
    batches = (pl.col("batch_loss") * since).sum() / step.last()
    sound = ~pl.col("diverged").any()
    return [pl.when(sound).then(value).alias(name) for name, value in (("area", area), ("batch_area", batches))]


def _selected(final: pl.DataFrame, rule: str) -> pl.DataFrame:
    """Return the step size that ``rule`` takes for each method.

    Of those at which no seed diverged, it is the one with the smallest mean over seeds of the area under the
    training loss, or of the test loss at the end.
    """
    measured = ["area", "early_loss", "final_train_loss", "final_test_loss"]
    by_eta = final.group_by([*METHOD, "eta"], maintain_order=True).agg(
        *(pl.col(name).mean() for name in measured), pl.len().alias("seeds"), pl.col("diverged").any()
    )
    order = "area" if rule == S_AREA else "final_test_loss"
    return (
        by_eta.with_columns(pl.col("diverged").sum().over(METHOD).alias("etas_diverged"), pl.lit(rule).alias("rule"))
        .filter(~pl.col("diverged"))
        .sort(*METHOD, order, "eta")
        .group_by(METHOD, maintain_order=True)
        .first()
        .drop("diverged")
        .pipe(at_edge, final, METHOD)
    )


def _compare(context: Inputs, found: Measurements, final: pl.DataFrame, selected: pl.DataFrame) -> None:
    """Measure NGD against GD, each at its step size of smallest mean area, on images that both were trained on."""
    key, confidence = [*METHOD, "eta"], context.settings.confidence
    best = final.join(selected.filter(rule=S_AREA).select(key), on=key)
    trained = set(context.runs())
    for dataset, noise, loss in SETTINGS:
        where = {"dataset": dataset, "q_kind": noise, "loss": loss}
        if not trained.issuperset(RUN_OF[dataset, noise, loss, optimizer] for optimizer in (GD, NGD)):
            continue
        tried = final.filter(**where)
        ngd, gd = (best.filter(optimizer=optimizer, **where) for optimizer in (NGD, GD))
        for quantity in QUANTITIES:
            comparison = FASTER[dataset, noise, loss, quantity]
            compare(found, comparison, tried, ngd, gd, quantity, confidence)
        compare(found, EVERY_SEED[dataset, noise, loss], tried, ngd, gd, AREA, confidence)


def _noise(context: Inputs, runs: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the noise of each seed, from the table of a checkpoint: its mean and the factor of its covariance."""
    for run in runs:
        entry = context.run_header(run)["entry"]
        if entry["dataset"] != DIGITS:
            continue
        table_SxNxD = context.model(run).table.numpy().astype(np.float64)
        for seed, (mean, *factor) in enumerate(table_SxNxD):
            # Not a matrix product: its last bits depend on the number of threads.
            covariance = np.einsum("ik,jk->ij", np.array(factor), np.array(factor))
            yield {
                "q_kind": entry["q_kind"],
                "seed": seed,
                "mean": mean.tolist(),
                "cov": covariance.reshape(-1).tolist(),
            }
