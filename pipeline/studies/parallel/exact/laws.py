"""Laws, their states and sets of masks as rows of tables (chapter section 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pipeline.languages import ising
from pipeline.languages.ising import Floats
from schemas.parallel.tables import EXPLICIT, UNIFORM_ALL, UNIFORM_CLIQUE, ZERO

LISTED = 10  # spins whose states are listed


def law_row(dist_id: str, theta: Floats, N: int, c: int, J: float) -> dict[str, Any]:
    """Return the row of ``par_dist`` of a law whose clique is the first ``c`` spins, 0 for one without a clique."""
    h = theta[-N:]
    inside, outside = h[:c], h[c:]
    total = float(np.abs(h).sum())
    if not h.any():
        rule = ZERO
    elif np.ptp(h) == 0:
        rule = UNIFORM_ALL
    elif c and not outside.any() and np.ptp(inside) == 0:
        rule = UNIFORM_CLIQUE
    else:
        rule = EXPLICIT
    h_G, J0 = float(inside.sum()), float(J - total)
    return {
        "dist_id": dist_id,
        "N": N,
        "c": c,
        "J": J,
        "h_rule": rule,
        "theta": theta.tolist(),
        "asm415": c > 0 and h_G > float(np.abs(outside).sum()) and J0 > 0,
        "h_G": h_G,
        "J0": J0,
        "h_l1": total,
    }


def state_rows(dist_id: str, theta: Floats, N: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``par_state_prob`` of a law, none of more than `LISTED` spins."""
    if N <= LISTED:
        for state, prob in enumerate(ising.law(theta, N).tolist()):
            yield {"dist_id": dist_id, "state": state, "prob": prob}


def mask_rows(scheme_id: str, N: int, masks: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``par_mask_scheme`` of a set of masks, each equally likely."""
    for mask in masks:
        yield {"scheme_id": scheme_id, "N": N, "mask": mask, "weight": 1 / len(masks), "adaptive": False, "state": None}
