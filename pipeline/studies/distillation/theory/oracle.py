"""The best predictors of masked tokens, of n-grams and of next tokens (Liu 2024, sections 4.2.3.1 and 4.2.8.1).

No model can predict better than these do. They are exact on truncated grammars and on full ones alike; what is averaged
here is over strings and masks that are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import one_thread, stream
from pipeline.kit.theory_rows import judged, row
from pipeline.languages import pcfg
from pipeline.studies.distillation.constructions import ERRATUM, LIU, UNPUBLISHED
from pipeline.studies.distillation.exact import inside
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.distillation.params import Oracle

HERE = LIU.format("8.1")
ENUMERATED = (("cfg3b", 13), ("cfg3b", 14), ("cfg3b", 15), ("cfg3f", 10), ("cfg3h", 12))
# Of the teacher on cfg3b, read from the graphics of Figures 4.4 and 4.7: accuracy after 16,000 steps, loss after 8,000;
# and the error of reading them.
PUBLISHED, LOSS, READING = 0.98, 0.03, 0.01
ERRORS, SURE = 4, 2  # standard errors: of a check on both sides, and of a bound on one


def check(entry: Oracle, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on the best predictors."""
    rng = stream(seed, entry.study, key)
    with one_thread():
        made = [
            *_enumerated(entry, rng),
            *_calibrated(entry, rng),
            *_windows(entry, rng),
            *_following(entry, rng),
            *_published(entry, rng),
        ]
    return theory.rows(entry.study, key, HERE, judged("33", "checks", made))


