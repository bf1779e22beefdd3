"""Curvature at P* and at Q (Liu 2024, Lemmas 46 to 48, Corollary 2's kappa; chapter 5.5, 5.6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.constructions import SOURCE, grid, row, rows
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE

LEMMA_46, LEMMA_47, LEMMA_48 = (SOURCE.format(f"Lemma {number}") for number in (46, 47, 48))
SMALLEST_LIMIT = 2 * np.pi**2 * np.sqrt(np.pi / 2)  # of sigma_min exp(R^2/8) R^5


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Lemmas 46 to 48."""
    return rows(theory_id, "curvature", LEMMA_46, [*_optimum(entry), *_slopes(entry), *_noise(entry)])


def _optimum(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array([mean for mean in entry.means if mean > 0], float)
    largest, _ = _scaled(NCE, means)
    ratio = largest * np.sqrt(2 * np.pi) / means
    far = means >= 1
    yield row(
        "smoothness",
        "sigma_max(H_*) <= R/sqrt(2 pi) exp(-R^2/8) for R >= 1: largest ratio of the sides",
        grid(means[far]),
        ratio[far].max(),
        "<=",
        1.0,
    )
    for mean, value in zip(means[~far], ratio[~far], strict=True):
        yield row(
            f"smoothness-near-{mean:g}",
            "Below R = 1, which the lemma leaves out, the bound fails: ratio",
            f"R = {mean:g}",
            value,
            ">=",
            1.0,
        )
    closed = ((means / 2 + np.sqrt(means**2 / 4 + 4)) / 2) ** 4
    largest, smallest = _scaled(ENCE, means)
    yield row(
        "kappa-ence",
        "kappa of eNCE is ((R/2 + sqrt(R^2/4 + 4))/2)^4: largest relative difference",
        grid(means),
        np.abs(largest / smallest / closed - 1).max(),
        "<=",
        1e-9,
        source=SOURCE.format("Lemma 53"),
    )


def _scaled(loss: str, means: Array) -> tuple[Array, Array]:
    """Return the largest and the smallest eigenvalue of H_*, times exp(R^2/8)."""
    hessian = log_ratio.mean_problem(loss, means).hessian(mean_optimum(means))[:, 0]
    largest, smallest = log_ratio.extremes(hessian)
    return largest / families.mean_overlap(means), smallest / families.mean_overlap(means)


def _slopes(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array(entry.fitted, float)
    largest, smallest = _scaled(NCE, means)
    fit = stats.linregress(np.log(means), np.log(smallest))
    left = np.abs(np.log(smallest) - fit.intercept - fit.slope * np.log(means)).max()
    local = np.diff(np.log(smallest)) / np.diff(np.log(means))
    bent = f"largest residual {left:.3f}"
    notes = {"erratum": "nce-lemma-47", "source": LEMMA_47}
    statement = "Slope of log(sigma_min(H_*) exp(R^2/8)) against log R"
    yield notes | row(
        "convexity-printed",
        f"{statement}: not the printed -1",
        grid(means),
        fit.slope,
        "beyond",
        -1.0,
        tolerance=3.0,
        detail=bent,
        form="printed",
    )
    yield notes | row(
        "convexity-corrected",
        f"{statement}: on its way to -5",
        grid(means),
        fit.slope,
        "within",
        -4.7,
        tolerance=0.4,
        detail=bent,
        form="corrected",
    )
    yield row(
        "convexity-steeper",
        "The slope between neighbouring R falls towards -5: largest change",
        grid(means),
        np.diff(local).max(),
        "<=",
        0.0,
        source=LEMMA_47,
        detail=f"the last is {local[-1]:.3f}",
    )
    constant = smallest * means**5 / SMALLEST_LIMIT
    yield row(
        "convexity-constant",
        "sigma_min(H_*) exp(R^2/8) R^5 over its limit 2 pi^2 sqrt(pi/2), at the largest R",
        f"R = {means[-1]:g}",
        constant[-1],
        "within",
        1.0,
        tolerance=0.6 if means[-1] < 20 else 0.1,
        source=LEMMA_47,
    )
    form = (means**2 / 4 + 1) ** 2 * means**2 / np.pi**2
    yield row(
        "kappa-form",
        "kappa of NCE over (R^2/4 + 1)^2 R^2/pi^2, at the largest R",
        f"R = {means[-1]:g}",
        (largest / smallest / form)[-1],
        "within",
        1.0,
        tolerance=0.25 if means[-1] < 20 else 0.06,
        source=LEMMA_47,
    )


def _noise(entry: Any) -> Iterator[dict[str, Any]]:
    means = np.array(entry.means, float)
    hessian = log_ratio.mean_problem(NCE, means).hessian(0 * mean_optimum(means))[:, 0]
    closed = np.stack([means**2 + 2, -means, -means, 2 + 0 * means], axis=-1).reshape(-1, 2, 2) / 8
    largest, _ = log_ratio.extremes(hessian)
    eq = {"erratum": "nce-eq-4-58", "source": SOURCE.format("Eq. 4.58")}
    yield eq | row(
        "noise-diagonal",
        "The Hessian at tau_q without off-diagonal entries: largest difference",
        grid(means),
        np.abs(hessian - closed * np.eye(2)).max(),
        ">=",
        0.01,
        form="printed",
    )
    yield eq | row(
        "noise-entries",
        "The Hessian at tau_q is [[R^2 + 2, -R], [-R, 2]]/8: largest difference",
        grid(means),
        np.abs(hessian - closed).max(),
        "<=",
        1e-9,
        form="corrected",
    )
    eight = means == 8
    notes = {"erratum": "nce-lemma-48", "source": LEMMA_48}
    if eight.any():
        yield notes | row(
            "noise-printed",
            "sigma_max(H(tau_q)) >= R^2/2 fails: sigma_max",
            "R = 8",
            largest[eight][0],
            "<=",
            31.9,
            detail="R^2/2 = 32",
            form="printed",
        )
        yield notes | row(
            "noise-corrected",
            "sigma_max(H(tau_q)) >= (R^2 + 2)/8: smallest ratio of the sides",
            grid(means),
            (largest / ((means**2 + 2) / 8)).min(),
            ">=",
            1.0 - 1e-12,
            form="corrected",
        )
