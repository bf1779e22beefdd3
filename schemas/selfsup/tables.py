"""Result tables of the study, by name."""

from __future__ import annotations

from schemas.comparisons import Comparisons
from schemas.selfsup import diffusions, hmm

SCHEMAS = {**hmm.SCHEMAS, **diffusions.SCHEMAS, "comparisons": Comparisons}
