"""The twins on the page of the self-supervision study are turned as Python turns them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from chromium import Browser
from workspace import Workspace

from pipeline.languages import hmm
from pipeline.studies.selfsup.measures import models
from pipeline.studies.selfsup.measures.detection import Ratio

pytestmark = pytest.mark.study("selfsup")

PAGE = "study/selfsup.html"
TABLE = "data/tables/selfsup/selfsup-hmm-identity/hmm_explorer.parquet"
TASKS = {"x2 | x1": "x2|x1", "x1 | x2": "x1|x2", "x3 | x1": "x3|x1", "x1 | x3": "x1|x3"}
CASES = {"x2, x3 | x1": 1, "x1, x3 | x2": 2, "x1, x2 | x3": 3}


def asked(browser: Browser, name: str, angle: str) -> dict[str, Any]:
    """What the page answers."""
    browser.js(
        "const pick = document.getElementById('twins-model'); pick.value = arguments[0];"
        "pick.dispatchEvent(new Event('change'));"
        "const input = document.getElementById('twins-angle'); input.value = arguments[1];"
        "input.dispatchEvent(new Event('input'));",
        name,
        angle,
    )
    output = "document.getElementById('twins-output')"
    answers = browser.js(f"return {output}.dataset.answers ?? null")
    return {"text": browser.js(f"return {output}.textContent"), "answers": answers and json.loads(answers)}


def test_the_page_turns_models_as_python_does(browser: Browser, smoke: Workspace) -> None:
    known = models.read(pl.read_parquet(smoke.path / TABLE))
    browser.open(PAGE)
    browser.wait("return document.querySelector('#twins-output table')", "the twins")
    assert len(known) >= 2
    for name, (emission, transition) in known.items():
        hmm.check(emission, transition, full_rank=True)
        widest = hmm.widest_turn(emission, transition, cap=2 * np.pi / 3)
        for degrees in (0.5, round(0.8 * float(np.degrees(widest)), 2), 100.0):
            found = asked(browser, name, f"{degrees:g}")["answers"]
            other = hmm.twin(emission, transition, hmm.rotation(np.radians(degrees)))
            assert np.allclose(found["O"], other[0], atol=1e-14) and np.allclose(found["T"], other[1], atol=1e-14)
            assert found["least"] == pytest.approx(min(part.min() for part in other), abs=1e-14)
            assert found["widest"] == pytest.approx(np.degrees(widest), abs=1e-4)
            for shown, task in TASKS.items():
                assert found["pairs"][shown] < 1e-14, task
            for shown, case in CASES.items():
                apart = np.abs(
                    hmm.triple_predictor(emission, transition, case) - hmm.triple_predictor(*other, case)
                ).max()
                assert found["triples"][shown] == pytest.approx(apart, abs=1e-14)
            if found["least"] > 0:
                test = Ratio(hmm.joint(emission, transition), hmm.joint(*other), 0.05)
                assert found["needed"] == pytest.approx(test.needed(0.9), rel=1e-6)
    assert browser.console() == []


def test_the_slider_and_the_field_say_one_angle(browser: Browser, smoke: Workspace) -> None:
    name = next(iter(models.read(pl.read_parquet(smoke.path / TABLE))))
    browser.open(PAGE)
    asked(browser, name, "12.5")
    assert browser.js("return document.getElementById('twins-slider').value") == "12.5"
    browser.js(
        "const slider = document.getElementById('twins-slider'); slider.value = 30;"
        "slider.dispatchEvent(new Event('input'));"
    )
    assert browser.js("return document.getElementById('twins-angle').value") == "30"
    answers = json.loads(browser.js("return document.getElementById('twins-output').dataset.answers"))
    assert answers["degrees"] == 30


def test_what_is_no_angle_is_one_line(browser: Browser, smoke: Workspace) -> None:
    name = next(iter(models.read(pl.read_parquet(smoke.path / TABLE))))
    browser.open(PAGE)
    assert asked(browser, name, "much")["text"] == "“much” is no angle: expected a number from 0 to 120."
    assert asked(browser, name, "121")["text"] == "“121” is no angle: expected a number from 0 to 120."
    for name, model in models.read(pl.read_parquet(smoke.path / TABLE)).items():
        widest = np.degrees(hmm.widest_turn(*model, cap=2 * np.pi / 3))
        if widest < 119:
            text = asked(browser, name, f"{widest + 0.5:.2f}")["text"]
            assert "negative entry: it is no HMM" in text and f"It is one up to {widest:.1f}°." in text
            break
    else:
        pytest.fail("no model of the page has a widest turn: the sentence was not tested")
    assert "is the model itself" in asked(browser, name, "120")["text"]
