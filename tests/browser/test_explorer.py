"""The explorer on the page of the automata study answers what the Python models answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from chromium import Browser
from workspace import Workspace

from pipeline.languages.automata import automaton, simulate
from pipeline.models.automata import exact, gpt

pytestmark = pytest.mark.study("automata")

PAGE = "study/automata.html"


def asked(browser: Browser, name: str, words: str) -> dict[str, Any]:
    """What the page answers."""
    browser.js(
        "const pick = document.getElementById('explorer-automaton'); pick.value = arguments[0];"
        "pick.dispatchEvent(new Event('change'));"
        "const input = document.getElementById('explorer-input'); input.value = arguments[1];"
        "input.dispatchEvent(new Event('input'));",
        name,
        words,
    )
    output = "document.getElementById('explorer-output')"
    answers = browser.js(f"return {output}.querySelector('table') ? {output}.dataset.answers : null")
    return {"text": browser.js(f"return {output}.textContent"), "answers": answers and json.loads(answers)}


@pytest.mark.parametrize("name", ["c2", "c3", "grid4", "d6"])
def test_the_page_answers_what_python_answers(browser: Browser, smoke: Workspace, name: str) -> None:
    path = smoke.path / f"data/runs/automata/automata-tiny/automata-tiny-{name}.safetensors"
    model, known = gpt.load(path), automaton(name)
    browser.open(PAGE)
    browser.wait("return document.querySelector('#explorer-output table')", "the explorer")
    rng = np.random.default_rng(0)
    for length in (1, 4, 6, 12):  # twice as long as in training
        tokens = rng.integers(0, known.next.shape[1], (1, length))
        answers = asked(browser, name, " ".join(known.symbols[symbol] for symbol in tokens[0]))["answers"]
        logits, _ = gpt.forward(model.spec, model.params, model.table, torch.from_numpy(tokens)[None])
        assert answers["trained"] == logits[0, 0].argmax(-1).tolist()
        assert answers["states"] == answers["exact"] == simulate(known, tokens)[0].tolist()
        built = exact.prefix_composition(known.next, known.q0, 12)
        padded = np.concatenate([tokens, np.zeros((1, 12 - length), np.int64)], 1)
        assert answers["exact"] == built.run(padded)[0][0, :length].tolist()
    assert browser.console() == []


def test_what_the_page_cannot_read_is_one_line(browser: Browser, smoke: Workspace) -> None:
    browser.open(PAGE)
    assert asked(browser, "grid4", "L X")["text"] == "“X” is not in the alphabet: L R."
    assert "the models read 12 at most" in asked(browser, "grid4", "L " * 13)["text"]
    assert asked(browser, "grid4", "lLr")["answers"] == asked(browser, "grid4", "L L R")["answers"]
    assert asked(browser, "grid4", "")["text"] == ""
