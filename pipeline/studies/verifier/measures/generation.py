"""Prompts completed by all models, in parts that fit a cache; what came of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.languages import dyck_strings as language
from pipeline.models.llama import decoder, decoding, verifiers
from pipeline.models.llama.decoding import Plan, Verifier

ROWS = 3000  # of all models together that are decoded at once
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Models:
    """R language models, and how many brackets a string of theirs has."""

    spec: decoder.Spec
    params: dict[str, Tensor]
    brackets: int

    @property
    def count(self) -> int:
        """Return R."""
        return int(self.params["head.W"].shape[0])

    @property
    def limit(self) -> int:
        """Return how many tokens a string has, begin and end included."""
        return self.brackets + 2

    def one(self, replica: int) -> Models:
        """Return one of them."""
        return Models(
            self.spec, {name: value[replica : replica + 1] for name, value in self.params.items()}, self.brackets
        )


@dataclass(frozen=True)
class Completions:
    """What became of prompts: (R, N) each, N = prompts times runs, the runs of a prompt one after the other."""

    tokens: Ints  # (R, N, T)
    lengths: Ints
    prompts: Ints  # lengths
    calls: Ints
    erased: Ints
    quota: Ints  # what is left
    right: NDArray[np.bool_]  # whole, balanced and ended
    sent_back: list[tuple[int, int, list[int]]]  # model, row, what was written before it was erased

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Return (R, N) whether the calls are the tokens of the completion and those that were erased."""
        return self.calls == self.lengths - self.prompts + self.erased


def complete(
    models: Models,
    plan: Plan,
    tokens_RxNxT: Ints,
    lengths_RxN: Ints,
    rng: np.random.Generator,
    calls: int,
    runs: int = 1,
    verifier: Verifier | None = None,
) -> Completions:
    """Complete prompts ``runs`` times each by every model; rows of one model or R, which all models share or not.

    The draws are those of ``rng``, ``calls`` for each row whatever the plan, so that plans with the same numbers meet
    the same chances. Raises SandglassError for a prompt that is no prefix of any string.
    """
    R = models.count
    check_prompts(tokens_RxNxT.reshape(-1, tokens_RxNxT.shape[-1]), lengths_RxN.reshape(-1), models.brackets)
    tokens = torch.from_numpy(np.ascontiguousarray(tokens_RxNxT)).expand(R, -1, -1)
    lengths = torch.from_numpy(np.ascontiguousarray(lengths_RxN)).expand(R, -1)
    limits = torch.full_like(lengths, models.limit)
    parts: list[tuple[decoding.Rows, decoding.Backtracks]] = []
    size = max(1, ROWS // (R * runs))
    starts = range(0, lengths.shape[1], size)
    with torch.no_grad():
        for start in starts:
            part = slice(start, start + size)
            n = lengths[:, part].shape[1] * runs
            draws, chances = (torch.from_numpy(rng.random((R, n, calls))) for _ in range(2))
            oracle = decoding.Cached(models.spec, models.params, models.limit)
            prompts = (tokens[:, part], lengths[:, part], limits[:, part])
            parts.append(decoding.decode(oracle, plan, *prompts, draws, verifier, chances))
    rows = [part[0] for part in parts]

    def joined(name: str) -> Ints:
        return torch.cat([getattr(part, name) for part in rows], 1).numpy()

    written, ends = joined("tokens"), joined("lengths")
    flat = written.reshape(-1, written.shape[-1]), ends.reshape(-1)
    return Completions(
        written,
        ends,
        joined("prompts"),
        joined("calls"),
        joined("erased"),
        joined("quota"),
        language.is_complete(*flat, models.brackets).reshape(ends.shape),
        [entry for start, (_, logged) in zip(starts, parts, strict=True) for entry in _listed(logged, start * runs)],
    )


def _listed(logged: decoding.Backtracks, first: int) -> list[tuple[int, int, list[int]]]:
    tokens, lengths = logged.tokens.tolist(), logged.lengths.tolist()
    where = zip(logged.replica.tolist(), logged.row.tolist(), strict=True)
    return [(r, first + row, t[:n]) for (r, row), t, n in zip(where, tokens, lengths, strict=True)]


def check_prompts(tokens_NxT: Ints, lengths_N: Ints, brackets: int) -> None:
    """Raise SandglassError if a prompt is no prefix of a balanced string, which no decoder could complete."""
    at, kind = language.first_errors(tokens_NxT, lengths_N, brackets)
    if (bad := np.flatnonzero((at >= 0) | (tokens_NxT[:, 0] != language.BEGIN))).size:
        shown = language.text(tokens_NxT[bad[0], : lengths_N[bad[0]]])
        why = language.ERRORS[kind[bad[0]]] if at[bad[0]] >= 0 else "it does not begin with B"
        raise SandglassError(
            f"prompt {shown!r} is no prefix of a balanced string of {brackets} brackets ({why}); nothing completes it"
        )


def ground_truth(brackets: int) -> verifiers.Known:
    """Return the process verifier of balanced strings (Definition 3.1.3)."""
    return verifiers.Known(lambda tokens, lengths: language.completable(tokens, lengths, brackets))


def states(models: Models, layer: int, tokens_NxT: Ints, lengths_N: Ints) -> Tensor:
    """Return (R, N, d) the states of every model in a layer behind the last token of each string."""
    name = decoder.state_names(models.spec)[layer]
    found = []
    with torch.no_grad():
        for start in range(0, len(tokens_NxT), 250):
            ids = torch.from_numpy(tokens_NxT[start : start + 250])[None]
            last = torch.from_numpy(lengths_N[start : start + 250] - 1)
            _, recorded = decoder.forward(models.spec, models.params, models.params["head.W"], ids, record=[name])
            found.append(recorded[name][:, torch.arange(len(last)), last])
    return torch.cat(found, 1)
