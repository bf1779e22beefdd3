"""Stories of the light switch, and all that completes them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.errors import SandglassError
from pipeline.languages import flipflop as language
from pipeline.models.flipflop import decoder
from pipeline.studies.flipflop.analysis import language_models
from pipeline.studies.flipflop.claims import language_models as claims
from pipeline.studies.flipflop.comparisons import DECLARED
from pipeline.studies.flipflop.names import STANDINS
from pipeline.training.objectives import stories
from schemas.claims import FAILS, HOLDS, NOT_RUN


def strings(length: int, n: int = 200) -> list[list[int]]:
    tokens: list[list[int]] = language.sample(np.random.default_rng(length), n, length, 0.1, 0.1).tolist()
    return tokens


def test_stories_hold_out_the_words_of_the_source() -> None:
    rng = np.random.default_rng(0)
    samples = [story[story >= 0] for story in language.sample_stories(rng, 300, [4, 20], [0.5, 0.9])]
    for story in samples:
        words = {language.WORDS[number] for number in story}
        assert len(words & set(language.HELD_OUT)) <= 1
        assert language.WORDS[story[-2]] in language.STATES and language.WORDS[story[-1]] == language.STOP
    seen = {language.WORDS[number] for story in samples for number in story}
    assert set(language.HELD_OUT) < seen
    with pytest.raises(SandglassError, match="no story has the word 'mango'"):
        language.words_of("Alice eats a mango.")


def test_a_story_has_a_length_of_its_own_and_the_law_of_its_string() -> None:
    n = 6000
    samples = language.sample_stories(np.random.default_rng(3), n, [4, 8], [0.8, 0.8])
    texts = [" ".join(language.WORDS[number] for number in story[story >= 0]) for story in samples]
    sentences = [story.split(" .")[:-1] for story in texts]
    counts = np.bincount([len(each) for each in sentences], minlength=5)
    assert counts[:2].sum() == 0 and (abs(counts[2:] - n / 3) <= 4.5 * np.sqrt(n * 2 / 9)).all()
    between = [sentence for each in sentences for sentence in each[1:-1]]
    ignored = sum(" is " not in each and " the " not in each for each in between)
    assert abs(ignored - 0.8 * len(between)) <= 4.5 * np.sqrt(len(between) * 0.16)
    states = {f" {state}" for state in language.STATES}
    for each in sentences:
        written = [s[-3:].strip() for s in each if " the " in f" {s} " and not s.startswith("The ")]
        assert each[-1].endswith(f" {written[-1]}") and {f" {state}" for state in written} <= states


def test_batches_ask_for_every_next_word() -> None:
    objective = stories.Objective({}, {"lengths": [4, 8], "p_ignore": [0.5, 0.9]})
    samples = [objective.sample(np.random.default_rng(seed), 3) for seed in (1, 2)]
    batch = objective.collate([0, 0], samples, [])
    ids = torch.from_numpy(batch["ids"])
    assert ids.shape[:2] == (2, 3)

    def knows(inputs: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        following = torch.cat([ids[..., 1:], ids[..., :1]], -1)[..., : inputs.shape[-1]].clamp(min=0)
        return 50.0 * torch.nn.functional.one_hot(following, len(language.WORDS)).float(), {}

    metrics = objective.loss(knows, {"ids": ids})
    assert metrics["loss"].max() < 1e-6 and (metrics["accuracy"] == 1).all()
    held = {"ids": torch.cat([ids[0], torch.full((3, 2), -1)], 1)}
    ids = held["ids"][None]
    assert objective.evaluate(knows, held)["accuracy_held"].tolist() == [1.0]


def test_rules_are_as_right_as_the_law_says() -> None:
    known = {length: strings(length, 2000) for length in (4, 8, 16, 64)}
    for rule in language_models._rules([1, 5, 11, 21]):
        for row in language_models.answers(rule, known, strings(16)):
            p = row["expected"]
            assert abs(row["accuracy"] - p) <= 4.5 * np.sqrt(p * (1 - p) / row["n"]) + 1e-12, row


def standin(tmp_path: Path) -> language_models.StandIn:
    words = len(language.WORDS)
    spec = decoder.Spec(1, 2, 8, "alibi", "gelu", 64, words, words)
    values = [decoder.initial(spec, np.random.default_rng(seed)) for seed in (0, 1)]
    params = {
        name: torch.tensor(np.stack([value[name] for value in values]), dtype=torch.float32) for name in values[0]
    }
    model = SimpleNamespace(spec=spec, params=params, table=torch.zeros(1, 1))
    return language_models.StandIn("small", model)  # type: ignore[arg-type]


def test_answers_of_a_model_do_not_depend_on_what_else_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = standin(tmp_path)
    prompts = [language_models.prompt(strings(16)[0], string) for length in (4, 16, 8) for string in strings(length, 3)]
    together, first = model.score(prompts, language.STATES)
    monkeypatch.setattr(language_models, "WORDS_AT_ONCE", 1)
    alone, again = model.score(prompts, language.STATES)
    assert together.shape == (2, len(prompts), 2) and np.abs(together - alone).max() < 1e-5
    assert first is not None and again is not None and (first == again).all()


def test_a_model_without_numbers_has_no_accuracy(tmp_path: Path) -> None:
    model = standin(tmp_path)
    model.model.params["head.b"][1] = float("nan")
    rows = list(language_models.answers(model, {4: strings(4, 5)}, strings(16)))
    assert rows[0]["accuracy"] is not None
    assert rows[1]["accuracy"] is None and rows[1]["n_correct"] is None and rows[1]["strict"] is None


class FakeTokenizer:
    """Words as numbers; the space before a word belongs to it."""

    def __call__(self, text: str, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": language.words_of(text)}


class FakeModel(torch.nn.Module):
    """Says "on", always; reads at most 60 words."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(7))
        self.config = SimpleNamespace(max_position_embeddings=60)

    def forward(self, ids: torch.Tensor) -> Any:
        logits = torch.zeros(*ids.shape, len(language.WORDS))
        logits[..., language.NUMBERS["on"]] = 1
        return SimpleNamespace(logits=logits)


