"""What the theory checks of the NCE study share: rows, random parameters, paths that are kept whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import theory_rows
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.exact import exponential_family as log_ratio
from schemas import theory

LOSSES = (log_ratio.NCE, log_ratio.ENCE)
NAMES = {log_ratio.NCE: "NCE", log_ratio.ENCE: "eNCE"}
SOURCE = "Liu 2024, {}"


# Checks whose two sides are closed forms or exact sums at given numbers: nothing is drawn, walked or integrated that
# could have come out otherwise than the algebra says.
ALGEBRA = re.compile(
    r"range-start|noise-.*|kappa|kappa-ence|identity|identity-quadrature|nce-equal|(nce|ence)-stationary|optimum-.*"
    r"|loss-sign-.*|hessian-factor-.*|lemma-52|lemma-60-.*|lemma-61-printed|ratio-.*|sigmoid-rounded|shifted-mean"
    r"|limit-none|limit-norm|clamp-.*"
)
MARK = "Algebra: "


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`; the statement of an identity at given numbers begins with `MARK`."""
    mark = MARK if ALGEBRA.fullmatch(check) else ""
    return theory_rows.row(check, mark + statement, size, measured, comparison, bound, **more)


def rows(theory_id: str, part: str, source: str, checks: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return the table of a theory entry. Its rows decide claim 16, in ``part`` unless one names another."""
    return theory.rows("nce", theory_id, source, ({"claim": "16", "part": part} | each for each in checks))


def grid(means: Array | list[float]) -> str:
    """Return how a row names its R: ``R = 0, 0.5, .., 20``."""
    shown = [f"{mean:g}" for mean in means]
    return "R = " + ", ".join(shown if len(shown) <= 5 else [*shown[:2], "..", shown[-1]])


def near_segment(rng: np.random.Generator, mean: float, count: int, spread: float = 0.5) -> Array:
    """Return random delta (1, K, 2) near the segment from tau_q to tau_*."""
    along = rng.uniform(0, 1, (1, count, 1)) * mean_optimum(mean)
    return along + spread * rng.standard_normal((1, count, 2))


def unit_vectors(rng: np.random.Generator, count: int, dimension: int = 2) -> Array:
    """Return vectors uniform on the sphere, (K, D)."""
    drawn = rng.standard_normal((count, dimension))
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def path(loss: str, mean: float, optimizer: str, eta: float, radius: float, cap: int) -> Array:
    """Return all iterates (T + 1, 2) from tau_q, as delta, to the first within ``radius`` of tau_*.

    There are at most ``cap`` steps.
    """
    problem, optimum = log_ratio.mean_problem(loss, mean), mean_optimum(mean)
    rule, rate = log_ratio.RULES[optimizer], np.full((1, 1, 1), eta)
    iterates = [0 * optimum]
    while len(iterates) <= cap and np.linalg.norm(iterates[-1] - optimum) > radius:
        iterates.append(rule(problem, iterates[-1], rate))
    return np.concatenate(iterates)[:, 0]


def count(path_Tx2: Array) -> float:
    """Return the number of steps of a path; NaN if it was lost on the way, for it did not arrive then."""
    return float(len(path_Tx2) - 1) if np.isfinite(path_Tx2).all() else float("nan")


def slope(x: Array, y: Array) -> float:
    """Return the slope of the least-squares line; NaN if a number is NaN or infinite, where numpy would raise."""
    return float(np.polyfit(x, y, 1)[0]) if np.isfinite([x, y]).all() else float("nan")


def distances(mean: float, path_Tx2: Array) -> Array:
    """Return the distances of a path from tau_*, (T,)."""
    return np.linalg.norm(path_Tx2 - mean_optimum(mean)[0], axis=-1)
