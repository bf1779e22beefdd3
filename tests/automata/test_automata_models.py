"""Trained families: caches, scratchpads, positions, dropout; the LSTM against torch's; the objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pipeline.errors import SandglassError
from pipeline.languages import automata
from pipeline.models.automata import gpt, lstm
from pipeline.training.objectives import states

POSITIONS = ("sin", "linear", "none", "recency")


def spec(position: str = "sin", inputs: int = 4, outputs: int = 3) -> gpt.Spec:
    return gpt.Spec(2, 2, 16, 8, position, 0.01, inputs, outputs)


def weights(module: Any, shape: Any, replicas: int = 2, scale: float = 8.0) -> dict[str, torch.Tensor]:
    """Random weights, large enough that what a model says depends on all that it sees."""
    drawn = [module.initial(shape, np.random.default_rng(r)) for r in range(replicas)]
    return {name: torch.from_numpy(scale * np.stack([each[name] for each in drawn])).float() for name in drawn[0]}


@pytest.mark.parametrize("position", POSITIONS)
def test_cached_keys_and_values_change_nothing(position: str) -> None:
    shape, ids = spec(position), torch.randint(0, 4, (1, 3, 9), generator=torch.Generator().manual_seed(0))
    params = weights(gpt, shape)
    whole, _ = gpt.forward(shape, params, torch.zeros(1, 1), ids)
    cache: gpt.Cache = []
    parts = [
        gpt.forward(shape, params, torch.zeros(1, 1), ids[..., a:b], cache=cache)[0]
        for a, b in ((0, 4), (4, 5), (5, 9))
    ]
    torch.testing.assert_close(torch.cat(parts, 2), whole, rtol=1e-4, atol=1e-4)
    assert cache[0][0].shape[3] == 9


@pytest.mark.parametrize("position", POSITIONS)
def test_later_symbols_change_nothing_and_recorded_attention_adds_up(position: str) -> None:
    shape, ids = spec(position), torch.randint(0, 4, (1, 3, 9), generator=torch.Generator().manual_seed(1))
    params, other = weights(gpt, shape), ids.clone()
    other[..., 5:] = 3 - other[..., 5:]
    first, recorded = gpt.forward(shape, params, torch.zeros(1, 1), ids, record=["blocks.1.attn.pattern"])
    second, _ = gpt.forward(shape, params, torch.zeros(1, 1), other)
    torch.testing.assert_close(first[:, :, :5], second[:, :, :5], rtol=1e-4, atol=1e-4)
    pattern = recorded["blocks.1.attn.pattern"]
    torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 3, 2, 9))
    assert (pattern.triu(1) == 0).all()
    with pytest.raises(SandglassError, match="cannot record"):
        gpt.forward(shape, params, torch.zeros(1, 1), ids, record=["blocks.2.attn.pattern"])


def test_a_replica_does_not_depend_on_its_company() -> None:
    shape, ids = spec(), torch.randint(0, 4, (1, 3, 9))
    params = weights(gpt, shape, 3)
    alone = {name: value[1:2] for name, value in params.items()}
    both, single = (gpt.forward(shape, p, torch.zeros(1, 1), ids)[0] for p in (params, alone))
    torch.testing.assert_close(both[1:2], single, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", ["sin", "recency"])
def test_decoding_reads_what_it_wrote(position: str) -> None:
    """The answers of cached decoding are those of one plain pass over symbols and these answers."""
    shape = spec(position, inputs=2 + 3)
    ensemble = gpt.Ensemble(shape, weights(gpt, shape), torch.zeros(1, 1), {})
    tokens = torch.randint(0, 2, (1, 4, 7), generator=torch.Generator().manual_seed(2))
    answers = gpt.decode(ensemble, tokens, 2)
    mixed = torch.stack([tokens.expand(2, 4, 7), answers + 2], -1).flatten(-2)[..., :-1]
    logits, _ = gpt.forward(shape, ensemble.params, ensemble.table, mixed)
    assert (logits[..., ::2, :].argmax(-1) == answers).all() and len(answers.unique()) > 1


def test_position_codes() -> None:
    at = torch.arange(5)
    code = gpt.code(spec("sin"), at)
    assert code.shape == (5, 16)
    assert code[3, 0] == pytest.approx(np.sin(3.0)) and code[3, 3] == pytest.approx(np.cos(3 / 10000 ** (2 / 16)))
    torch.testing.assert_close(gpt.code(spec("linear"), at)[:, 5], 0.01 * at.float())
    assert (gpt.code(spec("none"), at) == 0).all()


def test_dropout_is_of_each_replica_and_keeps_the_mean() -> None:
    x = torch.ones(2, 50, 40)
    draws = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    activations = gpt._dropped(x, (0.25, draws))
    assert not torch.equal(activations[0], activations[1])
    assert activations.mean().item() == pytest.approx(1.0, abs=0.05)
    assert activations.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    again = gpt._dropped(x[1:], (0.25, [torch.Generator().manual_seed(2)]))
    torch.testing.assert_close(activations[1:], again)


def test_the_lstm_is_that_of_torch() -> None:
    shape = lstm.Spec(6, 5, 4, 3)
    params = weights(lstm, shape, 2, 1.0)
    ids = torch.randint(0, 4, (1, 3, 8))
    logits, _ = lstm.forward(shape, params, torch.zeros(1, 1), ids)
    for r in range(2):
        plain = torch.nn.LSTM(6, 5, batch_first=True)
        with torch.no_grad():
            plain.weight_ih_l0.copy_(params["cell.W_in"][r].T)
            plain.weight_hh_l0.copy_(params["cell.W_hh"][r].T)
            plain.bias_ih_l0.copy_(params["cell.b"][r])
            plain.bias_hh_l0.zero_()
            hidden, _ = plain(params["embed.W"][r][ids[0]])
        torch.testing.assert_close(logits[r], hidden @ params["head.W"][r] + params["head.b"][r])
    with pytest.raises(SandglassError, match="has no attention"):
        lstm.forward(shape, params, torch.zeros(1, 1), ids, record=["x"])


def objective(**changes: Any) -> states.Objective:
    tokens, labels = automata.sample("c3", 6, 20, np.random.default_rng(0))
    settings = {"revealed": 1.0, "shift": 0, "dropout": 0.0, "scratchpad": 0, "held": True} | changes
    return states.Objective({"tokens": tokens, "labels": labels}, settings)


def collate(of: states.Objective) -> dict[str, torch.Tensor]:
    rngs = [lambda r=r: np.random.default_rng(r) for r in range(2)]
    batch = of.collate([0, 0], [np.arange(8), np.arange(8, 16)], rngs)
    return {name: torch.from_numpy(value) for name, value in batch.items()}


def test_the_loss_is_that_of_shown_labels() -> None:
    batch = collate(objective(revealed=0.5))
    assert 0 < (batch["labels"] < 0).float().mean() < 1
    logits = torch.randn(2, 8, 6, 3)
    metrics = objective().loss(lambda ids: (logits, {}), batch)
    for r in range(2):
        shown = batch["labels"][r] >= 0
        chosen = logits[r][shown].log_softmax(-1).gather(-1, batch["labels"][r][shown][:, None])
        assert metrics["loss"][r] == pytest.approx(-chosen.mean().item(), rel=1e-5)
    hidden = batch | {"labels": torch.full_like(batch["labels"], -1)}
    assert (objective().loss(lambda ids: (logits, {}), hidden)["loss"] == 0).all()


def test_a_scratchpad_is_asked_at_the_symbols() -> None:
    of, seen = objective(scratchpad=3), []

    def forward(ids: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        seen.append(ids)
        return torch.nn.functional.one_hot(ids % 3, 3).float(), {}

    batch = collate(of)
    of.loss(forward, batch)
    (ids,) = seen
    assert ids.shape == (2, 8, 11) and (ids[..., ::2] == batch["tokens"]).all()
    assert (ids[..., 1::2] == batch["labels"][..., :-1] + 3).all()


def test_shifts_and_dropout_are_drawn_by_replica() -> None:
    batch = collate(objective(shift=100, dropout=0.1))
    assert batch["shift"].shape == (2,) and batch["shift"][0] != batch["shift"][1]
    arguments = {}

    def forward(ids: torch.Tensor, **more: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        arguments.update(more)
        return torch.zeros(*ids.shape, 3), {}

    objective(shift=100, dropout=0.1).loss(forward, batch)
    assert (arguments["positions"][:, 0, 0] == batch["shift"]).all() and arguments["dropout"][0] == 0.1
