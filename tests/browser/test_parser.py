"""The network of Proposition 3 on the page of the flip-flop study reads as Python's does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from chromium import Browser

from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.exact import recognisers as exact

pytestmark = pytest.mark.study("flipflop")

PAGE = "study/flipflop.html"
TOKENS = {"w": language.WRITE, "r": language.READ, "i": language.IGNORE, "0": language.DATA, "1": language.DATA + 1}


def put(browser: Browser, field: str, value: object, event: str = "input") -> dict[str, Any]:
    """What the page answers once a field has a value."""
    browser.js(
        "const field = document.getElementById(`parser-${arguments[0]}`); field.value = arguments[1];"
        "field.dispatchEvent(new Event(arguments[2]));",
        field,
        value,
        event,
    )
    output = "document.getElementById('parser-output')"
    answers = browser.js(f"return {output}.dataset.answers ?? null")
    return {"text": browser.js(f"return {output}.textContent"), "answers": answers and json.loads(answers)}


def attention(known: exact.Parser, tokens: np.ndarray, at: int) -> np.ndarray:
    """The weights that the second layer gives at ``at``."""
    second = known.blocks[1]
    x = known.flags(tokens[None])[0, : at + 1]
    scores = (x @ second.K) @ (x[-1] @ second.Q)
    weights: np.ndarray = np.exp(scores - scores.max())
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("law", "length", "power", "made"),
    [("0.8", 64, 0.0, 64), ("0.1", 64, -5.0, 64), ("0.98", 128, -4.25, 128), ("0.1", 40, 0.0, 10), ("0.8", 4, -1.0, 4)],
)
def test_the_page_reads_as_the_proposition_does(
    browser: Browser, law: str, length: int, power: float, made: int
) -> None:
    browser.open(PAGE)
    put(browser, "law", law, "change")
    put(browser, "length", length, "change")
    put(browser, "sharpness", power)
    for seed in (1, 2):
        put(browser, "seed", seed, "change")
        found = put(browser, "made", made, "change")["answers"]
        assert found["sharpness"] == 2**power and found["made"] == made and len(found["tokens"]) == length
        tokens = np.array([TOKENS[token] for token in found["tokens"]])
        reads = np.flatnonzero(tokens == language.READ)
        assert [one["at"] for one in found["answers"]] == reads.tolist()
        known = exact.parser(made, sharpness=2**power)
        out, raw = (each[0] for each in known(tokens[None]))
        bits = tokens[reads + 1] - language.DATA
        for one, at, bit in zip(found["answers"], reads, bits, strict=True):
            assert one["bit"] == bit
            assert one["out"] == pytest.approx(out[at], abs=1e-9) and one["raw"] == pytest.approx(raw[at], abs=1e-9)
            assert one["wrong"] == bool((out[at] > 0.5) != bit)
            weights = attention(known, tokens, int(at))
            assert one["weights"] == pytest.approx(weights.tolist(), abs=1e-9)
            assert one["onto"] == pytest.approx(weights[np.flatnonzero(tokens[:at] == language.WRITE)[-1] + 1])
    assert browser.console() == []


def test_strings_that_the_page_draws_are_of_the_language(browser: Browser) -> None:
    browser.open(PAGE)
    put(browser, "length", 128, "change")
    seen = set()
    for seed in range(10):
        tokens = put(browser, "seed", seed, "change")["answers"]["tokens"]
        assert tokens[0] == "w" and tokens[-2] == "r"
        bit = ""
        for what, shown in zip(tokens[::2], tokens[1::2], strict=True):
            bit = shown if what == "w" else bit
            assert what in "wri" and (what != "r" or shown == bit)
        seen.add(tokens)
    assert len(seen) == 10


def test_sharp_attention_errs_nowhere_and_a_blunt_one_names_where(browser: Browser) -> None:
    browser.open(PAGE)
    put(browser, "law", "0.1", "change")
    sharp = put(browser, "sharpness", 0)
    assert "0 answers are wrong" in sharp["text"] and not any(one["wrong"] for one in sharp["answers"]["answers"])
    blunt = put(browser, "sharpness", -8)
    wrong = [one["at"] for one in blunt["answers"]["answers"] if one["wrong"]]
    assert wrong and blunt["answers"]["read"] == wrong[0] and f"The read in place {wrong[0] + 1}" in blunt["text"]
    other = blunt["answers"]["answers"][-1]["at"]
    assert put(browser, "read", other, "change")["answers"]["read"] == other


@pytest.mark.parametrize(
    ("string", "line"),
    [
        ("w1 x0 r1", "“x” is no token: a string has w, r and i, each followed by 0 or 1."),
        ("w1 i r1", "After each w, r or i comes one bit, as in w1 i0 r1."),
        ("i1 r1", "A string starts with a write: without one there is nothing to read."),
        ("w1 i0 r0", "The read in place 5 is followed by 0, but 1 was written last."),
        ("w1 i0", "There is no read in the string: nothing is asked."),
        ("w1" * 64 + "r1", "The page reads up to 128 tokens; these are 130."),
    ],
)
def test_what_is_no_string_is_one_line(browser: Browser, string: str, line: str) -> None:
    browser.open(PAGE)
    assert put(browser, "string", string) == {"text": line, "answers": None}
    assert "3 reads" not in put(browser, "string", "w1 i0 r1")["text"]
