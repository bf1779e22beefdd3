"""Algorithm 1 on the page of the verifier study does what the batched decoder does, call by call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from chromium import Browser

from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder, decoding
from pipeline.models.llama.decoding import Plan
from pipeline.models.llama.verifiers import Trained

pytestmark = pytest.mark.study("verifier")

PAGE = "study/verifier.html"
FIELDS = {"quota": 4, "stride": 4, "top_p": 0.9, "threshold": 0.5, "refill": "argmax", "seed": 1, "reach": False}


def mulberry32(seed: int) -> Iterator[float]:
    """The page's random numbers."""
    mask = 0xFFFFFFFF
    while True:
        seed = (seed + 0x6D2B79F5) & mask
        t = ((seed ^ seed >> 15) * (seed | 1)) & mask
        t ^= (t + ((t ^ t >> 7) * (t | 61) & mask)) & mask
        yield ((t ^ t >> 14) & mask) / 2**32


def choose(browser: Browser, **fields: Any) -> None:
    browser.js(
        "for (const [id, value] of Object.entries(arguments[0])) { const field = document.getElementById("
        "`algorithm-${id}`); if (field.type === 'checkbox') field.checked = value; else field.value = value; }"
        "document.getElementById('algorithm-input').dispatchEvent(new Event('input'));",
        FIELDS | fields,
    )


def press(browser: Browser, button: str) -> dict[str, Any]:
    """What the page says after a button was pressed."""
    return json.loads(
        browser.js(
            f"document.getElementById('algorithm-{button}').click();"
            "return document.getElementById('algorithm-output').dataset.state"
        )
    )


def said(browser: Browser) -> str:
    return str(browser.js("return document.getElementById('algorithm-said').textContent"))


class Played:
    """What the page was given, in float64."""

    def __init__(self, browser: Browser) -> None:
        rows = json.loads(browser.js("return document.getElementById('algorithm-data').textContent"))["played"]
        parts: dict[str, dict[str, torch.Tensor]] = {}
        for row in rows:
            values = torch.tensor(row["values"], dtype=torch.float64).view(row["shape"])
            parts.setdefault(row["kind"], {})[row["part"]] = values
        setting = {name: value.item() for name, value in parts["setting"].items()}
        self.params = {name: value[None] for name, value in parts["model"].items()}
        symbols, width = parts["model"]["embed.W"].shape
        layers = int(setting["layers"])
        inner = parts["model"]["blocks.0.mlp.W_out"].shape[0]
        self.spec = decoder.Spec(layers, int(setting["heads"]), width, inner, symbols)
        self.verifier = Trained(layers, [(parts["verifier"]["W"][None], parts["verifier"]["b"][None])])
        self.limit = int(setting["brackets"]) + 2
        self.prompts = {
            kind: [value.long().tolist() for value in parts[kind].values()] for kind in ("inducing", "unseen")
        }

    def decoded(self, plan: Plan, prompt: list[int], seeds: list[int]) -> tuple[decoding.Rows, decoding.Backtracks]:
        calls = plan.calls(self.limit)
        draws = torch.tensor([list(islice(mulberry32(seed), calls)) for seed in seeds]).double()[None]
        start = torch.tensor(prompt)[None, None]
        lengths = torch.tensor([[len(prompt)]])
        oracle = decoding.Cached(self.spec, self.params, self.limit)
        judge = self.verifier if plan.quota else None
        return decoding.decode(oracle, plan, start, lengths, torch.full((1, 1), self.limit), draws, judge)


def shown(tokens: list[int]) -> str:
    return language.text(np.array(tokens[1:]))


PLANS = [
    {},
    {"top_p": 1, "seed": 5},
    {"top_p": 1, "threshold": 1, "quota": 7, "stride": 2, "seed": 8},
    {"refill": "sample", "threshold": 1, "stride": 6, "top_p": 1, "seed": 3},
    {"reach": True, "threshold": 1, "quota": 3, "stride": 9, "top_p": 0.5, "seed": 4},
    {"quota": 0, "top_p": 1, "seed": 6},
    {"top_p": 0, "seed": 9},
]


