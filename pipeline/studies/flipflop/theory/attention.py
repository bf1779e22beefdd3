"""Propositions 4 and 5: soft attention spreads, hard attention drifts (Liu 2024, sections 3.5.7.2 and 3.5.7.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.constructions import CONTROL, ERRATUM, OWN, SOURCE, judged
from pipeline.studies.flipflop.exact import recognisers as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

PROPOSITION_4, PROPOSITION_5 = SOURCE.format(".7.2, Proposition 4"), SOURCE.format(".7.3, Proposition 5")
TRANSPOSES = {"source": SOURCE.format(".7.3, equations 3.8 and 3.9"), "erratum": ERRATUM.format("equation-3.8")}
FAR = 1e12  # longer than the first length at which any draw fails: there the sign of W_Qp'W_Kp decides


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on Propositions 4 and 5."""
    rng = stream(seed, entry.study, key)
    made = [
        *judged("Proposition 4", _dilution(entry, rng)),
        *judged("Proposition 5", [*_scores(rng), *_lengths(entry, rng), *_enough(entry, rng)]),
    ]
    return theory.rows(entry.study, key, PROPOSITION_5, made)


def _dilution(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    excess, draws = [], 20 * entry.draws
    for _ in range(draws):
        dim, length, sigma = int(rng.integers(1, 9)), int(rng.integers(2, 201)), float(rng.uniform(0, 3))
        product = rng.normal(size=(dim, dim))
        product *= sigma / np.linalg.norm(product, 2)
        v = rng.normal(size=(length, dim))
        v *= rng.uniform(0, 1, (length, 1)) / np.linalg.norm(v, axis=1, keepdims=True)
        excess.append(exact.largest_weight(product, v) - exact.most_weight(sigma, length))
    yield row(
        "prop-4.bound",
        "The largest weight is at most exp(2σ) over exp(2σ) + T - 1: largest excess",
        f"{draws} draws, d up to 8, T up to 200, σ up to 3",
        largest(excess),
        "<=",
        1e-12,
        source=PROPOSITION_4,
    )
    loose = [exact.largest_weight(*tight(sigma, 200, 4)) - exact.most_weight(0.9 * sigma, 200) for sigma in (1.0, 3.0)]
    yield row(
        "prop-4.less",
        "With nine tenths of σ in its place the bound is broken: smaller excess of two",
        "T = 200",
        min(loose) if not np.isnan(loose).any() else math.nan,
        ">=",
        1e-6,
        source=CONTROL,
    )
    gaps = [
        abs(exact.largest_weight(*tight(sigma, length, 5)) - exact.most_weight(sigma, length))
        for sigma in (0.5, 1.0, 2.0, 3.0)
        for length in (2, *entry.lengths)
    ]
    yield row(
        "prop-4.tight",
        "It is attained: W_K'W_Q = -σI, one vector -u among vectors u: largest distance",
        f"σ up to 3, T up to {entry.lengths[-1]}",
        largest(gaps),
        "<=",
        1e-12,
        source=OWN,
        detail=f"{exact.most_weight(3, 512):.5f} at σ = 3, T = 512",
    )
    halves = [exact.most_weight(sigma, 1 + math.exp(2 * sigma)) for sigma in (1.0, 2.0, 3.0)]
    yield row(
        "prop-4.half",
        "At T = 1 + exp(2σ) the bound is one half: largest distance",
        "T = " + ", ".join(f"{1 + math.exp(2 * sigma):.4g}" for sigma in (1.0, 2.0, 3.0)),
        largest(np.abs(np.array(halves) - 0.5)),
        "<=",
        1e-12,
        source=OWN,
    )
    many = [exact.most_weight(sigma, 10 * math.exp(2 * sigma)) for sigma in np.linspace(0.5, 8, 16)]
    yield row(
        "prop-4.omega",
        "For T = 10 exp(2σ) the largest weight stays away from 1 whatever σ is: largest bound",
        "σ from 0.5 to 8",
        largest(many),
        "<=",
        0.13,
        source=PROPOSITION_4,
    )


def tight(sigma: float, length: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return W_K'W_Q and vectors that attain the bound of Proposition 4."""
    v = np.zeros((length, dim))
    v[:, 0] = 1
    v[0] *= -1
    return -sigma * np.eye(dim), v


def drawn(rng: np.random.Generator, dim: int = 5, width: int = 4, C: float = 64) -> tuple[np.ndarray, ...]:
    """Return W_Q, W_K (k, D) and embeddings (3, D - 1) of the model of Proposition 5."""
    return rng.normal(size=(width, dim)), rng.normal(size=(width, dim)), rng.normal(size=(3, dim - 1))


def direct(Q: np.ndarray, K: np.ndarray, e: np.ndarray, symbols_T: np.ndarray, C: float) -> np.ndarray:
    """Return (T,) the scores of the last query, (W_Q v_T)'(W_K v_j), as equation 3.7 defines them."""
    v = np.concatenate([e[symbols_T], np.arange(1, len(symbols_T) + 1)[:, None] / C], 1)
    scores: np.ndarray = (v @ K.T) @ (Q @ v[-1])
    return scores


def _scores(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    C, off, one, two, printed = 64.0, [], [], [], []
    for length in (5, 40, 333):
        for _ in range(20):
            Q, K, e = drawn(rng)
            known = exact.Linear.of(Q, K, e, C)
            first = np.zeros(length, int)
            first[0] = 1
            second = first.copy()
            second[-2] = 2
            at = np.arange(1, length + 1)
            for symbols in (first, second):
                off.append(np.abs(direct(Q, K, e, symbols, C) - known.score(length, at, symbols)))
            s, r = direct(Q, K, e, first, C), direct(Q, K, e, second, C)
            margins = known.margins(length)
            one.append(abs(s[0] - s[-1] - margins[0]))
            two.append(abs(r[-2] - r[0] - margins[1]))
            # As printed, without transposes, where the shapes allow it at all: k = d - 1.
            Q_e, K_e, Q_p, K_p = Q[:, :-1], K[:, :-1], Q[:, -1], K[:, -1]
            wrong = e[0] @ Q_e @ K_e @ e[1] + e[0] @ Q_e.T @ K_p / C + e[1] @ K_e @ Q_p / C * length
            wrong += Q_p @ K_p / C**2 * length
            printed.append(abs(wrong - s[0]))
    size = "60 draws of weights, T = 5, 40, 333"
    yield row(
        "equation-3.8.corrected",
        "Scores are A + b j/C + g i/C + a ij/C² with all transposes: largest error",
        size,
        largest(*off),
        "<=",
        1e-8,
        form="corrected",
        part="equation 3.8",
        **TRANSPOSES,
    )
    yield row(
        "equation-3.8.printed",
        "As printed, without W_Qe' and W_Ke' transposed, the score of the first write is "
        "another one, even where k = d - 1 lets the product exist: largest error",
        size,
        largest(printed),
        ">=",
        1e-3,
        form="printed",
        **TRANSPOSES,
    )
    yield row(
        "prop-5.first",
        "D₁(T) is the lead of the write of [1, 0, ..., 0] over the last token: largest error",
        size,
        largest(one),
        "<=",
        1e-8,
    )
    yield row(
        "prop-5.second",
        "D₂(T) is the lead of the last write of [1, 0, ..., 0, 2, 0] over the first: largest error",
        size,
        largest(two),
        "<=",
        1e-8,
    )
    seen = np.array([1] + [0] * 39)
    yield row(
        "prop-5.words",
        "In case 1 the last token, 'the last write token' in print, is a write: 1 if it is",
        "[1, 0, ..., 0]",
        float(seen[-1] != language.NOOP),
        "<=",
        0,
        form="printed",
        source=SOURCE.format(".7.3, before equation 3.13"),
        erratum=ERRATUM.format("proposition-5-words"),
    )


def _lengths(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    draws = 2000 if entry.draws > 8 else 100
    failures: dict[int, list[float]] = {1: [], 2: []}
    confirmed = []
    for _ in range(draws):
        Q, K, e = drawn(rng)
        known = exact.Linear.of(Q, K, e, 64.0)
        case = 1 if known.a > 0 else 2
        T = known.first_failure(case)
        failures[case].append(T)
        if np.isfinite(T):
            margins = known.margins(np.array([T - 1, T, FAR]))[case - 1]
            confirmed.append(margins[1] < 0 and margins[2] < 0 and (T <= 4 or margins[0] >= 0))
    for case, sign, what in ((1, "above", "itself"), (2, "below", "the old write")):
        firsts = np.array(failures[case])
        yield row(
            f"prop-5.case-{case}",
            f"With W_Qp'W_Kp {sign} 0 the last query looks at {what} from some length on: draws for which it does not",
            f"{len(firsts)} of {draws} draws",
            exceptions(~np.isfinite(firsts), firsts),
            "<=",
            0,
            detail=f"first at T = {firsts.min():.0f} to {firsts.max():.0f}, half of them by {np.median(firsts):.0f}"
            if len(firsts)
            else "",
        )
    yield row(
        "prop-5.confirmed",
        "The first length found is the first one: draws for which the closed form says otherwise",
        f"{draws} draws",
        draws - exceptions(confirmed),
        "<=",
        0,
    )


def _enough(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield that W_Qp'W_Kp = 0 can be enough: scores j/C + lead i/C for writes."""
    length = max(100, 6 * entry.lengths[-1]) if entry.draws > 8 else 200
    words = {"random": language.sample_symbols(rng, 3, length, np.array([0.5, 0.98, 0.999]))}
    words["families"] = np.zeros((2, length), np.uint8)
    words["families"][:, 0] = 1
    words["families"][1, -2] = 2
    for name, symbols in words.items():
        last = language.last_symbol(symbols) + 1
        for lead, comparison, bound in ((2.0, "<=", 0), (1.0, "<=", 0), (0.9, ">=", 1)):
            known = exact.recency(64.0, lead)
            keys = np.stack([known.attended(row) for row in symbols])
            noop = symbols == language.NOOP
            predicate = "is enough" if lead >= 1 else "is not enough"
            yield row(
                f"prop-5.enough.{name}-{lead:g}",
                f"With W_Qp'W_Kp = 0 a lead of {lead:g} of writes over no-ops, where "
                f"positions weigh 1, {predicate}: no-ops that look elsewhere than at the last write",
                f"{len(symbols)} inputs of length {length}",
                exceptions((keys != last)[noop], known.g),
                comparison,
                bound,
                source=OWN if lead >= 1 else CONTROL,
                part="Proposition 5, converse",
            )
    for a in (0.05, -0.05):
        known, case = exact.recency(64.0, a=a), 1 if a > 0 else 2
        predicted = known.first_failure(case)
        first = np.inf
        for T in range(4, length + 1):
            symbols = np.zeros(T, int)
            symbols[0] = 1
            if case == 2:
                symbols[-2] = 2
            scores = known.score(T, np.arange(1, T + 1), symbols)
            right, rival = (scores[0], scores[-1]) if case == 1 else (scores[-2], scores[0])
            if right < rival:
                first = T
                break
        yield row(
            f"prop-5.spoilt-{'plus' if a > 0 else 'minus'}",
            f"The same with W_Qp'W_Kp = {a:g}: first length that fails by its scores, which the closed form foretells",
            f"up to T = {length}",
            float(first) if first < np.inf else -1.0,
            "within",
            predicted if predicted <= length else -1.0,
            tolerance=0.0,
            source=OWN,
        )
