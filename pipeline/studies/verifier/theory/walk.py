"""Algorithm 2 in exact numbers: what its stationary law, its leaves and its speed are (Li 2025, section
3.3.1).

Chapter 5.6 to 5.10. Random trees are those of `vgb.random_tree`; what tables hold of every tree
(`analysis.vgb`) is not repeated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.extremes import largest, smallest
from pipeline.kit.streams import stream
from pipeline.languages import constrained
from pipeline.languages.constrained import Array
from pipeline.studies.verifier.checks import COUNTS, LAZY, LEAVES, OUTPUTS, POINTWISE, SPEED, row, zero
from pipeline.studies.verifier.exact import tokenwise, vgb
from pipeline.studies.verifier.exact.vgb import Tree
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.verifier.params_theory import WalkCheck

NOT_LAZY = 1000  # steps after which a walk that never stays is as far as ever

Trees = dict[tuple[int, int, float], list[tuple[Tree, Array]]]


def check(entry: WalkCheck, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` that decide parts of claims 6 and 7."""
    trees: Trees = {}
    for shape in entry.shapes:
        for eps in entry.errors:
            A, H = shape.actions, shape.horizon
            streams = [stream(seed, entry.study, key, A, H, f"{eps:g}", i) for i in range(entry.seeds)]
            trees[A, H, eps] = [vgb.random_tree(rng, A, H, eps) for rng in streams]
    rng = stream(seed, entry.study, key, "any values")
    checks = [
        *_leaves(trees, rng),
        *_conductances(trees),
        *_outputs(trees),
        *_lazy(trees),
        *_counts(stream(seed, entry.study, key, "counts")),
        *_pointwise(trees),
    ]
    return theory.rows(entry.study, key, "Li 2025, section 3.3.1", checks)


def _size(actions: int, horizon: int, eps: float, count: int) -> str:
    return f"A = {actions}, H = {horizon}, eps = {eps:g}, {count} trees"


def _name(actions: int, horizon: int, eps: float) -> str:
    return f"{actions}-{horizon}-{eps:g}"


