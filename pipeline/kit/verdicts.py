"""Verdicts on published claims: computed from what was measured, never typed.

A `Gate` is one testable piece of a claim: a measurement and the conditions that it has to meet. Its verdict is
*reproduced* if all conditions hold, *not reproduced* if one fails, and *not tested at this scale* if the scale
is too small to show it or the runs it needs are not in params.yaml. A claim of several gates is *partly*
reproduced where some of its testable gates hold.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.claims import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED, SCALES, Claims

_NAMES = {"value": "value", "lo": "lower end", "hi": "upper end"}
_OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Measured:
    """A value, its interval, and the replicas behind it; null and NaN mean that it is not defined."""

    value: float | None
    lo: float | None = None
    hi: float | None = None
    n: int | None = None
    excluded: int = 0
    excluded_reason: str = ""


@dataclass(frozen=True)
class Condition:
    """``Condition("hi", "<", 0.5)``: the upper end of the interval is below 0.5."""

    what: str  # value, lo or hi
    comparison: str  # <, <=, > or >=
    bound: float

    def holds(self, measured: Measured) -> bool:
        """Return whether ``measured`` meets the condition; False where the number is not defined."""
        number = getattr(measured, self.what)
        return (
            number is not None and not math.isnan(number) and _OPERATORS[self.comparison](number, self.bound)
        )

    @property
    def text(self) -> str:
        """Return the condition as the column ``bound`` shows it, for instance ``upper end < 0.5``."""
        return f"{_NAMES[self.what]} {self.comparison} {self.bound:.4g}"

    def describe(self, measured: Measured) -> str:
        """Return what was found, for instance ``upper end 0.31 < 0.5`` or ``value 0.62, not < 0.5``."""
        number = getattr(measured, self.what)
        name = _NAMES[self.what]
        if number is None or math.isnan(number):
            return f"{name} not defined"
        relation = f"{self.comparison} {self.bound:.4g}"
        return (
            f"{name} {number:.4g} {relation}"
            if self.holds(measured)
            else f"{name} {number:.4g}, not {relation}"
        )


def within(center: float, tolerance: float) -> tuple[Condition, Condition]:
    """Return the two conditions that the value lies within ``center`` ± ``tolerance``."""
    return Condition("value", ">=", center - tolerance), Condition("value", "<=", center + tolerance)


@dataclass(frozen=True)
class Gate:
    """One row of the claims table; ``measured`` is None, with ``missing`` saying why, if there is nothing to test."""

    claim: str
    gate: str
    predicate: str
    source: str
    conditions: tuple[Condition, ...]
    measured: Measured | None
    missing: str = ""
    published: float | None = None  # printed in the source; of a printed range the lower end
    published_high: float | None = None  # of a printed range the upper end
    scale_needed: str = "quick"

    def verdict(self, scale: str) -> tuple[str, str]:
        """Return the verdict at ``scale``, and the reason."""
        if self.measured is None:
            return NOT_TESTED, self.missing
        if SCALES.index(scale) < SCALES.index(self.scale_needed):
            return NOT_TESTED, f"needs scale {self.scale_needed}, this is {scale}"
        if self.measured.value is None or math.isnan(self.measured.value):
            return NOT_REPRODUCED, "value not defined"  # also where the conditions look at the interval alone
        failed = [condition for condition in self.conditions if not condition.holds(self.measured)]
        told = "; ".join(condition.describe(self.measured) for condition in failed or self.conditions)
        return (NOT_REPRODUCED if failed else REPRODUCED), told


def table(gates: Iterable[Gate], study: str, scale: str, params_hash: str) -> pl.DataFrame:
    """Return the claims table (`schemas.claims.Claims`) of ``gates``."""
    rows = []
    for gate in gates:
        measured = gate.measured or Measured(None)
        verdict, reason = gate.verdict(scale)
        same = ("claim", "gate", "predicate", "source", "published", "published_high", "scale_needed")
        rows.append(
            {name: getattr(gate, name) for name in same}
            | {name: getattr(measured, name) for name in Measured.__dataclass_fields__}
            | {
                "study": study,
                "bound": " and ".join(condition.text for condition in gate.conditions),
                "scale": scale,
                "verdict": verdict,
                "reason": reason,
                "params_hash": params_hash,
            }
        )
    schema = {name: column.dtype.type for name, column in Claims.to_schema().columns.items()}
    return pl.DataFrame(rows, schema=schema).with_columns(pl.selectors.float().fill_nan(None))


def summary(claims: pl.DataFrame) -> pl.DataFrame:
    """Return a row per study and claim, in order: verdict and how many gates hold, fail, are not tested."""
    counts = claims.group_by("study", "claim", maintain_order=True).agg(
        (pl.col("verdict") == REPRODUCED).sum().alias("hold"),
        (pl.col("verdict") == NOT_REPRODUCED).sum().alias("fail"),
        (pl.col("verdict") == NOT_TESTED).sum().alias("not_tested"),
    )
    hold, fail = pl.col("hold") > 0, pl.col("fail") > 0
    verdict = (
        pl.when(hold & fail)
        .then(pl.lit(PARTLY))
        .when(hold)
        .then(pl.lit(REPRODUCED))
        .when(fail)
        .then(pl.lit(NOT_REPRODUCED))
        .otherwise(pl.lit(NOT_TESTED))
    )
    return counts.select("study", "claim", verdict.alias("verdict"), "hold", "fail", "not_tested")


def as_metrics(claims: pl.DataFrame) -> dict[str, Any]:
    """Return the claims for ``dvc metrics``: by claim, its verdict and, by gate, verdict and value."""
    verdicts = {row["claim"]: row["verdict"] for row in summary(claims).iter_rows(named=True)}
    found: dict[str, Any] = {claim: {"verdict": verdict, "gates": {}} for claim, verdict in verdicts.items()}
    for row in claims.iter_rows(named=True):
        found[row["claim"]]["gates"][row["gate"]] = {"verdict": row["verdict"], "value": row["value"]}
    return found
