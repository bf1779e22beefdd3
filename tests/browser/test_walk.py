"""The walk of Algorithm 2 on the page of the verifier study goes where Python's goes, and shows the laws of
its trees."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from chromium import Browser

from pipeline.languages import constrained
from pipeline.studies.verifier.analysis import vgb as analysis
from pipeline.studies.verifier.exact import tokenwise
from pipeline.studies.verifier.exact.vgb import Tree

pytestmark = pytest.mark.study("verifier")

PAGE = "study/verifier.html"
INSTANCES = list(analysis.instances())
DIGITS = 2e-4  # of what a page is given, five digits


def mulberry32(seed: int) -> Iterator[float]:
    """The page's random numbers."""
    mask = 0xFFFFFFFF
    while True:
        seed = (seed + 0x6D2B79F5) & mask
        t = ((seed ^ seed >> 15) * (seed | 1)) & mask
        t ^= (t + ((t ^ t >> 7) * (t | 61) & mask)) & mask
        yield ((t ^ t >> 14) & mask) / 2**32


def choose(browser: Browser, instance: str, rule: str = "first", seed: int = 1) -> None:
    browser.js(
        "for (const [id, value] of Object.entries(arguments[0])) {"
        "const field = document.getElementById(`walk-${id}`); field.value = value;"
        "field.dispatchEvent(new Event('change')); }",
        {"instance": instance, "rule": rule, "seed": seed},
    )


def press(browser: Browser, button: str, times: int = 1) -> dict[str, Any]:
    """What the page says after a button was pressed so many times."""
    code = f"for (let i = 0; i < {times}; i++) document.getElementById('walk-{button}').click();"
    return json.loads(browser.js(f"{code} return document.getElementById('walk-output').dataset.state"))


def tree_of(browser: Browser, instance: str) -> Tree:
    """The tree as the page was given it, its numbers rounded."""
    rows = json.loads(browser.js("return document.getElementById('walk-data').textContent"))["vgb_nodes"]
    levels: dict[int, list[dict[str, Any]]] = {}
    for row in sorted((row for row in rows if row["instance"] == instance), key=lambda row: row["node"]):
        levels.setdefault(row["depth"], []).append(row)
    actions = len(levels[1])
    laws = tuple(np.array([row["chance"] for row in levels[h]]).reshape(-1, actions) for h in range(1, len(levels)))
    return Tree(laws, tuple(np.array([row["value"] for row in levels[h]]) for h in range(len(levels))))


