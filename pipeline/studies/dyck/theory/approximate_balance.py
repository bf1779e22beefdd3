"""DYCK-TH5: how far apart long prefixes can be, and what that needs (Wen et al. 2023, Theorem 3, Lemma 1, C.4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer import theory as model
from pipeline.studies.dyck import constructions
from pipeline.studies.dyck.constructions import Language, Solver
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import ApproximateBalanceCheck

LANGUAGE = Language(2, 4)
DIMENSIONS = (2, 3, 10, 50)
SHORT = 8  # all prefixes of this length are enumerated
EPSILON = 1e-3
LARGEST_LOSS = 2.0  # squared error (5) of a probability vector against a one-hot one
NORMAL = "blocks.0.ln"

SOURCE = "Wen et al. 2023, Theorem 3 and appendix C.4"
LEMMA_1 = "Wen et al. 2023, Lemma 1"
# R of Lemma 1 by max(|a|, |b|) and epsilon.
CONSTANTS: dict[str, Callable[[NDArray, NDArray], NDArray]] = {
    "printed": lambda r0, epsilon: 4 * r0 / epsilon + 1,
    "corrected": lambda r0, epsilon: 4 / epsilon + 1,
}
CONSTANT, PREFIX, LOSS = "dyck-lemma-1-constant", "dyck-eq-40", "dyck-theorem-3-loss"


def check(entry: ApproximateBalanceCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: ``entry.triples`` random triples for Lemma 1, ``entry.models``
    random second layers on the prefixes of the proof at each of ``entry.lengths``."""
    checks = [
        *_lemma_1(entry.triples, stream(seed, "dyck", theory_id, "triples")),
        *_prefixes(entry.models, entry.lengths, stream(seed, "dyck", theory_id, "models")),
        *_loss(),
    ]
    return theory.rows("dyck", theory_id, SOURCE, checks)


# Lemma 1


