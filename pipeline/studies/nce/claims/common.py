"""What claims of this study share."""

from __future__ import annotations

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition
from pipeline.kit.evidence import Evidence

SOURCE = "Liu 2024, {}"
NOT_THERE = "no such R in params/nce/"


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies in [low, high]."""
    return Condition("value", ">=", low), Condition("value", "<=", high)


def defined(value: pl.Expr) -> pl.Expr:
    """Return ``value`` with NaN for null, which tables hold where a measurement is not defined."""
    return value.fill_null(float("nan"))


def bend(rates: pl.DataFrame, quantity: str, loss: str) -> str:
    """Return how far the points of a fit are from its line, for a measure; empty without the fit."""
    row = next(rates.filter(quantity=quantity, loss=loss).iter_rows(named=True), None)
    return f" (largest residual {row['largest_residual']:.2g})" if row else ""


def slope(rates: pl.DataFrame, quantity: str, loss: str) -> Evidence:
    """Return the slope of one fit, without an interval: what its points leave over is bend and no noise."""
    missing = f"fewer than three R of {quantity} are in params/nce/"
    return evidence.one_row(rates, missing, value="slope", quantity=quantity, loss=loss)
