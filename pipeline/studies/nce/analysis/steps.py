"""N3 to N5: updates on the population loss until the distance to tau_* meets a target (Liu 2024, Theorems 17 to 19).

All paths of one rule and loss run as one batch (`pipeline.studies.nce.exact.exponential_family.descend`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.exact.exponential_family import ENCE, NCE, Array
from pipeline.studies.nce.measures import flow
from pipeline.studies.nce.measures.rates import Rate, Series, fitted, growth
from schemas.nce.tables import (
    CONSERVATIVE,
    FIXED,
    GD,
    INVERSE,
    LOG_R,
    NEWTON,
    NGD,
    ONE,
    PLAIN_R,
    R_SQUARED,
    STANDARD,
    TENTH,
    THEOREM_19,
)

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Steps

RING = (0.15, 0.1)
CONTINUED = {(GD, NCE): STANDARD, (GD, ENCE): STANDARD, (NEWTON, NCE): CONSERVATIVE, (NEWTON, ENCE): CONSERVATIVE}
# Forms of growth: x, and whether b log R is added
FORMS = [(LOG_R, False), (PLAIN_R, False), (R_SQUARED, False), (PLAIN_R, True), (R_SQUARED, True)]
RATES = {
    (GD, TENTH): [Rate("GD steps", NCE, R_SQUARED, None)],
    (NEWTON, TENTH): [Rate("Newton steps", loss, R_SQUARED, None) for loss in (NCE, ENCE)],
    (NGD, INVERSE): [Rate("NGD steps", NCE, LOG_R, 6.0), Rate("NGD steps", ENCE, LOG_R, 5.0)],
}


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return tables ``steps``, ``crossings``, ``full_newton``, ``continued``, ``growth_fits``, ``rates`` and
    ``rate_points``."""
    grid = context.entry
    frames = [
        walk(NCE, GD, STANDARD, grid.gd, [TENTH, ONE], grid.cap),
        walk(NCE, NEWTON, CONSERVATIVE, grid.newton_nce, [TENTH], grid.cap),
        walk(ENCE, NEWTON, CONSERVATIVE, grid.newton_ence, [TENTH], grid.cap),
        *(walk(loss, NGD, FIXED, grid.ngd, [INVERSE], grid.cap) for loss in (NCE, ENCE)),
        *(_bounded(loss, grid) for loss in (NCE, ENCE)),
    ]
    steps = pl.concat(frames, how="diagonal")
    continued = pl.concat(_continued(optimizer, loss, grid, steps) for optimizer, loss in CONTINUED)
    tables = {
        "steps": steps,
        "crossings": _crossings(grid),
        "full_newton": pl.concat(_full_newton(loss, grid) for loss in (NCE, ENCE)),
        "continued": continued,
        "growth_fits": pl.DataFrame(list(_growth(continued, grid.compared))),
    }
    lines = fitted(series(steps, grid.fitted_ngd, grid.fitted_exponential))
    return {**tables, **lines}


def series(steps: pl.DataFrame, ngd: list[float], exponential: list[float]) -> Iterator[Series]:
    """Yield each rate with its points from the first to the last R of ``ngd`` or, for other rules, ``exponential``."""
    for (optimizer, target), rates in RATES.items():
        first, last = ngd if optimizer == NGD else exponential
        inside = pl.col("R").is_between(first, last)
        for rate in rates:
            rows = steps.filter(
                inside,
                pl.col("steps") > 0,
                pl.col("rule") != THEOREM_19,
                loss=rate.loss,
                optimizer=optimizer,
                target=target,
            ).sort("R")
            yield rate, rows["R"].to_numpy(), np.log(rows["steps"].to_numpy())


def step_sizes(loss: str, rule: str, means: Array) -> Array:
    """Return eta of ``rule``, one of those that need no measurement, (P,); delta = 1/R."""
    at_noise, smallest, kappa = log_ratio.curvature(loss, means)
    return {STANDARD: 1 / at_noise, CONSERVATIVE: smallest / at_noise, FIXED: 1 / means / np.sqrt(2 * kappa)}[rule]


def radii(means: Array, targets: list[str]) -> Array:
    """Return the distance that each target asks for, (P, M)."""
    return np.stack([{TENTH: 0.1 * means, ONE: np.ones_like(means), INVERSE: 1 / means}[t] for t in targets], 1)


def walk(
    loss: str, optimizer: str, rule: str, means: list[float], targets: list[str], cap: int, **bound: Array
) -> pl.DataFrame:
    """Return rows of ``steps``, R by R; ``bound`` gives eta and further columns where the rule does not decide them."""
    r = np.array(means, float)
    eta = bound.pop("eta") if "eta" in bound else step_sizes(loss, rule, r)
    optimum = mean_optimum(r)
    paths = log_ratio.descend(
        log_ratio.mean_problem(loss, r), log_ratio.RULES[optimizer], 0 * optimum, optimum, eta, radii(r, targets), cap
    )
    kappa = log_ratio.curvature(loss, r)[2]
    frames = [
        pl.DataFrame(
            {"R": r, "eta": eta, "steps": paths.steps[:, i], "final_dist": paths.final, "kappa": kappa, **bound}
        ).with_columns(target=pl.lit(target))
        for i, target in enumerate(targets)
    ]
    same = {"loss": loss, "optimizer": optimizer, "rule": rule, "cap": cap}
    empty = {name: None for name in ("bound", "beta_u", "beta_l") if name not in bound}
    typed = {name: pl.lit(value, pl.Float64) for name, value in empty.items()}
    return pl.concat(frames).with_columns(**{name: pl.lit(value) for name, value in same.items()}, **typed)


