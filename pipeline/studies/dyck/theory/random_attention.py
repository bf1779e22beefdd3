"""DYCK-A3: how much random attention maps vary (Wen et al. 2023, footnote 11 and Table 1).

The paper draws rows uniformly on the simplex and reports 2.85 (probe of 16 tokens) and 3.33 (19 tokens,
possibly with a start token). Only causal matrices can give such values: the closed forms of both readings
are checked here by simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.stats import causal_distance, simplex_distance
from pipeline.kit.streams import stream
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import RandomAttentionCheck

SIZES = (15, 16, 17, 19, 20)  # the probes with and without their last or start token
PUBLISHED = {16: (2.85, "footnote 11"), 19: (3.33, "Table 1")}
MODELS = 40  # matrices behind each published average
TOLERANCE = 0.02
MAX_DEVIATIONS = 2.5  # of an average over that many matrices

SOURCE = "Wen et al. 2023, footnote 11"
CLOSED_FORM = "4 H(N+1) - 2 H(N) - 4"


def check(entry: RandomAttentionCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`; averages over ``entry.matrices`` matrices and ``entry.repeats``
    times 40."""
    checks: list[dict[str, Any]] = []
    for n in SIZES:
        rng = stream(seed, "dyck", theory_id, "causal", n)
        expected = causal_distance(n)
        checks += [_closed_form(n, expected), _monte_carlo(n, expected, entry.matrices, rng)]
        if n in PUBLISHED:
            checks += [_published(n, expected, entry.repeats, rng), _square(n, entry.matrices, rng)]
    return theory.rows("dyck", theory_id, SOURCE, checks)


def _closed_form(n: int, expected: float) -> dict[str, Any]:
    def harmonic(m: int) -> float:
        return float((1 / np.arange(1, m + 1)).sum())

    return {
        "check": f"causal-closed-form-{n}",
        "statement": f"The sum over rows of the expected squared distances is {CLOSED_FORM}",
        "size": f"N={n}",
        "measured": expected,
        "comparison": "within",
        "bound": 4 * harmonic(n + 1) - 2 * harmonic(n) - 4,
        "tolerance": 1e-12,
    }


def _monte_carlo(n: int, expected: float, matrices: int, rng: np.random.Generator) -> dict[str, Any]:
    drawn = _draw(rng, matrices, n, causal=True)
    return {
        "check": f"causal-monte-carlo-{n}",
        "statement": f"Random causal attention varies by {CLOSED_FORM} on average",
        "size": f"N={n}, {matrices} matrices",
        "measured": float(_variation(drawn)),
        "comparison": "within",
        "bound": expected,
        "tolerance": TOLERANCE,
        "detail": f"standard error of the measurement {_standard_error(drawn):.4f}",
    }


def _published(n: int, expected: float, repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the row on whether an average over 40 causal matrices can come out as published."""
    value, where = PUBLISHED[n]
    estimates = _variation(_draw(rng, repeats * MODELS, n, causal=True).reshape(repeats, MODELS, -1))
    deviation = float(estimates.std(ddof=1))
    return {
        "check": f"published-{n}",
        "statement": f"The published {value} is an ordinary average over {MODELS} random causal matrices: "
        f"the closed form lies within {MAX_DEVIATIONS} standard deviations of such an average",
        "source": f"Wen et al. 2023, {where}",
        "size": f"N={n}, {repeats} averages over {MODELS} matrices",
        "measured": expected,
        "comparison": "within",
        "bound": value,
        "tolerance": MAX_DEVIATIONS * deviation,
        "detail": f"standard deviation of such an average {deviation:.4f}; "
        f"distance {abs(value - expected) / deviation:.2f} standard deviations",
    }


def _square(n: int, matrices: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the row on the other reading, that all N entries of every row are random."""
    value, where = PUBLISHED[n]
    expected = n * float(simplex_distance(n))
    simulated = float(_variation(_draw(rng, matrices, n, causal=False)))
    return {
        "check": f"square-{n}",
        "statement": "Random attention without the causal mask varies by 2(N-1)/(N+1) < 2, "
        f"below the published {value}: the published matrices were causal",
        "source": f"Wen et al. 2023, {where}",
        "size": f"N={n}, {matrices} matrices",
        "measured": simulated,
        "comparison": "within",
        "bound": expected,
        "tolerance": TOLERANCE,
    }


def _draw(rng: np.random.Generator, count: int, n: int, causal: bool) -> NDArray[np.float64]:
    """Return matrices, (count, n * n), with rows uniform on the simplex (normalised exponential variables)."""
    matrices = rng.standard_exponential((count, n, n))
    if causal:
        matrices *= np.tri(n)
    matrices /= matrices.sum(-1, keepdims=True)
    return matrices.reshape(count, n * n)


def _variation(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of |A - B|^2 over all pairs of the rows of (..., R, cells), in one pass (section 4.1)."""
    r = matrices.shape[-2]
    total = matrices.sum(-2)
    squares = np.einsum("...rc,...rc->...", matrices, matrices)
    return 2 * (r * squares - np.einsum("...c,...c->...", total, total)) / (r * (r - 1))


def _standard_error(matrices: NDArray[np.float64]) -> float:
    """Return the standard error of `_variation`: to first order, twice the spread of |A - mean|^2 over the
    square root of their number."""
    spread = ((matrices - matrices.mean(0)) ** 2).sum(-1).std(ddof=1)
    return float(2 * spread / np.sqrt(len(matrices)))
