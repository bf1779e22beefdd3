"""Transformers of one layer and one head without positions (Li 2025, section 2.1.1), R of one shape side by side.

f = E' (W_V Z A + b_V) + b_pred with Z = E X, where X are the one-hot tokens and each column of A is the attention of
one query over all keys. E is trained (equation 2.6) or the identity (2.7); attention is trained, or uniform (2.8).
There are no residual connections, no normalisation and no MLP.

Without positions all tokens of one kind are alike, so a document is what it counts, and the output of a query depends
on its token alone: y_b[c] = n_c exp(S[c, b]) / sum over c' of n_c' exp(S[c', b]) is what attention gives to all
tokens c together. That is the same function, with V x V scores in place of N x N.

Names and shapes of trained parameters, without the replica axis (V = symbols, d = width):

``attn.W_V`` (d, d), ``attn.b_V`` (d,)   where ``values`` is trained
``attn.W_K``, ``attn.W_Q`` (d, d), ``attn.b_K``, ``attn.b_Q`` (d,)   where ``attention`` is trained
``embed.W`` (d, V)   where ``embedding`` is trained
``head.b`` (V,)   where ``bias`` is trained

What is frozen stands in the checkpoint's ``table``: the value matrix (d, d) where ``values`` is frozen, b_pred (V,)
where ``bias`` is.

``forward`` can record ``attention`` (R, Q, V), what each question's attention gives to all tokens of a kind;
``norms`` (R, 3), the Frobenius norms of W_K, W_Q and W_V, 0 where they are not trained; and ``squares`` (R,), the sum
of squares of all trained numbers.
"""

from __future__ import annotations

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

RECORDED = ("attention", "norms", "squares")


@dataclass(frozen=True)
class Spec:
    """The shape of a model, what of it is trained, and standard deviations of its initial weights."""

    symbols: int
    width: int
    embedding: str  # one_hot or trained
    attention: str  # trained or uniform
    values: str  # trained, frozen or identity
    bias: str  # of the head: trained, frozen or none
    std: float  # of W_K, W_Q and W_V
    std_embedding: float

    @property
    def outputs(self) -> int:
        """Return the number of outputs: as many as ids."""
        return self.symbols


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d = spec.width
    parameters: dict[str, tuple[int, ...]] = {}
    if spec.values == "trained":
        parameters |= {"attn.W_V": (d, d), "attn.b_V": (d,)}
    if spec.attention == "trained":
        parameters |= {"attn.W_K": (d, d), "attn.W_Q": (d, d), "attn.b_K": (d,), "attn.b_Q": (d,)}
    if spec.embedding == "trained":
        parameters["embed.W"] = (d, spec.symbols)
    if spec.bias == "trained":
        parameters["head.b"] = (spec.symbols,)
    return parameters


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: normal matrices, biases 0.

    Models that share a stream share W_V, whether or not attention is trained.
    """
    weights = {}
    for name, shape in shapes(spec).items():
        scale = spec.std_embedding if name == "embed.W" else spec.std
        weights[name] = rng.normal(0.0, 1.0, shape) * (scale if ".W" in name else 0.0)
    return weights


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    counts: Float[Tensor, "R B V"],
    document: Int[Tensor, "R Q"] | None = None,
    token: Int[Tensor, "R Q"] | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R Q V"], dict[str, Tensor]]:
    """Return the outputs of questions: of a query ``token`` in the document that is number ``document`` of the batch.

    Without ``document`` one question is asked of each, as is enough for uniform attention; without ``token`` the query
    shows the mask, id 0. A replica axis of 1 gives all replicas the same documents and questions.

    Raises SandglassError for a name in ``record`` that this model does not have.
    """
    if unknown := {*record} - {*RECORDED}:
        raise SandglassError(f"cannot record {sorted(unknown)}; this model has: {', '.join(RECORDED)}")
    given = _attention(spec, params, counts, document, token)
    outputs = given @ value_map(spec, params, table).mT + output_bias(spec, params, table)[:, None]
    recorded: dict[str, Tensor] = {}
    if "attention" in record:
        recorded["attention"] = given
    if "norms" in record:
        zero = outputs.new_zeros(outputs.shape[0])
        names = ("attn.W_K", "attn.W_Q", "attn.W_V")
        each = [params[name].flatten(1).norm(dim=1) if name in params else zero for name in names]
        recorded["norms"] = torch.stack(each, dim=1)
    if "squares" in record:
        recorded["squares"] = sum((p.square().flatten(1).sum(1) for p in params.values()), outputs.new_zeros(()))
    return outputs, recorded


def _attention(
    spec: Spec, params: dict[str, Tensor], counts: Tensor, document: Tensor | None, token: Tensor | None
) -> Tensor:
    """Return (R, Q, V) what attention gives to all tokens of each kind."""
    if spec.attention == "uniform":
        shares = counts / counts.sum(-1, keepdim=True)
        return shares if document is None else _rows(shares, document, document.shape[0])
    rows = scores(spec, params)
    present = counts.log()  # -inf for what is not there
    if token is None:
        token = torch.zeros(present.shape[:2] if document is None else document.shape, dtype=torch.long)
        token = token.to(counts.device)
    R = max(rows.shape[0], token.shape[0])
    if document is not None:
        present = _rows(present, document, R)
    return (_rows(rows, token, R) + present).softmax(-1)


def _rows(table: Tensor, which: Tensor, replicas: int) -> Tensor:
    """Return rows ``which`` (R, Q) of ``table`` (R, N, V); an axis of 1 stands for all replicas."""
    if table.shape[0] == replicas == 1:
        return table[0].index_select(0, which[0])[None]
    n = table.shape[1]
    offset = torch.arange(table.shape[0], device=table.device)[:, None] * n
    flat = (which + offset).expand(replicas, -1).reshape(-1)
    return table.reshape(-1, table.shape[2]).index_select(0, flat).view(replicas, -1, table.shape[2])


def scores(spec: Spec, params: dict[str, Tensor]) -> Float[Tensor, "R V V"]:
    """Return attention scores before the softmax: rows are query tokens, columns key tokens."""
    query, key = params["attn.W_Q"], params["attn.W_K"]
    if spec.embedding == "trained":
        query, key = query @ params["embed.W"], key @ params["embed.W"]
    query, key = query + params["attn.b_Q"][..., None], key + params["attn.b_K"][..., None]
    return query.mT @ key / math.sqrt(spec.width)


def value_map(spec: Spec, params: dict[str, Tensor], table: Tensor) -> Float[Tensor, "R V V"]:
    """Return what a key token (column) adds to each output (row): W_V, or E' W_V E with trained embeddings."""
    if spec.values == "frozen":
        return table[None]
    if spec.embedding == "one_hot":
        return params["attn.W_V"]
    embedding = params["embed.W"]
    return embedding.mT @ (params["attn.W_V"] @ embedding if spec.values == "trained" else embedding)


def output_bias(spec: Spec, params: dict[str, Tensor], table: Tensor) -> Float[Tensor, "R V"]:
    """Return what is added to the outputs of every query: b_V, or E' b_V with trained embeddings, plus b_pred."""
    bias = table.new_zeros(1, spec.symbols)
    if spec.values == "trained":
        own = params["attn.b_V"]
        bias = bias + (own if spec.embedding == "one_hot" else (params["embed.W"].mT @ own[..., None])[..., 0])
    if spec.bias == "trained":
        bias = bias + params["head.b"]
    return bias + table if spec.bias == "frozen" else bias


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
