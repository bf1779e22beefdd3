"""Networks of one hidden ReLU layer on sparse parity, trained in two stages (Liu 2024, section 4.2.6).

f(x) = sum over i = 1, ..., m of a_i relu(<w_i, x> + b_i) for x uniform in {-1, +1}^d; the label is y = x_1 ... x_k.
At the start the second half of the neurons copies w and b of the first half and has -a, so that f = 0. Stage one
takes one step on w, stage two trains a. Biases stay. The theory asks for odd d and even k.

Fourier coefficients of the majority, the gradient at the start, the weights behind stage one and the correlations of
that network with single coordinates are in closed form and in float64; sums over {-1, +1}^d are over all of it.

Capital suffixes name axes: R replicas, N inputs, m neurons, d coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from pipeline.errors import SandglassError

Array = NDArray[np.float64]
Mode = Literal["aligned", "iid"]

DENSE = 20  # coordinates up to which all of {-1, +1}^d is laid out
CHUNK = 1 << 13  # inputs that are drawn at once


# --- the cube, parity and majority -------------------------------------------------------------------


def cube(d: int) -> Array:
    """Return (2^d, d): all inputs; coordinate j of row n is -1 where bit j of n is set.

    Raises SandglassError for more coordinates than fit into memory.

    >>> cube(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    if not 1 <= d <= DENSE:
        raise SandglassError(f"d = {d}: all inputs are laid out for 1 to {DENSE} coordinates; draw some instead")
    bits = (np.arange(1 << d)[:, None] >> np.arange(d)) & 1
    return 1.0 - 2.0 * bits.astype(np.float64)


def parity(x_Nxd: NDArray, k: int) -> Array:
    """Return (N,): the product of the first ``k`` coordinates."""
    return np.prod(x_Nxd[:, :k], axis=1).astype(np.float64)


def fourier(values: ArrayLike) -> Array:
    """Return (..., 2^d): all Fourier coefficients E f(x) chi_A(x) of functions given on `cube`.

    Entry n is that of the set A of the bits of n. A fast Walsh-Hadamard transform; exact for values that are integers.

    >>> fourier(parity(cube(3), 2)).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    """
    coefficients = np.array(values, float)
    size = coefficients.shape[-1]
    d = size.bit_length() - 1
    if size != 1 << d:
        raise SandglassError(f"{size} values are not those of all inputs: expected a power of two")
    for j in range(d):
        pairs = coefficients.reshape(*coefficients.shape[:-1], -1, 2, 1 << j)
        coefficients = np.stack([pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], -2).reshape(
            coefficients.shape
        )
    return coefficients / size


def degrees(d: int) -> NDArray[np.int64]:
    """Return (2^d,): the size of the set of each entry of `fourier`."""
    bits: NDArray[np.int64] = ((np.arange(1 << d)[:, None] >> np.arange(d)) & 1).sum(1)
    return bits


def majority(x_Nxd: NDArray) -> Array:
    """Return (N,): the sign of the sum of the coordinates; 0 for a tie, which odd d have none of."""
    return np.sign(np.asarray(x_Nxd, float).sum(1))


def majority_coefficient(d: int, i: int) -> float:
    """Return zeta_i = E Maj(x) chi_A(x) of a set of ``i`` of ``d`` coordinates, d odd (O'Donnell 2014, section 5.3).

    It is 0 for even i, else (-1)^((i-1)/2) C((d-1)/2, (i-1)/2) / C(d-1, i-1) 2^(1-d) C(d-1, (d-1)/2): integers up to
    the last division. Raises SandglassError for even d, or a set that does not fit.

    >>> majority_coefficient(3, 1), majority_coefficient(3, 2), majority_coefficient(3, 3)
    (0.5, 0.0, -0.5)
    """
    if d % 2 == 0 or not 0 <= i <= d:
        raise SandglassError(f"majority of d = {d}, sets of i = {i}: expected odd d and 0 <= i <= d")
    if i % 2 == 0:
        return 0.0
    half, place = (d - 1) // 2, (i - 1) // 2
    top = math.comb(half, place) * math.comb(d - 1, half)
    return (-1) ** place * (top / (math.comb(d - 1, i - 1) << (d - 1)))


def gap(d: int, k: int) -> float:
    """Return |zeta_(k-1)| - |zeta_(k+1)|, by which gradients inside and outside the support differ (twice)."""
    return abs(majority_coefficient(d, k - 1)) - abs(majority_coefficient(d, k + 1))


def damping(d: int, k: int) -> float:
    """Return |zeta_(k+1) / zeta_(k-1)| = (k - 1) / (d - k): weights outside the support against those inside."""
    return (k - 1) / (d - k)


# --- networks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """Weights ``w`` (..., m, d), biases ``b`` (..., m) and outer weights ``a`` (..., m) for parity of ``k`` of
    ``d``.
    """

    w: Array
    b: Array
    a: Array
    k: int

    @property
    def d(self) -> int:
        """Return the number of coordinates."""
        return int(self.w.shape[-1])

    @property
    def m(self) -> int:
        """Return the number of neurons."""
        return int(self.w.shape[-2])

    def __call__(self, x_Nxd: NDArray) -> Array:
        """Return (..., N): the outputs."""
        values: Array = np.einsum("...nm,...m->...n", self.hidden(x_Nxd), self.a)
        return values

    def hidden(self, x_Nxd: NDArray) -> Array:
        """Return (..., N, m): relu(<w, x> + b)."""
        return np.maximum(np.asarray(x_Nxd, float) @ np.swapaxes(self.w, -1, -2) + self.b[..., None, :], 0.0)


def biases(k: int) -> Array:
    """Return (2k - 1,): the values of biases, -1 + 1/k, -1 + 2/k, ..., 1 - 1/k.

    >>> biases(2).tolist()
    [-0.5, 0.0, 0.5]
    """
    return np.arange(1 - k, k) / k


def initial(rng: np.random.Generator, d: int, k: int, m: int, mode: Mode, replicas: tuple[int, ...] = ()) -> Network:
    """Return networks at the start, ``replicas`` in front (section 4.2.6, setup).

    ``iid`` is the printed start. ``aligned`` is what the proof of Lemma 64 assumes of every neuron of the first half
    at once: a_i = 1/m, and w_ij = sign(zeta_(k-1)) for all j of the support.

    Raises SandglassError unless d is odd, k and m are even, and k < d.
    """
    if d % 2 == 0 or k % 2 or m % 2 or not 2 <= k < d:
        raise SandglassError(f"d = {d}, k = {k}, m = {m}: expected odd d, even k below d, and even m")
    half = (*replicas, m // 2)
    w = 1.0 - 2.0 * rng.integers(2, size=(*half, d))
    b = biases(k)[rng.integers(2 * k - 1, size=half)]
    a = (1.0 - 2.0 * rng.integers(2, size=half)) / m
    if mode == "aligned":
        w[..., :k] = np.sign(majority_coefficient(d, k - 1))
        a = np.abs(a)
    return Network(np.concatenate([w, w], -2), np.concatenate([b, b], -1), np.concatenate([a, -a], -1), k)


def gradient(w: Array, b: Array, x_Nxd: Array, target_N: Array, weight_N: Array | None = None) -> Array:
    """Return (m, d): the mean over inputs of 1(<w, x> + b >= 0) t(x) x_j, the gradient of f t over a (``weight_N``
    sums to 1).

    The hinge loss of a network with f = 0 has minus a_i times this as gradient over w_ij.
    """
    active_mxN = (w @ x_Nxd.T + b[:, None] >= 0).astype(float)
    weight = np.full(len(x_Nxd), 1 / len(x_Nxd)) if weight_N is None else weight_N
    return active_mxN @ ((weight * target_N)[:, None] * x_Nxd)


def population_gradient(w: Array, k: int) -> Array:
    """Return (..., m, d): E 1(<w, x> + b >= 0) y x_j for w in {-1, +1}^d, odd d and |b| < 1 (Claim 7, without a).

    It is half of zeta_(k-1) chi_([k] less j)(w) for j in the support, half of zeta_(k+1) chi_([k] and j)(w) outside.
    """
    d = w.shape[-1]
    sizes = np.where(np.arange(d) < k, majority_coefficient(d, k - 1), majority_coefficient(d, k + 1))
    expectations: Array = 0.5 * sizes * w[..., :k].prod(-1, keepdims=True) * w
    return expectations


def stepped(start: Network, gradient_mxd: Array, lr: float, decay: float) -> Network:
    """Return the network after one step of Algorithm 2 on w with the penalty ``decay`` |w|^2, its gradient being 2
    decay w.
    """
    w = start.w + lr * start.a[..., None] * gradient_mxd - 2 * lr * decay * start.w
    return replace(start, w=w)


def first_rate(d: int, k: int, m: int) -> float:
    """Return the learning rate of stage one, m / (k |zeta_(k-1)|) (Lemma 63)."""
    return m / (k * abs(majority_coefficient(d, k - 1)))


def first_stage(start: Network) -> Network:
    """Return the network after stage one on the whole population (Lemma 63, in the form that holds: 2 eta_1 lambda_1
    = 1).

    w_ij = sign(a_i zeta_(k-1)) chi_([k] less j)(w_i) / 2k inside the support, and outside
    zeta_(k+1) / |zeta_(k-1)| sign(a_i) chi_([k] and j)(w_i) / 2k.
    """
    inner = majority_coefficient(start.d, start.k - 1)
    outer = majority_coefficient(start.d, start.k + 1)
    sizes = np.where(np.arange(start.d) < start.k, np.sign(inner), outer / abs(inner)) / (2 * start.k)
    signs = np.sign(start.a)[..., None] * start.w[..., : start.k].prod(-1, keepdims=True) * start.w
    return replace(start, w=signs * sizes)


# --- correlations of the network behind stage one ---------------------------------------------------


def influences(d: int, k: int) -> tuple[Array, Array]:
    """Return (2k - 1,) twice: E relu(u + b) x_j s_j for each of `biases`, of a coordinate j inside and outside the
    support.

    u is <w, x> behind stage one, s_j the sign of w_j. Exact sums over how many of the other coordinates agree with w.
    """
    inner, outer = 1 / (2 * k), damping(d, k) / (2 * k)

    def mean(others_in: int, others_out: int, step: float) -> Array:
        sums = [np.arange(n + 1) * 2.0 - n for n in (others_in, others_out)]
        law_in, law_out = (stats.binom.pmf(np.arange(n + 1), n, 0.5) for n in (others_in, others_out))
        u = inner * sums[0][:, None] + outer * sums[1]
        b = biases(k)[:, None, None]
        rise = np.maximum(u + step + b, 0) - np.maximum(u - step + b, 0)
        means: Array = 0.5 * np.einsum("bio,i,o->b", rise, law_in, law_out)
        return means

    return mean(k - 1, d - k, inner), mean(k, d - k - 1, outer)


def correlations(taught: Network) -> Array:
    """Return (..., d): c_j = E f(x) x_j of a network behind `first_stage`, exactly."""
    d, k = taught.d, taught.k
    inside, outside = influences(d, k)
    which = np.rint(taught.b * k).astype(int) + k - 1
    coefficients = np.empty((*taught.a.shape[:-1], d))
    signs = np.sign(taught.w) * taught.a[..., None]
    coefficients[..., :k] = (signs[..., :k] * inside[which][..., None]).sum(-2)
    coefficients[..., k:] = (signs[..., k:] * outside[which][..., None]).sum(-2)
    return coefficients


def spread(d: int, k: int, m: int) -> tuple[float, float]:
    """Return E |c_j| for an iid start, inside and outside the support.

    The m/2 pairs have independent signs, so c_j is nearly normal with mean 0 and variance 2 E_b h(b)^2 / m, where h
    is one of the `influences`.
    """
    inside, outside = influences(d, k)
    return tuple(math.sqrt(2 / math.pi) * math.sqrt(2 * (h**2).mean() / m) for h in (inside, outside))  # type: ignore[return-value]


# --- what a student reads from one batch --------------------------------------------------------------


def drawn(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Return (n, d): inputs, in single precision, in which sums of signs are exact."""
    return (1 - 2 * rng.integers(2, size=(n, d), dtype=np.int8)).astype(np.float32)


def outputs(network: Network, x: torch.Tensor) -> torch.Tensor:
    """Return (N,) the outputs of one network, in the precision of ``x`` (N, d)."""
    w, b, a = (torch.from_numpy(np.ascontiguousarray(part)).to(x.dtype) for part in (network.w, network.b, network.a))
    return torch.addmm(b, x, w.T).relu_() @ a


def batch_gradients(
    rng: np.random.Generator, w: Array, b: Array, sizes: Sequence[int], k: int, teacher: Network | None
) -> Iterator[Array]:
    """Yield (m, d): `gradient` on the first ``sizes[0]``, ``sizes[1]``, ... inputs of one stream (sizes ascending).

    The target is the output of ``teacher``, or without one the label.
    """
    m, d = w.shape
    w_t, b_t = (torch.from_numpy(np.ascontiguousarray(part)).float() for part in (w, b))
    total, seen = np.zeros((m, d)), 0
    for size in sizes:
        while seen < size:
            n = min(CHUNK, size - seen)
            x = torch.from_numpy(drawn(rng, n, d))
            target = x[:, :k].prod(1) if teacher is None else outputs(teacher, x)
            # 0 or 1: by way of booleans this takes ten times as long.
            active = torch.addmm(b_t, x, w_t.T).ge_(0)
            total += (active.T @ (x * target[:, None])).double().numpy()
            seen += n
        yield total / size


@dataclass(frozen=True)
class Recovery:
    """How much of the support the k largest entries of gradients show."""

    neurons: float  # share of neurons whose k largest are the support
    precision: float  # mean share of the support among them
    together: bool  # whether the k largest sums over neurons are the support


def recovery(gradient_mxd: Array, k: int) -> Recovery:
    """Return what the ``k`` largest absolute entries of each row say of the support, the first k coordinates.

    An entry outside that is as large as one inside counts as larger; a row with a NaN shows nothing.
    """
    magnitudes = np.abs(gradient_mxd)
    known = np.all(~np.isnan(magnitudes), axis=1, keepdims=True)
    inside, outside = magnitudes[:, :k], magnitudes[:, k:]
    # Outer entries stand first, so that of equal ones they are taken.
    order = np.argsort(-np.concatenate([outside, inside], 1), axis=1, kind="stable")[:, :k]
    right = (order >= outside.shape[1]) & known
    total = magnitudes.sum(0)
    together = bool(total[:k].min() > total[k:].max())  # False for NaN
    return Recovery(float(right.all(1).mean()), float(right.mean()), together)


# --- stage two -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """Stage two of R networks: hinge loss (steps, R) and accuracy (steps, R) on held-out inputs, on different ones.

    ``best`` (R,) is the place in ``steps`` of the least hinge loss, ``a`` (R, m) the outer weights there: the result of
    Algorithm 2 is its best iterate.
    """

    steps: list[int]
    hinge: Array
    accuracy: Array
    best: NDArray[np.int64]
    a: Array


def second_rate(d: int, k: int, m: int, steps: int) -> float:
    """Return the learning rate of stage two as printed, 4 k^1.5 / (d sqrt(m (T_2 - 1))) (Lemma 65)."""
    return 4 * k**1.5 / (d * math.sqrt(m * (steps - 1)))


def second_stage(
    rng: np.random.Generator, taught: Network, steps: int, rate: ArrayLike, every: int, held_out: int
) -> Curve:
    """Train the outer weights of networks (R of them, stacked) on labels with the hinge loss, one fresh input a step.

    ``rate`` is one learning rate, or one for each network. Hinge loss and accuracy are measured before the first
    step and then every so many steps, each on ``held_out`` inputs. All networks see the same inputs.
    """
    R, _, d = taught.w.shape
    w, b = (torch.from_numpy(np.ascontiguousarray(part)) for part in (taught.w, taught.b))
    a, best_a = taught.a.copy(), taught.a.copy()
    rates = np.broadcast_to(np.asarray(rate, float), (R,))[:, None]

    def hidden(x: torch.Tensor) -> torch.Tensor:
        return torch.baddbmm(b[:, None], x.expand(R, -1, -1), w.transpose(1, 2)).relu_()  # (R, N, m)

    def signs(n: int) -> tuple[torch.Tensor, Array]:
        x = torch.from_numpy(drawn(rng, n, d)).double()
        return x, x[:, : taught.k].prod(1).numpy()

    x_test, y_test = signs(2 * held_out)
    known: list[int] = []
    hinge, accuracy = [], []
    least = np.full(R, np.inf)

    def measure(step: int) -> None:
        outer = torch.from_numpy(a)[:, :, None]
        margin = np.concatenate([(hidden(x) @ outer)[..., 0].numpy() for x in x_test.split(512)], 1) * y_test
        known.append(step)
        hinge.append(np.maximum(0.0, 1.0 - margin[:, :held_out]).mean(1))
        accuracy.append((margin[:, held_out:] > 0).mean(1))
        better = hinge[-1] < least
        least[better], best_a[better] = hinge[-1][better], a[better]

    measure(0)
    for start in range(0, steps, every):
        n = min(every, steps - start)
        x, y = signs(n)
        features = hidden(x).transpose(0, 1).contiguous().numpy()  # (N, R, m)
        for phi, label in zip(features, y, strict=True):
            f = np.einsum("rm,rm->r", phi, a)
            a += (rates * ((label * f < 1) * label)[:, None]) * phi
        measure(start + n)
    losses = np.array(hinge)
    return Curve(known, losses, np.array(accuracy), losses.argmin(0), best_a)


def stacked(networks: Sequence[Network]) -> Network:
    """Return networks of one shape as one with a replica axis in front."""
    w, b, a = (np.stack([getattr(network, part) for network in networks]) for part in ("w", "b", "a"))
    return Network(w, b, a, networks[0].k)


def replica(networks: Network, r: int) -> Network:
    """Return one network of a stack."""
    return Network(networks.w[r], networks.b[r], networks.a[r], networks.k)


def from_gradient(start: Network, gradient_mxd: Array) -> Network:
    """Return a student after a step that leaves nothing of its start, at the rate that makes its weights as in Lemma
    63.

    The mean over neurons of the k largest |w_ij| is then 1/2k.
    """
    w = np.sign(start.a)[:, None] * gradient_mxd
    top = np.sort(np.abs(w), 1)[:, -start.k :].mean()
    return replace(start, w=w / (2 * start.k * top))


# --- formulas of Theorem 23 and Lemma 66 ---------------------------------------------------------------


def first_samples(d: int, k: int, m: int, delta: float) -> float:
    """Return k^2 ln(d m / delta), the samples of stage one under progressive distillation, without its constant."""
    return k**2 * math.log(d * m / delta)


def second_samples(d: int, k: int, epsilon: float, delta: float) -> float:
    """Return 2^k d^2 k^4 ln(k / delta) / epsilon^2, the samples of stage two, without its constant (Theorem 23)."""
    return 2.0**k * d**2 * k**4 * math.log(k / delta) / epsilon**2


def one_shot_samples(d: int, k: int, c: float) -> float:
    """Return d^min(2c, k - 1), the samples under one-shot distillation from a teacher of loss d^-c, without its
    constant.
    """
    return float(d) ** min(2 * c, k - 1)


def most_steps(d: int, k: int, m: int, delta: float, error: float) -> float:
    """Return C(d, k) delta tau_g^2 / 2m: so many steps with gradient error tau_g leave some parity unlearned (Lemma
    66).
    """
    return 0.5 * math.comb(d, k) * delta * error**2 / m


def hoeffding(m: int, d: int, samples: int, delta: float) -> float:
    """Return sqrt(2 ln(2 m d / delta) / B): no entry of `gradient` is further off, but with probability delta (Claim
    8).
    """
    return math.sqrt(2 * math.log(2 * m * d / delta) / samples)


def predicted_share(inside: ArrayLike, outside: ArrayLike, variance: float, samples: float) -> float:
    """Return the chance that the absolute entries of one neuron's gradient are all larger inside the support than
    outside.

    Entries have means ``inside`` (k,) and ``outside`` (d - k,) and independent normal noise of ``variance`` / B
    each. The chance is the integral over the least inner entry s of its density times the chance that all outer ones
    are below s.
    """
    scale = math.sqrt(variance / samples)
    means_in, means_out = np.abs(np.asarray(inside, float)), np.abs(np.asarray(outside, float))
    top = max(means_in.max(), means_out.max()) + 8 * scale
    s = np.linspace(0.0, top, 1001)

    def below(means: Array) -> Array:  # P(|entry| <= s), (entries, 1001)
        probabilities: Array = special.ndtr((s - means[:, None]) / scale) - special.ndtr((-s - means[:, None]) / scale)
        return probabilities

    least = 1 - (1 - below(means_in)).prod(0)  # P(least inner <= s)
    middle = below(means_out).prod(0)
    return float(((middle[1:] + middle[:-1]) / 2 * np.diff(least)).sum())


def predicted_samples(inside: ArrayLike, outside: ArrayLike, variance: float, share: float) -> float:
    """Return the samples at which `predicted_share` reaches ``share``; infinite where 2^60 do not, NaN if a mean is
    NaN.
    """

    def lack(power: float) -> float:
        return share - predicted_share(inside, outside, variance, 2.0**power)

    most = lack(60.0)
    if math.isnan(most) or most > 0:
        return math.nan if math.isnan(most) else math.inf
    return float(2.0 ** optimize.brentq(lack, 0.0, 60.0, xtol=1e-4))
