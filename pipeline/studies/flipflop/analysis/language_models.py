"""E16: language models and the light switch (Liu 2024, section 3.5.6.2.1, Figure 3.24 right).

Stand-ins that were trained on stories, pretrained models where the parameters name a folder of them, and predictors
that follow a rule answer the same prompts: a string of 16 tokens told as a story, then another one whose last state is
asked.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import flipflop as language
from pipeline.models.flipflop import decoder
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.measures import reading
from pipeline.studies.flipflop.measures.reading import Floats
from pipeline.studies.flipflop.names import PRETRAINED, SWITCH, SWITCH_CONTEXT

P_IGNORE = 0.8
UNTRAINED = "accuracy on stories like those of training below the bar"
WORDS_AT_ONCE = 8000  # of a forward pass

Scores = NDArray[np.float64]  # (R, N, K) of R models, N prompts and K candidates
First = NDArray[np.int64] | None  # (R, N): which candidate leads all words, -1 for none; None where there are no others


class Predictor(Protocol):
    """Whatever answers a prompt: models of one shape, or one rule."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def kind(self) -> str:
        """One of standin, pretrained, oracle, heuristic, ngram."""

    @property
    def n_params(self) -> int | None:
        """The numbers that were trained, of a model."""

    def score(self, prompts: Sequence[str], candidates: Sequence[str]) -> tuple[Scores, First]:
        """Return how strongly each candidate is expected as the next word, and whether it leads all words."""


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the accuracy of every predictor by length of the string, and comparisons of the models."""
    rows: list[dict[str, Any]] = []
    with one_thread():
        for predictor in (*_rules(context.entry.ngrams), *_standins(context), *_pretrained(context.entry.pretrained)):
            rows += answers(predictor, *_strings(context))
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = table.join(told(context), on=["model", "replica"], how="left", maintain_order="left")
    enough = (pl.col("told") >= context.settings.told).fill_null(False)
    table = table.with_columns(learned=(pl.col("kind") != "standin") | enough)
    return {"lm_eval": table, "comparisons": _compared(context, table)}


def told(context: Inputs) -> pl.DataFrame:
    """Return ``told``, the accuracy of each stand-in on states of fresh stories like those that it learned from, over
    the last steps of its training."""
    parts = [context.curves(run).with_columns(model=pl.lit(run)) for run in context.runs()]
    last = pl.col("step") == pl.col("step").max().over("model")
    return pl.concat(
        part.filter(last).select("model", pl.col("replica").cast(pl.Int64), told="accuracy") for part in parts
    )


def _strings(context: Inputs) -> tuple[dict[int, list[list[int]]], list[list[int]]]:
    frame = context.dataset(SWITCH)
    lengths = frame["length"].unique().sort().to_list()
    strings = {length: frame.filter(length=length)["tokens"].to_list() for length in lengths}
    return strings, context.dataset(SWITCH_CONTEXT)["tokens"].to_list()


def prompt(context: Sequence[int], query: Sequence[int]) -> str:
    """Return a string as a story and, behind it, another one that asks for its last state.

    >>> prompt(language.from_text("w1r1"), language.from_text("w0r0"))
    'Alice turns the light on. The light is turned on. Alice turns the light off. The light is turned'
    """
    who = language.PUBLISHED
    return f"{language.story_text(context, who)} {language.story_text(query, who, asks=True)}"


def answers(
    predictor: Predictor, strings: dict[int, list[list[int]]], contexts: list[list[int]]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each length and model of a predictor: how many strings it completes as they should be."""
    for length, queries in strings.items():
        prompts = [prompt(contexts[n % len(contexts)], string) for n, string in enumerate(queries)]
        truth = np.array([string[-1] - language.DATA for string in queries])
        scores, first = predictor.score(prompts, language.STATES)
        right = np.asarray(scores.argmax(-1) == truth)
        broken = np.asarray(np.isnan(scores).any((1, 2)))
        for r in range(len(scores)):
            yield {
                "model": predictor.name,
                "kind": predictor.kind,
                "replica": r,
                "n_params": predictor.n_params,
                "length": length,
                "n": len(queries),
                "n_correct": None if broken[r] else int(right[r].sum()),
                "accuracy": None if broken[r] else float(right[r].mean()),
                "strict": None if first is None or broken[r] else float((first[r] == truth).mean()),
                "expected": expected(predictor, length),
            }


