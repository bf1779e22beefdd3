"""The clique on the page of the parallel study steps where Python's samplers step, and shows exact laws and times."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from chromium import Browser
from scipy import special

from pipeline.studies.parallel.exact import chains

pytestmark = pytest.mark.study("parallel")

PAGE = "study/parallel.html"
SETTINGS = [
    {"J": 3.0, "h": 5.0, "N": 10, "c": 4, "k": 5, "seed": 7},
    {"J": 1.0, "h": 0.5, "N": 6, "c": 6, "k": 3, "seed": 11},
    {"J": 0.4, "h": -0.2, "N": 8, "c": 3, "k": 8, "seed": 2},
]


def mulberry32(seed: int) -> Iterator[float]:
    """The page's random numbers."""
    mask = 0xFFFFFFFF
    while True:
        seed = (seed + 0x6D2B79F5) & mask
        t = ((seed ^ seed >> 15) * (seed | 1)) & mask
        t ^= (t + ((t ^ t >> 7) * (t | 61) & mask)) & mask
        yield ((t ^ t >> 14) & mask) / 2**32


def choose(browser: Browser, settings: dict[str, Any]) -> None:
    # The clique fits the spins, and the mask too: each in an order that the page accepts.
    for name in ("N", "c", "k", "J", "h", "seed"):
        browser.js(
            "const field = document.getElementById(`clique-${arguments[0]}`); field.value = arguments[1];"
            "field.dispatchEvent(new Event('change'));",
            name,
            settings[name],
        )


def press(browser: Browser, button: str, times: int = 1) -> dict[str, Any]:
    """What the page says after a button was pressed so many times."""
    code = f"for (let i = 0; i < {times}; i++) document.getElementById('clique-{button}').click();"
    return json.loads(browser.js(f"{code} return document.getElementById('clique-output').dataset.state"))


class Spins:
    """Both samplers on the page's random numbers."""

    def __init__(self, settings: dict[str, Any], draws: Iterator[float]) -> None:
        self.N, self.c, self.k = settings["N"], settings["c"], settings["k"]
        self.J, self.h, self.draws = settings["J"], settings["h"], draws
        self.spins: list[int] = []
        self.masked: list[int] = []
        self.begin()

    def begin(self) -> None:
        self.spins = [-1 if i < self.c else (1 if next(self.draws) < 0.5 else -1) for i in range(self.N)]

    @property
    def up(self) -> int:
        return sum(spin > 0 for spin in self.spins[: self.c])

    def gibbs(self) -> None:
        order = list(range(self.N))
        for i in range(self.k):
            j = i + math.floor(next(self.draws) * (self.N - i))
            order[i], order[j] = order[j], order[i]
        self.masked = sorted(order[: self.k])
        inside = [i for i in self.masked if i < self.c]
        base = sum(self.spins[i] > 0 for i in range(self.c) if i not in inside)
        m = len(inside)
        logs = chains.log_choose(m) + chains.clique_log_weights(self.c, self.J, self.h)[base : base + m + 1]
        b = int(min(m, (next(self.draws) >= np.cumsum(special.softmax(logs))).sum()))
        for at, i in enumerate(inside):
            plus = next(self.draws) * (m - at) < b
            self.spins[i] = 1 if plus else -1
            b -= plus
        for i in self.masked:
            if i >= self.c:
                self.spins[i] = 1 if next(self.draws) < special.expit(2 * self.h) else -1

    def independent(self) -> None:
        m = 2 * self.up - self.c
        chance = {1: special.expit(2 * (self.h + self.J * (m - 1))), -1: special.expit(2 * (self.h + self.J * (m + 1)))}
        outside = special.expit(2 * self.h)
        self.spins = [
            1 if next(self.draws) < (chance[spin] if i < self.c else outside) else -1
            for i, spin in enumerate(self.spins)
        ]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: f"J{each['J']}")
