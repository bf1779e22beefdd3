"""Optimisers of the trainer, on flat weights (R, P) of all replicas, and the course of the learning rate.

Adam (Kingma & Ba 2015, algorithm 1), AdamW (Loshchilov & Hutter 2019, algorithm 2), SGD, and SGD along the gradient
divided by its norm.
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


def _adam(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    """Apply one Adam update to the flat weights; a rate of 0 leaves a replica as it is."""
    b1, b2 = header.betas
    mean, square = state.moments["mean"], state.moments["square"]
    t = state.step + 1
    mean.lerp_(gradient, 1 - b1)
    square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
    scale = math.sqrt(1 - b2**t)
    denominator = square.sqrt().div_(scale).add_(header.eps)
    rate_Rx1 = lr_Rx1 * (learning_rate(header, state.step) / (1 - b1**t))
    state.flat.sub_((rate_Rx1 * mean).div_(denominator))


def _adamw(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    """Shrink all weights by the rate times the decay, then apply the update of Adam."""
    state.flat.mul_(1 - lr_Rx1 * (learning_rate(header, state.step) * header.weight_decay))
    _adam(header, state, gradient, lr_Rx1)


def _sgd(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    state.flat.sub_(gradient.mul_(lr_Rx1 * learning_rate(header, state.step)))


def _normalised_sgd(header: Header, state: State, gradient: Tensor, lr_Rx1: Tensor) -> None:
    """Take a step as long as the rate, whatever the gradient's size; none where it is exactly 0."""
    norm_Rx1 = gradient.norm(dim=-1, keepdim=True)
    _sgd(header, state, gradient / torch.where(norm_Rx1 > 0, norm_Rx1, torch.ones_like(norm_Rx1)), lr_Rx1)


UPDATES = {"adam": _adam, "adamw": _adamw, "sgd": _sgd, "normalised_sgd": _normalised_sgd}
