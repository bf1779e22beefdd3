"""What trained models of this study read and predict, for whoever uses one (`pipeline.load_run`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import SandglassError
from pipeline.languages import dyck


def encode(entry: dict[str, Any], *strings: str) -> NDArray[np.int64]:
    """Return what the model of a run reads for strings over ``[](){}<>``, one row each, (B, T + 1).

    The start token 0 comes first, as in training. Then tokens, 2t-1 and 2t for the brackets of type t; a run
    on pair embeddings reads symbols, 1 + (token-1) D + (pair depth - 1), in their place. Shorter rows end in
    0: attention is causal, so the positions before do not depend on it.

    Raises SandglassError for what is no bracket of the run's language and, of a run on symbols, for what
    is no prefix of it, because brackets outside it have no symbol.

    >>> encode({"k": 2, "depth": 4, "embedding": "token"}, "[[]]()", "[").tolist()
    [[0, 1, 1, 2, 2, 3, 4], [0, 1, 0, 0, 0, 0, 0]]
    """
    k, depth = entry["k"], entry["depth"]
    brackets = "".join(dyck.vocabulary(min(k, 4))[1:])
    if odd := {char for string in strings for char in string if char not in brackets}:
        raise SandglassError(f"cannot encode {''.join(sorted(odd))!r}: this model reads {brackets}")
    if not strings:
        raise SandglassError("nothing to encode: give one string or more")
    ids: NDArray = dyck.parse(*strings)
    if entry["embedding"] != "token":
        valid = dyck.is_valid(ids, k, depth)
        if not valid.all():
            wrong = strings[int(np.argmin(valid))]
            raise SandglassError(f"cannot encode {wrong!r}: this model reads prefixes of Dyck with k={k}, D={depth}")
        ids = dyck.symbols(ids, depth)
    return dyck.with_start(np.where(ids == dyck.PADDING, dyck.START, ids)).astype(np.int64)


def labels(entry: dict[str, Any], outputs: int) -> list[str]:
    """Return what each of the model's ``outputs`` stands for: the tokens, without the start token, which is
    never the next one; with it where a model copies what it reads.

    >>> labels({"k": 2}, 4)
    ['[', ']', '(', ')']
    >>> labels({"k": 2}, 5)
    ['start', '[', ']', '(', ')']
    """
    return dyck.vocabulary(entry["k"])[-outputs:]
