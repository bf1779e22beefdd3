"""Result tables of the study, by name."""

from __future__ import annotations

from schemas.comparisons import Comparisons
from schemas.selfsup import hmm

SCHEMAS = {**hmm.SCHEMAS, "comparisons": Comparisons}
