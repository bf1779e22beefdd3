"""What theory checks of the study share: their rows."""

from __future__ import annotations

from typing import Any


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`; ``more`` are further columns, as tolerance, claim and part."""
    return {
        "check": check,
        "statement": statement,
        "size": size,
        "measured": float(measured),
        "comparison": comparison,
        "bound": float(bound),
        **more,
    }
