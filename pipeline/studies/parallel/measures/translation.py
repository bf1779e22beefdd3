"""What translations are worth: BLEU, exact validity, stutter, passes (Li 2025, section 4.2.3; chapter 3.10).

Translations are arrays (N, T) of ids, `EOS` last in a sentence and `PAD` behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pipeline.kit import intervals
from pipeline.languages import synmt
from pipeline.languages.synmt import EOS, PAD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

ORDERS = 4  # of n-grams


def bleu(said: Ints, reference: Ints) -> float:
    """Return corpus BLEU-4 of token ids against one reference each, 0 to 100.

    N-grams are clipped, short output is penalised, and the precision of the j-th order without a match is 1 / (2^j
    times its n-grams): SacreBLEU's exponential smoothing. `EOS` is no token.
    """
    hits, totals = np.zeros(ORDERS), np.zeros(ORDERS)
    size = int(max(said.max(initial=0), reference.max(initial=0))) + 1
    for order in range(1, ORDERS + 1):
        own, own_counts = _ngrams(said, order, size)
        other, other_counts = _ngrams(reference, order, size)
        _, mine, theirs = np.intersect1d(own, other, assume_unique=True, return_indices=True)
        hits[order - 1] = np.minimum(own_counts[mine], other_counts[theirs]).sum()
        totals[order - 1] = own_counts.sum()
    if not hits.any() or not totals.all():
        return 0.0
    smooth, logs = 1.0, 0.0
    for hit, total in zip(hits.tolist(), totals.tolist(), strict=True):
        if not hit:
            smooth *= 2
        logs += math.log(hit / total if hit else 1 / (smooth * total))
    length, wanted = int((said > EOS).sum()), int((reference > EOS).sum())
    brevity = min(0.0, 1 - wanted / length)
    return 100 * math.exp(brevity + logs / ORDERS)


def _ngrams(tokens: Ints, order: int, size: int) -> tuple[Ints, Ints]:
    """Return the n-grams of sentences as numbers, each with that of its sentence, and how often each occurs."""
    width = tokens.shape[1] - order + 1
    if width < 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    code = np.broadcast_to(np.arange(len(tokens))[:, None], (len(tokens), width)).copy()
    for place in range(order):
        code = code * size + tokens[:, place : place + width]
    inside = tokens[:, order - 1 :] > EOS
    found, counts = np.unique(code[inside], return_counts=True)
    return found, counts


class Sentences(NamedTuple):
    """What is known of each translation (N,): ``log_p``, log p(y | x) under the corpus that was learned, -inf for what
    it never has; whether it is ``valid``, of positive probability at alpha = 1, ``exact``, the reference itself, and of
    the right length (``len_ok``); how many tokens repeat the one before (``stutter``), and how many there are
    (``n_tok``), without `EOS`."""

    log_p: NDArray[np.float64]
    valid: Bools
    exact: Bools
    len_ok: Bools
    stutter: Ints
    n_tok: Ints


@dataclass(frozen=True)
class Test:
    """Sources with the law that was learned, the law at alpha = 1, which says what is valid, and references (N, T)."""

    learned: synmt.Law
    support: synmt.Law
    reference: Ints

    def sentences(self, said: Ints) -> Sentences:
        """Return what is known of translations (N, T). No reference repeats a token, so each repetition is stutter."""
        size = self.reference.shape[1]
        whole = np.full((len(said), size), PAD, np.int64)
        whole[:, : said.shape[1]] = said
        return Sentences(
            synmt.log_probability(self.learned, whole),
            np.isfinite(synmt.log_probability(self.support, whole)),
            (whole == self.reference).all(1),
            (whole != PAD).sum(1) == (self.reference != PAD).sum(1),
            synmt.stutters(whole).sum(1),
            (whole > EOS).sum(1),
        )

    def metrics(self, said: Ints, passes: Ints, confidence: float, before: Ints | None = None) -> dict[str, Any]:
        """Return the columns of `schemas.parallel.translation.Metric` that are measured; intervals are over sentences.

        ``before`` is what was said before tokens were taken out, of which stutter is measured (chapter 3.10).
        """
        own = self.sentences(said)
        raw = own if before is None else self.sentences(before)
        n = len(said)
        valid_lo, valid_hi = intervals.binomial(int(own.valid.sum()), n, confidence)
        stutter, lo, hi = _per_hundred(raw.stutter, raw.n_tok, confidence)
        known = np.isfinite(own.log_p)
        return {
            "n": n,
            "bleu": bleu(said, self.reference),
            "valid_rate": float(own.valid.mean()),
            "valid_lo": valid_lo,
            "valid_hi": valid_hi,
            "exact_rate": float(own.exact.mean()),
            "len_acc": float(own.len_ok.mean()),
            "log_p_mean": float(own.log_p[known].mean()) if known.any() else math.nan,
            "stutter_per_100": stutter,
            "stutter_lo": lo,
            "stutter_hi": hi,
            "passes_mean": float(passes.mean()),
            "passes_max": int(passes.max()),
        }


def _per_hundred(stutter: Ints, tokens: Ints, confidence: float) -> tuple[float, float, float]:
    """Return stutters per 100 tokens with their interval over sentences, by the variance of a ratio of means."""
    ratio = stutter.sum() / max(1, tokens.sum())
    around = intervals.mean((stutter - ratio * tokens) / max(1.0, float(tokens.mean())), confidence)
    return 100 * ratio, 100 * max(0.0, ratio + around.lo), 100 * (ratio + around.hi)
