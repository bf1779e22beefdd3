"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`)."""

from __future__ import annotations

from pipeline.kit.comparisons import Declared
from pipeline.studies.selfsup import diffusion_comparisons

DECLARED = Declared()

for _each in diffusion_comparisons.ALL:
    DECLARED(_each)
