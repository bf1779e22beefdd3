"""Optimisers of the trainer, and the course of the learning rate.

Adam (Kingma & Ba 2015, algorithm 1), AdamW (Loshchilov & Hutter 2019, algorithm 2), SGD, and SGD along the gradient
divided by its norm. On a CPU they update replicas of one rate and scale in one pass over memory (`UPDATES`). A GPU
would have to be waited for to know which replicas have diverged, so there all are updated, with rates that are 0 where
one has (`MASKED`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pipeline.training.jobs import Header, State


def learning_rate(header: Header, step: int) -> float:
    """Return the factor on the peak rate at 0-based ``step``.

    It rises linearly to 1 over the first ``warmup`` steps, and then stays there, or falls to ``floor`` along half a
    cosine or a line: to where it would be at the step after the last.
    """
    if step < header.warmup:
        return (step + 1) / header.warmup
    if header.schedule == "constant":
        return 1.0
    falling = header.steps - header.warmup
    if header.schedule == "linear":
        left = (header.steps - step) / falling
    else:
        left = 0.5 * (1 + math.cos(math.pi * (step - header.warmup) / falling))
    return header.floor + (1 - header.floor) * left


Pieces = list[Tensor]  # contiguous parts of replicas (`pipeline.training.jobs.Views`)


def _adamw(
    header: Header, step: int, rate: float, scale: float, weights: Pieces, gradients: Pieces, moments: dict[str, Pieces]
) -> None:
    """Shrink all weights by the rate times the decay, then apply the update of Adam; Adam has a decay of 0.

    The kernel is that of `torch.optim.AdamW` with ``fused=True``.
    """
    torch._fused_adamw_(
        weights,
        gradients if scale == 1 else torch._foreach_mul(gradients, scale),
        moments["mean"],
        moments["square"],
        [],
        [torch.tensor(float(step + 1))] * len(weights),
        lr=rate,
        beta1=header.betas[0],
        beta2=header.betas[1],
        weight_decay=header.weight_decay if header.optimizer == "adamw" else 0.0,
        eps=header.eps,
        amsgrad=False,
        maximize=False,
    )


def _sgd(
    header: Header, step: int, rate: float, scale: float, weights: Pieces, gradients: Pieces, moments: dict[str, Pieces]
) -> None:
    torch._foreach_add_(weights, gradients, alpha=-rate * scale)


# Each takes a step with gradients times ``scale``, at the ``rate`` of the 0-based ``step``.
UPDATES = {"adam": _adamw, "adamw": _adamw, "sgd": _sgd, "normalised_sgd": _sgd}


def scale(header: Header, norm: float) -> float:
    """Return what a gradient of a norm is multiplied by: to clip it, or to give it the length 1 unless it is 0."""
    if header.optimizer == "normalised_sgd":
        return 1 / norm if norm else 0.0
    return header.clip / norm if 0 < header.clip < norm else 1.0


def scales(header: Header, norm_R: Tensor) -> Tensor | None:
    """Return `scale` of every replica (R,) without waiting for a GPU; None where it is 1 for all."""
    if header.optimizer == "normalised_sgd":
        return torch.where(norm_R > 0, 1 / norm_R, torch.zeros_like(norm_R))
    return header.clip / norm_R.clamp(min=header.clip) if header.clip else None


def _masked_adam(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    """Apply one Adam update to the flat weights; a rate of 0 leaves a replica as it is."""
    b1, b2 = header.betas
    mean, square = state.moments["mean"], state.moments["square"]
    t = state.step + 1
    mean.lerp_(gradient, 1 - b1)
    square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
    denominator = square.sqrt().div_(math.sqrt(1 - b2**t)).add_(header.eps)
    rate_Rx1 = lr_Rx1 * (learning_rate(header, state.step) / (1 - b1**t))
    state.flat.sub_((rate_Rx1 * mean).div_(denominator))


def _masked_adamw(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    state.flat.mul_(1 - lr_Rx1 * (learning_rate(header, state.step) * header.weight_decay))
    _masked_adam(header, state, gradient, lr_Rx1)


def _masked_sgd(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    state.flat.sub_(gradient * (lr_Rx1 * learning_rate(header, state.step)))


# Each takes a step of all replicas, with the gradient (R, P) as scaled (`scales`), and 0 where a replica has diverged.
MASKED = {"adam": _masked_adam, "adamw": _masked_adamw, "sgd": _masked_sgd, "normalised_sgd": _masked_sgd}
