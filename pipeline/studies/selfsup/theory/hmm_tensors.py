"""Predictors of two tokens as tensors, and what they give away (Liu 2024, Theorem 7, Proposition 1; chapter 5.10)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import row
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import tensors
from pipeline.studies.selfsup.names import SOURCE
from schemas.theory import rows

if TYPE_CHECKING:
    from pipeline.studies.selfsup.params import HmmTensors

THEOREM_7, PROPOSITION_1 = SOURCE.format("Theorem 7"), SOURCE.format("Proposition 1")
Drawn = list[tuple[Floats, Floats]]


def check(entry: HmmTensors, key: str, seed: int) -> pl.DataFrame:
    """Return rows on the predictors, Kruskal's condition, recovery, and where it ends."""
    found: list[dict[str, Any]] = []
    for d, k in entry.shapes:
        rng = stream(seed, entry.study, key, d, k)
        models = [
            hmm.draw(
                rng, d, k, concentration=0.5, power=2, offset=0.02, least_singular=entry.least_singular, least_row=0.02
            )
            for _ in range(entry.draws)
        ]
        name = f"{d}-{k}"
        size = f"d = {d}, k = {k}, {entry.draws} models"
        found += [
            *_predictors(models, name, size),
            *_kruskal(models, name, size, k),
            *_recovery(models, name, size, k, rng),
        ]
        found += _degenerate(models, name, size, k)
    found += _published(stream(seed, entry.study, key, "published"))
    return rows(entry.study, key, THEOREM_7, found)


def _predictors(models: Drawn, name: str, size: str) -> Iterator[dict[str, Any]]:
    """Yield rows that hold the formulas of predictors against the sum over all hidden paths."""
    one, two = [], []
    for emission, transition in models:
        law = enumerated(emission, transition)
        for task in hmm.PAIR_TASKS:
            one.append(np.abs(hmm.predictor(emission, transition, task) - _from_joint(law, task)).max())
        for case in hmm.CASES:
            two.append(np.abs(hmm.triple_predictor(emission, transition, case) - hmm.given(law, case)).max())
    words = "The predictor is the conditional law that the sum over all hidden paths gives: largest difference"
    part = {"claim": "5", "part": "predictors"}
    source = SOURCE.format("Eq. 2.35, 2.36, 2.39")
    yield part | row(f"one-token-{name}", words, f"{size}, 4 tasks", max(one), "<=", 1e-13, source=source)
    yield part | row(f"two-tokens-{name}", words, f"{size}, 3 cases", max(two), "<=", 1e-13, source=source)


def enumerated(emission: Floats, transition: Floats) -> Floats:
    """Return P(x_1, x_2, x_3) (d, d, d) as a sum over hidden paths, with nothing but the definition."""
    d, k = emission.shape
    law = np.zeros((d, d, d))
    for h in itertools.product(range(k), repeat=3):
        weight = transition[h[1], h[0]] * transition[h[2], h[1]] / k
        law += weight * np.einsum("a,b,c->abc", *(emission[:, state] for state in h))
    return law


def _from_joint(law: Floats, task: str) -> Floats:
    """Return the predictor (d, d) of one token from the joint law of three, a column for each symbol that is shown."""
    predicted, shown = (int(name[1:]) - 1 for name in task.split("|"))
    (other,) = {0, 1, 2} - {predicted, shown}
    pair = law.sum(other)
    pair = pair if predicted < shown else pair.T
    return np.asarray(pair / pair.sum(0))


def _kruskal(models: Drawn, name: str, size: str, k: int) -> Iterator[dict[str, Any]]:
    ranks = [
        tensors.kruskal_rank(part) for model in models for case in hmm.CASES for part in hmm.components(*model, case)
    ]
    yield row(
        f"kruskal-{name}",
        f"All components have Kruskal rank k, so that 3k >= 2k + 2: the smallest less {k}",
        f"{size}, 3 cases",
        min(ranks) - k,
        ">=",
        0,
        source=PROPOSITION_1,
        claim="5",
        part="Kruskal's condition",
    )


