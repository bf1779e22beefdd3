"""Queries without and with a process verifier, in exact numbers (Li 2025, sections 3.1 and 3.5; chapter 5.1
to 5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.studies.verifier.checks import BOUND, COIN, GREEDY, LAW, POWERS, PROGRAM, STUCK, row, zero
from pipeline.studies.verifier.exact import coin, hidden_parity, tokenwise
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.verifier.params_theory import TokenwiseCheck

HEAVIEST = 20  # weight of a random knapsack
COIN_ERRORS = (0.05, 0.3)  # of the coins whose draws are all gone through
COIN_LENGTH, COIN_QUOTA = 5, 2


def check(entry: TokenwiseCheck, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` that decide parts of claims 1 to 5."""
    rng = stream(seed, entry.study, key)
    checks = [
        *_powers(entry.lengths),
        *_parity(entry.lengths),
        *_stuck(entry.lengths),
        *_knapsacks(rng, entry.knapsacks),
        *_superincreasing(rng, entry.items, entry.sequences),
        *_bias(entry.lengths),
        *_coin(),
    ]
    return theory.rows(entry.study, key, "Li 2025, section 3.1", checks)


def _powers(lengths: list[int]) -> Iterator[dict[str, Any]]:
    for D in lengths:
        task = constrained.zeros(D)
        rejection = tokenwise.rejection_calls(task)
        one = tokenwise.action_level_calls(task.laws, task.verifier())
        size, where = f"D = {D}", ("1", POWERS, "Proposition 3.1.1")
        yield zero(
            f"rejection-{D}",
            "Expected calls of rejection sampling, from the laws of the oracle, minus 2^D D",
            size,
            abs(rejection - 2**D * D),
            *where,
        )
        yield zero(f"tokenwise-{D}", "Expected calls of tokenwise rejection minus 2 D", size, abs(one - 2 * D), *where)


def _parity(lengths: list[int]) -> Iterator[dict[str, Any]]:
    where = ("2", BOUND, "Theorem 3.1.1")
    noted = {"erratum": "verifier-theorem-3-1-1"}
    for D in (D for D in lengths if D <= hidden_parity.ENUMERATED):
        value, closed = hidden_parity.bayes_value(D), hidden_parity.closed_form(D)
        yield row(
            f"searchers-{D}",
            "Fewest expected queries of all searchers over a uniform hidden prefix: (N + 1)/2 - 1/N",
            f"D = {D}: every set of {2 ** (D - 1)} prefixes",
            float(value),
            "within",
            float(closed),
            *where,
            tolerance=1e-12,
            form="corrected",
            **noted,
        )
        told = hidden_parity.informative(D)
        yield zero(
            f"short-queries-{D}",
            "Lengths below D - 1 of queries whose answer depends on the hidden prefix",
            f"D = {D}",
            sum(h < D - 1 for h in told),
            *where,
        )
    for D in lengths:
        n, mean = 2 ** (D - 1), hidden_parity.random_order(D)
        apart = max(abs(each - hidden_parity.closed_form(D)) for each in mean)
        yield zero(
            f"random-order-{D}",
            "The random order needs as many for every hidden prefix: largest difference from (N + 1)/2 - 1/N",
            f"D = {D}, {n} oracles",
            float(apart),
            *where,
        )
        yield row(
            f"printed-bound-{D}",
            "The random order needs fewer expected queries than the printed bound 2^(D - 1): their ratio",
            f"D = {D}",
            float(mean[0]) / n,
            "<=",
            0.99,
            *where,
            form="printed",
            **noted,
        )
        worst = max(hidden_parity.fixed_order(D))
        yield row(
            f"worst-case-{D}",
            "The printed number is the worst case of a fixed order that asks all candidates: its queries",
            f"D = {D}",
            worst + 1,
            "within",
            n,
            *where,
            tolerance=0.0,
            form="corrected",
            **noted,
        )
        solved = [constrained.prefix_mass(constrained.hidden_parity(D, s).laws)[-1][0] > 0 for s in range(n)]
        yield row(
            f"always-zero-{D}",
            "Oracles for which the string 0^D, which is even, has positive probability",
            f"D = {D}, {n} oracles",
            sum(solved),
            "within",
            1,
            "2",
            BOUND,
            "Remark 3.5.1",
            tolerance=0.0,
        )


