"""Constructions of the Dyck theory: the rows hold, and each fails when what it is about is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.languages import dyck
from pipeline.models.transformer import theory as model
from pipeline.store import tables
from pipeline.studies.dyck import constructions
from pipeline.studies.dyck.constructions import Language, Scores, Solver
from pipeline.studies.dyck.theory import approximate_balance, exact_solver, pumping, residual_order, uniform_attention
from schemas.theory import Theory

SMALL: dict[ModuleType, dict[str, Any]] = {
    exact_solver: {"solvers": 2, "length": 60, "maps": 100},
    uniform_attention: {"strings": 2, "length": 60},
    # With three solvers the order of their accuracies hangs on rounding, and so on the maker of the processor.
    pumping: {"solvers": 10, "pairs": [1, 64, 256], "strings": 4, "lengths": [28, 250]},
    approximate_balance: {"triples": 2000, "models": 3, "lengths": [40]},
    residual_order: {"lengths": [29, 401, 1601]},
}
Break = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings of 500 tokens in place of 2000: a map has the square of that."""
    monkeypatch.setattr(pumping, "RATIO", (64, 256))


def rows(module: ModuleType, **sizes: Any) -> pl.DataFrame:
    return module.check(SimpleNamespace(**(SMALL[module] | sizes)), "dyck-t", 1)


def failed(frame: pl.DataFrame) -> set[str]:
    return set(frame.filter(~pl.col("passed"))["check"])


