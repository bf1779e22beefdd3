"""Distances between random probability vectors are those of samples."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.kit import stats

RNG = np.random.default_rng(0)


def test_simplex_distance_by_simulation() -> None:
    for n in (1, 2, 7):
        a, b = RNG.dirichlet(np.ones(n), (2, 40_000))
        assert float(stats.simplex_distance(n)) == pytest.approx(((a - b) ** 2).sum(1).mean(), rel=0.02, abs=1e-12)
