"""A model of the Llama architecture from a local folder: what is read, what is drawn from it, and what is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import reference
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit.inputs import Inputs
from pipeline.languages import append_cases
from pipeline.models.llama import decoder, decoding, folder
from pipeline.models.llama.decoding import Plan
from pipeline.steps import analyse
from pipeline.studies.verifier.analysis import pretrained
from pipeline.studies.verifier.names import PRETRAINED
from schemas.verifier.tables import SCHEMAS

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 16,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
    "vocab_size": 40,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}


def arrays(config: dict[str, Any] = CONFIG) -> dict[str, torch.Tensor]:
    """Random weights under the names that such folders have."""
    d, f, V = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kv = d * config["num_key_value_heads"] // config["num_attention_heads"]
    shapes = {"model.embed_tokens.weight": (V, d), "model.norm.weight": (d,), "lm_head.weight": (V, d)}
    for n in range(config["num_hidden_layers"]):
        at = f"model.layers.{n}"
        shapes |= {f"{at}.input_layernorm.weight": (d,), f"{at}.post_attention_layernorm.weight": (d,)}
        shapes |= {f"{at}.self_attn.{p}_proj.weight": (kv if p in "kv" else d, d) for p in "qkvo"}
        shapes |= {f"{at}.mlp.{p}_proj.weight": (f, d) for p in ("gate", "up")}
        shapes |= {f"{at}.mlp.down_proj.weight": (d, f)}
    rng = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(shape, generator=rng) * (0.3 if len(shape) == 2 else 1.0) for name, shape in shapes.items()
    }


def written(path: Path, config: dict[str, Any] = CONFIG, weights: dict[str, torch.Tensor] | None = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / folder.CONFIG).write_text(json.dumps(config))
    save_file(arrays(config) if weights is None else weights, path / folder.WEIGHTS)
    (path / folder.TOKENIZER).write_text("{}")
    return path


def expected(weights: dict[str, torch.Tensor], ids: list[int]) -> torch.Tensor:
    """Logits of the architecture as its authors and Hugging Face have it, in float64, head by head."""
    w = {name: value.double() for name, value in weights.items()}
    H, G, d = CONFIG["num_attention_heads"], CONFIG["num_key_value_heads"], CONFIG["hidden_size"]
    A, T = d // H, len(ids)
    rates = CONFIG["rope_theta"] ** (-torch.arange(0, A, 2).double() / A)
    angles = torch.arange(T).double()[:, None] * torch.cat([rates, rates])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * (x.square().mean(-1, keepdim=True) + CONFIG["rms_norm_eps"]).rsqrt() * w[name]

    def rotate(x: torch.Tensor) -> torch.Tensor:
        half = torch.cat([-x[:, A // 2 :], x[:, : A // 2]], 1)
        return x * angles.cos() + half * angles.sin()

    x = w["model.embed_tokens.weight"][ids]
    for n in range(CONFIG["num_hidden_layers"]):
        at = f"model.layers.{n}"
        h = norm(x, f"{at}.input_layernorm.weight")
        q, k, v = (h @ w[f"{at}.self_attn.{p}_proj.weight"].T for p in "qkv")
        heads = []
        for i in range(H):
            g = i // (H // G)
            scores = rotate(q[:, i * A : (i + 1) * A]) @ rotate(k[:, g * A : (g + 1) * A]).T / A**0.5
            scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), -torch.inf)
            heads.append(scores.softmax(-1) @ v[:, g * A : (g + 1) * A])
        x = x + torch.cat(heads, 1) @ w[f"{at}.self_attn.o_proj.weight"].T
        h = norm(x, f"{at}.post_attention_layernorm.weight")
        gate, up = (h @ w[f"{at}.mlp.{p}_proj.weight"].T for p in ("gate", "up"))
        x = x + (F.silu(gate) * up) @ w[f"{at}.mlp.down_proj.weight"].T
    return norm(x, "model.norm.weight") @ w["lm_head.weight"].T


class Tokenizer:
    """Its tokens are a few letters, and whole lines: right and wrong cases of every name that is asked for."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces

    def encode(self, text: str) -> SimpleNamespace:
        return SimpleNamespace(ids=[1, *(3 + ord(letter) % 30 for letter in text[-9:])])

    def decode(self, ids: list[int]) -> str:
        return "".join(self.pieces[n] for n in ids)


