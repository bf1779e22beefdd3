"""Models with weights by hand, which theory checks execute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
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


# --- rows of theory checks of sparse parity (section 5 of the chapter) ---------------------------------

LIU = "Liu 2024, section 4.2.{}"
ERRATUM = "distillation-{}"


def row(
    check: str, statement: str, size: str, measured: float, comparison: str, bound: float, **more: Any
) -> dict[str, Any]:
    """Return one row of `schemas.theory.rows`."""
    return {
        "check": check, "statement": statement, "size": size, "measured": float(measured),
        "comparison": comparison, "bound": float(bound), **more,
    }  # fmt: skip


def printed(name: str) -> dict[str, str]:
    """Return what makes a row one that shows the printed form of an erratum fail."""
    return {"form": "printed", "erratum": ERRATUM.format(name)}


def corrected(name: str) -> dict[str, str]:
    """Return what makes a row one that shows the corrected form of an erratum hold."""
    return {"form": "corrected", "erratum": ERRATUM.format(name)}


def exceptions(bad: ArrayLike, *outputs: ArrayLike) -> float:
    """Return how often ``bad`` is true; NaN if one of the outputs that it was found from is NaN."""
    broken = any(bool(np.isnan(output).any()) for output in outputs)
    return math.nan if broken else float(np.sum(bad))
