"""The walk of Algorithm 2 on trees that are enumerated (section 3.3.1): laws, speed, and what errors do to
it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.languages.constrained import Array
from pipeline.studies.verifier.exact import tokenwise, vgb
from pipeline.studies.verifier.exact.vgb import Tree
from pipeline.studies.verifier.exact.walks import Ints, Walks, frequencies
from schemas.verifier.theory_tables import ACTIONS, BIAS, FIRST, IID, LAST, UNIFORM

SIMULATED = (3, 3, 0.5)  # actions, horizon and error of the tree on which walks are taken (VGB-SIM): 27 leaves
ERROR = 1.0  # of the tree with biased values that the page shows
SMALL, SUM = (3, 1, 2, 1), 4  # a knapsack that the page shows, with three solutions
Rows = Iterator[dict[str, Any]]


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``vgb_chain``, ``vgb_amplification``, ``vgb_sim``, ``vgb_sj`` and ``vgb_nodes``."""
    entry = context.entry

    def rng(*names: str | int) -> np.random.Generator:
        return stream(context.seed, context.study, context.experiment, *names)

    rows = {
        "vgb_chain": _chain(rng, entry),
        "vgb_amplification": _amplified(rng, entry),
        "vgb_sim": _simulated(rng, entry),
        "vgb_sj": _counts(rng),
        "vgb_nodes": _nodes(),
    }
    return {name: pl.DataFrame(list(made), infer_schema_length=None) for name, made in rows.items()}


def _chain(rng: Any, entry: Any) -> Rows:
    for shape in entry.shapes:
        for eps in entry.errors:
            for seed in range(entry.seeds):
                A, H = shape.actions, shape.horizon
                tree, tilt = vgb.random_tree(rng("chain", A, H, f"{eps:g}", seed), A, H, eps)
                yield {"A": A, "H": H, "eps": eps, "seed": seed} | _measured(tree, tilt, eps, entry)


def _measured(tree: Tree, tilt: Array, eps: float, entry: Any) -> dict[str, Any]:
    """Return what the closed forms say of a tree, and what its matrix of transitions says."""
    H, P, pi = tree.horizon, tree.transitions(), np.concatenate(tree.stationary())
    target = vgb.target_law(tree.laws, tilt)
    flow = pi[:, None] * P
    rejection, _ = tokenwise.action_level_law(tree.laws, tree.values)
    first, absorbed = tree.first_leaf_law(), tree.absorbed()
    return {
        "stat_residual": float(np.abs(pi @ P - pi).max()),
        "rev_residual": float(np.abs(flow - flow.T).max()),
        "tv_leaf": tokenwise.total_variation(tree.leaf_law(), target),
        "leaf_mass": float(tree.stationary()[-1].sum()),
        "leaf_mass_bound": vgb.leaf_mass_bound(H, eps),
        "conductance": tree.conductance() if tree.nodes <= vgb.SUBSETS else None,
        "conductance_bound": vgb.conductance_bound(H, eps),
        "gap": tree.gap(),
        "gap_bound": vgb.gap_bound(H, eps),
        "tmix_001": tree.mixing_time(entry.tolerance, entry.most_steps),
        "tmix_bound": int(vgb.mixing_bound(H, eps, float(pi[0]), entry.tolerance)),
        "tv_alrs": tokenwise.total_variation(rejection, target),
        "tv_first": tokenwise.total_variation(first, target),
        "first_residual": float(np.abs(first - absorbed[0]).max()),
        "steps_first": absorbed[1],
        "steps_first_ref": 2.0 * H**2,
    }


def _amplified(rng: Any, entry: Any) -> Rows:
    """Yield the rows of both families: bias by enumeration and, for long horizons, by its recursion; iid by
    enumeration."""
    for eps in entry.amplified:
        for H in (*entry.horizons, *entry.long_horizons):
            short = H in entry.horizons
            yield {
                "family": BIAS,
                "eps": eps,
                "H": H,
                "draw": 0,
                "tv_alrs": vgb.biased_distance(H, eps),
                "kl_alrs": vgb.fair_divergence(vgb.biased_action_law(H, eps)),
                "kl_first": vgb.fair_divergence(vgb.biased_first_leaf_law(H, eps)),
            } | (_apart(vgb.biased(H, eps), "tv_first", "tv_stat") if short else {"tv_first": None, "tv_stat": None})
        for H in entry.horizons:
            for draw in range(entry.draws):
                tree = vgb.signed(rng("iid", f"{eps:g}", H, draw), H, eps)
                yield {"family": IID, "eps": eps, "H": H, "draw": draw} | _apart(tree)


def _apart(tree: Tree, *only: str) -> dict[str, float]:
    """Return how far the laws of a tree with equal leaves are from uniform, all of it or some."""
    fair = np.full(tree.actions**tree.horizon, float(tree.actions) ** -tree.horizon)
    rejection, first = tokenwise.action_level_law(tree.laws, tree.values)[0], tree.first_leaf_law()
    found = {
        "tv_alrs": tokenwise.total_variation(rejection, fair),
        "tv_first": tokenwise.total_variation(first, fair),
        "tv_stat": tokenwise.total_variation(tree.leaf_law(), fair),
        "kl_alrs": tokenwise.divergence(fair, rejection),
        "kl_first": tokenwise.divergence(fair, first),
    }
    return {name: found[name] for name in only or found}


