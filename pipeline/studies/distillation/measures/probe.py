"""Non-terminals that can be read from a model: the position-attention probe, A-NT (Liu 2024, section 4.2.8.2).

A frozen model reads whole sentences; e_k is what its last block leaves at token k. For each level of the grammar one
classifier G_i = sum_r sum_k w_r,ik f_r(e_k), with f_r affine and w_r,i. = softmax_k <P_i,r, P_k,r> over the tokens of
the sentence, P trained, says of each token i which symbol of that level stands above it. All models and levels are
probed side by side. Where the text is silent, settings are those of the published code: Adam with rate 0.01, batches of
64, a warm-up of 6 % and a cosine, all tokens labelled. Shapes: S models, L levels, H heads, B sentences, T tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import pcfg
from pipeline.studies.distillation.measures.kept import Kept
from pipeline.studies.distillation.measures.windows import context_names

RATE, BATCH, WARMUP, BETAS, EPS = 1e-2, 64, 0.06, (0.9, 0.999), 1e-8
CLASSES = 3  # symbols of a level below the root
NONE = -100  # label of what is no token
AT_ONCE = 2**22  # numbers of hidden states that are held at once


@dataclass(frozen=True)
class Probed:
    """Sentences (N, 1 + T) behind BOS, and of each token its ancestor of each level (L, N, 1 + T), 0 to 2, and whether
    the span of a symbol of that level ends with it."""

    words: NDArray[np.uint8]
    ancestors: NDArray[np.int64]
    ends: NDArray[np.bool_]

    def only(self, which: NDArray[np.bool_]) -> Probed:
        """Return some of the sentences."""
        return Probed(self.words[which], self.ancestors[:, which], self.ends[:, which])


def levels(root: int) -> list[int]:
    """Return the levels between tokens and root, counted from the leaves.

    >>> levels(13), levels(22)
    ([2, 3], [2, 3, 4, 5, 6])
    """
    return list(range(2, pcfg.level(root)))


def drawn(rng: np.random.Generator, grammar: str, root: int, n: int) -> Probed:
    """Return ``n`` sentences with what stands above their tokens."""
    sample = pcfg.sample(rng, grammar, n, root)
    width = pcfg.extent(grammar, root)[1]
    words = pcfg.padded(sample.tokens, sample.lengths, width=width)
    above, ends = [], []
    for level in levels(root):
        depth = pcfg.DEPTH + 1 - level
        first = min(pcfg.SYMBOLS[depth])
        symbols = (sample.ancestors(depth) - first).astype(np.uint8)
        above.append(pcfg.padded(symbols, sample.lengths, 255, 255, width).astype(np.int64))
        ends.append(pcfg.padded(pcfg.ends(sample.boundary_levels, level).astype(np.uint8), sample.lengths, 0, 0, width))
    ancestors = np.stack(above)
    ancestors[ancestors == 255] = NONE
    return Probed(words, ancestors, np.stack(ends) > 0)


def split(rng: np.random.Generator, sample: Probed, share: float) -> tuple[Probed, Probed]:
    """Return the sentences to train on and those to test on, which are of other strings: about ``share`` of all strings
    are held out, at least one, so that a small grammar's are not read in training."""
    _, string = np.unique(sample.words, axis=0, return_inverse=True)
    count = int(string.max()) + 1
    held = np.isin(string.ravel(), rng.permutation(count)[: max(1, round(share * count))])
    return sample.only(~held), sample.only(held)


def table(context: Inputs, run: str, task_fields: dict[str, Any], settings: Any, steps: list[int]) -> pl.DataFrame:
    """Return how well each level can be read from each model of a run after some kept steps
    (`schemas.distillation.tables.NtProbe`)."""
    kept, grammar, root = Kept(context, run), task_fields["grammar"], task_fields["root"]
    path = (context.seed, context.study, "probe", grammar, root)
    total = settings.train + settings.test
    everything = drawn(stream(*path, "sentences"), grammar, root, total)
    train, test = split(stream(*path, "held out"), everything, settings.test / total)
    names, rows = context_names(context, run), []
    counts = [np.bincount(own[own >= 0], minlength=CLASSES) for own in test.ancestors]
    for step in steps:
        weights = kept.weights(step)
        scores = accuracies(kept, weights, train, test, settings, stream(*path, "weights"))
        for place, level in enumerate(levels(root)):
            for model, (arm, number) in enumerate(names):
                at_ends, everywhere = scores[model, place].tolist()
                rows.append(
                    {
                        "run": run,
                        "arm": arm,
                        "model": number,
                        "step": step,
                        "level": level,
                        "acc_boundary": at_ends,
                        "acc_all": everywhere,
                        "majority": float(counts[place].max() / counts[place].sum()),
                        "n_train": len(train.words),
                        "n_test": len(test.words),
                    }
                )
    return pl.DataFrame(rows)


