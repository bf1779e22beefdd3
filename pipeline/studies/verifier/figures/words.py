"""Numbers in titles of the study's figures."""

from __future__ import annotations


def signed(value: float | None, digits: int, factor: float = 1.0) -> str:
    """Return a difference, times ``factor``, with its sign; a dash for None.

    >>> signed(-0.0312, 1, 100.0)
    '−3.1'
    """
    return "–" if value is None else f"{factor * value:+.{digits}f}".replace("-", "−")
