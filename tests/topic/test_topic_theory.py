"""Closed forms of topic models: exact on small cases, wrong where printed wrongly, and never right on what is no
number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spoiling import Checked, assert_no_row_holds
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit.context import Context
from pipeline.kit.verdicts import Gate
from pipeline.languages import topic as language
from pipeline.languages.topic import Masking, Population
from pipeline.studies.topic import constructions, names
from pipeline.studies.topic.analysis import landscapes
from pipeline.studies.topic.claims import theory as claims
from pipeline.studies.topic.exact import stage_one, stage_two
from pipeline.studies.topic.figures import landscapes as figures
from pipeline.studies.topic.theory import (
    attention,
    embeddings,
    floors,
    free_attention,
    gradients,
    masking,
    misprints,
    optimal_set,
    vanishing,
)
from schemas.claims import FAILS, HOLDS

NAN = float("nan")
USUAL = Masking(0.15, 0.1, 0.1)
MODULES: dict[str, Any] = {
    names.MASKING: masking,
    names.OPTIMAL_SET: optimal_set,
    names.VANISHING: vanishing,
    names.OPTIMAL_ATTENTION: attention,
    names.FREE_ATTENTION: free_attention,
    names.OPTIMAL_EMBEDDINGS: embeddings,
    names.GRADIENTS: gradients,
    names.FLOORS: floors,
    names.MISPRINTS: misprints,
}
# At scale quick, less of what decides no name of a check.
LESS = {
    names.MASKING: {"tokens": 20000},
    names.OPTIMAL_SET: {"members": 2},
    names.FREE_ATTENTION: {"starts": 1},
    names.GRADIENTS: {"starts": 1, "documents": 20},
    names.FLOORS: {"documents": 200},
}


def entries(scale: str) -> dict[str, Any]:
    return load_study("topic", scale).theory


def checked(key: str, scale: str = "smoke", **changed: Any) -> pl.DataFrame:
    entry = entries(scale)[key].model_copy(update=changed)
    checks: pl.DataFrame = MODULES[key].check(entry, key, 0)
    return checks


def experiment(scale: str) -> Any:
    entry = load_study("topic", scale).experiments["topic-landscapes"]
    return Context("topic", "topic-landscapes", entry, None, scale, 0, "0" * 32)


def test_every_theory_entry_has_its_module() -> None:
    assert {key: MODULES[key].__name__.rsplit(".", 1)[-1] for key in MODULES} == {
        key: entry.module for key, entry in entries("smoke").items()
    }


@pytest.mark.parametrize("key", MODULES)
def test_every_check_holds(unspoilt: Checked, key: str) -> None:
    checks = unspoilt(key)
    assert checks.filter(~checks["passed"])["check"].to_list() == []


PLACES: list[tuple[str, tuple[Any, str], int | None]] = [
    (names.MASKING, (language, "masked_law"), None),
    (names.OPTIMAL_SET, (stage_one, "excess"), None),
    (names.VANISHING, (stage_one, "ridge"), None),
    (names.VANISHING, (stage_one, "minimum_norm"), None),
    (names.VANISHING, (stage_one, "descend"), None),
    (names.OPTIMAL_ATTENTION, (stage_two, "enumerated"), None),
    (names.OPTIMAL_ATTENTION, (stage_two, "block_loss"), None),
    (names.FREE_ATTENTION, (stage_two, "free_minimum"), None),
    (names.FREE_ATTENTION, (stage_two, "family_minimum"), 1),
    (names.OPTIMAL_EMBEDDINGS, (stage_one, "fit_embeddings"), None),
    (names.GRADIENTS, (gradients, "_loss"), None),
    (names.FLOORS, (floors, "entropy"), None),
    (names.FLOORS, (floors, "all_positions"), None),
    (names.MISPRINTS, (stage_two, "family"), None),
]


@pytest.mark.parametrize(("key", "place", "parts"), PLACES, ids=[f"{key}-{p[1]}" for key, p, _ in PLACES])
def test_no_row_holds_that_read_an_output_which_is_none(
    unspoilt: Checked, key: str, place: tuple[Any, str], parts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of two sizes the smaller: the larger has the same rows, and one more of the same numbers; it takes half a minute.
    less = {"sizes": [[6, 3, 3]]} if key == names.VANISHING else {}
    before = checked(key, **less) if less else unspoilt(key)
    assert_no_row_holds(monkeypatch, before, lambda: checked(key, **less), place, 0.7, parts=parts)


# Exact values


def test_defaults_of_the_chapter() -> None:
    """Chapter 5.3, T = v = 10."""
    known = Population(10, 10, 2, USUAL)
    assert np.round(known.constants[:3], 8).tolist() == [0.00144509, 7.33333333, 1.15606936]
    W = known.block_VxV
    assert [round(float(W[at]), 10) for at in ((1, 0), (1, 100), (1, 2))] == [0.0541907514, -0.0075867052, 0.1080202312]
    assert round(float(np.linalg.norm(W)), 4) == 3.5327 and (W[0] == 0).all()


@pytest.mark.parametrize(
    ("tau", "gammas", "band"),
    [
        (20, (53.3, 60.2), (35.7, 87.5)),
        (40, (66.3, 75.1), (48.6, 92.9)),
        (60, (72.1, 81.7), (55.0, 95.0)),
        (80, (75.3, 85.3), (58.8, 96.1)),
    ],
)
def test_optima_of_the_figures(tau: int, gammas: tuple[float, float], band: tuple[float, float]) -> None:
    """Chapter 4.7: optimal gamma, and the gamma of the lowest hundredth of a landscape's range."""
    known = Population(100, 300, tau, USUAL)
    optima = [stage_two.exact_optimum(known, "block", variant) for variant in stage_two.VARIANTS]
    assert [float(each.gamma) for each in optima] == pytest.approx(gammas, abs=0.06)
    grid = 10 ** np.linspace(-4, 7, 111)
    most = stage_two.block_loss(known, grid[:, None], grid, "paper").max()
    level = float(optima[0].loss) + 0.01 * (most - float(optima[0].loss))
    fine = np.linspace(20, 200, 20001)
    low = fine[stage_two.block_loss(known, fine, fine, "paper") <= level]
    assert (low.min(), low.max()) == pytest.approx(band, abs=0.06)