def _bounded(loss: str, grid: Steps) -> pl.DataFrame:
    """Return rows of ``steps`` on N5(b): the step size and the bound of Theorem 19.

    beta_u and beta_l are measured, and delta = 1/beta_Z = 1/R.
    """
    means = np.array(grid.bounded, float)
    delta, kappa = 1 / means, log_ratio.curvature(loss, means)[2]
    upper, lower = log_ratio.stability(loss, means, delta, grid.radii, grid.angles)
    distance = np.linalg.norm(mean_optimum(means)[:, 0], axis=-1)
    return walk(
        loss,
        NGD,
        THEOREM_19,
        grid.bounded,
        [INVERSE],
        grid.cap,
        eta=np.sqrt(lower / (upper * kappa)) * delta,
        bound=upper * kappa / lower * (distance / delta) ** 2,
        beta_u=upper,
        beta_l=lower,
    )


def _crossings(grid: Steps) -> pl.DataFrame:
    """Return rows of ``crossings`` on N3: steps of GD between 0.15 R and 0.1 R, and the bound on them.

    The bound is from the largest gradient along u in that ring.
    """
    r = np.array(grid.gd, float)
    problem, optimum = log_ratio.mean_problem(NCE, r), mean_optimum(r)
    eta = step_sizes(NCE, STANDARD, r)
    targets = np.stack([share * r for share in RING], axis=1)
    paths = log_ratio.descend(problem, log_ratio.gradient_step, 0 * optimum, optimum, eta, targets, grid.cap)
    unit = log_ratio.circle(721)
    largest = np.max(
        [
            np.abs((problem.gradient(optimum + (share * r)[:, None, None] * unit) * unit).sum(-1)).max(1)
            for share in np.linspace(*RING, 6)
        ],
        axis=0,
    )
    outer, inner = paths.steps.T
    crossed = np.where(inner >= 0, inner - outer, -1)
    return pl.DataFrame({"R": r, "steps": crossed, "bound": 0.05 * r / (eta * largest)})


def _continued(optimizer: str, loss: str, grid: Steps, walked: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``continued`` for one method, beside the steps that were walked at the same step size."""
    r = np.array(grid.continued, float)
    eta = step_sizes(loss, CONTINUED[optimizer, loss], r)
    counts = [flow.steps(loss, optimizer, mean, rate, 0.1 * mean) for mean, rate in zip(r.tolist(), eta, strict=True)]
    same = walked.filter(pl.col("steps") > 0, loss=loss, optimizer=optimizer, target=TENTH)
    return (
        pl.DataFrame({"R": r, "eta": eta, "steps": counts})
        .with_columns(loss=pl.lit(loss), optimizer=pl.lit(optimizer))
        .join(same.select("R", walked="steps"), on="R", how="left", maintain_order="left")
    )


def _growth(continued: pl.DataFrame, compared: list[float]) -> Iterator[dict[str, Any]]:
    """Yield rows of ``growth_fits``."""
    for last, (optimizer, loss) in product(compared, CONTINUED):
        rows = continued.filter(pl.col("R") <= last, loss=loss, optimizer=optimizer).sort("R")
        r, y = rows["R"].to_numpy(), np.log(rows["steps"].to_numpy())
        for against, corrected in FORMS:
            yield {
                "loss": loss,
                "optimizer": optimizer,
                "last_R": last,
                "against": against,
                "corrected": corrected,
                "points": len(r),
                **growth(r, y, against, corrected),
            }


def _full_newton(loss: str, grid: Steps) -> pl.DataFrame:
    """Return rows of ``full_newton`` on N4: Newton's method with step size 1 from tau_q."""
    r = np.array(grid.full_newton, float)
    return pl.DataFrame(list(_full_newton_rows(loss, r, grid.full_newton_steps)))


def _full_newton_rows(loss: str, r: Array, count: int) -> Iterator[dict[str, Any]]:
    problem, optimum = log_ratio.mean_problem(loss, r), mean_optimum(r)
    delta = 0 * optimum
    for step in range(count + 1):
        distance = np.linalg.norm((delta - optimum)[:, 0], axis=-1)
        yield from (
            {"R": mean, "loss": loss, "step": step, "dist": dist}
            for mean, dist in zip(r.tolist(), distance.tolist(), strict=True)
        )
        delta = log_ratio.newton_step(problem, delta, np.ones(1))
