"""The released model against its own words: LayerNorm of the row of a token and a type, then attention over N x N."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from workspace import load_study

from pipeline.models.topic import normalised, one_layer
from pipeline.studies.topic.names import RELEASED_SGD

EMPTY = torch.zeros(1, 1)


def spec(attention: str = "trained", symbols: int = 7) -> normalised.Spec:
    return normalised.Spec(symbols, symbols, "normalised", attention, "trained", "none", std=0.7, std_embedding=0.9)


def weights(shape: normalised.Spec, replicas: int = 2) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    named = normalised.shapes(shape)
    return {name: torch.from_numpy(rng.normal(size=(replicas, *size))) for name, size in named.items()}


def plain(shape: normalised.Spec, p: dict[str, torch.Tensor], ids: torch.Tensor, is_key: torch.Tensor) -> torch.Tensor:
    """Return (N, V): the outputs of all positions, with torch's own LayerNorm, as BERT's classes compute them."""
    rows = torch.nn.functional.one_hot(ids, shape.symbols).double() + p["embed.segment"]
    read = torch.nn.functional.layer_norm(rows, (shape.symbols,), p["embed.gain"], p["embed.bias"], normalised.EPSILON)
    if shape.attention == "uniform":
        scores = torch.zeros(len(ids), len(ids)).double()
    else:
        queries, keys = read @ p["attn.W_Q"].T + p["attn.b_Q"], read @ p["attn.W_K"].T + p["attn.b_K"]
        scores = queries @ keys.T / math.sqrt(shape.symbols)
    attention = scores.masked_fill(~is_key, -torch.inf).softmax(1)
    return attention @ (read @ p["attn.W_V"].T + p["attn.b_V"])


@pytest.mark.parametrize("attention", ["trained", "uniform"])
@pytest.mark.parametrize("hidden", [False, True])
def test_counts_are_enough(attention: str, hidden: bool) -> None:
    shape = spec(attention)
    params = weights(shape)
    ids = torch.tensor([[0, 3, 3, 6, 2, 5], [1, 1, 4, 0, 2, 2]])
    is_key = torch.ones_like(ids, dtype=torch.bool)
    if hidden:
        is_key[:, [0, 3]] = False
    counts = torch.zeros(2, 7).double()
    for row, document in enumerate(ids):
        for token, present in zip(document, is_key[row], strict=True):
            counts[row, token] += present
    document = torch.tensor([[0] * 6 + [1] * 6])
    outputs, _ = normalised.forward(shape, params, EMPTY.double(), counts[None], document, ids.reshape(1, -1))
    for r in range(2):
        own = {name: value[r] for name, value in params.items()}
        expected = torch.cat([plain(shape, own, each, keys) for each, keys in zip(ids, is_key, strict=True)])
        torch.testing.assert_close(outputs[r], expected, atol=1e-10, rtol=1e-10)


def test_one_hot_embeddings_are_not_what_is_read() -> None:
    shape = spec()
    params = {name: torch.from_numpy(value)[None] for name, value in normalised.initial(shape, stream()).items()}
    params["embed.segment"] *= 0
    read = normalised.embeddings(params)[0]
    off = read[~torch.eye(7, dtype=torch.bool)]
    torch.testing.assert_close(read.diagonal(), torch.full((7,), math.sqrt(6)).double())
    torch.testing.assert_close(off, torch.full((42,), -1 / math.sqrt(6)).double())


def stream() -> np.random.Generator:
    return np.random.default_rng(3)


def test_it_begins_with_the_matrices_of_the_model_of_the_text() -> None:
    ours, text = normalised.initial(spec(), stream()), one_layer.initial(normalised.one_hot(spec()), stream())
    assert all((ours[name] == value).all() for name, value in text.items())
    assert (ours["embed.gain"] == 1).all() and not ours["embed.bias"].any() and ours["embed.segment"].std() > 0.3


def test_norms_are_those_of_what_is_trained() -> None:
    shape = spec()
    params = weights(shape)
    _, recorded = normalised.forward(
        shape, params, EMPTY.double(), torch.ones(1, 1, 7).double(), record=["norms", "squares", "attention"]
    )
    torch.testing.assert_close(recorded["norms"][1, 0], params["attn.W_K"][1].norm())
    total = sum(value[0].square().sum() for value in params.values())
    torch.testing.assert_close(recorded["squares"][0], total)
    assert recorded["attention"].shape == (2, 1, 7)


def test_every_parameter_is_trained() -> None:
    shape = spec()
    params = {name: value.requires_grad_() for name, value in weights(shape).items()}
    counts = torch.tensor([[[1.0, 3, 0, 0, 1, 0, 2]]]).double()
    outputs, _ = normalised.forward(shape, params, EMPTY.double(), counts, torch.tensor([[0]]), torch.tensor([[4]]))
    gradients = dict(zip(params, torch.autograd.grad(outputs.square().sum(), list(params.values())), strict=True))
    assert all(torch.isfinite(gradient).all() for gradient in gradients.values())
    moved = {name for name, gradient in gradients.items() if gradient.abs().max() > 1e-9}
    assert moved == {*params} - {"attn.b_K"}  # a bias of keys shifts all scores of a query alike


def test_the_released_class_computes_the_same() -> None:
    """BERT's own embeddings and self-attention, where the package is installed; no requirement names it."""
    bert = pytest.importorskip("transformers.models.bert.modeling_bert")
    from transformers import BertConfig

    V = 7
    sizes = {"vocab_size": V, "hidden_size": V, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=16)
    config._attn_implementation = "eager"
    shape, params = spec(), weights(spec(), 1)
    embeddings, attention = bert.BertEmbeddings(config).double(), bert.BertSelfAttention(config).double()
    with torch.no_grad():
        embeddings.word_embeddings.weight.copy_(torch.eye(V))
        embeddings.position_embeddings.weight.zero_()
        embeddings.token_type_embeddings.weight[0] = params["embed.segment"][0]
        embeddings.LayerNorm.weight.copy_(params["embed.gain"][0])
        embeddings.LayerNorm.bias.copy_(params["embed.bias"][0])
        for name, layer in (("K", attention.key), ("Q", attention.query), ("V", attention.value)):
            layer.weight.copy_(params[f"attn.W_{name}"][0])
            layer.bias.copy_(params[f"attn.b_{name}"][0])
        ids = torch.tensor([[0, 3, 3, 6, 2, 5]])
        theirs = attention(embeddings(ids))[0][0]
        counts = torch.nn.functional.one_hot(ids, V).sum(1, keepdim=True).double()
        ours, _ = normalised.forward(shape, params, EMPTY.double(), counts, torch.zeros_like(ids), ids)
    torch.testing.assert_close(ours[0], theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "topic/one_layer"}, "exactly in the model topic/normalised"),
        ({"embedding": "one_hot"}, "exactly in the model topic/normalised"),
        ({"bias": "trained"}, "values are trained, without a bias of the head"),
    ],
)
def test_parameters_that_name_no_such_model_are_refused(changed: dict[str, str], message: str) -> None:
    entry = load_study("topic", "smoke").members("runs", "topic")[RELEASED_SGD]
    with pytest.raises(ValueError, match=message):
        type(entry).model_validate(entry.model_dump() | changed)
