"""Verifiers of what language models write, for `pipeline.models.llama.decoding` (Li 2025, sections 3.2.1.2, 3.2.2.6).

Each returns the probability that what is written so far is right.

`Trained` reads a hidden state of the model that wrote it, `Within` only of some lengths; `Known` asks a rule;
`Guessing` knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from pipeline.errors import SandglassError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import NDArray

Layer = tuple[Tensor, Tensor]  # weights (R, in, out) and biases (R, out) of R verifiers side by side


@dataclass(frozen=True)
class Trained:
    """Linear layers with ReLU between them and two outputs, wrong and right; one alone is linear.

    One verifier for each of R models, which reads their state in ``layer``.
    """

    layer: int | None
    weights: Sequence[Layer]

    def check(self, models: int, width: int) -> None:
        """Raise SandglassError if these verifiers are not for so many models of this width."""
        count, read = self.weights[0][0].shape[:2]
        if (count, read) != (models, width):
            raise SandglassError(
                f"{count} verifiers of states of width {read} do not fit {models} models of width {width}"
            )

    def __call__(
        self, states: Tensor | None, tokens: Tensor, lengths: Tensor, chances: Tensor, asked: Tensor
    ) -> Tensor:
        """Return the probability of being right (R, B)."""
        if states is None:
            raise SandglassError("this verifier reads hidden states, and there are none of its layer")
        self.check(states.shape[0], states.shape[-1])
        return scores(self.weights, states).softmax(-1)[..., 1]


def scores(weights: Sequence[Layer], states: Float[Tensor, "R N D"]) -> Float[Tensor, "R N 2"]:
    """Return what R verifiers make of their states, before the softmax."""
    for number, (W, b) in enumerate(weights):
        states = torch.baddbmm(b[:, None], F.relu(states) if number else states, W)
    return states


@dataclass(frozen=True)
class Within:
    """A verifier that is asked only about the lengths that it learned from; of all others it says that they are right.

    ``learned`` (R, T) says of each length whether it is one of these.
    """

    inner: Trained
    learned: Tensor

    @property
    def layer(self) -> int | None:
        """Return the layer of the state that it reads."""
        return self.inner.layer

    def __call__(
        self, states: Tensor | None, tokens: Tensor, lengths: Tensor, chances: Tensor, asked: Tensor
    ) -> Tensor:
        """Return the probability of being right (R, B), 1 where the verifier is not asked."""
        right = self.inner(states, tokens, lengths, chances, asked)
        return torch.where(self.learned.gather(1, lengths), right, torch.ones_like(right))


@dataclass(frozen=True)
class Known:
    """A rule: ``right(tokens (N, T), lengths (N,))`` returns what can still be completed (Definition 3.1.3)."""

    right: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
    layer: None = None

    def __call__(
        self, states: Tensor | None, tokens: Tensor, lengths: Tensor, chances: Tensor, asked: Tensor
    ) -> Tensor:
        """Return 1 or 0 (R, B)."""
        found = torch.ones(lengths.shape, dtype=torch.float64)
        answer = self.right(tokens[asked].cpu().numpy(), lengths[asked].cpu().numpy())
        found[asked.cpu()] = torch.from_numpy(np.asarray(answer, np.float64))
        return found.to(lengths.device)


@dataclass(frozen=True)
class Guessing:
    """Knows nothing. Without ``rates`` it returns a uniform number at each check, so that it rejects as often as the
    threshold says; with them (R,) it objects, with probability 0 of being right, at that rate of each model."""

    rates: Tensor | None = None
    layer: None = None

    def __call__(
        self, states: Tensor | None, tokens: Tensor, lengths: Tensor, chances: Tensor, asked: Tensor
    ) -> Tensor:
        """Return ``chances`` (R, B), or 0 where they are below the rate and else 1."""
        return chances if self.rates is None else (chances >= self.rates[:, None]).to(chances.dtype)
