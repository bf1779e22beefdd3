"""How fast the code is, beside the plainest way to do the same: ``make bench``.

Everything in one run on one machine, one thread, both sides on the same data, repeats interleaved,
medians. Ratios can be compared between machines; times cannot.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import numpy as np
import psutil
import torch
import typer
from scipy import special

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import scale  # noqa: E402
import translation  # noqa: E402

from pipeline import params  # noqa: E402
from pipeline.kit.streams import stream  # noqa: E402
from pipeline.languages import dyck, exponential_families, ising  # noqa: E402
from pipeline.models.llama import decoder as llama  # noqa: E402
from pipeline.models.llama import decoding as llama_decoding  # noqa: E402
from pipeline.models.llama.verifiers import Trained  # noqa: E402
from pipeline.models.transformer import decoder as transformer  # noqa: E402
from pipeline.studies.dyck import datasets, runs  # noqa: E402
from pipeline.studies.dyck.exact import pruning  # noqa: E402
from pipeline.studies.flipflop import datasets as flipflop_datasets  # noqa: E402
from pipeline.studies.flipflop import runs as flipflop_runs  # noqa: E402
from pipeline.studies.nce.exact import exponential_family as log_ratio  # noqa: E402
from pipeline.studies.parallel.exact import chains, simulate  # noqa: E402
from pipeline.training import core, ensemble, jobs  # noqa: E402
from pipeline.training.fresh import TOGETHER  # noqa: E402

K, DEPTH, Q = 2, 4, 0.5
RESULTS = Path(__file__).with_name("RESULTS.md")
ENGINES = "Seconds of the engines' own book-keeping, with nothing to do, in workspaces of toy studies (`scale.py`):"


@dataclasses.dataclass
class Row:
    """One comparison; ``target`` is the ratio that was asked for."""

    what: str
    ours: str
    plain: str
    ratio: float | None
    target: float | None


def interleaved(actions: dict[str, Callable[[int], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each action, taken in turn so that all meet the same machine."""
    return {name: statistics.median(times) for name, times in _timed(actions, repeats)[0].items()}


def rates(actions: dict[str, Callable[[int], int]], repeats: int) -> dict[str, float]:
    """Return the median over repeats of what each action says it made, per second."""
    times, made = _timed(actions, repeats)
    return {
        name: statistics.median(count / seconds for count, seconds in zip(made[name], times[name], strict=True))
        for name in actions
    }


def _timed(
    actions: dict[str, Callable[[int], Any]], repeats: int
) -> tuple[dict[str, list[float]], dict[str, list[Any]]]:
    times: dict[str, list[float]] = {name: [] for name in actions}
    results: dict[str, list[Any]] = {name: [] for name in actions}
    for repeat in range(-2, repeats):  # two rounds to warm up
        for name, action in actions.items():
            started = time.perf_counter()
            result = action(repeat + 2)
            if repeat >= 0:
                times[name].append(time.perf_counter() - started)
                results[name].append(result)
    return times, results


# --- decoding --------------------------------------------------------------------------------------------

PROMPTS, PROMPT, WRITTEN = 128, 16, 64  # rows, tokens that they have, tokens that are written


