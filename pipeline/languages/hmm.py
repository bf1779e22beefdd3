"""Discrete hidden Markov models, and what the best predictor of masked tokens says (Liu 2024, section 2.2.1).

k hidden states and d symbols, d >= k >= 2. T[i, j] = P(h_{t+1} = i | h_t = j) and O[i, j] = P(x_t = i | h_t = j), so
that columns sum to 1. T is doubly stochastic and h_1 uniform (Assumption 5): the reversed chain has the matrix T
transposed, and every token has the law O 1 / k. Two models are the same where a relabelling of hidden states makes them
equal (Definition 2).

Everything takes stacks: O is (..., d, k), T is (..., k, k). A predictor of one token is (..., d, d), column by column
for each symbol that is read; one of two tokens is W (..., d, d, d), where W[j, a, b] is the probability of symbols
a and b given symbol j.
"""

from __future__ import annotations

import itertools
import re
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pipeline.errors import SandglassError

Floats = NDArray[np.float64]

# All tasks of one token from another among three: footnote 11.
NEXT, BACK, SKIP, BACK_SKIP = PAIR_TASKS = ("x2|x1", "x1|x2", "x3|x1", "x1|x3")
# Tasks of two tokens given one: the cases of Theorem 7.
CASES = (1, 2, 3)
TRIPLE_TASKS = ("x2x3|x1", "x1x3|x2", "x1x2|x3")
_PAIR = re.compile(r"x([0-9]+)\|x([0-9]+)")
TOLERANCE = 1e-7  # of sums that are to be 1: the published matrices are printed with eight digits

# Eq. 2.47
PUBLISHED = (
    (
        [
            [0.23016003, 0.3549092, 0.16493077],
            [0.30716059, 0.06962305, 0.37321636],
            [0.2580854, 0.26965425, 0.22226035],
            [0.20459398, 0.3058135, 0.23959252],
        ],
        [
            [0.56893146, 0.35811118, 0.07295736],
            [0.35811118, 0.10805638, 0.53383243],
            [0.07295736, 0.53383243, 0.39321021],
        ],
    ),
    (
        [
            [0.24120928, 0.35062535, 0.15816537],
            [0.28937626, 0.07433156, 0.38629218],
            [0.26077674, 0.26749114, 0.22173212],
            [0.20863772, 0.30755194, 0.23381033],
        ],
        [
            [0.59740926, 0.30452087, 0.09806987],
            [0.30452087, 0.1331689, 0.56231024],
            [0.09806987, 0.56231024, 0.33961989],
        ],
    ),
)


def published(which: int) -> tuple[Floats, Floats]:
    """Return O (4, 3) and T (3, 3) of the first (0) or second (1) model of Eq. 2.47."""
    emission, transition = PUBLISHED[which]
    return np.array(emission), np.array(transition)


def check(emission: Floats, transition: Floats, *, full_rank: bool = False) -> None:
    """Raise SandglassError unless O (d, k) and T (k, k) are a model of Assumptions 5 and 6.

    With ``full_rank`` Assumption 7 is asked for as well: rank O = rank T = k.
    """
    if emission.ndim != 2 or transition.shape != (emission.shape[1],) * 2:
        raise SandglassError(f"O {emission.shape} and T {transition.shape} do not fit: expected (d, k) and (k, k)")
    d, k = emission.shape
    if not 2 <= k <= d:
        raise SandglassError(f"an HMM of {k} hidden states and {d} symbols: expected 2 <= k <= d")
    for name, matrix in (("O", emission), ("T", transition)):
        if not (np.isfinite(matrix).all() and matrix.min() >= 0):
            raise SandglassError(f"{name} is not stochastic: its smallest entry is {matrix.min():.3g}")
        worst = np.abs(matrix.sum(0) - 1).max()
        if worst > TOLERANCE:
            raise SandglassError(f"{name} is not stochastic: a column sum is {worst:.3g} away from 1")
    worst = np.abs(transition.sum(1) - 1).max()
    if worst > TOLERANCE:
        raise SandglassError(f"T is not doubly stochastic: a row sum is {worst:.3g} away from 1")
    if emission.sum(1).min() <= 0:
        raise SandglassError("O has a row of zeros: a symbol that never occurs")
    for name, matrix in (("O", emission), ("T", transition)):
        if full_rank and np.linalg.matrix_rank(matrix) < k:
            raise SandglassError(f"{name} has rank {np.linalg.matrix_rank(matrix)}, and the theorem needs {k}")