def test_the_page_steps_where_python_steps(browser: Browser, settings: dict[str, Any]) -> None:
    browser.open(PAGE)
    browser.wait("return document.querySelector('#clique-output table')", "the clique")
    choose(browser, settings)
    gibbs = Spins(settings, mulberry32(2 * settings["seed"]))
    other = Spins(settings, mulberry32(2 * settings["seed"] + 1))
    state = press(browser, "again")
    assert state["model"] == {name: settings[name] for name in ("N", "c", "k", "J", "h")}
    hits: dict[str, int | None] = {"gibbs": None, "independent": None}
    for t in range(1, 31):
        gibbs.gibbs()
        other.independent()
        for name, one in (("gibbs", gibbs), ("independent", other)):
            if hits[name] is None and one.up == settings["c"]:
                hits[name] = t
        state = press(browser, "step")
        assert state["gibbs"]["spins"] == gibbs.spins and state["gibbs"]["masked"] == gibbs.masked
        assert state["independent"]["spins"] == other.spins
    assert state["t"] == 30 and state["hits"] == hits
    # Further runs go on with the same numbers; the budget is that of the table.
    budget = int(
        browser.js("return JSON.parse(document.getElementById('clique-data').textContent).par_hit_exact[0].budget")
    )
    state = press(browser, "many")
    for name, one, step in (("gibbs", gibbs, gibbs.gibbs), ("independent", other, other.independent)):
        expected = []
        for _ in range(100):
            one.begin()
            taken = 0
            while taken < budget and one.up < one.c:
                step()
                taken += 1
            expected.append(taken if one.up == one.c else None)
        assert state["runs"][name] == expected
    assert browser.console() == []


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: f"J{each['J']}")
def test_the_page_shows_exact_laws_and_times(browser: Browser, settings: dict[str, Any]) -> None:
    browser.open(PAGE)
    choose(browser, settings)
    budget = int(
        browser.js("return JSON.parse(document.getElementById('clique-data').textContent).par_hit_exact[0].budget")
    )
    state = press(browser, "ten", 2)
    N, c, k, J, h = (settings[name] for name in ("N", "c", "k", "J", "h"))
    kernels = {"gibbs": chains.lumped_gibbs(N, c, k, J, h), "independent": chains.lumped_independent(c, J, h)}
    for name, P in kernels.items():
        law = np.linalg.matrix_power(P, 20)[0]
        assert np.allclose(state["laws"][name], law, atol=1e-12)
        survival = chains.survival(P, 0, c, budget)
        assert np.isclose(state[name]["mean"], chains.censored_moments(survival)[0], rtol=1e-10)
        assert np.isclose(state[name]["miss"], survival[-1], rtol=1e-8, atol=1e-12)


def test_the_exact_times_are_those_of_the_table(browser: Browser) -> None:
    browser.open(PAGE)
    rows = json.loads(browser.js("return document.getElementById('clique-data').textContent"))["par_hit_exact"]
    for row in [row for row in rows if row["k"] in (0, 2, 5)]:
        choose(browser, {"J": row["J"], "h": row["h"], "N": row["N"], "c": row["c"], "k": row["k"] or 1, "seed": 1})
        state = press(browser, "again")
        name = "gibbs" if row["k"] else "independent"
        assert np.isclose(state[name]["mean"], row["mean_censored"], rtol=1e-4)


def test_it_runs_turns_and_takes_no_nonsense(browser: Browser) -> None:
    browser.open(PAGE)
    browser.js("document.getElementById('clique-run').click()")
    said = "return JSON.parse(document.getElementById('clique-output').dataset.state).t > 1"
    browser.wait(said, "it to run")
    # Turning the coupling starts again, and stops the clock.
    browser.js(
        "const field = document.getElementById('clique-J'); field.value = 7.5; field.dispatchEvent(new Event('input'))"
    )
    state = press(browser, "step")
    assert state["t"] == 1 and state["model"]["J"] == 7.5
    assert browser.js("return document.getElementById('clique-run').textContent") == "Run"
    assert browser.js("return document.getElementById('clique-J-shown').textContent") == "7.5"
    for seed, h in (("", "5"), ("-5", "5"), ("0", "nonsense")):
        choose(browser, SETTINGS[0] | {"seed": seed, "h": h})
        state = press(browser, "again")
        assert math.isfinite(state["gibbs"]["mean"])
    choose(browser, SETTINGS[0] | {"N": 3, "c": 4, "k": 9})  # a clique and a mask that no longer fit
    model = press(browser, "again")["model"]
    assert model["c"] <= model["N"] == 3 and model["k"] <= 3
