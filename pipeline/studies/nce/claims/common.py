"""What claims of this study share."""

from __future__ import annotations

import polars as pl

from pipeline.kit.verdicts import Condition, Measured

SOURCE = "Liu 2024, {}"


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """The value lies in [low, high]."""
    return Condition("value", ">=", low), Condition("value", "<=", high)


def read(rows: pl.DataFrame, value: pl.Expr, missing: str, least: int = 1) -> tuple[Measured | None, str]:
    """``value`` over ``rows``; or None, with ``missing`` saying why, where there are fewer than ``least`` rows."""
    return (Measured(rows.select(value).item()), "") if rows.height >= least else (None, missing)


def slope(rates: pl.DataFrame, quantity: str, loss: str) -> tuple[Measured | None, str]:
    """The slope of one fit with its interval."""
    rows = rates.filter(quantity=quantity, loss=loss)
    if not rows.height:
        return None, f"fewer than three R of {quantity} are in params.yaml"
    row = rows.row(0, named=True)
    return Measured(row["slope"], row["lo"], row["hi"]), ""