def decoding() -> list[Row]:
    """Compare the batched decoder with one prompt at a time on the same cache, plainly and by Algorithm 1, and with
    `generate` of transformers on the same weights."""
    spec = llama.Spec(layers=3, heads=4, width=64, inner=128, symbols=8)
    weights = llama.initial(spec, np.random.default_rng(0))
    params_ = {name: torch.from_numpy(10 * value[None]).float() for name, value in weights.items()}
    rng = np.random.default_rng(1)
    ids = torch.from_numpy(rng.integers(0, 8, (1, PROMPTS, PROMPT)))
    limit = PROMPT + WRITTEN
    greedy = llama_decoding.Plan(-1, temperature=0.0)
    backtracking = llama_decoding.Plan(-1, quota=4, stride=4, threshold=0.5)
    verifier = Trained(3, [(torch.from_numpy(rng.normal(size=(1, 64, 2))).float(), torch.zeros(1, 2))])
    draws = torch.from_numpy(rng.random((1, PROMPTS, backtracking.calls(WRITTEN))))

    def written(plan: llama_decoding.Plan, rows: slice) -> torch.Tensor:
        prompts = ids[:, rows]
        lengths = torch.full(prompts.shape[:2], PROMPT)
        judge = verifier if plan.quota else None
        with torch.no_grad():
            oracle = llama_decoding.Cached(spec, params_, limit)
            made, _ = llama_decoding.decode(oracle, plan, prompts, lengths, lengths + WRITTEN, draws[:, rows], judge)
        return made.tokens

    few = 8  # prompts that are completed one by one: their rate is that of all

    def one_by_one(plan: llama_decoding.Plan) -> Callable[[int], int]:
        def run(_: int) -> int:
            for row in range(few):
                written(plan, slice(row, row + 1))
            return few * WRITTEN

        return run

    def together(plan: llama_decoding.Plan) -> Callable[[int], int]:
        return lambda _: written(plan, slice(None)).shape[1] * WRITTEN

    rows = []
    for what, plan in (("greedy", greedy), ("Algorithm 1", backtracking)):
        found = rates({"ours": together(plan), "plain": one_by_one(plan)}, 5)
        name = f"decoding, {what}, {PROMPTS} prompts against one by one, tokens/s"
        rows.append(_decoded(name, found, 10))
    generate = plain_generate(spec, params_)
    assert torch.equal(generate(ids[0]), written(greedy, slice(None))[0])
    found = rates({"ours": together(greedy), "plain": lambda _: generate(ids[0]).shape[0] * WRITTEN}, 5)
    return [*rows, _decoded(f"decoding, greedy, {PROMPTS} prompts against transformers, tokens/s", found, 1)]


def _decoded(what: str, found: dict[str, float], target: float) -> Row:
    ours, plain = found["ours"], found["plain"]
    return Row(what, f"{ours / 1e3:.1f} k", f"{plain / 1e3:.1f} k", ours / plain, target)