def _leaves(trees: Trees, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    where = ("6", LEAVES, "section 3.3.1, property (3)")
    for (A, H), group in {key[:2]: made for key, made in trees.items()}.items():
        exact, plain, reversible = [], [], []
        for tree, tilt in group:
            values = tuple(rng.gamma(0.5, size=A**h) + 1e-3 for h in range(H))
            free = Tree(tree.laws, (*values, tilt))
            exact.append(tokenwise.total_variation(free.leaf_law(), vgb.target_law(tree.laws, tilt)))
            pi, P = np.concatenate(free.stationary()), free.transitions()
            reversible.append(largest(abs(pi[:, None] * P - (pi[:, None] * P).T)))
            guess = rng.gamma(1, size=A**H)
            own = Tree(tree.laws, (*values, guess))
            plain.append(tokenwise.total_variation(own.leaf_law(), vgb.target_law(tree.laws, guess)))
        size = f"A = {A}, H = {H}, {len(group)} trees with arbitrary values"
        yield zero(
            f"any-values-{A}-{H}",
            "With the true tilt at the leaves their law is pi*, whatever the values at inner nodes: distance",
            size,
            largest(exact),
            *where,
        )
        yield zero(
            f"no-tilt-{A}-{H}",
            "Without it the law of the leaves is proportional to pi_ref V: distance",
            size,
            largest(plain),
            *where,
        )
        yield zero(
            f"balance-{A}-{H}",
            "The printed transitions are in detailed balance with the closed form: largest difference",
            size,
            largest(reversible),
            *where,
        )


def _conductances(trees: Trees) -> Iterator[dict[str, Any]]:
    for (A, H, eps), group in trees.items():
        if group[0][0].nodes > vgb.SUBSETS:
            continue
        found = [tree.conductance() for tree, _ in group]
        where, size = ("6", SPEED, "section 3.3.1, property (1)"), _size(A, H, eps, len(group))
        yield row(
            f"conductance-{_name(A, H, eps)}",
            "Conductance by all sets of nodes over 1/(2 (2H - 1) (1 + eps)^2), smallest",
            size,
            smallest(found) / vgb.conductance_bound(H, eps),
            ">=",
            1 - 1e-12,
            *where,
        )
        cheeger = [tree.gap() / (phi**2 / 2) for (tree, _), phi in zip(group, found, strict=True)]
        yield row(
            f"cheeger-{_name(A, H, eps)}",
            "Spectral gap over half the square of the conductance, smallest",
            size,
            smallest(cheeger),
            ">=",
            1 - 1e-12,
            *where,
        )
    exact = Tree(constrained.uniform(2, 3), tuple(np.ones(2**h) for h in range(4)))
    yield row(
        "conductance-attained",
        "The bound is attained: conductance of the binary tree of horizon 3 with all values 1",
        "A = 2, H = 3",
        exact.conductance(),
        "within",
        vgb.conductance_bound(3, 0),
        "6",
        SPEED,
        "section 3.3.1, property (1)",
        tolerance=1e-12,
    )


def _outputs(trees: Trees) -> Iterator[dict[str, Any]]:
    """Yield a row on the rule y^(i): after T = 20/gap steps the distance of its law halves when T doubles."""
    for (A, H, eps), group in trees.items():
        tree = group[0][0]
        steps, pi = int(np.ceil(20 / tree.gap())), np.concatenate(tree.stationary())
        far = [tokenwise.total_variation(tree.laws_after(T)[1], pi) for T in (steps, 2 * steps)]
        yield row(
            f"uniform-node-{_name(A, H, eps)}",
            "Distance of y^(i), i uniform on 1 .. 2T, from the stationary law, over that with T",
            f"{_size(A, H, eps, 1)}, T = {steps}",
            far[1] / far[0],
            "within",
            0.5,
            "6",
            OUTPUTS,
            "Algorithm 2, line 9",
            tolerance=1e-6,
        )


def _lazy(trees: Trees) -> Iterator[dict[str, Any]]:
    where = ("6", LAZY, "section 3.3.1, footnote 12")
    for (A, H, eps), group in trees.items():
        tree = group[0][0]
        P, pi = tree.transitions(), np.concatenate(tree.stationary())
        restless = 2 * P - np.eye(len(P))  # every step moves
        size = _size(A, H, eps, 1)
        yield zero(
            f"stationary-without-{_name(A, H, eps)}",
            "A walk that never stays has a stationary law as well, the same: largest |pi P - pi|",
            size,
            largest(abs(pi @ restless - pi)),
            *where,
            erratum="verifier-footnote-12",
            form="printed",
        )
        law = np.linalg.matrix_power(restless, NOT_LAZY)[0]
        yield row(
            f"no-limit-without-{_name(A, H, eps)}",
            f"What laziness is needed for: without it the distance from that law after {NOT_LAZY} steps",
            size,
            tokenwise.total_variation(law, pi),
            ">=",
            0.25,
            *where,
            erratum="verifier-footnote-12",
            form="corrected",
        )


def _counts(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    task = constrained.knapsack(vgb.WEIGHTS, vgb.CAPACITY)
    shares, D = vgb.exact_values(task.laws, task.members.astype(float)), len(vgb.WEIGHTS)
    where = ("6", COUNTS, "section 3.3.1, footnote 14")
    for factor in (1.0, 1.5):
        values = vgb.perturbed(shares, tuple(factor ** rng.choice([-1.0, 1.0], 2**h) for h in range(1, D)))
        counts = tuple(value * 2.0 ** (D - h) for h, value in enumerate(values))
        tree = Tree(task.laws, values)
        size = f"knapsack of {D} items, {int(task.members.sum())} solutions, counts wrong by {factor:g}"
        yield zero(
            f"transitions-{factor:g}",
            "Transition probabilities of Algorithm 2 minus those of the walk that counts solutions, largest",
            size,
            largest(abs(tree.transitions() - vgb.sinclair_jerrum(counts, 2))),
            *where,
        )
        yield zero(
            f"solutions-{factor:g}",
            "Both are uniform over the solutions at the leaves: distance",
            size,
            tokenwise.total_variation(tree.leaf_law(), task.target),
            *where,
        )


def _pointwise(trees: Trees) -> Iterator[dict[str, Any]]:
    for (A, H, eps), group in trees.items():
        ratios = []
        for tree, tilt in group:
            law, _ = tokenwise.action_level_law(tree.laws, tree.values)
            ratios.append(largest(abs(np.log(law / vgb.target_law(tree.laws, tilt)))))
        yield row(
            f"pointwise-{_name(A, H, eps)}",
            "|log(p/pi*)| of action-level rejection minus 2 (H - 1) log(1 + eps), largest",
            _size(A, H, eps, len(group)),
            largest(ratios) - 2 * (H - 1) * np.log1p(eps),
            "<=",
            1e-10,
            "7",
            POINTWISE,
            "section 3.3",
        )