def _simulated(rng: Any, entry: Any) -> Rows:
    """Yield a row for each output rule of Algorithm 2, and for action-level rejection, on one tree."""
    tree, tilt = vgb.random_tree(rng("walks", "tree"), *SIMULATED)
    walks, n, T, leaves = Walks(tree), entry.walks, entry.steps, tree.actions**tree.horizon
    ends, mean = (law[-leaves:] / law[-leaves:].sum() for law in tree.laws_after(T))
    rejection, _ = tokenwise.action_level_law(tree.laws, tree.values)
    most = max(float(value.max()) for value in tree.values[1:])
    drawn: dict[str, tuple[Ints, Array, int | None]] = {
        LAST: (walks.last(rng(LAST), n, T), ends, T),
        UNIFORM: (walks.uniform(rng(UNIFORM), n, T), mean, T),
        FIRST: (walks.first_leaf(rng(FIRST), n)[0], tree.first_leaf_law(), None),
        ACTIONS: (
            tokenwise.simulate_tokenwise(rng(ACTIONS), tree.laws, tree.values, n, 10**9, most).strings,
            rejection,
            None,
        ),
    }
    for sampler, (found, law, steps) in drawn.items():
        counted = np.bincount(found, minlength=leaves)
        yield {
            "sampler": sampler,
            "n": n,
            "steps": steps,
            "tv_emp": tokenwise.total_variation(frequencies(found, leaves), law),
            "tv_tol": float(3 * np.sqrt(leaves / (2 * np.pi * n))),
            "chi2_p": float(stats.chisquare(counted, law * n).pvalue),
            "tv_target": tokenwise.total_variation(law, vgb.target_law(tree.laws, tilt)),
        }


def _counts(rng: Any) -> Rows:
    """Yield the rows of VGB-SJ and VGB-KNAP: a knapsack with exact counts, and with counts that are wrong."""
    task = constrained.knapsack(vgb.WEIGHTS, vgb.CAPACITY)
    D, shares = len(vgb.WEIGHTS), vgb.exact_values(task.laws, task.members.astype(float))
    for factor in (1.0, 1.5, 3.0):
        source = rng("counts", f"{factor:g}")
        values = vgb.perturbed(shares, tuple(factor ** source.choice([-1.0, 1.0], 2**h) for h in range(1, D)))
        counts = tuple(value * 2.0 ** (D - h) for h, value in enumerate(values))
        tree = Tree(task.laws, values)
        yield {
            "instance": f"weights {', '.join(map(str, vgb.WEIGHTS))}; sum {vgb.CAPACITY}",
            "D": D,
            "n_solutions": int(task.members.sum()),
            "factor": factor,
            "max_abs_diff": float(np.abs(tree.transitions() - vgb.sinclair_jerrum(counts, 2)).max()),
            "tv_leaf": tokenwise.total_variation(tree.leaf_law(), task.target),
            "tv_first": tokenwise.total_variation(tree.first_leaf_law(), task.target),
        }


def instances() -> dict[str, tuple[str, Tree]]:
    """Return the trees that the page shows, by name, with their titles."""
    task = constrained.not_ones(3)
    knapsack = constrained.knapsack(SMALL, SUM)
    laws = constrained.uniform(2, 3)
    # The verifier accepts 01 although neither of its leaves is right.
    accepted = tuple(np.ones(2**h) for h in range(3))
    leaves = np.array([1.0, 1, 0, 0, 1, 0, 1, 1])
    return {
        "proposition": ("Proposition 3.1.2, D = 3: some bit is 0", Tree(task.laws, task.verifier())),
        "dead-end": ("A verifier that errs: 01 cannot be completed", Tree(laws, (*accepted, leaves))),
        "biased": ("Values wrong by a factor of 2, H = 4", vgb.biased(4, ERROR)),
        "knapsack": (
            f"Knapsack {', '.join(map(str, SMALL))}: subsets of sum {SUM}",
            Tree(knapsack.laws, constrained.knapsack_verifier(SMALL, SUM)),
        ),
    }


def _nodes() -> Rows:
    for name, (title, tree) in instances().items():
        A = tree.actions
        tokens, _ = tokenwise.action_level_law(tree.laws, tree.values)
        target, first = vgb.target_law(tree.laws, tree.values[-1]), tree.first_leaf_law()
        below = {"target": target, "first_leaf": first, "tokenwise": tokens}
        for h, level in enumerate(tree.stationary()):
            laws = {law: values.reshape(A**h, -1).sum(1) for law, values in below.items()}
            for i, mass in enumerate(level.tolist()):
                yield {
                    "instance": name,
                    "title": title,
                    "node": tree.first(h) + i,
                    "parent": tree.first(h - 1) + i // A if h else -1,
                    "depth": h,
                    "label": np.base_repr(i, A).rjust(h, "0") if h else "",
                    "chance": float(tree.laws[h - 1][i // A, i % A]) if h else 1.0,
                    "value": float(tree.values[h][i]),
                    "stationary": mass,
                } | {law: min(float(values[i]), 1.0) for law, values in laws.items()}
