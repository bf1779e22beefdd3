"""The transformer of one layer that the authors of Li 2025, section 2.1, released: its embeddings are normalised.

The text removes normalisation from the model. The released class (YuchenLi01/transformer_topic_model_LDA,
src/transformer.py, ``BertModelCustom``) keeps BERT's embeddings as they are, so that a frozen one-hot row passes
through

    E[:, w] = gain * normalised(one_hot(w) + type) + bias,

where ``normalised`` takes off the mean and divides by the standard deviation over coordinates; ``type`` is what BERT
adds to each token of its first sentence, and gain, bias and type are trained. Position embeddings are frozen at 0. The
rest is `pipeline.models.topic.one_layer` on E in place of the identity, with the head frozen at the identity:
f = W_V E X A + b_V. Matrices that are multiplied by E are those of a model of one-hot embeddings with the same output
(`seen`), so that one table of V x V is made at each step, and documents are counts here as well.

Names and shapes of trained parameters, without the replica axis (V = symbols, which is the width too):

``attn.W_V`` (V, V), ``attn.b_V`` (V,)
``attn.W_K``, ``attn.W_Q`` (V, V), ``attn.b_K``, ``attn.b_Q`` (V,)   where ``attention`` is trained
``embed.segment``, ``embed.gain``, ``embed.bias`` (V,)

``forward`` can record what that of ``one_layer`` can: ``norms`` are those of W_K, W_Q and W_V themselves.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.models.topic import one_layer
from pipeline.store import checkpoints

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int

RECORDED = one_layer.RECORDED
EPSILON = 1e-12  # added to variances, as BERT has it
MATRICES = ("attn.W_K", "attn.W_Q", "attn.W_V")


class Spec(one_layer.Spec):
    """The shape of a model; ``embedding`` is normalised, ``values`` are trained, and ``bias`` is none.

    ``std_embedding`` is the standard deviation of the initial type embedding.
    """


Ensemble = checkpoints.Ensemble[Spec]


def shapes(spec: Spec) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every trained parameter of one model, in the order they are initialised."""
    d = (spec.symbols,)
    return one_layer.shapes(one_hot(spec)) | {"embed.segment": d, "embed.gain": d, "embed.bias": d}


def initial(spec: Spec, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return the weights of one model before training: normal matrices and type, gain 1, biases 0.

    Matrices are those of a model of one-hot embeddings that has the same stream.
    """
    weights = one_layer.initial(one_hot(spec), rng)
    drawn = rng.normal(0.0, 1.0, spec.symbols) * spec.std_embedding
    return weights | {"embed.segment": drawn, "embed.gain": drawn * 0 + 1, "embed.bias": drawn * 0}


def one_hot(spec: Spec) -> one_layer.Spec:
    """Return the shape of the model of one-hot embeddings that `seen` is of."""
    return one_layer.Spec(**(vars(spec) | {"embedding": "one_hot"}))


def embeddings(params: dict[str, Tensor]) -> Float[Tensor, "R V V"]:
    """Return E, of which column w is what attention reads of id w."""
    kind = params["embed.segment"]
    columns = torch.eye(kind.shape[-1], dtype=kind.dtype, device=kind.device) + kind[..., None]
    centred = columns - columns.mean(-2, keepdim=True)
    normalised = centred / (centred.square().mean(-2, keepdim=True) + EPSILON).sqrt()
    return params["embed.gain"][..., None] * normalised + params["embed.bias"][..., None]


def seen(params: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of the model of one-hot embeddings that has the same outputs: W E for each matrix W."""
    read = embeddings(params)
    return {
        name: value @ read if name in MATRICES else value
        for name, value in params.items()
        if not name.startswith("embed.")
    }


def forward(
    spec: Spec,
    params: dict[str, Tensor],
    table: Tensor,
    counts: Float[Tensor, "R B V"],
    document: Int[Tensor, "R Q"] | None = None,
    token: Int[Tensor, "R Q"] | None = None,
    record: Collection[str] = (),
) -> tuple[Float[Tensor, "R Q V"], dict[str, Tensor]]:
    """Return the outputs of questions, as `pipeline.models.topic.one_layer.forward` does.

    Raises SandglassError for a name in ``record`` that this model does not have.
    """
    outputs, recorded = one_layer.forward(one_hot(spec), seen(params), table, counts, document, token, record)
    if {"norms", "squares"} & {*record}:  # of what is trained
        _, own = one_layer.forward(one_hot(spec), params, table, counts[:, :1], record=("norms", "squares"))
        recorded |= {name: own[name] for name in ("norms", "squares") if name in record}
    return outputs, recorded


def load(path: Path) -> Ensemble:
    """Read the checkpoint of a run.

    Raises SandglassError if it is missing, damaged, or does not fit its own header.
    """
    return checkpoints.load(path, Spec, shapes)
