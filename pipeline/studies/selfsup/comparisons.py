"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`)."""

from __future__ import annotations

from pipeline.kit.comparisons import Declared

DECLARED = Declared()
