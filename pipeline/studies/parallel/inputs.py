"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import SandglassError
from pipeline.languages import synmt
from pipeline.models.ising import pairwise, transformer
from pipeline.models.parallel import translator
from pipeline.studies.parallel.scheme_runs import contexts

HIDDEN = "_"
PAIRWISE, TRANSFORMER = "ising/pairwise", "ising/transformer"


def encode(entry: dict[str, Any], *items: Any) -> NDArray[np.int64]:
    """Return what the models of a run read.

    Of an Ising model (B,) numbers of states such as ``+-++``. Of a masked Transformer (B,) what is asked of it: pairs
    of what it sees and what it is asked for, such as ``("+__-", "+-+-")``. Of a translator (B, 2, T) pairs of source
    words and target tokens, the columns ``src`` and ``tgt`` of its dataset, with -1 and 0 behind their ends.

    Raises SandglassError for anything else.

    >>> encode({"model": "ising/pairwise"}, "----", "+--+").tolist()
    [0, 9]
    >>> encode({"model": "parallel/translator"}, ([3, 7], [8, 12, 1])).tolist()
    [[[3, 7, -1], [8, 12, 1]]]
    """
    try:
        if entry["model"] == PAIRWISE:
            return np.array([_state(item) for item in items], np.int64)
        if entry["model"] == TRANSFORMER:
            return np.array([_asked(entry["k"], *item) for item in items], np.int64)
        return _pairs(items)
    except (KeyError, TypeError, ValueError):
        wanted = {
            PAIRWISE: "states such as '+-++' of one number of spins",
            TRANSFORMER: f"pairs of what is seen and a state that fits it, {entry.get('k')} of its spins hidden, such "
            "as ('+__-', '+-+-') of two",
        }.get(entry["model"], "pairs of source words and target tokens, lists of numbers")
        shown = ", ".join(map(repr, items[:3])) or "nothing"
        raise SandglassError(f"cannot encode {shown}: models of this run read {wanted}") from None


def _state(text: str) -> int:
    if not text or {*text} - {"+", "-"}:
        raise ValueError(text)
    return int(text.replace("-", "0").replace("+", "1"), 2)


def _asked(k: int, seen: str, state: str) -> int:
    fits = len(seen) == len(state) and all(a in (HIDDEN, b) for a, b in zip(seen, state, strict=True))
    if not fits or seen.count(HIDDEN) != k:
        raise ValueError(seen)
    row = [transformer.MASKED if sign == HIDDEN else int(sign == "+") for sign in seen]
    return contexts(k)[2].tolist().index(row) * 2 ** len(state) + _state(state)


def _pairs(items: tuple[tuple[Sequence[int], Sequence[int]], ...]) -> NDArray[np.int64]:
    size = max(len(part) for item in items for part in item)
    found = np.full((len(items), 2, size), synmt.NONE, np.int64)
    found[:, 1] = synmt.PAD
    for row, (words, tokens) in zip(found, items, strict=True):
        row[0, : len(words)] = words
        row[1, : len(tokens)] = tokens
    return found


def checked(spec: Any, inputs: Tensor) -> Tensor:
    """Return ``inputs`` as a model of the shape ``spec`` reads them. Raises SandglassError if they do not fit it."""
    translates = isinstance(spec, translator.Spec)
    shape = "(B, 2, T)" if translates else "(B,)"
    if inputs.is_floating_point() or inputs.ndim != len(shape.split(",")) - (not translates):
        raise SandglassError(f"expected integers of shape {shape}, got {inputs.dtype} of shape {tuple(inputs.shape)}")
    if translates:
        words, tokens = inputs.unbind(1)
        lexicon = _lexicon(spec)
        if not ((words >= synmt.NONE) & (words < lexicon.words)).all() or (words[:, 0] == synmt.NONE).any():
            raise SandglassError(f"expected words 0 to {lexicon.words - 1}, and -1 behind the end of a sentence")
        if not ((tokens >= 0) & (tokens < spec.vocabulary)).all():
            raise SandglassError(f"expected target tokens 0 to {spec.vocabulary - 1}")
    return inputs.long()


def _lexicon(spec: translator.Spec) -> synmt.Lexicon:
    return synmt.Lexicon((spec.vocabulary - synmt.SPECIAL) // (synmt.WORDS + synmt.TOKENS))


def forward(
    spec: Any, params: dict[str, Tensor], table: Tensor, inputs: Tensor, record: Collection[str]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return (R, B) log weights of states, or (R, B, T, V) logits of the target tokens, 0 where there is none; and
    what is recorded. A model that decodes word by word reads the target as it is: BOS first, to have all it predicts.

    Raises SandglassError for inputs outside what the model knows, and for a name that it cannot record.
    """
    if not isinstance(spec, translator.Spec):
        module = transformer if isinstance(spec, transformer.Spec) else pairwise
        count = len(table) * getattr(spec, "outputs", 1)
        if inputs.numel() and not 0 <= int(inputs.min()) <= int(inputs.max()) < count:
            raise SandglassError(f"expected numbers 0 to {count - 1}, got {int(inputs.min())} to {int(inputs.max())}")
        return module.forward(spec, params, table, inputs, record)
    words, target = inputs.unbind(2)
    source = torch.from_numpy(np.stack([_lexicon(spec).source(each.cpu().numpy()) for each in words])).to(inputs.device)
    memory, recorded = translator.encode(spec, params, source[..., : spec.positions], record)
    (logits, at), later = translator.decode(spec, params, target, memory, record)
    R, B, T = target.shape
    spread = logits.new_zeros(R, B * T, spec.vocabulary)
    spread.scatter_(1, at[..., None].expand(-1, -1, spec.vocabulary), logits)
    return spread.view(R, B, T, -1), recorded | later


def outputs(spec: Any) -> int:
    """Return how many outputs a model of the shape ``spec`` has."""
    return spec.vocabulary if isinstance(spec, translator.Spec) else 1


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each output stands for.

    >>> labels({"model": "ising/pairwise"}, 1)
    ['log weight of the state']
    >>> labels({"model": "parallel/translator"}, 69)[4:8]
    ['PART', 'token 5', 'token 6', 'token 7']
    """
    if entry["model"] != "parallel/translator":
        return ["log weight of the state"]
    blocks = (outputs - synmt.SPECIAL) // (synmt.WORDS + synmt.TOKENS)
    first = synmt.SPECIAL + synmt.TOKENS * blocks
    tokens = [f"token {number}" for number in range(synmt.SPECIAL, first)]
    words = [f"word {number}" for number in range(synmt.WORDS * blocks)]
    return ["PAD", "EOS", "BOS", "LEN", "PART", *tokens, *words, *["MASK"] * (outputs - first - len(words))]
