"""The datasets of the NCE study (Liu 2024, section 4.1.6)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.languages import exponential_families as families
from pipeline.streams import stream
from schemas.nce.datasets import DIMENSION, GAUSS, SCHEMA

__all__ = ["SCHEMA", "generate"]


def generate(entry: Any, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """The dataset of ``entry`` (`params.Gauss`) and the metadata of its file, ``kind`` among them."""
    return gauss(entry, dataset_id, seed), {"kind": entry.kind}


def gauss(entry: Any, dataset_id: str, seed: int) -> pl.DataFrame:
    """NCE-D1, D16: parameters of P* and Q. The variances of the 16-dimensional P* are drawn anew for every seed."""
    rows = []
    for s in range(entry.seeds):
        rng = stream(seed, "nce", dataset_id, GAUSS, s)
        low, high = entry.variances
        variances = rng.uniform(low, high, DIMENSION)
        rows.append(_row(1, s, np.ones(1), families.mean_point([entry.mean, 0.0])))
        rows.append(
            _row(
                DIMENSION, s, variances,
                families.diagonal_point(0.0, np.stack([variances, np.ones(DIMENSION)])),
            )
        )  # fmt: skip
    schema = {name: column.dtype.type for name, column in SCHEMA[GAUSS].to_schema().columns.items()}
    lists = dict.fromkeys(("s", "tau_star", "tau_q"), pl.List(pl.Float64))
    return pl.DataFrame(rows, schema=schema | lists).sort("dim", "seed")


def _row(dim: int, seed: int, variances: families.Array, points_2xD: families.Array) -> dict[str, Any]:
    star, noise = points_2xD
    return {
        "dim": dim,
        "seed": seed,
        "s": variances.tolist(),
        "tau_star": star.tolist(),
        "tau_q": noise.tolist(),
        "init_dist": float(np.linalg.norm(star - noise)),
    }