@pytest.mark.parametrize("module", SMALL, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_row_is_valid_and_passes(module: ModuleType) -> None:
    frame = rows(module)
    tables.validate(frame, Theory, "theory")
    assert failed(frame) == set()
    for (erratum,), both in frame.filter(pl.col("erratum") != "").group_by("erratum"):
        assert set(both["form"]) == {"printed", "corrected"}, erratum


# Exact small cases


def test_scores_are_balanced_and_the_smallest_coefficient_is_that_of_the_worst_stack() -> None:
    language = Language(2, 3)
    scores = constructions.balanced_scores([np.random.default_rng(r) for r in range(2)], language, 1.0)
    difference = scores.table[:, language.opens] - scores.table[:, language.closes]
    np.testing.assert_allclose(difference, np.broadcast_to(scores.a[..., None], difference.shape))
    opens = language.opens.reshape(2, 3)
    for r in range(2):
        worst = np.inf
        for query in language.closes:
            d = language.depths[query]
            for types in np.ndindex(*[2] * d):  # every stack
                if d:
                    weight = np.exp(scores.table[r, [opens[t, i] for i, t in enumerate(types)], query])
                    worst = min(worst, (weight / np.linalg.norm(weight)).min())
        assert constructions.smallest_coefficient(scores, language)[r] == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(("k", "depth"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_solvers_of_small_languages_know_every_prefix(k: int, depth: int) -> None:
    language = Language(k, depth, q=0.3)
    scores = constructions.balanced_scores([np.random.default_rng(0)], language, 0.5)
    tokens = dyck.enumerate_prefixes(6, k, depth)
    outputs, _ = constructions.exact_solvers(language, scores).run(tokens)
    np.testing.assert_allclose(outputs[0], language.law(tokens), atol=1e-10)
    for tokens_1xT in tokens[:3]:  # the law at a position is that of the prefix up to it
        np.testing.assert_allclose(language.law(tokens_1xT[None, :4])[0], language.law(tokens_1xT[None])[0, :5])


def test_uniform_solver_knows_every_prefix_and_attends_uniformly() -> None:
    solver, _ = uniform_attention.uniform_solver(Language(2, 3), np.random.default_rng(0))
    tokens = dyck.enumerate_prefixes(7, 2, 3)
    names = [f"blocks.{layer}.attn.pattern" for layer in (0, 1)]
    outputs, recorded = solver.run(tokens, names)
    np.testing.assert_allclose(outputs[0], solver.language.law(tokens), atol=1e-9)
    even = np.tri(8) / np.arange(1, 9)[:, None]
    for name in names:
        np.testing.assert_allclose(recorded[name], np.broadcast_to(even, recorded[name].shape), atol=1e-12)


def test_a_lookup_is_constant_around_its_inputs() -> None:
    rng = np.random.default_rng(0)
    inputs, outputs = rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    ((W, b), (V, c)), gap = uniform_attention.lookup(inputs, outputs, rng)
    for moved in (inputs, inputs + rng.uniform(-1, 1, inputs.shape) * gap / 16):
        np.testing.assert_allclose(np.maximum(moved @ W + b, 0) @ V + c, outputs, atol=1e-12)


def test_unmatched_opens_by_hand() -> None:
    mask = uniform_attention.unmatched(dyck.parse("[(]"[:2] + ")("), Language(2, 4))
    pairs = [np.flatnonzero(row).tolist() for row in mask[0]]
    assert pairs == [[0], [0, 5], [0], [0, 5]]  # [ at depth 1, ( at depth 2


def test_prefixes_of_the_proof_are_prefixes_of_the_language() -> None:
    solver = approximate_balance.random_layers(2, np.random.default_rng(0))
    for d, around in ((2, 1), (4, 3)):
        prefixes = approximate_balance.pair(solver, 40, d, around, 1, 2)
        flat = prefixes.tokens.reshape(4, -1)
        assert dyck.is_valid(flat, 2, 4).all() and flat.shape[1] == 40 - d - 1
        assert (dyck.depths(flat)[:, -1] == d - 1).all()
        tops = dyck.bracket_type(prefixes.tokens[:, :, -3])
        assert (tops[:, 0] != tops[:, 1]).all()
        assert (np.linalg.norm(prefixes.own[:, 0], axis=-1) <= np.linalg.norm(prefixes.own[:, 1], axis=-1)).all()


# Broken constructions


def unbalanced(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.balanced_scores

    def scores(rngs: Any, language: Language, sigma: float, free: bool = False) -> Scores:
        solver_scores = right(rngs, language, sigma, free)
        solver_scores.table[:, language.closes] += 0.3
        return solver_scores

    monkeypatch.setattr(constructions, "balanced_scores", scores)


def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.balanced_scores
    monkeypatch.setattr(
        constructions, "balanced_scores", lambda r, language, s, *a, **b: right(r, language, 2.0, *a, **b)
    )


def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.balanced_scores
    monkeypatch.setattr(
        constructions, "balanced_scores", lambda rngs, *a, **b: right([np.random.default_rng(0) for _ in rngs], *a, **b)
    )


def index_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_solver, "printed_index", lambda language: np.arange(1, language.pairs + 1))


def basis_off_the_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = constructions.uniform_scores(Language(2, 4))
    basis = constructions.exact_solvers(Language(2, 4), scores).basis
    monkeypatch.setattr(exact_solver, "printed_basis", lambda language, rng: basis)


def other_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dyck.embedding_table
    swapped = {"pair": "sum", "sum": "pair", "angle": "pair"}
    monkeypatch.setattr(
        dyck, "embedding_table", lambda kind, k, D, width: right(swapped[kind] if width == 17 else kind, k, D, width)
    )


def leaking_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.insert_layer

    def insert(ensemble: model.Ensemble, at: int, attention: Any, network: Any) -> model.Ensemble:
        return right(ensemble, at, attention, [(W * 1.01, b) for W, b in network] if at else network)

    monkeypatch.setattr(constructions, "insert_layer", insert)


def stubborn_head(monkeypatch: pytest.MonkeyPatch) -> None:
    right = model.forward

    def forward(spec: Any, params: Any, *a: Any, **b: Any) -> Any:
        logits, recorded = right(spec, params, *a, **b)
        return logits + 1e-3, recorded

    monkeypatch.setattr(model, "forward", forward)


def skewed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.insert_layer

    def insert(ensemble: model.Ensemble, at: int, attention: Any, network: Any) -> model.Ensemble:
        if ensemble.spec.layers:  # the first layer of two: closers count less than opens
            attention = attention | {"W_V": np.where(attention["W_V"] < 0, -0.9, attention["W_V"])}
        return right(ensemble, at, attention, network)

    monkeypatch.setattr(constructions, "insert_layer", insert)


def uneven_second_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    def solvers(language: Language, scores: Scores) -> Solver:
        scores = constructions.balanced_scores([np.random.default_rng(0)], language, 1.0)
        return constructions.exact_solvers(language, scores)

    monkeypatch.setattr(uniform_attention, "exact_solvers", solvers)


def sums_for_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    right = model._attention

    def attention(spec: Any, params: Any, at: str, x: torch.Tensor, mask: Any, B: int, T: int) -> Any:
        out, pattern = right(spec, params, at, x, mask, B, T)
        return out * torch.arange(1, T + 1).repeat(B)[:, None], pattern

    monkeypatch.setattr(model, "_attention", attention)


def start(given: bool) -> Break:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        right = Solver.run

        def run(self: Solver, tokens: Any, record: Any = (), start: bool = True) -> Any:
            return right(self, tokens, record, given)

        monkeypatch.setattr(Solver, "run", run)

    return patch


def same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform_attention, "REPEATED", dyck.parse("(", "(("))


def no_normalisation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uniform_attention, "layer_norm", lambda a, floor: a)


def always_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pumping.perturbed
    monkeypatch.setattr(pumping, "perturbed", lambda scores, noise, delta: right(scores, noise, delta + 0.2))


def never_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "perturbed", lambda scores, noise, delta: scores)


