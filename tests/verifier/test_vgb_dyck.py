"""Exact laws and costs below a prompt, against samplers that are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.languages import dyck_strings as language
from pipeline.studies.verifier.analysis import strings, vgb_dyck
from pipeline.studies.verifier.exact.vgb import Tree
from pipeline.studies.verifier.exact.walks import Walks
from schemas.verifier.vgb_dyck import ALRS, BASE, EXACT, FIRST_LEAF, LEARNED, STATIONARY, TRS

A, H, THRESHOLD = 4, 2, 0.5
RNG = np.random.default_rng(0)
LAWS = [RNG.dirichlet(np.ones(A), A**h) for h in range(H)]
VALUES = [np.ones(1), np.array([0.9, 0.6, 0.2, 0.7]), RNG.uniform(0.1, 0.9, A**H)]
BALANCED = ((np.arange(A**H) % 5 == 0) & (np.arange(A**H) > 0)).astype(float)  # none below the first bracket


def rows() -> dict[tuple[str, str], dict[str, Any]]:
    found = vgb_dyck._laws(LAWS, VALUES, BALANCED, 0.01, THRESHOLD)
    return {(row["leaf_values"], row["method"]): row for row in found}


def test_every_sampler_has_its_row_and_the_walk_with_exact_leaves_never_misses() -> None:
    found = rows()
    assert set(found) == {(kind, method) for kind in (EXACT, LEARNED) for method in vgb_dyck_methods()}
    base = (LAWS[0][0][:, None] * LAWS[1]).ravel()
    target = base * BALANCED / (base * BALANCED).sum()
    assert found[EXACT, BASE]["distance"] == pytest.approx(abs(base - target).sum() / 2)
    assert found[EXACT, STATIONARY]["distance"] < 1e-12 and found[EXACT, FIRST_LEAF]["p_valid"] == pytest.approx(1)
    assert found[LEARNED, STATIONARY]["distance"] > 0.01


def vgb_dyck_methods() -> list[str]:
    return [BASE, TRS, ALRS, FIRST_LEAF, STATIONARY]


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
