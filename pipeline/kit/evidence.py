"""From rows of tables and theory checks to what a gate measures (`pipeline.kit.verdicts.Gate`).

Everything here returns ``(measured, missing)``: a `Measured` and "", or None and the reason why there is nothing to
test. No reduction skips a NaN: one measurement that failed makes the whole gate fail.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.extremes import column_max
from pipeline.kit.verdicts import Condition, Gate, Measured, Published, TooFew, defined, within
from schemas.claims import STATED

Evidence = tuple[Measured | None, str]


def reduced(rows: pl.DataFrame, value: pl.Expr, missing: str, least: int = 1) -> Evidence:
    """Return ``value`` over ``rows``, or ``missing`` where there are fewer than ``least`` rows."""
    return (Measured(rows.select(value).item()), "") if rows.height >= least else (None, missing)


def one_row(table: pl.DataFrame, missing: str, /, value: str = "value", **where: Any) -> Evidence:
    """Return the first row of ``table`` that fits ``where``: its columns ``value``, ``lo`` and ``hi`` and, where the
    table has them, ``n``, ``n_excluded`` and ``excluded_reason``."""
    rows = table.filter(**where)
    if not rows.height:
        return None, missing
    row = rows.row(0, named=True)
    return Measured(
        row[value],
        row.get("lo"),
        row.get("hi"),
        row.get("n"),
        row.get("n_excluded", 0),
        row.get("excluded_reason", ""),
    ), ""


def enough(measured: Measured | None, missing: str, fewest: int) -> Evidence:
    """Return the same evidence; of fewer than ``fewest`` models none, and what they gave as the reason."""
    if measured is None or not defined(measured.value) or (measured.n or 0) >= fewest:
        return measured, missing
    return None, TooFew(f"{measured.value:.3g} of {measured.n} models; a verdict needs {fewest}")


# Theory checks


def checks(theory: pl.DataFrame, pattern: str, value: pl.Expr) -> Evidence:
    """Return ``value`` over the theory checks whose names match the regular expression ``pattern``.

    A check whose measurement is NaN makes it NaN, whatever ``value`` does with NaN.
    """
    rows = theory.filter(pl.col("check").str.contains(pattern))
    if not rows.height:
        return None, f"no theory check has a name like {pattern}"
    failed = rows.select((pl.col("measured").is_nan() | pl.col("measured").is_null()).any()).item()
    return Measured(float("nan") if failed else rows.select(value).item()), ""


def check_gate(
    theory: dict[str, dict[str, Any]],
    claim: str,
    gate: str,
    check: str,
    source: str,
    published: Published | float | None = None,
    kind: str = STATED,
) -> Gate:
    """Return the gate that holds exactly if the theory check ``check`` does; ``theory`` has the rows by their check."""
    row = theory.get(check)
    if row is None:
        return Gate(
            claim, gate, check, source, (), None, f"no theory check is named {check}", published, kind=kind
        )
    if row["comparison"] == "within":
        conditions: tuple[Condition, ...] = within(row["bound"], row["tolerance"])
    else:
        conditions = (Condition("value", row["comparison"], row["bound"]),)
    measured = Measured(row["measured"])
    return Gate(
        claim, gate, row["statement"], row["source"], conditions, measured, published=published, kind=kind,
        stated=True,
    )  # fmt: skip


def failures(theory: pl.DataFrame, entry: str) -> Evidence:
    """Return how many checks of the theory entry ``entry`` do not hold."""
    rows = theory.filter(theory=entry)
    if not rows.height:
        return None, f"there are no theory checks of {entry}"
    return Measured(float((~rows["passed"]).sum()), n=rows.height), ""


def largest(rows: pl.DataFrame, column: str, missing: str) -> Evidence:
    """Return the largest value of ``column``; NaN if one of them is NaN."""
    return reduced(rows, column_max(column), missing)
