"""Constructions, bounds and closed forms of flip-flop languages: exact where corrected, wrong where printed wrongly,
and never right where something is not a number."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spoiling import Checked, assert_no_row_holds

from pipeline.kit.verdicts import Gate
from pipeline.languages import flipflop as language
from pipeline.models.automata import exact as gadget
from pipeline.models.automata import lstm as lstm_model
from pipeline.studies.flipflop import names
from pipeline.studies.flipflop.analysis import addition as additions
from pipeline.studies.flipflop.claims import theory as claims
from pipeline.studies.flipflop.exact import recognisers as exact
from pipeline.studies.flipflop.theory import addition, attention, gadgets, lstm, machines, parser, prediction
from schemas.claims import FAILS, HOLDS, NOT_RUN

NAN = float("nan")
MODULES: dict[str, Any] = {
    "machines": machines,
    "lstm": lstm,
    "parser": parser,
    "gadgets": gadgets,
    "attention": attention,
    "prediction": prediction,
    "addition": addition,
}


def checked(module: str) -> pl.DataFrame:
    entry = SimpleNamespace(study="flipflop", draws=4, lengths=[16, 32], short=6)
    checks: pl.DataFrame = MODULES[module].check(entry, f"flipflop-{module}", 0)
    return checks


@pytest.mark.parametrize("module", MODULES)
def test_every_check_holds(unspoilt: Checked, module: str) -> None:
    checks = unspoilt(module)
    assert f"flipflop-{module}" in names.THEORY
    assert checks.filter(~checks["passed"])["check"].to_list() == []


PLACES: dict[str, list[tuple[Any, str]]] = {
    "machines": [],
    "lstm": [(lstm_model, "forward")],
    "parser": [(exact.Parser, "__call__"), (exact.Block, "rounded")],
    "gadgets": [(gadget.Network, "__call__")],
    "attention": [(exact, "largest_weight"), (exact.Linear, "score"), (exact.Linear, "margins")],
    "prediction": [(exact, "ngram_error"), (exact, "generative_floor")],
}


@pytest.mark.parametrize(("module", "place"), [(m, place) for m, places in PLACES.items() for place in places])
def test_no_row_holds_that_read_an_output_which_is_none(
    unspoilt: Checked, module: str, place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_no_row_holds(monkeypatch, unspoilt(module), lambda: checked(module), place, 0.7, parts=1)


@pytest.mark.parametrize("length", [4, 6, 8, 10])
def test_the_parser_reads_every_string_and_its_sharpness_matters(length: int) -> None:
    tokens = language.enumerate_strings(length)
    wrong, off, raw = parser.read(exact.parser(length), tokens)
    assert not wrong.any() and off.max() < 1e-9 and raw.max() < 1 / 8
    assert parser.read(exact.parser(length, sharpness=0.02), tokens)[0].any()
    assert parser.read(exact.parser(length, horizon=4 * length, printed_key=True), tokens)[0].any() or length < 6


def test_the_parser_is_the_same_network_as_that_of_the_automata_study() -> None:
    """Attention and MLP of both families, on the first layer's weights."""
    known = exact.parser(12)
    tokens = language.enumerate_strings(12)[::50]
    block = known.blocks[0]
    head = gadget.Head(block.Q, block.K, block.V, block.C)
    mlp = [(block.W_1, block.b_1), (block.W_2, np.zeros(7))]
    layer = gadget.Layer([head], np.zeros(7), mlp, np.zeros(7))
    x = known.embed(tokens)
    assert np.abs(gadget.Network([layer], 7)(x) + x - known.flags(tokens)).max() < 1e-12


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_sums_by_a_flip_flop(a: int, b: int) -> None:
    assert exact.added(str(a), str(b)) == str(a + b)


