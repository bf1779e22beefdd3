"""The Transformer of the theorems, with a leading replica axis (DYCK-M9: Wen et al. 2023, section 2, eqs 6 to 10).

Column vectors of the paper are rows here, so a matrix W of the paper stands as its transpose (rows of an
attention pattern are queries). One layer reads X and gives, by ``Spec.block``,

``eq6``    g(LN_C(A X W_V) + X), A = softmax over keys of (X W_Q) (X W_K)' under the causal mask
``eq52``   g(LN_C(A X W_V + X)): the order of GPT (appendix C.7)

with one head, logits that are not scaled, no affine maps in the normalisation
LN_C(a) = P a / max(|P a|, C), P = I - 11'/m (eq. 7), and g a ReLU network of fully connected layers without
residual link. Constructed and trained weights go through the same `forward`, in the precision they come in.
``Spec.attention`` is ``learned``, or ``uniform``: queries times 0.

Names and shapes of parameters, without the replica axis (m = width, a = keys, O = outputs):

``blocks.{l}.attn.W_Q``  (m, a)   and ``W_K`` (m, a), ``W_V`` (m, m)
``blocks.{l}.mlp.{i}.W`` (in, out) and ``b`` (out,): m -> ffn[0] -> ... -> ffn[-1] -> m, a ReLU between any two
``head.W``               (m, O)

Names that ``forward`` can record: ``blocks.{l}.attn.pattern`` (R, B, 1, T, T), ``blocks.{l}.attn.out`` (a_l of
eq. 8), ``blocks.{l}.ln`` (the output of LN_C) and ``blocks.{l}.out`` (of the layer), each (R, B, T, m).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.store import checkpoints

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

# Pairs that cancel leave about 1e-16 of values near 1, which LN_0 would blow up to a random unit vector; the
# weakest signals of the constructions are 1e-7.
ROUNDING = 1e-12
RECORDED = ("attn.pattern", "attn.out", "ln", "out")


@dataclass(frozen=True)
class Spec:
    """The shape of a model; ``inputs`` and ``outputs`` count the symbols it reads and predicts.

    ``ffn`` gives the widths of the hidden layers of g, the same in every layer; one number is one hidden layer.
    The last two are for constructions, a run does not name them: ``keys``, the width m_a of keys and queries,
    is ``width`` where it is None; ``floor`` is C of LN_C, and 0 asks for LN_0 with LN_0(0) = 0.
    """

    block: str
    layers: int
    heads: int
    width: int
    ffn: int | tuple[int, ...]
    attention: str
    position: str
    t_max: int
    inputs: int
    outputs: int
    keys: int | None = None
    floor: float = 1e-5

    @property
    def widths(self) -> list[int]:
        """Widths of what g reads, of its hidden layers, of what it gives."""
        hidden = [self.ffn] if isinstance(self.ffn, int) else list(self.ffn)
        return [self.width, *hidden, self.width]


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    m, a = spec.width, spec.keys or spec.width
    parameters: dict[str, tuple[int, ...]] = {}
    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        parameters |= {f"{at}.attn.W_Q": (m, a), f"{at}.attn.W_K": (m, a), f"{at}.attn.W_V": (m, m)}
        for i, (before, after) in enumerate(itertools.pairwise(spec.widths)):
            parameters |= {f"{at}.mlp.{i}.W": (before, after), f"{at}.mlp.{i}.b": (after,)}
    return parameters | {"head.W": (m, spec.outputs)}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training, drawn in float64 so that no device changes them:
    N(0, 1/inputs), N(0, 2/inputs) in g, where a ReLU halves the signal and no residual link carries it
    past; biases 0. The paper trains no such model and gives no initialisation."""
    values = {}
    for name, shape in shapes(spec).items():
        std = math.sqrt((2 if ".mlp." in name else 1) / shape[0])
        normal = rng.normal(0.0, std, shape)
        values[name] = normal * 0 if name.endswith(".b") else normal
    return values


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Float[Tensor, "V m"],
    ids: Int[Tensor, "R B T"],
    positions: Int[Tensor, "R B T"] | None = None,
    segments: Int[Tensor, "R B T"] | None = None,
    record: Collection[str] = (),
    select: Int[Tensor, "R K"] | None = None,
) -> tuple[Float[Tensor, "R B T O"] | Float[Tensor, "R K O"], dict[str, Tensor]]:
    """Return what the head gives for the next symbol at every position, and the recorded activations.

    ``ids`` with a replica axis of 1 gives every replica the same input. Tokens attend only within their
    ``segment`` (default: all one); there is no position code, so ``positions`` change nothing. With ``select``,
    places in the B*T flattened positions, only these get logits, and what the last layer computes after its
    attention (of which ``ln`` and ``out`` are then recorded as (R, K, m)).

    Raises SandglassError for a block or position code, or a name in ``record``, that this model does not have.
    """
    _refuse_unknown(spec, record)
    R = params["head.W"].shape[0]
    _, B, T = ids.shape
    x_RxNxM = table[ids].expand(R, B, T, spec.width).reshape(R, B * T, spec.width)
    mask = _mask(segments, T, x_RxNxM)
    if segments is not None:
        mask = mask.expand(R, B, T, T).reshape(R * B, T, T)
    recorded: dict[str, Tensor] = {}

    def keep(name: str, value: Tensor) -> None:
        if name in record:
            recorded[name] = value.view(R, B, T, -1) if value.shape[1] == B * T else value

    for layer in range(spec.layers):
        at = f"blocks.{layer}"
        a_RxNxM, pattern = _attention(spec, params, at, x_RxNxM, mask, B, T)
        if f"{at}.attn.pattern" in record:
            recorded[f"{at}.attn.pattern"] = pattern.view(R, B, 1, T, T)
        keep(f"{at}.attn.out", a_RxNxM)
        if select is not None and layer == spec.layers - 1:
            wide = select[..., None].expand(-1, -1, spec.width)
            a_RxNxM, x_RxNxM = a_RxNxM.gather(1, wide), x_RxNxM.gather(1, wide)
        if spec.block == "eq6":
            normal_RxNxM = layer_norm(a_RxNxM, spec.floor)
            x_RxNxM = normal_RxNxM + x_RxNxM
        else:
            x_RxNxM = normal_RxNxM = layer_norm(a_RxNxM + x_RxNxM, spec.floor)
        keep(f"{at}.ln", normal_RxNxM)
        x_RxNxM = _mlp(spec, params, at, x_RxNxM)
        keep(f"{at}.out", x_RxNxM)
    logits = torch.bmm(x_RxNxM, params["head.W"])
    return logits if select is not None else logits.view(R, B, T, spec.outputs), recorded


