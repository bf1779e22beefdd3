"""What the theory checks share: Transformers that know the law of a Dyck language, built as weights.

Source: Wen et al. 2023, Theorem 1 (sufficiency) and its proof in appendix C.1, repaired: `exact_solvers` says where.
Everything here runs through `pipeline.models.transformer.theory.forward`, like a trained model, in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.linalg import helmert

from pipeline.languages import dyck
from pipeline.models.transformer import theory as model

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

MARGIN = 0.999  # active coefficients are above this share of their lower bound

Network = list[tuple["NDArray[np.float64]", "NDArray[np.float64]"]]  # weights (in, out) and biases (out,)


@dataclass(frozen=True)
class Language:
    """Dyck_{k,D} with the chain's q."""

    k: int
    depth: int
    q: float = 0.5

    @property
    def symbols(self) -> int:
        """The start token and every (token, pair depth)."""
        return dyck.symbol_count(self.k, self.depth)

    @property
    def pairs(self) -> int:
        """kD: (type, pair depth) of a matched pair, numbered (type - 1) D + pair depth - 1."""
        return self.k * self.depth

    @property
    def opens(self) -> NDArray[np.int64]:
        """(kD,) symbols of the opens, by pair."""
        i, delta = (part.ravel() for part in np.indices((self.k, self.depth)))
        return 1 + 2 * i * self.depth + delta

    @property
    def closes(self) -> NDArray[np.int64]:
        """(kD,) symbols of the closers, by pair."""
        return self.opens + self.depth

    @property
    def depths(self) -> NDArray[np.int64]:
        """(symbols,) depth of the token behind each symbol: pair depth of an open, one less of a closer."""
        symbol_depths = np.zeros(self.symbols, np.int64)
        pair_depth = np.tile(np.arange(1, self.depth + 1), self.k)
        symbol_depths[self.opens], symbol_depths[self.closes] = pair_depth, pair_depth - 1
        return symbol_depths

    def law(self, tokens: NDArray) -> NDArray[np.float64]:
        """Return the true law of the next token, (n, T + 1, 2k), after the start token and after each of (n,
        T) tokens."""
        last = dyck.last_unmatched_open(tokens).astype(np.int64)
        top = np.take_along_axis(dyck.bracket_type(tokens), np.maximum(last, 0), 1) * (last >= 0)
        return dyck.next_token_law(
            dyck.with_start(dyck.depths(tokens)), dyck.with_start(top), self.k, self.depth, self.q
        )


# Attention


@dataclass(frozen=True)
class Scores:
    """Attention logits between symbols of R solvers, and the value vectors' scale that balances them.

    ``table`` (R, symbols, symbols) is e(key)' W_K' W_Q e(query), indices (key, query); ``a`` (R, pairs) that of
    eq. (19): in balance, ``table[open] - table[close] = a`` for every query that is a closer.
    """

    table: NDArray[np.float64]
    a: NDArray[np.float64]


def balanced_scores(
    rngs: Sequence[np.random.Generator], language: Language, sigma: float, free: bool = False
) -> Scores:
    """Return logits ~ N(0, sigma^2), one generator per solver; those of closers follow from balance (eq. 11).

    With ``free``, they do so only for queries that are closers, which is all that eq. (11) asks: opens and
    the start token attend to closers at random.
    """
    tables, shifts = [], []
    for rng in rngs:
        table = rng.normal(0, sigma, (language.symbols, language.symbols))
        a = rng.normal(0, sigma, language.pairs)
        queries = language.closes if free else np.arange(language.symbols)
        table[np.ix_(language.closes, queries)] = table[np.ix_(language.opens, queries)] - a[:, None]
        tables.append(table)
        shifts.append(a)
    return Scores(np.stack(tables), np.stack(shifts))


def uniform_scores(language: Language) -> Scores:
    """Return one solver whose logits are all 0, so that attention is uniform, and balanced."""
    return Scores(np.zeros((1, language.symbols, language.symbols)), np.zeros((1, language.pairs)))


def smallest_coefficient(scores: Scores, language: Language) -> NDArray[np.float64]:
    """Return the smallest <LN(a), b> of an unmatched open, (R,), over all closers after which the stack is not empty.

    By eq. (29) the coefficients are exp(logit) / |exp(logits)| over the stack. Only the worst stack around each
    open matters: the largest logit of every other level.
    """
    pairs, D = language.opens.reshape(language.k, language.depth), language.depth
    coefficients = np.full(len(scores.table), np.inf)
    for query in language.closes:
        d = language.depths[query]
        if d == 0:
            continue
        logit_RxKxD = scores.table[:, pairs[:, :d], query]
        weight_RxKxD = np.exp(2 * (logit_RxKxD - logit_RxKxD.max((1, 2), keepdims=True)))
        others_RxD = weight_RxKxD.max(1) @ (1 - np.eye(d))
        share_RxKxD = np.sqrt(weight_RxKxD / (weight_RxKxD + others_RxD[:, None]))
        coefficients = np.minimum(coefficients, share_RxKxD.min((1, 2)))
    return np.where(D > 1, coefficients, 1.0)


