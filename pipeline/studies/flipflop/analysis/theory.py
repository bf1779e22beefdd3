"""What the figures of the theory show: the machines, and the curves of Propositions 4 and 5 and of n-grams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.exact import recognisers as exact

SETS = {"val": 0.8, "sparse": 0.98, "dense": 0.1}
LENGTH = 512
PROBE = (32, 800)  # no-ops behind the first and behind the second write (Figure 3.33)
DRIFT = 0.1  # |a| of the two drifting models


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the moves of the machines, the bound of Proposition 4, errors of n-grams, and scores along a probe."""
    return {
        "machines": pl.DataFrame(list(_machines())),
        "dilution": pl.DataFrame(list(_dilution())),
        "ngram_law": pl.DataFrame(list(_ngrams(context)), infer_schema_length=None),
        "probe_scores": pl.DataFrame(list(_scores())),
    }


def _machines() -> Iterator[dict[str, Any]]:
    moves, names = exact.recogniser()
    machines = (
        ("flip-flop", exact.FLIP_FLOP, ("0", "1"), ("write 0", "write 1", "keep")),
        ("recogniser", moves, names, language.NAMES),
    )
    for machine, table, states, symbols in machines:
        for (state, symbol), goal in np.ndenumerate(table):
            yield {
                "machine": machine,
                "state": state,
                "symbol": symbol,
                "next_state": int(goal),
                "state_shown": states[state],
                "symbol_shown": symbols[symbol],
            }


def _dilution() -> Iterator[dict[str, Any]]:
    for sigma in (1.0, 2.0, 3.0):
        for power in range(1, 29):
            length = round(2 ** (power / 2))
            if length > round(2 ** ((power - 1) / 2)):
                bound = exact.most_weight(sigma, length)
                yield {"sigma": sigma, "length": length, "bound": bound, "half": 1 + math.exp(2 * sigma)}


def _ngrams(context: Inputs) -> Iterator[dict[str, Any]]:
    """Yield errors by the closed form and, at some n, of the predictor itself on strings that are drawn."""
    rng = stream(context.seed, context.study, context.experiment)
    for name, p in SETS.items():
        tokens = language.sample(rng, 1000, LENGTH, *language.halves(p))
        at = tokens[:, :-1] == language.READ
        bits = tokens[:, 1:].astype(int)[at] - language.DATA
        for n in (*range(1, 12), *range(13, 52, 4), *range(61, 202, 20)):
            sampled = None
            if n in (5, 11, 21, 51, 201):
                sampled = float((exact.ngram_guess(tokens, n)[:, :-1][at] != bits).mean())
            law = language.halves(p)
            error = exact.ngram_error(n, LENGTH, float(law[0]), float(law[1]))
            yield {"n": n, "set": name, "length": LENGTH, "error": error, "sampled": sampled, "reads": int(at.sum())}


def _scores() -> Iterator[dict[str, Any]]:
    first, second = PROBE
    length, place = first + second + 2, first + 2
    for model, a in (("a > 0", DRIFT), ("a = 0", 0.0), ("a < 0", -DRIFT)):
        known = exact.recency(64.0, 1.5, a)
        for position in range(place, length + 1, 8):
            keys = {"last write": (place, 2), "first write": (1, 1)}
            if position > place:
                keys["itself"] = (position, 0)
            for key, (at, symbol) in keys.items():
                score = float(known.score(position, at, symbol) - known.score(position, place, 2))
                yield {"model": model, "a": a, "position": position, "key": key, "score": score}
