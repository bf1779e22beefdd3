"""Runs of the NCE study: log-ratios of images against Gaussian noise, over a grid of step sizes (Figure 4.3)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import digits
from pipeline.training.jobs import Header
from schemas.nce.datasets import SCHEMA as DATASET_SCHEMA

if TYPE_CHECKING:
    from pipeline.studies.nce.params import Run

__all__ = ["DATASET_SCHEMA", "prepare"]


def prepare(entry: Run, frame: pl.DataFrame, seed: int) -> tuple[Header, dict[str, np.ndarray], np.ndarray]:
    """Return what training needs: the header, each seed's images and noise (float32), the table that makes g a density.

    Seed r has a split, a dequantisation, a fitted noise and fixed draws for evaluation of its own, which all runs on
    one dataset share, whatever they minimise and at whatever rate.

    Raises SandglassError if the dataset holds no images.
    """
    if not frame.height:
        raise SandglassError(
            f"dataset {entry.dataset} holds no images: set datasets.{entry.dataset}.path to the folder of MNIST's "
            "files, or the replicas of its runs to 0"
        )
    pixels = np.stack(frame["pixels"].to_list())
    parts = frame["part"].to_numpy()
    seeds = [_seed(entry, pixels, parts, int(frame["levels"][0]), seed, r) for r in range(entry.replicas)]
    data = {name: np.stack([arrays[name] for arrays in seeds]).astype(np.float32) for name in seeds[0]}
    spec = {
        "side": int(np.sqrt(pixels.shape[1])),
        "widths": entry.widths,
        "strides": entry.strides,
        "groups": entry.groups,
        "features": entry.features,
    }
    settings = {"loss": entry.loss, "clip": entry.log_ratio_clip, "noise": entry.batch}
    header = Header.grid(entry, seed, spec, settings)
    table = np.concatenate([data["noise.mean"][:, None], data["noise.factor"]], axis=1)
    # Models of one seed see one corpus.
    return dataclasses.replace(header, corpus=header.streams or []), data, table


def _seed(
    entry: Run, pixels: np.ndarray, parts: np.ndarray, levels: int, seed: int, replica: int
) -> dict[str, np.ndarray]:
    """Return the images and noise of one seed, as `pipeline.training.objectives.noise_contrastive` names them."""
    rng = stream(seed, entry.study, entry.dataset, "images", replica)
    train, test = digits.corpus(pixels, parts, entry.held_out, levels, entry.logit_alpha, rng)
    noise = digits.fit(train, entry.q_kind)
    rng = stream(seed, entry.study, entry.dataset, "noise", replica)
    seen, unseen = train[: entry.evaluated], test[: entry.evaluated]
    return {
        "train": train,
        "noise.mean": noise.mean,
        "noise.factor": noise.factor,
        "held.train": seen,
        "held.noise": digits.sample(noise.mean, noise.factor, len(seen), rng),
        "held.test": unseen,
        "held.test_noise": digits.sample(noise.mean, noise.factor, len(unseen), rng),
    }