# --- predictors --------------------------------------------------------------------------------------


def posterior(emission: Floats) -> Floats:
    """Return phi (..., k, d): column j is the law of the hidden state given symbol j (section 2.2.1.2)."""
    return np.swapaxes(emission / emission.sum(-1, keepdims=True), -1, -2)


def pair_predictor(emission: Floats, transition: Floats, apart: int = 1, reverse: bool = False) -> Floats:
    """Return E[x_{1+g} | x_1] (..., d, d), g = ``apart``, or x_1 from x_{1+g} with ``reverse``: O T^g phi."""
    moves = np.swapaxes(transition, -1, -2) if reverse else transition
    return emission @ np.linalg.matrix_power(moves, apart) @ posterior(emission)


def components(emission: Floats, transition: Floats, case: int) -> tuple[Floats, Floats, Floats]:
    """Return A, B, C (..., d, k) with W[j, a, b] = sum_i A[j, i] B[a, i] C[b, i] (Eq. 2.36, 2.38, 2.40, 2.41).

    Case 1 predicts (x_2, x_3) from x_1, case 2 (x_1, x_3) from x_2, case 3 (x_1, x_2) from x_3.
    """
    back = np.swapaxes(transition, -1, -2)
    scaled = emission / emission.sum(-1, keepdims=True)
    if case == 1:
        return scaled @ back, emission, emission @ transition
    if case == 2:
        return scaled, emission @ back, emission @ transition
    if case == 3:
        return scaled @ transition, emission @ back, emission
    raise SandglassError(f"case {case!r} of two tokens given one: expected 1, 2 or 3")


def assembled(first: Floats, second: Floats, third: Floats) -> Floats:
    """Return the tensor sum_i A_i (x) B_i (x) C_i (..., n1, n2, n3) of matrices with k columns."""
    pairs = second[..., :, None, :] * third[..., None, :, :]
    *stack, rows, columns, k = pairs.shape
    found = first @ np.swapaxes(pairs.reshape(*stack, rows * columns, k), -1, -2)
    return found.reshape(*found.shape[:-1], rows, columns)


def triple_predictor(emission: Floats, transition: Floats, case: int) -> Floats:
    """Return W (..., d, d, d) of a case: the law of two tokens given the third."""
    return assembled(*components(emission, transition, case))


def gap(task: str) -> tuple[int, bool]:
    """Return how far apart the tokens of a task like ``x3|x1`` are, and whether it predicts the earlier of them.

    Raises SandglassError for what is no task of one token from another.

    >>> gap("x3|x1"), gap("x1|x2")
    ((2, False), (1, True))
    """
    found = _PAIR.fullmatch(task)
    predicted, shown = map(int, found.groups()) if found else (0, 0)
    if predicted == shown or min(predicted, shown) != 1:
        raise SandglassError(
            f"no task is called {task!r}; known: {', '.join((*PAIR_TASKS, *TRIPLE_TASKS))}, and x1 with any later token"
        )
    return abs(predicted - shown), predicted < shown


def predictor(emission: Floats, transition: Floats, task: str) -> Floats:
    """Return the optimal predictor of a task: one of `TRIPLE_TASKS`, or one like ``x3|x1``, see `gap`."""
    if task in TRIPLE_TASKS:
        return triple_predictor(emission, transition, 1 + TRIPLE_TASKS.index(task))
    return pair_predictor(emission, transition, *gap(task))


def joint(emission: Floats, transition: Floats) -> Floats:
    """Return P(x_1, x_2, x_3) (..., d, d, d)."""
    k = emission.shape[-1]
    back = emission @ np.swapaxes(transition, -1, -2)
    return assembled(back, emission, emission @ transition) / k


