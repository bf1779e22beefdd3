"""Least losses on documents of latent Dirichlet allocation whose shares of topics are known (chapter 5.10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import integrate, special

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import judged, row
from pipeline.studies.topic.constructions import OWN_CHECK, masking_of
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.topic.params import Floors

HERE = OWN_CHECK


def check(entry: Floors, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on floors of losses, by closed forms and by samples."""
    rng = stream(seed, entry.study, key)
    return theory.rows(entry.study, key, HERE, judged("1", "floors", _floors(entry, rng)))


def entropy(topics: int, alpha: float) -> float:
    """Return E[H(θ)] in nats for θ ~ Dirichlet(alpha, ..., alpha) over ``topics``."""
    return float(special.digamma(topics * alpha + 1) - special.digamma(alpha + 1))


def against_share(topics: int, alpha: float, what: Callable[[float], float]) -> float:
    """Return the expectation of ``what`` of one share, which is Beta(alpha, (topics - 1) alpha).

    Integrated in the logarithms of the share and of what is left of it, as its density has poles at 0 and 1. NaN if
    ``what`` is not defined.
    """
    if math.isnan(what(0.5)):
        return math.nan
    rest = (topics - 1) * alpha
    scale = special.beta(alpha, rest)

    def low(t: float) -> float:
        share = math.exp(t)
        return what(share) * share**alpha * (1 - share) ** (rest - 1)

    def high(t: float) -> float:
        left = math.exp(t)
        return what(1 - left) * (1 - left) ** (alpha - 1) * left**rest

    settings: dict[str, Any] = {"limit": 500, "epsabs": 1e-13, "epsrel": 1e-12}
    half = math.log(0.5)
    parts = integrate.quad(low, -400, half, **settings)[0] + integrate.quad(high, -60, half, **settings)[0]
    return float(parts / scale)


def _floors(entry: Floors, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    topics, v, alpha = entry.topics, entry.v, entry.alpha
    masking = masking_of(entry)
    at = f"T = {topics}, v = {v}, Dirichlet({alpha:g})"
    theta = rng.dirichlet(np.full(topics, alpha), entry.documents)
    sampled = f"{at}, {entry.documents} documents"

    def plain(share: float) -> float:
        return -share * math.log(share) if share > 0 else 0.0

    known = entropy(topics, alpha)
    yield row(
        "floors.entropy",
        "The mean entropy of a document's topics is ψ(Tα + 1) - ψ(α + 1): distance from an integral",
        at,
        abs(topics * against_share(topics, alpha, plain) - known),
        "<=",
        1e-8,
    )
    per_document = special.entr(theta).sum(1)
    yield _sampled(
        "floors.entropy-sampled", "And from a mean over documents: standard errors", sampled, per_document, known, entry
    )
    yield row(
        "floors.mask",
        "The least cross-entropy at [MASK], with θ known, is E[H(θ)] + ln v, as computed before, to the digits noted",
        at,
        known + math.log(v),
        "within",
        3.1491,
        tolerance=5e-5,
    )
    yield row(
        "floors.uniform",
        "That of a uniform predictor is ln(Tv)",
        at,
        math.log(topics * v),
        "within",
        4.605,
        tolerance=5e-4,
    )
    squares = (1 + alpha) / (1 + topics * alpha)
    yield row(
        "floors.squared",
        "The least squared loss at [MASK] is 1 - E[Σθ²]/v, as computed before, to the digits noted",
        at,
        1 - squares / v,
        "within",
        0.945,
        tolerance=5e-4,
    )
    yield _sampled(
        "floors.squares-sampled",
        "E[Σθ²] = (1 + α)/(1 + Tα) from a mean over documents: standard errors",
        sampled,
        (theta**2).sum(1),
        squares,
        entry,
    )
    copied = [all_positions(row_T, v, masking.keep, masking.random) for row_T in theta]
    exact = _expected(topics, v, alpha, masking.keep, masking.random)
    yield _sampled(
        "floors.copy-sampled",
        "The least cross-entropy over all masked positions, by an integral over one share, from "
        "a mean over documents: standard errors",
        sampled,
        np.array(copied),
        exact,
        entry,
    )
    yield row(
        "floors.all",
        "The least cross-entropy over all masked positions, which includes what kept words tell, as "
        "computed before from samples",
        at,
        exact,
        "within",
        2.895,
        tolerance=0.003,
    )


def _sampled(
    name: str, statement: str, size: str, values_N: np.ndarray, expected: float, entry: Floors
) -> dict[str, Any]:
    z = abs(values_N.mean() - expected) / (values_N.std(ddof=1) / math.sqrt(len(values_N)))
    return row(
        name, statement, size, float(z), "<=", entry.errors, detail=f"{values_N.mean():.5f} against {expected:.5f}"
    )


def all_positions(theta_T: np.ndarray, v: int, p_c: float, p_r: float) -> float:
    """Return the least cross-entropy of a document over its masked positions, word by word.

    A query that is a word b is the label with the odds p_c p(b) to p_r / (T v); otherwise the label is drawn from the
    document's words.
    """
    p = np.repeat(theta_T, v) / v
    words = len(p)
    query = p_c * p + p_r / words
    kept = p_c * p / query
    label_QxW = (1 - kept)[:, None] * p + np.diag(kept)
    blank = (1 - p_c - p_r) * special.entr(p).sum()
    return float(blank + query @ special.entr(label_QxW).sum(1))


def _expected(topics: int, v: int, alpha: float, p_c: float, p_r: float) -> float:
    """Return its mean over documents: given one share, the others are Dirichlet, and entropy is linear in theirs."""
    words = topics * v
    others = entropy(topics - 1, alpha)

    def query(share: float) -> float:
        """The part of the v words of a topic with this share."""
        p = share / v
        shown = p_c * p + p_r / words
        kept = p_c * p / shown
        own = kept + (1 - kept) * p
        # Mean entropy of the words of a document that has this share of one topic.
        mean = special.entr(share) + special.entr(1 - share) + (1 - share) * others + math.log(v)
        rest = (1 - kept) * (mean - special.entr(p)) + (1 - p) * special.entr(1 - kept)
        return v * shown * float(special.entr(own) + rest)

    blank = (1 - p_c - p_r) * (entropy(topics, alpha) + math.log(v))
    return float(blank + topics * against_share(topics, alpha, query))
