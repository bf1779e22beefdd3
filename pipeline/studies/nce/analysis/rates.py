"""Rates in R: straight lines through logarithms, with intervals (Liu 2024, Lemmas 46, 47, Theorems 17 to 19)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from schemas.nce.tables import ENCE, GD, INVERSE, NCE, NEWTON, NGD, TENTH, THEOREM_19

LOG_R, R_SQUARED = "log R", "R^2"


@dataclass(frozen=True)
class Line:
    """A least-squares line and the two-sided t interval of its slope."""

    slope: float
    lo: float
    hi: float
    intercept: float
    residuals: np.ndarray


def line(x: np.ndarray, y: np.ndarray, confidence: float) -> Line:
    """The line through at least three points."""
    fit = stats.linregress(x, y)
    margin = fit.stderr * stats.t.ppf((1 + confidence) / 2, len(x) - 2)
    residuals = y - fit.intercept - fit.slope * x
    return Line(fit.slope, fit.slope - margin, fit.slope + margin, fit.intercept, residuals)


@dataclass(frozen=True)
class Rate:
    """One quantity over R, and what theory predicts for its slope."""

    quantity: str
    loss: str
    against: str
    predicted: float | None
    printed: float | None = None


LANDSCAPE = [  # the factor exp(-R^2/8) taken out
    Rate("loss_opt", NCE, LOG_R, -1.0),
    Rate("sig_max", NCE, LOG_R, 1.0),
    Rate("sig_max", ENCE, LOG_R, 2.0),
    Rate("sig_min", NCE, LOG_R, -5.0, -1.0),
    Rate("sig_min", ENCE, LOG_R, -2.0),
    Rate("kappa", NCE, LOG_R, 6.0, 2.0),
    Rate("kappa", ENCE, LOG_R, 4.0),
]
STEPS = {
    (GD, TENTH): [Rate("GD steps", NCE, R_SQUARED, None)],
    (NEWTON, TENTH): [Rate("Newton steps", loss, R_SQUARED, None) for loss in (NCE, ENCE)],
    (NGD, INVERSE): [Rate("NGD steps", NCE, LOG_R, 6.0), Rate("NGD steps", ENCE, LOG_R, 5.0)],
}


def analyse(context: Any, landscape: pl.DataFrame, steps: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Tables ``rates`` and ``rate_points``. A rate with fewer than three points is left out."""
    fits = [
        (rate, r, y, fitted)
        for rate, r, y in _series(context.entry.analysis.fits, landscape, steps)
        for fitted in ([line(_x(rate, r), y, context.entry.analysis.confidence)] if len(r) > 2 else [])
    ]
    rows = [
        {
            "quantity": rate.quantity, "loss": rate.loss, "against": rate.against,
            "first_R": r.min(), "last_R": r.max(), "points": len(r),
            "slope": fit.slope, "lo": fit.lo, "hi": fit.hi, "intercept": fit.intercept,
            "largest_residual": float(np.abs(fit.residuals).max()),
            "predicted": rate.predicted, "printed": rate.printed,
        }
        for rate, r, y, fit in fits
    ]  # fmt: skip
    points = [
        pl.DataFrame({"R": r, "x": _x(rate, r), "y": y, "residual": fit.residuals}).with_columns(
            quantity=pl.lit(rate.quantity), loss=pl.lit(rate.loss)
        )
        for rate, r, y, fit in fits
    ]
    optional = {"predicted": pl.Float64, "printed": pl.Float64}
    return {
        name: pl.concat(frames)
        for name, frames in (
            ("rates", [pl.DataFrame(rows, schema_overrides=optional)]),
            ("rate_points", points),
        )
        if rows
    }


def _x(rate: Rate, r: np.ndarray) -> np.ndarray:
    return np.log(r) if rate.against == LOG_R else r**2


def _series(
    fits: Any, landscape: pl.DataFrame, steps: pl.DataFrame
) -> Iterator[tuple[Rate, np.ndarray, np.ndarray]]:
    for rate in LANDSCAPE:
        rows = landscape.filter(pl.col("R").is_between(*fits.landscape), loss=rate.loss).sort("R")
        r, value = rows["R"].to_numpy(), rows[rate.quantity].to_numpy()
        yield rate, r, np.log(value) + (0 if rate.quantity == "kappa" else r**2 / 8)
    for (optimizer, target), rates in STEPS.items():
        inside = pl.col("R").is_between(*(fits.ngd if optimizer == NGD else fits.exponential))
        for rate in rates:
            rows = steps.filter(
                inside, pl.col("steps") > 0, pl.col("rule") != THEOREM_19,
                loss=rate.loss, optimizer=optimizer, target=target,
            ).sort("R")  # fmt: skip
            yield rate, rows["R"].to_numpy(), np.log(rows["steps"].to_numpy())
