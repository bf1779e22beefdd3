"""Models with weights by hand, which theory checks execute."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.models.transformer import decoder


def counter(symbols: int, length: int) -> tuple[decoder.Spec, dict[str, Tensor], Tensor]:
    """Return shape, weights and embedding of a layer that does nothing below a head that adds one."""
    spec = decoder.Spec(
        block="gpt", layers=1, heads=1, width=symbols, ffn=symbols, attention="learned", position="none",
        t_max=length, inputs=symbols, outputs=symbols,
    )  # fmt: skip
    weights = {name: torch.zeros(1, *shape) for name, shape in decoder.shapes(spec).items()}
    table = torch.eye(symbols)
    weights["head.W"][0] = table.roll(1, dims=1)
    return spec, weights, table
