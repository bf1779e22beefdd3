"""Documents of test cases: completions, their metrics, and samples for verifiers (SYN-TC; Li 2025, section 3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.languages import test_cases as language
from pipeline.models.llama import decoder, decoding, verifiers
from pipeline.models.llama.decoding import Plan, Verifier

if TYPE_CHECKING:
    from torch import Tensor

ROWS = 1500  # of all models together that are decoded at once
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Completed:
    """What models wrote behind prompts: (R, N) each, N = prompts times repetitions, those of a prompt in turn."""

    tokens: Ints  # (R, N, T)
    lengths: Ints
    prompts: Ints  # lengths
    calls: Ints
    erased: Ints
    backtracks: Ints
    repetitions: int

    def written(self, replica: int, row: int) -> list[int]:
        """Return one completion."""
        start, end = self.prompts[replica, row], self.lengths[replica, row]
        return [int(token) for token in self.tokens[replica, row, start:end]]


@dataclass(frozen=True)
class CaseModels:
    """R language models of documents, and how many cases are asked for."""

    spec: decoder.Spec
    params: dict[str, Tensor]
    cases: int

    @property
    def count(self) -> int:
        """Return R."""
        return int(self.params["head.W"].shape[0])


def name_of(prompt: Ints | list[int]) -> str:
    """Return the name that a prompt asks for: the three letters between its last two signs.

    >>> name_of(language.prompt("qxt", "APPEND", []))
    'qxt'
    """
    return "".join(language.SIGNS[int(token)] for token in list(prompt)[-4:-1])


def complete(
    models: CaseModels,
    plan: Plan,
    prompts: list[list[int]],
    budget: int,
    repetitions: int,
    rng: np.random.Generator,
    calls: int,
    verifier: Verifier | None = None,
    candidates: int = 0,
) -> Completed:
    """Complete each prompt several times by every model, with at most ``budget`` tokens.

    With ``candidates`` by block best-of-n, a block being a line. The draws are those of ``rng``, ``calls`` for each
    row, so that plans with as many meet the same chances.
    """
    R, T = models.count, max(map(len, prompts)) + budget
    size = max(1, ROWS // (R * repetitions * max(candidates, 1)))
    parts: list[decoding.Rows] = []
    sent: list[NDArray[np.int64]] = []
    with torch.no_grad():
        for start in range(0, len(prompts), size):
            own = prompts[start : start + size]
            tokens = torch.zeros(R, len(own), T, dtype=torch.long)
            for row, prompt in enumerate(own):
                tokens[:, row, : len(prompt)] = torch.tensor(prompt)
            lengths = torch.tensor([len(prompt) for prompt in own]).expand(R, -1)
            oracle = decoding.Cached(models.spec, models.params, T)
            n = len(own) * repetitions
            if candidates:
                assert verifier is not None
                shape = (R, n * candidates, models.cases * budget)
                rows = decoding.best_of_blocks(
                    oracle,
                    plan,
                    tokens,
                    lengths,
                    lengths + budget,
                    torch.from_numpy(rng.random(shape)),
                    verifier,
                    language.NEWLINE,
                    models.cases,
                    candidates,
                )
                sent.append(np.zeros((R, n), np.int64))
            else:
                draws, chances = (torch.from_numpy(rng.random((R, n, calls))) for _ in range(2))
                rows, back = decoding.decode(oracle, plan, tokens, lengths, lengths + budget, draws, verifier, chances)
                counts = np.zeros((R, n), np.int64)
                np.add.at(counts, (back.replica.numpy(), back.row.numpy()), 1)
                sent.append(counts)
            parts.append(rows)

    def joined(name: str) -> Ints:
        return torch.cat([getattr(part, name) for part in parts], 1).numpy()

    names = ("tokens", "lengths", "prompts", "calls", "erased")
    return Completed(
        **{name: joined(name) for name in names}, backtracks=np.concatenate(sent, 1), repetitions=repetitions
    )


@dataclass(frozen=True)
class Score:
    """MET-CODE of one model, over prompts and repetitions."""

    requested: int
    distinct: int  # distinct pairs of list and value with the right result, pooled over the repetitions of a prompt
    generated: int
    right: int
    calls: int
    erased: int
    backtracks: int
    cumulative: list[tuple[int, int]]  # calls and distinct cases after each repetition of all prompts

    @property
    def accuracy(self) -> float:
        """Return the share of requested cases that came as distinct right ones."""
        return self.distinct / self.requested


def score(models: CaseModels, done: Completed, replica: int) -> Score:
    """Return the metrics of a run of one model."""
    found: dict[int, set[tuple[tuple[int, ...], int]]] = {}
    generated = right = calls = 0
    rows = done.lengths.shape[1]
    cumulative = []
    for repetition in range(done.repetitions):
        for prompt, row in enumerate(range(repetition, rows, done.repetitions)):
            name = name_of(done.tokens[replica, row, : done.prompts[replica, row]])
            cases = language.cases_of(name, models.cases, done.written(replica, row))
            generated += len(cases)
            right += sum(ok for _, _, ok in cases)
            found.setdefault(prompt, set()).update((digits, value) for digits, value, ok in cases if ok)
            calls += int(done.calls[replica, row])
        cumulative.append((calls, sum(map(len, found.values()))))
    return Score(
        rows * models.cases,
        sum(map(len, found.values())),
        generated,
        right,
        calls,
        int(done.erased[replica].sum()),
        int(done.backtracks[replica].sum()),
        cumulative,
    )


@dataclass
class _Lines:
    """What is known of lines that were read before: whether a whole one is right, a started one can still be."""

    whole: dict[tuple[str, tuple[int, ...]], bool] = field(default_factory=dict)
    started: dict[tuple[str, tuple[int, ...]], bool] = field(default_factory=dict)


def ground_truth(cases: int) -> verifiers.Known:
    """Return the process verifier of documents (Definition 3.1.3): K right lines of APPEND, followed by anything."""
    lines = _Lines()

    def valid(written: list[int], name: str) -> bool:
        start, done = 0, 0
        while done < cases:
            try:
                end = written.index(language.NEWLINE, start) + 1
            except ValueError:
                part = tuple(written[start:])
                if (name, part) not in lines.started:
                    lines.started[name, part] = language.first_error(name, 1, part) < 0
                return lines.started[name, part]
            line = tuple(written[start:end])
            if (name, line) not in lines.whole:
                reader = language.Reader(name, 1)
                lines.whole[name, line] = all(reader.read(token) for token in line) and reader.done == 1
            if not lines.whole[name, line]:
                return False
            start, done = end, done + 1
        return True

    def right(tokens: Ints, lengths: Ints) -> NDArray[np.bool_]:
        answers = []
        for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
            start = row.index(language.TEST) + 5
            answers.append(valid(row[start:length], name_of(row[:start])))
        return np.array(answers, bool)

    return verifiers.Known(right)


def samples(
    models: CaseModels, done: Completed, replica: int, rng: np.random.Generator, blocks: bool = False
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return prefixes of completions to train verifiers on: tokens (N, T), lengths (N,), and which are right.

    Of a flawed completion the prefix that ends with its first wrong token, and a random earlier one; of a flawless one
    a random prefix (the rule of the authors' release). With ``blocks`` prefixes that end with a line: of a flawed
    completion the one that ends with its first wrong line, and an earlier line if there is one.
    """
    found: list[tuple[int, int, bool]] = []
    for row in range(done.lengths.shape[1]):
        start, written = int(done.prompts[replica, row]), done.written(replica, row)
        name = name_of(done.tokens[replica, row, :start])
        at = language.first_error(name, models.cases, written)
        lines = [place for place, token in enumerate(written) if token == language.NEWLINE][: models.cases]
        wrong = next((place for place in lines if place >= at), -1) if blocks else at
        if at >= 0 and wrong >= 0:
            found.append((row, start + wrong + 1, False))
        earlier = [place for place in (lines if blocks else range(len(written))) if at < 0 or place < at]
        if earlier:
            found.append((row, start + earlier[int(rng.integers(len(earlier)))] + 1, True))
    rows, ends, right = zip(*found, strict=True)
    return done.tokens[replica][list(rows)], np.array(ends, np.int64), np.array(right, bool)


def states(models: CaseModels, replica: int, layer: int, tokens: Ints, lengths: Ints) -> Tensor:
    """Return (N, d) the states of a model in a layer behind the last token of each string."""
    name = decoder.state_names(models.spec)[layer]
    own = {key: value[replica : replica + 1] for key, value in models.params.items()}
    found = []
    with torch.no_grad():
        for start in range(0, len(tokens), 100):
            part = slice(start, start + 100)
            ids = torch.from_numpy(tokens[part][:, : int(lengths[part].max())])[None]
            _, recorded = decoder.forward(models.spec, own, own["head.W"], ids, record=[name])
            found.append(recorded[name][0, torch.arange(ids.shape[1]), torch.from_numpy(lengths[part] - 1)])
    return torch.cat(found)
