"""Section 2.1.6.1: why the value matrix is first to grow from a start near zero (chapter 5.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from pipeline.kit.extremes import largest
from pipeline.kit.streams import one_thread, stream
from pipeline.languages.topic_population import Population
from pipeline.models.topic_exact import gradients
from pipeline.studies.topic.constructions import CHAPTER, SOURCE, named, row
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Gradients

HERE = SOURCE.format(".6.1")
LOSS = {"ce": "cross-entropy", "sq_sum": "squared loss"}
POWERS = {"W_v": 0, "W_k": 2, "W_q": 2}


def check(entry: Gradients, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the size of gradients near zero (TH7)."""
    topics, v, tau = entry.size
    known = Population(topics, v, tau, Masking.of(entry.masking, float))
    rng = stream(seed, entry.study, key)
    with one_thread():
        made = [found for kind in gradients.LOSSES for found in _kind(entry, known, kind, rng)]
    return theory.rows(entry.study, key, HERE, made)


def _kind(
    entry: Gradients, known: Population, kind: str, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    starts = [gradients.start(known, rng) for _ in range(entry.starts)]
    found = [[gradients.norms(known, start, scale, kind) for scale in entry.scales] for start in starts]
    at = f"{named(entry.size)[1]}, {entry.starts} starts, scales {min(entry.scales):g} to {max(entry.scales):g}"
    loss = LOSS[kind]
    for matrix, power in POWERS.items():
        slopes = [
            np.polyfit(np.log(entry.scales), np.log([norms[matrix] for norms in each]), 1)[0]
            for each in found
        ]
        symbol = f"W^{matrix[-1].upper()}"
        yield row(
            f"gradient.slope.{kind}-{matrix[-1]}", f"The gradient of {symbol} under {loss} goes with the power {power} "
            "of the scale of the start: largest distance of the slope in logarithms", at,
            largest(np.abs(np.array(slopes) - power)), "<=", 0.05 if power == 0 else 0.1, source=CHAPTER.format(9),
            detail=", ".join(f"{slope:.4f}" for slope in slopes),
        )  # fmt: skip
    shares = [norms["b_k"] / norms["W_v"] for each in found for norms in each]
    yield row(
        f"gradient.key-bias.{kind}", f"Under {loss} the key bias has no gradient, as a softmax does not see what all "
        "scores share: largest norm over that of the value matrix", at, largest(shares), "<=", 1e-8,
        source=CHAPTER.format(9),
    )  # fmt: skip
    bare = [each[int(np.argmin(entry.scales))]["W_v"] for each in found]
    yield row(
        f"gradient.limit.{kind}", f"At the smallest scale the gradient of W^V under {loss} is that of zero matrices, "
        "in closed form: largest relative distance", at,
        largest(np.abs(np.array(bare) / gradients.limit(known, kind) - 1)), "<=", 0.01, source=CHAPTER.format(9),
        detail=f"{gradients.limit(known, kind):.5g}",
    )  # fmt: skip
    ratios = [norms["W_k"] / norms["W_v"] for each in found for norms in each]
    yield row(
        f"gradient.order.{kind}", f"Near zero the gradient of W^V under {loss} is larger than that of W^K: largest "
        "ratio of the second to the first", at, largest(ratios), "<=", 0.01,
    )  # fmt: skip
    # By differences of the loss, which use no derivative.
    scale, step = 0.3, 1e-5
    start = {name: torch.from_numpy(direction * scale) for name, direction in starts[0].items()}
    off = []
    for name in ("W_k", "W_q", "W_v", "b_q", "b_v"):
        way = torch.from_numpy(rng.normal(size=tuple(start[name].shape)))
        ahead, behind = (
            float(gradients.loss(known, start | {name: start[name] + sign * step * way}, kind))
            for sign in (1, -1)
        )
        leaf = start[name].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(gradients.loss(known, start | {name: leaf}, kind), leaf)
        exact = float((gradient * way).sum())
        off.append(abs((ahead - behind) / (2 * step) - exact) / (abs(exact) + 1e-6))
    yield row(
        f"gradient.differences.{kind}", f"Gradients under {loss} are those of differences of the loss along random "
        "directions: largest relative distance", f"{named(entry.size)[1]}, scale {scale:g}", largest(off), "<=", 1e-3,
        source=CHAPTER.format(9),
    )  # fmt: skip