def constant_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "separation", lambda scores, pairs: np.full(len(scores.table), 1.1))


def less_and_less_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pumping, "BROKEN", pumping.BROKEN[::-1])


def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    right = pumping._accuracy
    monkeypatch.setattr(
        pumping, "_accuracy", lambda s, t, n: dict(zip(n, reversed(right(s, t, n).values()), strict=True))
    )


def never_free(monkeypatch: pytest.MonkeyPatch) -> None:
    right = constructions.balanced_scores
    monkeypatch.setattr(
        constructions, "balanced_scores", lambda r, language, sigma, free=False: right(r, language, sigma)
    )


def swapped_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = approximate_balance.CONSTANTS.values()
    monkeypatch.setattr(approximate_balance, "CONSTANTS", {"printed": two, "corrected": one})


def swapped_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = approximate_balance.pair

    def pair(*arguments: Any) -> Any:
        prefixes = right(*arguments)
        return prefixes._replace(printed=prefixes.common, common=prefixes.printed)

    monkeypatch.setattr(approximate_balance, "pair", pair)


def forgotten_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    right = approximate_balance.pair

    def pair(*arguments: Any) -> Any:
        prefixes = right(*arguments)
        return prefixes._replace(common=prefixes.common * 100)

    monkeypatch.setattr(approximate_balance, "pair", pair)


def strict_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate_balance, "EPSILON", 1e-12)


def rare_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dyck.log_probability
    monkeypatch.setattr(dyck, "log_probability", lambda *a: right(*a) - 20)


def swapped_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    right = residual_order.exact_solvers

    def solvers(language: Language, scores: Scores, block: str = "eq6") -> Solver:
        return right(language, scores, block="eq52" if block == "eq6" else "eq6")

    monkeypatch.setattr(residual_order, "exact_solvers", solvers)


EXACT = {f"exact-k{k}-d{d}-sigma{s}" for k, d in ((2, 4), (3, 4), (2, 8)) for s in ("0", "0.5", "1", "2")}
CORRECTED = {"exact-accuracy", "exact-variation-error", "index-corrected", "overlap-corrected"}
UNIFORM = {f"{check}-{language}" for check in ("symbols", "stacks", "uniform") for language in ("k2-d4", "k3-d8")}
VANISHING, KEPT = ({f"{name}-{n}" for n in (29, 401, 1601)} for name in ("vanishing", "kept"))


