"""E2: kernels of an Ornstein-Uhlenbeck process, recovered by log-quadratic classifiers, against the number of pairs and
against the law of the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages.diffusions import MARGINAL, Array, Contrast, OrnsteinUhlenbeck, pairs
from pipeline.studies.selfsup.diffusion_comparisons import ENDS, NEIGHBOURS, RATES, SHIFTS, SLOPE_ERROR, STATIONARY
from pipeline.studies.selfsup.measures.diffusion_fits import Task, fitted, quotient
from schemas.selfsup.diffusions import LEARNED, TRUE

MAPPED = 3.0, 4.0  # z and z' of the kernels that are drawn
EVERY_Z, EVERY_Y = 4, 15  # of the grid's points


def analyse(context: Inputs) -> dict[str, Any]:
    """Return tables ``sde_fit``, ``sde_kernel_ref`` and ``comparisons``."""
    entry, rows, maps = context.entry, [], []
    noises = [Contrast(noise.kind, noise.shift, noise.sd) for noise in entry.noises]
    for d in entry.dimensions:
        process = OrnsteinUhlenbeck(entry.rho, d)
        drawn = None
        if d > 1:
            drawn = stream(context.seed, context.study, context.experiment, "points", d).standard_normal(
                (2 * entry.samples, 2, d)
            )
        tasks = [Task(process, entry.eta, noise, drawn) for noise in noises]
        for seed in range(entry.seeds):
            for place, (task, weights_by_m) in enumerate(_seed(context, tasks, seed)):
                rows += [task.row(f"ou-d{d}", weights, m, seed) for m, weights in weights_by_m.items()]
                if d == 1 and seed == 0:
                    largest = max(weights_by_m)
                    maps += _maps(task, weights_by_m[largest], largest, first=place == 0)
    fits = pl.DataFrame(rows, infer_schema_length=None)
    return {"sde_fit": fits, "sde_kernel_ref": pl.concat(maps), "comparisons": compared(context, fits)}


def _seed(context: Inputs, tasks: list[Task], seed: int) -> list[tuple[Task, dict[int, Array]]]:
    """Return the weights that are fitted to the pairs of one trajectory, by their number, for each law of noise.

    The trajectory, the labels and the normal numbers of the noise are those of the seed, whatever the law.
    """
    entry, process = context.entry, tasks[0].process
    names = context.seed, context.study, context.experiment, process.d, seed
    path = process.path(stream(*names, "trajectory"), entry.eta, 2 * entry.pairs[-1])
    found = []
    for task in tasks:
        made = pairs(path, task.contrast, stream(*names, "pairs"))
        found.append((task, {m: fitted(made, m) for m in entry.pairs}))
    return found


def _maps(task: Task, weights: Array, m: int, *, first: bool) -> list[pl.DataFrame]:
    """Return the learned kernel on a coarse grid, and with the ``first`` law of noise the true one."""
    reference = task.reference
    at_z, at_y = (
        np.flatnonzero(np.abs(grid) <= reach + 1e-9)[::every]
        for grid, reach, every in ((reference.z, MAPPED[0], EVERY_Z), (reference.z_prime, MAPPED[1], EVERY_Y))
    )
    z, z_prime = (axis.ravel() for axis in np.meshgrid(reference.z[at_z], reference.z_prime[at_y], indexing="ij"))
    density = np.exp(task.process.log_stationary(z[:, None]))
    kernels = [(LEARNED, task.contrast.name, m, 0, reference.kernel(task.phi @ weights))]
    if first:
        kernels.insert(0, (TRUE, "", 0, -1, reference.p))
    about = {"process_id": "ou-d1", "eta": task.eta}
    return [
        pl.DataFrame(
            about
            | {"source": source, "q_id": q, "m": size, "seed": seed}
            | {"z": z, "z_prime": z_prime, "p": kernel[np.ix_(at_z, at_y)].ravel(), "pi_z": density}
        )
        for source, q, size, seed, kernel in kernels
    ]


def compared(context: Inputs, fits: pl.DataFrame) -> pl.DataFrame:
    """Return table ``comparisons`` of the one-dimensional fits."""
    found, entry, confidence = Measurements(context), context.entry, context.settings.confidence
    one = fits.filter(d=1).sort("seed", "m")
    largest = one.filter(m=max(entry.pairs))

    def add(comparison: Comparison, sample: pl.Series | Array) -> None:
        if len(sample):
            found.add(comparison, sample)
        else:
            found.not_run(comparison)

    own = one.filter(q_id=STATIONARY)
    for name, comparison in RATES.items():
        add(comparison, slopes(own, "m", name))
    by_shift = {shift: largest.filter(q_kind=MARGINAL, mu_q=float(shift), sd_q=1.0).sort("seed") for shift in SHIFTS}
    for (far, near), comparison in NEIGHBOURS.items():
        quotient(found, comparison, by_shift[far]["kl"], by_shift[near]["kl"], confidence)
    for name, comparison in ENDS.items():
        quotient(found, comparison, by_shift[SHIFTS[-1]][name], by_shift[0][name], confidence)
    truth = OrnsteinUhlenbeck(entry.rho).decay(entry.eta)
    for m, comparison in SLOPE_ERROR.items():
        add(comparison, (own.filter(m=m)["slope"] - truth).abs())
    return found.table()


def slopes(fits: pl.DataFrame, against: str, name: str) -> Array:
    """Return (seeds,) the slope of a line through the logarithms of a quantity of one seed, by least squares."""
    by_seed = [
        np.polyfit(np.log(part[against].to_numpy()), np.log(part[name].to_numpy()), 1)[0]
        for _, part in fits.sort("seed", against).group_by("seed", maintain_order=True)
    ]
    return np.array(by_seed, float)