def plain_generate(spec: llama.Spec, params_: dict[str, torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return transformers' greedy generation by a Llama with the same weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=spec.symbols,
        hidden_size=spec.width,
        intermediate_size=spec.inner,
        num_hidden_layers=spec.layers,
        num_attention_heads=spec.heads,
        rms_norm_eps=llama.EPS,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
        tie_word_embeddings=False,
        max_position_embeddings=PROMPT + WRITTEN,
    )
    model = LlamaForCausalLM(config).eval()
    own = {name: value[0] for name, value in params_.items()}
    state = {"model.embed_tokens.weight": own["embed.W"], "model.norm.weight": own["ln.w"]}
    state["lm_head.weight"] = own["head.W"].T
    for layer in range(spec.layers):
        at, there = f"blocks.{layer}", f"model.layers.{layer}"
        projections = zip("qkv", own[f"{at}.attn.W_QKV"].chunk(3, -1), strict=True)
        state |= {f"{there}.self_attn.{name}_proj.weight": part.T for name, part in projections}
        gate, up = own[f"{at}.mlp.W_in"].chunk(2, -1)
        state |= {
            f"{there}.self_attn.o_proj.weight": own[f"{at}.attn.W_O"].T,
            f"{there}.mlp.gate_proj.weight": gate.T,
            f"{there}.mlp.up_proj.weight": up.T,
            f"{there}.mlp.down_proj.weight": own[f"{at}.mlp.W_out"].T,
            f"{there}.input_layernorm.weight": own[f"{at}.ln1.w"],
            f"{there}.post_attention_layernorm.weight": own[f"{at}.ln2.w"],
        }
    model.load_state_dict(state)

    def generate(ids: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=WRITTEN,
                min_new_tokens=WRITTEN,
                do_sample=False,
            )

    return generate


# --- sampling --------------------------------------------------------------------------------------------


def plain_chain(length: int | None) -> list[int]:
    """Return a prefix of ``length`` or a complete string, drawn token by token with torch.distributions."""
    tokens: list[int] = []
    stack: list[int] = []
    bernoulli, kind = torch.distributions.Bernoulli(Q), torch.distributions.Categorical(torch.ones(K))
    while length is None or len(tokens) < length:
        if not stack or (len(stack) < DEPTH and bernoulli.sample().item() == 1):
            stack.append(int(kind.sample().item()) + 1)
            tokens.append(2 * stack[-1] - 1)
        else:
            tokens.append(2 * stack.pop())
        if length is None and not stack and bernoulli.sample().item() == 1:
            break
    return tokens if length is not None or len(tokens) <= 26 else plain_chain(None)


def sampling() -> list[Row]:
    """Measure tokens per second of each sampler, by counted tokens: complete strings differ much in length."""
    rng = np.random.default_rng(0)

    def ours(length: int | None) -> int:
        if length is None:
            tokens = dyck.sample_complete(rng, 50_000, K, DEPTH, Q, 0.5, 26)
        else:
            tokens = dyck.sample_prefixes(rng, 1_400_000 // length, length, K, DEPTH, Q)
        return int((tokens != dyck.PADDING).sum())

    def plain(length: int | None) -> int:
        made = 0
        while made < 1000:
            made += len(plain_chain(length))
        return made

    rows = []
    for name, length in (("complete strings (D2)", None), ("prefixes of 28 (D1)", 28), ("prefixes of 450 (D3)", 450)):
        speeds = rates(
            {"ours": lambda _, n=length: ours(n), "plain": lambda _, n=length: plain(n)},  # type: ignore[misc]
            9,
        )
        fast, slow = speeds["ours"], speeds["plain"]
        rows.append(Row(f"sampling {name}, tokens/s", f"{fast / 1e6:.1f} M", f"{slow / 1e3:.1f} k", fast / slow, 400))
    return rows


# --- training --------------------------------------------------------------------------------------------


def job(folder: Path, prefixes: bool) -> jobs.TrainingJob:
    """Return a job of M1 at the published batch of 100, one replica, on complete strings or prefixes of length 28."""
    loaded = params.load(ROOT, "paper")
    dataset = "dyck-train-prefix" if prefixes else "dyck-train-complete"
    entry = loaded.members("runs")["dyck-standard"].model_copy(update={"replicas": 1, "dataset": dataset})
    source = loaded.members("datasets")[dataset].model_copy(update={"corpora": 1})
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    path = folder / f"{prefixes}.safetensors"
    ensemble.write_job(path, header, data, table)
    return jobs.TrainingJob(path)


def plain_gpt2(job: jobs.TrainingJob) -> Callable[[int], None]:
    """Return a step of the plainest loop: transformers' GPT-2 of equal shape, padded batches, torch's Adam."""
    from transformers import GPT2Config, GPT2LMHeadModel

    ids, lengths, targets = (job.objective.data[name][0] for name in ("ids", "lengths", "targets"))
    length = ids.shape[-1]
    config = GPT2Config(
        vocab_size=5,
        n_positions=length,
        n_embd=50,
        n_layer=2,
        n_head=1,
        n_inner=50,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = GPT2LMHeadModel(config).train()
    adam = torch.optim.Adam(model.parameters(), lr=3e-3)

    def step(index: int) -> None:
        chosen = job._selection(0, index)
        inputs = torch.from_numpy(np.maximum(ids[chosen], 0).astype(np.int64))
        labels = torch.from_numpy(targets[chosen].astype(np.int64))
        mask = (torch.arange(length) < torch.from_numpy(lengths[chosen].astype(np.int64))[:, None]).long()
        logits = model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 5), labels.reshape(-1), ignore_index=-1)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def our_step(job: jobs.TrainingJob) -> Callable[[int], None]:
    """Return one step of our trainer, batch preparation included."""
    state = jobs.State.fresh(job, job.initial([0]))
    table, rate = torch.from_numpy(job.table), torch.full((1, 1), 3e-3)

    def step(index: int) -> None:
        batch = {name: torch.from_numpy(array) for name, array in job.batch([0], index).items()}
        core._step(job, state, table, batch, rate)
        state.step += 1

    return step


def matmul_peak() -> float:
    """Measure FLOP per second of one core on 1024 x 1024 float32 matrices, best of ten."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = min(_seconds(lambda: a @ b) for _ in range(10))
    return 2 * 1024**3 / best


def _seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def model_flops(job: jobs.TrainingJob) -> float:
    """Return the FLOP of one step of the plain algorithm on the tokens without padding: 3 x forward."""
    lengths = job.objective.data["lengths"][0].astype(float)
    weights = sum(int(np.prod(shape)) for name, shape in job.shapes.items() if len(shape) == 2)
    attention = job.spec.layers * 4 * job.spec.width * float((lengths**2).mean()) / 2  # causal half
    return 3 * job.header.batch * (2 * weights * float(lengths.mean()) + attention)


def training(folder: Path) -> list[Row]:
    """Measure the milliseconds that training takes per model-step."""
    rows = []
    peak = matmul_peak()
    for prefixes, name, target in ((False, "complete strings", 3.0), (True, "prefixes of 28", 1.5)):
        current = job(folder, prefixes)
        seconds = interleaved({"ours": our_step(current), "plain": plain_gpt2(current)}, 60)
        ours, plain = seconds["ours"] * 1e3, seconds["plain"] * 1e3
        rows.append(
            Row(f"training M1 on {name}, ms per model-step", f"{ours:.2f}", f"{plain:.2f}", plain / ours, target)
        )
        share = model_flops(current) / seconds["ours"] / peak
        rows.append(
            Row(
                f"training M1 on {name}, share of the matmul peak",
                f"{share:.0%}",
                f"{peak / 1e9:.0f} GFLOP/s",
                None,
                None,
            )
        )
    return rows


FRESH = {  # runs of the flip-flop study, whose data are drawn anew at every step
    "flipflop-base": "the canonical decoder",
    "flipflop-mixture": "a mixture of three languages",
    "flipflop-lstm": "the LSTM",
    "flipflop-linear-plain": "the automaton",
    "flipflop-standin-32": "stories",
}
SMALL_BATCHES = ("flipflop-standin-32",)  # at quick, where 8 stories make a step; the paper scale has 32
FRESH_AT_MOST = 0.05


def fresh_job(folder: Path, run: str, scale: str) -> jobs.TrainingJob:
    """Return the training job of a run of the flip-flop study, with few sequences to evaluate on."""
    loaded = params.load(ROOT, scale)
    entry = loaded.members("runs")[run]
    source = loaded.members("datasets")[entry.dataset]
    few = {name: held.model_copy(update={"sequences": 2}) for name, held in source.sets.items()}
    frame, _ = flipflop_datasets.generate(source.model_copy(update={"sets": few}), entry.dataset, loaded.seed)
    path = folder / f"{run}.safetensors"
    ensemble.write_job(path, *flipflop_runs.prepare(entry, frame, loaded.seed))
    return jobs.TrainingJob(path)


def fresh(folder: Path, scale: str = "quick", runs: Iterable[str] = FRESH, blocks: int = 8) -> list[Row]:
    """Measure which share of a training step it takes to draw its data, of models that train side by side.

    Data of a block of steps are drawn together; what is stated is the median of whole blocks, the first left out.
    """
    rows = []
    for run in runs:
        job, at = fresh_job(folder, run, scale), scale
        if not job.header.corpus:  # some runs train nothing before long
            job, at = fresh_job(folder, run, "long"), "long"
        company = list(range(min(job.objective.side_by_side, len(job.header.corpus))))
        state = jobs.State.fresh(job, job.initial(company))
        table, rate = torch.from_numpy(job.table), torch.full((len(company), 1), 3e-4)
        drawing, learning = np.zeros((2, 1 + blocks, TOGETHER))
        for block, index in np.ndindex(drawing.shape):
            started = time.perf_counter()
            arrays = job.batch(company, block * TOGETHER + index)
            batch = {name: torch.from_numpy(array) for name, array in arrays.items()}
            drawn = time.perf_counter()
            core._step(job, state, table, batch | {"step": torch.tensor(block * TOGETHER + index)}, rate)
            drawing[block, index], learning[block, index] = drawn - started, time.perf_counter() - drawn
        parts = drawing.sum(1) / (drawing + learning).sum(1)
        models = f"{len(company)} {'model' if len(company) == 1 else 'models'} at scale {at}"
        rows.append(
            Row(
                f"fresh data of {FRESH[run]}, {models}, share of a step (at most {FRESH_AT_MOST:.0%})",
                f"{np.median(parts[1:]):.1%}",
                "",
                None,
                None,
            )
        )
    return rows


# --- evaluation ------------------------------------------------------------------------------------------


def evaluation() -> list[Row]:
    """Measure seconds to read the length-generalisation set (D3), with ten models of a minimal first layer.

    The set is one batch. Ours attends by how often each (type, depth) symbol has come; what is plain attends
    position by position, the path of the same function that records attention maps. Their logits are compared.
    """
    loaded = params.load(ROOT, "paper")
    source = loaded.members("datasets")["dyck-train-complete"].model_copy(update={"corpora": 1, "sequences": 10})
    frame, _ = datasets.generate(source, "dyck-train-complete", loaded.seed)
    tokens_BxT = dyck.sample_prefixes(stream(0, "bench"), 22, np.full(22, 450), K, DEPTH, Q)
    ids = torch.from_numpy(dyck.with_start(dyck.symbols(tokens_BxT, DEPTH)).astype(np.int64))[None]
    rows = []
    for run in ("dyck-minimal", "dyck-minimal-width500"):
        entry = loaded.members("runs")[run].model_copy(update={"replicas": 10})
        header, _, table = runs.prepare(entry, frame, 0)
        spec = transformer.Spec(**header.spec)
        models = [transformer.initial(spec, stream(0, "bench", r)) for r in range(10)]
        # Ten times their initial size, so that attention is far from uniform, as after training.
        weights = {
            name: torch.from_numpy(np.stack([10 * model[name] for model in models])).float() for name in models[0]
        }

        def read(record: tuple[str, ...], spec: Any = spec, weights: Any = weights, table: Any = table) -> torch.Tensor:
            with torch.inference_mode():
                return transformer.forward(spec, weights, torch.from_numpy(table), ids, record=record)[0]

        pattern = ("blocks.0.attn.pattern",)
        difference = float((read(()) - read(pattern)).abs().max() / read(pattern).abs().max())
        assert difference < 1e-5, difference
        seconds = interleaved({"ours": lambda _, f=read: f(()), "plain": lambda _, f=read, p=pattern: f(p)}, 7)
        what = f"evaluating M4 of width {entry.width} at length 450, ten models, s (largest relative difference "
        ours, plain = seconds["ours"], seconds["plain"]
        rows.append(Row(f"{what}{difference:.0e})", f"{ours:.3f}", f"{plain:.3f}", plain / ours, 5.0))
    return rows


# --- theory ----------------------------------------------------------------------------------------------


def prune_parent(n: int, layers: int) -> list[Row]:
    """Measure seconds to prune a random parent to a random target of DYCK-TH6's sizes, parent included."""
    shape = pruning.Shape(m=4, m_a=2, w=8, layers=layers, n=n, m_large=24)
    target = pruning.random_target(shape, np.random.default_rng(0))
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1"):
        seconds = interleaved({"ours": lambda r: pruning.prune(pruning.Parent(shape, r, ()), target)}, 3)
    what = f"pruning {4 * layers} layers, n = {n}, L = {layers}, s on one core (at most 10)"
    return [Row(what, f"{seconds['ours']:.1f}", "", None, None)]


# --- optimisation paths ------------------------------------------------------------------------------------


SAMPLES, UPDATES = 1000, 10  # per update and per measurement, of the sampled paths


def plain_path(points: np.ndarray, eta: float, normalise: bool) -> np.ndarray:
    """Return the final offset from tau_q of one NCE path on samples: ``points`` (T, D, 2n), data first."""
    delta, n = np.zeros(points.shape[1]), SAMPLES
    for sample in points:
        data, noise = sample[:, :n], sample[:, n:]
        gradient = -data @ special.expit(-(delta @ data)) / (2 * n)
        gradient += noise @ special.expit(delta @ noise) / (2 * n)
        delta = delta - eta * (gradient / np.linalg.norm(gradient) if normalise else gradient)
    return delta


def sampled_paths(points: np.ndarray, eta: np.ndarray, normalise: np.ndarray) -> np.ndarray:
    """Return the final offsets (S, K, D) of NCE paths on samples: all K of all seeds at once.

    ``points`` has the shape (S, T, D, 2n), data first.
    """
    weights = np.zeros((2, len(points), 2 * SAMPLES))
    weights[0, :, :SAMPLES] = weights[1, :, SAMPLES:] = 1 / SAMPLES
    delta = np.zeros((len(points), len(eta), points.shape[2]))
    for step in range(points.shape[1]):
        gradient = log_ratio.Nce(points[:, step], *weights).gradient(delta)
        move = np.where(normalise[:, None], log_ratio.normalised(gradient), gradient)
        delta = delta - eta[:, None] * move
    return delta


def sampled() -> list[Row]:
    """Measure paths times steps per second on samples (NCE-D16).

    The grid of chapter N6 is taken in one batch, and path by path.
    """
    rng = stream(0, "bench", "paths")
    x = rng.standard_normal((5, UPDATES, 2 * SAMPLES, 16))
    x[:, :, :SAMPLES] *= 3
    points = exponential_families.diagonal_statistics(x)
    grid = np.array([0.01, 0.03, 0.1, 0.3, 1, 3, 10])
    eta, normalise = np.tile(grid, 2), np.repeat([False, True], len(grid))

    def plain(_: int = 0) -> np.ndarray:
        return np.array([[plain_path(one, *path) for path in zip(eta, normalise, strict=True)] for one in points])

    difference = float(np.abs(sampled_paths(points, eta, normalise) - plain()).max())
    assert difference < 1e-8, difference
    seconds = interleaved({"ours": lambda _: sampled_paths(points, eta, normalise), "plain": plain}, 5)
    return [_paths("on samples, 33 parameters, 70 paths", 5 * len(eta) * UPDATES, seconds)]


def population() -> list[Row]:
    """Measure paths times steps per second on population losses by quadrature (chapter N5).

    Ten R are taken together, and path by path.
    """
    means = np.linspace(5, 9.5, 10)  # none is near its optimum yet, where a constant step size makes paths chaotic
    optimum, caps = exponential_families.mean_optimum(means), 300
    eta = 1 / means / np.sqrt(2 * log_ratio.curvature(log_ratio.NCE, means)[2])

    def walk(rows: slice) -> np.ndarray:
        return log_ratio.descend(
            log_ratio.mean_problem(log_ratio.NCE, means[rows]),
            log_ratio.normalised_step,
            0 * optimum[rows],
            optimum[rows],
            eta[rows],
            np.zeros((len(means[rows]), 1)),
            caps,
        ).final

    def plain(_: int = 0) -> list[float]:
        return [quadrature_path(mean, rate, caps) for mean, rate in zip(means, eta, strict=True)]

    assert np.allclose(walk(slice(None)), plain(), rtol=1e-6)
    seconds = interleaved({"ours": lambda _: walk(slice(None)), "plain": plain}, 3)
    return [_paths("by quadrature, 2 parameters, 10 paths", len(means) * caps, seconds)]


def quadrature_path(mean: float, eta: float, steps: int) -> float:
    """Return the final distance of one NGD path on the population loss, on the points its R has in the batch."""
    statistics, data, noise = (array[0] for array in exponential_families.mean_points([mean]))
    x = statistics[0]
    optimum, delta = np.array([mean, mean**2 / 2]), np.zeros(2)
    for _ in range(steps):
        psi = delta[0] * x - delta[1]
        weights = (noise * special.expit(psi) - data * special.expit(-psi)) / 2
        gradient = np.array([weights @ x, -weights.sum()])
        delta = delta - eta * gradient / np.linalg.norm(gradient)
    return float(np.linalg.norm(delta - optimum))


def _paths(what: str, moves: int, seconds: dict[str, float]) -> Row:
    ours, plain = moves / seconds["ours"], moves / seconds["plain"]
    return Row(f"paths {what}, paths x steps/s", f"{ours / 1e3:.1f} k", f"{plain / 1e3:.1f} k", ours / plain, None)


# --- sampling by block dynamics ------------------------------------------------------------------------------

SPINS, CLIQUE, FIELD, COUPLING, MASKED, BUDGET = 10, 4, 5.0, 2.0, 4, 1000  # of Figure 4.3, parallel
RUNS = 1000  # of a sampler, side by side


def plain_gibbs(theta: np.ndarray, rng: np.random.Generator) -> Callable[[int], int]:
    """Return a step of k-Gibbs on one state, a number, as it is said: a mask, the weights of all that fits, a draw."""
    J, h = ising.couplings(theta, SPINS)
    states = ising.states(SPINS).tolist()

    def weight(state: int) -> float:
        x = states[state]
        energy = sum(h[i] * x[i] for i in range(SPINS))
        energy += sum(J[i, j] * x[i] * x[j] for i in range(SPINS) for j in range(i + 1, SPINS))
        return math.exp(energy)

    weights = [weight(state) for state in range(2**SPINS)]

    def step(state: int) -> int:
        chosen = rng.choice(SPINS, MASKED, replace=False)
        free = [1 << (SPINS - 1 - int(i)) for i in chosen]
        rest = state & ~sum(free)
        fits = [rest + sum(bits) for bits in itertools.product(*((0, bit) for bit in free))]
        at, place = rng.random() * sum(weights[each] for each in fits), 0
        while place < len(fits) - 1 and at >= weights[fits[place]]:
            at -= weights[fits[place]]
            place += 1
        return fits[place]

    return step


def plain_oracle(k: int) -> float:
    """Return E[min(T, budget)] of k-Gibbs by sums over counts, entry by entry and step by step."""
    c, logs = CLIQUE, []
    for u in range(CLIQUE + 1):
        m = 2 * u - c
        logs.append(FIELD * m + COUPLING * (m * m - c) / 2)
    P = [[0.0] * (c + 1) for _ in range(c + 1)]
    for u, m in itertools.product(range(c + 1), range(min(c, k) + 1)):
        if k - m > SPINS - c:
            continue
        chance = math.comb(c, m) * math.comb(SPINS - c, k - m) / math.comb(SPINS, k)
        for a in range(max(0, m - (c - u)), min(u, m) + 1):
            share = math.comb(u, a) * math.comb(c - u, m - a) / math.comb(c, m)
            weights = [math.comb(m, b) * math.exp(logs[u - a + b]) for b in range(m + 1)]
            for b in range(m + 1):
                P[u][u - a + b] += chance * share * weights[b] / sum(weights)
    at, total = [1.0] + [0.0] * (c - 1), 0.0
    for _ in range(BUDGET):
        total += sum(at)
        at = [sum(at[u] * P[u][v] for u in range(c)) for v in range(c)]
    return total


def block_dynamics() -> list[Row]:
    """Measure steps per second of k-Gibbs, many runs at once against one by one, and of the oracle of hitting times.

    Both samplers are compared with the exact mean before they are timed, and both oracles with each other.
    """
    theta = ising.clique(SPINS, CLIQUE, COUPLING, FIELD)
    target = ising.mask_of(SPINS, tuple(range(CLIQUE)))
    sampler, rng = simulate.Gibbs(theta, SPINS, MASKED), stream(0, "bench", "gibbs")
    step = plain_gibbs(theta, rng)

    def oracle(k: int) -> float:
        P = chains.lumped_gibbs(SPINS, CLIQUE, k, COUPLING, FIELD)
        return chains.censored_moments(chains.survival(P, 0, CLIQUE, BUDGET))[0]

    def ours(steps: int) -> int:
        at = simulate.all_minus(rng, SPINS, CLIQUE, RUNS)
        for _ in range(steps):
            at = sampler.step(rng, at)
        return RUNS * steps

    def plain(steps: int) -> int:
        at = 0
        for _ in range(steps):
            at = step(at)
        return steps

    def arrival() -> int:
        at, steps = 0, 0
        while at & target != target:
            at, steps = step(at), steps + 1
        return steps

    mean = oracle(MASKED)
    times, _ = simulate.hitting(rng, sampler, simulate.all_minus(rng, SPINS, CLIQUE, RUNS), target, BUDGET)
    for found in (times, np.array([arrival() for _ in range(200)])):
        assert abs(found.mean() - mean) < 5 * found.std() / math.sqrt(len(found)), (found.mean(), mean)
    sizes = range(1, SPINS + 1)
    assert all(math.isclose(oracle(k), plain_oracle(k), rel_tol=1e-9) for k in sizes)
    found_ = rates({"ours": lambda _: ours(50), "plain": lambda _: plain(2000)}, 5)
    fast, slow = found_["ours"], found_["plain"]
    what = f"k-Gibbs, {SPINS} spins, k = {MASKED}, {RUNS} runs against one, steps/s"
    rows = [Row(what, f"{fast / 1e6:.2f} M", f"{slow / 1e3:.1f} k", fast / slow, None)]

    def of_all(measure: Callable[[int], float]) -> Callable[[int], int]:
        def run(_: int) -> int:
            for k in sizes:
                measure(k)
            return len(sizes)

        return run

    found_ = rates({"ours": of_all(oracle), "plain": of_all(plain_oracle)}, 5)
    fast, slow = found_["ours"], found_["plain"]
    what = f"exact hitting times within {BUDGET} steps, clique of {CLIQUE}, all k, values/s"
    return [*rows, Row(what, f"{fast:.0f}", f"{slow:.0f}", fast / slow, None)]


def translations() -> list[Row]:
    """Compare one translation at a time, in parallel passes and word by word."""
    rows = []
    for name, took in translation.measure().items():
        ours, plain = took[translation.PARALLEL], took[translation.BY_WORD]
        what = f"one translation, {translation.PASSES} parallel passes against word by word, {name}, ms"
        rows.append(Row(what, f"{ours:.2f}", f"{plain:.2f}", plain / ours, None))
    return rows


def end_to_end(folder: Path) -> list[Row]:
    """Measure seconds and memory from an empty work tree to the report, at scale quick, with all cores."""
    tree = folder / "tree"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
    started, peak = time.perf_counter(), 0
    with subprocess.Popen(["snakemake", "--cores", "all", "--quiet", "all"], cwd=tree) as process:
        while process.poll() is None:
            peak = max(peak, memory(psutil.Process(process.pid)))
            time.sleep(1)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"bench: snakemake ended with status {process.returncode}")
    shutil.rmtree(tree)
    name = f"quick, end to end, {{}} on {os.cpu_count()} cores"
    return [
        Row(name.format("s"), f"{seconds:.0f}", "", None, None),
        Row(name.format("GiB of memory at most (of 4)"), f"{peak / 2**30:.1f}", "", None, None),
    ]


