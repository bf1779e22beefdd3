"""DYCK-TH4: without balance, inserted pairs drown the stack (Wen et al. 2023, Theorem 1, necessity, eqs 12 to 14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.studies.dyck import constructions
from pipeline.studies.dyck.constructions import Language, Scores, exact_solvers
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.dyck.params import PumpingCheck

LANGUAGE = Language(2, 4)
SIGMA = 0.5
PUMPED = (0.0, 0.2, 1.0)  # delta: spread of the noise on the logits of closers
BROKEN = (0.0, 0.02, 0.05, 0.1, 0.2)
PREFIX, PAIR, SUFFIXES = "(", "()", (")[[[]", ")[([]")  # these differ in the last unmatched open
RATIO = (256, 1024)
ASYMPTOTE = (3.0, 4.2)  # h falls like 1/nu, so by 4 between these in the limit
SLOWEST = 2.0  # small noise is not in that limit yet
UNCHANGED = 1e-9
FEWER = 1e-9  # a share that is smaller by this is smaller: one closer is thousands of times as much
BATCH = 4  # strings at a time
NORMAL = "blocks.0.ln"
PAIRS, LENGTH = ("inserted pairs, delta = ", "length, delta = ")  # how groups of a figure begin: a line for each delta

SOURCE = "Wen et al. 2023, Theorem 1 (necessity), eqs (12) to (14)"
QUERY = "dyck-necessity-query"


def check(entry: PumpingCheck, theory_id: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory`: ``entry.solvers`` solvers, broken by noise, on prefixes with
    ``entry.pairs`` inserted pairs, and on ``entry.strings`` strings cut to each of ``entry.lengths``."""
    rngs = [stream(seed, "dyck", theory_id, "scores", r) for r in range(entry.solvers)]
    scores = constructions.balanced_scores(rngs, LANGUAGE, SIGMA)
    noise = np.stack([rng.normal(size=(LANGUAGE.pairs, LANGUAGE.symbols)) for rng in rngs])
    tokens = dyck.sample_prefixes(
        stream(seed, "dyck", theory_id, "strings"),
        entry.strings,
        max(entry.lengths),
        LANGUAGE.k,
        LANGUAGE.depth,
        LANGUAGE.q,
    )
    checks = [
        *_pump(scores, noise, entry.pairs),
        *_length_curves(scores, noise, tokens, entry.lengths),
        *_log_ratio(entry.solvers, tokens, theory_id, seed),
    ]
    return theory.rows("dyck", theory_id, SOURCE, checks)


def perturbed(scores: Scores, noise: NDArray[np.float64], delta: float) -> Scores:
    """Return ``scores`` with ``delta`` times ``noise`` (R, pairs, symbols) on the logits of closers; the
    values stay as they were."""
    table = scores.table.copy()
    table[:, LANGUAGE.closes] += delta * noise
    return replace(scores, table=table)


# Pumping


def pumped(pairs: int) -> NDArray[np.int8]:
    """Return the two prefixes with this many inserted pairs, (2, T)."""
    return dyck.parse(*(PREFIX + PAIR * pairs + suffix for suffix in SUFFIXES))


def separation(scores: Scores, pairs: int) -> NDArray[np.float64]:
    """Return h, (R,): how far apart the two prefixes are in the normalised attention output at their last token."""
    distances = []
    for replica in range(len(scores.table)):  # one at a time: a map has 4 million entries
        one = Scores(scores.table[[replica]], scores.a[[replica]])
        _, recorded = exact_solvers(LANGUAGE, one).run(pumped(pairs), [NORMAL])
        first, second = recorded[NORMAL][0, :, -1]
        distances.append(np.linalg.norm(first - second))
    return np.array(distances)


def ceiling(scores: Scores, pairs: int) -> NDArray[np.float64]:
    """Return what Lemma 1 allows h, (R,): 4 / (R - 1), R = |inserted pairs| / |the rest|, and never more than 2."""
    rest, inserted = [], []
    for once, twice in zip(pumped(1), pumped(2), strict=True):
        one, two = (_output(scores, tokens[None]) for tokens in (once[once > 0], twice))
        inserted.append(two - one)  # of one pair
        rest.append(one - inserted[-1])
    signal = pairs * np.linalg.norm(inserted[0], axis=-1)
    ratio = signal / np.maximum(*(np.linalg.norm(part, axis=-1) for part in rest))
    return np.where(ratio <= 3, 2.0, 4 / np.maximum(ratio - 1, 1))  # NaN where the ratio is


