"""The three descents on the page of the NCE study go where Python's go."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from chromium import Browser

from pipeline.languages.exponential_families import mean_optimum
from pipeline.studies.nce.analysis import steps
from pipeline.studies.nce.exact import exponential_family as log_ratio
from schemas.nce.tables import CONSERVATIVE, FIXED, STANDARD

pytestmark = pytest.mark.study("nce")

PAGE = "study/nce.html"
SIZES = {"gd": STANDARD, "ngd": FIXED, "newton": CONSERVATIVE}


def choose(browser: Browser, loss: str, mean: float, power: float = 0.0) -> None:
    """Start again with these settings; step sizes are 10^power times those of the theorems."""
    for name, value in (("R", mean), ("factor", power)):
        browser.js(
            "const field = document.getElementById(`descent-${arguments[0]}`); field.value = arguments[1];"
            "field.dispatchEvent(new Event('input'));",
            name,
            value,
        )
    browser.js(
        "const field = document.getElementById('descent-loss'); field.value = arguments[0];"
        "field.dispatchEvent(new Event('change'));",
        loss,
    )


def press(browser: Browser, button: str, times: int = 1) -> dict[str, Any]:
    """What the page says after a button was pressed so many times."""
    code = f"for (let i = 0; i < {times}; i++) document.getElementById('descent-{button}').click();"
    return json.loads(browser.js(f"{code} return document.getElementById('descent-output').dataset.state"))


def said(browser: Browser) -> str:
    return str(browser.js("return document.getElementById('descent-said').textContent"))


@pytest.mark.parametrize(
    ("loss", "mean", "power"), [("nce", 0.5, 0.0), ("nce", 4.0, 0.0), ("nce", 8.0, 1.0), ("ence", 3.0, 0.25)]
)
def test_the_page_descends_as_python_does(browser: Browser, loss: str, mean: float, power: float) -> None:
    problem, optimum = log_ratio.mean_problem(loss, mean), mean_optimum(mean)
    steepest, flattest, kappa = (float(each[0]) for each in log_ratio.curvature(loss, np.array([mean])))
    sizes = {key: 10**power * float(steps.step_sizes(loss, rule, np.array([mean]))[0]) for key, rule in SIZES.items()}
    at = dict.fromkeys(SIZES, 0 * optimum)
    browser.open(PAGE)
    choose(browser, loss, mean, power)
    t = 0
    for more in (1, 1, 62):
        for _ in range(more):
            at = {key: log_ratio.RULES[key](problem, at[key], np.array(size)) for key, size in sizes.items()}
        t, found = t + more, press(browser, "step", more)
        assert (found["t"], found["R"], found["loss"]) == (t, mean, loss)
        assert [found[name] for name in ("steepest", "flattest", "kappa")] == pytest.approx(
            [steepest, flattest, kappa], rel=1e-7
        )
        assert found["least"] == pytest.approx(problem.loss(optimum).item(), rel=1e-9)
        for key, delta in at.items():
            one = found["ways"][key]
            assert one["size"] == pytest.approx(sizes[key], rel=1e-7)
            assert one["delta"] == pytest.approx(delta.ravel().tolist(), rel=1e-6, abs=1e-9), (key, t)
            assert one["loss"] == pytest.approx(problem.loss(delta).item(), rel=1e-6)
            assert one["gradient"] == pytest.approx(problem.gradient(delta).ravel().tolist(), rel=1e-5, abs=1e-12)
            assert one["distance"] == pytest.approx(float(np.linalg.norm(delta - optimum)), rel=1e-6)
            assert one["nearest"] <= one["distance"]
    assert browser.console() == []


@pytest.mark.parametrize("loss", ["nce", "ence"])
def test_steps_to_the_inner_ring_are_those_of_the_tables(browser: Browser, loss: str) -> None:
    mean = 3.0
    browser.open(PAGE)
    choose(browser, loss, mean)
    found = press(browser, "double", 10)  # 1, 2, 4, .. steps
    assert found["t"] == 512
    problem, optimum = log_ratio.mean_problem(loss, mean), mean_optimum(mean)
    for key, rule in SIZES.items():
        size = steps.step_sizes(loss, rule, np.array([mean]))
        paths = log_ratio.descend(
            problem, log_ratio.RULES[key], 0 * optimum, optimum, size, np.array([[0.1 * mean]]), np.array([512])
        )
        assert (found["ways"][key]["reached"] or -1) == paths.steps.item(), key
    # The chapter's number for GD.
    assert loss != "nce" or found["ways"]["gd"]["reached"] == 452
    assert "Within 0.1 R of the optimum (inner ring): NGD after " in said(browser)


def test_a_descent_that_leaves_the_numbers_is_named_and_the_others_go_on(browser: Browser) -> None:
    browser.open(PAGE)
    choose(browser, "ence", 6.0, 2.0)
    before, after = press(browser, "step", 3), press(browser, "step", 5)
    assert before["ways"]["gd"]["lost"] == after["ways"]["gd"]["lost"] == 2
    assert before["ways"]["gd"]["delta"] == after["ways"]["gd"]["delta"]
    assert before["ways"]["ngd"]["delta"] != after["ways"]["ngd"]["delta"]
    assert "GD left the range of numbers in step 2." in said(browser) and "None has come within" in said(browser)
    again = press(browser, "again")
    assert again["t"] == 0 and again["ways"]["gd"]["lost"] is None
    assert browser.console() == []
