"""What is done for the numbers in section 4.1.6, and what it does to them (Liu 2024; chapter 5.15, NCE-NUM1 to 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from pipeline.kit.streams import stream
from pipeline.languages import exponential_families as families
from pipeline.languages.exponential_families import Array
from pipeline.studies.nce.constructions import SOURCE, row, rows

SAMPLES = 500
FAR = 16.0
LIMIT, CLIP, UNMET = 0.5, 5.0, 1e6


def check(entry: Any, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on NCE-NUM1 to 4."""
    rng = stream(seed, "nce", theory_id)
    checks = [*_ratios(), *_shifted(entry.draws, rng), *_limited(rng), *_clamped(rng)]
    return rows(theory_id, "numerical tricks", SOURCE.format("section 4.1.6"), checks)


def shifted_mean(values: Array) -> Array:
    """Return max(v) + mean(v - max(v)) along the last axis (NUM2)."""
    top = values.max(-1, keepdims=True)
    return (top + (values - top).mean(-1, keepdims=True))[..., 0]


def sample_gradients(statistics_DxN: Array, is_data: Array, delta: Array, clip: float | None) -> Array:
    """Return the NCE gradients (N, D) of single samples.

    NUM4: psi is clamped to [-clip, clip], beyond which it is constant; without ``clip`` there is no clamp.
    """
    psi = delta @ statistics_DxN
    value = psi if clip is None else psi.clip(-clip, clip)
    slope = np.where(is_data, -special.expit(-value), special.expit(value))
    if clip is not None:
        slope = np.where(np.abs(psi) <= clip, slope, 0.0)
    gradients: Array = slope[:, None] * statistics_DxN.T
    return gradients


def limited(gradients_NxD: Array, largest: float) -> Array:
    """Return each sample's gradient times min(1, K/|g|), K = ``largest`` (NUM3)."""
    norm = np.linalg.norm(gradients_NxD, axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return gradients_NxD * np.minimum(1, np.where(norm > 0, largest / norm, 1))


def other_bits(first: Array, second: Array) -> float:
    """Return how many entries differ in any bit; NaN if one of them is no number."""
    if not np.isfinite([first, second]).all():
        return float("nan")
    return float((first.view(np.uint64) != second.view(np.uint64)).sum())


def _ratios() -> Iterator[dict[str, Any]]:
    """Yield rows on NUM1: log-space ratios, where densities underflow."""
    x = 60.0
    densities = families.normal_density(x, np.array([FAR, 0.0]))
    yield row(
        "ratio-densities",
        "p_*/q from densities is no number far out: number of densities that underflow",
        f"R = {FAR:g}, x = {x:g}",
        int((densities == 0).sum()),
        ">=",
        1.0,
    )
    psi = FAR * x - FAR**2 / 2
    logs = (x**2 - (x - FAR) ** 2) / 2
    yield row(
        "ratio-logarithms",
        "tau . T gives its logarithm: difference from the exact one",
        f"R = {FAR:g}, x = {x:g}",
        abs(psi - logs),
        "<=",
        1e-9,
    )
    ratio = 40.0
    yield row(
        "sigmoid-rounded",
        "1 - sigmoid(psi) for sigmoid(-psi) loses it: value at psi = 40, where sigmoid(-psi) is 4e-18",
        "psi = 40",
        float(1 - special.expit(ratio)),
        "<=",
        0.0,
        detail="see table gauss_precision for what this does to a path",
    )


def _shifted(draws: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    values = rng.uniform(-10, 10, (draws, SAMPLES))
    yield row(
        "shifted-mean",
        "max(v) + mean(v - max(v)) is the mean: largest difference",
        f"{draws} times {SAMPLES} values in [-10, 10]",
        np.abs(shifted_mean(values) - values.mean(-1)).max(),
        "<=",
        1e-12,
    )


def _batch(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return statistics (2, N), which of them are data, and a delta at which some are separated widely."""
    is_data = np.arange(SAMPLES) % 2 == 0
    x = rng.standard_normal(SAMPLES) + FAR / 4 * is_data
    return families.mean_statistics(x), is_data, np.array([3.0, 4.0])


def _limited(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    gradients = sample_gradients(*_batch(rng), clip=None)
    changed = other_bits(limited(gradients, np.inf), gradients)
    size = f"{SAMPLES} samples"
    yield row(
        "limit-none",
        "Without a limit on single gradients nothing changes: entries with other bits",
        size,
        changed,
        "<=",
        0.0,
    )
    bounded = limited(gradients, LIMIT)
    norms = np.linalg.norm(bounded, axis=-1)
    yield row(
        "limit-norm",
        f"With K = {LIMIT} no gradient of a sample is longer: largest norm",
        size,
        norms.max(),
        "<=",
        LIMIT * (1 + 1e-12),
    )
    mean, other = gradients.mean(0), bounded.mean(0)
    cosine = mean @ other / (np.linalg.norm(mean) * np.linalg.norm(other))
    yield row(
        "limit-turns",
        "It turns the mean gradient, which NGD normalises: cosine of the angle",
        size,
        cosine,
        "<=",
        1 - 1e-6,
    )


def _clamped(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    statistics, is_data, delta = _batch(rng)
    free = sample_gradients(statistics, is_data, delta, None)
    far = np.abs(delta @ statistics) > CLIP
    clamped = sample_gradients(statistics, is_data, delta, CLIP)
    changed = other_bits(sample_gradients(statistics, is_data, delta, UNMET), free)
    size = f"{SAMPLES} samples, {int(far.sum())} beyond |psi| = {CLIP:g}"
    yield row(
        "clamp-none",
        f"A clamp that no log-ratio meets, at {UNMET:g}, changes nothing: entries with other bits",
        size,
        changed,
        "<=",
        0.0,
    )
    yield row(
        "clamp-zero",
        "Beyond the clamp the gradient is zero, so a saturated network cannot come back: largest norm there",
        size,
        np.abs(clamped[far]).max(),
        "<=",
        0.0,
    )
    yield row(
        "clamp-loses",
        "Without the clamp those samples have a gradient: largest norm there",
        size,
        np.abs(free[far]).max(),
        ">=",
        1e-12,
    )