@given(st.floats(0, 4), st.integers(2, 60), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_soft_attention_spreads(sigma: float, length: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    product, v = rng.normal(size=(dim, dim)), rng.normal(size=(length, dim))
    product *= sigma / np.linalg.norm(product, 2)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    assert exact.largest_weight(product, v) <= exact.most_weight(sigma, length) + 1e-12
    assert exact.largest_weight(*attention.tight(sigma, length, dim)) == pytest.approx(exact.most_weight(sigma, length))


@given(st.integers(0, 10**6), st.integers(4, 60))
@settings(max_examples=50, deadline=None)
def test_first_failures_are_those_of_the_scores(seed: int, most: int) -> None:
    known = exact.Linear.of(*attention.drawn(np.random.default_rng(seed)), C=64.0)
    for case in (1, 2):
        margins = known.margins(np.arange(4, most + 1))[case - 1]
        first = known.first_failure(case)
        assert (margins < 0).any() == (first <= most)
        if first <= most:
            assert first == 4 + int(np.flatnonzero(margins < 0)[0])


@given(st.integers(1, 12), st.sampled_from([6, 8, 10]), st.floats(0.05, 0.9), st.floats(0.05, 0.9))
@settings(max_examples=20, deadline=None)
def test_ngrams_by_enumeration(n: int, length: int, write: float, read: float) -> None:
    law = (write / (write + read + 0.3), read / (write + read + 0.3))
    tokens = language.enumerate_strings(length)
    weight = np.exp(language.log_probability(tokens, *law))
    assert prediction.bayes_error(tokens, weight, n) == pytest.approx(exact.ngram_error(n, length, *law), abs=1e-12)


def test_table_of_the_chapter() -> None:
    """Chapter 5.7 and 5.9, T = 512."""
    errors = [[round(exact.ngram_error(n, 512, p, p), 4) for p in (0.1, 0.01, 0.45)] for n in (5, 11, 21, 51, 201)]
    assert errors == [
        [0.3176, 0.4775, 0.005],
        [0.1607, 0.4456, 0],
        [0.0517, 0.397, 0],
        [0.0017, 0.2804, 0],
        [0, 0.0476, 0],
    ]
    floors = [round(exact.generative_floor(512, p, p), 6) for p in (0.1, 0.01, 0.45)]
    assert floors == [0.629082, 0.398073, 0.662525]


def test_lemma_16_beyond_its_length() -> None:
    assert gadgets.first_miss(64, 1.0) == (66, 65) and gadgets.first_miss(64, 2.0) == (130, 129)


def test_recorded_additions() -> None:
    table = additions.analyse(SimpleNamespace())["addition"]  # type: ignore[arg-type]
    assert table.height == 12 and (table["right"] == table["marked_right"]).all()
    assert (table["truth"] == table["printed_truth"]).all() and (table["truth"] == table["carried"]).all()
    assert table["right"].sum() == 6


def test_gates_of_theory_fall_with_their_rows(unspoilt: Checked) -> None:
    rows = pl.concat(unspoilt(module) for module in MODULES)
    table = additions.analyse(SimpleNamespace())["addition"]  # type: ignore[arg-type]

    def told(frame: pl.DataFrame) -> dict[str, Gate]:
        context: Any = SimpleNamespace(theory=lambda: frame, table=lambda name: table, scale="smoke")
        return {f"{gate.claim}, {gate.gate}": gate for gate in claims.gates(context)}

    assert {gate.verdict("quick")[0] for gate in told(rows).values()} == {HOLDS}
    none = rows.with_columns(measured=pl.lit(NAN), passed=pl.lit(False))
    fallen = {name: gate.verdict("quick")[0] for name, gate in told(none).items() if "additions" not in name}
    assert set(fallen.values()) == {FAILS}


def test_each_check_belongs_to_one_gate(unspoilt: Checked) -> None:
    rows = pl.concat(unspoilt(module) for module in MODULES)
    assert set(rows["claim"]) == {"22", "24"}
    printed = set(rows.filter(form="printed", claim="22")["part"])
    assert printed and all(part.endswith(", as printed") for part in printed)
    assert set(rows.filter(claim="22")["part"]) == set(claims.PARTS) | printed
    assert set(rows.filter(claim="24")["check"]) == set(claims.TRENDS.values())


@pytest.mark.parametrize("column", ["right", "printed_truth", "carried"])
def test_additions_that_are_missing_null_or_wrong_are_seen(column: str) -> None:
    table = additions.analyse(SimpleNamespace())["addition"]  # type: ignore[arg-type]

    def verdicts(frame: pl.DataFrame) -> set[str]:
        context: Any = SimpleNamespace(table=lambda name: frame)
        return {gate.verdict("quick")[0] for gate in claims._additions(context)}

    null = table.with_columns(pl.when(pl.int_range(pl.len()) > 0).then(column).alias(column))
    assert verdicts(table) == {HOLDS}
    assert verdicts(null) == {HOLDS, FAILS} and verdicts(table[1:]) == {FAILS}
    assert verdicts(table.clear()) == {NOT_RUN}


def test_printed_forms_have_an_erratum_and_one_that_holds(unspoilt: Checked) -> None:
    rows = pl.concat(unspoilt(module) for module in MODULES).filter(pl.col("erratum") != "")
    assert set(rows.filter(form="printed")["erratum"]) == set(rows["erratum"])