def walked(tree: Tree, rule: str, seed: int, outputs: int) -> dict[str, Any]:
    """Algorithm 2 on the page's random numbers, until it has given so many leaves."""
    draws, at, steps, found = mulberry32(2 * seed), (0, 0), 0, Counter[int]()
    while found.total() < outputs:
        (h, i), u = at, next(draws)
        steps += 1
        moves = [((h - 1, i // tree.actions), tree.values[h][i])] if h else []
        if h < tree.horizon:
            for a in range(tree.actions):
                child = i * tree.actions + a
                moves.append(((h + 1, child), tree.laws[h][i, a] * tree.values[h + 1][child]))
        total = sum(weight for _, weight in moves)
        if u >= 0.5:
            left = (u - 0.5) * 2 * total
            at = next(
                node
                for node, after in zip((n for n, _ in moves), np.cumsum([w for _, w in moves]), strict=True)
                if left < after
            )
        if at[0] == tree.horizon:
            found[tree.first(tree.horizon) + at[1]] += 1
            if rule == "first":
                at = (0, 0)
    return {"steps": steps, "counts": {str(leaf): count for leaf, count in found.items()}}


def rejected(tree: Tree, seed: int, outputs: int) -> dict[str, Any]:
    """Tokenwise rejection on the page's random numbers, until it has given so many leaves or was stuck."""
    draws, h, i, steps, stuck, found = mulberry32(2 * seed + 1), 0, 0, 0, 0, Counter[int]()
    largest = max(value.max() for value in tree.values[1:])
    while found.total() + stuck < outputs:
        weights = tree.laws[h][i] * tree.values[h + 1][i * tree.actions : (i + 1) * tree.actions]
        if not weights.any():
            stuck, h, i = stuck + 1, 0, 0
            continue
        child = i * tree.actions + int((next(draws) >= np.cumsum(tree.laws[h][i])).sum())
        steps += 1
        if next(draws) * largest < tree.values[h + 1][child]:
            h, i = h + 1, child
            if h == tree.horizon:
                found[tree.first(h) + i] += 1
                h, i = 0, 0
    return {"steps": steps, "stuck": stuck, "counts": {str(leaf): count for leaf, count in found.items()}}


@pytest.mark.parametrize("instance", INSTANCES)
def test_the_page_walks_where_python_walks(browser: Browser, instance: str) -> None:
    browser.open(PAGE)
    browser.wait("return document.querySelector('#walk-output table')", "the walk")
    tree = tree_of(browser, instance)
    for rule, seed in (("first", 7), ("visits", 11)):
        choose(browser, instance, rule, seed)
        state = press(browser, "many")
        expected = walked(tree, rule, seed, 1000), rejected(tree, seed, 1000)
        for one, wanted in zip((state["walk"], state["tokens"]), expected, strict=True):
            assert {name: one[name] for name in wanted} == wanted
    again = press(browser, "again")
    assert again["walk"]["outputs"] == again["tokens"]["outputs"] == 0
    assert browser.console() == []


@pytest.mark.parametrize("instance", INSTANCES)
def test_the_page_shows_the_laws_of_the_tree(browser: Browser, instance: str) -> None:
    browser.open(PAGE)
    choose(browser, instance)
    state, tree = press(browser, "again"), analysis.instances()[instance][1]
    law, stuck = tokenwise.action_level_law(tree.laws, tree.values)
    target = constrained.prefix_mass(tree.laws)[-1] * tree.values[-1]
    target /= target.sum()
    columns = {"target": target, "first": tree.first_leaf_law(), "visits": tree.leaf_law(), "tokens": law}
    for name, expected in columns.items():
        assert np.allclose([leaf[name] for leaf in state["exact"]], expected, atol=DIGITS), name
    assert np.allclose(state["pi"], np.concatenate(tree.stationary()), atol=DIGITS)
    assert np.isclose(state["far"]["walk"], tokenwise.total_variation(tree.first_leaf_law(), target), atol=1e-3)
    assert np.isclose(state["far"]["tokens"], tokenwise.total_variation(law, target, stuck), atol=1e-3)


def test_steps_are_told_and_laws_build_up(browser: Browser) -> None:
    browser.open(PAGE)
    choose(browser, "dead-end", seed=3)
    said = set()
    for _ in range(200):
        state = press(browser, "step")
        said |= set(browser.js("return document.getElementById('walk-said').textContent").split())
    assert {"stays", "down", "up", "accepted", "rejected", "stuck"} <= {word.strip(".,:") for word in said}
    assert state["walk"]["steps"] == 200 and 0 < state["walk"]["outputs"] < 60
    far = press(browser, "many", 5)["far"]
    assert abs(far["walkCounted"] - far["walk"]) < 0.05 and abs(far["tokensCounted"] - far["tokens"]) < 0.05
    browser.js("document.getElementById('walk-run').click()")
    browser.wait(
        "return JSON.parse(document.getElementById('walk-output').dataset.state).walk.steps > 202", "it to run"
    )
    browser.js("document.getElementById('walk-run').click()")
    assert browser.js("return document.getElementById('walk-run').textContent") == "Run"


def test_what_is_no_seed_is_the_first(browser: Browser) -> None:
    browser.open(PAGE)
    states = []
    for seed in ("", "-5", "0"):
        choose(browser, "proposition", seed=seed)  # type: ignore[arg-type]
        states.append(press(browser, "many"))
    assert states[0] == states[1] == states[2]
