"""What modules of claims share."""

from __future__ import annotations

NO_ROW = "not run at this scale"
CONFIDENCE = 0.95  # of intervals that claims take of tables themselves