def expected(predictor: Predictor, length: int) -> float | None:
    """Return the accuracy of a rule, from the law of the strings: of one that looks at m pairs, 1 - p_i^m / 2 where the
    string has more of them before its end."""
    pairs = getattr(predictor, "pairs", None)
    if predictor.kind == "oracle":
        return 1.0
    if pairs is None:
        return None
    return 1 - 0.5 * P_IGNORE**pairs if length // 2 - 1 > pairs else 1.0


# --- rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Oracle:
    """Says what was last written."""

    name: str = "oracle"
    kind: str = "oracle"
    n_params: int | None = None

    def score(self, prompts: Sequence[str], candidates: Sequence[str]) -> tuple[Scores, First]:
        """Return 1 for the state of the last sentence whose subject is the person who writes, else 0."""
        who = f"{language.PUBLISHED.writer} "
        states = [next(s for s in reversed(sentences(text)) if s.startswith(who)).split()[-1] for text in prompts]
        return np.array([[[float(state == each) for each in candidates] for state in states]]), None


@dataclass(frozen=True)
class Window:
    """Says the bit of the last write or read among the last ``pairs`` sentences, and the first candidate where there is
    none. ``copies`` says the bit of the last sentence, whatever that is."""

    name: str
    kind: str
    pairs: int
    copies: bool = False
    n_params: int | None = None

    def score(self, prompts: Sequence[str], candidates: Sequence[str]) -> tuple[Scores, First]:
        """Return 1 for the state that it says, else 0."""
        scores = np.zeros((1, len(prompts), len(candidates)))
        for n, text in enumerate(prompts):
            state = candidates[0]
            for sentence in reversed(sentences(text)[-self.pairs :] if self.pairs else []):
                last = sentence.split()[-1]
                if last in candidates:
                    state = last
                    break
                if self.copies:
                    state = language.STATES[language.PUBLISHED[-2:].index(last)]
            scores[0, n, list(candidates).index(state)] = 1
        return scores, None


def sentences(text: str) -> list[str]:
    """Return the complete sentences of a prompt, without their stops."""
    return [part.strip() for part in text.split(language.STOP)[:-1]]


def _rules(ngrams: Sequence[int]) -> Iterator[Predictor]:
    yield Oracle()
    yield Window("last bit", "heuristic", 1, copies=True)
    for n in ngrams:
        yield Window(f"{n}-gram", "ngram", n // 2)


# --- models ----------------------------------------------------------------------------------------


class StandIn:
    """Models trained on stories."""

    kind = "standin"

    def __init__(self, name: str, model: decoder.Ensemble) -> None:
        self.name, self.model = name, model
        self.n_params: int | None = decoder.parameters(model.spec)

    def score(self, prompts: Sequence[str], candidates: Sequence[str]) -> tuple[Scores, First]:
        """Return the logits behind the last word of each prompt."""
        words = [language.words_of(text) for text in prompts]
        numbers = [language.NUMBERS[candidate] for candidate in candidates]
        logits = torch.cat([self._last(part) for part in _parts(words)], 1)
        first = logits.argmax(-1)
        place = torch.full_like(first, -1)
        for k, number in enumerate(numbers):
            place[first == number] = k
        return logits[..., numbers].double().numpy(), place.numpy()

    def _last(self, words: list[list[int]]) -> torch.Tensor:
        """Return (R, N, V) the logits behind the last words; what stands behind them is not seen."""
        longest = max(map(len, words))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in words])
        with torch.no_grad():
            logits, _ = decoder.forward(self.model.spec, self.model.params, self.model.table, ids[None])
        return logits[:, torch.arange(len(words)), torch.tensor([len(row) - 1 for row in words])]


