"""The decoder against torch's own modules and published counts; linear positions; every size takes a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.models.automata import lstm
from pipeline.models.flipflop import decoder, linear_position
from pipeline.studies.flipflop import datasets, inputs, runs
from pipeline.studies.flipflop.claims import arithmetic
from pipeline.training import core, ensemble, jobs

TABLE = torch.zeros(1, 1)
PUBLISHED = ((6, 512, 19_170_309), (8, 1024, 101_273_605), (2, 128, 462_597))


def spec(**changes: Any) -> decoder.Spec:
    base = {"layers": 2, "heads": 2, "width": 8, "position": "learned", "activation": "gelu", "t_max": 9, "inputs": 5}
    return decoder.Spec(**(base | {"outputs": 5} | changes))


def weights(module: Any, shape: Any, replicas: int = 2, scale: float = 1.0) -> dict[str, torch.Tensor]:
    drawn = [module.initial(shape, np.random.default_rng(r)) for r in range(replicas)]
    return {name: torch.from_numpy(scale * np.stack([each[name] for each in drawn])).float() for name in drawn[0]}


@pytest.mark.parametrize(("layers", "width", "count"), PUBLISHED)
def test_published_numbers_of_parameters(layers: int, width: int, count: int) -> None:
    shape = spec(layers=layers, width=width, heads=8, t_max=512)
    assert decoder.parameters(shape) == count == arithmetic.decoder_parameters(layers, width)
    ours = sum(int(np.prod(s)) for s in lstm.shapes(lstm.Spec(128, 128, 5, 5)).values())
    assert ours + 4 * 128 == 133_381 == arithmetic.lstm_parameters(128)  # torch counts two biases


def test_the_decoder_is_that_of_torch() -> None:
    shape = spec(layers=1)
    params = weights(decoder, shape, 1)
    ids = torch.randint(0, 5, (1, 3, 9))
    logits, _ = decoder.forward(shape, params, TABLE, ids)
    p = {name: value[0] for name, value in params.items()}
    attention = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
    block = "blocks.0."
    with torch.no_grad():
        attention.in_proj_weight.copy_(p[block + "attn.W_QKV"].T)
        attention.out_proj.weight.copy_(p[block + "attn.W_O"].T)
        x = p["embed.W"][ids[0]] + p["embed.P"] / 8**0.5
        ahead = torch.ones(9, 9, dtype=torch.bool).triu(1)
        normed = torch.nn.functional.layer_norm(x, (8,), p[block + "ln1.w"], p[block + "ln1.b"])
        x = x + attention(normed, normed, normed, attn_mask=ahead)[0]
        normed = torch.nn.functional.layer_norm(x, (8,), p[block + "ln2.w"], p[block + "ln2.b"])
        inner = torch.nn.functional.gelu(normed @ p[block + "mlp.W_in"] + p[block + "mlp.b_in"])
        x = x + inner @ p[block + "mlp.W_out"] + p[block + "mlp.b_out"]
        x = torch.nn.functional.layer_norm(x, (8,), p["ln.w"], p["ln.b"])
        torch.testing.assert_close(logits[0], x @ p["head.W"] + p["head.b"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("position", ["learned", "sin", "alibi", "rope", "rope-values", "none"])
@pytest.mark.parametrize("activation", ["gelu", "geglu", "swiglu", "relu", "relu2"])
def test_later_tokens_change_nothing_and_maps_change_nothing(position: str, activation: str) -> None:
    shape = spec(position=position, activation=activation)
    params = weights(decoder, shape, scale=3.0)
    ids = torch.randint(0, 5, (1, 3, 9), generator=torch.Generator().manual_seed(0))
    other = ids.clone()
    other[..., 5:] = 4 - other[..., 5:]
    names = [f"blocks.1.attn.{what}" for what in ("pattern", "norms")]
    first, _ = decoder.forward(shape, params, TABLE, ids)
    second, recorded = decoder.forward(shape, params, TABLE, other, record=names)
    torch.testing.assert_close(first[:, :, :5], second[:, :, :5], rtol=1e-4, atol=1e-4)
    pattern = recorded[names[0]]
    torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 3, 2, 9))
    assert (pattern.triu(1) == 0).all() and (recorded[names[1]] >= 0).all()
    assert position != "none" or "embed.P" not in params
    with pytest.raises(SandglassError, match="cannot record"):
        decoder.forward(shape, params, TABLE, ids, record=["blocks.2.attn.pattern"])


def test_rotated_positions_are_relative_and_alibi_prefers_the_near() -> None:
    x = torch.randn(1, 1, 1, 8)
    turn = decoder._rotation(6, 8)
    q, k = (decoder._turned(part.expand(1, 1, 6, 8), turn) for part in (x, torch.randn(1, 1, 1, 8)))
    scores = (q @ k.transpose(-1, -2))[0, 0]
    torch.testing.assert_close(scores[3, 1], scores[5, 3])
    bias = decoder._bias(spec(position="alibi"), 4)
    assert bias[0, 3].tolist() == pytest.approx([-3 / 16, -2 / 16, -1 / 16, 0])


def test_rotated_values_tell_places_apart() -> None:
    """Of one symbol alone, rotated queries and keys attend evenly to equal values; rotated values differ by place."""
    ids = torch.zeros(1, 1, 6, dtype=torch.long)
    for position, alike in (("rope", True), ("rope-values", False)):
        shape = spec(position=position)
        logits, _ = decoder.forward(shape, weights(decoder, shape, scale=3.0), TABLE, ids)
        assert torch.allclose(logits[:, :, :1].expand_as(logits), logits, atol=1e-4) == alike


def test_an_input_longer_than_the_positions_is_refused() -> None:
    shape = spec()
    with pytest.raises(SandglassError, match="longer than the 9 positions"):
        decoder.forward(shape, weights(decoder, shape), TABLE, torch.zeros(1, 1, 10, dtype=torch.long))


def test_each_replica_drops_by_itself() -> None:
    shape, ids = spec(), torch.zeros(1, 2, 6, dtype=torch.long)
    params = {name: value[:1].expand(2, *value.shape[1:]) for name, value in weights(decoder, shape).items()}
    rates = {"embed": 0.3, "attention": 0.3, "ffn": 0.3}
    draws = [torch.Generator().manual_seed(seed) for seed in (1, 2)]
    logits, _ = decoder.forward(shape, params, TABLE, ids, dropout=(rates, draws))
    assert not torch.equal(logits[0], logits[1])
    alone = {name: value[1:] for name, value in params.items()}
    again, _ = decoder.forward(shape, alone, TABLE, ids, dropout=(rates, [torch.Generator().manual_seed(2)]))
    torch.testing.assert_close(logits[1:], again)


def test_linear_positions_against_plain_loops() -> None:
    shape = linear_position.Spec(6, 10, 3, 2)
    params = weights(linear_position, shape)
    ids = torch.tensor([[[2, 0, 1, 0]]])
    logits, recorded = linear_position.forward(shape, params, TABLE, ids, record=[linear_position.PATTERN])
    p = {name: value[1] for name, value in params.items()}
    v = torch.stack([torch.cat([p["embed.W"][s], torch.tensor([t / 10])]) for t, s in enumerate(ids[0, 0], 1)])
    for i in range(4):
        scores = torch.stack([(v[i] @ p["attn.W_Q"]) @ (v[j] @ p["attn.W_K"]) / 6**0.5 for j in range(i + 1)])
        row = scores.softmax(0)
        torch.testing.assert_close(recorded[linear_position.PATTERN][1, 0, 0, i, : i + 1], row)
        h = v[i] + sum(row[j] * v[j] for j in range(i + 1)) @ p["attn.W_V"] @ p["attn.W_O"]
        inner = (h @ p["mlp.W_in"] + p["mlp.b_in"]).relu()
        h = h + inner @ p["mlp.W_out"] + p["mlp.b_out"]
        torch.testing.assert_close(logits[1, 0, i], h @ p["head.W"] + p["head.b"], rtol=1e-4, atol=1e-5)


def test_weight_decay_and_schedule_are_those_of_torch(tmp_path: Path) -> None:
    """Two steps of a run against torch's AdamW on the same data, with the schedule of section 3.5.6.2."""
    loaded = load_study("flipflop")
    entry = loaded.members("runs")["flipflop-base"].model_copy(update={"replicas": 1, "steps": 4, "warmup": 2})
    job = made(tmp_path, loaded, entry)
    state = core.train_chunk(job, [0], torch.device("cpu"))
    flat = job.initial([0]).requires_grad_()
    plain = torch.optim.AdamW([flat], lr=1.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
    for step in range(4):
        plain.param_groups[0]["lr"] = entry.lr[0] * ((step + 1) / 2 if step < 2 else (4 - step) / 2)
        plain.zero_grad()
        arrays = {name: torch.from_numpy(array) for name, array in job.batch([0], step).items()}
        forward = core._forward(job, job.unflatten(flat), torch.from_numpy(job.table))
        job.objective.loss(forward, arrays | {"step": torch.tensor(step)})["loss"].sum().backward()
        plain.step()
    torch.testing.assert_close(state.flat, flat.detach(), rtol=1e-4, atol=1e-5)


def made(folder: Path, loaded: Any, entry: Any, sequences: int = 4, sets: int | None = None) -> jobs.TrainingJob:
    source = loaded.members("datasets")[entry.dataset]
    first = list(source.sets.items())[:sets]
    few = {name: held.model_copy(update={"sequences": sequences}) for name, held in first}
    frame, _ = datasets.generate(source.model_copy(update={"sets": few}), entry.dataset, loaded.seed)
    ensemble.write_job(folder / "job.safetensors", *runs.prepare(entry, frame, loaded.seed))
    return jobs.TrainingJob(folder / "job.safetensors")


@pytest.mark.parametrize(
    "run",
    [
        "flipflop-base",
        "flipflop-middle",
        "flipflop-generative",
        "flipflop-mixture",
        "flipflop-four-symbols",
        "flipflop-emb05",
        "flipflop-attn05",
        "flipflop-alibi",
        "flipflop-rope",
        "flipflop-swiglu",
        "flipflop-entropy-10",
        "flipflop-linf-constant",
        "flipflop-one-entropy",
        "flipflop-middle-entropy",
        "flipflop-linear-l2-rising",
        "flipflop-many-first",
        "flipflop-linear-linf",
        "flipflop-lstm",
    ],
)
def test_paper_size_builds_and_takes_a_step(tmp_path: Path, run: str) -> None:
    """The full-size shapes at their length, in a small batch, asked about one set; penalties from the first step."""
    loaded = load_study("flipflop", "paper")
    entry = loaded.members("runs")[run]
    update = {"replicas": 1, "batch": 1, "steps": 1, "warmup": 0, "epochs": 1, "snapshots": []}
    if getattr(entry, "sharpen", None) is not None:
        update["sharpen"] = entry.sharpen.model_copy(update={"start": 0})
    job = made(tmp_path, loaded, entry.model_copy(update=update), sequences=1, sets=1)
    state = core.train_chunk(job, [0], torch.device("cpu"))
    assert (state.diverged_at == -1).all() and torch.isfinite(state.flat).all()


def test_a_factorial_crosses_orders_and_initial_weights(tmp_path: Path) -> None:
    loaded = load_study("flipflop")
    job = made(tmp_path, loaded, loaded.members("runs")["flipflop-factorial"])
    k = loaded.members("runs")["flipflop-factorial"].data_seeds
    start = job.initial([0, 1, k])
    assert torch.equal(start[0], start[2]) and not torch.equal(start[0], start[1])
    batches = [job.batch([r], 0)["tokens"] for r in (0, 1, k)]
    assert (batches[0] == batches[1]).all() and (batches[0] != batches[2]).any()


def test_epochs_reuse_what_the_baseline_reads_and_held_out_strings_are_others(tmp_path: Path) -> None:
    """The baseline and the run of several epochs as they are trained, at the length of scale quick."""
    loaded = load_study("flipflop", "quick")
    members, few = loaded.members("runs"), {"steps": 4, "warmup": 1, "replicas": 2, "snapshots": []}
    base = made(tmp_path, loaded, members["flipflop-base"].model_copy(update=few), sequences=64)
    read = [base.batch([1], step)["tokens"][0] for step in range(4)]
    epochs = members["flipflop-epochs"].model_copy(update=few | {"steps": 8, "epochs": 2})
    again = made(tmp_path, loaded, epochs)
    passes = [np.concatenate([again.batch([1], 4 * e + step)["tokens"][0] for step in range(4)]) for e in (0, 1)]
    first, second, plain = (sorted(map(bytes, part)) for part in (*passes, np.concatenate(read)))
    assert first == second == plain and len(set(plain)) == 4 * epochs.batch
    assert (passes[0] != passes[1]).any()
    assert not {*map(bytes, np.concatenate(read))} & {*map(bytes, base.held["val"])}


def test_bad_parameters_give_a_clear_line() -> None:
    loaded = load_study("flipflop")
    entry = loaded.members("runs")["flipflop-base"].model_copy(update={"length": 20})
    frame, _ = datasets.generate(loaded.members("datasets")[entry.dataset], entry.dataset, loaded.seed)
    with pytest.raises(SandglassError, match="has no strings of 2 symbols and 20 tokens"):
        runs.prepare(entry, frame, loaded.seed)
    with pytest.raises(SandglassError, match="symbol 'x' is not in the alphabet: w, r, i, 0, 1"):
        inputs.encode({"task": "strings", "symbols": 2}, "w1x0")