def test_pretrained_models_come_from_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(language_models._pretrained(None)) == []
    with pytest.raises(SandglassError, match=r"no folder in it holds a config\.json") as error:
        list(language_models._pretrained(str(tmp_path)))
    assert "\n" not in str(error.value)
    (tmp_path / "gpt").mkdir()
    (tmp_path / "gpt/config.json").write_text(json.dumps({}))
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SandglassError, match="the package transformers is needed: pip install") as error:
        list(language_models._pretrained(str(tmp_path)))
    assert "\n" not in str(error.value)
    fake = ModuleType("transformers")
    fake.AutoTokenizer = SimpleNamespace(from_pretrained=lambda path, local_files_only: FakeTokenizer())  # type: ignore[attr-defined]
    fake.AutoModelForCausalLM = SimpleNamespace(from_pretrained=lambda path, local_files_only: FakeModel())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", fake)
    (model,) = language_models._pretrained(str(tmp_path))
    short, long = language_models.answers(model, {4: strings(4), 64: strings(64)}, strings(16))
    share = np.mean([string[-1] == language.DATA + 1 for string in strings(4)])
    assert (short["model"], short["kind"], short["n_params"]) == ("gpt", "pretrained", 7)
    assert short["accuracy"] == short["strict"] == pytest.approx(share)
    assert long["accuracy"] is None


def test_stand_ins_are_compared_where_they_learned() -> None:
    small, large = list(STANDINS)[:2]
    rows = [
        (run, "standin", r, 10, length, 0.5 + 0.1 * (run == large) - 0.01 * (length == 8), r > 0)
        for run in (small, large)
        for r in range(6)
        for length in (4, 8)
    ]
    schema = ["model", "kind", "replica", "n_params", "length", "accuracy", "learned"]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    context: Any = SimpleNamespace(
        study="flipflop",
        experiment="flipflop-language-models",
        settings=SimpleNamespace(confidence=0.95),
        runs=lambda: [small, large],
    )
    found = {row["comparison"]: row for row in language_models._compared(context, table).iter_rows(named=True)}
    lost, gained = found["length-standin-32"], found["size-standin-64"]
    assert (lost["n"], lost["n_excluded"]) == (5, 1) and lost["value"] == pytest.approx(-0.01)
    assert (gained["n"], gained["n_excluded"]) == (5, 2) and gained["value"] == pytest.approx(0.1)
    assert found["pretrained-size"]["state"] == found["length-standin-128"]["state"] == "not run at this scale"
    pretrained = table.with_columns(
        kind=pl.lit("pretrained"),
        replica=0,
        n_params=pl.col("n_params") + pl.col("replica"),
        model=pl.format("{}-{}", "model", "replica"),
    )
    both = language_models._compared(context, pl.concat([table, pretrained], how="vertical_relaxed"))
    shares = both.filter(pl.col("comparison").str.starts_with("pretrained"))
    assert shares["n"].to_list() == [12, 11] and shares["value"][0] == 1


def test_rules_that_cannot_be_measured_do_not_hold() -> None:
    table = pl.DataFrame(
        [
            {"model": "oracle", "kind": "oracle", "length": 4, "n": 10, "accuracy": 1.0, "expected": 1.0},
            {"model": "5-gram", "kind": "ngram", "length": 8, "n": 100, "accuracy": 0.7, "expected": 0.68},
        ]
    )
    rows = pl.DataFrame(
        [(each.key, "not run at this scale") for each in DECLARED], schema=["comparison", "state"], orient="row"
    )

    def told(known: pl.DataFrame) -> dict[str, str]:
        tables = {"lm_eval": known, "comparisons": rows}
        context: Any = SimpleNamespace(table=tables.__getitem__, study="flipflop", settings=SimpleNamespace(far=4.5))
        return {gate.gate: gate.verdict("quick")[0] for gate in claims.gates(context)}

    verdicts = told(table)
    assert verdicts.pop("oracle") == verdicts.pop("n-grams") == HOLDS
    assert set(verdicts.values()) == {NOT_RUN}
    spoilt = told(table.with_columns(accuracy=pl.lit(float("nan"))))
    assert spoilt["oracle"] == spoilt["n-grams"] == FAILS
