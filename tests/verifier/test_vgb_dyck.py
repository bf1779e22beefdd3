"""Exact laws and costs below a prompt, against samplers that are taken."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.languages import dyck_strings as language
from pipeline.languages import test_cases
from pipeline.models.llama import decoder
from pipeline.models.llama.verifiers import Trained, scores
from pipeline.studies.verifier.analysis import strings, vgb_cases
from pipeline.studies.verifier.exact.vgb import Tree
from pipeline.studies.verifier.exact.walks import Walks
from pipeline.studies.verifier.measures import below
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, METHODS, STATIONARY, TRS, WHOLE

A, H, THRESHOLD = 4, 2, 0.5
RNG = np.random.default_rng(0)
LAWS = [RNG.dirichlet(np.ones(A), A**h) for h in range(H)]
VALUES = [np.ones(1), np.array([0.9, 0.6, 0.2, 0.7]), RNG.uniform(0.1, 0.9, A**H)]
BALANCED = ((np.arange(A**H) % 5 == 0) & (np.arange(A**H) > 0)).astype(float)  # none below the first bracket


def rows() -> dict[tuple[str, str], dict[str, Any]]:
    found = below.laws(LAWS, VALUES, BALANCED, 0.01, THRESHOLD)
    return {(row["leaf_values"], row["method"]): row for row in found}


def test_every_sampler_has_its_row_and_the_walk_with_exact_leaves_never_misses() -> None:
    found = rows()
    assert set(found) == {(kind, method) for kind in (EXACT, LEARNED) for method in METHODS}
    base = (LAWS[0][0][:, None] * LAWS[1]).ravel()
    target = base * BALANCED / (base * BALANCED).sum()
    assert found[EXACT, BASE]["distance"] == pytest.approx(abs(base - target).sum() / 2)
    assert found[EXACT, STATIONARY]["distance"] < 1e-12 and found[EXACT, FIRST_LEAF]["p_valid"] == pytest.approx(1)
    assert found[LEARNED, STATIONARY]["distance"] > 0.01


def test_rejection_of_whole_strings_has_its_law_and_costs() -> None:
    """Whole strings are drawn and kept with the probability that the value of the leaf says."""
    found, rng, n = rows(), np.random.default_rng(3), 20_000
    base = (LAWS[0][0][:, None] * LAWS[1]).ravel()
    for kind, values in ((EXACT, BALANCED), (LEARNED, VALUES[2])):
        drawn = rng.choice(A**H, size=n, p=base)
        kept = drawn[rng.random(n) < values[drawn]]
        target = base * BALANCED / (base * BALANCED).sum()
        distance = abs(np.bincount(kept, minlength=A**H) / len(kept) - target).sum() / 2
        own = found[kind, WHOLE]
        assert own["distance"] == pytest.approx(distance, abs=0.02) and own["fail_mass"] == 0
        assert own["value_evals"] == pytest.approx(n / len(kept), rel=0.05)
        assert own["oracle_expansions"] == H * own["value_evals"]
    assert found[EXACT, WHOLE]["distance"] < 1e-12


def test_costs_are_what_samplers_ask_for() -> None:
    found = rows()
    assert (found[EXACT, BASE]["oracle_expansions"], found[EXACT, BASE]["value_evals"]) == (H, 0)
    assert found[EXACT, STATIONARY]["oracle_expansions"] is None and found[EXACT, STATIONARY]["value_evals"] is None
    n, rng = 40_000, np.random.default_rng(1)
    # Rejection by probability, drawn: a law at each prefix, a value for each bracket that is drawn.
    values = 0
    for _ in range(n // 10):
        node = 0
        for h in range(H):
            while True:
                child = node * A + int(rng.choice(A, p=LAWS[h][node]))
                values += 1
                if rng.random() < VALUES[h + 1][child]:
                    break
            node = child
    expected = found[LEARNED, ALRS]
    assert expected["oracle_expansions"] == pytest.approx(H) and expected["fail_mass"] == 0
    assert values / (n // 10) == pytest.approx(expected["value_evals"], rel=0.05)
    # The walk, taken: half of its steps ask for a law and for the values of all children.
    _, steps = Walks(Tree(tuple(LAWS), tuple(VALUES))).first_leaf(rng, n)
    expected = found[LEARNED, FIRST_LEAF]
    assert steps.mean() == pytest.approx(expected["expected_steps"], rel=0.02)
    assert expected["value_evals"] == A * expected["oracle_expansions"] == A * expected["expected_steps"] / 2


def test_what_may_never_end_has_no_number_of_values() -> None:
    # Under exact leaves most brackets lead to no balanced string, and a threshold may reject all that are left.
    found = rows()[EXACT, TRS]
    assert found["fail_mass"] > 0 and found["value_evals"] is None
    assert 1 < found["oracle_expansions"] <= H and found["distance"] >= found["fail_mass"] / 2


@pytest.mark.parametrize(("brackets", "bound"), [(6, 1), (6, 2), (8, 2), (8, 3)])
def test_how_rarely_strings_are_deep_is_exact(brackets: int, bound: int) -> None:
    tokens = language.enumerate_strings(brackets)
    law = np.exp(language.log_probability(tokens, 0.2, 0.5, brackets))
    depth = (np.isin(tokens, language.OPEN).astype(int) - np.isin(tokens, language.CLOSE)).cumsum(1).max(1)
    assert strings.above(brackets, 0.5, bound) == pytest.approx(law[depth > bound].sum())
    assert strings.above(32, 0.5, 12) == pytest.approx(0.005, abs=5e-4)  # chapter, 3.2


def test_trees_of_test_cases_against_one_forward_pass_for_each_leaf() -> None:
    """Laws, values and what is removed, with the signs that must follow each digit, and which leaves are right."""
    rng = np.random.default_rng(2)
    spec = decoder.Spec(layers=2, heads=2, width=8, inner=12, symbols=len(test_cases.SIGNS))
    params = {
        name: torch.from_numpy(np.stack([decoder.initial(spec, rng)[name] for _ in range(2)])) * 6
        for name in decoder.shapes(spec)
    }
    verifier = Trained(2, [(torch.from_numpy(rng.normal(size=(2, 8, 2))), torch.zeros(2, 2).double())])
    prompt = [*test_cases.prompt("qxt", "APPEND", []), *test_cases.encode("assert q x t ( [")]
    digits = [test_cases.ZERO + digit for digit in range(3)]
    following = vgb_cases.following(1)
    found = below.trees(spec, params, verifier, np.array([prompt]), digits, following)
    inside = 0.0
    for leaf, actions in enumerate(itertools.product(range(3), repeat=4)):
        written, kept, place = [*prompt], 1.0, 0
        for h, action in enumerate(actions):
            p = _next(spec, params, written)
            law = found.laws[h][1, 0, place].numpy()
            assert law == pytest.approx(p[digits] / p[digits].sum(), rel=1e-6)
            kept *= p[digits[action]]
            written.append(digits[action])
            place = place * 3 + action
            _, states = decoder.forward(spec, params, params["head.W"], torch.tensor([[written]]), record=["states.2"])
            value = scores(verifier.weights, states["states.2"][:, 0, -1:]).softmax(-1)[1, 0, 1]
            assert float(found.values[h + 1][1, 0, place]) == pytest.approx(float(value), rel=1e-6)
            for sign in following[h]:
                kept *= _next(spec, params, written)[sign]
                written.append(sign)
        inside += kept
        assert found.tokens[leaf].tolist() == written
        line = written[len(prompt) - 6 :]
        right = actions[2:] == actions[:2]  # the list, and the value behind it
        assert (test_cases.first_error("qxt", 1, line) < 0) == right
    assert float(found.removed[1, 0]) == pytest.approx(1 - inside, rel=1e-6)


def _next(spec: decoder.Spec, params: dict[str, torch.Tensor], written: list[int]) -> np.ndarray:
    """Return the second model's law of a next sign."""
    logits, _ = decoder.forward(spec, params, params["head.W"], torch.tensor([[written]]))
    law: np.ndarray = logits[1, 0, -1].softmax(-1).numpy()
    return law