@pytest.fixture
def tokenizers(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    def put(pieces: list[str]) -> None:
        fake = ModuleType("tokenizers")
        fake.Tokenizer = SimpleNamespace(from_file=lambda path: Tokenizer(pieces))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tokenizers", fake)

    put(["?"] * CONFIG["vocab_size"])
    return put


def test_a_folder_computes_what_its_architecture_does(tmp_path: Path, tokenizers: object) -> None:
    model = folder.read(str(written(tmp_path / "llama")), "here")
    assert model.spec == decoder.Spec(2, 4, 16, 20, 40, 1e-5, 1e6) and model.name == "llama" and model.end == 2
    ids = [1, *np.random.default_rng(0).integers(3, 40, 11).tolist()]
    logits, _ = decoder.forward(model.spec, model.params, model.params["head.W"], torch.tensor([[ids]]))
    assert torch.allclose(logits[0, 0].double(), expected(arrays(), ids), atol=2e-5)


def test_weights_in_parts_and_tied_ones_are_the_same(tmp_path: Path, tokenizers: object) -> None:
    whole = folder.read(str(written(tmp_path / "whole")), "here")
    path, weights = written(tmp_path / "parts"), arrays()
    (path / folder.WEIGHTS).unlink()
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, own in parts.items():
        save_file({name: weights[name] for name in own}, path / file)
    listed = {name: file for file, own in parts.items() for name in own}
    (path / folder.PARTS).write_text(json.dumps({"weight_map": listed}))
    again = folder.read(str(path), "here")
    assert all(torch.equal(whole.params[name], again.params[name]) for name in whole.params)
    del weights["lm_head.weight"]
    tied = folder.read(str(written(tmp_path / "tied", CONFIG | {"tie_word_embeddings": True}, weights)), "here")
    assert torch.equal(tied.params["head.W"][0], tied.params["embed.W"][0].T)


def test_the_same_decoder_draws_from_it(tmp_path: Path, tokenizers: object) -> None:
    model = folder.read(str(written(tmp_path / "llama")), "here")
    params = {name: value.double() for name, value in model.params.items()}
    rng, plan, limit = np.random.default_rng(1), Plan(model.end, 0.8, 0.9, 3, 2, threshold=0.5), 18
    prompts = torch.from_numpy(rng.integers(3, 40, (1, 3, 5)))
    lengths = torch.tensor([[5, 3, 4]])
    draws = torch.from_numpy(rng.random((1, 3, plan.calls(limit))))

    class First:
        layer = 1

        def __call__(self, states, tokens, lengths, chances, asked):  # type: ignore[no-untyped-def]
            return states[..., 0].sigmoid()

    def judge(xs: list[int], call: int) -> float:
        _, found = decoder.forward(model.spec, params, params["head.W"], torch.tensor([[xs]]), record=["states.1"])
        return float(found["states.1"][0, 0, -1, 0].sigmoid())

    oracle = decoding.Cached(model.spec, params, limit)
    rows, sent_back = decoding.decode(oracle, plan, prompts, lengths, torch.full((1, 3), limit), draws, First())
    assert len(sent_back.row) > 2
    for b in range(3):
        x, own = prompts[0, b, : lengths[0, b]].tolist(), draws[0, b].tolist()
        wanted = reference.algorithm_1(reference.model(model.spec, params, 0), judge, plan, x, limit, own)
        assert rows.tokens[0, b, : rows.lengths[0, b]].tolist() == wanted.tokens
        assert (rows.calls[0, b], rows.erased[0, b], rows.quota[0, b]) == (wanted.calls, wanted.erased, wanted.quota)


def context(path: str | None, **changes: Any) -> Inputs:
    study = load_study("verifier")
    entry = study.experiments[PRETRAINED].model_copy(
        update={
            "folder": path,
            "cases": 2,
            "names": 2,
            "budget": 8,
            "repetitions": 2,
            "runs_of_each": 2,
            "verifier_repetitions": 6,
            "layer": 1,
        }
        | changes
    )
    return Inputs("verifier", PRETRAINED, entry, study.studies["verifier"].analysis, "smoke", study.seed, "0" * 32)


def test_the_experiment_runs_on_a_folder(tmp_path: Path, tokenizers: Callable[[list[str]], None]) -> None:
    assert pretrained.analyse(context(None)) == {"pretrained_runs": None}
    probe = pretrained.Experiment.__new__(pretrained.Experiment)
    probe.context, probe.entry = context("there"), context("there").entry
    names = [*probe._names(), *pretrained.test_cases.TRAINING]
    assert len(set(names)) == 9 and all(len(name) == 3 for name in names)
    lines = [f"assert {name}([{n}], 2) == [{n}, 2]\n" for n in range(3) for name in names]
    pieces = ["", "", "", *lines, "assert ", "\n", *["x"] * CONFIG["vocab_size"]]
    tokenizers(pieces[: CONFIG["vocab_size"]])
    path = str(written(tmp_path / "tiny-llama"))
    found = analyse.finished(pretrained.analyse(context(path)), SCHEMAS, context(path))["pretrained_runs"]
    SCHEMAS["pretrained_runs"].validate(found)
    assert found.height == 3 * (1 + 2 * 2) * 2 and set(found["model"]) == {"tiny-llama"}
    assert found["requested"].unique().to_list() == [2 * 2 * 2] and found["distinct"].sum() > 0
    backs = found.group_by("verifier").agg(pl.sum("backtracks", "erased"))
    assert dict(backs.select("verifier", "backtracks").iter_rows())["none"] == 0 < found["backtracks"].sum()
    again = analyse.finished(pretrained.analyse(context(path)), SCHEMAS, context(path))["pretrained_runs"]
    assert found.equals(again)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'; expected 'llama'"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling"),
        ({"attention_bias": True}, "attention_bias True"),
        ({"num_attention_heads": 3}, "do not fit a width of 16"),
        ({"hidden_size": None}, "says what is no number"),
        ({"vocab_size": 41}, r"has shape \(40, 16\), config.json says \(41, 16\)"),
        ({"num_hidden_layers": 3}, "no weights model.layers.2.input_layernorm.weight"),
        ({"eos_token_id": 99}, "eos_token_id 99"),
    ],
)
def test_a_folder_of_another_form_is_refused(
    tmp_path: Path, tokenizers: object, change: dict[str, Any], message: str
) -> None:
    path = written(tmp_path / "other", CONFIG, arrays())
    (path / folder.CONFIG).write_text(json.dumps(CONFIG | change))
    with pytest.raises(SandglassError, match=message) as error:
        folder.read(str(path), "here")
    assert "\n" not in str(error.value) and str(error.value).startswith("here: ")


