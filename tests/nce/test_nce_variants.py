"""Grids of step sizes, further optimisers, guards of single samples, step sizes in general, laws of growth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special

from pipeline import params
from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce import constructions, datasets
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.measures import flow, rates, sampled
from pipeline.studies.nce.measures.edges import at_edge
from pipeline.studies.nce.theory import barrier, tricks
from schemas.nce.tables import ADAM, GD, MOMENTUM, NGD, PLAIN_R, R_SQUARED

ROOT = Path(__file__).parents[2]
SEED = 20231210


# --- grids ------------------------------------------------------------------------------------------------

TABLES = ROOT / "data/tables/nce"
SELECTIONS = {  # selected step sizes, all that were tried, and what a method is
    "gauss": ("nce-gaussians/gauss_selected", "nce-gaussians/gauss_final", ["dim", "loss", "optimizer", "n"]),
    "variants": (
        "nce-variants/gauss_variants_selected",
        "nce-variants/gauss_variants",
        ["dim", "loss", "optimizer", "limit", "clip", "n"],
    ),
    "images": ("nce-images/digits_selected", "nce-images/digits_final", ["dataset", "q_kind", "loss", "optimizer"]),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selected_step_size_lies_inside_its_grid_or_is_marked(name: str) -> None:
    selected, tried, method = SELECTIONS[name]
    files = [TABLES / f"{table}.parquet" for table in (selected, tried)]
    if not all(file.is_file() for file in files):
        pytest.skip("the study's tables are not here: dvc pull --allow-missing")
    chosen, runs = (pl.read_parquet(file) for file in files)
    assert chosen.height
    for row in chosen.iter_rows(named=True):
        etas = runs.filter(*(pl.col(key).eq_missing(row[key]) for key in method))["eta"].unique().to_list()
        assert row["at_edge"] == (row["eta"] in (min(etas), max(etas))), row


def test_the_grids_of_the_gaussians_hold_the_smallest_distances() -> None:
    """What is selected by the smallest distance, and on images by the area, is nowhere at the edge."""
    for name, rule in (("nce-gaussians/gauss_selected", "s_dist"), ("nce-images/digits_selected", "s_area")):
        file = TABLES / f"{name}.parquet"
        if not file.is_file():
            pytest.skip("the study's tables are not here: dvc pull --allow-missing")
        assert not pl.read_parquet(file).filter(rule=rule)["at_edge"].any()


def test_an_edge_is_the_least_or_largest_step_size_of_the_method_that_was_tried() -> None:
    tried = pl.DataFrame({"a": ["x", "x", "x", "y"], "eta": [0.1, 0.3, 1.0, 0.3]})
    chosen = pl.DataFrame({"a": ["x", "x", "x", "y"], "eta": [0.1, 0.3, 1.0, 0.3]})
    assert at_edge(chosen, tried, ["a"])["at_edge"].to_list() == [True, False, True, True]


# --- optimisers and guards ----------------------------------------------------------------------------------


def pairs(loaded: params.Params, dim: int, n: int = 50) -> sampled.Pairs:
    frame = datasets.generate(loaded.members("datasets")["nce-gauss"], "nce-gauss", SEED)[0]
    return sampled.Pairs(frame.filter(dim=dim), n, SEED)


@pytest.mark.parametrize("dim", [1, 16])
@pytest.mark.parametrize("loss", sampled.LOSSES)
def test_without_a_guard_the_gradient_is_that_of_the_loss(loaded: params.Params, dim: int, loss: str) -> None:
    problem = sampled.LOSSES[loss](*pairs(loaded, dim).sample(50))
    delta = 0.01 * np.random.default_rng(0).normal(size=(2, 3, problem.statistics_PxDxN.shape[1]))
    gradient = sampled.guarded_gradient(problem, delta, None, None)
    np.testing.assert_allclose(gradient, problem.gradient(delta), rtol=1e-9, atol=1e-12)
    same = sampled.guarded_gradient(problem, delta, 1e9, 1e9)
    np.testing.assert_allclose(same, gradient, rtol=1e-12, atol=1e-14)


def test_guards_are_those_of_the_theory_checks(loaded: params.Params) -> None:
    """Sample by sample, as `theory.tricks` executes NUM3 and NUM4 for NCE."""
    problem = log_ratio.Nce(*pairs(loaded, 1).sample(50))
    delta = np.array([[[2.0, 30.0]], [[-1.0, 3.0]]])
    limited = sampled.guarded_gradient(problem, delta, 0.5, None)
    clipped = sampled.guarded_gradient(problem, delta, None, 5.0)
    is_data = np.arange(100) < 50
    for p in range(2):
        statistics = problem.statistics_PxDxN[p]
        free = tricks.sample_gradients(statistics, is_data, delta[p, 0], None)
        np.testing.assert_allclose(limited[p, 0], tricks.limited(free, 0.5).sum(0) / 100, rtol=1e-9)
        cut = tricks.sample_gradients(statistics, is_data, delta[p, 0], 5.0)
        np.testing.assert_allclose(clipped[p, 0], cut.sum(0) / 100, rtol=1e-9, atol=1e-15)


def test_a_limit_keeps_an_overflowing_gradient_finite(loaded: params.Params) -> None:
    problem = log_ratio.Ence(*pairs(loaded, 1).sample(50))
    delta = np.array([[[-4000.0, 0.0]]] * 2)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isfinite(problem.gradient(delta)).all()
    assert (np.linalg.norm(sampled.guarded_gradient(problem, delta, 1.0, None), axis=-1) <= 1.0).all()


def test_momentum_and_adam_are_the_published_updates(loaded: params.Params) -> None:
    methods = [sampled.Method(name) for name in (GD, NGD, MOMENTUM, ADAM)]
    runs = sampled.walk(pairs(loaded, 1), [0.1], 2, 10, methods=methods, losses={"nce": log_ratio.Nce})
    dist = {name: runs.filter(optimizer=name, seed=0).sort("step")["dist"].to_numpy() for name in (GD, MOMENTUM, ADAM)}
    walked, optimum = pairs(loaded, 1), mean_optimum(16.0)[0, 0]
    first, second = (log_ratio.Nce(*walked.sample(50)) for _ in range(2))
    at = np.zeros((2, 1, 2))
    g0 = first.gradient(at)
    g1 = second.gradient(at - 0.1 * g0)
    moved = (-0.1 * g0 - 0.1 * (0.9 * g0 + g1))[0, 0]
    assert np.isclose(dist[MOMENTUM][2], np.linalg.norm(moved - optimum)) and dist[GD][1] == dist[MOMENTUM][1]
    once = -0.1 * g0[0, 0] / (np.abs(g0[0, 0]) + sampled.EPS)  # Adam's first step is a sign
    assert np.isclose(dist[ADAM][1], np.linalg.norm(once - optimum))


# --- step sizes in general, laws of growth --------------------------------------------------------------------


@pytest.mark.parametrize("mean", [4.0, 8.0])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
def test_no_step_shorter_than_the_smallest_leap_leaps(mean: float, share: float) -> None:
    """Lemma 50 as a property of tau and of the step size."""
    rng = np.random.default_rng(int(1000 * share))
    eta = share * barrier.leap(mean, 181, np.random.default_rng(0))
    optimum = mean_optimum(mean)[0]
    low, high = (-3 * mean, -(mean**2)), (3 * mean, 3 * mean**2)
    tau = rng.uniform(low, high, (4000, 2))
    tau = tau[np.linalg.norm(tau - optimum, axis=-1) >= barrier.OUTER * mean]
    after = log_ratio.gradient_step(log_ratio.mean_problem("nce", mean), tau[None], np.array(eta))[0]
    assert (np.linalg.norm(after - optimum, axis=-1) > barrier.LANDING * mean).all()


def test_a_leap_is_one(loaded: params.Params) -> None:
    step_size = barrier.leap(4.0, 181, np.random.default_rng(0))
    assert 0.5 < step_size < 2


@pytest.mark.parametrize(("loss", "optimizer"), [("nce", GD), ("nce", "newton"), ("ence", "newton")])
def test_the_modified_equation_counts_the_steps_that_are_walked(loss: str, optimizer: str) -> None:
    at_noise, at_optimum, _ = log_ratio.curvature(loss, np.array([3.0]))
    eta = float((1 if optimizer == GD else at_optimum[0]) / at_noise[0])
    walked = len(constructions.path(loss, 3.0, optimizer, eta, 0.3, 10_000)) - 1
    assert walked - 1 < flow.steps(loss, optimizer, 3.0, eta, 0.3) <= walked


def laws(power: float) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    r = np.arange(2, 7.1, 0.5)
    for against, x in ((PLAIN_R, r), (R_SQUARED, r**2)):
        yield against, r, 0.3 * x + power * np.log(r) + 1


@pytest.mark.parametrize("power", [0.0, 3.0, -2.0])
def test_growth_tells_the_laws_apart(power: float) -> None:
    rng = np.random.default_rng(0)
    for against, r, y in laws(power):
        fits: dict[str, Any] = {
            form: rates.growth(r, y + 0.01 * rng.normal(size=len(r)), form, True) for form in (PLAIN_R, R_SQUARED)
        }
        assert min(fits, key=lambda form: fits[form]["aicc"]) == against
        assert np.isclose(fits[against]["slope"], 0.3, atol=0.1)


def test_rows_of_identities_are_marked() -> None:
    assert constructions.row("lemma-52", "It is so", "", 1, "<=", 1)["statement"] == "Algebra: It is so"
    assert constructions.row("nce-lemma-51", "It is so", "", 1, "<=", 1)["statement"] == "It is so"


def test_the_slope_of_a_sample_is_the_derivative_of_its_loss(loaded: params.Params) -> None:
    problem = log_ratio.Nce(*pairs(loaded, 1).sample(50))
    psi = np.linspace(-5, 5, 100)[None, None].repeat(2, 0)
    slopes = sampled.sample_slopes(problem, psi)[0, 0]
    np.testing.assert_allclose(slopes[:50], -special.expit(-psi[0, 0, :50]), rtol=1e-12)
    np.testing.assert_allclose(slopes[50:], special.expit(psi[0, 0, 50:]), rtol=1e-12)