def _recovery(models: Drawn, name: str, size: str, k: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    emissions, transitions = (np.array(part) for part in zip(*models, strict=True))
    part = {"claim": "5", "part": "weights"}
    weighted: dict[int, float] = {}
    for case in hmm.CASES:
        tensor = hmm.triple_predictor(emissions, transitions, case)
        marginal = emissions.sum(-1) / k
        found = tensors.recover(tensor * marginal[..., None, None], k, case, rng)
        weighted[case] = float(np.max(hmm.distance(emissions, transitions, *found)[0]))
    yield part | row(
        f"weighted-ends-{name}",
        "Slices weighted by the law of the shown token, which a predictor does not tell: "
        "cases 1 and 3 still give O; largest error",
        size,
        max(weighted[1], weighted[3]),
        "<=",
        1e-8,
    )
    yield part | row(
        f"weighted-middle-{name}",
        "Case 2 does not: error of the model where it is largest",
        size,
        weighted[2],
        ">=",
        0.01,
    )


def _degenerate(models: Drawn, name: str, size: str, k: int) -> Iterator[dict[str, Any]]:
    """Yield a control: where T lacks a rank, Kruskal's condition fails and other models have the same predictors.

    Two states that move alike are seen through the sum of their columns of O alone, in all three cases.
    """
    transition = np.eye(k)
    transition[:2, :2] = 0.5
    mix = np.eye(k)
    mix[:2, :2] = [[0.7, 0.3], [0.3, 0.7]]
    condition, alike, apart = [], [], []
    for emission, _ in models:
        other = emission @ mix
        for case in hmm.CASES:
            found = hmm.components(emission, transition, case)
            condition.append(sum(map(tensors.kruskal_rank, found)) - (2 * k + 2))
            predicted = (hmm.triple_predictor(each, transition, case) for each in (emission, other))
            alike.append(np.abs(np.subtract(*predicted)).max())
        apart.append(float(hmm.distance(emission, transition, other, transition)[0]))
    part = {"claim": "5", "part": "where rank is lacking", "source": SOURCE.format("Assumption 7")}
    size = f"{size}, 3 cases"
    yield part | row(
        f"rank-kruskal-{name}",
        "Where two states move alike, Kruskal's condition fails: the largest k_A + k_B + k_C less 2k + 2",
        size,
        max(condition),
        "<=",
        -1,
    )
    yield part | row(
        f"rank-alike-{name}",
        "There another model has the same predictors of two tokens: largest difference",
        size,
        max(alike),
        "<=",
        1e-14,
        detail=f"Frobenius distance of O at least {min(apart):.2g}",
    )


def _published(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield rows on the published pair, which predictors of two tokens recover and tell apart."""
    first, second = hmm.published(0), hmm.published(1)
    errors = [
        hmm.distance(*first, *tensors.recover(hmm.triple_predictor(*first, case), 3, case, rng)) for case in hmm.CASES
    ]
    apart = hmm.distance(*first, *second)
    part = {"claim": "5", "part": "the published pair", "source": SOURCE.format("Theorem 7, Eq. 2.47")}
    size = "d = 4, k = 3, 3 cases"
    for place, letter in enumerate("OT"):
        error = max(float(each[place]) for each in errors)
        yield part | row(
            f"published-{letter.lower()}",
            f"{letter} of the published model is recovered: largest error",
            size,
            error,
            "<=",
            1e-6,
            detail=f"its twin is {float(apart[place]):.4f} away",
        )
    law = hmm.joint(*first) - hmm.joint(*second)
    yield part | row(
        "published-marginals",
        "The laws of two tokens of the pair are the same: largest difference",
        size,
        max(np.abs(law.sum(axis)).max() for axis in range(3)),
        "<=",
        1e-7,
    )
