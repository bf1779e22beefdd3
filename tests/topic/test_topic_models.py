"""The models against a plain implementation over all pairs of positions; the objective; every run takes a step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from pipeline.studies.topic import datasets, inputs, runs
from pipeline.studies.topic.names import DOCUMENTS, JOINT_ADAM
from pipeline.training import core, ensemble, jobs
from pipeline.training.objectives import topic as objective

MASKING = language.Masking(0.15, 0.1, 0.1)
EMPTY = torch.zeros(1, 1)
FORMS = {
    "one-hot": {"embedding": "one_hot", "attention": "trained", "values": "trained", "bias": "none"},
    "uniform": {"embedding": "one_hot", "attention": "uniform", "values": "trained", "bias": "none"},
    "frozen": {"embedding": "one_hot", "attention": "trained", "values": "frozen", "bias": "none"},
    "embeddings": {"embedding": "trained", "attention": "trained", "values": "trained", "bias": "trained"},
    "embeddings alone": {"embedding": "trained", "attention": "uniform", "values": "identity", "bias": "frozen"},
}


def spec(form: str, width: int = 7, symbols: int = 7) -> one_layer.Spec:
    return one_layer.Spec(symbols, width, **FORMS[form], std=0.7, std_embedding=0.9)


def weights(shape: one_layer.Spec, replicas: int = 2) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    named = one_layer.shapes(shape)
    return {name: torch.from_numpy(rng.normal(size=(replicas, *size))).float() for name, size in named.items()}


def frozen(shape: one_layer.Spec) -> torch.Tensor:
    rng = np.random.default_rng(1)
    if shape.values == "frozen":
        return torch.from_numpy(rng.normal(size=(shape.width, shape.width))).float()
    return torch.from_numpy(rng.normal(size=shape.symbols)).float() if shape.bias == "frozen" else EMPTY


def plain(
    shape: one_layer.Spec, p: dict[str, torch.Tensor], table: torch.Tensor, ids: torch.Tensor, is_key: torch.Tensor
) -> torch.Tensor:
    """Return (N, V): the outputs of all positions of one document, with N x N scores, as the thesis writes them."""
    X = torch.nn.functional.one_hot(ids, shape.symbols).T.float()
    Z = p["embed.W"] @ X if shape.embedding == "trained" else X
    if shape.attention == "uniform":
        scores = torch.zeros(len(ids), len(ids))
    else:
        keys, queries = p["attn.W_K"] @ Z + p["attn.b_K"][:, None], p["attn.W_Q"] @ Z + p["attn.b_Q"][:, None]
        scores = keys.T @ queries / math.sqrt(shape.width)
    A = scores.masked_fill(~is_key[:, None], -torch.inf).softmax(0)  # every column sums to 1
    out = Z @ A
    if shape.values == "trained":
        out = p["attn.W_V"] @ out + p["attn.b_V"][:, None]
    elif shape.values == "frozen":
        out = table @ out
    if shape.embedding == "trained":
        out = p["embed.W"].T @ out
    if shape.bias == "trained":
        out = out + p["head.b"][:, None]
    return (out + table[:, None] if shape.bias == "frozen" else out).T


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hidden", [False, True])
def test_counts_are_enough_and_replicas_do_not_mix(form: str, hidden: bool) -> None:
    shape = spec(form, 5 if form.startswith("embeddings") else 7)
    params, table = weights(shape), frozen(shape)
    ids = torch.tensor([[0, 3, 3, 6, 2, 5], [1, 1, 4, 0, 2, 2]])
    is_key = torch.ones_like(ids, dtype=torch.bool)
    if hidden:
        is_key[:, [0, 3]] = False
    counts = torch.zeros(2, 7)
    for row, document in enumerate(ids):
        for token, present in zip(document, is_key[row], strict=True):
            counts[row, token] += present
    document = torch.tensor([[0] * 6 + [1] * 6])
    outputs, recorded = one_layer.forward(
        shape, params, table, counts[None], document, ids.reshape(1, -1), record=["attention"]
    )
    for r in range(2):
        own = {name: value[r] for name, value in params.items()}
        expected = torch.cat(
            [plain(shape, own, table, each, present) for each, present in zip(ids, is_key, strict=True)]
        )
        torch.testing.assert_close(outputs[r if len(outputs) > 1 else 0], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(recorded["attention"].sum(-1), torch.ones_like(recorded["attention"][..., 0]))


def test_scores_of_any_size_give_numbers_and_gradients() -> None:
    shape = spec("one-hot")
    params = {name: (40 * value).requires_grad_() for name, value in weights(shape).items()}
    counts = torch.tensor([[[0.0, 3, 0, 0, 1, 0, 0]]])
    outputs, _ = one_layer.forward(shape, params, EMPTY, counts, torch.tensor([[0]]), torch.tensor([[5]]))
    gradients = torch.autograd.grad(outputs.square().sum(), list(params.values()))
    assert torch.isfinite(outputs).all() and all(torch.isfinite(gradient).all() for gradient in gradients)


def test_what_can_be_recorded() -> None:
    shape = spec("one-hot")
    params = weights(shape)
    _, recorded = one_layer.forward(shape, params, EMPTY, torch.ones(1, 1, 7), record=["norms", "squares"])
    torch.testing.assert_close(recorded["norms"][1, 2], params["attn.W_V"][1].norm())
    total = sum(float(value[0].square().sum()) for value in params.values())
    assert float(recorded["squares"][0]) == pytest.approx(total, rel=1e-5)
    with pytest.raises(SandglassError, match="cannot record"):
        one_layer.forward(shape, params, EMPTY, torch.ones(1, 1, 7), record=["pattern"])


def test_runs_of_one_stream_share_their_first_values() -> None:
    alone, joint = (one_layer.initial(spec(form), np.random.default_rng(3)) for form in ("uniform", "one-hot"))
    assert (alone["attn.W_V"] == joint["attn.W_V"]).all()
    assert not joint["attn.b_K"].any() and abs(joint["attn.W_K"].std() - 0.7) < 0.2


def documents(n: int, seed: int = 0) -> tuple[language.Documents, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = language.mixed(rng, n, 3, 2, 0.5, 8, 12)
    return made, *language.masked(rng, made.tokens, made.lengths, MASKING, np.arange(1, 7))


@pytest.mark.parametrize("loss", ["ce", "sq_sum", "sq_mean"])
@pytest.mark.parametrize("form", ["one-hot", "uniform"])
def test_the_loss_is_the_mean_over_masked_positions(loss: str, form: str) -> None:
    made, at, shown = documents(9)
    questions = language.questions(made, at, shown, 3, 2, released=False)
    if form == "uniform":
        questions = language.by_document(questions)
    data = {
        "counts": questions.counts.astype(np.uint8),
        "shown": questions.shown.astype(np.uint8),
        "labels": questions.labels.astype(np.uint8),
        "first": np.searchsorted(questions.document, np.arange(10)),
    }
    settings = {"cells": [{"loss": loss, "l2": 0.01}], "uniform": form == "uniform"}
    goal = objective.Objective(data, settings)
    shape = spec(form)
    params = weights(shape)
    chosen = [np.array([4, 1, 7]), np.array([0, 2, 3])]
    batch = {
        name: torch.from_numpy(array)
        for name, array in goal.collate([0, 0], chosen, [lambda: None] * 2).items()  # type: ignore[list-item]
    }

    def forward(*arguments: Any, **named: Any) -> Any:
        return one_layer.forward(shape, params, EMPTY, *arguments, **named)

    losses = goal.loss(forward, batch)["loss"]
    ends = np.concatenate([[0], made.lengths.cumsum()])
    for r in range(2):
        own = {name: value[r] for name, value in params.items()}
        each = []
        for d in chosen[r]:
            part = slice(ends[d], ends[d + 1])
            ids = torch.from_numpy(shown[part])
            outputs = plain(shape, own, EMPTY, ids, torch.ones(len(ids), dtype=torch.bool))
            label = torch.from_numpy(made.tokens[part])
            if loss == "ce":
                values = torch.nn.functional.cross_entropy(outputs, label, reduction="none")
            else:
                values = (outputs - torch.nn.functional.one_hot(label, 7)).square().sum(1)
                values = values / 7 if loss == "sq_mean" else values
            each.append(values[torch.from_numpy(at[part])])
        expected = torch.cat(each).mean() + 0.01 * sum(value.square().sum() for value in own.values())
        torch.testing.assert_close(losses[r], expected, rtol=1e-4, atol=1e-5)


def test_cells_of_one_ensemble_have_their_own_losses() -> None:
    made, at, shown = documents(6)
    questions = language.questions(made, at, shown, 3, 2, released=False)
    data = {
        "counts": questions.counts,
        "shown": questions.shown,
        "labels": questions.labels.astype(np.uint8),
        "first": np.searchsorted(questions.document, np.arange(7)),
    }
    cells = [{"loss": "ce", "l2": 0.0}, {"loss": "sq_mean", "l2": 0.0}, {"loss": "sq_sum", "l2": 0.1}]
    shape = spec("one-hot")
    params = {name: value[:1].expand(3, *value.shape[1:]) for name, value in weights(shape, 1).items()}

    def losses(own: list[int]) -> list[float]:
        goal = objective.Objective(data, {"cells": cells, "uniform": False})
        drawn = goal.collate(own, [np.arange(6)] * len(own), [lambda: None] * len(own))  # type: ignore[list-item]
        batch = {name: torch.from_numpy(np.asarray(array)) for name, array in drawn.items()}
        mine = {name: value[: len(own)] for name, value in params.items()}

        def forward(*arguments: Any, **named: Any) -> Any:
            return one_layer.forward(shape, mine, EMPTY, *arguments, **named)

        return [float(value) for value in goal.loss(forward, batch)["loss"]]

    together = losses([0, 1, 2])
    assert together == pytest.approx([losses([cell])[0] for cell in range(3)], rel=1e-6)
    squares = sum(float(value[0].square().sum()) for value in params.values())
    assert together[2] == pytest.approx(7 * together[1] + 0.1 * squares, rel=1e-4)


@pytest.mark.parametrize(
    "member", ["topic-frozen-adam", JOINT_ADAM, "topic-embeddings-all-sgd-sq", "topic-block-sq", "topic-released-sgd"]
)
def test_a_member_takes_steps_and_frozen_parts_stay(member: str, tmp_path: Path) -> None:
    params = load_study("topic", "smoke")
    entry = next(run.members[member] for run in params.runs.values() if member in run.members)
    dataset = next(each.members[DOCUMENTS] for each in params.datasets.values() if DOCUMENTS in each.members)
    frame, _ = datasets.generate(dataset, DOCUMENTS, 1)
    header, data, table = runs.prepare(entry, frame, 1)
    assert header.streams is not None and len(header.lr) == len(entry.cells) * entry.replicas * len(entry.lr)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    replicas = [0, len(header.lr) - 1]
    before = job.initial(replicas)
    state = core.train_chunk(job, replicas, torch.device("cpu"))
    assert (state.diverged_at < 0).all() and torch.isfinite(state.flat).all()
    assert not torch.equal(before, state.flat)
    assert ("attn.W_V" in job.shapes) == (entry.values == "trained")
    alone = core.train_chunk(job, replicas[1:], torch.device("cpu"))
    torch.testing.assert_close(alone.flat[0], state.flat[1], rtol=1e-4, atol=1e-5)


def test_what_a_user_may_ask() -> None:
    shape = spec("one-hot")
    counts = inputs.checked(shape, torch.from_numpy(inputs.encode({}, "0 3 3 6")))
    assert counts.tolist() == [[1, 0, 0, 2, 0, 0, 1]]
    outputs, _ = one_layer.forward(shape, weights(shape, 1), EMPTY, counts[None])
    assert outputs.shape == (1, 1, len(inputs.labels({}, shape.outputs)))
    with pytest.raises(SandglassError, match="expected ids from 0 to 6"):
        inputs.checked(shape, torch.tensor([[7]]))
    with pytest.raises(SandglassError, match="cannot encode"):
        inputs.encode({}, "1 2", "a")
