"""Beyond the source: which closeness of the noise to the kernel decides how well the kernel is recovered.

Eq. 2.4 bounds p*/q from both sides by one constant c_q, and Theorem 2 bounds KL(p* | p) by its fifth power. A wide q
has a large c_q, because q/p* is large far out; a shifted one, because p*/q is. Both are varied here, one against the
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy import optimize

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages.diffusions import MARGINAL, Array, Contrast, OrnsteinUhlenbeck, pairs
from pipeline.studies.selfsup.diffusion_comparisons import (
    BENDS,
    DIVERGENCE,
    EQUALLY_CLOSE,
    HARMLESS,
    LAW,
    LIMIT_OFFSET,
    LIMIT_SLOPE,
    MATCHED_TO,
    NARROW,
    ONE_SIDED,
    PREDICTS,
    TWO_SIDED,
    WIDE,
)
from pipeline.studies.selfsup.measures import diffusion_limit
from pipeline.studies.selfsup.measures.diffusion_fits import Y_REACH, Task, fitted, quotient

LEVEL = 0.95
FEATURES = 6  # of a pair in one dimension
TAIL = 5  # standard deviations of wide noise that the grid covers


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``sde_closeness``, ``sde_closeness_fits``, ``sde_widths`` and ``comparisons``."""
    entry = context.entry
    process = OrnsteinUhlenbeck(entry.rho)
    noises = [Contrast(MARGINAL, shift, sd) for sd, shift in product(entry.deviations, entry.shifts)]
    matched = matching(process, entry.eta, entry.matched)
    narrow = [Contrast(MARGINAL, shift, sd) for sd, shift in product(entry.computed, entry.shifts)]
    paths = [
        process.path(_stream(context, "trajectory", seed), entry.eta, 2 * entry.pairs) for seed in range(entry.seeds)
    ]
    normal = _stream(context, "limit").standard_normal((entry.draws, FEATURES))
    laws, fits = [], []
    for noise in [*noises, matched, *narrow]:
        task = _task(process, entry.eta, noise)
        limit, reference = diffusion_limit.of(task.reference, task.phi), task.reference
        log_exc, log_kl = limit.mean_logs(normal)
        found = []
        for seed, path in enumerate(paths if noise not in narrow else []):
            made = pairs(path, noise, _stream(context, "pairs", seed))
            found.append(task.measure(fitted(made, entry.pairs)))
        fits += [{"q_id": noise.name, "seed": s, "exc": each.exc, "kl": each.kl} for s, each in enumerate(found)]
        laws.append(
            {
                "q_id": noise.name,
                "mu_q": noise.shift,
                "sd_q": noise.sd,
                "m": entry.pairs,
                "two_sided": reference.closeness(LEVEL),
                "one_sided": reference.closeness(LEVEL, one_sided=True),
                "kl_star_q": reference.divergence,
                "limit_exc": limit.exc,
                "limit_kl": limit.kl,
                "limit_log_exc": log_exc,
                "limit_log_kl": log_kl,
                "kl": _geometric_mean([each.kl for each in found]),
                "exc": _geometric_mean([each.exc for each in found]),
            }
        )
    closeness, by_fit = pl.DataFrame(laws, infer_schema_length=None), pl.DataFrame(fits)
    return {
        "sde_closeness": closeness,
        "sde_closeness_fits": by_fit,
        "sde_widths": pl.DataFrame([row for eta in entry.width_etas for row in widths(process, eta, entry.widths)]),
        "comparisons": compared(context, closeness, by_fit, matched.name),
    }


def widths(process: OrnsteinUhlenbeck, eta: float, deviations: list[float]) -> Iterator[dict[str, Any]]:
    """Yield rows of ``sde_widths``: the limit law of noise around 0 of these ascending deviations."""
    first = None
    for sd in deviations:
        task = _task(process, eta, Contrast(MARGINAL, 0.0, sd))
        limit = diffusion_limit.of(task.reference, task.phi)
        first = first or limit.kl
        yield {"eta": eta, "sd_q": sd, "limit_kl": limit.kl, "limit_exc": limit.exc, "over": limit.kl / first}


def _task(process: OrnsteinUhlenbeck, eta: float, noise: Contrast) -> Task:
    """Return the task on a grid that goes `TAIL` deviations beyond the mean of the noise."""
    reach = (abs(noise.shift) + TAIL * noise.sd) * math.sqrt(process.rho)
    return Task(process, eta, noise, reach=max(Y_REACH, reach))