def test_bounds_of_the_theorems() -> None:
    """Chapter 5.5, with the usual masking."""
    block = stage_two.interval(Population(100, 300, 2, USUAL), "block")
    assert np.round([block.printed, block.proof, block.high / 100], 5).tolist() == [0.57734, 0.37133, 5866.66667]
    diagonal = stage_two.interval(Population(1, 300, 1, USUAL), "diag")
    assert [round(diagonal.printed, 3), round(diagonal.high, 3), round(diagonal.ratio, 7)] == [2.64, 986.866, 0.0038665]


def test_losses_by_going_through_everything() -> None:
    """The exact sums against loops over documents, labels, shown words and keys of three topics of two words."""
    known = Population(3, 2, 2, USUAL)
    alpha, beta, words = 2.5, 6.0, range(1, 7)
    c1, _, c3, _ = known.constants
    total = {"block": 0.0, "diag": 0.0}
    for topics in itertools.combinations(range(3), 2):
        share = [0.12] + [0.865 * ((w - 1) // 2 in topics) / 4 + 0.015 / 6 for w in words]
        for label in words:
            if (label - 1) // 2 not in topics:
                continue
            for shown in words:
                weights = [1.0] + [
                    beta if key == shown else alpha if (key - 1) // 2 == (shown - 1) // 2 else 1.0 for key in words
                ]
                z = sum(weight * part for weight, part in zip(weights, share, strict=True))
                y = [weight * part / z for weight, part in zip(weights, share, strict=True)]
                chance = (0.1 * (shown == label) + 0.1 / 6) / (3 * 4)
                for kind in total:
                    output = [
                        c3 * (y[w] if kind == "diag" else (y[2 * ((w - 1) // 2) + 1] + y[2 * ((w - 1) // 2) + 2]) / 2)
                        - c1 * y[0]
                        for w in words
                    ]
                    total[kind] += chance * sum((output[w - 1] - (w == label)) ** 2 for w in words)
    assert stage_two.block_loss(known, alpha, beta, "consistent") == pytest.approx(total["block"], abs=1e-14)
    assert stage_two.diagonal_loss(known, alpha, beta, "consistent") == pytest.approx(total["diag"], abs=1e-14)


def test_floors_of_the_chapter() -> None:
    assert round(floors.entropy(10, 0.1), 5) == 0.84654
    assert round(floors._expected(10, 10, 0.1, 0.1, 0.1), 4) == 2.8960
    assert floors.against_share(10, 0.1, lambda share: share) == pytest.approx(0.1, abs=1e-9)
    assert floors.against_share(10, 0.1, lambda share: share**2) == pytest.approx(0.055, abs=1e-9)


# Properties


@st.composite
def populations(draw: st.DrawFn) -> Population:
    topics = draw(st.integers(2, 5))
    shares = draw(st.floats(0.02, 0.6)), draw(st.floats(0.02, 0.45)), draw(st.floats(0.02, 0.45))
    return Population(topics, draw(st.integers(2, 4)), draw(st.integers(1, topics - 1)), Masking(*shares))


@given(populations(), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_optimal_set(known: Population, seed: int) -> None:
    rng = np.random.default_rng(seed)
    V = known.words + 1
    W = stage_one.member(known, rng.normal(size=V), rng.normal(size=(V, V)))
    assert stage_one.excess(known, W) < 1e-20
    assert max(stage_one.violations(known, W)[1].values()) < 1e-10
    for own in (known.block_VxV, known.diagonal_VxV):
        assert max(stage_one.violations(known, own)[1].values()) < 1e-10
    assert np.abs(known.block_VxV - stage_one.minimum_norm(known)).max() < 1e-9
    assert np.linalg.norm(known.block_VxV) <= np.linalg.norm(W) + 1e-12
    W[int(rng.integers(V)), 1 + int(rng.integers(V - 1))] += 0.1
    assert stage_one.excess(known, W) > 1e-9
    assert max(stage_one.violations(known, W)[1].values()) > 1e-3


@given(populations(), st.floats(0.01, 100), st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_exact_sums_are_enumerations(known: Population, alpha: float, beta: float) -> None:
    weights = stage_two.family(known, alpha, beta)
    block = stage_two.block_loss(known, alpha, beta, "consistent", known.constants.u)
    assert block == pytest.approx(stage_two.enumerated(known, known.block_VxV, weights), abs=1e-13)
    diagonal = stage_two.diagonal_loss(known, alpha, beta, "consistent")
    assert diagonal == pytest.approx(stage_two.enumerated(known, known.diagonal_VxV, weights), abs=1e-13)
    gamma = stage_two.gamma(known, alpha, beta)
    for variant in stage_two.VARIANTS:
        same = stage_two.block_loss(known, gamma, gamma, variant)
        assert stage_two.block_loss(known, alpha, beta, variant) == pytest.approx(same, abs=1e-13)


@given(st.integers(10, 10**6), st.integers(10, 400), st.floats(0.05, 0.3), st.sampled_from(stage_two.VARIANTS))
@settings(max_examples=20, deadline=None)
def test_two_ways_to_an_optimum(topics: int, v: int, tau: float, variant: str) -> None:
    known = Population(topics, v, max(2, int(tau * topics)), USUAL)
    for kind in stage_two.KINDS:
        one, two = (stage_two.numeric_optimum(known, kind, variant), stage_two.exact_optimum(known, kind, variant))
        assert float(one.gamma) == pytest.approx(float(two.gamma), rel=1e-3)
        assert float(one.loss) == pytest.approx(float(two.loss), abs=1e-12)
    quartic = stage_two.stationarity(known, variant)
    gamma = Fraction(two.gamma) if kind == "block" else stage_two.exact_optimum(known, "block", variant).gamma
    assert quartic(gamma * Fraction(999, 1000)) < 0 < quartic(gamma * Fraction(1001, 1000))


# Landscapes


def test_rectangles_cover_the_grid_with_the_class_of_every_point() -> None:
    axis = 10 ** np.linspace(-2, 2, 21)
    loss = np.log10(axis[:, None]) ** 2 + np.abs(np.log10(axis))
    rectangles = figures.rectangles(loss, axis)
    width, height = (
        np.log10(rectangles[f"{side}2"].to_numpy() / rectangles[side].to_numpy()) for side in ("alpha", "beta")
    )
    assert (width * height).sum() == pytest.approx(16) and rectangles.height < loss.size
    step = (loss.max() - loss.min()) / figures.CLASSES
    for (i, j), value in np.ndenumerate(loss):
        at = rectangles.filter(
            pl.col("alpha") <= axis[i] * 1.001,
            pl.col("alpha2") >= axis[i] * 0.999,
            pl.col("beta") <= axis[j] * 1.001,
            pl.col("beta2") >= axis[j] * 0.999,
        )
        assert (np.abs(at["loss"].to_numpy() - value) < step * 0.501).any()


def test_contours_are_closed_lines_at_their_level() -> None:
    axis = 10 ** np.linspace(-2, 2, 41)
    t = np.log10(axis)
    contour = figures.contour(t[:, None] ** 2 + t**2, axis, 1.0)
    radius = np.hypot(np.log10(contour["alpha"].to_numpy()), np.log10(contour["beta"].to_numpy()))
    assert np.abs(radius - 1).max() < 0.01 and contour["line"].n_unique() == 1
    assert contour.row(0)[2:] == contour.row(-1)[2:] and contour.height > 40
    steps = np.diff(np.log10(contour.select("alpha", "beta").to_numpy()), axis=0)
    assert np.hypot(*steps.T).max() < 0.1
    two = figures.contour(np.abs(t[:, None]) + 0 * t, axis, 0.5)  # a band, from edge to edge
    assert two["line"].n_unique() == 2 and np.abs(np.abs(np.log10(two["alpha"].to_numpy())) - 0.5).max() < 0.02


def test_tables_of_landscapes() -> None:
    made = landscapes.analyse(experiment("smoke"))
    grid, optima = made["landscape"], made["stage2_opt"]
    assert grid.height == 23**2 * 8 and optima.height == 8
    one = grid.filter(tau=20, kind="block", variant="paper").filter(
        pl.col("alpha").is_close(100), pl.col("beta").is_close(100)
    )
    assert one["loss"].item() == pytest.approx(0.19970956, abs=6e-9)
    assert optima["inside"].all() and optima.filter(kind="block")["gamma_gap"].max() < 1e-12  # type: ignore[operator]


# Gates


def told(rows: pl.DataFrame, table: pl.DataFrame, scale: str = "quick") -> dict[str, Gate]:
    context: Any = SimpleNamespace(theory=lambda: rows, table=lambda name: table, scale=scale)
    return {f"{gate.claim}, {gate.gate}": gate for gate in claims.gates(context)}


@pytest.fixture(scope="module")
def at_quick() -> tuple[pl.DataFrame, pl.DataFrame]:
    fewer = LESS | {names.OPTIMAL_ATTENTION: {"settings": entries("smoke")[names.OPTIMAL_ATTENTION].settings}}
    rows = pl.concat(checked(key, "quick", **fewer.get(key, {})) for key in MODULES)
    return rows, landscapes.analyse(experiment("quick"))["stage2_opt"]


def test_a_check_that_fails_lets_its_gate_fall_alone(at_quick: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    rows, table = at_quick
    gates = told(rows, table)
    failed = {name: gate.verdict("quick")[1] for name, gate in gates.items() if gate.verdict("quick")[0] != HOLDS}
    assert failed == {}
    assert {gate.claim for gate in gates.values()} == {"1", "2", "3", "4", "5", "6", "7", "27"}
    for check, claim, part in rows.unique(["claim", "part"]).select("check", "claim", "part").iter_rows():
        spoilt = rows.with_columns(passed=pl.col("passed") & (pl.col("check") != check))
        fallen = {name for name, gate in told(spoilt, table).items() if gate.verdict("quick")[0] == FAILS}
        assert fallen == {f"{claim}, {part}"}, check


@pytest.mark.parametrize(
    ("part", "message"),
    [("other", "belong to a part 'other', which no gate"), ("slips", "belongs to the part 'Assumption")],
)
def test_a_check_of_no_gate_and_a_gate_without_checks_are_refused(
    at_quick: tuple[pl.DataFrame, pl.DataFrame], part: str, message: str
) -> None:
    rows, table = at_quick
    moved = rows.with_columns(part=pl.when(pl.col("check") == "assumption.v").then(pl.lit(part)).otherwise("part"))
    with pytest.raises(SandglassError, match=message):
        told(moved, table)


def test_gates_fall_with_each_of_their_rows(at_quick: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    rows, table = at_quick
    none = rows.with_columns(measured=pl.lit(NAN), passed=pl.lit(False))
    fallen = {name for name, gate in told(none, table).items() if gate.verdict("quick")[0] == FAILS}
    kept = {name for name in told(rows, table) if "Figures" in name or name.startswith(("4, γ", "6,"))}
    assert fallen == set(told(rows, table)) - kept
    read = {
        "gamma_star": 4,
        "ratio_high": 1,
        "beta_low": 4,
        "gamma_gap": 1,
        "alpha_low": 1,
        "alpha_high": 1,
        "beta_high": 1,
        "gamma_low": 2,
        "gamma_high": 1,
    }
    for column, gates in read.items():
        for value in (NAN, None):
            first = pl.int_range(pl.len()).over("kind") == 1
            spoilt = table.with_columns(pl.when(first).then(pl.lit(value, pl.Float64)).otherwise(column).alias(column))
            fallen = {name for name, gate in told(rows, spoilt).items() if gate.verdict("quick")[0] == FAILS}
            assert len(fallen) in range(1, gates + 1), (column, value, fallen)
    outside = table.with_columns(inside=~pl.col("inside"))
    assert sum(gate.verdict("quick")[0] == FAILS for gate in told(rows, outside).values()) == 2


def test_printed_forms_have_an_erratum_and_one_that_holds(at_quick: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    rows = at_quick[0].filter(pl.col("erratum") != "")
    assert {constructions.ERRATUM.format(name) for name in constructions.SLIPS} == set(rows["erratum"])
    for form in ("printed", "corrected"):
        assert set(rows.filter(form=form)["erratum"]) == set(rows["erratum"])


def test_the_source_s_own_bounds_can_fail() -> None:
    """With half of the topics in a document and a heavy masking the printed lower end is too high (chapter 5.5)."""
    known = Population(100, 10, 80, Masking(0.45, 0.05, 0.05))
    optimum = stage_two.exact_optimum(known, "block", "paper")
    assert not stage_two.inside(known, "block", optimum, "printed")
    assert stage_two.inside(known, "block", optimum, "proof")
    off = optimum._replace(gamma=math.nan)
    assert not stage_two.inside(known, "block", off, "proof")
