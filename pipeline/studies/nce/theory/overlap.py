"""Condition numbers of NCE through the Bhattacharyya coefficient (Liu 2024, Theorem 20, Lemmas 52, 60, 61; chapter
5.14).

In the sources of these rows B = BC in Eq. 4.13 and B = 1/BC in Eq. 4.70; here always ``bc``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import Array, mean_optimum
from pipeline.studies.nce.constructions import SOURCE, count, grid, path, row, rows
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import NCE

LEMMA_52, LEMMA_60, LEMMA_61, THEOREM_20 = (
    SOURCE.format(at) for at in ("Lemma 52", "Lemma 60", "Lemma 61", "Theorem 20")
)
NEAR = 1.0  # R from which the printed Lemma 60 holds
RADII, ANGLES = 12, 48
WALKED = 3.0  # largest R at which the steps of Theorem 20 are counted


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Theorem 20 and Lemmas 52, 60, 61."""
    means = np.array(entry.means, float)
    checks = [*_lemma_52(), *_lemma_60(means), *_lemma_61(means[means > 0]), *_theorem_20(means)]
    return rows(theory_id, "overlap", LEMMA_60, checks)


def _lemma_52() -> Iterator[dict[str, Any]]:
    distance = np.linspace(0, 3, 301)
    close = distance[distance**2 <= 4 / families.largest_moment(distance)]
    yield row(
        "lemma-52",
        "|theta_1 - theta_2|^2 <= 4/lambda_max gives BC >= 1/2: smallest BC",
        f"{len(close)} distances up to {close.max():g}",
        families.mean_overlap(close).min(),
        ">=",
        0.5,
        source=LEMMA_52,
    )


def lemma_60(means: Array) -> tuple[Array, Array]:
    """Return the printed bound lambda_max/(2 lambda_min BC) and the corrected 4 (lambda_max/lambda_min)^2/BC."""
    ratio, bc = families.largest_moment(means) ** 2, families.mean_overlap(means)
    return ratio / (2 * bc), 4 * ratio**2 / bc


def _lemma_60(means: Array) -> Iterator[dict[str, Any]]:
    kappa = log_ratio.curvature(NCE, means)[2]
    printed, corrected = lemma_60(means)
    for mean, value, bound in zip(means, kappa, printed, strict=True):
        near = mean < NEAR
        form = {"erratum": "nce-lemma-60", "form": "printed"} if near else {}
        statement = "kappa_* over the printed bound lambda_max/(2 lambda_min BC)"
        yield row(
            f"lemma-60-{mean:g}",
            f"{statement}, {'which fails' if near else 'which holds'}",
            f"R = {mean:g}",
            value / bound,
            ">=" if near else "<=",
            1.0,
            detail=f"kappa {value:.4g}, bound {bound:.4g}",
            part="printed Lemma 60",
            **form,
        )
    yield row(
        "lemma-60-corrected",
        "kappa_* <= 4 (lambda_max/lambda_min)^2/BC, by Eq. 4.69 to 4.72: largest ratio",
        grid(means),
        (kappa / corrected).max(),
        "<=",
        1.0,
        erratum="nce-lemma-60",
        form="corrected",
    )


def _lemma_61(means: Array) -> Iterator[dict[str, Any]]:
    """Yield rows on Lemma 61, with the first members of min and max, which need no Assumption 14."""
    bc, ratio = families.mean_overlap(means), families.largest_moment(means) ** 2
    upper, lower = log_ratio.stability(NCE, means, 1 / means, RADII, ANGLES)
    allowed = 16 * np.exp(1.5 + 1 / means) * ratio**2 / bc
    size = f"{grid(means)}, {RADII} radii, {ANGLES} angles, |tau - tau_*| <= 1/R"
    yield row(
        "lemma-61-upper",
        "beta_u <= 8 exp(3/2 + 1/beta_Z) (lambda_max/lambda_min) (2 lambda_max/lambda_min)/BC: "
        "largest ratio of the sides",
        size,
        (upper / allowed).max(),
        "<=",
        1.0,
        source=LEMMA_61,
    )
    demanded = bc / 16 * np.exp(-2 - 1 / means) / ratio**2
    notes = {"erratum": "nce-lemma-61", "source": LEMMA_61}
    # Any larger constant is a Lipschitz constant, too, and at tau = tau_* the ratio of the two sides' Hessians is 1.
    mean, beta_z = 0.1, 10.0
    at = float(16 * families.mean_overlap(mean) * np.exp(-2 - 1 / beta_z) / families.largest_moment(mean) ** 2)
    yield notes | row(
        "lemma-61-printed",
        "With its factor 16 the lower bound on sigma_min(H)/sigma_min(H_*) exceeds 1 at tau = tau_*",
        f"R = {mean:g}, beta_Z = {beta_z:g}",
        at,
        ">=",
        1.001,
        form="printed",
    )
    yield notes | row(
        "lemma-61-corrected",
        "With 1/16, by Eq. 4.83, it holds: largest ratio of bound to value",
        size,
        (demanded / lower).max(),
        "<=",
        1.0,
        form="corrected",
    )


def _theorem_20(means: Array) -> Iterator[dict[str, Any]]:
    for mean in means[(means >= NEAR) & (means <= WALKED)].tolist():
        at = np.array([mean])
        upper, lower = log_ratio.stability(NCE, at, 1 / at, RADII, ANGLES)
        eta = float(np.sqrt(lower / (upper * log_ratio.curvature(NCE, at)[2]))[0]) / mean
        ratio, bc = float(families.largest_moment(mean)) ** 2, float(families.mean_overlap(mean))
        constant = 18 * np.exp(2 / mean) * ratio**3 * 2 * ratio**2
        bound = constant / bc**3 * float((mean_optimum(mean) ** 2).sum()) * mean**2
        steps = count(path(NCE, mean, "ngd", eta, 1 / mean, 100_000))
        yield row(
            f"theorem-20-{mean:g}",
            "NGD needs at most C/BC^3 |tau_0 - tau_*|^2/delta^2 steps: steps over bound",
            f"R = {mean:g}, delta = 1/R",
            steps / bound,
            "<=",
            1.0,
            source=THEOREM_20,
            detail=f"{steps:.0f} steps, bound {bound:.4g}",
        )