def states(kept: Kept, weights: dict[str, Tensor], words: NDArray[np.uint8]) -> Tensor:
    """Return what the last block of each model leaves, (S, N, 1 + T, D); sentences that are drawn several times, as
    those of small grammars are, are read once."""
    words, same = np.unique(words, axis=0, return_inverse=True)
    models = weights["embed.W"].shape[0] * kept.spec.side
    size = max(1, AT_ONCE // (models * words.shape[1] * kept.spec.width * 4))
    outputs = []
    for start in range(0, len(words), size):
        part = words[start : start + size]
        _, recorded = kept.module.forward(
            kept.spec,
            weights,
            torch.zeros(1, 1),
            torch.from_numpy(part.astype(np.int64))[None, None],
            torch.from_numpy(part != pcfg.PAD)[None, None],
            record=["last"],
        )
        outputs.append(recorded["last"].flatten(0, 1))
    return torch.cat(outputs, 1)[:, torch.from_numpy(same.ravel())]


def accuracies(
    kept: Kept, weights: dict[str, Tensor], train: Probed, test: Probed, settings: Any, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return (S, L, 2): the accuracy of the probe on tokens at which a span ends, and on all, after its training."""
    e = states(kept, weights, train.words)
    S, N, T, D = e.shape
    L, H = len(train.ancestors), settings.heads
    shapes = {"P": (S, L, H, T, settings.width), "W": (S, L, H, D, CLASSES), "b": (S, L, H, CLASSES)}
    bound = 1 / math.sqrt(D)
    start = {
        "P": rng.normal(0, 1, shapes["P"][1:]) / math.sqrt(settings.width),
        "W": rng.uniform(-bound, bound, shapes["W"][1:]),
        "b": rng.uniform(-bound, bound, shapes["b"][1:]),
    }
    # All models are read with the same first weights.
    params = {n: torch.from_numpy(np.stack([v] * S)).float().requires_grad_() for n, v in start.items()}
    optimiser = torch.optim.Adam(params.values(), lr=RATE, betas=BETAS, eps=EPS)
    steps = settings.epochs * -(-N // BATCH)
    rates = [
        min(1.0, (step + 1) / max(1, WARMUP * steps))
        if step < WARMUP * steps
        else (1 + math.cos(math.pi * (step - WARMUP * steps) / ((1 - WARMUP) * steps))) / 2
        for step in range(steps)
    ]
    targets = torch.from_numpy(train.ancestors)
    visible = torch.from_numpy(train.words != pcfg.PAD)
    order = np.concatenate([rng.permutation(N) for _ in range(settings.epochs)])
    step = 0
    for epoch in range(settings.epochs):
        for begin in range(0, N, BATCH):
            batch = torch.from_numpy(order[epoch * N + begin : min(epoch * N + begin + BATCH, (epoch + 1) * N)])
            logits = _read(params, e[:, batch], visible[batch])
            labels = targets[:, batch].expand(S, -1, -1, -1)
            # A mean for each model and level, summed: each has the gradient that it would have alone.
            loss = F.cross_entropy(logits.flatten(0, 3), labels.flatten(), ignore_index=NONE) * S * L
            for group in optimiser.param_groups:
                group["lr"] = RATE * rates[step]
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            step += 1
    with torch.no_grad():
        right, total = np.zeros((S, L, 2)), np.zeros((1, L, 2))
        held = states(kept, weights, test.words)
        for begin in range(0, len(test.words), BATCH):
            part = slice(begin, begin + BATCH)
            predictions = (
                _read(params, held[:, part], torch.from_numpy(test.words[part] != pcfg.PAD)).argmax(-1).numpy()
            )
            labelled = test.ancestors[:, part] >= 0
            for place, counted in enumerate((test.ends[:, part] & labelled, labelled)):
                right[..., place] += ((predictions == test.ancestors[:, part]) & counted).sum((2, 3))
                total[..., place] += counted.sum((1, 2))
    return right / total


def _read(params: dict[str, Tensor], e: Tensor, visible: Tensor) -> Tensor:
    """Return logits (S, L, B, T, classes) of states (S, B, T, D), of which ``visible`` (B, T) are tokens.

    Weights of positions are those of all sentences, each over the tokens that it has: their exponentials are computed
    once, and sums over tokens with them are one product. They are taken relative to the largest of the positions up to
    the own one, which are there wherever it is, so that no sum is 0; one that is e^60 times as large is held there.
    """
    B, T = visible.shape
    P = params["P"][..., :T, :]
    scores = P @ P.transpose(-1, -2)
    back = torch.ones(T, T, dtype=torch.bool).tril()
    top = scores.detach().masked_fill(~back, -math.inf).amax(-1, keepdim=True)
    shares = (scores - top).clamp(max=60).exp()  # (S, L, H, T, T)
    mask = visible.float().T  # (T, B)
    values = torch.einsum("sbkd,slhdc->slhkbc", e, params["W"]) + params["b"][:, :, :, None, None]
    sums = shares @ (values * mask[..., None]).flatten(-2)
    read = sums.unflatten(-1, (B, CLASSES)) / (shares @ mask)[..., None]  # (S, L, H, T, B, classes)
    return read.sum(2).transpose(2, 3)
