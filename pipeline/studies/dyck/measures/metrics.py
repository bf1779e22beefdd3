"""Metrics of the Dyck study: accuracy, variation and stack score of attention, balance (Wen et al. 2023).

Pure functions on tensors; R replicas are measured at once. Capital suffixes name the axes: R replica, B
sequence, T position, O output token, N attention row or column, S symbol, M embedding, A key and query width.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pipeline.languages import dyck

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from numpy.typing import NDArray

CONFIDENT = 0.8  # threshold of acc_thr80 (Hewitt et al. 2020; the authors' release)


@dataclass(frozen=True)
class Accuracy:
    """DYCK-A1, per replica: hits and how many positions were asked; `add` batches, then read the shares.

    ``acc_close``: at closers, the argmax over the k closers is right ("a unique correct closing bracket").
    ``acc_all``: at closers, the argmax over all 2k tokens is right.
    ``acc_thr80``: wherever the stack is not empty, p(right closer) / p(all closers) > 0.8.
    """

    hits_close: Int[Tensor, R]
    hits_all: Int[Tensor, R]
    hits_thr80: Int[Tensor, R]
    n_close: int
    n_open_stack: int

    def add(self, other: Accuracy) -> Accuracy:
        """Return both batches together (every position counts the same)."""
        return Accuracy(
            self.hits_close + other.hits_close,
            self.hits_all + other.hits_all,
            self.hits_thr80 + other.hits_thr80,
            self.n_close + other.n_close,
            self.n_open_stack + other.n_open_stack,
        )

    @property
    def acc_close(self) -> Float[Tensor, R]:
        return self.hits_close.double() / self.n_close

    @property
    def acc_all(self) -> Float[Tensor, R]:
        return self.hits_all.double() / self.n_close

    @property
    def acc_thr80(self) -> Float[Tensor, R]:
        return self.hits_thr80.double() / self.n_open_stack


def accuracy(
    logits_RxBxTxO: Float[Tensor, "R B T O"], tokens_BxT: Int[Tensor, "B T"], top_BxT: Int[Tensor, "B T"]
) -> Accuracy:
    """Count hits (section 4.1). ``logits[..., i, :]`` were computed from the tokens before ``tokens[:, i]``.

    Outputs are the tokens 1..2k at index token - 1; ``top`` is `dyck.stack_top`. Padding (-1) never counts.
    """
    closers_RxBxTxK = logits_RxBxTxO[..., 1::2]
    close_BxT = (tokens_BxT > 0) & (tokens_BxT % 2 == 0)
    right_close = closers_RxBxTxK.argmax(-1) == tokens_BxT // 2 - 1
    right_all = logits_RxBxTxO.argmax(-1) == tokens_BxT - 1
    stack_BxT = (tokens_BxT > 0) & (top_BxT > 0)
    share = closers_RxBxTxK.softmax(-1)  # p(closer) / p(all closers): the opens cancel
    picked = (top_BxT - 1).clamp(min=0)[None, ..., None].expand(*share.shape[:-1], 1)
    confident = share.gather(-1, picked.long())[..., 0] > CONFIDENT
    return Accuracy(
        (right_close & close_BxT).sum((1, 2)),
        (right_all & close_BxT).sum((1, 2)),
        (confident & stack_BxT).sum((1, 2)),
        int(close_BxT.sum()),
        int(stack_BxT.sum()),
    )


def variation_distances(pattern_SxRxNxN: Float[Tensor, "... R N N"]) -> Float[Tensor, "... R R"]:
    """Return DYCK-A2: |A_r - A_s|_F^2 of every two replicas, in float64 (section 4.1), for any number of inputs."""
    flat_SxRxC = pattern_SxRxNxN.double().flatten(-2)
    # From differences, not from inner products: maps that agree must be at distance exactly 0.
    rows = [(flat_SxRxC - row[..., None, :]).square().sum(-1) for row in flat_SxRxC.unbind(-2)]
    return torch.stack(rows, -2)


TIE = 1e-5  # weights this close, as a share, are the same weight but for rounding


@dataclass(frozen=True)
class StackScore:
    """DYCK-A4, per replica and head: how much attention looks like the top of a stack.

    The positions of the last unmatched open bracket are the boxes of Figure 1; the scores are ours. Queries
    are the tokens after which the stack is not empty; `add` batches, then read the shares.

    ``stack_argmax``: the last unmatched open bracket gets more weight than any other key (a tie is no hit: to
    a first layer without positions, equal tokens are one).
    ``stack_argmax_tied``: the same with ties as hits. ``stack_ceiling``: the share of queries whose open bracket no
    other key equals in type and depth; where keys are decided by these two alone, as above a minimal first layer, all
    others tie and ``stack_argmax`` cannot be larger.
    ``stack_argmax_closers``: as ``stack_argmax``, among queries that are closers.
    ``stack_mass``: mean weight on it. ``stack_mass_uniform``: what uniform attention would put there.
    ``same_depth_mass``: mean weight on all open brackets at the current depth.
    ``kl_uniform``: mean over all tokens of KL(weights | uniform causal attention), in nats (DYCK-E9).
    """

    hits: Int[Tensor, "R H"]
    hits_tied: Int[Tensor, "R H"]
    hits_closers: Int[Tensor, "R H"]
    mass: Float[Tensor, "R H"]
    mass_same_depth: Float[Tensor, "R H"]
    divergence: Float[Tensor, "R H"]
    mass_uniform: float
    n_distinct: int
    n_queries: int
    n_closers: int
    n_tokens: int

    def add(self, other: StackScore) -> StackScore:
        """Return both batches together (every query counts the same)."""
        names = self.__dataclass_fields__
        return StackScore(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def stack_argmax(self) -> Float[Tensor, "R H"]:
        return self.hits.double() / self.n_queries

    @property
    def stack_argmax_tied(self) -> Float[Tensor, "R H"]:
        return self.hits_tied.double() / self.n_queries

    @property
    def stack_ceiling(self) -> float:
        return self.n_distinct / self.n_queries

    @property
    def stack_argmax_closers(self) -> Float[Tensor, "R H"]:
        return self.hits_closers.double() / self.n_closers

    @property
    def stack_mass(self) -> Float[Tensor, "R H"]:
        return (self.mass / self.n_queries).clamp(max=1)  # weights sum to 1 up to rounding

    @property
    def stack_mass_uniform(self) -> float:
        return self.mass_uniform / self.n_queries

    @property
    def same_depth_mass(self) -> Float[Tensor, "R H"]:
        return (self.mass_same_depth / self.n_queries).clamp(max=1)

    @property
    def kl_uniform(self) -> Float[Tensor, "R H"]:
        return (self.divergence / self.n_tokens).clamp(min=0)


def _has_no_equal(tokens_BxN: NDArray, depth_BxN: NDArray, last_BxN: NDArray) -> NDArray[np.bool_]:
    """Return at which queries (B, N) the last unmatched open bracket is the only key of its type and depth."""
    box_BxN = np.maximum(last_BxN, 0)
    equal_BxNxN = np.ones((*tokens_BxN.shape, tokens_BxN.shape[1]), bool)
    for each_BxN in (tokens_BxN, depth_BxN):
        equal_BxNxN &= np.take_along_axis(each_BxN, box_BxN, 1)[:, :, None] == each_BxN[:, None, :]
    equal_BxNxN &= np.tri(tokens_BxN.shape[1], dtype=bool)  # keys up to the query
    return (last_BxN >= 0) & (equal_BxNxN.sum(-1) == 1)


def stack_score(pattern_RxBxHxTxT: Float[Tensor, "R B H T T"], tokens_BxN: NDArray) -> StackScore:
    """Score causal maps whose first row and column are the start token (T = N + 1); padding never counts."""
    last_BxN = dyck.last_unmatched_open(tokens_BxN).astype(np.int64)
    depth_BxN = dyck.depths(tokens_BxN)
    same_BxNxN = (depth_BxN[:, :, None] == depth_BxN[:, None, :]) & dyck.is_open(tokens_BxN)[:, None, :]
    query_BxN = torch.from_numpy(last_BxN >= 0)
    closer_BxN = torch.from_numpy(dyck.is_close(tokens_BxN)) & query_BxN
    rows_RxBxHxNxT = pattern_RxBxHxTxT[..., 1:, :]
    top = torch.from_numpy(np.maximum(last_BxN, 0) + 1)[None, :, None, :, None]
    top = top.expand(*rows_RxBxHxNxT.shape[:-1], 1)
    weight = rows_RxBxHxNxT.gather(-1, top)
    best_other = rows_RxBxHxNxT.scatter(-1, top, -1.0).amax(-1, keepdim=True)
    first, tied = (weight > best_other)[..., 0], (weight >= best_other * (1 - TIE))[..., 0]
    same = (rows_RxBxHxNxT[..., 1:] * torch.from_numpy(same_BxNxN)[None, :, None]).sum(-1)

    def total(values: Tensor, counted_BxN: Tensor) -> Tensor:
        return (values * counted_BxN[None, :, None]).sum((1, 3))

    keys_N = torch.arange(2, tokens_BxN.shape[1] + 2)
    token_BxN = torch.from_numpy(tokens_BxN > 0)
    rows = rows_RxBxHxNxT.double()
    divergence_RxBxHxN = torch.special.xlogy(rows, rows).sum(-1) + keys_N.log()
    return StackScore(
        total(first, query_BxN),
        total(tied, query_BxN),
        total(first, closer_BxN),
        total(weight[..., 0].double(), query_BxN),
        total(same.double(), query_BxN),
        total(divergence_RxBxHxN, token_BxN),
        float((query_BxN / keys_N).sum()),
        int(_has_no_equal(tokens_BxN, depth_BxN, last_BxN).sum()),
        int(query_BxN.sum()),
        int(closer_BxN.sum()),
        int(token_BxN.sum()),
    )


@dataclass(frozen=True)
class Balance:
    """DYCK-A5. Queries are closers (token 2j, pair depth d), d in 2..D (index d - 2), j in 1..k (index j - 1).

    ``s_norm`` and ``p`` carry one common factor per replica and query (see `balance`): only their ratio counts.
    """

    beta: Float[Tensor, R]  # mean of s_norm / p over d, d', i, j
    beta_max: Float[Tensor, R]  # mean over d, j of max over d', i of |S| / min over t of |Q| (authors' release)
    qk_residual: Float[Tensor, R]  # condition (11): largest violation, in units of attention logits
    s_norm: Float[Tensor, "R D-1 k D k"]  # |S|, indices (replica, d, j, d', i)
    p: Float[Tensor, "R D-1 k"]  # P


def balance(
    table_SxM: Float[Tensor, "S M"],
    W_Q: Float[Tensor, "R M A"],
    b_Q: Float[Tensor, "R A"],
    W_K: Float[Tensor, "R M A"],
    b_K: Float[Tensor, "R A"],
    W_V: Float[Tensor, "R M V"],
    b_V: Float[Tensor, "R V"],
    k: int,
    max_depth: int,
) -> Balance:
    """Return the balance violation of one-layer models on fixed symbols (section 4.2; eqs 11, 12, 31-33).

    u(key a; query b) = (I - 11'/m) exp(q(b) . k(a) / sqrt(A)) v(a), with the affine maps of the model. For the
    query b = closer of type j and pair depth d, the closer of a bracket opened at depth d:

    * S(d, d', i, j) = u(closer i of pair depth d'; b) + u(open i at depth d'; b): what a matched pair leaves;
    * Q(j, d, t) = u(start; b) + sum over d'' < d of u(open t_d'' at depth d''; b) + u(open j at d; b) + u(b; b),
      for every choice t of the types of the d - 1 brackets below;
    * P(d, j) = |Q(t')|, t' the smallest |Q| among choices whose last type differs from that of the overall
      smallest;
    * beta = mean of |S| / P.

    (31) prints the query of S one level higher than (32), (33) and the proof use it; one query serves all here.
    Every exponent is reduced by its largest value per query, which the ratios do not see.

    Raises ValueError for k < 2 or D < 2: there is no t' then.
    """
    if k < 2 or max_depth < 2:
        raise ValueError(f"balance needs two types and two depths, got k={k}, D={max_depth}")
    table = table_SxM.double()
    q_RxSxA, k_RxSxA, v_RxSxM = (
        torch.einsum("sm,rma->rsa", table, W.double()) + b.double()[:, None]
        for W, b in ((W_Q, b_Q), (W_K, b_K), (W_V, b_V))
    )
    open_DxK, close_DxK = _symbols(k, max_depth)
    queries_DxK = close_DxK[1:]  # d = 2..D
    scores_RxDxKxS = torch.einsum("rdka,rsa->rdks", q_RxSxA[:, queries_DxK], k_RxSxA) / W_Q.shape[-1] ** 0.5
    weights_RxDxKxS = (scores_RxDxKxS - scores_RxDxKxS.amax(-1, keepdim=True)).exp()
    v_RxSxM = v_RxSxM - v_RxSxM.mean(-1, keepdim=True)

    pair_RxDxKxDxKxM = _u(weights_RxDxKxS, v_RxSxM, close_DxK) + _u(weights_RxDxKxS, v_RxSxM, open_DxK)
    s_norm = pair_RxDxKxDxKxM.norm(dim=-1)
    p, smallest = _useful_signal(weights_RxDxKxS, v_RxSxM, k, max_depth)
    key_RxDxKxA = k_RxSxA[:, open_DxK] - k_RxSxA[:, close_DxK]
    logits = torch.einsum("rdka,rqa->rdkq", key_RxDxKxA, q_RxSxA[:, queries_DxK.flatten()])
    spread = (logits.amax(-1) - logits.amin(-1)) / W_Q.shape[-1] ** 0.5
    return Balance(
        beta=(s_norm / p[..., None, None]).mean((1, 2, 3, 4)),
        beta_max=(s_norm.amax((3, 4)) / smallest).mean((1, 2)),
        qk_residual=spread.amax((1, 2)),
        s_norm=s_norm,
        p=p,
    )


def _symbols(k: int, max_depth: int) -> tuple[Tensor, Tensor]:
    """Return the symbol numbers of opens and closers, (D, k): row delta - 1 is pair depth delta, column i - 1
    is type i."""
    delta, i = torch.meshgrid(torch.arange(max_depth), torch.arange(k), indexing="ij")
    opens = 1 + (2 * i) * max_depth + delta
    return opens, opens + max_depth


def _u(weights_RxDxKxS: Tensor, v_RxSxM: Tensor, keys: Tensor) -> Tensor:
    """Return u(key; query) for every query and each of ``keys`` (any shape): (R, D-1, k, *keys, M)."""
    flat = keys.flatten()
    u = weights_RxDxKxS[..., flat, None] * v_RxSxM[:, None, None, flat]
    return u.unflatten(3, keys.shape)


def _useful_signal(weights_RxDxKxS: Tensor, v_RxSxM: Tensor, k: int, max_depth: int) -> tuple[Tensor, Tensor]:
    """Return P(d, j) and min over t of |Q(j, d, t)|, both (R, D-1, k)."""
    open_DxK, close_DxK = _symbols(k, max_depth)
    ps, smallest = [], []
    for d in range(2, max_depth + 1):
        weights_RxKxS = weights_RxDxKxS[:, d - 2]
        types_CxL = torch.tensor(list(itertools.product(range(k), repeat=d - 1)))  # C choices, L = d - 1 levels
        j = torch.arange(k)
        fixed_RxKxM = (
            weights_RxKxS[..., dyck.START, None] * v_RxSxM[:, None, dyck.START]
            + weights_RxKxS[:, j, open_DxK[d - 1], None] * v_RxSxM[:, open_DxK[d - 1]]
            + weights_RxKxS[:, j, close_DxK[d - 1], None] * v_RxSxM[:, close_DxK[d - 1]]
        )
        q_RxKxCxM = fixed_RxKxM[:, :, None].expand(-1, -1, len(types_CxL), -1)
        for level in range(d - 1):
            symbols_C = open_DxK[level][types_CxL[:, level]]
            q_RxKxCxM = q_RxKxCxM + weights_RxKxS[..., symbols_C, None] * v_RxSxM[:, None, symbols_C]
        norm_RxKxC = q_RxKxCxM.norm(dim=-1)
        best = norm_RxKxC.min(-1)
        last_C = types_CxL[:, -1]
        same_last = last_C == last_C[best.indices][..., None]
        ps.append(norm_RxKxC.masked_fill(same_last, torch.inf).amin(-1))
        smallest.append(best.values)
    return torch.stack(ps, 1), torch.stack(smallest, 1)
