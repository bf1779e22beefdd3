"""The figures of the NCE study (Liu 2024, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline.studies.nce.figures.images import fig43

FIGURES: dict[str, Callable[[Any], Any]] = {
    "fig43": fig43,
}