@pytest.mark.parametrize("fields", PLANS, ids=str)
def test_the_page_decodes_what_python_decodes(browser: Browser, fields: dict[str, Any]) -> None:
    browser.open(PAGE)
    browser.wait("return document.getElementById('algorithm-output').dataset.state", "Algorithm 1")
    played, settings = Played(browser), FIELDS | fields
    plan = Plan(
        language.END,
        top_p=settings["top_p"],
        quota=settings["quota"],
        stride=settings["stride"] if settings["quota"] else 0,
        refill=settings["refill"],
        threshold=settings["threshold"],
        reach=None if settings["reach"] else 0,
    )
    backs = 0
    for prompt in (*played.prompts["inducing"][:3], *played.prompts["unseen"][:2], [language.BEGIN]):
        choose(browser, input=shown(prompt), **fields)
        state = press(browser, "end")
        rows, sent_back = played.decoded(plan, prompt, [settings["seed"]])
        assert state["tokens"] == rows.tokens[0, 0, : rows.lengths[0, 0]].tolist()
        assert (state["calls"], state["erased"], state["quota"]) == (rows.calls, rows.erased, rows.quota)
        assert state["calls"] == len(state["tokens"]) - len(prompt) + state["erased"] == len(state["log"])
        written = [each["written"] for each in state["log"] if each["back"]]
        assert written == [
            row[:n] for row, n in zip(sent_back.tokens.tolist(), sent_back.lengths.tolist(), strict=True)
        ]
        backs += len(written)
        for each in state["log"]:  # the model's and the verifier's probability at every call
            own = torch.tensor(each["written"])[None, None]
            name = f"states.{played.spec.layers}"
            logits, states = decoder.forward(played.spec, played.params, own, own, record=[name])
            p = logits[0, 0, -2].softmax(0)[each["token"]]
            right = played.verifier(states[name][:, :, -1], own, own, own, own)[0, 0]
            assert each["probability"] == pytest.approx(float(p), abs=1e-9)
            assert each["right"] == pytest.approx(float(right), abs=1e-9)
        complete = language.is_complete(rows.tokens[0].numpy(), rows.lengths[0].numpy(), played.limit - 2)
        assert state["right"] == bool(complete[0])
    assert backs > 0 if settings["threshold"] >= 1 else backs == 0 or settings["quota"]
    assert browser.console() == []


def test_many_completions_are_counted_with_and_without_the_verifier(browser: Browser) -> None:
    browser.open(PAGE)
    played = Played(browser)
    prompt = played.prompts["inducing"][0]
    choose(browser, input=shown(prompt), top_p=1, reach=True, threshold=1)
    tally = press(browser, "many")["tally"]
    assert tally["n"] == 100
    seeds = [1 + n for n in range(100)]
    plans = {"without": Plan(language.END), "ours": Plan(language.END, quota=4, stride=4, threshold=1, reach=None)}
    for name, plan in plans.items():
        rows, sent_back = played.decoded(plan, prompt, seeds)
        right = language.is_complete(rows.tokens[0].numpy(), rows.lengths[0].numpy(), played.limit - 2)
        assert tally[name] == {
            "right": int(right.sum()),
            "calls": int(rows.calls.sum()),
            "backtracks": len(sent_back.row),
        }
    assert "100 completions" in browser.js("return document.getElementById('algorithm-output').textContent")


def test_calls_are_told_one_by_one(browser: Browser) -> None:
    browser.open(PAGE)
    played = Played(browser)
    choose(browser, input=shown(played.prompts["unseen"][0]), threshold=1, top_p=1)
    words: list[str] = []
    while not (state := press(browser, "step"))["ended"]:
        words.append(said(browser))
    words.append(said(browser))
    assert (
        len(words)
        == state["calls"]
        == browser.js("return document.querySelectorAll('#algorithm-output tbody tr').length")
    )
    assert sum("erased" in each for each in words) == 4 - state["quota"] > 0
    assert any("refills" in each for each in words)
    assert words[-1].endswith("The string is balanced." if state["right"] else "The string is wrong.")
    assert browser.js("return document.getElementById('algorithm-step').disabled")
    assert press(browser, "again")["calls"] == 0
    assert "linear map" in said(browser)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": "([x"}, "“x” is no bracket: ( [ ) ]."),
        ({"input": "([)"}, "bracket 3 closes nothing of its kind"),
        ({"input": ")"}, "bracket 1 closes nothing"),
        ({"input": "(" * 17}, "bracket 17 leaves no room to close"),
        ({"input": "()" * 17}, "bracket 33 leaves no room to close"),
        ({"quota": 1.5}, "Q is a whole number from 0 to 32"),
        ({"stride": 33}, "B is a whole number from 1 to 32"),
        ({"top_p": 1.2}, "top_p is from 0 to 1"),
        ({"threshold": ""}, "threshold is from 0 to 1"),
    ],
)
def test_what_cannot_be_is_one_line(browser: Browser, fields: dict[str, Any], message: str) -> None:
    browser.open(PAGE)
    choose(browser, **({"input": "(["} | fields))
    assert message in said(browser) and "\n" not in said(browser)
    assert browser.js("return document.getElementById('algorithm-many').disabled")
    choose(browser, input="([")
    assert press(browser, "end")["ended"]
    assert browser.console() == []
