"""Diffusions as data, with exact laws: trajectories, pairs of a contrastive task, laws of noise, mixing.

Langevin diffusions dx = -grad f(x) dt + sqrt(2) dW, which start in their stationary law pi ~ exp(-f) (Liu 2024, section
2.1.1.1, Eq. 2.1). Three of them have a kernel p*(z, z') over a time eta that is known to rounding:

- the Ornstein-Uhlenbeck process, f(x) = rho |x|^2 / 2, in any dimension: a Gaussian recursion;
- the log-cosh process, f(x) = rho x^2 / 2 + alpha log cosh x, on a grid: a reversible chain in continuous time;
- chains on a few states, for statements that need bounded ratios of probabilities.

Nothing is simulated by small steps, so a sample has no discretisation error but that of the grid (order h^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, signal, special, stats

from pipeline.errors import SandglassError

Array = NDArray[np.float64]

MARGINAL, CONDITIONAL = CONTRASTS = ["marginal", "conditional"]
OU, LOGCOSH, FINITE = KINDS = ["ou", "logcosh", "finite"]


def log_normal(squares: ArrayLike, variance: float, d: int = 1) -> Array:
    """Return log densities of N(0, variance I) in d dimensions at points with these squared norms."""
    return -np.asarray(squares, float) / (2 * variance) - d / 2 * math.log(2 * math.pi * variance)


# Processes


@dataclass(frozen=True)
class OrnsteinUhlenbeck:
    """SDE-P1: f(x) = rho |x|^2 / 2 in R^d. pi = N(0, I/rho), kernel over eta N(a z, s^2 I) with a = exp(-rho eta) and
    s^2 = (1 - a^2) / rho. Raises SandglassError for a rho that is not positive."""

    rho: float
    d: int = 1

    def __post_init__(self) -> None:
        if not self.rho > 0 or self.d < 1:
            raise SandglassError(
                f"an Ornstein-Uhlenbeck process has rho > 0 and d >= 1, got rho = {self.rho:g}, d = {self.d}"
            )

    def decay(self, eta: float) -> float:
        """Return a = exp(-rho eta), the slope of E[x_eta | x_0]."""
        return math.exp(-self.rho * eta)

    def variance(self, eta: float) -> float:
        """Return s^2, the conditional variance of each coordinate after a time eta; 1/rho after an infinite one."""
        return -math.expm1(-2 * self.rho * eta) / self.rho

    def path(self, rng: np.random.Generator, eta: float, steps: int) -> Array:
        """Return (steps, d): x at times 0, eta, 2 eta, ..., by the exact recursion from a stationary start."""
        noise = rng.standard_normal((steps, self.d))
        noise[:1] /= math.sqrt(self.rho)
        noise[1:] *= math.sqrt(self.variance(eta))
        return np.asarray(signal.lfilter([1.0], [1.0, -self.decay(eta)], noise, axis=0))

    def log_stationary(self, x: Array) -> Array:
        """Return log pi at points (..., d)."""
        return log_normal((x**2).sum(-1), 1 / self.rho, self.d)

    def log_kernel(self, z: Array, z_prime: Array, eta: float) -> Array:
        """Return log p*(z, z') over a time eta, at points (..., d)."""
        apart = z_prime - self.decay(eta) * z
        return log_normal((apart**2).sum(-1), self.variance(eta), self.d)

    @property
    def mean_norm(self) -> float:
        """Return B = E_pi |x|, which is sqrt(2/(pi rho)) in one dimension."""
        return math.sqrt(2 / self.rho) * math.exp(special.gammaln((self.d + 1) / 2) - special.gammaln(self.d / 2))

    def height(self, eta: float) -> float:
        """Return E_{z ~ pi, z' ~ p*} p*(z, z') = (4 pi s^2)^(-d/2), of order eta^(-d/2) for small eta (Lemma 6)."""
        return float((4 * math.pi * self.variance(eta)) ** (-self.d / 2))

    def distance_to_stationary(self, z: ArrayLike, t: float) -> Array:
        """Return TV(P^t(. | z), pi) in one dimension, exactly.

        The narrower Gaussian is above the other between two points, so the distance is a difference of four values of
        the normal distribution function.
        """
        z = np.asarray(z, float)
        s2, v = self.variance(t), 1 / self.rho
        mean = self.decay(t) * z
        # Where the log densities agree: (x - mean)^2 / s2 + log s2 = x^2 / v + log v.
        a, b = 1 / s2 - 1 / v, -2 * mean / s2
        c = mean**2 / s2 + math.log(s2 / v)
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
        one, two = (
            stats.norm.cdf(high, at, sd) - stats.norm.cdf(low, at, sd)
            for at, sd in ((mean, math.sqrt(s2)), (0.0, math.sqrt(v)))
        )
        return np.asarray(one - two)

    def mixing(self, t: float, points: int = 4001) -> float:
        """Return beta(t) = E_{z ~ pi} TV(P^t(. | z), pi) in one dimension (Definition 1), by the trapezoid rule."""
        z = np.linspace(-10, 10, points) / math.sqrt(self.rho)
        weights = np.exp(self.log_stationary(z[:, None]))
        return float(np.trapezoid(weights * self.distance_to_stationary(z, t), z))


@dataclass(frozen=True)
class LogCosh:
    """SDE-P2: f(x) = rho x^2 / 2 + alpha log cosh x in one dimension, rho-strongly convex and not quadratic; f is
    L0-smooth and f' is L1-smooth."""

    rho: float
    alpha: float
    d: int = 1

    def __post_init__(self) -> None:
        if not self.rho > 0 or self.alpha < 0 or self.d != 1:
            raise SandglassError(
                f"a log-cosh process has rho > 0, alpha >= 0 and d = 1, got rho = {self.rho:g}, "
                f"alpha = {self.alpha:g}, d = {self.d}"
            )

    @property
    def L0(self) -> float:
        """Return the smoothness of f, max |f''|."""
        return self.rho + self.alpha

    @property
    def L1(self) -> float:
        """Return the smoothness of f', max |f'''|."""
        return 4 * self.alpha / (3 * math.sqrt(3))

    def potential(self, x: Array) -> Array:
        """Return f(x), without overflow far out."""
        return self.rho * x**2 / 2 + self.alpha * (np.logaddexp(x, -x) - math.log(2))

    def gradient(self, x: Array) -> Array:
        """Return f'(x)."""
        return self.rho * x + self.alpha * np.tanh(x)

    def grid(self, eta: float, points: int, half_width: float) -> GridChain:
        """Return the process on a grid of [-half_width, half_width] (`GridChain`)."""
        return GridChain.of(self, eta, points, half_width)


class Potential(Protocol):
    """A potential in one dimension."""

    def potential(self, x: Array) -> Array:
        """Return f(x)."""


@dataclass(frozen=True)
class GridChain:
    """A one-dimensional diffusion on a grid x_1..x_n of spacing h, over one time eta.

    The generator Q[i, i +- 1] = exp(-(f(x_{i +- 1}) - f(x_i)) / 2) / h^2 is reversible for pi ~ exp(-f), and the kernel
    is expm(eta Q): ``kernel`` (n, n) of probabilities, so that p*(x_i, x_j) = kernel[i, j] / h. Its error is of order
    h^2.
    """

    x: Array
    kernel: Array
    stationary: Array

    @classmethod
    def of(cls, process: Potential, eta: float, points: int, half_width: float) -> GridChain:
        """Return the chain of a process over a time eta. Raises SandglassError for fewer than three points."""
        if points < 3 or not half_width > 0 or not eta > 0:
            raise SandglassError(
                f"a grid has at least three points, a positive width and time, got {points} points, half-width "
                f"{half_width:g}, eta = {eta:g}"
            )
        x = np.linspace(-half_width, half_width, points)
        f = process.potential(x)
        up = np.exp(-np.diff(f) / 2) / (x[1] - x[0]) ** 2
        down = np.exp(np.diff(f) / 2) / (x[1] - x[0]) ** 2
        generator = np.diag(up, 1) + np.diag(down, -1)
        np.fill_diagonal(generator, -generator.sum(1))
        kernel = np.maximum(linalg.expm(eta * generator), 0.0)  # rounding leaves -1e-20
        weights = np.exp(f.min() - f)
        return cls(x, kernel / kernel.sum(1, keepdims=True), weights / weights.sum())

    @property
    def spacing(self) -> float:
        """Return h."""
        return float(self.x[1] - self.x[0])

    @property
    def density(self) -> Array:
        """Return (n, n): p*(x_i, x_j)."""
        return self.kernel / self.spacing

    @cached_property
    def _cumulated(self) -> Array:
        """All rows of cumulated probabilities in one ascending array: row i is shifted by i."""
        rows = np.cumsum(self.kernel, axis=1)
        rows[:, -1] = 1.0
        return (rows + np.arange(len(self.x))[:, None]).reshape(-1)

    def paths(self, rngs: list[np.random.Generator], steps: int) -> Array:
        """Return (seeds, steps): points of the grid at times 0, eta, ..., one stationary trajectory for each stream,
        each point moved by uniform jitter of width h."""
        drawn = np.stack([rng.random((2, steps)) for rng in rngs])  # of the chain, of the jitter
        n, cumulated = len(self.x), self._cumulated
        states = np.empty((steps, len(rngs)), np.int64)
        states[0] = np.searchsorted(np.cumsum(self.stationary), drawn[:, 0, 0]).clip(max=n - 1)
        for step in range(1, steps):
            row = states[step - 1]
            states[step] = (np.searchsorted(cumulated, row + drawn[:, 0, step]) - row * n).clip(0, n - 1)
        return self.x[states.T] + (drawn[:, 1] - 0.5) * self.spacing


# Finite chains


class Chain(NamedTuple):
    """SDE-P3: a chain on K states: rows of ``kernel`` sum to 1, ``stationary`` is its law, ``noise`` a contrast law."""

    kernel: Array
    stationary: Array
    noise: Array


def random_chain(rng: np.random.Generator, states: int) -> Chain:
    """Return a random chain with ratios of probabilities that are bounded: P = 0.9 Dirichlet(3) + 0.1 / K in each row,
    and a contrast law q = 0.9 Dirichlet(5) + 0.1 / K (chapter 5.3)."""
    kernel = 0.9 * rng.dirichlet(np.full(states, 3.0), states) + 0.1 / states
    noise = 0.9 * rng.dirichlet(np.full(states, 5.0)) + 0.1 / states
    return Chain(kernel, stationary_law(kernel), noise)


def stationary_law(kernel_KxK: ArrayLike) -> Array:
    """Return the law pi with pi P = pi. Raises SandglassError for a matrix whose rows are no probabilities.

    >>> stationary_law([[0.9, 0.1], [0.3, 0.7]]).round(12).tolist()
    [0.75, 0.25]
    """
    kernel = np.asarray(kernel_KxK, float)
    rows = kernel.sum(-1) if kernel.ndim == 2 and kernel.shape[0] == kernel.shape[1] else np.zeros(1)
    if not ((kernel >= 0).all() and np.allclose(rows, 1, atol=1e-9)):
        raise SandglassError("a transition matrix is square with entries >= 0, and each of its rows sums to 1")
    n = len(kernel)
    equations = np.vstack([kernel.T - np.eye(n), np.ones(n)])
    return np.asarray(linalg.lstsq(equations, np.append(np.zeros(n), 1.0))[0])


def perturbed(rng: np.random.Generator, kernel_KxK: Array, size: float) -> Array:
    """Return P (1 + delta) with rows normalised, delta uniform within ``size`` (below 1) of 0."""
    drawn = kernel_KxK * (1 + rng.uniform(-size, size, kernel_KxK.shape))
    return drawn / drawn.sum(1, keepdims=True)


def chain_mixing(chain: Chain, steps: int) -> float:
    """Return beta(steps) = E_{z ~ pi} TV(P^steps(z, .), pi) of the points of a chain (Definition 1)."""
    power = np.linalg.matrix_power(chain.kernel, steps)
    return float(chain.stationary @ np.abs(power - chain.stationary).sum(1) / 2)


def pair_mixing(chain: Chain, pairs: int, labelled: bool) -> float:
    """Return the beta-mixing coefficient of the sequence of pairs, ``pairs`` of them apart, by enumeration.

    A pair is (x_{2i}, x'_{2i}), x' the next point with label 1 or a draw from q with label 0, each with probability
    1/2 (section 2.1.1.2). With ``labelled`` the label is a part of what is seen. After a positive pair the chain goes
    on from x', 2i - 1 steps before the next first element; after a negative pair it is 2i steps from x.
    """
    P, pi, q = chain
    K = len(pi)
    near, far = (np.linalg.matrix_power(P, 2 * pairs - step) for step in (1, 0))
    positive, negative = pi[:, None] * P / 2, pi[:, None] * q / 2  # joint laws of (x, x') with each label
    second = np.stack([P, np.broadcast_to(q, (K, K))]) / 2  # label, x -> x': the law of the later pair given its x
    later = pi[None, :, None] * second
    joint = np.stack(
        [np.einsum("ab,bc,lcd->ablcd", positive, near, second), np.einsum("ab,ac,lcd->ablcd", negative, far, second)]
    )
    alone = np.einsum("kab,lcd->kablcd", np.stack([positive, negative]), later)
    if not labelled:
        joint, alone = joint.sum((0, 3)), alone.sum((0, 3))
    return float(np.abs(joint - alone).sum() / 2)


# The contrastive task


@dataclass(frozen=True)
class Contrast:
    """SDE-Q: the law q of the noise, a Gaussian with standard deviation ``sd`` in each coordinate.

    A ``marginal`` one has its mean at distance ``shift`` from 0, along the first coordinate, and a ``conditional`` one
    there from z. Raises SandglassError for a law without a density.
    """

    kind: str
    shift: float
    sd: float

    def __post_init__(self) -> None:
        if self.kind not in CONTRASTS:
            raise SandglassError(f"a contrast law is {' or '.join(CONTRASTS)}, got {self.kind!r}")
        if not (self.sd > 0 and math.isfinite(self.sd) and math.isfinite(self.shift)):
            raise SandglassError(
                f"a contrast law needs a density: a finite mean and sd > 0, got {self.shift:g} and {self.sd:g}"
            )

    @property
    def name(self) -> str:
        """Return how tables and figures name it: ``N(0, 1)``, ``N(z, 0.49)``.

        >>> Contrast(MARGINAL, 2.0, 2.0).name, Contrast(CONDITIONAL, 0.0, 0.7).name
        ('N(2, 4)', 'N(z, 0.49)')
        """
        centre = f"{self.shift:g}"
        if self.kind == CONDITIONAL:
            centre = f"z + {self.shift:g}" if self.shift else "z"
        return f"N({centre}, {self.sd**2:.4g})"

    def centre(self, z: Array) -> Array:
        """Return the mean of q at points (..., d)."""
        mean = np.array(z) if self.kind == CONDITIONAL else np.zeros_like(z)
        mean[..., 0] += self.shift
        return mean

    def sample(self, rng: np.random.Generator, z: Array) -> Array:
        """Return (m, d): a draw of q for each of the first elements ``z`` (m, d)."""
        return self.centre(z) + self.sd * rng.standard_normal(z.shape)

    def log_density(self, z: Array, z_prime: Array) -> Array:
        """Return log q(z') or log q(z' | z) at points (..., d)."""
        apart = z_prime - self.centre(np.broadcast_to(z, np.broadcast_shapes(z.shape, z_prime.shape)))
        return log_normal((apart**2).sum(-1), self.sd**2, z_prime.shape[-1])


class Pairs(NamedTuple):
    """What a classifier is trained on: ``x`` and ``x_prime`` (m, d), and whether x' came after x, ``y`` (m,)."""

    x: Array
    x_prime: Array
    y: NDArray[np.bool_]


def pairs(path_Sxd: Array, contrast: Contrast, rng: np.random.Generator) -> Pairs:
    """Return the pairs of one trajectory (SDE-TASK, section 2.1.1.2): m = steps / 2 of them, disjoint.

    Pair i begins with point 2i. Its second element is point 2i + 1 with probability 1/2, else a fresh draw from q.
    """
    m = len(path_Sxd) // 2
    x, follows = path_Sxd[0 : 2 * m : 2], path_Sxd[1 : 2 * m : 2]
    y = rng.random(m) < 0.5
    return Pairs(x, np.where(y[:, None], follows, contrast.sample(rng, x)), y)
