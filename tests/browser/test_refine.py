"""The sentence on the page of the parallel study is refined as Python refines it, from the same weights."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
import torch
from chromium import Browser

from pipeline.languages import synmt
from pipeline.languages.synmt import EOS, PAD
from pipeline.models.parallel import translator
from pipeline.studies.parallel import decoding

pytestmark = pytest.mark.study("parallel")

PAGE = "study/parallel.html"
OWN = [0, 1, 9, 20, 3]  # words of our own


def choose(browser: Browser, settings: dict[str, Any]) -> dict[str, Any]:
    """What the page says after fields were set, one after the other."""
    for name, value in settings.items():
        browser.js(
            "const field = document.getElementById(`refine-${arguments[0]}`);"
            "if (field.type === 'checkbox') field.checked = arguments[1]; else field.value = arguments[1];"
            "field.dispatchEvent(new Event('change'));",
            name,
            value,
        )
    return state(browser)


def state(browser: Browser) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(browser.js("return document.getElementById('refine-output').dataset.state"))
    return found


def press(browser: Browser, button: str) -> dict[str, Any]:
    browser.js(f"document.getElementById('refine-{button}').click()")
    return state(browser)


def model(browser: Browser) -> tuple[translator.Spec, dict[str, torch.Tensor]]:
    """The model as the page was given it."""
    rows = json.loads(browser.js("return document.getElementById('refine-data').textContent"))["synmt_weights"]
    arrays = {
        row["name"]: np.frombuffer(base64.b64decode(row["numbers"]), "<f2").astype(np.float32).reshape(row["shape"])
        for row in rows
    }
    vocabulary, width = arrays["embed.E"].shape
    inner = arrays["encoder.0.mlp.W_in"].shape[1]
    layers = [sum(name.startswith(stack) and name.endswith("mlp.g") for name in arrays) for stack in ("enc", "dec")]
    heads, positions = rows[0]["heads"], len(arrays["target.P"])
    spec = translator.Spec(vocabulary, width, heads, inner, *layers, positions, False, "position.P" in arrays, 0)
    return spec, {name: torch.from_numpy(array.copy())[None] for name, array in arrays.items()}


@pytest.mark.parametrize("remask", [False, True])
@pytest.mark.parametrize("words", [None, OWN])
def test_passes(browser: Browser, words: list[int] | None, remask: bool) -> None:
    browser.open(PAGE)
    spec, params = model(browser)
    settings = {"seed": 5, "remask": remask} | ({"words": " ".join(map(str, words))} if words else {"idx": 1})
    first = choose(browser, settings)
    lexicon = synmt.Lexicon((spec.vocabulary - 5) // 64)
    source = torch.from_numpy(lexicon.source(np.array([first["words"]])))
    memory, _ = translator.encode(spec, params, source[None])
    assert memory.lengths is not None
    assert np.allclose(first["lengths"], memory.lengths[0, 0].softmax(-1).numpy(), atol=1e-4)
    start = torch.full((1, spec.positions), PAD)
    length = len(first["states"][0])
    start[0, :length] = torch.tensor(first["states"][0])
    assert first["states"][0][-1] == EOS and length == int(decoding.lengths(memory, 1)[0][0, 0])
    found = decoding.refine(spec, params, memory, start, 4, remask=remask)
    shown = first
    for t in range(3 if remask else 4):  # the last pass of Python's is not remasked
        shown = press(browser, "step") if not shown["stable"] else shown
        assert shown["states"][min(t + 1, len(shown["states"]) - 1)] == found.states[t, 0, :length].tolist()
        if t + 1 < len(shown["states"]):
            assert sum(np.log(shown["chances"][t + 1])) == pytest.approx(found.log_p[t].item(), abs=1e-3)
    law = synmt.law(lexicon, np.array([first["words"]]), 1.0, 0.6, spec.positions)
    last = np.array([shown["states"][-1] + [PAD] * (spec.positions - length)])
    assert shown["valid"] == bool(np.isfinite(synmt.log_probability(law, last))[0])


def test_a_word_outside_the_lexicon(browser: Browser) -> None:
    browser.open(PAGE)
    said = choose(browser, {"words": "3 24"})
    assert said["problem"] == "The word at place 2 is outside the lexicon: its 24 words are 0 to 23."
    assert "states" in choose(browser, {"words": "3 5"})