def given(joint_laws: Floats, case: int) -> Floats:
    """Return the predictor W (..., d, d, d) of a case from the joint law of three tokens, or from counts.

    Of a symbol that has no count nothing is known: its slice is NaN.
    """
    order = {1: (-3, -2, -1), 2: (-2, -3, -1), 3: (-1, -3, -2)}[case]
    moved = np.moveaxis(joint_laws, order, (-3, -2, -1))
    with np.errstate(invalid="ignore"):
        return moved / moved.sum((-2, -1), keepdims=True)


# --- twins: rotations about the all-ones axis (sections 2.2.3.2, 2.2.3.3) ------------------------------

AXIS = np.array([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)  # the generator of rotations about (1, 1, 1)


def rotation(theta: Floats | float) -> Floats:
    """Return G (..., 3, 3): the rotation by ``theta`` (radians, any shape) about (1, 1, 1), so that G 1 = 1.

    >>> abs(rotation(2 * np.pi / 3).round(12)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    angle = np.asarray(theta, float)[..., None, None]
    return np.eye(3) + np.sin(angle) * AXIS + (1 - np.cos(angle)) * (AXIS @ AXIS)


def turn_near_identity(rng: np.random.Generator, states: int, size: float) -> Floats:
    """Return a random G (k, k), orthogonal with G 1 = 1, ``size`` away from I in the generator's Frobenius norm.

    Of two states there is no direction to go, and G is I.
    """
    basis = np.linalg.svd(np.ones((1, states)))[2][1:]
    drawn = rng.standard_normal((states - 1, states - 1))
    generator = basis.T @ (drawn - drawn.T) @ basis
    length = np.linalg.norm(generator)
    return np.asarray(linalg.expm(generator * (size / length if length else 0.0)))


def twin(emission: Floats, transition: Floats, turn: Floats) -> tuple[Floats, Floats]:
    """Return O G and G' T G: with G orthogonal and G 1 = 1 the same pairwise predictors at every gap."""
    return emission @ turn, np.swapaxes(turn, -1, -2) @ transition @ turn


def widest_turn(emission: Floats, transition: Floats, cap: float = np.pi / 3, steps: int = 60) -> float:
    """Return the angle in [0, cap] up to which the twin of a model with three states has no negative entry.

    It is found by bisection, which looks for the first angle where one occurs. Raises SandglassError for another number
    of states: of two there is no twin but the relabelled model (G 1 = 1 leaves no freedom), of more than three the
    rotation has no single angle.
    """
    if emission.shape[-1] != 3:
        raise SandglassError(
            f"no angle turns a model of {emission.shape[-1]} hidden states: expected 3"
            + ("; of 2 the only twin is the relabelled model" if emission.shape[-1] == 2 else "")
        )

    def stays(theta: float) -> bool:
        return min(part.min() for part in twin(emission, transition, rotation(theta))) >= 0

    grid = np.linspace(0, cap, 65)
    valid = [stays(theta) for theta in grid]
    if all(valid):
        return float(cap)
    first = valid.index(False)
    if first == 0:
        return 0.0
    low, high = grid[first - 1], grid[first]
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if stays(middle) else (low, middle)
    return float(low)


CIRCLE = np.array([[1, -0.5, -0.5], [0, -np.sqrt(0.75), np.sqrt(0.75)], [np.sqrt(0.5)] * 3])  # M of Claim 3


def lazy_cycle(stay: float) -> Floats:
    """Return T = a I + (1 - a) P of Claim 3, a cycle of three states that stays with probability a."""
    return stay * np.eye(3) + (1 - stay) * np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


def turned_cycle(stay: float, power: int) -> tuple[Floats, Floats]:
    """Return G = M^-1 R(2 pi/t)^-1 M and G T of Eq. 2.48 for t = ``power``: (G T)^t = T^t."""
    theta = 2 * np.pi / power
    cos, sin = np.cos(theta), np.sin(theta)
    turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
    both = np.linalg.solve(CIRCLE, turn.T @ CIRCLE)
    return both, both @ lazy_cycle(stay)


# --- distances up to relabelling (Definition 2) --------------------------------------------------------


@cache
def _orders(k: int) -> NDArray[np.int64]:
    return np.array(list(itertools.permutations(range(k))))


def distance(
    emission: Floats, transition: Floats, other_emission: Floats, other_transition: Floats
) -> tuple[Floats, Floats]:
    """Return Frobenius distances (...,) of O and of T, both under the relabelling that is best for O.

    Matching both apart would hide a failure. The same serves for means of Gaussians in place of O.
    """
    orders = _orders(emission.shape[-1])
    turned = np.moveaxis(other_emission[..., orders], -2, 0)  # (orders, ..., d, k)
    apart = np.linalg.norm(emission - turned, axis=(-2, -1))
    best = orders[apart.argmin(0)]  # (..., k)
    moved = np.take_along_axis(other_transition, best[..., :, None], -2)
    moved = np.take_along_axis(moved, best[..., None, :], -1)
    return apart.min(0), np.linalg.norm(transition - moved, axis=(-2, -1))


def relabelled_distance(transition: Floats, other: Floats) -> float:
    """Return max |T - Pi' T~ Pi| (k, k), smallest of all relabellings Pi."""
    orders = _orders(transition.shape[-1])
    return float(min(np.abs(transition - other[np.ix_(order, order)]).max() for order in orders))


# --- samplers -----------------------------------------------------------------------------------------


def sinkhorn(weights: Floats, iterations: int = 1000, tolerance: float = 1e-15) -> Floats:
    """Return the doubly stochastic matrices (..., k, k) diag(r) W diag(c) of positive weights (Sinkhorn, Knopp 1967).

    It ends where row sums are 1 up to ``tolerance``, or after ``iterations``; columns are normalised last.
    """
    rows = 1 / weights.sum(-1)
    for done in range(iterations):
        columns = 1 / (rows[..., None, :] @ weights)[..., 0, :]
        after = 1 / (weights @ columns[..., None])[..., 0]
        # To look costs as much as an iteration.
        if done % 4 == 3 and np.abs(after / rows - 1).max() <= tolerance:
            break
        rows = after
    found = rows[..., None] * weights
    return np.asarray(found / found.sum(-2, keepdims=True))


def smallest_singular(matrix: Floats) -> Floats:
    """Return the k-th singular value (...,) of matrices (..., n, k)."""
    return np.asarray(np.linalg.svd(matrix, compute_uv=False)[..., -1], float)


def draw(
    rng: np.random.Generator,
    symbols: int,
    states: int,
    *,
    concentration: float,
    power: int,
    offset: float,
    least_singular: float = 0.0,
    least_row: float = 0.0,
    tries: int = 100_000,
) -> tuple[Floats, Floats]:
    """Return O (d, k) with columns from a Dirichlet law, and T (k, k) by Sinkhorn's scaling of U^power + offset.

    Models are drawn until both have a k-th singular value of at least ``least_singular`` and every row of O sums to at
    least ``least_row``. Raises SandglassError if none of ``tries`` does.
    """
    for _ in range(tries):
        emission = rng.dirichlet(np.full(symbols, concentration), states).T
        transition = sinkhorn(rng.random((states, states)) ** power + offset)
        if (
            emission.sum(1).min() >= max(least_row, 1e-12)
            and smallest_singular(emission) >= least_singular
            and smallest_singular(transition) >= least_singular
        ):
            return emission, transition
    raise SandglassError(
        f"none of {tries} models of {states} states and {symbols} symbols has singular values from {least_singular} "
        f"and row sums of O from {least_row} on"
    )


def rounded(emission: Floats, transition: Floats, digits: int) -> tuple[Floats, Floats]:
    """Return the model with entries of so many digits whose sums are exactly 1: the last rows and columns give way."""
    emission, transition = emission.round(digits), transition.round(digits)
    emission[-1] = (1 - emission[:-1].sum(0)).round(digits)
    transition[:-1, -1] = (1 - transition[:-1, :-1].sum(1)).round(digits)
    transition[-1] = (1 - transition[:-1].sum(0)).round(digits)
    return emission, transition


def counts(rng: np.random.Generator, law: Floats, samples: int, draws: int = 1) -> Floats:
    """Return counts (draws, *law.shape) of ``samples`` triples each: multinomial, which is exact at any size."""
    flat = law.ravel() / law.sum()
    return rng.multinomial(samples, flat, size=draws).astype(float).reshape(draws, *law.shape)