def _enumerated(entry: Oracle, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for name, root in ENUMERATED:
        _, seen, _, lengths = pcfg.masked(rng, name, root, entry.strings, entry.rate)
        evidence, own = inside.evidence(seen, entry.rate), inside.selected_evidence(seen)
        slopes, totals = inside.enumerated(name, root, evidence, lengths)
        present = seen != pcfg.PAD
        reference = (slopes * own)[present]
        reference /= reference.sum(-1, keepdims=True)
        posterior = inside.posterior(name, root, evidence, lengths, own)[present]
        count = pcfg.number_of_derivations(name, root)
        size = f"{name} below {root}: {count} derivations, {entry.strings} masked strings"
        yield row(
            f"inside.{name}-{root}",
            "Inside probabilities and their derivatives give the posterior of each token that "
            "going through all derivations gives: largest difference",
            size,
            largest(np.abs(posterior - reference)),
            "<=",
            1e-12,
        )
        sums = inside.likelihood(name, root, evidence, lengths)
        yield row(
            f"likelihood.{name}-{root}",
            "and the same probability of what is shown: largest relative difference",
            size,
            largest(np.abs(sums / totals - 1)),
            "<=",
            1e-12,
        )


@dataclass(frozen=True)
class Scores:
    """Of each selected token: whether the best guess is right, how likely it is by the posterior, the loss, the
    entropy of the posterior, and the number of its string."""

    right: NDArray[np.float64]
    expected: NDArray[np.float64]
    loss: NDArray[np.float64]
    entropy: NDArray[np.float64]
    string: NDArray[np.int64]

    def mean(self, values: NDArray[np.float64]) -> tuple[float, float]:
        """Return the mean of ``values`` over tokens, and its standard error over strings, whose tokens depend on each
        other."""
        mean = float(values.mean())
        spread = np.bincount(self.string, values - mean)
        return mean, float(np.sqrt((spread**2).sum()) / len(values))


def _scores(rng: np.random.Generator, name: str, root: int, n: int, rate: float, hide_masked: bool) -> Scores:
    """Return how the best predictor does on ``n`` strings."""
    words, seen, kind, lengths = pcfg.masked(rng, name, root, n, rate)
    posterior = inside.best(name, root, seen, lengths, rate, kind, hide_masked)
    chosen = kind != pcfg.NONE
    p, x = posterior[chosen], words[chosen]
    entropy = -(p * np.log(np.maximum(p, np.finfo(float).tiny))).sum(-1)
    loss = -np.log(p[np.arange(len(x)), x])
    return Scores((p.argmax(-1) == x).astype(float), p.max(-1), loss, entropy, np.nonzero(chosen)[0])


def _calibrated(entry: Oracle, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for name, root in (*(("cfg3b", root) for root in entry.roots), ("cfg3b", pcfg.ROOT)):
        n = entry.full if root == pcfg.ROOT else entry.sentences
        scores = _scores(rng, name, root, n, entry.rate, False)
        size = f"{name} below {root}, {len(scores.right)} selected tokens of {n} strings"
        for what, gap, detail in (
            ("right", scores.right - scores.expected, f"accuracy {scores.expected.mean():.4f}"),
            ("loss", scores.loss - scores.entropy, f"loss {scores.entropy.mean():.4f} nats"),
        ):
            mean, error = scores.mean(gap)
            says = "is right as often as it says" if what == "right" else "has the loss that its entropy says"
            yield row(
                f"calibrated.{name}-{root}.{what}",
                f"The best predictor {says}: difference in standard errors",
                size,
                abs(mean) / error,
                "<=",
                ERRORS,
                source=UNPUBLISHED,
                detail=detail,
            )


def _windows(entry: Oracle, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield medians of L_robust and L_close of the best predictor: where a model that has learned the grammar ends."""
    for root in entry.roots:
        tokens, lengths = pcfg.strings(rng, "cfg3b", entry.sentences // 4, root)
        words = pcfg.padded(tokens, lengths)[:, 1:]
        longest = pcfg.extent("cfg3b", root)[1]
        widths, pairs = (3, 5, 7), []
        for quarter in (1, 2, 3):
            place = np.full(len(lengths), quarter * longest // 4)
            some = place < lengths
            pairs.append(
                inside.distances("cfg3b", root, words[some], lengths[some], place[some], widths, entry.rate, True)
            )
        size = f"cfg3b below {root}, positions at a quarter, half and three quarters of {longest}"
        medians, near = (
            dict(zip(widths, np.median(np.concatenate([pair[i] for pair in pairs], 1), 1).tolist(), strict=True))
            for i in range(2)
        )
        listing = ", ".join(f"n = {n}: {value:.3f}" for n, value in medians.items())
        yield row(
            f"robust.{root}",
            "Without the 3-gram around it the best predictor says the same of a token: median of L_robust(3)",
            size,
            medians[3],
            "<=",
            1e-9,
            source=UNPUBLISHED,
            detail=f"medians {listing}",
        )
        listing = ", ".join(f"n = {n}: {value:.3f}" for n, value in near.items())
        yield row(
            f"close.{root}",
            "A 3-gram alone is not enough for it: median of L_close(3)",
            size,
            near[3],
            ">=",
            0.1,
            source=UNPUBLISHED,
            detail=f"medians {listing}",
        )


def _following(entry: Oracle, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield how well the last token of spans can be foretold from what is left of it."""
    for name, level in (("cfg3b", 2), ("cfg3f", 2), ("cfg3f", 3), ("cfg3f", 4), ("cfg3g", 3), ("cfg3h", 3)):
        n = max(2, entry.full // 10)
        drawn = pcfg.sample(rng, name, n)
        words = pcfg.padded(drawn.tokens, drawn.lengths)[:, 1:]
        at = pcfg.padded(pcfg.ends(drawn.boundary_levels, level).astype(np.uint8), drawn.lengths, 0, 0)[:, 1:] > 0
        p, x = inside.following(name, pcfg.ROOT, words, level)[at], words[at]
        right, expected = (p.argmax(-1) == x).astype(float), p.max(-1)
        gap = right - expected
        yield row(
            f"following.{name}-{level}",
            f"Next tokens at the ends of level {level}: the best predictor is right as often "
            "as it says: difference in standard errors",
            f"{name}, {len(gap)} tokens of {n} strings",
            abs(float(gap.mean())) / (float(gap.std()) / math.sqrt(len(gap))),
            "<=",
            ERRORS,
            source=LIU.format("9, equation 4.98"),
            detail=f"accuracy {expected.mean():.4f}",
        )


def _published(entry: Oracle, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield which of the two grammars can have the accuracy and the loss that Figures 4.4 and 4.7 show."""
    sources = {"source": "Liu 2024, Figures 4.4 and 4.7; section 4.2.8.4.1", "erratum": ERRATUM.format("cfg3b")}
    size = f"{entry.full} strings of each grammar, mask rate {entry.rate}"
    accuracy: dict[str, list[tuple[float, float]]] = {}
    loss: dict[str, list[tuple[float, float]]] = {}
    for name in ("cfg3b", "cfg3b_pdcode"):
        both = [_scores(rng, name, pcfg.ROOT, entry.full, entry.rate, hide) for hide in (False, True)]
        accuracy[name] = [scores.mean(scores.expected) for scores in both]
        loss[name] = [scores.mean(scores.entropy) for scores in both]

    def detail(estimates: dict[str, list[tuple[float, float]]]) -> str:
        return "; ".join(
            f"{name} {plain[0]:.4f}, with selected positions hidden {hidden[0]:.4f}"
            for name, (plain, hidden) in estimates.items()
        )

    most = largest(value + SURE * error for value, error in accuracy["cfg3b"])
    yield row(
        "accuracy.printed",
        f"The accuracy {PUBLISHED} of Figure 4.4, less {READING} for reading it from the graphic, is "
        "more than any predictor can reach on cfg3b as Figure 4.23 has it: by",
        size,
        PUBLISHED - READING - most,
        ">=",
        1e-3,
        form="printed",
        detail=detail(accuracy),
        part="accuracy",
        **sources,
    )
    least = smallest(value - SURE * error for value, error in loss["cfg3b"])
    yield row(
        "loss.printed",
        f"The loss {LOSS} of Figure 4.7, with {READING} for reading it, is less than any predictor can "
        "reach on cfg3b: by",
        size,
        least - LOSS - READING,
        ">=",
        1e-3,
        form="printed",
        detail=detail(loss),
        part="loss",
        **sources,
    )
    best = largest(value for value, _ in accuracy["cfg3b_pdcode"])
    yield row(
        "accuracy.corrected",
        "On the grammar of the published code, which lacks a rule, it can be reached: published accuracy less the best",
        size,
        PUBLISHED - READING - best,
        "<=",
        0,
        form="corrected",
        detail=detail(accuracy),
        **sources,
    )
    lowest = smallest(value for value, _ in loss["cfg3b_pdcode"])
    yield row(
        "loss.corrected",
        "and so can the loss: least possible less published",
        size,
        lowest - LOSS - READING,
        "<=",
        0,
        form="corrected",
        detail=detail(loss),
        **sources,
    )