def _output(scores: Scores, tokens: NDArray) -> NDArray[np.float64]:
    """Return the coefficients of the attention output of (9), (R, pairs), before softmax divides, at the last
    of (1, T) tokens."""
    symbols = dyck.symbols(tokens, LANGUAGE.depth)[0]
    weight = np.exp(scores.table[:, symbols, symbols[-1]])
    value = np.zeros((len(weight), LANGUAGE.symbols, LANGUAGE.pairs))
    value[:, LANGUAGE.opens] = np.eye(LANGUAGE.pairs)
    value[:, LANGUAGE.closes] = -np.exp(scores.a)[..., None] * np.eye(LANGUAGE.pairs)
    return np.einsum("rt,rtp->rp", weight, value[:, symbols])


def _pump(scores: Scores, noise: NDArray[np.float64], counts: list[int]) -> Iterator[dict[str, Any]]:
    size = f"k={LANGUAGE.k}, D={LANGUAGE.depth}, sigma={SIGMA:g}, {len(scores.table)} solvers"
    for delta in PUMPED:
        broken = perturbed(scores, noise, delta)
        h = {pairs: separation(broken, pairs) for pairs in counts}
        allowed = {pairs: ceiling(broken, pairs) for pairs in counts}
        for pairs in counts:
            rule: dict[str, Any] = {
                "statement": "Out of balance, two prefixes that differ in the last unmatched open are no further apart "
                "than Lemma 1 allows, given what the inserted pairs leave: mean distance h after the normalisation",
                "comparison": "<=",
                "bound": float(allowed[pairs].mean()),
            }
            if delta == 0:
                other = counts[0] if pairs != counts[0] else counts[-1]
                rule = {
                    "statement": "In balance, two prefixes that differ in the last unmatched open stay as far apart as "
                    f"with {other} inserted pairs: mean distance h after the normalisation",
                    "comparison": "within",
                    "bound": float(h[other].mean()),
                    "tolerance": UNCHANGED,
                }
            yield rule | {
                "check": f"pumped-delta{delta:g}-pairs{pairs}",
                "group": f"{PAIRS}{delta:g}",
                "x": float(pairs),
                "size": f"{size}, delta={delta:g}, {pairs} pairs",
                "measured": float(h[pairs].mean()),
                "detail": f"{h[pairs].min():.4g} to {h[pairs].max():.4g}"
                + ("; no bound yet: unit vectors are never further apart" if rule["bound"] == 2 else ""),
            }
        if delta == 0:
            change = largest(*(abs(each / h[counts[0]] - 1) for each in h.values()))
            yield {
                "check": "pumped-balanced",
                "claim": "17",
                "part": "balanced",
                "statement": "In balance, inserted pairs change nothing: largest relative change of h",
                "size": f"{size}, {counts[0]} to {counts[-1]} pairs",
                "measured": change,
                "comparison": "<=",
                "bound": UNCHANGED,
            }
        elif set(RATIO) <= h.keys():
            ratio = h[RATIO[0]] / h[RATIO[1]]
            yield {
                "check": f"pumped-decay-delta{delta:g}",
                "claim": "17" if delta == max(PUMPED) else "",
                "part": f"decay, delta={delta:g}" if delta == max(PUMPED) else "",
                "statement": f"Out of balance, h falls like one over the number of pairs: h({RATIO[0]})/h({RATIO[1]}), "
                "median over solvers",
                "size": f"{size}, delta={delta:g}",
                "measured": float(np.median(ratio)),
                "comparison": "within" if delta == max(PUMPED) else ">=",
                "bound": float(np.mean(ASYMPTOTE)) if delta == max(PUMPED) else SLOWEST,
                "tolerance": (ASYMPTOTE[1] - ASYMPTOTE[0]) / 2 if delta == max(PUMPED) else None,
                "detail": f"{ratio.min():.3f} to {ratio.max():.3f}",
            }


# Length


