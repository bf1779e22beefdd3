"""Calls of the oracle with and without a verifier, simulated beside what they are in exact numbers (section
3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.studies.verifier.exact import coin, hidden_parity, tokenwise
from pipeline.studies.verifier.exact.tokenwise import FAILED, Outcome
from pipeline.studies.verifier.exact.vgb import Tree
from schemas.verifier.theory_tables import AWARE, BLOCKS, FIXED, PLAIN, RANDOM, REJECTION, SAMPLING, SCAN, TOKENWISE

NEVER = 10**9  # calls after which a trial would be given up that always ends
HEAVIEST = 50  # weight of a random knapsack
Rows = Iterator[dict[str, Any]]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of calls, hidden parity, knapsacks, the bias of tokenwise rejection, and the coin."""
    entry = context.entry

    def rng(*names: str | int) -> np.random.Generator:
        return stream(context.seed, context.study, context.experiment, *names)

    rows = {
        "theory_queries": _powers(rng, entry),
        "parity_minimax": _parity(rng, entry),
        "knapsack_instances": _knapsacks(rng, entry),
        "trs_distribution": _bias(entry),
        "coin_backtrack": _coin(rng, entry),
        "coin_frontier": _frontier(entry),
    }
    return {name: pl.DataFrame(list(made), infer_schema_length=None) for name, made in rows.items()}


def _powers(rng: Any, entry: Any) -> Rows:
    """Yield the rows of Proposition 3.1.1."""
    for D in entry.lengths:
        task = constrained.zeros(D)
        values = task.verifier()
        drawn = tokenwise.simulate_rejection(rng("power", D, "rejection"), task, entry.trials, NEVER)
        one = tokenwise.simulate_tokenwise(rng("power", D, "tokenwise"), task.laws, values, entry.trials, NEVER)
        _, asked = tokenwise.scan(values, task.symbols)
        by_algorithm = {
            REJECTION: (drawn.mean, drawn.error, tokenwise.rejection_calls(task), drawn.mean / D),
            TOKENWISE: (one.mean, one.error, tokenwise.action_level_calls(task.laws, values), one.mean),
            SCAN: (0.0, 0.0, 0.0, float(asked)),
        }
        for algorithm, (mean, error, expected, verified) in by_algorithm.items():
            yield {
                "D": D,
                "algorithm": algorithm,
                "trials": entry.trials,
                "mean_calls": mean,
                "se_calls": error,
                "expected_calls": expected,
                "verifier_calls": verified,
            }


