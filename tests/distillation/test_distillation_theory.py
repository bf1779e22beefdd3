"""The theory of sparse parity: closed forms by enumeration, checks that hold, and gates that fall with what they
read.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from distillation_tables import context
from hypothesis import given, settings
from hypothesis import strategies as st
from spoiling import Checked, assert_no_row_holds

from pipeline.errors import SandglassError
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation import constructions, names
from pipeline.studies.distillation.analysis import two_stages as analysis
from pipeline.studies.distillation.claims import trees
from pipeline.studies.distillation.claims import two_stages as claims
from pipeline.studies.distillation.exact import relu
from pipeline.studies.distillation.theory import complexity, definitions, majority, stages
from schemas.claims import FAILS, HOLDS

NAN = float("nan")
MODULES: dict[str, Any] = {"majority": majority, "stages": stages, "complexity": complexity, "definitions": definitions}
SMALL: dict[str, dict[str, Any]] = {
    "majority": {"coordinates": [7, 9], "pairs": 31, "most": 101, "draws": 4},
    "stages": {
        "d": 11,
        "k": 4,
        "m": 64,
        "widths": [64, 256],
        "wide": 1024,
        "wide_second": 64,
        "batches": [256, 1024, 4096],
        "replicas": 4,
        "steps": 400,
        "rate": 0.1,
    },
    "complexity": {
        "k": 4,
        "coordinates": [11, 21, 41],
        "small": 9,
        "m_student": 64,
        "m_teacher": 256,
        "replicas": 4,
        "half": 0.5,
    },
    "definitions": {"depths": [1, 2, 3], "longest": 12, "levels": 7, "draws": 5},
}


def checked(module: str) -> pl.DataFrame:
    entry = SimpleNamespace(study="distillation", **SMALL[module])
    checks: pl.DataFrame = MODULES[module].check(entry, f"distillation-{module}", 0)
    return checks


@pytest.fixture(scope="module")
def rows(unspoilt: Checked) -> pl.DataFrame:
    return pl.concat(unspoilt(module) for module in MODULES)


# --- closed forms, by enumeration ------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_fourier_is_the_mean_against_every_parity(d: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=1 << d)
    x = relu.cube(d)
    sets = [[j for j in range(d) if n >> j & 1] for n in range(1 << d)]
    direct = [float((values * x[:, each].prod(1)).mean()) for each in sets]
    assert relu.fourier(values) == pytest.approx(direct, abs=1e-12)
    assert relu.degrees(d).tolist() == [len(each) for each in sets]


@pytest.mark.parametrize(
    ("d", "i", "value"), [(3, 1, 1 / 2), (5, 1, 3 / 8), (5, 3, -1 / 8), (5, 5, 3 / 8), (15, 3, -0.0161)]
)
def test_coefficients_of_the_majority(d: int, i: int, value: float) -> None:
    assert relu.majority_coefficient(d, i) == pytest.approx(value, abs=5e-5)
    assert (relu.fourier(relu.majority(relu.cube(d)))[(1 << i) - 1]) == pytest.approx(relu.majority_coefficient(d, i))


@given(
    st.sampled_from([7, 9, 11]), st.sampled_from([2, 4, 6]), st.integers(0, 10**6), st.sampled_from(["aligned", "iid"])
)
@settings(max_examples=20, deadline=None)
def test_stage_one_in_closed_form(d: int, k: int, seed: int, mode: relu.Mode) -> None:
    """The gradient, the weights after the step, and correlations of the network that they make, against all inputs."""
    if k >= (d + 1) / 2:
        return  # there the two coefficients are as large as each other, or the wrong one is
    x = relu.cube(d)
    start = relu.initial(np.random.default_rng(seed), d, k, 8, mode)
    assert np.abs(start(x)).max() == 0
    gradient = relu.gradient(start.w, start.b, x, relu.parity(x, k))
    assert np.abs(gradient - relu.population_gradient(start.w, k)).max() < 1e-12
    rate = relu.first_rate(d, k, 8)
    taught = relu.first_stage(start)
    assert np.abs(relu.stepped(start, gradient, rate, 1 / (2 * rate)).w - taught.w).max() < 1e-12
    f = taught(x)
    assert np.abs(f @ x / len(x) - relu.correlations(taught)).max() < 1e-12
    assert np.abs(f + taught(-x)).max() < 1e-12


def test_the_printed_start_gives_the_spread_that_the_closed_form_says() -> None:
    rng = np.random.default_rng(0)
    correlations = np.abs(relu.correlations(relu.first_stage(relu.initial(rng, 13, 4, 256, "iid", (1000,)))))
    assert (correlations[:, :4].mean(), correlations[:, 4:].mean()) == pytest.approx(relu.spread(13, 4, 256), rel=0.05)


def test_starts_that_the_theory_has_not_are_refused() -> None:
    for d, k, m in ((12, 4, 8), (13, 3, 8), (13, 4, 7), (5, 6, 8)):
        with pytest.raises(SandglassError, match="expected odd d, even k below d, and even m"):
            relu.initial(np.random.default_rng(0), d, k, m, "iid")
    with pytest.raises(SandglassError, match="draw some instead"):
        relu.cube(40)


def test_gradients_of_batches_are_those_of_their_inputs() -> None:
    """Nested batches; and with all inputs as often as in a large batch, the population's gradient."""
    start = relu.initial(np.random.default_rng(0), 9, 4, 16, "iid")
    teacher = relu.first_stage(relu.initial(np.random.default_rng(1), 9, 4, 32, "aligned"))
    for target in (None, teacher):
        few, many = relu.batch_gradients(np.random.default_rng(2), start.w, start.b, [64, 1 << 17], 4, target)
        x = relu.drawn(np.random.default_rng(2), 64, 9).astype(float)
        direct = relu.gradient(start.w, start.b, x, relu.parity(x, 4) if target is None else target(x))
        assert np.abs(few - direct).max() < 1e-6
        cube = relu.cube(9)
        known = relu.gradient(start.w, start.b, cube, relu.parity(cube, 4) if target is None else target(cube))
        assert np.abs(many - known).max() < 5 * np.sqrt(0.5 / (1 << 17)) * (1 if target is None else 0.3)


