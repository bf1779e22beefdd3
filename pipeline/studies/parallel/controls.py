"""What controls are called in tables, for the analysis that makes them and the claims that read them."""

from __future__ import annotations

NEVER = "never trained"  # in place of a run