def _parity(rng: Any, entry: Any) -> Rows:
    """Yield the rows of Theorem 3.1.1; simulated trials are spread over all oracles alike."""
    for D in entry.hidden:
        n = 2 ** (D - 1)
        closed, fixed = float(hidden_parity.closed_form(D)), hidden_parity.fixed_order(D)
        random = [float(mean) for mean in hidden_parity.random_order(D)]
        enumerated = {FIXED: [float(each) for each in fixed], RANDOM: random}
        for searcher, means in enumerated.items():
            yield _searcher(D, searcher, 0, float(np.mean(means)), 0.0, closed) | {"worst_queries": max(means)}
        each = -(-entry.trials // n)
        found: dict[str, list[Outcome]] = {SAMPLING: [], PLAIN: [], AWARE: []}
        for hidden in range(n):
            task = constrained.hidden_parity(D, hidden)
            found[SAMPLING].append(_sampled(rng(D, SAMPLING, hidden), task, each))
            for searcher, aware in ((PLAIN, False), (AWARE, True)):
                values, guard = task.verifier(aware), NEVER if aware else entry.guard
                walked = tokenwise.simulate_tokenwise(rng(D, searcher, hidden), task.laws, values, each, guard)
                found[searcher].append(walked)
        stuck = 1 - 1 / n
        closed_forms = {SAMPLING: float(D * n), AWARE: 2.0 * D - 1, PLAIN: D / n + stuck * entry.guard}
        for searcher, outcomes in found.items():
            whole = Outcome(
                np.concatenate([outcome.calls for outcome in outcomes]),
                np.concatenate([outcome.strings for outcome in outcomes]),
            )
            row = _searcher(D, searcher, len(whole.calls), whole.mean, whole.error, closed_forms[searcher])
            guarded = searcher == PLAIN
            yield row | {
                "timeout_share": whole.failed,
                "timeout_closed": stuck if guarded else 0.0,
                "max_calls": entry.guard if guarded else None,
            }


def _sampled(rng: np.random.Generator, task: constrained.Task, trials: int) -> Outcome:
    return tokenwise.simulate_rejection(rng, task, trials, NEVER)


def _searcher(D: int, searcher: str, trials: int, mean: float, error: float, closed: float) -> dict[str, Any]:
    return {
        "D": D,
        "searcher": searcher,
        "trials": trials,
        "mean_queries": mean,
        "se_queries": error,
        "closed_form": closed,
        "worst_queries": None,
        "printed_bound": 2.0 ** (D - 1),
        "timeout_share": 0.0,
        "timeout_closed": 0.0,
        "max_calls": None,
    }


def _knapsacks(rng: Any, entry: Any) -> Rows:
    """Yield the rows of Theorem 3.1.2: for each D two knapsacks at random, a superincreasing one, and one
    without a solution."""
    for D in entry.items:
        source = rng("knapsack", D)
        for kind in ("random 1", "random 2", "superincreasing", "unsolvable"):
            weights, c = _instance(source, D, kind)
            yield _solved(rng, f"{kind}, D = {D}", weights, c, entry.trials)


def _instance(source: np.random.Generator, D: int, kind: str) -> tuple[list[int], int]:
    """Return weights and a sum, that of a random subset; where no subset is to have it all weights are even
    and it is odd."""
    if kind == "superincreasing":
        weights: list[int] = []
        while len(weights) < D:
            weights.append(sum(weights) + int(source.integers(0 if weights else 1, 4)))
    else:
        weights = source.integers(1, HEAVIEST + 1, D).tolist()
    if kind == "unsolvable":
        weights = [2 * weight for weight in weights]
    c = int(np.dot(weights, source.integers(0, 2, D)))
    return weights, c + 1 if kind == "unsolvable" else c


def _solved(rng: Any, instance: str, weights: list[int], c: int, trials: int) -> dict[str, Any]:
    task, values = constrained.knapsack(weights, c), constrained.knapsack_verifier(weights, c)
    D, solutions = len(weights), int(task.members.sum())
    found, asked = tokenwise.scan(values, 2)
    one = tokenwise.simulate_tokenwise(rng(instance, "tokenwise"), task.laws, values, trials, NEVER)
    row: dict[str, Any] = dict.fromkeys(("rs_mean", "rs_se", "rs_expected", "trs_mean", "trs_se", "trs_expected"))
    if solutions:
        drawn = tokenwise.simulate_rejection(rng(instance, "rejection"), task, trials, NEVER)
        expected = tokenwise.action_level_calls(task.laws, values)
        row = {
            "rs_mean": drawn.mean,
            "rs_se": drawn.error,
            "rs_expected": D * 2**D / solutions,
            "trs_mean": one.mean,
            "trs_se": one.error,
            "trs_expected": expected,
        }
    superincreasing = constrained.is_superincreasing(weights)
    taken = constrained.greedy(weights, c)
    return row | {
        "instance": instance,
        "D": D,
        "max_weight": max(weights),
        "density": constrained.density(weights),
        "c": c,
        "n_solutions": solutions,
        "superincreasing": superincreasing,
        "trials": trials,
        "scan_calls": asked,
        "scan_ok": bool(task.members[found]) if found != FAILED else not solutions,
        "greedy_ok": ((taken is not None) == bool(solutions)) if superincreasing else None,
        "status": "FAIL" if found == FAILED and one.failed == 1 else "OK",
    }


def _bias(entry: Any) -> Rows:
    """Yield the rows of Proposition 3.1.2, with the walk of Algorithm 2 on the same verifier beside it
    (VGB-PROP)."""
    for D in entry.lengths:
        task = constrained.not_ones(D)
        tree = Tree(task.laws, task.verifier())
        law, _ = tokenwise.action_level_law(tree.laws, tree.values)
        yield {
            "D": D,
            "tv_exact": tokenwise.total_variation(law, task.target),
            "tv_closed": (2**D - 2) / (2**D * (2**D - 1)),
            "tv_first_leaf": tokenwise.total_variation(tree.first_leaf_law(), task.target),
            "tv_stationary": tokenwise.total_variation(tree.leaf_law(), task.target),
            "leaf_mass": float(tree.stationary()[-1].sum()),
        }


def _coin(rng: Any, entry: Any) -> Rows:
    """Yield the rows of TOY-COIN."""
    D, eta, n = entry.coin_length, entry.coin_error, entry.coins
    for Q in entry.quotas:
        for B in entry.strides:
            for refill in coin.REFILLS:
                source = rng("coin", Q, B, refill)
                right, calls, erased = coin.simulate(source, n, D, eta, Q, B, refill)
                closed = coin.accuracy(D, eta, Q, B, refill)
                yield {
                    "eta": eta,
                    "D": D,
                    "Q": Q,
                    "B": B,
                    "refill": refill,
                    "n": n,
                    "acc_sim": float(right.mean()),
                    "acc_closed": closed,
                    "se_acc": float(np.sqrt(closed * (1 - closed) / n)),
                    "c_sim": float(calls.mean()),
                    "c_closed": coin.calls(D, eta, Q, B, refill),
                    "se_c": float(calls.std(ddof=1) / np.sqrt(n)),
                    "unbalanced": int((calls != D + erased).sum()),
                }


def _frontier(entry: Any) -> Rows:
    """Yield the rows of TOY-FRONT."""
    D, eta = entry.coin_length, entry.coin_error
    same: dict[str, Any] = {"eta": eta, "D": D, "Q": None, "B": None, "block": None, "n": None}
    for refill in coin.REFILLS:
        for Q in entry.quotas:
            for B in entry.strides:
                yield same | {
                    "method": f"Algorithm 1, {refill}",
                    "Q": Q,
                    "B": B,
                    "accuracy": coin.accuracy(D, eta, Q, B, refill),
                    "calls": coin.calls(D, eta, Q, B, refill),
                }
    for block in entry.blocks:
        for n in entry.candidates:
            accuracy = coin.block_accuracy(D, eta, block, n)
            yield same | {"method": BLOCKS, "block": block, "n": n, "accuracy": accuracy, "calls": float(n * D)}