def _geometric_mean(values: list[float]) -> float | None:
    return float(np.exp(np.mean(np.log(values)))) if values else None


def _stream(context: Inputs, *names: str | int) -> np.random.Generator:
    return stream(context.seed, context.study, context.experiment, *names)


def matching(process: OrnsteinUhlenbeck, eta: float, sd: float) -> Contrast:
    """Return the shifted law with the deviation of pi that has the same two-sided closeness as N(0, sd^2).

    Raises SandglassError if no shift up to five has.
    """
    own = 1 / math.sqrt(process.rho)
    target = math.log(_task(process, eta, Contrast(MARGINAL, 0.0, sd)).reference.closeness(LEVEL))

    def above(shift: float) -> float:
        return math.log(_task(process, eta, Contrast(MARGINAL, shift, own)).reference.closeness(LEVEL)) - target

    if not above(0.0) < 0 < above(5.0):
        raise SandglassError(f"no shifted law is as close, from both sides, as N(0, {sd**2:g}): choose a wider one")
    # Two digits are as many as names show.
    return Contrast(MARGINAL, round(float(optimize.brentq(above, 0.0, 5.0, xtol=1e-4)), 2), own)


def compared(context: Inputs, laws: pl.DataFrame, fits: pl.DataFrame, matched: str) -> pl.DataFrame:
    """Return table ``comparisons``."""
    found, confidence = Measurements(context), context.settings.confidence
    narrow, laws = laws.filter(pl.col("kl").is_null()), laws.filter(pl.col("kl").is_not_null())
    names = laws["q_id"].to_list()
    kl, exc = (
        np.stack([fits.filter(q_id=name).sort("seed")[column].to_numpy() for name in names], axis=1)
        for column in ("kl", "exc")
    )  # (seeds, laws)

    def own(sd: float) -> Array:
        name = Contrast(MARGINAL, 0.0, sd).name
        return kl[:, names.index(name)] if name in names else np.empty(0)

    quotient(found, HARMLESS, own(WIDE), own(1.0), confidence)
    quotient(found, EQUALLY_CLOSE, kl[:, names.index(matched)], own(MATCHED_TO), confidence)
    ratio = np.log(kl / exc)
    by_rule = {
        ONE_SIDED: np.log(laws["one_sided"].to_numpy()),
        TWO_SIDED: np.log(laws["two_sided"].to_numpy()),
        DIVERGENCE: laws["kl_star_q"].to_numpy(),
    }
    found.add(LAW, [slope(by_rule[ONE_SIDED], each) for each in ratio])
    for rival, comparison in PREDICTS.items():
        # Both are predicted from the same errors: a trajectory is left out of both.
        difference = intervals.jackknife(
            partial(_advantage, by_rule[ONE_SIDED], by_rule[rival]), ratio, confidence=confidence
        )
        found.put(comparison, difference)
    lines = [np.polyfit(by_rule[ONE_SIDED], each, 1) for each in ratio]
    for shift, comparison in BENDS.items():
        law = narrow.filter(mu_q=shift, sd_q=NARROW)
        if not law.height:
            found.not_run(comparison)
            continue
        closeness, exact = law.select(pl.col("one_sided").log(), pl.col("limit_log_kl") - pl.col("limit_log_exc")).row(
            0
        )
        found.add(comparison, [exact - float(np.polyval(line, closeness)) for line in lines])
    limit = laws["limit_log_kl"].to_numpy() - math.log(context.entry.pairs)
    found.add(LIMIT_SLOPE, [slope(limit, each) for each in np.log(kl)])
    found.add(LIMIT_OFFSET, (np.log(kl) - limit).mean(1))
    return found.table()


def _advantage(x: Array, rival: Array, sample: Array) -> float:
    """Return the error of predictions of the mean of units from ``x``, less that from ``rival``."""
    return missed(x, sample.mean(0)) - missed(rival, sample.mean(0))


def slope(x: Array, y: Array) -> float:
    """Return the slope of the least-squares line."""
    return float(np.polyfit(x, y, 1)[0])


def missed(x: Array, y: Array) -> float:
    """Return the root mean square error of y at each point under the line through all others.

    >>> missed(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0])) < 1e-12
    True
    """
    errors = []
    for left_out in range(len(x)):
        kept = np.arange(len(x)) != left_out
        errors.append(y[left_out] - np.polyval(np.polyfit(x[kept], y[kept], 1), x[left_out]))
    return float(np.sqrt(np.mean(np.square(errors))))