def layer_norm(a: Float[Tensor, "... m"], floor: float) -> Float[Tensor, "... m"]:
    """Return LN_C of eq. (7) with C = ``floor``; at C = 0, LN_0(0) = 0, and a norm of at most `ROUNDING`
    counts as 0."""
    projected = a - a.mean(-1, keepdim=True)
    squared = projected.square().sum(-1, keepdim=True)
    # The square is bounded, not the root: at 0 the root has no derivative.
    scale = squared.clamp(min=max(floor, ROUNDING) ** 2).rsqrt()
    return projected * (scale if floor else scale * (squared > ROUNDING**2))


def _refuse_unknown(spec: Spec, record: Collection[str]) -> None:
    if spec.block not in ("eq6", "eq52") or spec.position != "none" or spec.heads != 1:
        raise SandglassError(
            f"theory_transformer: block eq6 or eq52 with one head and position none, "
            f"got {spec.block}, {spec.heads}, {spec.position}"
        )
    known = [f"blocks.{layer}.{name}" for layer in range(spec.layers) for name in RECORDED]
    if unknown := set(record) - set(known):
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(known)}")


def _mask(segments: Tensor | None, T: int, like: Tensor) -> Tensor:
    """Return an additive mask: 0 where a query may look, -inf elsewhere."""
    allowed = torch.ones(T, T, dtype=torch.bool, device=like.device).tril()
    if segments is not None:
        allowed = allowed & (segments[..., :, None] == segments[..., None, :])
    return torch.zeros(allowed.shape, dtype=like.dtype, device=like.device).masked_fill(~allowed, -math.inf)


def _attention(
    spec: Spec, params: dict[str, Tensor], at: str, x_RxNxM: Tensor, mask: Tensor, B: int, T: int
) -> tuple[Tensor, Tensor]:
    """Return a_l of eq. (8), and the pattern (R*B, T, T)."""
    R = x_RxNxM.shape[0]
    q, k, v = (torch.bmm(x_RxNxM, params[f"{at}.attn.{name}"]).view(R * B, T, -1) for name in ("W_Q", "W_K", "W_V"))
    if spec.attention == "uniform":
        q = q * 0
    pattern = (torch.bmm(q, k.transpose(1, 2)) + mask).softmax(-1)
    return torch.bmm(pattern, v).view(R, B * T, spec.width), pattern


def _mlp(spec: Spec, params: dict[str, Tensor], at: str, x_RxNxM: Tensor) -> Tensor:
    """Return g of ``x``: affine maps with a ReLU between any two."""
    for i in range(len(spec.widths) - 1):
        x = x_RxNxM.relu() if i else x_RxNxM
        x_RxNxM = torch.baddbmm(params[f"{at}.mlp.{i}.b"][:, None], x, params[f"{at}.mlp.{i}.W"])
    return x_RxNxM


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
