"""Claims that theory checks decide: by claim, its parts."""

from __future__ import annotations

from pipeline.kit.evidence import Part
from schemas.claims import CORRECTED

PARTS = {"33": {"law": Part("the law by enumeration", "Li 2025, equations 3.3 and 3.4", CORRECTED)}}