def _stuck(lengths: list[int]) -> Iterator[dict[str, Any]]:
    noted = {"erratum": "verifier-scan"}
    for D in lengths:
        n = 2 ** (D - 1)
        tasks = [constrained.hidden_parity(D, hidden) for hidden in range(n)]
        stuck = [tokenwise.action_level_law(task.laws, task.verifier())[1] for task in tasks]
        where, size = ("2", STUCK), f"D = {D}, {n} oracles"
        yield zero(
            f"stuck-{D}",
            "Probability that tokenwise rejection with the verifier of A never ends, minus 1 - 1/N",
            size,
            largest(abs(share - (1 - 1 / n)) for share in stuck),
            *where,
            "Definition 3.1.5, Theorem 3.1.1",
        )
        calls = [tokenwise.action_level_calls(task.laws, task.verifier(aware=True)) for task in tasks]
        yield zero(
            f"aware-{D}",
            "Expected calls with a verifier that knows the oracle, minus 2 (D - 1) + 1",
            size,
            largest(abs(mean - (2 * D - 1)) for mean in calls),
            *where,
            "Definition 3.1.3, Theorem 3.1.1",
        )
        for name, aware in (("plain", False), ("aware", True)):
            found = [tokenwise.scan(task.verifier(aware), 2)[0] for task in tasks]
            possible = [tokenwise.string_mass(task.laws)[string] > 0 for task, string in zip(tasks, found, strict=True)]
            yield row(
                f"scan-{name}-{D}",
                "Share of oracles that can give the string which a scan of the verifier "
                + ("that knows the oracle finds" if aware else "of Definition 3.1.3 finds"),
                size,
                sum(possible) / n,
                "within" if aware else "<=",
                1.0 if aware else 0.5,
                *where,
                "section 3.1.3, Definition 3.1.2",
                tolerance=0.0 if aware else None,
                form="corrected" if aware else "printed",
                **noted,
            )


def _knapsacks(rng: np.random.Generator, count: int) -> Iterator[dict[str, Any]]:
    differ, asked, apart, above, below, wrong, failed = 0, [], [], [], [], 0, 0
    for _ in range(count):
        weights = rng.integers(1, HEAVIEST + 1, rng.integers(2, 9)).tolist()
        c = int(rng.integers(0, sum(weights) + 2))
        task, values = constrained.knapsack(weights, c), constrained.knapsack_verifier(weights, c)
        differ += sum(int((a != b).sum()) for a, b in zip(task.verifier(), values, strict=True))
        D, (found, calls) = len(weights), tokenwise.scan(values, 2)
        asked.append(calls / (2 * D))
        if not values[0][0]:
            failed += 1
            wrong += int(found != tokenwise.FAILED or task.members.any())
            continue
        wrong += int(found == tokenwise.FAILED or not task.members[found])
        expected = tokenwise.action_level_calls(task.laws, values)
        apart.append(abs(expected - tokenwise.enumerated_calls(task, values)))
        above.append(expected / (2 * D))
        below.append(expected / D)
    where, size = ("3", PROGRAM), f"{count} knapsacks of 2 to 8 items, {failed} of them without a solution"
    yield zero(
        "program",
        "Prefixes of which the dynamic program over suffix sums says otherwise than the enumeration",
        size,
        differ,
        *where,
        "section 3.5.1, Definition 3.1.3",
    )
    yield zero(
        "calls",
        "Expected calls of tokenwise rejection minus D and the expected positions with one completable child",
        size,
        largest(apart),
        *where,
        "Definition 3.1.5",
        bound=1e-10,
    )
    yield row(
        "calls-most", "Expected calls over 2 D, largest", size, largest(above), "<=", 1, *where, "Definition 3.1.5"
    )
    yield row(
        "calls-least", "Expected calls over D, smallest", size, smallest(below), ">=", 1, *where, "Definition 3.1.5"
    )
    most = "What a scan asks of the verifier over |Sigma| D, largest"
    yield row("scan-most", most, size, largest(asked), "<=", 1, *where, "section 3.1.3")
    yield zero(
        "scan-wrong", "Scans that miss a solution, or do not FAIL without one", size, wrong, *where, "section 3.1.3"
    )