CASES: list[tuple[ModuleType, Break, set[str]]] = [
    (exact_solver, unbalanced, EXACT | CORRECTED),
    (exact_solver, wide, {"exact-variation-sigma0", "exact-variation-sigma0.5"}),
    (exact_solver, alike, {"exact-variation-sigma1", "exact-variation-sigma2"}),
    (exact_solver, index_that_fits, {"index-printed"}),
    (exact_solver, basis_off_the_embeddings, {"overlap-printed"}),
    (exact_solver, other_embeddings, {"rank-pair", "rank-sum", "rank-angle"}),
    (exact_solver, leaking_layer, {"identity-layer"}),
    (exact_solver, stubborn_head, {"zero-head"}),
    (uniform_attention, skewed_values, UNIFORM),
    (uniform_attention, uneven_second_layer, {"coefficient-k2-d4", "coefficient-k3-d8"}),
    (uniform_attention, sums_for_averages, {"average-printed", "average-corrected"}),
    (uniform_attention, start(True), {"repeated-without-start"}),
    (uniform_attention, same_law, {"repeated-law", "repeated-with-start"}),
    (uniform_attention, no_normalisation, {"width-two"}),
    (pumping, always_noisy, {"pumped-balanced", "pumped-delta0-pairs64", "broken-delta0-length250"}),
    (pumping, never_noisy, {"pumped-decay-delta0.2", "pumped-decay-delta1"}),
    (pumping, constant_distance, {"pumped-delta1-pairs256", "pumped-decay-delta1"}),
    (pumping, less_and_less_noise, {"broken-delta0.2-length250", "broken-delta0.1-length250"}),
    (pumping, backwards, {f"broken-falls-delta{delta}" for delta in (0.02, 0.05, 0.1, 0.2)}),
    (pumping, never_free, {"log-ratio-printed"}),
    (pumping, unbalanced, {"log-ratio-corrected", "log-ratio-solvers"}),
    (approximate_balance, swapped_constants, {"lemma-1-printed", "lemma-1-corrected"}),
    (approximate_balance, swapped_prefixes, {"decomposition-printed", "decomposition-corrected"}),
    (approximate_balance, forgotten_prefix, {"decomposition-corrected", "prefixes-apart"}),
    (approximate_balance, strict_loss, {"loss-printed"}),
    (approximate_balance, rare_prefixes, {"loss-corrected"}),
    (residual_order, swapped_layers, VANISHING | KEPT | {"vanishing-rate"}),
]


@pytest.mark.parametrize(("module", "broken", "expected"), CASES)
def test_a_broken_construction_is_caught(
    module: ModuleType, broken: Break, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    assert expected <= failed(rows(module))


@pytest.mark.parametrize("module", SMALL, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_kind_of_check_is_broken_once(module: ModuleType) -> None:
    broken = set().union(*(names for of, _, names in CASES if of is module))
    assert {kind(check) for check in rows(module)["check"]} == {kind(check) for check in broken}


def kind(check: str) -> str:
    """Without the sizes and spreads that are part of its name."""
    return re.sub(r"[0-9][0-9.]*", "#", check)


# What runs no Transformer.
WITHOUT_A_RUN: dict[ModuleType, set[str]] = {
    exact_solver: {"rank-pair", "rank-sum", "rank-angle"},
    uniform_attention: {"width-two", "repeated-law"},
    pumping: {"log-ratio-printed", "log-ratio-corrected"},
    approximate_balance: {"lemma-1-printed", "lemma-1-corrected", "loss-printed", "loss-corrected"},
    residual_order: set(),
}


@pytest.mark.parametrize("module", SMALL, ids=lambda module: module.__name__.rpartition(".")[2])
def test_one_model_of_nan_fails_every_check_that_runs_it(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Solver.run

    def run(self: Solver, *arguments: Any, **named: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        outputs, recorded = right(self, *arguments, **named)
        for values in (outputs, *recorded.values()):
            values[0] = np.nan
        return outputs, recorded

    monkeypatch.setattr(Solver, "run", run)
    frame = rows(module)
    assert set(frame["check"]) - failed(frame) == WITHOUT_A_RUN[module]


def test_rows_are_reproducible_and_depend_on_the_seed() -> None:
    small = {"solvers": 1, "length": 20, "maps": 3}
    first, again = (rows(exact_solver, **small) for _ in range(2))
    other = exact_solver.check(SimpleNamespace(**small), "dyck-t", 2)
    assert first.equals(again) and not first.equals(other)
    more = rows(exact_solver, **small | {"maps": 4})
    same = ~pl.col("check").str.starts_with("exact-variation")
    assert more.filter(same).equals(first.filter(same))
