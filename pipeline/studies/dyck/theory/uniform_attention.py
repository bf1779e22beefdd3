"""DYCK-TH2, TH3: uniform attention and a start token solve Dyck from raw tokens (Wen et al. 2023, Corollary 1, C.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer.theory import layer_norm
from pipeline.studies.dyck import constructions
from pipeline.studies.dyck.constructions import Language, Network, Solver, exact_solvers
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import UniformAttentionCheck

LANGUAGES = (Language(2, 4), Language(3, 8))
DIRECTIONS = 2000  # tried for Lemma 15; the one that keeps its inputs furthest apart is taken
BATCH = 8  # strings at a time
SHOWN = Language(2, 4)
REPEATED = dyck.parse("((", "((((")  # p and p + p: footnote 5
FEATURES, SYMBOLS, NORMAL = "blocks.0.attn.out", "blocks.0.out", "blocks.1.ln"

SOURCE = "Wen et al. 2023, Corollary 1 and appendix C.3"
FOOTNOTE_5 = "Wen et al. 2023, footnote 5"
COUNTS = "dyck-eq-30"


def check(entry: UniformAttentionCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: ``entry.strings`` prefixes of ``entry.length`` tokens for each
    language."""
    checks = [_width_two()]
    for language in LANGUAGES:
        rng = stream(seed, "dyck", theory_id, "direction", language.k, language.depth)
        solver, gap = uniform_solver(language, rng)
        rng = stream(seed, "dyck", theory_id, "strings", language.k, language.depth)
        tokens = dyck.sample_prefixes(rng, entry.strings, entry.length, language.k, language.depth, language.q)
        checks += _solves(solver, tokens, gap)
        if language == SHOWN:
            checks += _counts(solver, tokens[:1])
            checks += _start_token(solver)
    return theory.rows("dyck", theory_id, SOURCE, checks)


# The construction