def _superincreasing(rng: np.random.Generator, items: int, count: int) -> Iterator[dict[str, Any]]:
    mismatches, pairs = 0, 0
    for _ in range(count):
        weights: list[int] = []
        while len(weights) < items:  # at least the sum before, as printed: equality is allowed
            weights.append(sum(weights) + int(rng.integers(0 if weights else 1, 4)))
        sums = constrained.reachable(weights)[0]
        for c in range(sum(weights) + 2):
            taken = constrained.greedy(weights, c)
            mismatches += (taken is not None) != bool(sums >> c & 1)
            mismatches += taken is not None and int(np.dot(taken, weights)) != c
            pairs += 1
    yield zero(
        "superincreasing",
        "Pairs of superincreasing weights and a sum of which the greedy algorithm decides wrongly",
        f"{pairs} pairs, {items} items",
        mismatches,
        "3",
        GREEDY,
        "section 3.5.1",
    )


def _bias(lengths: list[int]) -> Iterator[dict[str, Any]]:
    noted = {"erratum": "verifier-proposition-3-1-2"}
    for D in lengths:
        task, n = constrained.not_ones(D), 2**D
        law, _ = tokenwise.action_level_law(task.laws, task.verifier())
        where, size = ("4", LAW, "Proposition 3.1.2"), f"D = {D}"
        printed = np.full(n, 1 / n)
        printed[-2] = 2 / n  # 1^(D - 1) 0; "all other strings" have 2^-D, and 1^D is one
        yield row(
            f"mass-printed-{D}",
            "With the printed masses, 2^-D for all other strings, 1^D included, they sum to more than 1",
            size,
            printed.sum(),
            "beyond",
            1.0,
            *where,
            tolerance=1e-9,
            form="printed",
            **noted,
        )
        corrected = np.where(task.members, printed, 0)
        yield zero(
            f"mass-{D}",
            "The law is 2^-(D - 1) for 1^(D - 1) 0 and 2^-D for every other member of A: largest difference",
            size,
            largest(abs(law - corrected)),
            *where,
            form="corrected",
            **noted,
        )
        distance = tokenwise.total_variation(law, task.target)
        yield zero(
            f"distance-{D}",
            "Total variation distance from the restricted distribution minus (2^D - 2)/(2^D (2^D - 1))",
            size,
            abs(distance - (n - 2) / (n * (n - 1))),
            *where,
        )


def _coin() -> Iterator[dict[str, Any]]:
    where = ("5", COIN, "Algorithm 1")
    settings = [(eta, Q, B) for eta in COIN_ERRORS for Q in range(COIN_QUOTA + 1) for B in (1, 2, 4)]
    for refill in coin.REFILLS:
        apart = {"accuracy": 0.0, "calls": 0.0}
        for eta, Q, B in settings:
            right, calls = walked(COIN_LENGTH, eta, Q, B, refill)
            apart["accuracy"] = largest(apart["accuracy"], abs(right - coin.accuracy(COIN_LENGTH, eta, Q, B, refill)))
            apart["calls"] = largest(apart["calls"], abs(calls - coin.calls(COIN_LENGTH, eta, Q, B, refill)))
        for name, value in apart.items():
            yield zero(
                f"coin-{refill}-{name}",
                f"{name.capitalize()} by the closed form minus that over all draws, {refill} refill: largest",
                f"D = {COIN_LENGTH}, {len(settings)} settings of eta, Q, B",
                value,
                *where,
            )


def walked(length: int, eta: float, quota: int, stride: int, refill: str) -> tuple[float, float]:
    """Return accuracy and expected calls of Algorithm 1 on the coin by following its lines over all sequences
    of draws."""

    def follow(string: tuple[bool, ...], left: int) -> tuple[float, float]:
        if len(string) == length:
            return float(not any(string)), 0.0
        right, calls = 0.0, 0.0
        for error, chance in ((True, eta), (False, 1 - eta)):
            longer, rest, made = (*string, error), left, 1
            if rest > 0 and any(longer):
                erased = min(stride, len(longer))
                longer, rest = longer[: len(longer) - erased], rest - 1
                if refill == coin.ARGMAX:
                    longer, made = (*longer, *[False] * erased), made + erased
            won, more = follow(longer, rest)
            right, calls = right + chance * won, calls + chance * (made + more)
        return right, calls

    return follow((), quota)
