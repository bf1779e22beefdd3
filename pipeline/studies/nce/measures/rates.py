"""Rates in R: straight lines through logarithms, and how straight they are (Liu 2024, Lemmas 46, 47, Theorems 17 to
19)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy import stats

from schemas.nce.tables import LOG_R, PLAIN_R, R_SQUARED


@dataclass(frozen=True)
class Line:
    """A least-squares line. Its points are computed exactly, so that its residuals are bend and no noise."""

    slope: float
    intercept: float
    residuals: np.ndarray


def line(x: np.ndarray, y: np.ndarray) -> Line:
    """Return the line through at least two points."""
    fit = stats.linregress(x, y)
    return Line(fit.slope, fit.intercept, y - fit.intercept - fit.slope * x)


@dataclass(frozen=True)
class Rate:
    """One quantity over R, and what theory predicts for its slope."""

    quantity: str
    loss: str
    against: str
    predicted: float | None
    printed: float | None = None

    def x(self, r: np.ndarray) -> np.ndarray:
        """Return the function of R that the logarithm of the quantity is linear in."""
        return np.log(r) if self.against == LOG_R else r**2


Series = tuple[Rate, np.ndarray, np.ndarray]  # a rate, R and the logarithms of its quantity


def fitted(series: Iterable[Series]) -> dict[str, pl.DataFrame | None]:
    """Return tables ``rates`` and ``rate_points``, without rates of fewer than three points.

    They are None if no rate is left.
    """
    fits = [(rate, r, y, line(rate.x(r), y)) for rate, r, y in series if len(r) > 2]
    if not fits:
        return {"rates": None, "rate_points": None}
    rows = [
        {
            "quantity": rate.quantity,
            "loss": rate.loss,
            "against": rate.against,
            "first_R": r.min(),
            "last_R": r.max(),
            "points": len(r),
            "slope": fit.slope,
            "intercept": fit.intercept,
            "largest_residual": float(np.abs(fit.residuals).max()),
            "predicted": rate.predicted,
            "printed": rate.printed,
        }
        for rate, r, _, fit in fits
    ]
    points = [
        pl.DataFrame({"R": r, "x": rate.x(r), "y": y, "residual": fit.residuals}).with_columns(
            quantity=pl.lit(rate.quantity), loss=pl.lit(rate.loss)
        )
        for rate, r, y, fit in fits
    ]
    optional = {"predicted": pl.Float64, "printed": pl.Float64}
    return {"rates": pl.DataFrame(rows, schema_overrides=optional), "rate_points": pl.concat(points)}


def growth(r: np.ndarray, y: np.ndarray, against: str, corrected: bool) -> dict[str, float]:
    """Return the least-squares fit y = a x + c, or a x + b log R + c where ``corrected``, and its AICc.

    ``against`` names x. The AICc is n log(RSS/n) + 2k + 2k(k + 1)/(n - k - 1) with k coefficients and the variance.
    """
    x = {LOG_R: np.log(r), PLAIN_R: r, R_SQUARED: r**2}[against]
    columns = [x, *([np.log(r)] if corrected else []), np.ones_like(r)]
    fit, *_ = np.linalg.lstsq(np.stack(columns, 1), y, rcond=None)
    residuals = y - np.stack(columns, 1) @ fit
    n, k = len(y), len(columns) + 1
    aicc = n * np.log((residuals**2).mean()) + 2 * k + 2 * k * (k + 1) / (n - k - 1)
    return {
        "slope": float(fit[0]),
        "power": float(fit[1]) if corrected else 0.0,
        "intercept": float(fit[-1]),
        "largest_residual": float(np.abs(residuals).max()),
        "aicc": float(aicc),
    }
