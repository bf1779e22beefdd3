"""The carry of an addition is a flip-flop (Liu 2024, section 3.2.2 and Figure 3.2; chapter 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.kit.streams import stream
from pipeline.kit.theory_rows import exceptions, row
from pipeline.studies.flipflop.constructions import CONTROL, ERRATUM, judged
from pipeline.studies.flipflop.exact import recognisers as exact
from schemas import theory

if TYPE_CHECKING:
    from pipeline.studies.flipflop.params import Theory

HERE = "Liu 2024, section 3.2.2, Figure 3.2"
PLACES = 20


def check(entry: Theory, key: str, seed: int) -> pl.DataFrame:
    """Return rows of `schemas.theory.Theory` on carries."""
    made = [
        *judged("carries", [*_random(entry, stream(seed, entry.study, key)), *_long()]),
        *judged("operand", _operand()),
    ]
    return theory.rows(entry.study, key, HERE, made)


def _random(entry: Theory, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    count = 1250 * entry.draws
    digits = rng.integers(0, 10, (2, count, PLACES + 1))
    digits *= np.arange(PLACES + 1) < rng.integers(1, PLACES + 1, (2, count, 1))  # of 1 to 20 places, units first
    carry = exact.carries(*digits)
    size = f"{count} random pairs of up to {PLACES} digits"
    before = np.concatenate([np.zeros((count, 1), int), carry[:, :-1]], 1)
    sums = (digits.sum(0) + before) % 10
    place = [10**i for i in range(PLACES + 1)]
    numbers = [
        [sum(d * p for d, p in zip(row, place, strict=True)) for row in part.tolist()] for part in (*digits, sums)
    ]
    wrong = [a + b != total for a, b, total in zip(*numbers, strict=True)]
    yield row(
        "carries.sums", "Sums with the state of a flip-flop as carry: wrong ones", size, exceptions(wrong), "<=", 0
    )
    total = digits.sum(0)
    plain = np.concatenate([np.zeros((count, 1), int), (total[:, :-1] >= 10).astype(int)], 1)
    yield row(
        "carries.memory",
        "Without memory, carrying where the place before reaches 10 by itself: share of wrong sums",
        size,
        float(((total + plain) % 10 != sums).any(1).mean()),
        ">=",
        0.05,
        source=CONTROL,
    )


def _long() -> Iterator[dict[str, Any]]:
    """Yield that a carry can depend on every digit, as the caption says."""
    runs = [(exact.added("5" + "9" * n, "0" + "0" * (n - 1) + "1"), str(6 * 10**n)) for n in range(1, 201)]
    yield row(
        "carries.long",
        "A carry that is kept through a run of nines changes the first digit: wrong sums",
        "runs of 1 to 200 nines",
        sum(result != truth for result, truth in runs),
        "<=",
        0,
    )


def _operand() -> Iterator[dict[str, Any]]:
    """Yield which second operand gives the answer that is printed in Figure 3.2 and in Table 3.2."""
    first, answer = "9991999919909993", "16101199110900090"
    for form, second, comparison, bound in (
        ("printed", "610919910990097", ">=", 1),
        ("corrected", "6109199190990097", "<=", 0),
    ):
        where = "Figure 3.2" if form == "printed" else "Table 3.2"
        wrong = exact.added(first, second) != answer
        yield row(
            f"operand.{form}",
            f"With the second operand of {where} the sum is not the printed answer: 1 if so",
            f"{first} + {second}",
            float(wrong),
            comparison,
            bound,
            form=form,
            detail=f"sum {int(first) + int(second)}, printed answer {answer}",
            erratum=ERRATUM.format("addition-operand"),
        )
