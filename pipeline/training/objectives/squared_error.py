"""The theory's objective: squared distance of the output from the one-hot next token, and an l2 term.

Loss of one replica on one batch (Wen et al. 2023, section 2, eqs 4 and 5, and the regularised version):

    mean over the batch's target positions of |f(what came before) - onehot(target)|^2
        + l2 * |theta|^2 / 2

Its minimiser is the law of the next token, so outputs are estimates of probabilities, not logits. Data as in
`pipeline.training.packing.Batches`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from pipeline.training.packing import Batches

if TYPE_CHECKING:
    from jaxtyping import Float

    from pipeline.training.jobs import Forward


class Objective(Batches):
    """Batches and losses of one run; ``settings`` holds ``l2``, which the trainer applies."""

    def __init__(self, data: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        super().__init__(data)
        self.l2 = float(settings["l2"])

    def loss(self, forward: Forward, batch: dict[str, Tensor]) -> dict[str, Float[Tensor, " R"]]:
        """Return ``metrics`` per replica, without the l2 term."""
        outputs_RxKxO = self.outputs(forward, batch)
        targets_RxK = batch["targets"]
        counted_RxK = targets_RxK >= 0
        n = counted_RxK.sum(-1).clamp(min=1)
        onehot = F.one_hot(targets_RxK.clamp(min=0), outputs_RxKxO.shape[-1]).to(outputs_RxKxO.dtype)
        squared = (outputs_RxKxO - onehot).square().sum(-1) * counted_RxK
        hits = (outputs_RxKxO.detach().argmax(-1) == targets_RxK).sum(-1)
        loss = squared.sum(-1) / n
        return {"loss": loss, "accuracy": hits / n, "regulariser": loss.new_zeros(loss.shape)}
