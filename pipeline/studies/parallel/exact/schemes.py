"""Sets of masks of four spins, and laws with strongly coupled pairs (EXP-6, PAR-D7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.languages import ising
from pipeline.languages.ising import Floats
from pipeline.studies.parallel.exact import estimation
from pipeline.studies.parallel.exact.estimation import Scheme

N = 4
Blocks = Sequence[Sequence[int]]  # positions of each mask, from 1


def masks(blocks: Blocks) -> list[int]:
    """Return the masks of a set. Raises ValueError unless they cover all positions."""
    found = [ising.mask_of(N, tuple(i - 1 for i in block)) for block in blocks]
    ising.check_cover(N, found)
    return found


def scheme(blocks: Blocks) -> Scheme:
    """Return a set of masks, each equally likely. Raises ValueError as `masks` does."""
    return estimation.fixed(N, masks(blocks))


def two_pairs(inside: float, outside: float) -> Floats:
    """Return theta of PAR-D7: coupling ``inside`` within the pairs (1, 2) and (3, 4), ``outside`` between them."""
    J = np.full((N, N), outside)
    J[0, 1] = J[2, 3] = inside
    return ising.parameters(J, np.zeros(N))
