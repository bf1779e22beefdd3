"""The datasets of the NCE study (Liu 2024, section 4.1.6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from schemas.nce.datasets import DIMENSION, GAUSS, SCHEMA

__all__ = ["SCHEMA", "generate"]


def generate(entry: Any, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """The dataset of ``entry`` (`params.Dataset`) and the metadata of its file, ``kind`` among them."""
    frame = gauss(entry, dataset_id, seed) if entry.kind == GAUSS else images(entry, dataset_id)
    return frame, {"kind": entry.kind}


def gauss(entry: Any, dataset_id: str, seed: int) -> pl.DataFrame:
    """NCE-D1, D16: parameters of P* and Q. The variances of the 16-dimensional P* are drawn anew for every seed."""
    from pipeline.languages import exponential_families as families  # each kind has a language of its own

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


def _row(dim: int, seed: int, variances: np.ndarray, points_2xD: np.ndarray) -> dict[str, Any]:
    star, noise = points_2xD
    return {
        "dim": dim,
        "seed": seed,
        "s": variances.tolist(),
        "tau_star": star.tolist(),
        "tau_q": noise.tolist(),
        "init_dist": float(np.linalg.norm(star - noise)),
    }


def images(entry: Any, dataset_id: str) -> pl.DataFrame:
    """NCE-DIG, NCE-MNIST: pixels and labels of the source; no rows for MNIST without a path.

    Raises SandglassError if MNIST's files are not there, or damaged.
    """
    from pipeline.languages import digits

    if entry.source == "bundled":
        found = {"any": digits.bundled()}
    elif entry.path is None:
        found = {}
    else:
        folder = Path(entry.path).expanduser()
        if not folder.is_dir():
            raise SandglassError(
                f"params.yaml: datasets.{dataset_id}.path: {entry.path!r} is no folder here; name the one that holds "
                "MNIST's files, or take path out"
            )
        found = {part: digits.mnist(folder, part) for part in ("train", "test")}
    frames = [
        pl.DataFrame({"label": labels, "pixels": list(pixels)}).with_columns(pl.lit(part).alias("part"))
        for part, (pixels, labels) in found.items()
    ]
    schema: dict[str, Any] = {"label": pl.Int8, "pixels": pl.List(pl.UInt8), "part": pl.String}
    frame = pl.concat([pl.DataFrame(schema=schema), *(frame.cast(pl.Schema(schema)) for frame in frames)])
    levels = pl.lit(digits.LEVELS[entry.source], pl.Int16).alias("levels")
    index = pl.int_range(pl.len(), dtype=pl.Int32).alias("index")
    return frame.select(index, "label", "part", levels, "pixels")