def _parts(words: list[list[int]]) -> Iterator[list[list[int]]]:
    """Yield the prompts, some at a time."""
    size = max(1, WORDS_AT_ONCE // max(map(len, words)))
    for start in range(0, len(words), size):
        yield words[start : start + size]


def _standins(context: Inputs) -> Iterator[Predictor]:
    for run in context.runs():
        yield StandIn(run, context.model(run))


class Pretrained:
    """A pretrained model in a local folder, in the format of Hugging Face."""

    kind = "pretrained"

    def __init__(self, folder: Path, transformers: Any) -> None:
        self.name = folder.name
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(str(folder), local_files_only=True).eval()
        self.n_params: int | None = sum(each.numel() for each in self.model.parameters())
        self.most = getattr(self.model.config, "max_position_embeddings", None)

    def score(self, prompts: Sequence[str], candidates: Sequence[str]) -> tuple[Scores, First]:
        """Return the logits of the first token of " on" and " off" behind each prompt; NaN where a prompt is longer
        than what the model reads."""
        numbers = [self.tokenizer(f" {each}", add_special_tokens=False)["input_ids"][0] for each in candidates]
        scores = np.full((1, len(prompts), len(candidates)), np.nan)
        place = np.full((1, len(prompts)), -1)
        for n, text in enumerate(prompts):
            ids = torch.tensor([self.tokenizer(text)["input_ids"]])
            if self.most is not None and ids.shape[1] > self.most:
                continue
            with torch.no_grad():
                logits = self.model(ids).logits[0, -1].double()
            scores[0, n] = logits[numbers].numpy()
            best = int(logits.argmax())
            place[0, n] = numbers.index(best) if best in numbers else -1
        return scores, place


def _pretrained(folder: str | None) -> Iterator[Predictor]:
    """Yield the models below ``folder``.

    Raises SandglassError if there is none, or if they cannot be read because the package transformers is missing.
    """
    if folder is None:
        return
    where = f"params/flipflop/experiments.yaml: flipflop-language-models.pretrained: {folder}"
    folders = sorted(path.parent for path in Path(folder).glob("*/config.json"))
    if not folders:
        raise SandglassError(f"{where}: no folder in it holds a config.json")
    try:
        transformers = importlib.import_module("transformers")
    except ImportError:
        raise SandglassError(
            f"{where}: to read these models the package transformers is needed: pip install transformers"
        ) from None
    for path in folders:
        yield Pretrained(path, transformers)


# --- comparisons -----------------------------------------------------------------------------------


def _compared(context: Inputs, table: pl.DataFrame) -> pl.DataFrame:
    """Compare the longest with the shortest strings, and models with those of the next smaller size."""
    found = Measurements(context, reading.UNTRAINED)

    def accuracy(known: pl.DataFrame) -> Floats:
        rows = known.drop_nulls("accuracy").sort("replica", "length").group_by("replica", maintain_order=True)
        return np.array([own["accuracy"].to_list() for _, own in rows]).reshape(-1, table["length"].n_unique())

    shown = {run: accuracy(table.filter("learned", model=run)) for run in context.runs()}
    lost = {run: table.filter(~pl.col("learned"), model=run)["replica"].n_unique() for run in shown}
    for run, comparison in comparisons.STORY_LENGTH.items():
        if run in shown:
            ends = shown[run][:, -1], shown[run][:, 0]
            found.add(comparison, *ends, excluded=lost[run], reason=UNTRAINED)
    for (small, large), comparison in comparisons.STORY_SIZE.items():
        if small in shown and large in shown:
            means = shown[large].mean(1), shown[small].mean(1)
            found.add(comparison, *means, excluded=lost[large] + lost[small], reason=UNTRAINED)
    known = table.filter(kind=PRETRAINED).sort("n_params", "model", "length").drop_nulls("accuracy")
    if known.height:
        each = [own["accuracy"].to_numpy() for _, own in known.group_by("model", maintain_order=True)]
        found.add(comparisons.PRETRAINED_LENGTH, [own[-1] - own[0] for own in each])
        means_of = [float(own.mean()) for own in each]
        found.add(comparisons.PRETRAINED_SIZE, [large - small for small, large in itertools.pairwise(means_of)])
    return found.table()
