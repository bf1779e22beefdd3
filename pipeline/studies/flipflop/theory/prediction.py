"""What a predictor of n tokens can know, and the floor of the generative loss (Liu 2024, sections 3.5.2 and 3.5.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest
from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import row
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.constructions import ERRATUM, OWN, SOURCE, judged
from pipeline.studies.flipflop.exact import recognisers as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

NGRAMS = SOURCE.format(".3")
LAWS = {"0.8": (0.1, 0.1), "0.98": (0.01, 0.01), "0.1": (0.45, 0.45)}
SIGMAS = 4.5  # standard errors that a frequency may be off


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on n-grams, floors and the printed numbers of reads."""
    rng = stream(seed, entry.study, key)
    made = [
        *judged("n-grams", [*_exactly(entry), *_sampled(entry, rng)]),
        *judged("", _trends(), claim="24"),
        *judged("floor", _floors(entry, rng)),
        *judged("evaluation sequences", _counts()),
    ]
    return theory.rows(entry.study, key, NGRAMS, made)


def bayes_error(tokens_NxT: np.ndarray, weight_N: np.ndarray, n: int) -> float:
    """Return the least error of any predictor of n tokens on all reads, by going through all strings with their
    probabilities. It knows where in the string it stands."""
    wrong = total = 0.0
    for t in range(2, tokens_NxT.shape[1], 2):
        read = tokens_NxT[:, t] == language.READ
        windows = tokens_NxT[read][:, max(0, t - n + 1) : t + 1]
        bit, weight = tokens_NxT[read, t + 1] == language.DATA + 1, weight_N[read]
        _, which = np.unique(windows, axis=0, return_inverse=True)
        sides = [np.bincount(which.ravel(), np.where(side, weight, 0.0)) for side in (bit, ~bit)]
        wrong += float(np.minimum(*sides).sum())
        total += float(weight.sum())
    return wrong / total


def _exactly(entry: Theory) -> Iterator[dict[str, Any]]:
    tokens = language.enumerate_strings(entry.short)
    for name, law in LAWS.items():
        weight = np.exp(language.log_probability(tokens, *law))
        off, guess = [], []
        for n in range(1, entry.short):
            least = bayes_error(tokens, weight, n)
            off.append(abs(least - exact.ngram_error(n, entry.short, *law)))
            errors = exact.ngram_guess(tokens, n)[:, :-1] != tokens[:, 1:].astype(int) - language.DATA
            read = tokens[:, :-1] == language.READ
            guess.append(abs((weight[:, None] * (errors & read)).sum() / (weight[:, None] * read).sum() - least))
        size = f"n = 1 to {entry.short - 1}, all {len(tokens)} strings of {entry.short} tokens"
        yield row(
            f"ngram.exact.{name}",
            f"On FFL({name}) the least error of a predictor of n tokens is half of p_i to the "
            "power ⌈(n-1)/2⌉ behind that many pairs, else 0: largest difference",
            size,
            largest(off),
            "<=",
            1e-12,
            source=OWN,
        )
        yield row(
            f"ngram.guess.{name}",
            f"On FFL({name}) the predictor that copies the last bit in sight attains it: largest difference",
            size,
            largest(guess),
            "<=",
            1e-12,
            source=OWN,
        )


def _sampled(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    count = 10**6 if entry.draws > 8 else 2000 * entry.draws  # a million: frequencies to about 0.002
    tokens = language.sample(rng, count, 24, *LAWS["0.8"])
    bit = tokens[:, -1].astype(int) - language.DATA
    for n in range(1, 8):
        error = (exact.ngram_guess(tokens, n)[:, -2] != bit).mean()
        rate = 0.5 * 0.8 ** exact.pairs_seen(n)
        spread = math.sqrt(rate * (1 - rate) / len(tokens))
        yield row(
            f"ngram.sampled.{n}",
            f"A predictor of {n} tokens errs at the last read of FFL(0.8) as often as the closed form says",
            f"{len(tokens)} strings of 24 tokens",
            float(error),
            "within",
            rate,
            tolerance=SIGMAS * spread,
            source=OWN,
        )


def _trends() -> Iterator[dict[str, Any]]:
    yield row(
        "ngram.near-chance",
        "On FFL(0.98) a predictor of n = 5 tokens, far below 1/(1 - p_i) = 50, is near chance: its error",
        "T = 512",
        exact.ngram_error(5, 512, *LAWS["0.98"]),
        ">=",
        0.45,
        part="n-grams, near chance on sparse strings",
    )
    yield row(
        "ngram.dense",
        "On FFL(0.1) one of n = 11 tokens hardly errs, so that n-grams do not explain errors on dense "
        "strings: its error",
        "T = 512",
        exact.ngram_error(11, 512, *LAWS["0.1"]),
        "<=",
        1e-4,
        part="n-grams, right on dense strings",
    )


def _floors(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    metadata = {"source": OWN}
    for name, law in LAWS.items():
        off = []
        for length in range(4, entry.short + 1, 2):
            known = language.log_probability(language.enumerate_strings(length), *law)
            entropy = -(np.exp(known) * known).sum() / (length - 1)
            off.append(abs(entropy - exact.generative_floor(length, *law)))
        yield row(
            f"floor.exact.{name}",
            f"The floor of the generative loss on FFL({name}) is the entropy of a string per "
            "predicted token: largest difference",
            f"all strings of up to {entry.short} tokens",
            largest(off),
            "<=",
            1e-12,
            **metadata,
        )
        length = entry.lengths[-1]
        tokens = language.sample(rng, 100 * entry.draws, length, *law)
        surprise = -language.log_probability(tokens, *law) / (length - 1)
        floor = exact.generative_floor(length, *law)
        yield row(
            f"floor.sampled.{name}",
            f"The mean surprise of strings of FFL({name}) is the floor, nats per token",
            f"{len(tokens)} strings of {length} tokens",
            float(surprise.mean()),
            "within",
            floor,
            tolerance=SIGMAS * float(surprise.std()) / math.sqrt(len(tokens)),
            **metadata,
        )


def _counts() -> Iterator[dict[str, Any]]:
    """Yield what the printed number of reads says of the number of sequences: A1 of chapter 3.11."""
    printed, mean, spread = 353875, 1 + 254 * 0.01, math.sqrt(254 * 0.01 * 0.99)
    metadata = {"erratum": ERRATUM.format("evaluation-size")}
    for form, sequences, comparison, bound in (("printed", 300_000, ">=", 100), ("corrected", 100_000, "<=", 3)):
        off = abs(printed - sequences * mean) / (spread * math.sqrt(sequences))
        yield row(
            f"evaluation-size.{form}",
            f"{printed} reads in {sequences} sequences of FFL(0.98): standard deviations from what is expected",
            f"{sequences * mean:.0f} reads expected",
            off,
            comparison,
            bound,
            form=form,
            source=SOURCE.format(".2 and 3.5.6.2"),
            **metadata,
        )
