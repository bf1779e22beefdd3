"""E5: neural classifiers of pairs of the log-cosh process, beside Euler's kernel and kernels that are normal.

Two controls need no network: the normal kernel with a linear mean that is closest to the true one, and a log-quadratic
classifier of the same pairs, whose kernels are such.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages.diffusions import Array, Contrast, LogCosh, Pairs, log_normal
from pipeline.models.pair_classifier import log_quadratic, mlp
from pipeline.studies.selfsup.diffusion_comparisons import (
    AGAINST_EULER,
    AGAINST_QUADRATIC,
    CLOSE,
    MORE_PAIRS,
    MOST_PAIRS,
)
from pipeline.studies.selfsup.measures import diffusion_recovery as recovery
from pipeline.studies.selfsup.measures.diffusion_recovery import QUANTILES, Recovered, Reference
from pipeline.studies.selfsup.names import LOGCOSH, LOGCOSH_RUNS
from schemas.selfsup.diffusions import EULER, LEARNED, LOGQUAD, MLP, NORMAL, TRUE

EVERY, REACH = 5, 3.0  # of the grid: which points are first elements, and how far out
DRAWN_EVERY, DRAWN_REACH = 5, 3.0  # of the second elements of slices that are drawn
PROCESS = "logcosh"


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``sde_fit``, ``sde_kernel_ref`` and ``comparisons``."""
    drawn = context.dataset(LOGCOSH).sort("seed")
    about = drawn.row(0, named=True)
    process = LogCosh(about["rho"], about["alpha"])
    noise = Contrast(about["q_kind"], about["mu_q"], about["sd_q"])
    eta = about["eta"]
    chain = process.grid(eta, about["points"], about["half_width"])
    reference = recovery.of_chain(chain, eta, noise, EVERY, REACH)
    euler = log_normal((reference.z_prime - (reference.z - eta * process.gradient(reference.z))[:, None]) ** 2, 2 * eta)
    same = {
        "process_id": PROCESS,
        "d": 1,
        "q_id": noise.name,
        "q_kind": noise.kind,
        "mu_q": noise.shift,
        "sd_q": noise.sd,
        "eta": eta,
        "kl_star_q": reference.divergence,
        "eps_star": reference.bayes_risk,
    } | {f"cq{round(100 * level)}": reference.closeness(level) for level in QUANTILES}

    def row(found: Recovered, model: str, m: int, seed: int) -> dict[str, Any]:
        return same | {"T": 2 * m * eta, "m": m, "model": model, "seed": seed} | found._asdict()

    baseline = reference.measure(euler - reference.log_q)
    best = normal(reference)
    rows = [row(baseline, EULER, 0, 0), row(reference.measure(best - reference.log_q), NORMAL, 0, 0)]
    at = [int(np.abs(reference.z - z).argmin()) for z in context.entry.slices]
    slices = [
        _slices(reference, at, reference.p, TRUE, "", 0, -1),
        _slices(reference, at, reference.kernel(euler - reference.log_q), EULER, "", 0, -1),
    ]
    divergences: dict[int, list[float]] = {}
    quadratic: dict[int, list[float]] = {}
    with one_thread():
        for run in context.runs():
            m = context.run_header(run)["entry"]["pairs"]
            for seed, g in enumerate(_log_odds(context.model(run), reference)):
                found = reference.measure(g)
                rows.append(row(found, MLP, m, seed))
                slices.append(_slices(reference, at, reference.kernel(g), LEARNED, noise.name, m, seed))
                divergences.setdefault(m, []).append(found.kl)
                found = reference.measure(_log_quadratic(drawn.row(seed, named=True), m, reference))
                rows.append(row(found, LOGQUAD, m, seed))
                quadratic.setdefault(m, []).append(found.kl)
    return {
        "sde_fit": pl.DataFrame(rows),
        "sde_kernel_ref": pl.concat(slices).with_columns(process_id=pl.lit(PROCESS), eta=pl.lit(eta)),
        "comparisons": compared(context, divergences, quadratic, baseline.kl),
    }


def normal(reference: Reference) -> Array:
    """Return the log of the kernel N(a z, s^2) (Z, Y) that is closest to the true one, in KL(p* | p)."""
    z, z_prime = reference.z[:, None], reference.z_prime
    a = (reference.joint * z * z_prime).sum() / (reference.joint * z**2).sum()
    squares = (z_prime - a * z) ** 2
    return log_normal(squares, float((reference.joint * squares).sum() / reference.joint.sum()))


def _log_quadratic(trajectory: dict[str, Any], m: int, reference: Reference) -> Array:
    """Return (Z, Y): g of the log-quadratic classifier that is fitted to the first ``m`` pairs of a trajectory."""
    x, x_prime, y = (np.asarray(trajectory[name])[:m] for name in ("x", "x_prime", "y"))
    weights = log_quadratic.fit(Pairs(x[:, None], x_prime[:, None], y.astype(bool)))
    g: Array = log_quadratic.features(reference.z[:, None, None], reference.z_prime[None, :, None]) @ weights
    return g


def _log_odds(model: mlp.Ensemble, reference: Reference) -> Array:
    """Return (R, Z, Y): g of each model at all pairs of the grid."""
    z, z_prime = np.meshgrid(reference.z, reference.z_prime, indexing="ij")
    pairs = torch.from_numpy(np.stack([z.ravel(), z_prime.ravel()], axis=-1).astype(np.float32))
    found = []
    with torch.no_grad():
        for replica in range(model.params["layers.0.b"].shape[0]):
            own = {name: value[replica : replica + 1] for name, value in model.params.items()}
            g, _ = mlp.forward(model.spec, own, model.table, pairs[None])
            found.append(g[0].double().numpy().reshape(z.shape))
    return np.stack(found)


def _slices(reference: Reference, at: list[int], kernel: Array, source: str, q: str, m: int, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.selfsup.diffusions.KernelMap` for the first elements numbered ``at``."""
    y = np.flatnonzero(np.abs(reference.z_prime) <= DRAWN_REACH + 1e-9)[::DRAWN_EVERY]
    width = reference.z[1] - reference.z[0]
    z, z_prime = (axis.ravel() for axis in np.meshgrid(reference.z[at], reference.z_prime[y], indexing="ij"))
    return pl.DataFrame(
        {"source": source, "q_id": q, "m": m, "seed": seed, "z": z, "z_prime": z_prime}
        | {"p": kernel[np.ix_(np.array(at), y)].ravel(), "pi_z": np.repeat(reference.weights[at] / width, len(y))}
    )


def compared(
    context: Inputs, divergences: dict[int, list[float]], quadratic: dict[int, list[float]], euler: float
) -> pl.DataFrame:
    """Return table ``comparisons``: KL by the number of pairs, against each other, against Euler's kernel, and against
    log-quadratic classifiers of the same pairs."""
    found = Measurements(context)
    by_size = {m: np.array(divergences.get(m, [])) for m in LOGCOSH_RUNS}
    for m, comparison in AGAINST_EULER.items():
        found.add(comparison, by_size[m] / euler)
    for m, comparison in AGAINST_QUADRATIC.items():
        found.add(comparison, by_size[m], np.array(quadratic.get(m, [])))
    for (more, fewer), comparison in MORE_PAIRS.items():
        found.add(comparison, by_size[more], by_size[fewer])
    found.add(CLOSE, by_size[MOST_PAIRS])
    return found.table()
