"""What theory checks of this study share."""

from __future__ import annotations

from typing import Any

SOURCE = "Liu 2024, section 4.2{}"
ERRATUM = "distillation-{}"


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check, "statement": statement, "size": size, "measured": float(measured),
        "comparison": comparison, "bound": float(bound), **more,
    }  # fmt: skip
