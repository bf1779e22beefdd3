"""An asymptotic covariance beside the block dynamics of the same masks (Li 2025, Theorem 4.1.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact import chains, estimation


def asymptotics(
    p: Floats, gamma: Floats, fisher: Floats, scheme: estimation.Scheme, bounded: bool = True
) -> dict[str, Any]:
    """Return what ``par_asymp`` says of a covariance, beside the block dynamics of the same scheme.

    ``bounded`` is whether Theorem 4.1.2 speaks of it.
    """
    gap = chains.gap(chains.block_dynamics(p, scheme), p)
    worst = estimation.worst_ratio(gamma, fisher)
    spins = len(p).bit_length() - 1
    variances, couplings = np.diag(gamma), spins * (spins - 1) // 2
    return {
        "d": len(gamma),
        "tr_gamma": float(np.trace(gamma)),
        "tr_couplings": float(variances[:couplings].sum()),
        "tr_fields": float(variances[couplings:].sum()) if len(gamma) > couplings else None,
        "tr_fisher_inv": float(np.trace(np.linalg.inv(fisher))),
        "gap": gap,
        "C": 1 / gap,
        "min_eig_bound": estimation.excess(np.linalg.inv(fisher) / gap, gamma) if bounded else None,
        "worst_ratio": worst,
        "tightness": worst * gap if bounded else None,
    }
