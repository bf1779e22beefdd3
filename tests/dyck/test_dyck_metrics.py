"""Metrics of the Dyck study: toy cases computed by hand, loops written from the text, closed forms."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from pipeline.languages import dyck
from pipeline.studies.dyck.measures import metrics


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Accuracy


def test_accuracy_by_hand() -> None:
    tokens = torch.from_numpy(dyck.parse("[()]", "(")).long()  # closers: ) at 2, ] at 3
    top = torch.from_numpy(dyck.stack_top(tokens.numpy())).long()
    logits = torch.zeros(2, 2, 4, 4)  # replica 0: right everywhere; replica 1: see below
    logits[0, 0, 1] = torch.tensor([0.0, 3.0, 0.0, 0.0])  # before "(" the right closer is ]
    logits[0, 0, 2] = torch.tensor([0.0, 0.0, 0.0, 3.0])
    logits[0, 0, 3] = torch.tensor([0.0, 3.0, 0.0, 0.0])
    logits[1, 0, 1] = torch.tensor([0.0, 3.0, 0.0, 0.0])
    logits[1, 0, 2] = torch.tensor([9.0, 0.0, 0.0, 1.0])  # right among closers, p = .73 of them; an open is above
    logits[1, 0, 3] = torch.tensor([0.0, 0.0, 0.0, 2.0])  # wrong closer
    accuracy = metrics.accuracy(logits, tokens, top)
    assert (accuracy.n_close, accuracy.n_open_stack) == (2, 3)
    assert accuracy.acc_close.tolist() == [1, 0.5]
    assert accuracy.acc_all.tolist() == [1, 0]
    assert accuracy.acc_thr80.tolist() == pytest.approx([1, 1 / 3])
    twice = accuracy.add(accuracy)
    assert (twice.n_close, twice.n_open_stack) == (4, 6) and twice.acc_close.tolist() == [1, 0.5]


def test_accuracy_is_the_loop_over_positions() -> None:
    rng = np.random.default_rng(0)
    tokens = dyck.sample_prefixes(rng, 12, rng.integers(1, 20, 12), 3, 4, 0.5)
    logits = torch.randn(3, 12, tokens.shape[1], 6, generator=generator(0)) * 2
    top = dyck.stack_top(tokens)
    accuracy = metrics.accuracy(logits, torch.from_numpy(tokens).long(), torch.from_numpy(top).long())
    for r in range(3):
        close, every, confident, stack = [], [], [], 0
        for b, i in itertools.product(*map(range, tokens.shape)):
            t = int(tokens[b, i])
            if t < 0:
                continue
            row = logits[r, b, i]
            if t % 2 == 0:
                close.append(max(range(2, 7, 2), key=lambda c: float(row[c - 1])) == t)
                every.append(int(row.argmax()) + 1 == t)
            if top[b, i]:
                stack += 1
                p = row.exp()
                confident.append(float(p[2 * top[b, i] - 1] / p[1::2].sum()) > 0.8)
        assert accuracy.acc_close[r].item() == pytest.approx(np.mean(close))
        assert accuracy.acc_all[r].item() == pytest.approx(np.mean(every))
        assert accuracy.acc_thr80[r].item() == pytest.approx(np.mean(confident))
        assert (accuracy.n_close, accuracy.n_open_stack) == (len(close), stack)


def test_chance_level_and_the_exact_law() -> None:
    """A model that knows the law has acc_close 1; one that knows nothing of types has 1/k."""
    tokens = dyck.sample_prefixes(np.random.default_rng(1), 400, 60, 2, 4, 0.5)
    top = dyck.stack_top(tokens)
    before = np.concatenate([np.zeros((400, 1), int), dyck.depths(tokens)[:, :-1]], 1)
    law = torch.from_numpy(dyck.next_token_law(before, top, 2, 4, 0.5))
    blind = torch.randn(law.shape, generator=generator(1), dtype=torch.double)
    logits = torch.stack([law.clamp(min=1e-9).log(), blind])
    accuracy = metrics.accuracy(logits, torch.from_numpy(tokens).long(), torch.from_numpy(top).long())
    assert accuracy.acc_close[0] == accuracy.acc_thr80[0] == 1
    assert accuracy.acc_close[1].item() == pytest.approx(0.5, abs=0.02)
    # Knowing the law is not knowing the token: at 0 < d < D the closer (1/2) beats each open (1/4).
    assert accuracy.acc_all[0] == 1


# Variation


def test_variation_by_hand_and_by_the_formula_of_the_chapter() -> None:
    a = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    b = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    c = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    distances = metrics.variation_distances(torch.stack([a, b, c]))
    assert distances.tolist() == [[0, 0.5, 0.5], [0.5, 0, 2], [0.5, 2, 0]]
    pattern = torch.rand(7, 5, 5, generator=generator(2), dtype=torch.double).softmax(-1)
    flat = pattern.flatten(1)
    mean = (2 * 7 * flat.square().sum() - 2 * flat.sum(0).square().sum()) / (7 * 6)
    off = metrics.variation_distances(pattern).sum() / (7 * 6)
    assert off.item() == pytest.approx(mean.item())


def test_variation_of_several_inputs_is_that_of_each() -> None:
    pattern = torch.rand(3, 4, 5, 5, generator=generator(8))
    each = torch.stack([metrics.variation_distances(one) for one in pattern])
    assert torch.equal(metrics.variation_distances(pattern), each)


def test_equal_maps_do_not_vary_and_opposite_ones_vary_most() -> None:
    same = torch.rand(1, 9, 9, generator=generator(3)).expand(4, 9, 9)
    assert (metrics.variation_distances(same) == 0).all()
    first, self_ = torch.zeros(9, 9), torch.eye(9)
    first[:, 0] = 1
    assert metrics.variation_distances(torch.stack([first, self_]))[0, 1] == 2 * (9 - 1)


# Stack score


def test_divergence_from_uniform_attention() -> None:
    """A token that looks at itself alone is log(keys) away, one that looks evenly is not away at all."""
    tokens = np.array([[1, 2, dyck.PADDING], [1, 1, 2]], np.int8)
    pattern = torch.zeros(2, 2, 1, 4, 4)
    pattern[0, :, 0] = torch.eye(4)
    pattern[1, :, 0] = torch.tril(torch.ones(4, 4)) / torch.arange(1, 5)[:, None]
    divergence = metrics.stack_score(pattern, tokens).kl_uniform[:, 0]
    itself = (2 * np.log(2) + 2 * np.log(3) + np.log(4)) / 5
    assert divergence.tolist() == pytest.approx([itself, 0.0], abs=1e-7)


def test_stack_score_by_hand() -> None:
    """[()] then [[ : boxes at 1, 2, 1 and 1, 2; after ] the stack is empty. Keys: start, then the tokens."""
    tokens = dyck.parse("[()]", "[[")
    pattern = torch.zeros(2, 2, 1, 5, 5)
    pattern[0, 0, 0, 1] = torch.tensor([0.1, 0.9, 0, 0, 0])  # hit
    pattern[0, 0, 0, 2] = torch.tensor([0.2, 0.5, 0.3, 0, 0])  # the box is at 2
    pattern[0, 0, 0, 3] = torch.tensor([0.1, 0.4, 0.3, 0.2, 0])  # a closer, hit
    pattern[0, 0, 0, 4] = torch.tensor([0, 0, 0, 0, 1.0])  # nothing open: does not count
    pattern[0, 1, 0, 1] = torch.tensor([0.5, 0.5, 0, 0, 0])  # a tie is no hit
    pattern[0, 1, 0, 2] = torch.tensor([0.25, 0.25, 0.5, 0, 0])  # hit
    pattern[0, 1, 0, 3:] = torch.tensor([0, 1.0, 0, 0, 0])  # padding
    pattern[1] = torch.tensor([1.0, 0, 0, 0, 0])  # all on the start token
    score = metrics.stack_score(pattern, tokens)
    assert (score.n_queries, score.n_closers) == (5, 1)
    assert score.stack_argmax.tolist() == [[3 / 5], [0]]
    assert score.stack_argmax_tied.tolist() == [[4 / 5], [0]]
    assert score.stack_ceiling == 1  # brackets of one type, but at two depths
    assert score.stack_argmax_closers.tolist() == [[1], [0]]
    assert score.stack_mass[0, 0].item() == pytest.approx((0.9 + 0.3 + 0.4 + 0.5 + 0.5) / 5)
    assert score.stack_mass_uniform == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 2 + 1 / 3) / 5)
    assert score.same_depth_mass[0, 0].item() == pytest.approx((0.9 + 0.3 + 0.4 + 0.5 + 0.5) / 5)
    twice = score.add(score)
    assert twice.n_queries == 10 and torch.equal(twice.stack_argmax, score.stack_argmax)


def test_ceiling_of_the_stack_score_by_hand() -> None:
    """[][ : at the third token two keys are [ at depth 1; ([] [ differ in depth, [( in type."""
    pattern = torch.ones(1, 1, 1, 4, 4)
    for text, distinct, queries in (("[][", 1, 2), ("[[]", 3, 3), ("[(", 2, 2), ("[]([", 3, 3), ("[[][", 3, 4)):
        tokens = dyck.parse(text)
        length = tokens.shape[1] + 1
        score = metrics.stack_score(pattern[..., :1, :1].expand(1, 1, 1, length, length), tokens)
        assert (score.n_distinct, score.n_queries) == (distinct, queries), text


def test_stack_score_of_perfect_uniform_and_current_position_maps() -> None:
    tokens = dyck.sample_prefixes(np.random.default_rng(4), 30, np.arange(1, 31) % 19 + 2, 3, 4, 0.5)
    n, length = tokens.shape
    last = dyck.last_unmatched_open(tokens)
    pattern = torch.zeros(3, n, 1, length + 1, length + 1)
    row, query = np.nonzero(last >= 0)
    pattern[0, row, 0, query + 1, last[row, query] + 1] = 1  # the stack
    pattern[1, :, 0] = torch.ones(length + 1, length + 1).tril() / torch.arange(1, length + 2)[:, None]
    pattern[2, :, 0] = torch.eye(length + 1)
    score = metrics.stack_score(pattern, tokens)
    assert score.stack_argmax[:, 0].tolist()[:2] == [1, 0]
    assert score.stack_mass[0, 0] == score.same_depth_mass[0, 0] == score.stack_argmax_closers[0, 0] == 1
    assert score.stack_mass[1, 0].item() == pytest.approx(score.stack_mass_uniform)
    assert score.stack_argmax_tied[1, 0] == 1  # uniform: everything ties
    equal = score.stack_ceiling
    assert 0 < equal < 1
    # Looking at oneself is looking at the stack's top exactly after opening.
    opens = dyck.is_open(tokens)[row, query].mean()
    assert score.stack_argmax[2, 0].item() == score.stack_mass[2, 0].item() == pytest.approx(opens)
    assert score.stack_argmax_closers[2, 0] == 0


def test_same_depth_counts_every_open_bracket_at_the_current_level() -> None:
    tokens = dyck.parse("[()(]"[:4])  # depths 1 2 1 2: the last ( has two brackets at its level
    pattern = torch.zeros(1, 1, 1, 5, 5)
    pattern[..., 4, :] = torch.tensor([0.1, 0.2, 0.3, 0.15, 0.25])
    score = metrics.stack_score(pattern, tokens)
    assert score.mass_same_depth.item() == pytest.approx(0.3 + 0.25)
    assert score.mass.item() == pytest.approx(0.25)
    assert score.hits.item() == 0


# Balance

K, D, M, A = 2, 3, 9, 5


def weights(seed: int, replicas: int, m: int = M, a: int = A, scale: float = 1.0) -> list[torch.Tensor]:
    g = generator(seed)
    shapes = [(m, a), (a,), (m, a), (a,), (m, m), (m,)]
    return [torch.randn(replicas, *shape, generator=g, dtype=torch.double) * scale for shape in shapes]


def loops(table, W_Q, b_Q, W_K, b_K, W_V, b_V, k, max_depth):  # type: ignore[no-untyped-def]
    """Chapter 3.4, A5, one replica, symbol by symbol."""
    m = table.shape[1]

    def e(token: int, depth: int) -> torch.Tensor:
        delta = depth + 1 if token % 2 == 0 else depth
        return table[1 + (token - 1) * max_depth + (delta - 1)]

    def u(key: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
        score = (key @ W_K + b_K) @ (query @ W_Q + b_Q) / math.sqrt(W_Q.shape[1])
        v = math.exp(score) * (key @ W_V + b_V)
        return v - v.sum() / m

    ratios, maxima, s_norms, ps = [], [], {}, {}
    for d in range(2, max_depth + 1):
        for j in range(1, k + 1):
            b = e(2 * j, d - 1)
            q = {}
            for t in itertools.product([2 * i - 1 for i in range(1, k + 1)], repeat=d - 1):
                below = sum(u(e(t[dd - 1], dd), b) for dd in range(1, d))
                q[t] = (u(table[0], b) + below + u(e(2 * j - 1, d), b) + u(b, b)).norm().item()
            best = min(q, key=q.__getitem__)
            p = min(value for t, value in q.items() if t[-1] != best[-1])
            ps[d, j] = p
            s = {
                (dp, i): (u(e(2 * i, dp - 1), b) + u(e(2 * i - 1, dp), b)).norm().item()
                for dp in range(1, max_depth + 1)
                for i in range(1, k + 1)
            }
            s_norms |= {(d, j, dp, i): value for (dp, i), value in s.items()}
            ratios += [value / p for value in s.values()]
            maxima.append(max(s.values()) / q[best])
    residual = 0.0
    for dp, i in itertools.product(range(1, max_depth + 1), range(1, k + 1)):
        key = e(2 * i - 1, dp) - e(2 * i, dp - 1)
        for (j1, d1), (j2, d2) in itertools.product(itertools.product(range(1, k + 1), range(1, max_depth)), repeat=2):
            query = e(2 * j1, d1) - e(2 * j2, d2)
            residual = max(residual, abs(float((key @ W_K) @ (query @ W_Q)) / math.sqrt(W_Q.shape[1])))
    return np.mean(ratios), np.mean(maxima), residual, s_norms, ps


@pytest.mark.parametrize(("k", "depth", "kind"), [(2, 3, "pair"), (3, 3, "sum"), (2, 4, "angle"), (2, 2, "pair")])
def test_balance_is_the_loop_over_symbols(k: int, depth: int, kind: str) -> None:
    width = 2 * k * depth + 1
    table = torch.from_numpy(dyck.embedding_table(kind, k, depth, width))
    parts = weights(k, 3, width, 6)
    balance = metrics.balance(table, *parts, k, depth)
    for r in range(3):
        beta, beta_max, residual, s_norms, ps = loops(table.double(), *(part[r] for part in parts), k, depth)
        assert balance.beta[r].item() == pytest.approx(beta)
        assert balance.beta_max[r].item() == pytest.approx(beta_max)
        assert balance.qk_residual[r].item() == pytest.approx(residual)
        for (d, j, dp, i), value in s_norms.items():
            ratio = balance.s_norm[r, d - 2, j - 1, dp - 1, i - 1] / balance.p[r, d - 2, j - 1]
            assert ratio.item() == pytest.approx(value / ps[d, j])


def test_pairs_that_cancel_are_balanced() -> None:
    """Uniform attention and v(closer) = -v(open): S = 0, whatever else the model does (Theorem 1)."""
    table = torch.from_numpy(dyck.embedding_table("pair", 2, 4, 17)).double()
    W_Q, b_Q, W_K, b_K, W_V, b_V = weights(0, 2, 17, 4)
    opens, closers = metrics._symbols(2, 4)
    W_V[:, closers.flatten()] = -W_V[:, opens.flatten()]
    balance = metrics.balance(table, W_Q * 0, b_Q, W_K * 0, b_K, W_V, b_V * 0, 2, 4)
    assert balance.beta.tolist() == pytest.approx([0, 0], abs=1e-14)
    assert balance.qk_residual.tolist() == [0, 0]
    broken = metrics.balance(table, W_Q * 0, b_Q, W_K * 0, b_K, W_V, b_V, 2, 4)
    assert (broken.beta > 1e-3).all()


def test_beta_has_a_closed_form_for_orthogonal_values() -> None:
    """Uniform attention, v(open) = x, v(closer) = y, v(start) = 0, along orthogonal directions without mean.

    Then |S| = |x + y| and Q = x d + y for every choice, so beta is the mean over d of |x + y| / |d x + y|.
    """
    table = torch.from_numpy(dyck.embedding_table("pair", 2, 4, 17)).double()
    W_Q, b_Q, W_K, b_K, W_V, b_V = (part * 0 for part in weights(0, 1, 17, 4))
    opens, closers = metrics._symbols(2, 4)
    x, y = torch.zeros(17).double(), torch.zeros(17).double()
    x[:2], y[2:4] = torch.tensor([3.0, -3.0]), torch.tensor([1.0, -1.0])
    W_V[0, opens.flatten()], W_V[0, closers.flatten()] = x, y
    balance = metrics.balance(table, W_Q, b_Q, W_K, b_K, W_V, b_V, 2, 4)
    ratios = [float((x + y).norm() / (d * x + y).norm()) for d in (2, 3, 4)]
    assert balance.beta.item() == pytest.approx(np.mean(ratios))
    assert balance.beta_max.item() == pytest.approx(np.mean(ratios))  # all pairs are alike, all choices are alike


def test_balance_survives_large_logits_and_is_independent_of_company() -> None:
    table = torch.from_numpy(dyck.embedding_table("pair", 2, 4, 17))
    parts = weights(5, 4, 17, 4, scale=12.0)  # exp would overflow
    balance = metrics.balance(table, *parts, 2, 4)
    assert torch.isfinite(balance.beta).all()
    alone = metrics.balance(table, *(part[2:3] for part in parts), 2, 4)
    assert alone.beta.item() == pytest.approx(balance.beta[2].item(), rel=1e-12)
    shifted = [part.clone() for part in parts]
    shifted[2] = shifted[2] + 5.0 * torch.ones_like(shifted[2])  # one-hot inputs: the same shift for every key
    moved = metrics.balance(table, *shifted, 2, 4)
    assert moved.beta.tolist() == pytest.approx(balance.beta.tolist())


def test_balance_needs_a_second_type() -> None:
    with pytest.raises(ValueError, match="two types"):
        metrics.balance(torch.eye(9), *weights(0, 1, 9, 4), 1, 4)
