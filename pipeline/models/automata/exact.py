"""Transformers whose weights are written down: the constructions of Liu 2024, section 3.4.4, as networks of one kind.

A layer is a causal attention block (softmax of ⟨W_Q' x_i, W_K' x_j⟩ over j <= i, no scaling, no normalisation) and an
MLP, with ReLU unless a construction asks for sines or pooling; around each of the two some coordinates are copied
(``kept``). A construction (`Built`) says how inputs
become rows and how rows become states; positions may begin with a padding token. Everything is float64 unless asked
otherwise.

Capital suffixes name axes: N sequences, T positions, D coordinates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages.automata import Cascade, Group, Ints, Level, Map, generated, group_of

Array = NDArray[np.float64]
Linear = tuple[Array, Array]  # weights (inputs, outputs) and bias
Mlp = list[Linear]  # an activation between, none behind the last
Activation = Callable[[NDArray], NDArray]
MOST_ROWS = 4000  # rows that go through an MLP at once


def relu(h: NDArray) -> NDArray:
    """Return max(h, 0)."""
    return np.maximum(h, 0)


def pooled(h: NDArray) -> NDArray:
    """Return ReLU and, beside it, the least of its units: a pooling layer."""
    made = relu(h)
    return np.concatenate([made, made.min(-1, keepdims=True)], -1)


@dataclass(frozen=True)
class Head:
    """W_Q, W_K (D, k), W_V (D, v), W_C (v, D)."""

    Q: Array
    K: Array
    V: Array
    C: Array


@dataclass(frozen=True)
class Layer:
    """Attention heads and an MLP; ``kept_*`` (D,) is 1 where a block copies its input. Without heads, attention is the
    identity; without an MLP, so is that. ``between`` are the activations of the hidden layers, ReLU if there are none.
    """

    heads: Sequence[Head]
    kept_attention: Array
    mlp: Mlp
    kept_mlp: Array
    between: Sequence[Activation] = ()


@dataclass(frozen=True)
class Network:
    """A stack of layers on D coordinates."""

    layers: Sequence[Layer]
    dim: int

    @property
    def sizes(self) -> dict[str, float]:
        """Depth, width of the embedding, heads, their width, MLP width, and the largest weight."""
        heads = [head for layer in self.layers for head in layer.heads]
        weights = [getattr(head, name) for head in heads for name in "QKVC"]
        weights += [part for layer in self.layers for linear in layer.mlp for part in linear]
        return {
            "depth": len(self.layers),
            "dim": self.dim,
            "heads": max(len(layer.heads) for layer in self.layers),
            "head_dim": max((max(head.Q.shape[1], head.V.shape[1]) for head in heads), default=0),
            "mlp_width": max((len(b) for layer in self.layers for _, b in layer.mlp[:-1]), default=0),
            "norm": float(np.max([np.abs(weight).max() for weight in weights if weight.size])),
        }

    def __call__(self, x_NxTxD: Array, dtype: type = np.float64) -> Array:
        """Return the rows behind the last layer."""
        x: NDArray = x_NxTxD.astype(dtype)
        for layer in self.layers:
            x = _mlp(layer, _attention(layer, x, dtype), dtype)
        return x


def _attention(layer: Layer, x: NDArray, dtype: type) -> NDArray:
    if not layer.heads:
        return x
    output = x * layer.kept_attention.astype(dtype)
    mask: NDArray = np.triu(np.full((x.shape[1],) * 2, -np.inf, dtype), 1)
    for head in layer.heads:
        Q, K, V, C = (getattr(head, name).astype(dtype) for name in "QKVC")
        scores = (x @ Q) @ (x @ K).swapaxes(-1, -2) + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        output = output + (weights @ (x @ V)) @ C
    return output


def _mlp(layer: Layer, x: NDArray, dtype: type) -> NDArray:
    if not layer.mlp:
        return x
    rows, parts = x.reshape(-1, x.shape[-1]), []
    between = layer.between or [relu] * (len(layer.mlp) - 1)
    for start in range(0, len(rows), MOST_ROWS):
        h = rows[start : start + MOST_ROWS]
        for i, (W, b) in enumerate(layer.mlp):
            h = h @ W.astype(dtype) + b.astype(dtype)
            if i < len(layer.mlp) - 1:
                h = between[i](h)
        parts.append(h)
    made: NDArray = np.concatenate(parts).reshape(x.shape) + x * layer.kept_mlp.astype(dtype)
    return made


@dataclass(frozen=True)
class Built:
    """A construction: ``embed`` tokens (N, T) -> rows, ``decode`` rows -> states (N, T) and the largest distance of an
    output from an integer; ``bounds`` are the claimed sizes by their names."""

    name: str
    network: Network
    embed: Callable[[Ints], Array]
    decode: Callable[[NDArray], tuple[Ints, float]]
    bounds: Mapping[str, float] = field(default_factory=dict)

    def run(self, tokens_NxT: Ints, dtype: type = np.float64) -> tuple[Ints, float]:
        """Return what the network says of each position, and the largest distance of an output from an integer."""
        return self.decode(self.network(self.embed(tokens_NxT), dtype))


def rounded(outputs: NDArray) -> tuple[Ints, float]:
    """Return the nearest integers, and how far the outputs are from them at most; NaN outputs are -1."""
    clean = np.nan_to_num(outputs, nan=-1.0)
    nearest = np.rint(clean)
    distance = float(np.abs(outputs - nearest).max())  # NaN stays NaN
    return nearest.astype(np.int64), distance


# --- gadgets (section 3.4.4.1) ---------------------------------------------------------------------


def unit(dim: int, *at: int) -> Array:
    """Return columns (dim, len(at)) of unit vectors."""
    columns = np.zeros((dim, len(at)))
    columns[list(at), range(len(at))] = 1
    return columns


def indicators(dim: int, at: int, values: Sequence[float], spacing: float) -> tuple[Array, Array, Array]:
    """Return weights (dim, 4n), bias (4n,) and the matrix (4n, n) that sums four ReLUs to each 1[x_at = value].

    Lemma 10: exact for deviations up to a quarter of the spacing.
    """
    D = spacing / 4
    points = np.asarray(values, float)
    W = np.zeros((dim, 4 * len(points)))
    W[at] = 1 / D
    b = (np.array([2.0, 1.0, -1.0, -2.0]) * D - points[:, None]) / D
    return W, b.reshape(-1), np.kron(np.eye(len(points)), np.array([[1.0], [-1.0], [-1.0], [1.0]]))


def lookup(
    dim: int,
    reads: Sequence[int],
    table: Mapping[Any, Sequence[float]],
    writes: Sequence[int],
    spacing: float = 1.0,
    bias: int | None = None,
) -> Mlp:
    """Return the MLP that writes ``table[values of reads]`` (Lemma 10 for one coordinate, Lemma 11 for several).

    ``bias`` is what the second layer subtracts: one less than the coordinates, in print as many.
    """
    keys = sorted(table)
    F = np.zeros((len(keys), dim))
    F[:, list(writes)] = np.array([list(table[key]) for key in keys], float).reshape(len(keys), len(writes))
    parts = [(sorted({key[i] for key in keys}), at) for i, at in enumerate(reads)]
    made = [indicators(dim, at, [v * spacing for v in values], spacing) for values, at in parts]
    first = (np.concatenate([W for W, _, _ in made], 1), np.concatenate([b for _, b, _ in made]))
    if len(reads) == 1:
        return [first, (made[0][2] @ F, np.zeros(dim))]
    pick = [
        np.array([[float(key[i] == value) for key in keys] for value in values]) for i, (values, _) in enumerate(parts)
    ]
    second = np.concatenate([sums @ chosen for (_, _, sums), chosen in zip(made, pick, strict=True)])
    less = len(reads) - 1 if bias is None else bias
    return [first, (second, np.full(len(keys), -float(less))), (F, np.zeros(dim))]


def beside(dim: int, mlps: Sequence[Mlp]) -> Mlp:
    """Return one MLP that does what these do, each on its coordinates; the shallower wait (r(h) = h for h >= 0)."""
    if len(mlps) == 1:
        return mlps[0]
    depth = max(map(len, mlps))
    even = []
    for mlp in mlps:
        units = len(mlp[-2][1])
        even.append([*mlp[:-1], *[(np.eye(units), np.zeros(units))] * (depth - len(mlp)), mlp[-1]])
    layers: Mlp = [(np.concatenate([m[0][0] for m in even], 1), np.concatenate([m[0][1] for m in even]))]
    for i in range(1, depth - 1):
        blocks = [m[i][0] for m in even]
        W = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)))
        row = column = 0
        for block in blocks:
            W[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        layers.append((W, np.concatenate([m[i][1] for m in even])))
    layers.append((np.concatenate([m[-1][0] for m in even]), np.zeros(dim)))
    return layers


def composition(states: int, left: Sequence[int], right: Sequence[int], dim: int) -> Mlp:
    """Return Lemma 14: of maps g (``left``) and f (``right``) of 1..states, one coordinate each, f after g on
    ``right``."""
    n = states
    made = [indicators(dim, left[q], range(1, n + 1), 1.0) for q in range(n)]
    passed = unit(dim, *right)
    first = (
        np.concatenate([*(W for W, _, _ in made), passed], 1),
        np.concatenate([*(b for _, b, _ in made), np.zeros(n)]),
    )
    W = np.zeros((4 * n * n + n, n * n))
    for q in range(n):
        for p in range(n):
            W[4 * n * q : 4 * n * (q + 1), n * q + p] = n * made[q][2][:, p]
            W[4 * n * n + p, n * q + p] = 1
    out = np.zeros((n * n, dim))
    for q in range(n):
        out[n * q : n * (q + 1), right[q]] = 1
    return [first, (W, np.full(n * n, -float(n))), (out, np.zeros(dim))]


def _all_but(dim: int, written: Iterable[int]) -> Array:
    kept = np.ones(dim)
    kept[list(written)] = 0
    return kept


def _plain(dim: int, mlp: Mlp, written: Iterable[int]) -> Layer:
    """Return a layer without heads whose MLP replaces the coordinates ``written``."""
    return Layer([], np.ones(dim), mlp, _all_but(dim, written))


# --- Theorem 10: prefix composition in logarithmic depth -------------------------------------------


def prefix_composition(
    table_QxS: Ints,
    q0: int | None,
    length: int,
    *,
    sign: int = 1,
    value: str = "R",
    readout: int | None = None,
    sharpness: float | None = None,
) -> Built:
    """Return Theorem 10 for the automaton ``next`` (Q, S) and inputs of ``length``.

    ``q0`` None pads with the identity instead of the constant map q_0; then the whole prefix map can be read, and
    ``decode`` returns the state that starts in ``readout``. Printed forms: ``sign`` -1, ``value`` "L", ``readout``
    other than q_0. ``sharpness`` replaces gamma / T'^2.
    """
    n, _ = table_QxS.shape
    levels = max(math.ceil(math.log2(length)), 0)
    padded = 2**levels
    dim = 2 * n + 2
    left, right, p1, p2 = range(n), range(n, 2 * n), 2 * n, 2 * n + 1
    gamma = padded**2 * (100 * (math.log(n) + math.log(padded)) if sharpness is None else sharpness)
    layers = []
    for level in range(1, levels + 1):
        angle = sign * math.pi * 2 ** (level - 1) / padded
        Q = math.sqrt(gamma) * unit(dim, p1, p2)
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        V = unit(dim, *(right if value == "R" else left))
        heads = [Head(Q, Q, V, unit(dim, *right).T), Head(Q, Q @ turn, V, unit(dim, *left).T)]
        kept = _all_but(dim, [*left, *right])
        layers.append(Layer(heads, kept, composition(n, left, right, dim), kept))
    at = np.arange(-padded + 1, padded + 1)
    circle = np.stack([np.cos(np.pi * at / padded), np.sin(np.pi * at / padded)], 1)
    maps = np.arange(n) if q0 is None else np.full(n, q0)

    def embed(tokens: Ints) -> Array:
        x = np.zeros((len(tokens), 2 * padded, dim))
        x[:, :padded, n : 2 * n] = maps + 1
        filled = np.zeros((len(tokens), padded), np.int64)
        filled[:, :length] = tokens
        x[:, padded:, n : 2 * n] = table_QxS.T[filled] + 1
        if value == "L":
            x[..., :n] = x[..., n : 2 * n]
        x[..., p1:] = circle
        return x

    start = readout if readout is not None else q0
    assert start is not None

    def decode(y: NDArray) -> tuple[Ints, float]:
        values, off = rounded(y[:, padded : padded + length, n + start])
        return values - 1, off

    bounds = {
        "depth": max(levels, 1),
        "dim": 2 * n + 2,
        "heads": 2,
        "mlp_width": n**2 + n,
        "norm": max(4 * n + 2, 10 * padded * math.sqrt(math.log(n) + math.log(padded))),
    }
    return Built("THM-10", Network(layers, dim), embed, decode, bounds)


# --- Lemmas 15 and 16: one layer -------------------------------------------------------------------


def counter_mlp(dim: int, at: int, modulus: int, length: int, q0: int = 0, scale: int = 2) -> Mlp:
    """Return s -> (2T s + q_0) mod n on one coordinate (Lemma 15); in print, ``scale`` is 1."""
    table = {(k,): [(scale * k / 2 + q0) % modulus] for k in range(length * (modulus - 1) + 1)}
    return lookup(dim, [at], table, [at], 1 / (2 * length))


PERIODIC = (np.sin, relu)  # activations of `periodic_mlp`


def periodic_mlp(dim: int, at: int, modulus: int, length: int, q0: int = 0) -> Mlp:
    """Return s -> (2T s + q_0) mod n by two sines and n ReLUs, whatever T is (footnote 14).

    The sines put the count on a circle with n places. A unit for each place measures how far the point lies beyond
    the chord between that place's neighbours, which is 1 there and at most 0 at the others.
    """
    turn, W = 2 * math.pi / modulus, np.zeros((dim, 2))
    W[at] = turn * 2 * length
    phase = np.array([turn * q0 + math.pi / 2, turn * q0])  # of the cosine and the sine
    places, near = turn * np.arange(modulus), math.cos(turn)
    second = np.stack([np.cos(places), np.sin(places)]) / (1 - near), np.full(modulus, -near / (1 - near))
    out = np.zeros((modulus, dim))
    out[:, at] = np.arange(modulus)
    return [(W, phase), second, (out, np.zeros(dim))]


def positions(length: int) -> Array:
    """Return log(2T - t) for t = 1..T: they give a softmax over t tokens and one pad equal weights 1/2T for the
    tokens."""
    return np.log(2 * length - np.arange(1, length + 1))


def counter(modulus: int, q0: int, length: int, scale: int = 2, *, periodic: bool = False) -> Built:
    """Return Lemma 15: a mod-n counter in one layer; ``periodic`` with sines, in a width that T does not change."""
    dim = 3
    head = Head(unit(dim, 2), unit(dim, 1), unit(dim, 0), unit(dim, 0).T)
    kept = _all_but(dim, [0])
    if periodic:
        layer = Layer([head], kept, periodic_mlp(dim, 0, modulus, length, q0), kept, PERIODIC)
    else:
        layer = Layer([head], kept, counter_mlp(dim, 0, modulus, length, q0, scale), kept)

    def embed(tokens: Ints) -> Array:
        x = np.zeros((len(tokens), length + 1, dim))
        x[:, 1:, 0], x[:, 0, 1], x[:, 1:, 2] = tokens, 1, positions(length)
        return x

    bounds = {
        "depth": 1,
        "dim": 3,
        "heads": 1,
        "head_dim": 1,
        "mlp_width": 4 * modulus * length,
        "norm": 4 * modulus * length + 2,
    }
    return Built("LEM-15", Network([layer], dim), embed, lambda y: rounded(y[:, 1:, 0]), bounds)


def memory(states: int, q0: int, length: int, printed_score: bool = False) -> Built:
    """Return Lemma 16: the last symbol that is not 0 (of 1..|Q|, which sets state - 1), in one layer."""
    dim, c = 4, length * math.log(16 * states * length)
    Q = np.zeros((dim, 2))
    Q[3] = [-1.0 if printed_score else -2.0, 1.0]
    K = np.zeros((dim, 2))
    K[1, 0] = K[2, 1] = c
    kept = _all_but(dim, [0])
    table = {(q,): [q] for q in range(1, states + 1)}
    layer = Layer([Head(Q, K, unit(dim, 0), unit(dim, 0).T)], kept, lookup(dim, [0], table, [0]), kept)

    def embed(tokens: Ints) -> Array:
        x = np.zeros((len(tokens), length, dim))
        x[..., 0] = np.where(tokens == 0, q0 + 1, tokens)
        x[..., 1], x[..., 2], x[..., 3] = tokens == 0, np.arange(1, length + 1) / length, 1
        return x

    def decode(y: NDArray) -> tuple[Ints, float]:
        values, off = rounded(y[..., 0])
        return values - 1, off

    bounds = {
        "depth": 1,
        "dim": 4,
        "heads": 1,
        "head_dim": 2,
        "mlp_width": 4 * states,
        "norm": max(4 * states + 2, 2 * length * math.log(states * length)),  # in print, the second alone
    }
    return Built("LEM-16", Network([layer], dim), embed, decode, bounds)


# --- group simulators (section 3.4.4.3.3) ----------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """What one layer of a group simulator does to the channels of a code.

    ``counts`` sums a channel modulo n along the sequence (Lemma 15). ``moves`` reindex (channels (p, k), the channel of
    kappa, sign): f(x) becomes f(x + sign kappa). ``tables`` look values up: (reads, table, writes).
    """

    counts: tuple[tuple[int, int], ...] = ()
    moves: tuple[tuple[tuple[tuple[int, ...], ...], int, int], ...] = ()
    tables: tuple[tuple[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]], tuple[int, ...]], ...] = ()

    def shifted(self, by: int) -> Stage:
        """Return the same on channels that lie ``by`` further."""
        return Stage(
            tuple((at + by, n) for at, n in self.counts),
            tuple((tuple(tuple(c + by for c in row) for row in f), k + by, s) for f, k, s in self.moves),
            tuple(
                (tuple(r + by for r in reads), table, tuple(w + by for w in writes))
                for reads, table, writes in self.tables
            ),
        )

    def __add__(self, other: Stage) -> Stage:
        return Stage(self.counts + other.counts, self.moves + other.moves, self.tables + other.tables)


@dataclass(frozen=True)
class Simulator:
    """``codes`` (G, channels) of the elements, the identity's all 0; ``stages`` turn codes of s_t into those of
    s_t ... s_1."""

    group: Group
    codes: Ints
    stages: tuple[Stage, ...]

    @property
    def size(self) -> int:
        """Values of a channel, repSize."""
        return int(self.codes.max()) + 1

    def decode(self, outputs: NDArray) -> tuple[Ints, float]:
        """Return the element of each row of codes (..., channels), -1 for none, and the distance from integers."""
        near, off = rounded(outputs)
        place = {tuple(code): i for i, code in enumerate(self.codes.tolist())}
        flat = [place.get(tuple(row), -1) for row in near.reshape(-1, near.shape[-1]).tolist()]
        return np.array(flat, np.int64).reshape(near.shape[:-1]), off


def cyclic(group: Group) -> Simulator:
    """Return the simulator of a cyclic group: a counter (Lemma 15). Raises SandglassError for another group."""
    n = len(group)
    for g in range(n):
        powers = [0]
        while (power := int(group.mul[g, powers[-1]])) != 0:
            powers.append(power)
        if len(powers) == n:
            codes = np.zeros((n, 1), np.int64)
            codes[powers, 0] = range(n)
            return Simulator(group, codes, (Stage(counts=((0, n),)),))
    raise SandglassError(f"a group of {n} elements that is not cyclic is no counter")


def direct(first: Simulator, second: Simulator) -> Simulator:
    """Return the simulator of the direct product (Lemma 17), on disjoint points."""
    k = len(first.group.elements[0])
    members = {
        (*a, *(x + k for x in b)): (i, j)
        for i, a in enumerate(first.group.elements)
        for j, b in enumerate(second.group.elements)
    }
    group, width = group_of(members), first.codes.shape[1]
    pairs = [members[element] for element in group.elements]
    codes = np.array([[*first.codes[i], *second.codes[j]] for i, j in pairs])
    depth = max(len(first.stages), len(second.stages))
    stages = tuple(
        (first.stages[d] if d < len(first.stages) else Stage())
        + (second.stages[d].shifted(width) if d < len(second.stages) else Stage())
        for d in range(depth)
    )
    return Simulator(group, codes, stages)


def semidirect(
    normal: Simulator, acting: Simulator, phi: Callable[[int, int], int], *, third: Simulator | None = None
) -> Simulator:
    """Return the simulator of N x| H with (g, h)(g', h') = (g phi_h(g'), h h') (Lemma 18), acting on itself.

    Printed form: the ``third`` part of the cascade, on the channels of N, is a copy of the simulator of H.
    """
    pairs = [(g, h) for g in range(len(normal.group)) for h in range(len(acting.group))]
    place = {pair: i for i, pair in enumerate(pairs)}
    maps = {
        tuple(place[int(normal.group.mul[g, phi(h, x)]), int(acting.group.mul[h, y])] for x, y in pairs): (g, h)
        for g, h in pairs
    }
    group, a, b = group_of(maps), normal.codes.shape[1], acting.codes.shape[1]
    of = [maps[element] for element in group.elements]
    codes = np.array([[*normal.codes[g], *acting.codes[h]] for g, h in of])

    def table(inverted: bool) -> Stage:
        images = {}
        for g, h in pairs:
            image = phi(int(acting.group.inverse[h]) if inverted else h, g)
            images[*normal.codes[g].tolist(), *acting.codes[h].tolist()] = tuple(normal.codes[image].tolist())
        return Stage(tables=((tuple(range(a + b)), images, tuple(range(a))),))

    inner = (third or normal).stages
    stages = (*(s.shifted(a) for s in acting.stages), table(True), *inner, table(False))
    return Simulator(group, codes, stages)


def _wreath_stages(inner: Simulator, p: int) -> tuple[Stage, ...]:
    """Return Lemma 19's stages on the codes of f(0), ..., f(p - 1) and a counter modulo p."""
    width = inner.codes.shape[1]
    channels = tuple(tuple(range(x * width, (x + 1) * width)) for x in range(p))
    copies = tuple(sum((stage.shifted(x * width) for x in range(p)), Stage()) for stage in inner.stages)
    return (
        Stage(counts=((p * width, p),)),
        Stage(moves=((channels, p * width, -1),)),
        *copies,
        Stage(moves=((channels, p * width, 1),)),
    )


def wreath(inner: Simulator, p: int) -> Simulator:
    """Return the simulator of the whole wreath product of N by C_p (Lemma 19), acting on itself:
    (f, h)(f', h') = (f phi_h(f'), h + h') with phi_h(f)(x) = f(x + h)."""
    pairs = [(f, h) for f in itertools.product(range(len(inner.group)), repeat=p) for h in range(p)]
    place, mul = {pair: i for i, pair in enumerate(pairs)}, inner.group.mul

    def times(f: tuple[int, ...], h: int, g: tuple[int, ...], k: int) -> int:
        return place[tuple(int(mul[f[x], g[(x + h) % p]]) for x in range(p)), (h + k) % p]

    maps = {tuple(times(f, h, g, k) for g, k in pairs): (f, h) for f, h in pairs}
    group = group_of(maps)
    of = [maps[element] for element in group.elements]
    codes = np.array([[*inner.codes[list(f)].reshape(-1), h] for f, h in of])
    return Simulator(group, codes, _wreath_stages(inner, p))


def solvable(group: Group, *, counters: bool = False) -> Simulator:
    """Return Theorem 16: wreath products along a series of maximal normal subgroups (Lemma 19).

    The universal embedding g -> (f_g, kappa(g)), f_g(x) = s_x g s_{x+kappa(g)}^-1 (Krasner and Kaloujnine), is
    explicit. With ``counters`` the series ends at the first cyclic group, whatever its order.

    Raises SandglassError for a group that is not solvable.
    """
    if counters and len(group) in group.orders():
        return cyclic(group)
    normal = sorted(group.maximal_normal())
    p = len(group) // len(normal)
    if len(group) > 1 and any(p % d == 0 for d in range(2, math.isqrt(p) + 1)):
        raise SandglassError(
            f"the group of {len(group)} elements is not solvable: a factor of {p} elements is simple and not cyclic"
        )
    if len(normal) == 1:
        return cyclic(group)
    inner = solvable(group.subgroup(normal), counters=counters)
    place, width = {element: i for i, element in enumerate(inner.group.elements)}, inner.codes.shape[1]
    t = min(set(range(len(group))) - set(normal))
    s = [0]
    for _ in range(p - 1):
        s.append(int(group.mul[t, s[-1]]))
    kappa = {int(group.mul[x, s[h]]): h for x in normal for h in range(p)}
    codes = np.zeros((len(group), p * width + 1), np.int64)
    for g in range(len(group)):
        for x in range(p):
            f = group.mul[group.mul[s[x], g], group.inverse[s[(x + kappa[g]) % p]]]
            codes[g, x * width : (x + 1) * width] = inner.codes[place[group.elements[int(f)]]]
        codes[g, -1] = kappa[g]
    return Simulator(group, codes, _wreath_stages(inner, p))


def _reindex(dim: int, channels: tuple[tuple[int, ...], ...], kappa: int, sign: int, size: int, offset: int) -> Mlp:
    """Return the MLP f(x) -> f(x + sign kappa) on ``channels`` (p, k): indicators of kappa gate copies (Lemma 19)."""
    p, flat = len(channels), [c + offset for row in channels for c in row]
    k = len(flat) // p
    W, b, sums = indicators(dim, kappa + offset, range(p), 1.0)
    first = np.concatenate([W, unit(dim, *flat)], 1), np.concatenate([b, np.zeros(len(flat))])
    second = np.zeros((4 * p + len(flat), p * p * k))
    out = np.zeros((p * p * k, dim))
    for x in range(p):
        for i in range(k):
            for h in range(p):
                at = (x * k + i) * p + h
                second[: 4 * p, at] = size * sums[:, h]
                second[4 * p + ((x + sign * h) % p) * k + i, at] = 1
                out[at, flat[x * k + i]] = 1
    return [first, (second, np.full(p * p * k, -float(size))), (out, np.zeros(dim))]


def stage_layer(
    dim: int, stage: Stage, length: int, size: int, offset: int, pad: int, pos: int, periodic: bool = False
) -> Layer:
    """Return the layer of a stage whose channels begin at coordinate ``offset``; ``periodic`` counts with sines, which
    no other part of the stage must stand beside."""
    sines = periodic and bool(stage.counts)
    assert not sines or not (stage.moves or stage.tables)
    heads, mlps, counted, written = [], [], [], []
    for at, n in stage.counts:
        heads.append(Head(unit(dim, pos), unit(dim, pad), unit(dim, at + offset), unit(dim, at + offset).T))
        made = periodic_mlp if sines else counter_mlp
        mlps.append(made(dim, at + offset, n, length))
        counted.append(at + offset)
    for channels, kappa, sign in stage.moves:
        mlps.append(_reindex(dim, channels, kappa, sign, size, offset))
        written += [c + offset for row in channels for c in row]
    for reads, table, writes in stage.tables:
        mlps.append(lookup(dim, [r + offset for r in reads], table, [w + offset for w in writes]))
        written += [w + offset for w in writes]
    between = PERIODIC if sines else ()
    return Layer(heads, _all_but(dim, counted), beside(dim, mlps), _all_but(dim, counted + written), between)


def group_network(
    simulator: Simulator, symbols: Sequence[int], length: int, degree: int, name: str, *, periodic: bool = False
) -> Built:
    """Return the network that says which element s_t ... s_1 is; ``symbols`` are the elements of the input symbols."""
    width = simulator.codes.shape[1]
    dim, pad, pos = width + 2, width, width + 1
    layers = [stage_layer(dim, s, length, simulator.size, 0, pad, pos, periodic) for s in simulator.stages]

    def embed(tokens: Ints) -> Array:
        x = np.zeros((len(tokens), length + 1, dim))
        x[:, 1:, :width] = simulator.codes[np.asarray(symbols)[tokens]]
        x[:, 0, pad], x[:, 1:, pos] = 1, positions(length)
        return x

    order = len(simulator.group)
    bounds = {
        "depth": 3 * math.log2(order),
        "dim": 2 * order,
        "heads": 2 * order,
        "head_dim": 1,
        "mlp_width": 20 * degree * length * order,
        "norm": 6 * degree * length,
    }
    return Built(name, Network(layers, dim), embed, lambda y: simulator.decode(y[:, 1:, :width]), bounds)


def of_states(built: Built, simulator: Simulator, q0: int) -> Built:
    """Return the construction with states in place of group elements: q_t = g_t(q_0)."""
    image = np.array([element[q0] for element in simulator.group.elements])

    def decode(y: NDArray) -> tuple[Ints, float]:
        elements, off = built.decode(y)
        return np.where(elements < 0, -1, image[elements]), off

    return replace(built, decode=decode)


# --- Lemmas 20, 21, Theorem 11: cascades of permutation-reset components ---------------------------


def cascade_network(
    cascade: Cascade,
    n_symbols: int,
    length: int,
    *,
    pad_resets: bool = True,
    previous: bool = True,
    periodic: bool = False,
) -> Built:
    """Return Theorem 11 for a cascade: per level layers that wire, count, remember and apply.

    Printed forms: without ``pad_resets`` the pad is no reset to the initial state (Lemma 20); without ``previous`` a
    level sees the states behind the current symbol (Lemma 21). ``periodic`` counts with sines (footnote 14).

    Raises SandglassError if a level's group is not solvable.
    """
    tok, pad, pos, time, one, cos, sin = range(7)
    plans, at = [], 7
    for level in cascade.levels:
        group = generated(level.permutations)
        simulator = solvable(group) if len(group) > 1 else None
        width = simulator.codes.shape[1] if simulator else 0
        G, held = list(range(at, at + width)), list(range(at + width, at + 2 * width))
        M, B, st, pv = range(at + 2 * width, at + 2 * width + 4)
        plans.append((level, simulator, G, held, M, B, st, pv))
        at += 2 * width + 4
    dim, layers = at, list[Layer]()
    starts: list[int] = []
    for i, (level, simulator, G, held, M, B, st, _) in enumerate(plans):
        above = [(p[6], p[7]) for p in plans[:i]]  # st, pv
        layers.append(
            _wiring(dim, level, simulator, above, G, M, B, starts, (tok, cos, sin), length, pad_resets, previous)
        )
        size = 1
        if simulator:
            size = simulator.size
            layers += [stage_layer(dim, s, length, size, G[0], pad, pos, periodic) for s in simulator.stages]
        c = length * math.log(16 * max(level.size, size) * (length + 1))
        Q, K = np.zeros((dim, 2)), np.zeros((dim, 2))
        Q[one], K[B, 0], K[time, 1] = [-2.0, 1.0], c, c
        head = Head(Q, K, unit(dim, M, *G), unit(dim, M, *held).T)
        layers.append(Layer([head], _all_but(dim, [M, *held]), [], np.ones(dim)))
        layers.append(_plain(dim, lookup(dim, [*G, *held, M], _applied(level.size, simulator), [st]), [st]))
        starts.append(level.start)
    steps = np.arange(length + 1)
    angle = np.pi * steps / (length + 1)

    def embed(tokens: Ints) -> Array:
        x = np.zeros((len(tokens), length + 1, dim))
        x[:, 1:, tok], x[:, 0, pad], x[:, 1:, pos] = tokens + 1, 1, positions(length)
        x[..., time], x[..., one], x[..., cos], x[..., sin] = steps / length, 1, np.cos(angle), np.sin(angle)
        return x

    def decode(y: NDArray) -> tuple[Ints, float]:
        near, off = rounded(y[:, 1:, [p[6] for p in plans]])
        flat = [cascade.readout.get(tuple(row), -1) for row in near.reshape(-1, len(plans)).tolist()]
        return np.array(flat, np.int64).reshape(near.shape[:2]), off

    return Built("THM-11", Network(layers, dim), embed, decode)


def _wiring(
    dim: int,
    level: Level,
    simulator: Simulator | None,
    above: list[tuple[int, int]],
    G: list[int],
    M: int,
    B: int,
    starts: list[int],
    common: tuple[int, int, int],
    length: int,
    pad_resets: bool,
    previous: bool,
) -> Layer:
    """Return the layer that tells a level what its component reads: (states of the levels above, symbol) -> permutation
    or reset."""
    tok, cos, sin = common
    code = {} if simulator is None else dict(zip(simulator.group.elements, simulator.codes.tolist(), strict=True))
    none = [0] * len(G)
    table: dict[tuple[int, ...], list[float]] = {
        (*starts, 0): [*none, level.start if pad_resets else 0, 0 if pad_resets else 1]
    }
    for (states, symbol), move in level.moves.items():
        bijective = len(set(move)) == len(move)
        table[*states, symbol + 1] = [*(code[move] if code else none), 0, 1] if bijective else [*none, move[0], 0]
    reads = [pv if previous else st for st, pv in above]
    mlp = lookup(dim, [*reads, tok], table, [*G, M, B])
    if not above:
        return _plain(dim, mlp, [*G, M, B])
    n = length + 1
    gamma = 100 * n**2 * (math.log(max(dim, 2)) + math.log(n))
    turn = math.pi / n  # to the key of the position before
    rotation = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    Q = math.sqrt(gamma) * unit(dim, cos, sin) @ rotation
    head = Head(
        Q,
        math.sqrt(gamma) * unit(dim, cos, sin),
        unit(dim, *(st for st, _ in above)),
        unit(dim, *(pv for _, pv in above)).T,
    )
    return Layer([head], _all_but(dim, [pv for _, pv in above]), mlp, _all_but(dim, [*G, M, B]))


def _applied(size: int, simulator: Simulator | None) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return (g, k, m) -> (g k^-1)(m), by codes (Eq. 3.2)."""
    if simulator is None:
        return {(m,): (m,) for m in range(size)}
    group, codes = simulator.group, simulator.codes.tolist()
    return {
        (*codes[g], *codes[k], m): (group.elements[int(group.mul[g, group.inverse[k]])][m],)
        for g in range(len(group))
        for k in range(len(group))
        for m in range(size)
    }


def one_level(maps: Sequence[Map], q0: int) -> Cascade:
    """Return a permutation-reset semiautomaton (Definition 7) as a cascade of one level. Raises SandglassError for a
    symbol that neither permutes nor resets."""
    for each in maps:
        if len(set(each)) not in (1, len(each)):
            raise SandglassError(f"{each} is neither a permutation nor a reset")
    moves: dict[tuple[tuple[int, ...], int], Map] = {((), symbol): each for symbol, each in enumerate(maps)}
    return Cascade((Level(len(maps[0]), q0, moves),), {(q,): q for q in range(len(maps[0]))})


# --- Theorem 12: the gridworld in two layers -------------------------------------------------------


def grid_network(
    S: int,
    length: int,
    q0: int = 0,
    *,
    padded_position: bool = True,
    least: str = "window",
    matched: str = "neighbour",
    periodic: bool = False,
) -> Built:
    """Return Theorem 12 for states 0..S and moves -1, 0, +1 (tokens 0, 1, 2): two layers, three hidden layers of O(S)
    units behind the second attention.

    ``least`` says how the window is found that was filled last: by comparing it with both beside it ("window"), or as
    in the source by the least of all windows, with a pooling layer ("pool") or pair by pair ("pairs"). ``periodic``
    finds the circular code with two sines instead of a width of 4(2T' + 1).

    Printed forms: without ``padded_position`` the pad has position 0 and outscores every key with z = 0; ``matched``
    "centre" takes a head for one whose value was not reached only if it selects t itself.
    """
    before = [-1] * S + [1] * q0
    n = len(before) + length
    heads_at, out = 7, 7 + 2 * S + 1
    tok, pad, pos, x, one, cos, sin = range(7)
    dim = out + 1
    gamma = np.log(2 * n - np.arange(1, n + 1))
    prefix = Head(unit(dim, pos), unit(dim, pad), unit(dim, tok), unit(dim, x).T)
    turn = {(z,): [math.cos(math.pi * z / (2 * n)), math.sin(math.pi * z / (2 * n))] for z in range(-n, n + 1)}
    circular, sines = lookup(dim, [x], turn, [cos, sin], 1 / (2 * n)), tuple[Activation, ...]()
    if periodic:
        sines = (np.sin,)
        circular = [(math.pi * unit(dim, x, x), np.array([math.pi / 2, 0])), (unit(dim, cos, sin).T, np.zeros(dim))]
    first = Layer([prefix], _all_but(dim, [x]), circular, _all_but(dim, [cos, sin]), sines)
    c = math.pi**2 / (16 * math.log(2) * n**2)
    beta = math.log(64 * n * (n + 1) * math.log(2 * n)) * 2 * n / c
    heads = []
    for s in range(2 * S + 1):
        angle = (s - S) * math.pi / (2 * n)
        Q, K = np.zeros((dim, 3)), np.zeros((dim, 3))
        Q[cos, :2], Q[sin, :2] = [math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]
        Q[one, 2] = -c
        K[[cos, sin, pos], range(3)] = 1
        heads.append(Head(math.sqrt(beta) * Q, math.sqrt(beta) * K, unit(dim, pos), unit(dim, heads_at + s).T))
    if least == "window":
        state, between = window(dim, S, n, heads_at, out), tuple[Activation, ...]()
    else:
        state, between = least_window(dim, S, n, heads_at, out, least == "pool", matched)
    second = Layer(heads, _all_but(dim, range(heads_at, out)), state, _all_but(dim, [out]), between)

    def embed(tokens: Ints) -> Array:
        rows = np.zeros((len(tokens), n + 1, dim))
        rows[:, 1:, tok] = np.concatenate([np.broadcast_to(before, (len(tokens), len(before))), tokens - 1], 1)
        rows[:, 0, pad], rows[:, 1:, pos], rows[..., one] = 1, gamma, 1
        rows[:, 0, pos] = math.log(2 * n) if padded_position else 0.0
        return rows

    def decode(y: NDArray) -> tuple[Ints, float]:
        return rounded(y[:, 1 + len(before) :, out])

    bounds = {"depth": 2, "heads": 2 * S + 1, "mlp_width": 4 * (2 * n + 1)}
    return Built("THM-12", Network([first, second], dim), embed, decode, bounds)


def head_outputs(built: Built, S: int, y: NDArray) -> NDArray:
    """Return what the 2S + 1 heads of `grid_network` saw, (..., 2S + 1)."""
    return y[..., 7 : 7 + 2 * S + 1]


def window(dim: int, S: int, n: int, heads: int, out: int) -> Mlp:
    """Return the MLP that finds the window of S + 1 values which was filled last, and writes S - s."""
    gap = 1 / (2 * n)
    pairs: dict[tuple[str, int], tuple[int, int]] = {}  # name -> a > b
    for s in range(2 * S + 1):
        if s != S:
            pairs["m", s] = (s, s + 1 if s < S else s - 1)
    for s in range(S + 1):
        if s > 0:
            pairs["L", s] = (s - 1, s + S)
        if s < S:
            pairs["R", s] = (s + S + 1, s)
    W1, b1 = np.zeros((dim, 2 * len(pairs))), np.zeros(2 * len(pairs))
    place = {name: i for i, name in enumerate(pairs)}
    for name, (a, b) in pairs.items():
        for k, shift in enumerate((0.25, 0.75)):
            at = 2 * place[name] + k
            W1[heads + a, at], W1[heads + b, at], b1[at] = 2 / gap, -2 / gap, -2 * shift
    units: dict[tuple[str, int], dict[tuple[str, int], float]] = {}
    for s in range(2 * S + 1):
        if s != S:
            units["m", s] = {("m", s): 1.0}
    for s in range(S + 1):
        if s > 0:
            units["rL", s] = {("m", s - 1): 1.0, ("L", s): -1.0}
        if s < S:
            units["rR", s] = {("m", s + S + 1): 1.0, ("R", s): -1.0}
    W2, b2 = np.zeros((2 * len(pairs), len(units))), np.zeros(len(units))
    where = {name: i for i, name in enumerate(units)}
    for name, terms in units.items():
        for term, weight in terms.items():
            W2[2 * place[term], where[name]] += weight
            W2[2 * place[term] + 1, where[name]] -= weight
    W3, b3 = np.zeros((len(units), S + 1)), np.full(S + 1, -1.0)
    W4 = np.zeros((S + 1, dim))
    for s in range(S + 1):
        for end in (s, s + S):
            if end == S:
                b3[s] += 1  # m_S = 1
            else:
                W3[where["m", end], s] += 1
        for name in (("rL", s), ("rR", s)):
            if name in where:
                W3[where[name], s] -= 1
        W4[s, out] = S - s
    return [(W1, b1), (W2, b2), (W3, b3), (W4, np.zeros(dim))]


def least_window(
    dim: int, S: int, n: int, heads: int, out: int, pool: bool, matched: str
) -> tuple[Mlp, tuple[Activation, ...]]:
    """Return what `window` does by the source's second construction, and its activations: heads whose value was not
    reached are put behind all others, a window was filled when the earlier of its ends was, and the least is sought.

    With ``pool`` by one pooling layer, else pair by pair in log(S + 1) layers: min(a, b) = r(a) - r(a - b).
    """
    gap, K, beyond = 1 / (2 * n), 2 * S + 1, math.log(2 * n)
    W, b = (np.concatenate([unit(dim, *range(heads, heads + K)), np.zeros((dim, 4 * S))], 1), np.zeros(K + 4 * S))
    late, off = np.zeros((K + 4 * S, K)), np.full(K, beyond)  # a_s, and log 2T' more where nothing matches
    late[range(K), range(K)], off[S] = 1, 0
    for i, s in enumerate(s for s in range(K) if s != S):
        inner = S if matched == "centre" else s + 1 if s < S else s - 1
        for k, (shift, sign) in enumerate(((0.25, -1), (0.75, 1))):
            at = K + 2 * i + k
            W[heads + s, at], W[heads + inner, at], b[at] = 2 / gap, -2 / gap, -2 * shift
            late[at, s] = sign * beyond
    low, high = late[:, : S + 1], late[:, S:]
    mlp: Mlp = [(W, b), (np.concatenate([low, high - low], 1), np.concatenate([off[: S + 1], off[S:] - off[: S + 1]]))]
    filled = np.concatenate([np.eye(S + 1)] * 2)  # max(a, b) = r(a) + r(b - a), of units to windows
    between: list[Activation] = [relu, relu]
    if pool:
        mlp.append((filled, np.zeros(S + 1)))
        between.append(pooled)
        filled, lowest = np.eye(S + 2)[:, :-1], np.eye(S + 2)[:, -1:]
    else:
        lowest = filled
        while (m := lowest.shape[1]) > 1:
            first, second = lowest[:, 0::2], lowest[:, 1::2]
            mlp.append((np.concatenate([filled, first, first[:, : m // 2] - second], 1), np.zeros(S + 1 + m)))
            between.append(relu)
            filled = np.eye(S + 1 + m)[:, : S + 1]
            lowest = np.eye(S + 1 + m)[:, S + 1 : S + 1 + m - m // 2]
            lowest[S + 1 + m - m // 2 :, : m // 2] -= np.eye(m // 2)
    behind = (filled - lowest) * -2 / gap
    mlp.append((np.concatenate([behind, behind], 1), np.repeat([1.5, 0.5], S + 1)))
    last = np.zeros((2 * (S + 1), dim))
    last[:, out] = np.concatenate([S - np.arange(S + 1), np.arange(S + 1) - S])
    return [*mlp, (last, np.zeros(dim))], (*between, relu)


# --- two constructions beside each other -----------------------------------------------------------


def side_by_side(first: Built, second: Built, split: Callable[[Ints], tuple[Ints, Ints]], states: int) -> Built:
    """Return one network that runs two of equal depth on disjoint coordinates (Lemma 17 for semiautomata, Example 5).

    ``split`` turns tokens into those of the two; the state is that of the first times ``states`` plus the second's.
    """
    a, b = first.network, second.network
    layers = [_joined(x, y, a.dim, a.dim + b.dim) for x, y in zip(a.layers, b.layers, strict=True)]

    def embed(tokens: Ints) -> Array:
        return np.concatenate([each.embed(part) for each, part in zip((first, second), split(tokens), strict=True)], -1)

    def decode(y: NDArray) -> tuple[Ints, float]:
        (p, off), (q, distance) = first.decode(y[..., : a.dim]), second.decode(y[..., a.dim :])
        return states * p + q, float(np.max([off, distance]))  # NaN stays NaN

    return Built(f"{first.name} × {second.name}", Network(layers, a.dim + b.dim), embed, decode)


def _joined(first: Layer, second: Layer, at: int, dim: int) -> Layer:
    """Return one layer of two with the same activations, the second on coordinates from ``at`` on."""
    assert tuple(first.between) == tuple(second.between)
    heads, mlps = [], []
    for layer, rows in ((first, slice(0, at)), (second, slice(at, dim))):
        place = np.eye(dim)[rows]
        heads += [Head(place.T @ h.Q, place.T @ h.K, place.T @ h.V, h.C @ place) for h in layer.heads]
        (W, b), *hidden, (V, c) = layer.mlp
        mlps.append([(place.T @ W, b), *hidden, (V @ place, c @ place)])
    kept = (np.concatenate([getattr(layer, k) for layer in (first, second)]) for k in ("kept_attention", "kept_mlp"))
    attention, mlp = kept
    return Layer(heads, attention, beside(dim, mlps), mlp, first.between)
