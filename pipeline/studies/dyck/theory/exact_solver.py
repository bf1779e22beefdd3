"""DYCK-TH1, TH9: almost any attention solves Dyck exactly (Wen et al. 2023, Theorem 1, Proposition 1, C.1, C.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.stats import causal_distance
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.studies.dyck import constructions
from pipeline.studies.dyck.constructions import Language, Solver, exact_solvers
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import ExactSolverCheck

LANGUAGES = (Language(2, 4), Language(3, 4), Language(2, 8))
SIGMAS = {0.0: 1e-9, 0.5: 1e-9, 1.0: 1e-9, 2.0: 1e-5}  # spread of the logits: accepted error
TIGHT = 1e-9  # claim 15 is about solvers with no more error
VARYING = (1.0, 2.0)  # and about the variation of these
PROBED = LANGUAGES[0]
PROBE = dyck.nested_probe(PROBED.k, PROBED.depth)  # D4
RANDOM_MAPS = causal_distance(PROBE.shape[1])

SOURCE = "Wen et al. 2023, Theorem 1 and appendix C.1"
PROPOSITION_1 = "Wen et al. 2023, Proposition 1"
DEEPER = "Wen et al. 2023, appendix C.2"
RANK, INDEX, OVERLAP = (f"dyck-theorem-1-{name}" for name in ("rank", "index", "overlap"))


def check(entry: ExactSolverCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: ``entry.solvers`` random solvers on strings of ``entry.length``
    tokens for each language and spread of logits, ``entry.maps`` for the variation of their attention on
    D4."""
    checks = [
        *_exact(entry, theory_id, seed),
        *_variation(entry.maps, theory_id, seed),
        *_rank(),
        *_index(entry, theory_id, seed),
        *_overlap(entry, theory_id, seed),
        *_independent_of_attention(entry, theory_id, seed),
    ]
    return theory.rows("dyck", theory_id, SOURCE, checks)


def error(predictions: NDArray[np.float64], law: NDArray[np.float64]) -> float:
    """Return the largest difference between a predicted and the true probability of a next token."""
    return float(np.abs(predictions - law).max())


