"""Theory checks of the Dyck study: the rows hold, follow from what they state, and fail when the code is wrong."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.languages import dyck
from pipeline.store import tables
from pipeline.studies.dyck.theory import random_attention, sampler
from schemas import theory
from schemas.theory import Theory


@pytest.fixture(scope="module")
def sampler_rows() -> pl.DataFrame:
    return sampler.check(SimpleNamespace(samples=50_000), "dyck-sampler", 1)


@pytest.fixture(scope="module")
def attention_rows() -> pl.DataFrame:
    return random_attention.check(SimpleNamespace(matrices=4000, repeats=100), "dyck-random-attention", 1)


def test_every_row_is_valid_and_passes(sampler_rows: pl.DataFrame, attention_rows: pl.DataFrame) -> None:
    both = pl.concat([sampler_rows, attention_rows])
    tables.validate(both, Theory, "theory")
    assert both.filter(~pl.col("passed"))["check"].to_list() == []


def test_the_figures_of_the_chapter(sampler_rows: pl.DataFrame, attention_rows: pl.DataFrame) -> None:
    measured = dict(pl.concat([sampler_rows, attention_rows]).select("check", "measured").iter_rows())
    assert measured["prefix-count"] == 312
    assert measured["literal-total-mass"] == pytest.approx(123.58, abs=5e-3)
    for n, value in {15: 2.8865, 16: 2.9968, 17: 3.1013, 19: 3.2955, 20: 3.3860}.items():
        assert measured[f"causal-closed-form-{n}"] == pytest.approx(value, abs=5e-5)
    published = attention_rows.filter(check="published-16").row(0, named=True)
    assert (published["bound"], published["measured"]) == (2.85, measured["causal-closed-form-16"])
    assert published["tolerance"] == pytest.approx(1.96 * 0.093, rel=0.2)


def test_rows_say_which_part_of_a_claim_they_decide_and_where_they_are_drawn(
    sampler_rows: pl.DataFrame, attention_rows: pl.DataFrame
) -> None:
    parts = sampler_rows.filter(pl.col("claim") != "").select("check", "claim", "part").rows()
    assert parts == [("prefix-chi2", "1", "law of prefixes"), ("depth-zero", "1", "depth 0 at length 28")]
    own = attention_rows.filter(claim="2")
    assert own.height == own["part"].n_unique() == 5 + 2 * 3
    law = attention_rows.filter(group="N = 16").sort("x")
    assert law["x"].to_list() == list(random_attention.MATRICES)
    assert attention_rows.filter(group="published, N = 16")["bound"].to_list() == [2.85]
    assert attention_rows.filter(group="mean, N = 16")["check"].to_list() == ["causal-closed-form-16"]


def test_rows_are_reproducible_and_depend_on_the_seed(sampler_rows: pl.DataFrame) -> None:
    entry = SimpleNamespace(samples=50_000)
    assert sampler.check(entry, "dyck-sampler", 1).equals(sampler_rows)
    assert not sampler.check(entry, "dyck-sampler", 2).equals(sampler_rows)


def test_a_sampler_with_the_printed_law_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types that are not uniform at depth 1 change nothing that depths show, only the law of the prefixes."""
    exact = dyck.sample_prefixes

    def skewed(rng: np.random.Generator, n: int, *args: object) -> np.ndarray:
        tokens = exact(rng, n, *args)  # type: ignore[arg-type]
        return np.where(rng.random((n, 1)) < 0.05, np.where(tokens > 2, tokens - 2, tokens), tokens).astype(np.int8)

    monkeypatch.setattr(dyck, "sample_prefixes", skewed)
    rows = sampler.check(SimpleNamespace(samples=50_000), "dyck-sampler", 1)
    assert rows.filter(~pl.col("passed"))["check"].to_list() == ["prefix-chi2"]


def test_matrices_of_the_wrong_kind_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = random_attention._draw
    monkeypatch.setattr(random_attention, "_draw", lambda rng, count, n, causal: right(rng, count, n, not causal))
    rows = random_attention.check(SimpleNamespace(matrices=1000, repeats=50), "x", 1)
    failed = rows.filter(~pl.col("passed"))["check"].to_list()
    assert {"causal-monte-carlo-16", "square-16"} <= set(failed)


@pytest.mark.parametrize(
    ("measured", "comparison", "bound", "tolerance", "passed"),
    [
        (1.0, "<=", 1.0, None, True),
        (1.1, "<=", 1.0, None, False),
        (1.0, ">=", 1.0, None, True),
        (0.9, ">=", 1.0, None, False),
        (1.2, "within", 1.0, 0.25, True),
        (1.3, "within", 1.0, 0.25, False),
        (1.3, "beyond", 1.0, 0.25, True),
        (1.2, "beyond", 1.0, 0.25, False),
        (np.nan, ">=", 1.0, None, False),
        (np.nan, "beyond", 1.0, 0.25, False),
        (np.nan, "within", 1.0, 0.25, False),
    ],
)
def test_passed_is_computed(
    measured: float, comparison: str, bound: float, tolerance: float | None, passed: bool
) -> None:
    check = {
        "check": "c",
        "statement": "s",
        "size": "",
        "measured": measured,
        "comparison": comparison,
        "bound": bound,
        "tolerance": tolerance,
    }
    frame = theory.rows("dyck", "t", "somewhere", [check])
    assert frame["passed"].to_list() == [passed]
    with pytest.raises(SandglassError, match="passed follows from"):
        tables.validate(frame.with_columns(~pl.col("passed")), Theory, "typed")


def test_a_tolerance_is_given_exactly_where_it_is_used() -> None:
    check = {"check": "c", "statement": "s", "size": "", "measured": 1.0, "comparison": "within", "bound": 1.0}
    with pytest.raises(SandglassError, match="tolerance"):
        tables.validate(theory.rows("dyck", "t", "somewhere", [check]), Theory, "t")
