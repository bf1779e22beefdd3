"""What the theory checks of the flipflop study share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pipeline.kit.theory_rows import exceptions

SOURCE = "Liu 2024, section 3.5{}"
ERRATUM = "flipflop-{}"
OWN = "own check, not in the source"
CONTROL = "own control, not in the source: this has to fail"

# What has an erratum, by its id: how gates call it, and its section.
PRINTED = {
    "flipflop-lemma-12": ("Lemma 12", "3.4.4.1"),
    "flipflop-equation-3.6": ("equation 3.6", "3.5.7"),
    "flipflop-proposition-3-scores": ("Proposition 3, scores", "3.5.7.1"),
    "flipflop-equation-3.8": ("equation 3.8", "3.5.7.3"),
    "flipflop-proposition-5-words": ("before equation 3.13", "3.5.7.3"),
    "flipflop-evaluation-size": ("evaluation sequences", "3.5.2"),
    "flipflop-addition-operand": ("operand", "3.2.2, Figure 3.2"),
}


def judged(part: str, rows: Iterable[Mapping[str, Any]], claim: str = "22") -> Iterator[dict[str, Any]]:
    """Yield the rows of a part of a claim; a row that names its own part keeps it, and a printed form has one apart."""
    for each in rows:
        own = f"{PRINTED[each['erratum']][0]}, as printed" if each.get("form") == "printed" else part
        yield {"claim": claim, "part": own, **each}


def share(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return the share of ``bad`` that is true; NaN if an output is NaN, or if there is nothing to count."""
    count = np.size(bad)
    return exceptions(bad, *outputs) / count if count else math.nan
