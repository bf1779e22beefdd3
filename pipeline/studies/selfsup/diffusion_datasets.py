"""From entries of the parameters to trajectories and pairs of diffusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.languages import diffusions
from pipeline.languages.diffusions import Contrast, LogCosh, OrnsteinUhlenbeck
from schemas.selfsup.diffusions import PairTable, Trajectories

if TYPE_CHECKING:
    from pipeline.studies.selfsup.diffusion_params import LogCoshPairs, OuPaths


def ou_paths(entry: OuPaths, key: str, seed: int) -> pl.DataFrame:
    """Return `schemas.selfsup.diffusions.Trajectories` of an Ornstein-Uhlenbeck process."""
    process = OrnsteinUhlenbeck(entry.rho, entry.d)
    steps = int(entry.span / entry.eta + 1e-9)
    rows = [
        {
            "process_id": f"ou-d{entry.d}",
            "kind": diffusions.OU,
            "rho": entry.rho,
            "d": entry.d,
            "eta": entry.eta,
            "seed": s,
            "x": process.path(stream(seed, entry.study, key, s), entry.eta, steps).ravel(),
        }
        for s in range(entry.seeds)
    ]
    return _frame(rows, Trajectories)


def logcosh_pairs(entry: LogCoshPairs, key: str, seed: int) -> pl.DataFrame:
    """Return `schemas.selfsup.diffusions.PairTable` of the log-cosh process, a trajectory for each seed."""
    noise = Contrast(entry.noise.kind, entry.noise.shift, entry.noise.sd)
    chain = LogCosh(entry.rho, entry.alpha).grid(entry.eta, entry.points, entry.half_width)
    rngs = [stream(seed, entry.study, key, "trajectory", s) for s in range(entry.seeds)]
    paths = chain.paths(rngs, 2 * entry.pairs)
    rows = []
    for s, path in enumerate(paths):
        made = diffusions.pairs(path[:, None], noise, stream(seed, entry.study, key, "pairs", s))
        rows.append(
            {
                "process_id": "logcosh",
                "kind": diffusions.LOGCOSH,
                "rho": entry.rho,
                "alpha": entry.alpha,
                "points": entry.points,
                "half_width": entry.half_width,
                "q_kind": noise.kind,
                "mu_q": noise.shift,
                "sd_q": noise.sd,
                "eta": entry.eta,
                "seed": s,
                "x": made.x[:, 0],
                "x_prime": made.x_prime[:, 0],
                "y": made.y.astype(np.int8),
            }
        )
    return _frame(rows, PairTable)


def _frame(rows: list[dict[str, Any]], schema: Any) -> pl.DataFrame:
    """Return rows with arrays in their lists as a table of the schema."""
    columns = {name: column.dtype.type for name, column in schema.to_schema().columns.items()}
    # Arrays of one length would become a column of arrays, which is of another type.
    made = {
        name: pl.Series(name, [pl.Series(row[name]) for row in rows])
        if dtype == pl.List
        else pl.Series(name, [row[name] for row in rows], dtype=dtype)
        for name, dtype in columns.items()
    }
    return pl.DataFrame(made)
