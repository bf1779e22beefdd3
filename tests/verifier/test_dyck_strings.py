"""Balanced strings of one length: law, sampler, completability; the decoders that learn them, and their average."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder
from pipeline.params import load
from pipeline.studies.verifier import inputs
from pipeline.studies.verifier.measures import classifiers, closers, generation
from pipeline.studies.verifier.names import DYCK, LAW
from pipeline.studies.verifier.theory import strings
from pipeline.training.objectives import dyck_strings as objective

P, Q = 0.2, 0.5


# Chapter, 3.2: with <= the masses sum to 0.375, 0.3125, 0.2734, and are 0.167, 0.225, 0.259 from the process.
@pytest.mark.parametrize(("brackets", "total", "apart"), [(4, 0.375, 0.167), (6, 0.3125, 0.225), (8, 0.2734, 0.259)])
def test_the_law_is_that_of_the_process_and_the_printed_one_is_not(brackets: int, total: float, apart: float) -> None:
    rows = language.enumerate_strings(brackets)
    law = np.exp(language.log_probability(rows, P, Q, brackets))
    printed = np.exp(language.log_probability(rows, P, Q, brackets, printed=True))
    assert math.isclose(law.sum(), 1, abs_tol=1e-12)
    assert math.isclose(printed.sum(), total, abs_tol=5e-5)
    assert math.isclose(abs(printed / printed.sum() - law).sum() / 2, apart, abs_tol=5e-4)


def test_the_theory_check_fails_for_a_wrong_law(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = SimpleNamespace(study="verifier", brackets=[4, 6], p=P, q=Q)
    assert strings.check(entry, LAW, 0)["passed"].all()  # type: ignore[arg-type]
    true = language.log_probability
    monkeypatch.setattr(language, "log_probability", lambda *a, printed=False: true(*a, printed=True))
    assert not strings.check(entry, LAW, 0)["passed"].all()  # type: ignore[arg-type]


@pytest.mark.parametrize("max_depth", [2, 4])
def test_samples_follow_the_law(max_depth: int) -> None:
    n, brackets = 40_000, 8
    rows = language.enumerate_strings(brackets)
    law = np.exp(language.log_probability(rows, P, Q, max_depth))
    law *= np.where(np.where(rows < 2, 1, -1).cumsum(1).max(1) <= max_depth, 1, 0)
    drawn = language.sample(np.random.default_rng(0), n, brackets, P, Q, max_depth)[:, 1:-1]
    index = {tuple(row): place for place, row in enumerate(rows.tolist())}
    counts = np.bincount([index[tuple(row)] for row in drawn.tolist()], minlength=len(rows))
    likely = law * n > 5
    assert math.isclose(law.sum(), 1, abs_tol=1e-12) and counts[law == 0].sum() == 0
    rest = counts[~likely].sum(), law[~likely].sum() * n
    observed, expected = [*counts[likely]], [*(law[likely] * n)]
    if rest[1] > 0:
        observed, expected = [*observed, rest[0]], [*expected, rest[1]]
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_few_long_strings_are_deeper_than_the_bound_of_the_release() -> None:
    drawn = language.sample(np.random.default_rng(1), 50_000, 32, P, Q, 99)[:, 1:-1]
    depth = np.where(drawn < 2, 1, -1).cumsum(1)
    assert 0.003 < (depth.max(1) > 12).mean() < 0.007  # chapter: 0.5%
    capped = language.sample(np.random.default_rng(1), 5_000, 32, P, Q, 12)[:, 1:-1]
    assert np.where(capped < 2, 1, -1).cumsum(1).max() == 12


def test_every_prefix_is_completable_exactly_if_some_string_begins_so() -> None:
    brackets = 4
    whole = {tuple(row) for row in language.enumerate_strings(brackets).tolist()}
    begins = {row[:n] for row in whole for n in range(brackets + 1)}
    for n in range(1, brackets + 1):
        rows = np.array(list(itertools.product(range(8), repeat=n)), np.int64).reshape(-1, n)
        tokens = np.concatenate([np.full((len(rows), 1), language.BEGIN), rows], 1)
        found = language.completable(tokens, np.full(len(rows), n + 1), brackets)
        assert found.tolist() == [tuple(row) in begins for row in rows.tolist()]
    ends = np.array([[language.BEGIN, *row, end] for row in whole for end in range(8)])
    full = np.full(len(ends), brackets + 2)
    assert (language.is_complete(ends, full, brackets) == (ends[:, -1] == language.END)).all()


@given(st.lists(st.integers(0, 7), min_size=1, max_size=9))
@settings(max_examples=80, deadline=None)
def test_the_first_mistake_is_where_the_string_stops_being_completable(signs: list[int]) -> None:
    tokens = np.array([[language.BEGIN, *signs]])
    at, kind = language.first_errors(tokens, [len(signs) + 1], 8)
    valid = [bool(language.completable(tokens, [n], 8)[0]) for n in range(1, len(signs) + 2)]
    assert valid == sorted(valid, reverse=True)
    assert at[0] == (valid.index(False) if False in valid else -1) and (kind[0] >= 0) == (at[0] >= 0)


@pytest.mark.parametrize(
    ("string", "error", "at"),
    [
        ("B(])", language.WRONG_CLOSER, 2),
        ("B)", language.UNDERFLOW, 1),
        ("B(((", language.TOO_DEEP, 3),
        ("B()E", language.END_INCORRECT, 3),
        ("B()()[", language.END_INCORRECT, 5),
        ("B(B", language.NO_BRACKET, 2),
    ],
)
def test_mistakes_have_the_names_of_the_release(string: str, error: str, at: int) -> None:
    tokens = np.array([language.parse(string)])
    place, kind = language.first_errors(tokens, [len(string)], 4)
    assert (place[0], language.ERRORS[kind[0]]) == (at, error)


def test_a_prompt_that_no_string_begins_with_is_refused() -> None:
    with pytest.raises(SandglassError, match="is no prefix of a balanced string of 4 brackets"):
        generation.check_prompts(np.array([language.parse("B(]")]), np.array([3]), 4)
    with pytest.raises(SandglassError, match="it does not begin with B"):
        generation.check_prompts(np.array([language.parse("((")]), np.array([2]), 4)
    with pytest.raises(SandglassError, match="cannot encode"):
        inputs.encode({"task": "strings"}, "(x")


def test_the_published_model_has_as_many_parameters_as_published() -> None:
    entry = load(scale="paper").members("runs", "verifier")[DYCK]
    names = ("layers", "heads", "width", "inner")
    spec = decoder.Spec(**{name: getattr(entry, name) for name in names}, symbols=language.VOCABULARY)
    assert sum(math.prod(shape) for shape in decoder.shapes(spec).values()) == 15_743_488
    assert (entry.steps * entry.batch, entry.lr, entry.warmup) == (300_000, [3e-4], 100)


def test_a_step_at_paper_size_changes_the_weights() -> None:
    spec = decoder.Spec(6, 8, 512, 1024, language.VOCABULARY)
    params = {
        name: torch.from_numpy(value[None]).float().requires_grad_()
        for name, value in decoder.initial(spec, np.random.default_rng(0)).items()
    }
    tokens = torch.from_numpy(language.sample(np.random.default_rng(0), 2, 32, P, Q, 12))[None]
    made = objective.Objective({}, {"held": []})
    forward = lambda ids: decoder.forward(spec, params, ids, ids)  # noqa: E731
    loss = made.loss(forward, {"tokens": tokens})["loss"].sum()
    assert abs(loss.item() - math.log(8)) < 0.5
    gradients = torch.autograd.grad(loss, list(params.values()))
    assert all(bool(each.abs().sum() > 0) for each in gradients)


def test_positions_are_relative_and_models_are_causal() -> None:
    q, k = torch.randn(2, 1, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cos, sin = decoder.rotation(20, 16, torch.float64, q.device, decoder.BASE)

    def score(i: int, j: int) -> float:
        return float((decoder.rotated(q, cos[i], sin[i]) * decoder.rotated(k, cos[j], sin[j])).sum())

    assert math.isclose(score(3, 1), score(15, 13), abs_tol=1e-12) and abs(score(3, 1) - score(4, 1)) > 1e-3
    spec = decoder.Spec(2, 2, 8, 12, 8)
    params = {n: torch.from_numpy(v[None]) for n, v in decoder.initial(spec, np.random.default_rng(0)).items()}
    ids = torch.randint(8, (1, 3, 7), generator=torch.Generator().manual_seed(1))
    whole, seen = decoder.forward(spec, params, params["head.W"], ids, record=decoder.state_names(spec))
    part, _ = decoder.forward(spec, params, params["head.W"], ids[..., :4])
    assert torch.allclose(whole[:, :, :4], part, atol=1e-12)
    assert torch.allclose(seen["states.2"] @ params["head.W"][0], whole, atol=1e-12)
    with pytest.raises(SandglassError, match="cannot record"):
        decoder.forward(spec, params, params["head.W"], ids, record=["states.3"])


def test_a_verifier_learns_what_can_be_learned_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    features, right = torch.from_numpy(rng.normal(size=(200, 4))), rng.random(200) < 0.5
    features[:, 0] += torch.from_numpy(np.where(right, 3.0, -3.0))
    training = SimpleNamespace(splits=2, share=0.8, epochs=20, batch=32, lr=0.01, weight_decay=0.1, hidden=8)
    for depth in (1, 2):
        fit = classifiers.fit(training, features, right, ("test",), 0, depth)  # type: ignore[arg-type]
        assert (
            fit.validation.min() > 0.95 and len(fit.weights) == depth and (fit.n_train, fit.n_validation) == (160, 40)
        )
    blind = classifiers.fit(training, features[:, 1:], right, ("test",), 0)  # type: ignore[arg-type]
    judged = classifiers.accuracy(blind.weights, torch.from_numpy(rng.normal(size=(400, 3))), rng.random(400) < 0.5)
    assert abs(judged - 0.5).max() < 0.15


@given(st.data())
@settings(max_examples=100)
def test_the_brackets_that_are_due_are_those_on_the_stack(data: st.DataObject) -> None:
    signs = data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    tokens = np.array([[language.BEGIN, *signs, language.END]])
    at, _ = language.first_errors(tokens, [6], 4)
    stack: list[int] = []
    wanted = [-1] * 6
    for place, sign in enumerate(signs, start=1):
        if 0 <= at[0] < place:
            break
        if sign < 2:
            stack.append(sign)
        elif stack:
            wanted[place] = stack.pop()
    assert closers.closers_due(tokens, [6], 4)[0].tolist() == wanted