def memory(process: psutil.Process) -> int:
    """Return the bytes that the process and those it started hold; what several share counts once in all."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it has ended
            total += one.memory_full_info().pss
    return total


def render(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        f"Measured on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"torch {torch.__version__}; one thread unless said otherwise; medians of interleaved repeats.",
        "",
        "| | ours | plain | ratio | target |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        ratio = f"{row.ratio:.1f}" if row.ratio else ""
        lines.append(f"| {row.what} | {row.ours} | {row.plain} | {ratio} | {row.target or ''} |")
    return "\n".join(lines) + "\n"


def main(
    quick: Annotated[bool, typer.Option(help="also build everything at scale quick, in a fresh clone")] = True,
) -> None:
    """Measure, print the table, and keep it in benchmarks/RESULTS.md."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows = sampling() + training(Path(folder)) + fresh(Path(folder))
        rows += fresh(Path(folder), "paper", SMALL_BATCHES) + evaluation()
        rows += prune_parent(n=24, layers=2)
        rows += sampled() + population() + decoding() + block_dynamics() + translations()
        if quick:
            rows += end_to_end(Path(folder))
    text = render(rows) + "\n" + ENGINES + "\n\n" + scale.table(scale.measure()) + "\n"
    print(text)
    RESULTS.write_text("# Benchmarks\n\n`make bench` writes this file.\n\n" + text, encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
