"""VGB, the lazy walk on the tree of prefixes of Algorithm 2, in exact numbers (Li 2025, section 3.3.1).

A prefix of h actions is a number, as in `pipeline.languages.constrained`. Base model ``laws`` are (A^h, A)
for h = 0 .. H - 1, values V are (A^h,) for h = 0 .. H; that of the empty prefix is never used. With f(v) =
pi_ref(v) V(v) the walk is that on a tree whose edge above v has conductance f(v), from which all that follows
is a closed form. What the closed forms say is computed a second way from the printed transition probabilities
(`transitions`).

Nodes of a tree are counted by depth, then by number: the root is node 0, the leaves are the last A^H.

>>> tree = Tree(uniform(2, 2), (np.ones(1), np.ones(2), np.ones(4)))
>>> tree.transitions()[0].tolist()
[0.5, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]
>>> [level.tolist() for level in tree.stationary()]
[[0.25], [0.25, 0.25], [0.0625, 0.0625, 0.0625, 0.0625]]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.special
from numpy.typing import NDArray

from pipeline.languages.constrained import Array, Levels, check_laws, prefix_mass, uniform

# What a tree can have at most where a matrix of all its nodes is made
LARGEST = 4096
WEIGHTS, CAPACITY = (3, 5, 7, 2, 8, 1), 10  # a knapsack with four solutions
SUBSETS = 18  # nodes of which all subsets are gone through


@dataclass(frozen=True)
class Tree:
    """The walk of Algorithm 2: a base model and an approximate value function, that of leaves being what is
    tilted by.

    Raises ValueError if they do not fit each other, a value is negative, or no leaf has both probability and
    value: Algorithm 2 cannot leave the root then, or never comes to a leaf.
    """

    laws: Levels
    values: Levels

    def __post_init__(self) -> None:
        """Refuse what is no tree."""
        check_laws(self.laws)
        shapes = [value.shape for value in self.values]
        if shapes != [(self.actions**h,) for h in range(self.horizon + 1)]:
            raise ValueError(f"values must be ({self.actions}^h,) for h = 0 .. {self.horizon}, got {shapes}")
        if any(not (value >= 0).all() for value in self.values):
            raise ValueError("a value is negative or not a number")
        if not (self.reached()[-1] > 0).any():
            raise ValueError("no leaf has both a positive value and a path of positive values: the walk must FAIL")

    @property
    def horizon(self) -> int:
        """Return H."""
        return len(self.laws)

    @property
    def actions(self) -> int:
        """Return the number of actions."""
        return self.laws[0].shape[1]

    @property
    def nodes(self) -> int:
        """Return the number of prefixes of length 0 .. H."""
        return sum(self.actions**h for h in range(self.horizon + 1))

    def first(self, depth: int) -> int:
        """Return the number of the first node of a depth."""
        return sum(self.actions**h for h in range(depth))

    def flows(self) -> Levels:
        """Return f(v) = pi_ref(v) V(v), (A^h,) for h = 0 .. H, of what the walk can reach; 0 at the root,
        which has no edge above it."""
        mass = prefix_mass(self.laws)
        return (
            np.zeros(1),
            *(m * v * r for m, v, r in zip(mass[1:], self.values[1:], self.reached()[1:], strict=True)),
        )

    def reached(self) -> Levels:
        """Return 1 for each prefix that the walk can come to: all prefixes of it have positive value and
        probability."""
        reached = [np.ones(1)]
        for law, value in zip(self.laws, self.values[1:], strict=True):
            reached.append((reached[-1][:, None] * ((law > 0) & (value.reshape(law.shape) > 0))).ravel())
        return tuple(reached)

    def stationary(self) -> Levels:
        """Return the stationary law in closed form: half the conductance of the edges at a node, over that of
        all edges."""
        flows = self.flows()
        below = [*(level.reshape(-1, self.actions).sum(1) for level in flows[1:]), np.zeros(len(flows[-1]))]
        norm = 2 * sum(float(level.sum()) for level in flows[1:])
        return tuple((above + own) / norm for above, own in zip(flows, below, strict=True))

    def leaf_law(self) -> Array:
        """Return the stationary law given that the node is a leaf, (A^H,)."""
        leaves = self.stationary()[-1]
        return leaves / leaves.sum()

    def transitions(self) -> Array:
        """Return the matrix (N, N) of the printed transition probabilities: half to stay, half over the
        neighbours by V(v) for the parent and pi_ref(a | v) V(va) for a child.

        Raises ValueError for a tree of more than `LARGEST` nodes.
        """
        if self.nodes > LARGEST:
            raise ValueError(f"a tree of {self.nodes} nodes has no matrix here, {LARGEST} at most")
        P = np.zeros((self.nodes, self.nodes))
        for h in range(self.horizon + 1):
            nodes = self.first(h) + np.arange(self.actions**h)
            if h > 0:
                parents = self.first(h - 1) + np.arange(self.actions**h) // self.actions
                P[nodes, parents] = self.values[h]
            if h < self.horizon:
                children = self.first(h + 1) + np.arange(self.actions ** (h + 1)).reshape(-1, self.actions)
                P[nodes[:, None], children] = self.laws[h] * self.values[h + 1].reshape(-1, self.actions)
        total = P.sum(1)
        moves = np.divide(P, total[:, None], out=np.zeros_like(P), where=total[:, None] > 0)
        stay = np.where(total > 0, 0.5, 1.0)  # without neighbours of positive weight a node is never left, nor entered
        return 0.5 * moves + np.diag(stay)

    # The first leaf

    def first_leaf_law(self) -> Array:
        """Return the law of the first leaf that the walk comes to, (A^H,): how a current from the root to all
        leaves splits."""
        flows = self.flows()
        conductance = np.full(len(flows[-1]), np.inf)
        shares = []
        for h in reversed(range(self.horizon)):
            with np.errstate(divide="ignore"):
                resistance = 1 / flows[h + 1] + 1 / conductance
            terms = np.where(np.isfinite(resistance), 1 / resistance, 0.0).reshape(-1, self.actions)
            conductance = terms.sum(1)
            shares.append(
                np.divide(terms, conductance[:, None], out=np.zeros_like(terms), where=conductance[:, None] > 0)
            )
        law = np.ones(1)
        for share in reversed(shares):
            law = (law[:, None] * share).ravel()
        return law

    def absorbed(self) -> tuple[Array, float]:
        """Return the law of the first leaf and the expected number of steps to it, by linear equations on
        `transitions`."""
        P = self.transitions()
        inner = self.first(self.horizon)
        reached = np.concatenate(self.reached()[:-1]) > 0
        inside = np.flatnonzero(reached)
        system = np.eye(len(inside)) - P[np.ix_(inside, inside)]
        right = np.column_stack([P[inside, inner:], np.ones(len(inside))])
        solved = scipy.linalg.solve(system, right)
        return solved[0, :-1], float(solved[0, -1])

    # How fast it mixes

    def gap(self) -> float:
        """Return the spectral gap: 1 minus the second largest eigenvalue of the walk on the nodes that it can
        reach."""
        inside, pi = self._inside()
        root = np.sqrt(pi)
        symmetric = root[:, None] * self.transitions()[np.ix_(inside, inside)] / root[None, :]
        symmetric = (symmetric + symmetric.T) / 2
        last = len(inside) - 2
        return 1 - float(scipy.linalg.eigh(symmetric, eigvals_only=True, subset_by_index=(last, last))[0])

    def conductance(self) -> float:
        """Return the smallest flow out of a set of nodes over its mass, of all sets with at most half of the
        mass.

        Raises ValueError for a tree of more than `SUBSETS` nodes.
        """
        inside, pi = self._inside()
        if len(inside) > SUBSETS:
            raise ValueError(f"a tree of {len(inside)} nodes has too many sets of nodes, {SUBSETS} at most")
        flow = pi[:, None] * self.transitions()[np.ix_(inside, inside)]
        sets = (np.arange(1, 2 ** len(inside))[:, None] >> np.arange(len(inside)) & 1).astype(float)
        mass = sets @ pi
        out = ((sets @ flow) * (1 - sets)).sum(1)
        return float((out / mass)[mass <= 0.5 + 1e-12].min())

    def distances(self, steps: int, until: float = 0.0) -> Array:
        """Return the total variation distance from the stationary law after 0 .. ``steps`` steps from the
        root.

        It ends with the first distance of at most ``until``, if that comes before.
        """
        P, pi = self.transitions(), np.concatenate(self.stationary())
        law = np.eye(1, self.nodes)[0]
        found = [0.5 * float(np.abs(law - pi).sum())]
        while len(found) <= steps and found[-1] > until:
            law = law @ P
            found.append(0.5 * float(np.abs(law - pi).sum()))
        return np.array(found)

    def mixing_time(self, tolerance: float, most: int) -> int | None:
        """Return the fewest steps from the root after which the distance is at most ``tolerance``; None if
        not in ``most``."""
        found = self.distances(most, tolerance)
        return len(found) - 1 if found[-1] <= tolerance else None

    def laws_after(self, steps: int) -> tuple[Array, Array]:
        """Return the laws over nodes (N,) of both output rules of Algorithm 2 with T = ``steps``: that of
        y^(T), and that of y^(i) for i uniform on 1 .. T."""
        P = self.transitions()
        law, summed = np.eye(1, self.nodes)[0], np.zeros(self.nodes)
        for _ in range(steps):
            law = law @ P
            summed += law
        return law, summed / steps

    def _inside(self) -> tuple[NDArray[np.intp], Array]:
        """Return the nodes that the walk can reach, and their stationary probabilities."""
        pi = np.concatenate(self.stationary())
        inside = np.flatnonzero(pi > 0)
        return inside, pi[inside]


def exact_values(laws: Sequence[Array], tilt: Array) -> Levels:
    """Return V*, the expected tilt of the leaf that the base model reaches from each prefix, (A^h,) for h = 0
    .. H."""
    values = [np.asarray(tilt, float)]
    for law in reversed(laws):
        values.insert(0, (law * values[0].reshape(law.shape)).sum(1))
    return tuple(values)


def target_law(laws: Sequence[Array], tilt: Array) -> Array:
    """Return pi*, the law of leaves proportional to pi_ref tau, (A^H,)."""
    tilted = prefix_mass(laws)[-1] * tilt
    return tilted / tilted.sum()


def perturbed(values: Levels, factors: Levels) -> Levels:
    """Return the values times ``factors`` (A^h,), h = 1 .. H - 1; those of the root and the leaves stay
    exact."""
    inner = [value * factor for value, factor in zip(values[1:-1], factors, strict=True)]
    return (values[0], *inner, values[-1])


# Random trees, and a knapsack


def random_tree(rng: np.random.Generator, actions: int, horizon: int, eps: float) -> tuple[Tree, Array]:
    """Return a tree with an error of eps, and its tilt: Dirichlet(1) laws, Gamma(1) tilts of the leaves, and
    values that are exact but for a factor (1 + eps) or its inverse at each inner node."""
    laws = tuple(rng.dirichlet(np.ones(actions), actions**h) for h in range(horizon))
    tilt = rng.gamma(1, size=actions**horizon)
    factors = tuple((1 + eps) ** rng.choice([-1.0, 1.0], actions**h) for h in range(1, horizon))
    return Tree(laws, perturbed(exact_values(laws, tilt), factors)), tilt


# Bounds under a uniform multiplicative error: V/V* in [1/(1 + eps), 1 + eps] at 0 < h < H


def conductance_bound(horizon: int, eps: float) -> float:
    """Return a lower bound of the conductance of the walk, 1 / (2 (2H - 1) (1 + eps)^2).

    A set of nodes that misses the root's side is cut at the top edge of a subtree: the flow out is half its
    f(v), its mass at most f(v) (1 + 2 (H - h) (1 + eps)^2).
    """
    return 1 / (2 * (2 * horizon - 1) * (1 + eps) ** 2)


def gap_bound(horizon: int, eps: float) -> float:
    """Return the lower bound of the gap that follows by Cheeger's inequality, half the square of the
    conductance."""
    return conductance_bound(horizon, eps) ** 2 / 2


def mixing_bound(horizon: int, eps: float, root: float, tolerance: float) -> float:
    """Return a number of steps after which the distance is at most ``tolerance``; ``root`` is the root's
    stationary mass.

    The distance after T steps is at most (1 - gap)^T / (2 sqrt(root)).
    """
    return float(np.ceil(np.log(2 * tolerance * np.sqrt(root)) / np.log1p(-gap_bound(horizon, eps))))


def leaf_mass_bound(horizon: int, eps: float) -> float:
    """Return a lower bound of the stationary mass of the leaves, 1 / (2 (1 + (H - 1) (1 + eps)))."""
    return 1 / (2 * (1 + (horizon - 1) * (1 + eps)))


# The Sinclair-Jerrum walk


def sinclair_jerrum(counts: Levels, actions: int) -> Array:
    """Return the matrix (N, N) of the lazy walk whose moves are weighted by ``counts`` of solutions below a
    prefix.

    Up by the count of the node itself, down by the count of the child (Sinclair and Jerrum 1989; footnote
    14).
    """
    starts = np.concatenate([[0], np.cumsum([len(level) for level in counts])])
    P = np.zeros((starts[-1], starts[-1]))
    for h, level in enumerate(counts):
        for i, count in enumerate(level.tolist()):
            node = starts[h] + i
            weights = {starts[h - 1] + i // actions: count} if h else {}
            if h < len(counts) - 1:
                children = range(i * actions, (i + 1) * actions)
                weights |= {starts[h + 1] + j: float(counts[h + 1][j]) for j in children}
            total = sum(weights.values())
            P[node, node] = 0.5 if total else 1.0
            for other, weight in weights.items():
                P[node, other] = 0.5 * weight / total if total else 0.0
    return P


# Errors that grow with the horizon (families of errors on the uniform binary tree, tau = 1)


def biased(horizon: int, eps: float) -> Tree:
    """Return the tree of the family BIAS: V = 1 + eps after action 0, 1 / (1 + eps) after action 1, exact at
    the leaves."""
    pair = np.array([1 + eps, 1 / (1 + eps)])
    inner = [np.tile(pair, 2 ** (h - 1)) for h in range(1, horizon)]
    return Tree(uniform(2, horizon), (np.ones(1), *inner, np.ones(2**horizon)))


def signed(rng: np.random.Generator, horizon: int, eps: float) -> Tree:
    """Return a tree of the family IID: V = 1 + eps or 1 / (1 + eps), by a fair coin at each inner prefix."""
    inner = [(1 + eps) ** rng.choice([-1.0, 1.0], 2**h) for h in range(1, horizon)]
    return Tree(uniform(2, horizon), (np.ones(1), *inner, np.ones(2**horizon)))


def biased_action_law(horizon: int, eps: float) -> Array:
    """Return the probability of action 0 at each position under action-level rejection on `biased`, (H,)."""
    up = (1 + eps) ** 2 / (1 + (1 + eps) ** 2)
    return np.array([*[up] * (horizon - 1), 0.5])


def biased_first_leaf_law(horizon: int, eps: float) -> Array:
    """Return the probability of action 0 at each position for the first leaf of the walk on `biased`, (H,).

    The conductance below a prefix, over its probability, depends on its depth alone, and so does how the
    current splits.
    """
    weights = np.array([1 + eps, 1 / (1 + eps)])
    below, shares = np.inf, []
    for h in reversed(range(horizon)):
        above = weights if h < horizon - 1 else np.ones(2)
        terms = 0.5 / (1 / above + 1 / below)
        below = float(terms.sum())
        shares.append(terms[0] / below)
    return np.array(shares[::-1])


def biased_distance(horizon: int, eps: float) -> float:
    """Return the total variation distance of action-level rejection on `biased` from the uniform law, in
    closed form."""
    n, up = horizon - 1, (1 + eps) ** 2 / (1 + (1 + eps) ** 2)
    k = np.arange(n + 1)
    strings = scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1)
    here = np.exp(strings + k * np.log(up) + (n - k) * np.log1p(-up))
    return 0.5 * float(np.abs(here - np.exp(strings - n * np.log(2))).sum())


def fair_divergence(action_law: Array) -> float:
    """Return KL(uniform || product of these laws of bits) in nats."""
    return float((-0.5 * np.log(4 * action_law * (1 - action_law))).sum())