def test_recovery_counts_the_largest_entries() -> None:
    gradient = np.array([[3.0, -2.0, 1.0, 0.5], [3.0, 0.1, -1.0, 0.5], [1.0, 1.0, 1.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    recovery = relu.recovery(gradient, 2)
    assert (recovery.neurons, recovery.precision, recovery.together) == (0.25, 0.5, True)
    each = [relu.recovery(row[None], 2) for row in gradient]
    assert [(one.neurons, one.precision) for one in each] == [(1.0, 1.0), (0.0, 0.5), (0.0, 0.5), (0.0, 0.0)]
    assert [one.together for one in each] == [True, False, False, False]
    broken = relu.recovery(np.full((2, 4), NAN), 2)
    assert (broken.neurons, broken.precision, broken.together) == (0.0, 0.0, False)


def test_the_prediction_is_what_noise_does() -> None:
    rng, inside, outside = np.random.default_rng(0), [0.3, -0.3, 0.2], [0.1, 0.0, 0.05, -0.1]
    noisy = np.abs(np.array([*inside, *outside]) + rng.normal(size=(200_000, 7)) * math.sqrt(0.5 / 100))
    share = (noisy[:, :3].min(1) > noisy[:, 3:].max(1)).mean()
    assert relu.predicted_share(inside, outside, 0.5, 100) == pytest.approx(share, abs=0.005)
    samples = relu.predicted_samples(inside, outside, 0.5, 0.9)
    assert relu.predicted_share(inside, outside, 0.5, samples) == pytest.approx(0.9, abs=1e-3)
    assert relu.predicted_samples([0.1], [0.2], 0.5, 0.9) == math.inf
    assert math.isnan(relu.predicted_samples([NAN], [0.2], 0.5, 0.9))


def test_stage_two_learns_and_keeps_its_best_step() -> None:
    rng = np.random.default_rng(0)
    taught = relu.first_stage(relu.initial(rng, 21, 2, 64, "iid", (3,)))
    curve = relu.second_stage(rng, taught, 2000, [0.1, 0.1, 0.0], 500, 512)
    assert curve.steps == [0, 500, 1000, 1500, 2000]
    assert (curve.hinge[:, :2].min(0) < 0.1).all() and (curve.accuracy[curve.best[:2], [0, 1]] > 0.98).all()
    assert (curve.hinge[:, 2] == curve.hinge[0, 2]).all() and (curve.a[2] == taught.a[2]).all()
    assert (curve.hinge.argmin(0) == curve.best).all()
    x = relu.drawn(rng, 4096, 21).astype(float)
    best = relu.Network(taught.w[0], taught.b[0], curve.a[0], 2)
    assert np.maximum(0, 1 - best(x) * relu.parity(x, 2)).mean() == pytest.approx(curve.hinge[:, 0].min(), abs=0.05)


def test_where_shares_reach_a_bar() -> None:
    assert analysis.reached([10, 20], np.array([0.95, 1.0]), 0.9) == 10
    assert math.isnan(analysis.reached([10, 20], np.array([0.5, 0.8]), 0.9))
    assert math.isnan(analysis.reached([10, 20], np.array([NAN, 1.0]), 0.9))


def test_formulas_of_the_chapter() -> None:
    assert relu.most_steps(100, 6, 100, 0.1, 0.1) == pytest.approx(0.5 * 1192052400 * 0.1 * 0.01 / 100)
    assert relu.hoeffding(128, 13, 1 << 18, 0.1) == pytest.approx(0.0089, abs=5e-5)
    assert relu.second_rate(51, 4, 256, 40_000) == pytest.approx(4 * 8 / (51 * math.sqrt(256 * 39_999)))
    assert relu.one_shot_samples(10, 6, 1.0) == 100 and relu.one_shot_samples(10, 6, 4.0) == 10**5


# --- checks and gates --------------------------------------------------------------------------------


def test_every_check_holds(rows: pl.DataFrame) -> None:
    assert rows.filter(~pl.col("passed"))["check"].to_list() == []
    assert set(rows["theory"]) == set(names.SPARSE_PARITY)


PLACES: dict[str, list[tuple[Any, str]]] = {
    "majority": [(relu, "majority_coefficient"), (relu, "fourier"), (relu, "majority")],
    "stages": [
        (relu, "gradient"),
        (relu, "population_gradient"),
        (relu, "correlations"),
        (relu, "influences"),
        (relu.Network, "__call__"),
        (relu, "damping"),
        (relu, "parity"),
    ],
    "complexity": [(relu, "gradient"), (relu, "most_steps"), (relu, "first_samples"), (relu, "one_shot_samples")],
}


@pytest.mark.parametrize(("module", "place"), [(m, place) for m, places in PLACES.items() for place in places])
def test_no_row_holds_that_read_an_output_which_is_none(
    unspoilt: Checked, module: str, place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_no_row_holds(monkeypatch, unspoilt(module), lambda: checked(module), place, 0.3)


SIMULATED = pl.DataFrame({"value": [90.0, 130.0], "predicted": [100.0, 100.0]})


def told(theory: pl.DataFrame) -> dict[str, Gate]:
    """Return the gates that judge theory checks; those on comparisons are not run."""
    known = context({}, "quick", theory, support_recovery=SIMULATED)
    own = (gate for gate in claims.gates(known) if gate.claim in ("3", "32"))
    return {f"{gate.claim}, {gate.gate}": gate for gate in own}


def classes(theory: pl.DataFrame) -> Gate:
    """Return the gate of claim 19 that judges the rule of the tree."""
    (gate,) = (each for each in trees.gates(context({}, "quick", theory)) if each.gate == "classes")
    return gate


def test_gates_fall_with_what_they_read(rows: pl.DataFrame) -> None:
    good = told(rows)
    assert {name: gate.verdict("quick") for name, gate in good.items() if gate.verdict("quick")[0] != HOLDS} == {}
    for value in (NAN, None):
        none = told(rows.with_columns(measured=pl.lit(value, pl.Float64), passed=pl.lit(False)))
        assert {gate.verdict("quick")[0] for gate in none.values()} == {FAILS}


def test_every_row_is_in_one_gate(rows: pl.DataFrame) -> None:
    """One check that is none lets exactly one gate fall, whichever it is: none is forgotten or counted twice."""
    for name in rows["check"]:
        spoilt = rows.with_columns(
            measured=pl.when(pl.col("check") == name).then(NAN).otherwise("measured"),
            passed=pl.col("passed") & (pl.col("check") != name),
        )
        gates = (*told(spoilt).values(), classes(spoilt))
        fallen = [f"{gate.claim}, {gate.gate}" for gate in gates if gate.verdict("quick")[0] == FAILS]
        assert len(fallen) == 1, (name, fallen)


@pytest.mark.parametrize("ratios", [(40.0, 130.0), (90.0, 210.0), (NAN, 100.0)])
def test_samples_are_to_be_near_what_is_predicted(rows: pl.DataFrame, ratios: tuple[float, float]) -> None:
    simulated = SIMULATED.with_columns(value=pl.Series(ratios))
    gates = claims.gates(context({}, "quick", rows, support_recovery=simulated))
    verdicts = [gate.verdict("quick")[0] for gate in gates if gate.gate.startswith("prediction")]
    assert FAILS in verdicts and len(verdicts) == 2


def test_printed_forms_have_an_erratum_and_one_that_holds(rows: pl.DataFrame) -> None:
    shown = rows.filter(pl.col("erratum") != "")
    errata = {constructions.ERRATUM.format(name) for name in (*constructions.SLIPS, "grid")}
    assert errata == set(shown["erratum"])
    for form in ("printed", "corrected"):
        assert set(shown.filter(form=form)["erratum"]) == set(shown["erratum"])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_rule_of_the_tree(depth: int) -> None:
    assert (definitions.leaves(depth, "corrected") == 1).all()
    assert (definitions.leaves(depth, "printed") == 1).all() == (depth == 1)