def _length_curves(
    scores: Scores, noise: NDArray[np.float64], tokens: NDArray[np.int8], lengths: list[int]
) -> Iterator[dict[str, Any]]:
    accuracy = {delta: _accuracy(perturbed(scores, noise, delta), tokens, lengths) for delta in BROKEN}
    size = f"{len(scores.table)} solvers, {len(tokens)} strings"
    for smaller, delta in zip((None, *BROKEN), BROKEN, strict=False):
        for n in lengths:
            few, fewer = ("fewer", FEWER) if n == max(lengths) else ("no more", 0.0)  # short strings may not tell
            # Long strings tell how much accuracy the noise costs.
            judged = smaller is not None and n == max(lengths)
            yield {
                "check": f"broken-delta{delta:g}-length{n}",
                "claim": "17" if judged else "",
                "part": f"acc_close at {n}, delta={delta:g}" if judged else "",
                "group": f"{LENGTH}{delta:g}",
                "x": float(n),
                "statement": "In balance, every closer is predicted at every length: share"
                if smaller is None
                else f"With more noise {few} closers are predicted than at delta={smaller:g}: share",
                "size": f"{size}, delta={delta:g}, length {n}",
                "measured": accuracy[delta][n],
                "comparison": ">=" if smaller is None else "<=",
                "bound": 1.0 if smaller is None else accuracy[smaller][n] - fewer,
            }
        if smaller is not None:
            steps = [accuracy[delta][n] for n in sorted(lengths)]
            yield {
                "check": f"broken-falls-delta{delta:g}",
                "statement": "The longer the strings, the fewer closers are predicted: largest change between lengths",
                "size": f"{size}, delta={delta:g}, lengths {', '.join(map(str, sorted(lengths)))}",
                "measured": float(np.diff(steps).max()),
                "comparison": "<=",
                "bound": -FEWER,
            }


def _accuracy(scores: Scores, tokens: NDArray[np.int8], lengths: list[int]) -> dict[int, float]:
    """Return acc_close by length; a prefix of a prefix is one of its own length, so one pass serves all lengths."""
    solver = exact_solvers(LANGUAGE, scores)
    hits = []
    for batch in np.array_split(tokens, max(1, len(tokens) // BATCH)):
        predictions, _ = solver.run(batch)
        best = predictions[..., :-1, 1::2]
        hits.append(np.where(np.isnan(best).any(-1), np.nan, best.argmax(-1) == batch // 2 - 1))
    right, closers = np.concatenate(hits, 1), dyck.is_close(tokens)
    return {n: float(right[:, :, :n][:, closers[:, :n]].mean()) for n in lengths}


# The end of the proof


def _log_ratio(count: int, tokens: NDArray[np.int8], theory_id: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield rows on solvers whose queries at opens attend to closers as they like, because (11) speaks only
    of queries that are closers."""
    rngs = [stream(seed, "dyck", theory_id, "free", r) for r in range(count)]
    scores = constructions.balanced_scores(rngs, LANGUAGE, SIGMA, free=True)
    solver = exact_solvers(LANGUAGE, scores)
    W_V = solver.ensemble.params["blocks.0.attn.W_V"].numpy()
    norms = np.linalg.norm(W_V - W_V.mean(-1, keepdims=True), axis=-1)
    right = np.log(norms[:, LANGUAGE.closes] / norms[:, LANGUAGE.opens])
    left = scores.table[:, LANGUAGE.opens] - scores.table[:, LANGUAGE.closes]
    size = f"{count} solvers, sigma={SIGMA:g}"
    for form, queries, token in (
        ("printed", LANGUAGE.opens, "opens, as printed (2j+1, d)"),
        ("corrected", LANGUAGE.closes, "closers (2j, d)"),
    ):
        yield {
            "check": f"log-ratio-{form}",
            "statement": "The difference of logits of a pair is the log-ratio of its values for queries that are "
            f"{token}: largest difference",
            "source": "Wen et al. 2023, section 3.1, last equation of the proof of necessity",
            "size": size,
            "measured": float(np.abs(left[:, :, queries] - right[..., None]).max()),
            "comparison": "beyond" if form == "printed" else "within",
            "bound": 0.0,
            "tolerance": 1e-9,
            "erratum": QUERY,
            "form": form,
        }
    predictions, _ = solver.run(tokens[:1])
    yield {
        "check": "log-ratio-solvers",
        "statement": "And the solvers that differ there predict the law of the language: largest |p - p*|",
        "size": f"{size}, length {tokens.shape[1]}",
        "measured": float(np.abs(predictions - LANGUAGE.law(tokens[:1])).max()),
        "comparison": "<=",
        "bound": 1e-9,
        "erratum": QUERY,
        "form": "corrected",
    }