# Models


@dataclass(frozen=True)
class Solver:
    """R models of one language that read ``symbols`` or ``tokens``.

    ``basis`` (pairs, width): the directions b in which the last layer's attention keeps the pairs apart.
    """

    ensemble: model.Ensemble
    language: Language
    basis: NDArray[np.float64]
    reads: str = "symbols"

    def run(
        self, tokens: NDArray, record: Collection[str] = (), start: bool = True
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Return the predictions (R, n, T + 1, 2k) after the start token and after each token, and the
        recorded activations.

        ``tokens`` are (n, T), the same for every replica, or (R, n, T). Without ``start`` there is no start token
        and no prediction behind it.
        """
        flat = tokens.reshape(-1, tokens.shape[-1])
        ids = dyck.symbols(flat, self.language.depth) if self.reads == "symbols" else flat
        ids = dyck.with_start(ids) if start else ids
        ids_RxBxT = torch.from_numpy(ids.reshape(-1, *tokens.shape[-2:-1], ids.shape[-1])).long()
        at = self.ensemble
        with torch.no_grad():
            predictions, recorded = model.forward(at.spec, at.params, at.table, ids_RxBxT, record=record)
        return predictions.numpy(), {name: value.numpy() for name, value in recorded.items()}


def exact_solvers(
    language: Language,
    scores: Scores,
    smallest: NDArray[np.float64] | None = None,
    basis: NDArray[np.float64] | None = None,
    block: str = "eq6",
) -> Solver:
    """Build one layer on top of the minimal first layer of eq. (15) that predicts the law of the language (Theorem 1).

    The stream holds the one-hot symbol (start token first) and kD + 1 coordinates more. Their sum-zero subspace
    has an orthonormal basis b, one direction per pair: orthogonal to 1 as the proof asks (22), and, as it
    needs without saying so, to every embedding. Values are b for an open and -exp(a) b for its closer (23), with
    the index (t-1)D + d of the pair where the proof prints tD + d. Attention goes by ``scores``: keys are the
    symbols, queries their logits.

    ``smallest``, the bound below which a coefficient counts as absent, and ``basis`` are as said if not given.
    """
    S, replicas = language.symbols, len(scores.table)
    width = S + language.pairs + 1
    if basis is None:
        basis = np.zeros((language.pairs, width))
        basis[:, S:] = helmert(language.pairs + 1)
    W_Q, W_V = np.zeros((replicas, width, S)), np.zeros((replicas, width, width))
    W_Q[:, :S] = scores.table.transpose(0, 2, 1)
    W_V[:, language.opens] = basis
    W_V[:, language.closes] = -np.exp(scores.a)[..., None] * basis
    attention = {"W_Q": W_Q, "W_K": np.broadcast_to(np.eye(width, S), W_Q.shape), "W_V": W_V}
    bound = smallest_coefficient(scores, language) if smallest is None else smallest
    networks = [next_token_network(language, basis, float(least) * MARGIN) for least in bound]
    network = [
        (np.stack([W for W, _ in parts]), np.stack([b for _, b in parts])) for parts in zip(*networks, strict=True)
    ]
    params = {"head.W": torch.eye(width, 2 * language.k, dtype=torch.float64).repeat(replicas, 1, 1)}
    spec = model.Spec(
        block=block,
        layers=0,
        heads=1,
        width=width,
        ffn=(),
        attention="learned",
        position="none",
        t_max=1,
        inputs=S,
        outputs=2 * language.k,
        keys=S,
        floor=0.0,
    )
    table = torch.from_numpy(dyck.embedding_table("pair", language.k, language.depth, width)).double()
    return Solver(insert_layer(model.Ensemble(spec, params, table, {}), 0, attention, network), language, basis)


def insert_layer(
    ensemble: model.Ensemble, at: int, attention: dict[str, NDArray[np.float64]], network: Network
) -> model.Ensemble:
    """Return the models with one more layer, the one at index ``at``; weights with or without a replica axis.

    All layers have one shape: hidden layers grow to the larger width, by units that are 0.
    """
    spec, replicas = ensemble.spec, len(ensemble.params["head.W"])
    arrays = {f"attn.{name}": value for name, value in attention.items()}
    for i, (W, b) in enumerate(network):
        arrays |= {f"mlp.{i}.W": W, f"mlp.{i}.b": b}
    hidden = [b.shape[-1] for _, b in network[:-1]]
    widest = tuple(map(max, zip(spec.widths[1:-1], hidden, strict=True))) if spec.layers else tuple(hidden)
    grown = replace(spec, layers=spec.layers + 1, ffn=widest)
    layers: list[dict[str, torch.Tensor]] = [{} for _ in range(spec.layers)]
    for name, value in ensemble.params.items():
        if name != "head.W":
            _, layer, rest = name.split(".", 2)
            layers[int(layer)][rest] = value
    layers.insert(at, {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()})
    params = {}
    for name, shape in model.shapes(grown).items():
        if name == "head.W":
            params[name] = ensemble.params[name]
            continue
        _, layer, rest = name.split(".", 2)
        value = layers[int(layer)][rest]
        params[name] = torch.zeros(replicas, *shape, dtype=torch.float64)
        params[name][(slice(None), *map(slice, value.shape[-len(shape) :]))] = value
    return replace(ensemble, spec=grown, params=params)


def next_token_network(language: Language, basis: NDArray[np.float64], low: float) -> Network:
    """Return g: from LN(a) + e(symbol) to the law of the next token, in coordinates 0 to 2k - 1 (proof of Theorem 1).

    Three hidden layers do, where the theorem allows five; each carries the one-hot symbol along.

    1. The coefficient of every pair, clipped to ``low``: active or not.
    2. By depth i, the type x_i of the unmatched open; all but the one at the symbol's own depth d are pushed to
       0 or to c = k(k+1)/2, as large as x can be (Lemma 17).
    3. The top of the stack y* = x_d against each type, by a hat of width 1, open only if the symbol is a closer
       at depth d (Lemma 19, corrected: the gate sits inside the ReLUs, so it leaves no constants behind).
    """
    k, D, S = language.k, language.depth, language.symbols
    pairs, depths = language.pairs, language.depths
    c, kept = k * (k + 1) // 2, np.eye(S)
    types = 1 + np.repeat(np.arange(k), D)
    levels = np.tile(np.arange(D), k)

    read = np.zeros((len(basis[0]), 2 * pairs + S))
    read[:, :pairs] = read[:, pairs : 2 * pairs] = basis.T
    read[:S, 2 * pairs :] = kept
    above = np.concatenate([np.zeros(pairs), np.full(pairs, -low), np.zeros(S)])

    find = np.zeros((2 * pairs + S, 2 * D + S))
    for i in range(D):
        of_level = np.where(levels == i, types / low, 0)
        for column in (i, D + i):
            find[:pairs, column], find[pairs : 2 * pairs, column] = of_level, -of_level
            find[2 * pairs :, column] = c * depths
    find[2 * pairs :, 2 * D :] = kept
    push = np.concatenate([-c * np.arange(1, D + 1), -c * np.arange(2, D + 2), np.zeros(S)])

    closers = np.zeros(S)
    closers[language.closes] = 1
    large = c * (D + 3) + 10  # above every |y*| + k
    cases = [(d, t) for d in range(1, D) for t in range(1, k + 1)]
    compare, offset = np.zeros((2 * D + S, 3 * len(cases) + S)), np.zeros(3 * len(cases) + S)
    answer = np.zeros((3 * len(cases) + S, len(basis[0])))
    for case, (d, t) in enumerate(cases):
        law = dyck.next_token_law(d, t, k, D, language.q)
        for part, (shift, slope) in enumerate(((1, 1), (0, -2), (-1, 1))):
            unit = 3 * case + part
            compare[:D, unit], compare[D : 2 * D, unit] = 1, -1
            compare[2 * D :, unit] = -c * depths + large * closers * (depths == d)
            offset[unit] = c - t + shift - large
            answer[unit, : 2 * k] = slope * law
    compare[2 * D :, 3 * len(cases) :] = kept
    for symbol in range(S):  # all else follows from the symbol itself
        if not closers[symbol] or depths[symbol] == 0:
            top = (symbol - 1) // (2 * D) + 1 if symbol and not closers[symbol] else 0
            law = dyck.next_token_law(depths[symbol], top, k, D, language.q)
            answer[3 * len(cases) + symbol, : 2 * k] = law
    return [(read, above), (find, push), (compare, offset), (answer, np.zeros(len(basis[0])))]