def _lemma_1(triples: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    ratios: dict[str, list[NDArray[np.float64]]] = {form: [] for form in CONSTANTS}
    for dimension in DIMENSIONS:
        count = triples // len(DIMENSIONS)
        epsilon = np.exp(rng.uniform(np.log(0.01), np.log(2), count))
        a, b, r = rng.normal(size=(3, count, dimension))
        b = np.where(rng.random((count, 1)) < 0.5, b, -a)  # opposite is worst
        a, b = (x * np.exp(rng.normal(size=(count, 1))) for x in (a, b))
        r0 = np.maximum(*(np.linalg.norm(x, axis=1) for x in (a, b)))
        for form, constant in CONSTANTS.items():
            long = r * (constant(r0, epsilon) * r0 / np.linalg.norm(r, axis=1))[:, None]
            ratios[form].append(np.linalg.norm(_unit(a + long) - _unit(b + long), axis=1) / epsilon)
    for form, distances in ratios.items():
        yield {
            "check": f"lemma-1-{form}",
            "statement": "Vectors r + a and r + b with |r| = R max(|a|, |b|) have directions at most epsilon apart, "
            f"for R = {'4 max(|a|, |b|)' if form == 'printed' else '4'} / epsilon + 1: largest distance / epsilon",
            "source": LEMMA_1,
            "size": f"{sum(map(len, distances))} triples in dimensions {', '.join(map(str, DIMENSIONS))}",
            "measured": float(np.concatenate(distances).max()),
            "comparison": ">=" if form == "printed" else "<=",
            "bound": 1.0,
            "erratum": CONSTANT,
            "form": form,
        }


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


# The prefixes of the proof


class Pair(NamedTuple):
    """p_1 and p_2 of the proof for every model: ``tokens`` (R, 2, T), what they have in common by (40) as printed
    and as the string says, and what they do not, Q: (R, m), (R, m), (R, 2, m)."""

    tokens: NDArray[np.int8]
    printed: NDArray[np.float64]
    common: NDArray[np.float64]
    own: NDArray[np.float64]


def random_layers(models: int, rng: np.random.Generator) -> Solver:
    """Return second layers with random logits and values, on the one-hot symbols of eq. (15); their g does nothing."""
    S = LANGUAGE.symbols
    scores, values = rng.normal(size=(2, models, S, S))
    spec = model.Spec(
        block="eq6",
        layers=0,
        heads=1,
        width=S,
        ffn=(),
        attention="learned",
        position="none",
        t_max=1,
        inputs=S,
        outputs=2 * LANGUAGE.k,
        keys=S,
        floor=0.0,
    )
    head = torch.zeros(models, S, 2 * LANGUAGE.k, dtype=torch.float64)
    ensemble = model.Ensemble(spec, {"head.W": head}, torch.eye(S, dtype=torch.float64), {})
    attention = {"W_Q": scores, "W_K": np.eye(S), "W_V": values}
    ensemble = constructions.insert_layer(ensemble, 0, attention, [(np.zeros((S, S)), np.zeros(S))])
    return Solver(ensemble, LANGUAGE, np.zeros((LANGUAGE.pairs, S)))


def pair(solver: Solver, length: int, d: int, around: int, i: int, j: int) -> Pair:
    """Return the two prefixes of the proof for every model. Their common part is ``around`` opens of type i,
    pairs of type i inside, ``around`` closers. Then follow d - 1 opens t or t', and a pair of type j: t makes
    Q smallest, t' does so among those whose last type is another (eqs 32, 33)."""
    query = _symbol(2 * j, d)
    weights = solver.ensemble.params
    logits = weights["blocks.0.attn.W_Q"][:, query].numpy()  # keys are the symbols themselves
    values = weights["blocks.0.attn.W_V"].numpy()
    u = np.exp(logits)[..., None] * (values - values.mean(-1, keepdims=True))  # (12)

    inside = length // 2 - around - d - 1
    common = [2 * i - 1] * around + [2 * i - 1, 2 * i] * inside + [2 * i] * around
    symbols = dyck.symbols(np.array([common], np.int8), LANGUAGE.depth)[0]
    summed = {level: u[:, _symbol(2 * i - 1, level)] + u[:, _symbol(2 * i, level)] for level in range(1, around + 2)}
    printed = sum((summed[level] for level in range(1, around)), np.zeros_like(u[:, 0]))
    printed = printed + (length - 2 * around - 2 * d) // 2 * summed[around + 1]

    choices = list(itertools.product(range(1, LANGUAGE.k + 1), repeat=d - 1))
    fixed = u[:, dyck.START] + u[:, _symbol(2 * j - 1, d)] + u[:, query]
    stacks = [[_symbol(2 * t - 1, level) for level, t in enumerate(types, start=1)] for types in choices]
    own = np.stack([fixed + u[:, stack].sum(1) for stack in stacks], 1)
    norms = np.linalg.norm(own, axis=-1)
    last = np.array([types[-1] for types in choices])
    first = norms.argmin(1)
    second = np.where(last == last[first][:, None], np.inf, norms).argmin(1)
    both = np.stack([first, second], 1)
    ends = np.array([[2 * t - 1 for t in types] + [2 * j - 1, 2 * j] for types in choices], np.int8)[both]
    starts = np.broadcast_to(np.array(common, np.int8), (*both.shape, len(common)))
    return Pair(
        np.concatenate([starts, ends], -1), printed, u[:, symbols].sum(1), np.take_along_axis(own, both[..., None], 1)
    )


def _symbol(token: int, pair_depth: int) -> int:
    return 1 + (token - 1) * LANGUAGE.depth + pair_depth - 1


def _prefixes(models: int, lengths: list[int], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    solver = random_layers(models, rng)
    types = range(1, LANGUAGE.k + 1)
    pairs, ratios = 0, []
    apart: dict[str, list[float]] = {"printed": [], "corrected": []}
    for length, d, around, i, j in itertools.product(
        lengths, range(2, LANGUAGE.depth + 1), range(1, LANGUAGE.depth), types, types
    ):
        prefixes = pair(solver, length, d, around, i, j)
        _, recorded = solver.run(prefixes.tokens, [NORMAL])
        normal = recorded[NORMAL][:, :, -1]  # (R, 2, m)
        for form, common in (("printed", prefixes.printed), ("corrected", prefixes.common)):
            built = _unit(common[:, None] + prefixes.own)
            apart[form].append(largest(abs(built - normal)))
        ratio = np.linalg.norm(prefixes.common, axis=-1) / np.linalg.norm(prefixes.own, axis=-1).max(1)
        h = np.linalg.norm(normal[:, 0] - normal[:, 1], axis=-1)
        ratios.append((h * (ratio - 1) / 4)[~(ratio <= 1)])  # of others nothing is said; NaN is no ratio at most 1
        pairs += len(ratio)
    measured = np.concatenate(ratios)
    size = f"{pairs} pairs of prefixes, {models} models, N={', '.join(map(str, lengths))}"
    for form in apart:
        yield {
            "check": f"decomposition-{form}",
            "statement": "The attention output of p_1 and p_2 is A_p + Q (41), with A_p "
            + ("as (40) adds it up" if form == "printed" else "of the string that the proof defines")
            + ": largest error of its direction",
            "source": f"{SOURCE}, eqs (40), (41)",
            "size": size,
            "measured": largest(apart[form]),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 1e-9,
            "erratum": PREFIX,
            "form": form,
        }
    yield {
        "check": "prefixes-apart",
        "statement": "p_1 and p_2 are no further apart than 4/(R-1), R = |A_p| / max |Q|: largest distance over that",
        "size": size,
        "measured": largest(measured) if len(measured) else float("nan"),
        "comparison": "<=",
        "bound": 1.0,
        "detail": f"R > 1 in {len(measured) / pairs:.1%} of them",
    }


# The assumption on the loss


def _loss() -> Iterator[dict[str, Any]]:
    k, q, n = LANGUAGE.k, LANGUAGE.q, 8 * LANGUAGE.depth + 1
    yield {
        "check": "loss-printed",
        "statement": "The loss q^(-N) epsilon that Theorem 3 allows as printed is above the largest loss there is, so "
        "every model would be approximately optimal",
        "size": f"N={n}, epsilon={EPSILON:g}",
        "measured": q**-n * EPSILON,
        "comparison": ">=",
        "bound": LARGEST_LOSS,
        "erratum": LOSS,
        "form": "printed",
    }
    support = dyck.enumerate_prefixes(SHORT, k, LANGUAGE.depth)
    least = float(np.exp(dyck.log_probability(support, k, LANGUAGE.depth, q).min()))
    yield {
        "check": "loss-corrected",
        "statement": "With (q(1-q)/k^2)^N, as Liu 2024 and Li 2025 have it, epsilon bounds the error on every prefix: "
        "smallest probability of a prefix over that factor",
        "source": "Liu 2024 and Li 2025, approximate balance",
        "size": f"{len(support)} prefixes, N={SHORT}, k={k}, D={LANGUAGE.depth}",
        "measured": least / (q * (1 - q) / k**2) ** SHORT,
        "comparison": ">=",
        "bound": 1.0,
        "erratum": LOSS,
        "form": "corrected",
    }
