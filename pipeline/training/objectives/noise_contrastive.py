"""Noise-contrastive estimation: a model g of the log-ratio log p/q learns to tell data from noise.

Losses of one replica on data x and noise y (Liu 2024, section 4.1: definition 19, eq. 4.1; definition 20, eq. 4.11):

    nce     1/2 mean softplus(-g(x)) + 1/2 mean softplus(g(y))
    ence    1/2 mean exp(-g(x)/2)    + 1/2 mean exp(g(y)/2)

Each batch has the images that are its turn and fresh draws from the noise. With ``clip``, log-ratios beyond it are cut
off before the loss sees them, which leaves them without a gradient (section 4.1.6, "per-sample log ratio clipping").

Data (arrays of the job, c corpora, one per seed): ``train`` (c, n, d) images, ``noise.mean`` (c, d) and
``noise.factor`` (c, d, d) of the Gaussian noise. Held: ``train``, ``noise``, ``test``, ``test_noise`` (c, m, d).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.languages import digits

if TYPE_CHECKING:
    from jaxtyping import Float

    from pipeline.training.jobs import Forward

CHUNK = 256  # images of one replica at a time in evaluation: activations that stay in a cache


class Objective:
    """Batches and losses of one run; ``settings``: ``loss`` (nce or ence), ``clip`` (of |g|, or None), ``noise``
    (draws per batch)."""

    l2 = 0.0
    side_by_side = 1  # nothing is gained: bound by the convolutions
    metrics = ("loss", "accuracy")
    evaluated = ("train_loss", "test_loss", "train_nce_loss", "clip_fraction")

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        self.data = data
        self.sequences = data["train"].shape[1]
        self.losses = LOSSES[settings["loss"]]
        self.clip: float | None = settings["clip"]
        self.noise = int(settings["noise"])

    def collate(
        self, corpora: list[int], selections: list[np.ndarray], rngs: Sequence[Callable[[], np.random.Generator]]
    ) -> dict[str, np.ndarray]:
        """Return ``images`` (R, B, d): the images chosen from each replica's corpus, then draws of its noise."""
        rows = []
        for corpus, chosen, rng in zip(corpora, selections, rngs, strict=True):
            mean, factor = self.data["noise.mean"][corpus], self.data["noise.factor"][corpus]
            noise = digits.sample(mean, factor, self.noise, rng())
            rows.append(np.concatenate([self.data["train"][corpus, chosen], noise]))
        return {"images": np.stack(rows)}

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica; accuracy is the share of images on the side of 0 where they belong.

        Data and noise go through the model side by side, in one pass.
        """
        log_ratio_RxB, _ = forward(batch["images"])
        data_RxB, noise_RxB = log_ratio_RxB[:, : -self.noise], log_ratio_RxB[:, -self.noise :]
        right = (data_RxB > 0).sum(-1) + (noise_RxB < 0).sum(-1)
        accuracy = right / log_ratio_RxB.shape[-1]
        return {"loss": self._loss(data_RxB, noise_RxB), "accuracy": accuracy.to(log_ratio_RxB.dtype)}

    def evaluate(self, forward: Forward, held: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``evaluated`` per replica.

        These are what is minimised, on training and on test images, each with noise of their own; the NCE loss on
        training images, without clipping; and which share of training images and their noise is clipped.
        """
        g = {
            name: torch.cat([forward(part)[0] for part in held[name][held["corpus"]].split(CHUNK, dim=1)], dim=1)
            for name in ("train", "noise", "test", "test_noise")
        }
        both_RxB = torch.cat([g["train"], g["noise"]], dim=1)
        beyond = both_RxB.abs() > self.clip if self.clip is not None else torch.zeros_like(both_RxB)
        return {
            "train_loss": self._loss(g["train"], g["noise"]),
            "test_loss": self._loss(g["test"], g["test_noise"]),
            "train_nce_loss": contrast(nce, g["train"], g["noise"]),
            "clip_fraction": beyond.to(both_RxB.dtype).mean(-1),
        }

    def _loss(self, data_RxB: Tensor, noise_RxB: Tensor) -> Float[Tensor, " R"]:
        if self.clip is not None:
            data_RxB, noise_RxB = (g.clamp(-self.clip, self.clip) for g in (data_RxB, noise_RxB))
        return contrast(self.losses, data_RxB, noise_RxB)


def nce(g: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Return log(1 + exp(-g)), without overflow."""
    return F.softplus(-g)


def ence(g: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Return exp(-g/2)."""
    return torch.exp(-g / 2)


LOSSES = {"nce": nce, "ence": ence}


def contrast(
    loss: Callable[[Tensor], Tensor], data: Float[Tensor, "R B"], noise: Float[Tensor, "R N"]
) -> Float[Tensor, " R"]:
    """Return 1/2 mean loss(g(x)) + 1/2 mean loss(-g(y)), of log-ratios on data and on noise."""
    return (shifted_mean(loss(data)) + shifted_mean(loss(-noise))) / 2


def shifted_mean(values: Float[Tensor, "R B"]) -> Float[Tensor, " R"]:
    """Return the mean over the last axis as largest + mean(values - largest), whose sum cannot overflow.

    This is section 4.1.6, "removing common additive factors".
    """
    largest = values.detach().amax(-1, keepdim=True)
    return largest[..., 0] + (values - largest).mean(-1)
