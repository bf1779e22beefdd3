"""What the sets of balanced strings are like: share of kinds, depth, and how rarely the bound on depths bites."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.languages import dyck_strings as language
from pipeline.studies.verifier.datasets import padded
from pipeline.studies.verifier.names import STRINGS


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return a row for each set of strings and of prompts."""
    rows: list[dict[str, Any]] = []
    for (name,), own in context.dataset(STRINGS).group_by("set", maintain_order=True):
        brackets = int(own["brackets"][0])
        tokens, lengths = padded(own["tokens"], brackets + 2)
        used = np.arange(tokens.shape[1]) < lengths[:, None]
        opens = used & np.isin(tokens, language.OPEN)
        closes = used & np.isin(tokens, language.CLOSE)
        depth = (opens.astype(int) - closes).cumsum(1)
        rows.append(
            {
                "set": name,
                "n": len(lengths),
                "mean_brackets": float((opens | closes).sum(1).mean()),
                "kind_0": float((tokens == language.OPEN[0])[used].sum() / opens.sum()),
                "mean_max_depth": float(depth.max(1).mean()),
                "largest_depth": int(depth.max()),
                "above_bound": above(brackets, context.entry.q, context.entry.max_depth),
            }
        )
    return {"string_sets": pl.DataFrame(rows)}


def above(brackets: int, q: float, bound: int) -> float:
    """Return the probability that a string of the law without a bound on depths is ever deeper than ``bound``.

    The kinds of brackets play no part (Remark 3.2.1). By recursion over positions: the law of the depth so far, and
    whether it was above the bound.

    >>> above(4, 0.5, 2), above(4, 0.5, 1)
    (0.0, 0.5)
    """
    law = np.zeros((brackets + 2, 2))
    law[0, 0] = 1.0
    for position in range(1, brackets + 1):
        new = np.zeros_like(law)
        for depth in range(brackets + 1):
            if not law[depth].any():
                continue
            # At depth 0 it must open, at the depth of what is left close (Remark 3.2.1).
            opens = 1.0 if depth == 0 else 0.0 if depth == brackets - position + 1 else q
            deeper = law[depth] * opens
            new[depth + 1] += [0.0, deeper.sum()] if depth + 1 > bound else deeper
            if depth:
                new[depth - 1] += law[depth] * (1 - opens)
        law = new
    return float(law[0, 1])
