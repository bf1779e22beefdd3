"""The batched decoder against decoders of one prompt without a cache, token for token."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder, decoding, verifiers
from pipeline.models.llama.decoding import Plan
from pipeline.studies.verifier.measures import guessing

SPEC = decoder.Spec(layers=2, heads=2, width=8, inner=12, symbols=8)
R, BRACKETS, PROMPTS = 2, 12, 4
END = language.END


def weights(spec: decoder.Spec = SPEC, scale: float = 12.0) -> dict[str, torch.Tensor]:
    """Models whose next symbols are neither sure nor uniform, in float64."""
    rngs = [np.random.default_rng(n) for n in range(R)]
    models = [decoder.initial(spec, rng) for rng in rngs]
    return {
        name: torch.from_numpy(np.stack([m[name] for m in models])) * (1 if name.endswith(".w") else scale)
        for name in decoder.shapes(spec)
    }


PARAMS = weights()


class Sums:
    """A verifier that reads the state: one number of it, and the token count, decide."""

    layer = 1

    def __call__(self, states, tokens, lengths, chances, asked):  # type: ignore[no-untyped-def]
        return (states[..., 0] * 3).sigmoid()


def state_value(replica: int, layer: int):  # type: ignore[no-untyped-def]
    own = {name: value[replica : replica + 1] for name, value in PARAMS.items()}

    def value(written: list[int], call: int) -> float:
        name = f"states.{layer}"
        _, found = decoder.forward(SPEC, own, own["head.W"], torch.tensor([[written]]), record=[name])
        return float((found[name][0, 0, -1, 0] * 3).sigmoid())

    return value


def prompts(rng: np.random.Generator, n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    tokens = torch.from_numpy(language.sample(rng, n, BRACKETS, 0.5, 0.5, 6).astype(np.int64))
    lengths = torch.from_numpy(rng.integers(1, BRACKETS, n))
    limits = torch.full((n,), BRACKETS + 2)
    return tokens.expand(R, -1, -1), lengths.expand(R, -1), limits.expand(R, -1)


PLANS = [
    Plan(END),
    Plan(END, top_p=0.7),
    Plan(END, temperature=0.5, top_p=0.9),
    Plan(END, top_p=0.0),
    Plan(END, temperature=0.0),
    *(Plan(END, 1.0, 1.0, 4, 4, refill, 0.5, reach) for refill in decoding.REFILLS for reach in (0, None)),
    *(Plan(END, 1.0, 0.8, quota, stride, "argmax", 0.5, 2) for quota, stride in ((1, 3), (7, 1), (3, 9))),
    *(Plan(END, 1.0, 1.0, 4, 3, refill, 0.5, None, True) for refill in decoding.REFILLS),
    Plan(END, 1.0, 1.0, 6, 3, "argmax", 0.5, 0, False, 9),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_decoder_equals_its_reference(plan: Plan) -> None:
    rng = np.random.default_rng(3)
    tokens, lengths, limits = prompts(rng, PROMPTS)
    repeats = 2
    draws = torch.from_numpy(rng.random((R, PROMPTS * repeats, plan.calls(BRACKETS + 2))))
    oracle = decoding.Cached(SPEC, PARAMS, BRACKETS + 2)
    verifier = Sums() if plan.quota else None
    rows, sent_back = decoding.decode(oracle, plan, tokens, lengths, limits, draws, verifier)
    strings = []
    for r, b in itertools.product(range(R), range(PROMPTS * repeats)):
        x = tokens[r, b // repeats, : lengths[r, b // repeats]].tolist()
        own_oracle, value = reference.model(SPEC, PARAMS, r), state_value(r, Sums.layer)
        wanted = reference.algorithm_1(own_oracle, value, plan, x, BRACKETS + 2, draws[r, b].tolist())
        found = rows.tokens[r, b, : rows.lengths[r, b]].tolist()
        strings.append(tuple(found))
        assert found == wanted.tokens
        assert (rows.calls[r, b], rows.erased[r, b], rows.quota[r, b]) == (wanted.calls, wanted.erased, wanted.quota)
        assert bool(rows.ended[r, b]) != wanted.failed
        own = (sent_back.replica == r) & (sent_back.row == b)
        logged = [t[:n].tolist() for t, n in zip(sent_back.tokens[own], sent_back.lengths[own], strict=True)]
        assert logged == wanted.backtracks
    assert torch.equal(rows.calls, rows.lengths - rows.prompts + rows.erased)
    if plan.quota and plan.most_calls is None:
        assert len(sent_back.row) == int((plan.quota - rows.quota).sum()) > 2
    if plan.temperature and plan.top_p:
        assert len(set(strings)) > len(strings) // 2


def test_tokenwise_rejection_equals_its_reference_and_fails_at_its_bound() -> None:
    rng, most = np.random.default_rng(4), 12
    tokens, lengths, limits = prompts(rng, PROMPTS)
    plan = decoding.tokenwise_rejection(Plan(END, threshold=0.5), most)
    draws = torch.from_numpy(rng.random((R, PROMPTS, plan.calls(BRACKETS + 2))))
    rows, _ = decoding.decode(decoding.Cached(SPEC, PARAMS, BRACKETS + 2), plan, tokens, lengths, limits, draws, Sums())
    failed = 0
    for r, b in itertools.product(range(R), range(PROMPTS)):
        x, own = tokens[r, b, : lengths[r, b]].tolist(), draws[r, b].tolist()
        judge = state_value(r, Sums.layer)
        wanted = reference.tokenwise_rejection(
            reference.model(SPEC, PARAMS, r), judge, plan, x, BRACKETS + 2, own, most
        )
        assert rows.tokens[r, b, : rows.lengths[r, b]].tolist() == wanted.tokens
        assert (rows.calls[r, b], rows.erased[r, b]) == (wanted.calls, wanted.erased)
        assert bool(rows.ended[r, b]) != wanted.failed
        failed += wanted.failed
    assert 0 < failed < R * PROMPTS


@pytest.mark.parametrize("candidates", [1, 3])
def test_block_best_of_n_equals_its_reference(candidates: int) -> None:
    rng, blocks, stop = np.random.default_rng(5), 4, language.CLOSE[1]
    tokens, lengths, limits = prompts(rng, PROMPTS)
    repeats, plan = 2, Plan(END, top_p=0.95)
    shape = (R, PROMPTS * repeats * candidates, blocks * (BRACKETS + 2))
    draws = torch.from_numpy(rng.random(shape))
    oracle = decoding.Cached(SPEC, PARAMS, BRACKETS + 2)
    rows = decoding.best_of_blocks(oracle, plan, tokens, lengths, limits, draws, Sums(), stop, blocks, candidates)
    for r, b in itertools.product(range(R), range(PROMPTS * repeats)):
        x = tokens[r, b // repeats, : lengths[r, b // repeats]].tolist()
        own = draws[r, b * candidates : (b + 1) * candidates].tolist()
        judge = state_value(r, Sums.layer)
        wanted = reference.best_of_blocks(
            reference.model(SPEC, PARAMS, r), judge, plan, x, BRACKETS + 2, own, stop, blocks
        )
        assert rows.tokens[r, b, : rows.lengths[r, b]].tolist() == wanted.tokens
        assert (rows.calls[r, b], rows.erased[r, b]) == (wanted.calls, wanted.erased)
    assert torch.equal(rows.calls, rows.lengths - rows.prompts + rows.erased)


def test_a_row_is_the_same_in_any_company() -> None:
    rng, plan = np.random.default_rng(6), Plan(END, 1.0, 0.9, 4, 3, threshold=0.5)
    tokens, lengths, limits = prompts(rng, 6)
    draws = torch.from_numpy(rng.random((R, 6, plan.calls(BRACKETS + 2))))

    def decoded(which: list[int]) -> list[tuple[list[int], int]]:
        oracle = decoding.Cached(SPEC, PARAMS, BRACKETS + 2)
        rows, _ = decoding.decode(
            oracle, plan, tokens[:, which], lengths[:, which], limits[:, which], draws[:, which], Sums()
        )
        return [(rows.tokens[1, b, : rows.lengths[1, b]].tolist(), int(rows.calls[1, b])) for b in range(len(which))]

    together = decoded([0, 1, 2, 3, 4, 5])
    assert [decoded([b])[0] for b in range(6)] == together
    assert decoded([4, 2])[::-1] == [together[2], together[4]]


class Coin:
    """An oracle that writes an error with probability eta at each place, and else 0, whatever came before."""

    def __init__(self, eta: float) -> None:
        self.logits = torch.tensor([1 - eta, eta]).double().log()

    def read(self, tokens: torch.Tensor, repeats: int) -> torch.Tensor:
        return self.logits.expand(*tokens.shape, 2).repeat_interleave(repeats, 1).clone()

    def advance(self, tokens: torch.Tensor, at: torch.Tensor, layer: int | None) -> tuple[torch.Tensor, None]:
        return self.logits.expand(*tokens.shape, 2), None

    def keep(self, columns: torch.Tensor) -> None:
        pass


# Chapter, 5.5: D = 32, eta = 0.05, Q = 4.
COINS = [
    ("argmax", 1, 0.9796, 33.57),
    ("argmax", 4, 0.9796, 38.00),
    ("sample", 1, 0.9676, None),
    ("sample", 4, 0.9176, None),
]


@pytest.mark.parametrize(("refill", "stride", "accuracy", "calls"), COINS)
def test_the_coin_comes_out_as_its_closed_form(refill: str, stride: int, accuracy: float, calls: float | None) -> None:
    n, length, rng = 20_000, 32, np.random.default_rng(7)
    plan = Plan(-1, quota=4, stride=stride, refill=refill, threshold=0.5)
    right = verifiers.Known(
        lambda tokens, lengths: (tokens * (np.arange(tokens.shape[1]) < lengths[:, None])).sum(1) == 0
    )
    start = torch.zeros(1, n, 1, dtype=torch.long)
    ones = torch.ones(1, n, dtype=torch.long)
    draws = torch.from_numpy(rng.random((1, n, plan.calls(length + 1))))
    rows, _ = decoding.decode(Coin(0.05), plan, start, ones, ones * (length + 1), draws, right)
    hits = (rows.tokens[0, :, 1:] == 0).all(-1).double()
    assert abs(hits.mean() - accuracy) < 4 * hits.std() / n**0.5 + 5e-5
    if calls is not None:
        counted = rows.calls[0].double()
        assert abs(counted.mean() - calls) < 4 * counted.std() / n**0.5 + 5e-3
    assert torch.equal(rows.calls, rows.lengths - 1 + rows.erased)


def test_a_random_verifier_rejects_as_often_as_it_is_told() -> None:
    n = 20_000
    chances = torch.from_numpy(np.random.default_rng(8).random((2, n)))
    asked = torch.ones(2, n, dtype=torch.bool)
    plain = verifiers.Guessing()(None, asked, asked, chances, asked)
    rates = torch.tensor([0.1, 0.3]).double()
    rated = verifiers.Guessing(rates)(None, asked, asked, chances, asked)
    assert abs((plain < 0.5).double().mean() - 0.5) < 0.01
    assert torch.allclose((rated < 0.5).double().mean(1), rates, atol=0.01)


def test_a_verifier_is_asked_only_about_lengths_that_it_learned_from() -> None:
    rng = np.random.default_rng(3)
    inner = verifiers.Trained(1, [(torch.from_numpy(rng.normal(size=(2, 4, 2))).float(), torch.zeros(2, 2))])
    learned = torch.tensor([[False, True, True, False], [False, False, True, True]])
    states = torch.from_numpy(rng.normal(size=(2, 3, 4))).float()
    lengths = torch.tensor([[1, 2, 3], [1, 2, 3]])
    tokens, chances, asked = (
        torch.zeros(2, 3, 4, dtype=torch.long),
        torch.zeros(2, 3),
        torch.ones(2, 3, dtype=torch.bool),
    )
    found = verifiers.Within(inner, learned)(states, tokens, lengths, chances, asked)
    plain = inner(states, tokens, lengths, chances, asked)
    assert found[0].tolist() == [*plain[0, :2].tolist(), 1] and found[1].tolist() == [1, *plain[1, 1:].tolist()]
    assert verifiers.Within(inner, learned).layer == 1


def test_guesses_send_back_as_often_as_they_are_told_whatever_the_refill_and_quota() -> None:
    spec = decoder.Spec(layers=1, heads=1, width=8, inner=8, symbols=8)
    drawn = [decoder.initial(spec, np.random.default_rng(seed)) for seed in (0, 1)]
    params = {name: torch.from_numpy(np.stack([each[name] for each in drawn])).float() for name in drawn[0]}
    tokens, lengths, wanted = np.full((400, 1), 4), np.ones(400, np.int64), np.array([0.5, 2.5])

    for refill in (decoding.ARGMAX, decoding.SAMPLE):
        plan = Plan(-1, quota=4, stride=3, refill=refill)

        def sent_back(rate: np.ndarray, plan: Plan = plan) -> np.ndarray:
            oracle = decoding.Cached(spec, params, 12)
            shape = torch.from_numpy(tokens).expand(2, -1, -1), torch.from_numpy(lengths).expand(2, -1)
            draws, chances = torch.from_numpy(np.random.default_rng(5).random((2, 2, 400, 40))).unbind()
            verifier = verifiers.Guessing(torch.from_numpy(rate))
            with torch.no_grad():
                rows, _ = decoding.decode(oracle, plan, *shape, shape[1] + 11, draws, verifier, chances)
            return (4 - rows.quota).double().mean(1).numpy()

        rate = guessing.matching_rate(sent_back, wanted, np.array([0.02, 0.02]), 4)
        assert np.abs(sent_back(rate) / wanted - 1).max() < 0.1


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=8), st.floats(0, 1), st.floats(0.1, 3), st.floats(0, 0.999999))
@settings(max_examples=60, deadline=None)
def test_nucleus_sampling_follows_its_law(logits: list[float], top_p: float, temperature: float, chance: float) -> None:
    plan, row = Plan(END, temperature, top_p), torch.tensor(logits).double()
    p, full = decoding.law(row, plan), decoding.law(row, replace(plan, top_p=1.0))
    assert abs(float(p.sum()) - 1) < 1e-12
    kept = p > 0
    if top_p > 0:
        least = full[kept].min()
        assert bool((full[~kept] <= least + 1e-12).all())
        assert float(full[kept].sum()) >= min(top_p, 1 - 1e-9) - 1e-9  # the token that crosses it is kept
        assert float(full[kept].sum() - least) <= top_p + 1e-9
    token = int(decoding.draw(row, torch.tensor(chance), plan))
    assert p[token] > 0
    if int(kept.sum()) > 1:
        assert float(p[:token].sum()) <= chance + 1e-9 and chance < float(p[: token + 1].sum()) + 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_p": -0.1}, "top_p is -0.1"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"refill": "greedy"}, "refill is 'greedy'"),
        ({"quota": 2}, "quota is 2 and stride 0"),
        ({"stride": 2}, "quota is 0 and stride 2"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(SandglassError, match=message):
        replace(Plan(END), **change)


def test_bad_input_gets_one_line() -> None:
    tokens, lengths, limits = prompts(np.random.default_rng(0), 2)
    plan = Plan(END, quota=2, stride=3)
    draws = torch.zeros(R, 2, 100).double()

    def decoded(plan: Plan, lengths: torch.Tensor, draws: torch.Tensor, verifier: object = None) -> None:
        oracle = decoding.Cached(SPEC, PARAMS, BRACKETS + 2)
        decoding.decode(oracle, plan, tokens, lengths, limits, draws, verifier)  # type: ignore[arg-type]

    with pytest.raises(SandglassError, match="stride is 40, longer than any string"):
        decoded(replace(plan, stride=40), lengths, draws, Sums())
    with pytest.raises(SandglassError, match="belong together"):
        decoded(plan, lengths, draws)
    with pytest.raises(SandglassError, match="it may make"):
        decoded(plan, lengths, draws[..., :3], Sums())
    with pytest.raises(SandglassError, match="do not fit"):
        decoded(plan, lengths[:1], draws, Sums())
    with pytest.raises(SandglassError, match="shorter than their limits"):
        decoded(plan, limits, draws, Sums())
    wide = verifiers.Trained(2, [(torch.zeros(R, 9, 2).double(), torch.zeros(R, 2).double())])
    with pytest.raises(SandglassError, match="2 verifiers of states of width 9 do not fit 2 models of width 8"):
        decoded(plan, lengths, draws, wide)
