"""Losses of stage 2 over alpha and beta, and where they are least (Li 2025, section 2.1.5.5, Figures 2.7 and 2.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.inputs import Inputs
from pipeline.languages.topic import Masking, Population
from pipeline.studies.topic.exact import stage_two
from pipeline.studies.topic.exact.stage_two import KINDS, VARIANTS


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the losses on a grid of alpha and beta, and for each landscape its optimum and its lowest part."""
    entry = context.entry
    masking = Masking(entry.p_mask, entry.p_keep, entry.p_random)
    points = (entry.high - entry.low) * entry.per_decade + 1
    axis = 10 ** np.linspace(entry.low, entry.high, points)
    landscapes, optima = [], []
    for tau in entry.taus:
        known = Population(entry.topics, entry.v, tau, masking)
        for kind in KINDS:
            for variant in VARIANTS:
                named = {"T": known.topics, "v": known.v, "tau": tau, "kind": kind, "variant": variant}
                loss_AxB = stage_two.LOSSES[kind](known, axis[:, None], axis[None, :], variant)
                landscapes.append(
                    _grid(loss_AxB, axis).with_columns(pl.lit(value).alias(name) for name, value in named.items())
                )
                optima += [named | row for row in _optimum(known, kind, variant, loss_AxB, axis, entry.share)]
    return {"landscape": pl.concat(landscapes), "stage2_opt": pl.DataFrame(optima, infer_schema_length=None)}


def _grid(loss_AxB: np.ndarray, axis: np.ndarray) -> pl.DataFrame:
    i, j = (place.ravel() for place in np.indices(loss_AxB.shape))
    return pl.DataFrame({"i": i, "j": j, "alpha": axis[i], "beta": axis[j], "loss": loss_AxB.ravel()})


def _optimum(
    known: Population, kind: str, variant: str, loss_AxB: np.ndarray, axis: np.ndarray, share: float
) -> Iterator[dict[str, Any]]:
    """Yield the optimum of a landscape, the theorem's interval, and the extent of the lowest part of the grid."""
    optimum = stage_two.exact_optimum(known, kind, variant)
    ends = stage_two.interval(known, kind)
    least, most = float(loss_AxB.min()), float(loss_AxB.max())
    level = least + share * (most - least)
    alpha, beta = (part[loss_AxB <= level] for part in np.broadcast_arrays(axis[:, None], axis[None, :]))
    gamma = stage_two.gamma(known, alpha, beta)
    gap = None
    if kind == "block":
        same = stage_two.gamma(known, axis[:, None], axis[None, :])
        gap = largest(np.abs(loss_AxB - stage_two.block_loss(known, same, same, variant)))
    yield {
        "alpha_star": float(optimum.alpha) if kind == "diag" else None,
        "beta_star": float(optimum.beta) if kind == "diag" else None,
        "gamma_star": float(optimum.gamma),
        "l_min": float(optimum.loss),
        "lo_printed": ends.printed,
        "lo_proof": ends.proof,
        "hi": ends.high,
        "lambda5": ends.ratio if kind == "diag" else None,
        "inside": stage_two.inside(known, kind, optimum, "printed") and stage_two.inside(known, kind, optimum, "proof"),
        "grid_min": least,
        "grid_max": most,
        "level": level,
        "n_low": len(alpha),
        "alpha_low": alpha.min(),
        "alpha_high": alpha.max(),
        "beta_low": beta.min(),
        "beta_high": beta.max(),
        "gamma_low": gamma.min(),
        "gamma_high": gamma.max(),
        "ratio_high": (alpha / beta).max(),
        "gamma_gap": gap,
    }
