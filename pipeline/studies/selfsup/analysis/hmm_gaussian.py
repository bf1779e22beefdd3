"""E10: M and T of a G-HMM from its exact predictor, step by step as in Theorem 5, and from samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import gaussian_hmm, hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import gaussian
from pipeline.studies.selfsup.comparisons import GAUSSIAN_FALLS, GAUSSIAN_LAST, GAUSSIAN_T_FALLS
from pipeline.studies.selfsup.measures import models, slopes
from pipeline.studies.selfsup.names import LEARNT_MEANS, MEANS
from schemas.selfsup.hmm import MIRROR, SOLUTION

EXACT, SUMS = 1e-8, 1e-8
MIXED = 0.1  # of the uniform law in T where a fit goes on with more pairs


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``ghmm_checks``, ``ghmm_candidates``, ``ghmm_fit``, ``hmm_slopes`` and ``comparisons``."""
    checks, candidates = [], []
    for name, model in models.read(context.dataset(MEANS)).items():
        rng = stream(context.seed, context.study, context.experiment, "oracle", name)
        d, k = model[0].shape
        both = gaussian.recover(partial(gaussian_hmm.predictor, model[0], model[1]), d, k, rng)
        checks += list(_checks(name, model, both, rng))
        candidates += list(_candidates(name, model, both))
    fitted = pl.DataFrame(list(fits(context)))
    found, lines = Measurements(context), []
    for norm in context.entry.norms:
        rows = fitted.filter(c=norm)
        for quantity, falls in (("err_M", GAUSSIAN_FALLS), ("err_T", GAUSSIAN_T_FALLS)):
            line, each = slopes.fitted(rows, quantity, group=f"{norm:g}")
            lines.append(line)
            found.add(falls[norm], each)
        last = rows.filter(N=rows["N"].max())
        found.add(GAUSSIAN_LAST[norm], last["err_M"].to_numpy())
    return {
        "ghmm_checks": pl.DataFrame(checks),
        "ghmm_candidates": pl.DataFrame(candidates),
        "ghmm_fit": fitted,
        "hmm_slopes": pl.DataFrame(lines),
        "comparisons": found.table(),
    }


def _checks(
    name: str, model: tuple[Floats, Floats], both: list[gaussian.Candidate], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    means, transition = model
    first, second = both
    points = 2 * rng.standard_normal((len(means), 500))
    reflection, _ = gaussian_hmm.householder(means)
    err_m, err_t = hmm.distance(means, transition, first.means, first.transition)
    mirrored = hmm.distance(reflection @ means, transition, second.means, second.transition)[0]
    phi = [gaussian_hmm.posterior(each, points) for each in (means, reflection @ means)]
    shift = reflection @ means - means
    values = {
        "error of M": (float(err_m), EXACT),
        "error of T": (float(err_t), EXACT),
        "second candidate against H M": (float(mirrored), EXACT),
        "posterior of H M against that of M": (np.abs(phi[0] - phi[1]).max(), 1e-10),
        "norms of H M": (np.abs(np.linalg.norm(reflection @ means, axis=0) - 1).max(), 1e-10),
        "H M - M, differences of columns": (np.abs(shift - shift[:, :1]).max(), 1e-10),
        "column sums of T of H M, plus 1": (np.abs(second.sums + 1).max(), SUMS),
        "column sums of T of M, less 1": (np.abs(first.sums - 1).max(), SUMS),
    }
    for check, (value, tolerance) in values.items():
        yield {
            "instance_id": name,
            "check": check,
            "value": float(value),
            "tolerance": tolerance,
            "holds": bool(value <= tolerance),
        }


def _candidates(name: str, model: tuple[Floats, Floats], both: list[gaussian.Candidate]) -> Iterator[dict[str, Any]]:
    """Yield rows of ``ghmm_candidates``: both solutions beside the mirror through 0 that is at right angles to v."""
    _, normal = gaussian_hmm.householder(model[0])
    flat = both[0].means - np.outer(normal, normal @ both[0].means)
    along = np.linalg.svd(flat)[0][:, 0]
    along = along * np.sign(along[np.abs(along).argmax()])
    for candidate, found in zip((SOLUTION, MIRROR), both, strict=True):
        for state in range(found.means.shape[1]):
            yield {
                "instance_id": name,
                "candidate": candidate,
                "state": state + 1,
                "height": normal @ found.means[:, state],
                "along": along @ found.means[:, state],
                "column_sum": found.sums[state],
                "smallest": found.transition[:, state].min(),
            }


def fits(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield rows of ``ghmm_fit``: on the first pairs several starts, from the best of them on all pairs."""
    entry = context.entry
    for name, (means, transition) in models.read(context.dataset(LEARNT_MEANS)).items():
        d, k = means.shape
        for norm in entry.norms:
            rng = stream(context.seed, context.study, context.experiment, "pairs", name, f"{norm:g}")
            first, second, _ = gaussian_hmm.sample(rng, norm * means, transition, max(entry.pairs))
            starts = rng.standard_normal((entry.starts, d * k + k * k))
            settings = {"steps": entry.steps, "iterations": entry.iterations}
            tried: dict[int, gaussian.Fit] = {}  # the best start by number of pairs
            for size in entry.pairs:
                few = min(size, entry.first)
                if few not in tried:
                    part = first[:, :few], second[:, :few]
                    ends = [gaussian.fit(*part, norm, start, **settings) for start in starts]
                    tried[few] = min(ends, key=lambda each: each.loss)
                best = tried[few]
                # An entry of T that is 0 on few pairs has no gradient by its logit: it starts a little above.
                mixed = (1 - MIXED) * best.transition + MIXED / k
                begin = np.concatenate([(best.means / norm).ravel(), np.log(mixed).ravel()])
                found = gaussian.fit(first[:, :size], second[:, :size], norm, begin, **settings)
                err_m, err_t = hmm.distance(norm * means, transition, found.means, found.transition)
                predicted = gaussian_hmm.predictor(norm * means, transition, first[:, :size])
                yield {
                    "instance_id": name,
                    "c": norm,
                    "N": size,
                    "err_M": float(err_m) / norm,
                    "err_T": float(err_t),
                    "loss": found.loss,
                    "loss_truth": np.square(predicted - second[:, :size]).sum(0).mean(),
                    "steps": found.steps,
                }