def test_what_is_missing_or_damaged_gets_one_line(
    tmp_path: Path, tokenizers: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "llama")

    def refused(message: str) -> None:
        with pytest.raises(SandglassError, match=message) as error:
            folder.read(str(path), "here")
        assert "\n" not in str(error.value)

    with pytest.raises(SandglassError, match=r"layer is 27, and the model in .* has 2 layers"):
        pretrained.analyse(context(str(path), layer=27))
    with pytest.raises(SandglassError, match=r"wrote [0-9]+ right and 0 wrong prefixes"):
        pretrained.analyse(context(str(path)))  # "?" is no case, so that it is not wrong
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    refused("the package tokenizers is not installed: pip install --no-deps -c requirements-pretrained.txt tokenizers")
    (path / folder.TOKENIZER).unlink()
    refused("there is no file .*tokenizer.json")
    content = (path / folder.WEIGHTS).read_bytes()
    (path / folder.WEIGHTS).write_bytes(content[:100])
    refused("model.safetensors cannot be read")
    (path / folder.PARTS).write_text(json.dumps({"weight_map": {}}))
    refused("lists no weights")
    (path / folder.PARTS).write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    refused("there is no file .*gone.safetensors")
    (path / folder.CONFIG).write_text("[")
    refused("is no JSON object")
    (path / folder.CONFIG).write_text(json.dumps({key: value for key, value in CONFIG.items() if key != "hidden_size"}))
    refused("does not say hidden_size")
    path = tmp_path / "nowhere"
    refused("there is no file .*nowhere/config.json")


# --- texts ---------------------------------------------------------------------------------------

VALUES = st.one_of(st.integers(-99, 99), st.text("ab'(]", max_size=4), st.booleans())


@given(st.lists(VALUES, max_size=4), VALUES, st.data())
def test_right_cases_are_right_and_all_their_beginnings_too(items: list[Any], item: Any, data: st.DataObject) -> None:
    line = f"assert ovs({items!r}, {item!r}) == {[*items, item]!r}\n"
    assert append_cases.cases_of("ovs", 8, line) == [(repr(items), repr(item), True)]
    cut = data.draw(st.integers(0, len(line)))
    assert append_cases.first_error("ovs", 8, line[:cut]) == -1
    wrong = f"assert ovs({items!r}, {item!r}) == {[item, *items, 7]!r}\n"
    at = append_cases.first_error("ovs", 8, line + wrong)
    assert at >= len(line) + wrong.index(") == ")
    assert append_cases.first_error("ovs", 1, line + wrong) == -1
    assert append_cases.first_error("cyk", 8, line) == len("assert ")


def test_what_is_no_case_is_read_as_such() -> None:
    text = "\n# a comment\nassert ovs(1, 2) == [1, 2]\nassert ovs([x], 2) == [1, 2]\nassert ovs([1], 2\n"
    assert append_cases.cases_of("ovs", 8, text) == [("", "", False)] * 3
    assert append_cases.first_error("ovs", 8, text) == text.index("== [1, 2]") + len("== [1, 2]")
    assert append_cases.first_error("ovs", 8, "ass") == -1 and append_cases.first_error("ovs", 8, "\n\nx\n") == -1
