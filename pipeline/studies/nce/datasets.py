"""The datasets of the NCE study (Liu 2024, section 4.1.6)."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from schemas.nce.datasets import DIMENSION, GAUSS, SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Gauss, Images, MnistFiles

__all__ = ["SCHEMA", "generate"]


def generate(entry: Gauss | Images, dataset_id: str, seed: int) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the dataset of ``entry`` and the metadata of its file, ``kind`` among them."""
    frame = gauss(entry, dataset_id, seed) if entry.kind == "gauss" else images(entry, dataset_id)
    return frame, {"kind": entry.kind}


def gauss(entry: Gauss, dataset_id: str, seed: int) -> pl.DataFrame:
    """Return parameters of P* and Q (NCE-D1, D16); every seed draws the variances of the 16-dimensional P* anew."""
    from pipeline.languages import exponential_families as families  # each kind has a language of its own

    rows = []
    for s in range(entry.seeds):
        rng = stream(seed, "nce", dataset_id, GAUSS, s)
        low, high = entry.variances
        variances = rng.uniform(low, high, DIMENSION)
        rows.append(_row(1, s, np.ones(1), families.mean_point([entry.mean, 0.0])))
        rows.append(
            _row(DIMENSION, s, variances, families.diagonal_point(0.0, np.stack([variances, np.ones(DIMENSION)])))
        )
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


def images(entry: Images, dataset_id: str) -> pl.DataFrame:
    """Return pixels and labels of the source (NCE-DIG, NCE-MNIST); no rows for MNIST without a path.

    Raises SandglassError if MNIST's files are not there, damaged, or others than ``entry.md5`` says.
    """
    from pipeline.languages import digits

    if entry.source == "bundled":
        parts = {"any": digits.bundled()}
    elif entry.path is None:
        parts = {}
    else:
        folder = Path(entry.path).expanduser()
        if not folder.is_dir():
            raise SandglassError(
                f"params/nce/datasets.yaml: {dataset_id}.path: {entry.path!r} is no folder here; name the one that "
                "holds MNIST's files, or take path out"
            )
        parts = {part: digits.mnist(folder, part) for part in digits.MNIST_FILES}
        _check_files(folder, entry.md5, dataset_id)
    frames = [
        pl.DataFrame({"label": labels, "pixels": list(pixels)}).with_columns(pl.lit(part).alias("part"))
        for part, (pixels, labels) in parts.items()
    ]
    schema: dict[str, Any] = {"label": pl.Int8, "pixels": pl.List(pl.UInt8), "part": pl.String}
    frame = pl.concat([pl.DataFrame(schema=schema), *(frame.cast(pl.Schema(schema)) for frame in frames)])
    levels = pl.lit(digits.LEVELS[entry.source], pl.Int16).alias("levels")
    index = pl.int_range(pl.len(), dtype=pl.Int32).alias("index")
    return frame.select(index, "label", "part", levels, "pixels")


def _check_files(folder: Path, expected: MnistFiles | None, dataset_id: str) -> None:
    """Raise SandglassError unless MNIST's files, unpacked, have the md5 that the parameters name."""
    from pipeline.languages import digits

    for part, names in digits.MNIST_FILES.items():
        for what, name in zip(("images", "labels"), names, strict=True):
            plain, packed = folder / name, folder / f"{name}.gz"
            content = plain.read_bytes() if plain.is_file() else gzip.decompress(packed.read_bytes())
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            if md5 != getattr(expected, f"{part}_{what}"):
                raise SandglassError(
                    f"params/nce/datasets.yaml: {dataset_id}.md5.{part}_{what}: the file {name} in {folder} is another "
                    f"one, with md5 {md5}"
                )
