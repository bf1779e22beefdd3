"""From rows of tables and theory checks to what a gate measures (`pipeline.kit.verdicts.Gate`).

Everything here returns ``(measured, missing)``: a `Measured` and "", or None and the reason why there is nothing to
test. No reduction skips a NaN: one measurement that failed makes the whole gate fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from numpy.typing import ArrayLike

from pipeline.errors import SandglassError
from pipeline.kit import comparisons, intervals
from pipeline.kit.comparisons import Comparison
from pipeline.kit.conditions import Condition, at_most, within
from pipeline.kit.extremes import column_max
from pipeline.kit.verdicts import Gate, Measured, Published
from schemas.claims import EXTERNAL, NOT_RUN, STATED

Evidence = tuple[Measured | None, str]
BRING = f"{EXTERNAL}: models or data that this repository does not hold"


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
        row[value], row.get("lo"), row.get("hi"), row.get("n"), row.get("n_excluded", 0), row.get("excluded_reason", "")
    ), ""


# Comparisons


def of(context: comparisons.Tables, comparison: Comparison) -> Evidence:
    """Return what was found of a comparison; None where it was not run.

    Raises SandglassError if the study does not declare it, or its table lacks it.
    """
    return _found(comparisons.read(context, [comparison]).row(0, named=True))


def between(
    context: comparisons.Tables,
    comparison: Comparison,
    samples: Sequence[ArrayLike | None],
    excluded: int = 0,
    reason: str = "",
) -> Evidence:
    """Return what tables of several experiments say of a comparison, which no single analysis could measure.

    Each of ``samples`` has one value for each unit of an arm, or is None for an arm that was not run; ``excluded``
    units are left out for a ``reason``. Raises SandglassError if the study does not leave the comparison to claims.
    """
    if comparison.experiment != comparisons.CLAIMS or comparison not in comparisons.declared(context.study):
        raise SandglassError(
            f"{context.study}: comparison {comparison.key!r} is not one that claims measure themselves"
        )
    if any(sample is None for sample in samples):
        return None, NOT_RUN
    (confidence,) = context.table(comparisons.TABLE)["confidence"].unique()
    found = comparisons.estimate(comparison, *samples, confidence=confidence)  # type: ignore[arg-type]
    return _found(comparisons.row(comparison, found, confidence, excluded, reason))


def ends(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return ``lo`` and ``hi`` of a row of a table ``comparisons`` or of claims: NaN for an end that is not defined,
    null though there are enough units, which must not pass as a value without an interval."""
    exists = row["interval"] not in ("", intervals.NONE) and (row["n"] or 0) >= (row["fewest"] or 0)
    lo, hi = (math.nan if row[end] is None and exists else row[end] for end in ("lo", "hi"))
    return lo, hi


def _found(row: Mapping[str, Any]) -> Evidence:
    if row["state"] == NOT_RUN:
        return None, NOT_RUN
    return Measured(
        row["value"],
        *ends(row),
        row["n"],
        row["n_excluded"],
        row["excluded_reason"],
        row["interval"],
        row["fewest"],
        row["confidence"],
    ), ""


def gate(
    context: comparisons.Tables,
    claim: str,
    name: str,
    comparison: Comparison,
    conditions: tuple[Condition, ...],
    source: str,
    found: Evidence | None = None,
    **more: Any,
) -> Gate:
    """Return the gate ``name`` of a claim on a comparison, which says in words what is measured.

    ``found`` is what claims measured themselves (`between`); else the study's table says it. ``more`` are further
    fields of the `Gate`: published, kind, scale_needed, size_needed.
    """
    measured, missing = of(context, comparison) if found is None else found
    if missing == NOT_RUN and any(arm.elsewhere for arm in comparison.arms):
        missing = BRING
    return Gate(claim, name, comparison.words, source, conditions, measured, missing, comparison=comparison.key, **more)


# Theory checks


def check_gate(
    theory: dict[str, dict[str, Any]],
    claim: str,
    gate: str,
    check: str,
    source: str,
    published: Published | float | None = None,
    kind: str = STATED,
) -> Gate:
    """Return the gate that holds exactly if the theory check ``check`` does; ``theory`` has the rows by their check.

    Raises SandglassError if there is no such check, or it holds outside of an interval.
    """
    row = theory.get(check)
    if row is None:
        raise SandglassError(f"claim {claim}, {gate}: no theory check is named {check}")
    if row["comparison"] == "beyond":
        raise SandglassError(f"claim {claim}, {gate}: {check} asks for what lies beyond a tolerance, no gate can")
    if row["comparison"] == "within":
        conditions: tuple[Condition, ...] = within(row["bound"], row["tolerance"])
    else:
        conditions = (Condition("value", row["comparison"], row["bound"]),)
    measured = Measured(row["measured"])
    return Gate(
        claim, gate, row["statement"], row["source"], conditions, measured, published=published, kind=kind, stated=True
    )


@dataclass(frozen=True)
class Part:
    """A gate on theory checks: what they are about, the source, and whose statement it is."""

    what: str
    source: str
    kind: str = STATED


def part_gates(theory: pl.DataFrame, claim: str, parts: Mapping[str, Part]) -> Iterator[Gate]:
    """Yield a gate for each part of a claim: how many of the theory rows that carry it do not hold.

    Raises SandglassError if a part has no row, or rows of the claim carry a part that is not among ``parts``.
    """
    rows = theory.filter(claim=claim)
    for name in rows["part"].unique(maintain_order=True).to_list():
        if name not in parts:
            raise SandglassError(f"claim {claim}: theory checks belong to a part {name!r}, which no gate judges")
    for name, part in parts.items():
        own = rows.filter(part=name)
        if not own.height:
            raise SandglassError(f"claim {claim}: no theory check belongs to the part {name!r}")
        measured = Measured(float((~own["passed"]).sum()), n=own.height)
        measure = f"checks that do not hold ({part.what})"
        yield Gate(claim, name, measure, part.source, at_most(0.0), measured, kind=part.kind)


def largest(rows: pl.DataFrame, column: str, missing: str) -> Evidence:
    """Return the largest value of ``column``; NaN if one of them is NaN."""
    return reduced(rows, column_max(column), missing)