def closer_accuracy(predictions: NDArray[np.float64], tokens: NDArray) -> float:
    """Return the share of the closers in (..., T) that have the largest prediction (..., T + 1, 2k) among closers; NaN
    if a prediction is."""
    if np.isnan(predictions).any():
        return float("nan")
    best = predictions[..., :-1, 1::2].argmax(-1)
    closers = np.broadcast_to(dyck.is_close(tokens), best.shape)
    return float((best == tokens // 2 - 1)[closers].mean())


def _solvers(language: Language, sigma: float, count: int, theory_id: str, seed: int, *purpose: str) -> Solver:
    rngs = [stream(seed, "dyck", theory_id, *purpose, language.k, language.depth, str(sigma), r) for r in range(count)]
    return exact_solvers(language, constructions.balanced_scores(rngs, language, sigma))


def _strings(language: Language, shape: tuple[int, int], theory_id: str, seed: int) -> NDArray[np.int8]:
    """Return prefixes, one per solver, (R, 1, T)."""
    rng = stream(seed, "dyck", theory_id, "strings", language.k, language.depth)
    return dyck.sample_prefixes(rng, *shape, language.k, language.depth, language.q)[:, None]


def _law(language: Language, tokens: NDArray) -> NDArray[np.float64]:
    return language.law(tokens[:, 0])[:, None]


def _exact(entry: ExactSolverCheck, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    accuracies = []
    for language in LANGUAGES:
        tokens = _strings(language, (entry.solvers, entry.length), theory_id, seed)
        law = _law(language, tokens)
        for sigma, bound in SIGMAS.items():
            solver = _solvers(language, sigma, entry.solvers, theory_id, seed)
            predictions, _ = solver.run(tokens)
            accuracies.append(closer_accuracy(predictions, tokens))
            yield {
                "check": f"exact-k{language.k}-d{language.depth}-sigma{sigma:g}",
                "claim": "15" if bound <= TIGHT else "",
                "part": f"k={language.k}, D={language.depth}, sigma={sigma:g}" if bound <= TIGHT else "",
                "statement": "Balanced attention, else random with logits of spread sigma, predicts the law of the "
                "next token after every prefix: largest |p - p*|",
                "size": f"k={language.k}, D={language.depth}, sigma={sigma:g}, "
                f"{entry.solvers} solvers, length {entry.length}",
                "measured": error(predictions, law),
                "comparison": "<=",
                "bound": bound,
                "detail": f"g has {len(solver.ensemble.spec.widths) - 1} layers of width at most "
                f"{max(solver.ensemble.spec.widths)}",
            }
    yield {
        "check": "exact-accuracy",
        "statement": "Every one of these solvers predicts every closing bracket",
        "size": f"{len(accuracies) * entry.solvers} solvers, length {entry.length}",
        "measured": smallest(accuracies),
        "comparison": ">=",
        "bound": 1.0,
    }


def _variation(maps: int, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on F11: attention that varies below, at and above random attention, with the same predictions."""
    n = PROBE.shape[1]
    rules = {0.0: ("<=", 0.0), 0.5: ("<=", RANDOM_MAPS), 1.0: (">=", RANDOM_MAPS), 2.0: (">=", 2 * RANDOM_MAPS)}
    errors = []
    for sigma, (comparison, bound) in rules.items():
        solver = _solvers(PROBED, sigma, maps, theory_id, seed, "maps")
        predictions, recorded = solver.run(PROBE, ["blocks.0.attn.pattern"])
        errors.append(error(predictions, PROBED.law(PROBE)))
        flat = recorded["blocks.0.attn.pattern"][:, 0, 0, 1:, 1:].reshape(maps, -1)
        measured, standard_error = _mean_distance(flat)
        yield {
            "check": f"exact-variation-sigma{sigma:g}",
            "claim": "15" if sigma in VARYING else "",
            "part": f"variation, sigma={sigma:g}" if sigma in VARYING else "",
            "group": "exact solvers",
            "x": sigma,
            "statement": f"Attention of exact solvers with logits of spread {sigma:g} varies "
            + ("not at all" if not sigma else f"{'less' if comparison == '<=' else 'more'} than ")
            + ("" if not sigma else "random maps" if bound == RANDOM_MAPS else "twice as much as random maps"),
            "size": f"probe of {n} tokens without its start token, {maps} solvers",
            "measured": measured,
            "comparison": comparison,
            "bound": bound,
            "detail": f"standard error of the measurement {standard_error:.4f}",
        }
    yield {
        "check": "exact-variation-error",
        "statement": "The solvers whose attention is compared all predict the law: largest |p - p*|",
        "size": f"probe of {n} tokens, {len(rules) * maps} solvers",
        "measured": largest(errors),
        "comparison": "<=",
        "bound": SIGMAS[2.0],
    }


def _mean_distance(maps_RxC: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean of |A - B|^2 over pairs of maps, twice their variance, and to first order its standard error.

    Maps are taken from the first one, so that maps that agree are at a distance of exactly 0.
    """
    shifted = maps_RxC - maps_RxC[0]
    spread = ((shifted - shifted.mean(0)) ** 2).sum(-1).std(ddof=1)
    return float(2 * shifted.var(0, ddof=1).sum()), float(2 * spread / np.sqrt(len(maps_RxC)))


def _rank() -> Iterator[dict[str, Any]]:
    """Yield rows on the rank of the embeddings: the proof inverts the matrix of all of them, which the
    condition of the theorem does not allow."""
    k, D, S = PROBED.k, PROBED.depth, PROBED.symbols
    for kind, equation in (("pair", "15"), ("sum", "16"), ("angle", "17")):
        table = dyck.embedding_table(kind, k, D, S).astype(float)
        groups = [[0, *PROBED.opens[d::D], *PROBED.closes[d::D]] for d in range(D)]
        independent = all(np.linalg.matrix_rank(table[group]) == len(group) for group in groups)
        printed = kind != "pair"
        yield {
            "check": f"rank-{kind}",
            "statement": f"Embedding ({equation}) "
            + (
                "meets the condition as printed, independence at each depth, and yet its columns are dependent, "
                "so that (24) has no solution: missing rank"
                if printed
                else "has full column rank, which is what (24) needs: missing rank"
            ),
            "size": f"k={k}, D={D}, {S} embeddings",
            "measured": float(S - np.linalg.matrix_rank(table)) if independent else float("nan"),
            "comparison": "beyond" if printed else "within",
            "bound": 0.0,
            "tolerance": 0.0,
            "erratum": RANK,
            "form": "printed" if printed else "corrected",
        }


def printed_index(language: Language) -> NDArray[np.int64]:
    """Return the index tD + d of (23), by pair."""
    k, D = language.k, language.depth
    return (np.arange(1, k + 1)[:, None] * D + np.arange(1, D + 1)).ravel()


def _index(entry: ExactSolverCheck, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on the index of (23): U' has kD rows, and tD + d runs to kD + D, so what is stored for the
    last type is never read."""
    solver = _solvers(PROBED, 0.0, 1, theory_id, seed)
    tokens = _strings(PROBED, (1, entry.length), theory_id, seed)
    k, D, pairs = PROBED.k, PROBED.depth, PROBED.pairs
    index = printed_index(PROBED)
    params = {name: value.clone() for name, value in solver.ensemble.params.items()}
    for unread in np.flatnonzero(index > pairs):
        params["blocks.0.mlp.0.W"][:, :, [unread, pairs + unread]] = 0
    printed = replace(solver, ensemble=replace(solver.ensemble, params=params))
    for form, which in (("printed", printed), ("corrected", solver)):
        yield {
            "check": f"index-{form}",
            "statement": "With the index tD + d of (23), U' has no row for the pairs of the last type, and "
            "the prediction is wrong: largest |p - p*|"
            if form == "printed"
            else "With the index (t-1)D + d every pair has its row: largest |p - p*|",
            "source": "Wen et al. 2023, appendix C.1, eq. (23) and U'",
            "size": f"k={k}, D={D}, length {entry.length}",
            "measured": error(which.run(tokens)[0], _law(PROBED, tokens)),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": SIGMAS[0.0],
            "detail": f"tD + d runs over {index.min()}..{index.max()}, of {pairs} rows",
            "erratum": INDEX,
            "form": form,
        }


def printed_basis(language: Language, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a basis that is orthonormal and orthogonal to 1 (22), in the space of the embeddings, which is
    all that Lemma 16 promises."""
    S = language.symbols
    free = rng.normal(size=(S, language.pairs))
    basis = np.zeros((language.pairs, S + language.pairs + 1))
    basis[:, :S] = np.linalg.qr(free - free.mean(0))[0].T
    return basis


def _overlap(entry: ExactSolverCheck, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on U'(LN(a) + X), which is said to be 0 for absent pairs; but it holds U'e, and Lemma 16
    does not make that 0."""
    scores = constructions.balanced_scores([stream(seed, "dyck", theory_id, "overlap")], PROBED, 0.0)
    right = exact_solvers(PROBED, scores)
    basis = printed_basis(PROBED, stream(seed, "dyck", theory_id, "basis"))
    tokens = _strings(PROBED, (1, entry.length), theory_id, seed)
    for form, solver in (("printed", exact_solvers(PROBED, scores, basis=basis)), ("corrected", right)):
        predictions, recorded = solver.run(tokens, ["blocks.0.ln"])
        ids = dyck.with_start(dyck.symbols(tokens[:, 0], PROBED.depth))
        at_zero = PROBED.depths[ids[0]] == 0
        stream_NxM = (recorded["blocks.0.ln"][0, 0] + solver.ensemble.table.numpy()[ids[0]])[at_zero]
        yield {
            "check": f"overlap-{form}",
            "statement": "With directions that are only orthogonal to 1 (22), U'(LN(a) + X) is not 0 where "
            "there is no unmatched bracket: largest entry at depth 0"
            if form == "printed"
            else "With directions that are orthogonal to the embeddings too, it is 0: largest entry at depth 0",
            "source": "Wen et al. 2023, appendix C.1, construction of g",
            "size": f"k={PROBED.k}, D={PROBED.depth}, length {entry.length}",
            "measured": float(np.abs(stream_NxM @ solver.basis.T).max()),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": SIGMAS[0.0],
            "detail": f"the largest |p - p*| is then {error(predictions, _law(PROBED, tokens)):.3g}",
            "erratum": OVERLAP,
            "form": form,
        }


def _independent_of_attention(entry: ExactSolverCheck, theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on TH9: a head of zeros, and layers that pass everything on."""
    solver = _solvers(PROBED, 1.0, entry.solvers, theory_id, seed)
    tokens = _strings(PROBED, (entry.solvers, entry.length), theory_id, seed)
    size = f"{entry.solvers} solvers with sigma=1, length {entry.length}"
    params = solver.ensemble.params | {"head.W": solver.ensemble.params["head.W"] * 0}
    silent, _ = replace(solver, ensemble=replace(solver.ensemble, params=params)).run(tokens)
    yield {
        "check": "zero-head",
        "statement": "With a head of zeros the output does not depend on attention: largest |output|",
        "source": PROPOSITION_1,
        "size": size,
        "measured": float(np.abs(silent).max()),
        "comparison": "<=",
        "bound": 0.0,
    }
    deeper = replace(solver, ensemble=_with_identity(solver))
    predictions, recorded = deeper.run(tokens, ["blocks.0.out", "blocks.1.out"])
    yield {
        "check": "identity-layer",
        "statement": "A further layer with values 0 and an identity as g passes every bit on: "
        "share of activations that differ before and after it",
        "source": DEEPER,
        "size": size,
        "measured": float((recorded["blocks.0.out"] != recorded["blocks.1.out"]).mean()),
        "comparison": "<=",
        "bound": 0.0,
        "detail": f"the deeper model predicts the law: largest |p - p*| {error(predictions, _law(PROBED, tokens)):.3g}",
    }


def _with_identity(solver: Solver) -> Any:
    """Return the solver's models with an identity as one more layer: x = ReLU(x) - ReLU(-x), and what is not
    negative passes further ReLUs as it is."""
    spec = solver.ensemble.spec
    m, eye = spec.width, np.eye(spec.width)
    attention = {"W_Q": np.zeros((m, m)), "W_K": np.zeros((m, m)), "W_V": np.zeros((m, m))}
    attention = {name: value[:, : spec.keys] if name != "W_V" else value for name, value in attention.items()}
    both = np.concatenate([eye, -eye], 1)
    between = [(np.eye(2 * m), np.zeros(2 * m))] * (len(spec.widths) - 3)
    network = [(both, np.zeros(2 * m)), *between, (both.T, np.zeros(m))]
    return constructions.insert_layer(solver.ensemble, spec.layers, attention, network)