def uniform_solver(language: Language, rng: np.random.Generator) -> tuple[Solver, float]:
    """Return two layers with uniform attention that read one-hot tokens, and the gap that Lemma 15 finds in the first.

    Values of the first layer are +1 for opens and -1 for closers in one coordinate, and the start token in
    another, so that a query with n tokens up to it sees (depth, 1, 0, ...) / (n + 1). Its normalisation and the
    one-hot token on top tell (token, depth); a ReLU network looks up the one-hot symbol (15), which is what the
    second layer, a solver of Theorem 1 whose logits are 0, reads.
    """
    S, zero = language.symbols, np.zeros
    last = exact_solvers(language, constructions.uniform_scores(language))
    width = last.ensemble.spec.width
    table = dyck.embedding_table("token", language.k, language.depth, width).astype(float)
    W_V = zero((width, width))
    W_V[1 : 2 * language.k + 1, 0] = np.tile([1, -1], language.k)
    W_V[0, 1] = 1
    symbol = np.arange(S)
    token = np.where(symbol > 0, (symbol - 1) // language.depth + 1, dyck.START)
    seen = zero((S, width))
    seen[:, 0], seen[:, 1] = language.depths, 1
    inputs = layer_norm(torch.from_numpy(seen), 0.0).numpy() + table[token]
    network, gap = lookup(inputs, np.eye(S, width), rng)
    network += [(np.eye(width), zero(width))] * (len(last.ensemble.spec.widths) - 3)  # one-hot: no ReLU cuts it
    attention = {"W_Q": zero((width, S)), "W_K": zero((width, S)), "W_V": W_V}
    both = constructions.insert_layer(last.ensemble, 0, attention, network)
    spec = replace(both.spec, inputs=len(table))
    ensemble = replace(both, spec=spec, table=torch.from_numpy(table))
    return replace(last, ensemble=ensemble, reads="tokens"), gap


def lookup(
    inputs: NDArray[np.float64], outputs: NDArray[np.float64], rng: np.random.Generator
) -> tuple[Network, float]:
    """Return a ReLU network with one hidden layer that maps the rows of ``inputs`` to those of ``outputs``
    (Lemma 15), and the smallest gap between projections on its direction.

    Between neighbours on that line the output moves along a ramp that fills the middle half of their gap: around
    every input it is constant, so rounding in front of it is forgotten.
    """
    directions = rng.normal(size=(inputs.shape[1], DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    gaps = np.diff(np.sort(inputs @ directions, axis=0), axis=0).min(0)
    direction = directions[:, gaps.argmax()]
    place = inputs @ direction
    order = np.argsort(place)
    before, after = place[order[:-1]], place[order[1:]]
    quarter = (after - before) / 4
    slopes = np.diff(outputs[order], axis=0) / (2 * quarter[:, None])
    units = np.concatenate([before + quarter, after - quarter])
    read = np.repeat(direction[:, None], len(units), 1)
    return [(read, -units), (np.concatenate([slopes, -slopes]), outputs[order[0]])], float(gaps.max())


# Checks


def _solves(solver: Solver, tokens: NDArray[np.int8], gap: float) -> Iterator[dict[str, Any]]:
    language = solver.language
    k, D = language.k, language.depth
    wrong = closers = 0
    symbol_errors, law_errors, least = [], [], []
    deepest = dyck.nested_probe(k, D)  # random strings need not close a bracket at depth D
    for batch in [deepest, *np.array_split(tokens, max(1, len(tokens) // BATCH))]:
        predictions, recorded = solver.run(batch, [SYMBOLS, NORMAL])
        ids = dyck.with_start(dyck.symbols(batch, D))
        onehot = np.eye(language.symbols, recorded[SYMBOLS].shape[-1])[ids]
        symbol_errors.append(largest(abs(recorded[SYMBOLS][0] - onehot)))
        law_errors.append(largest(abs(predictions[0] - language.law(batch))))
        queries = dyck.is_close(batch) & (dyck.depths(batch) > 0)
        coefficients = recorded[NORMAL][0][:, 1:][queries] @ solver.basis.T
        stacks = unmatched(batch, language)[queries]
        named = np.where(np.isnan(coefficients), ~stacks, coefficients > 0.5 / np.sqrt(D))
        wrong += int((named != stacks).any(1).sum())
        closers += len(stacks)
        least.append(smallest(coefficients[stacks]))
    size = f"k={k}, D={D}, {len(tokens)} strings of length {tokens.shape[1]} and {deepest.shape[1]} nested brackets"
    yield {
        "check": f"symbols-k{k}-d{D}",
        "claim": "16",
        "part": f"first layer, k={k}, D={D}",
        "statement": "The first layer turns tokens into the one-hot of type and depth (15): largest error",
        "size": size,
        "measured": largest(symbol_errors),
        "comparison": "<=",
        "bound": 1e-10,
        "detail": f"smallest gap on the best of {DIRECTIONS} directions {gap:.4f}",
    }
    yield {
        "check": f"stacks-k{k}-d{D}",
        "claim": "16",
        "part": f"decoded stacks, k={k}, D={D}",
        "statement": "What the second layer's attention leaves at a closer names the unmatched opens: wrong stacks",
        "size": f"{size}, {closers} closers to depth 1 or more",
        "measured": float(wrong) if closers else float("nan"),
        "comparison": "<=",
        "bound": 0.0,
    }
    yield {
        "check": f"coefficient-k{k}-d{D}",
        "statement": "The smallest coefficient of an unmatched open is 1/sqrt(D-1)",
        "size": size,
        "measured": smallest(least),
        "comparison": "within",
        "bound": 1 / np.sqrt(D - 1),
        "tolerance": 1e-9,
    }
    yield {
        "check": f"uniform-k{k}-d{D}",
        "statement": "Two layers of uniform attention predict the law of the next token: largest |p - p*|",
        "size": size,
        "measured": largest(law_errors),
        "comparison": "<=",
        "bound": 1e-9,
    }


def unmatched(tokens: NDArray, language: Language) -> NDArray[np.bool_]:
    """Return the opens that are unmatched after each token, (n, T, pairs)."""
    opens, partner = dyck.is_open(tokens), dyck.matching(tokens).astype(np.int64)
    place = np.arange(tokens.shape[1])
    until = np.where(partner >= 0, partner, tokens.shape[1])  # the position at which it is matched
    pair = (dyck.bracket_type(tokens).astype(np.int64) - 1) * language.depth + dyck.pair_depths(tokens) - 1
    alive = opens[:, :, None] & (place >= place[:, None]) & (place < until[:, :, None])  # (n, open, query)
    onehot = np.eye(language.pairs)[np.where(opens, pair, 0)]
    return np.einsum("noq,nop->nqp", alive.astype(float), onehot) > 0


def _width_two() -> dict[str, Any]:
    depths = np.arange(SHOWN.depth + 1.0)
    seen = torch.from_numpy(np.stack([depths, np.ones_like(depths)], 1))
    return {
        "check": "width-two",
        "statement": "In a stream of width 2 the normalisation leaves a sign of depth - 1, so the first layer needs "
        "width 3: different outputs",
        "size": f"depths 0 to {SHOWN.depth}",
        "measured": float(len(np.unique(layer_norm(seen, 0.0).numpy().round(9), axis=0))),
        "comparison": "<=",
        "bound": 3.0,
    }


def _counts(solver: Solver, tokens: NDArray[np.int8]) -> Iterator[dict[str, Any]]:
    """Yield rows on eq. (30), which writes the sum over tokens where softmax gives the mean; the
    normalisation hides it."""
    _, recorded = solver.run(tokens, [FEATURES])
    features_TxM = recorded[FEATURES][0, 0]
    depth = dyck.with_start(dyck.depths(tokens))[0]
    keys = np.arange(1, len(depth) + 1)[:, None]
    for form, scaled in (("printed", features_TxM), ("corrected", features_TxM * keys)):
        yield {
            "check": f"average-{form}",
            "statement": "First-layer attention is (depth, 1, 0, ...), "
            + ("as (30) says" if form == "printed" else "over n + 1")
            + ": largest error",
            "source": f"{SOURCE}, eq. (30)",
            "size": f"length {tokens.shape[1]}",
            "measured": float(np.abs(scaled[:, :2] - np.stack([depth, np.ones(len(depth))], 1)).max()),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 1e-9,
            "erratum": COUNTS,
            "form": form,
        }


def _start_token(solver: Solver) -> Iterator[dict[str, Any]]:
    """Yield rows on TH3: without the start token, a prefix and the same prefix twice look the same."""
    once, twice = REPEATED[:1, : REPEATED.shape[1] // 2], REPEATED[1:]
    laws = [solver.language.law(tokens)[0, -1] for tokens in (once, twice)]
    size = f"p = ((, D={solver.language.depth}"
    yield {
        "check": "repeated-law",
        "statement": "After p and p + p the laws of the next token differ: total variation",
        "source": FOOTNOTE_5,
        "size": size,
        "measured": float(np.abs(laws[0] - laws[1]).sum() / 2),
        "comparison": ">=",
        "bound": 0.5,
    }
    for start, bound in ((False, 0.0), (True, 2 / 15)):
        runs = [solver.run(tokens, [FEATURES], start=start) for tokens in (once, twice)]
        (predictions, one), (predictions_twice, two) = runs
        apart = np.abs(one[FEATURES][0, 0, -1] - two[FEATURES][0, 0, -1]).max()
        predicted = np.abs(predictions[0, 0, -1] - predictions_twice[0, 0, -1]).max()
        yield {
            "check": f"repeated-{'with' if start else 'without'}-start",
            "claim": "" if start else "16",
            "part": "" if start else "no start token",
            "statement": "Uniform attention "
            + ("with a start token tells p from p + p" if start else "without one does not")
            + ": distance of first-layer attention (largest entry)",
            "source": FOOTNOTE_5,
            "size": size,
            "measured": float(apart),
            "comparison": "within",
            "bound": bound,
            "tolerance": 1e-12 if start else 0.0,
            "detail": f"largest difference of predictions {predicted:.3g}",
        }
