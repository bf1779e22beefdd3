"""What reads a number that is none must not hold: shared by the tests of the studies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.claims import FAILS

Tables = dict[str, pl.DataFrame]
Checked = Callable[[str], pl.DataFrame]  # the theory checks of an entry or a module


def assert_gates_fall(judged: Callable[[Tables], dict[str, Any]], tables: Tables, name: str) -> None:
    """Of a comparison without a value, or without the lower end of its interval, every gate that reads it fails."""
    before = judged(tables)
    for column in ("value", "lo"):
        spoilt = pl.when(pl.col("comparison") == name).then(float("nan")).otherwise(pl.col(column)).alias(column)
        after = judged(tables | {"comparisons": tables["comparisons"].with_columns(spoilt)})
        fallen = {gate for gate, judgement in after.items() if judgement[1] == FAILS}
        assert fallen and {gate for gate in before if after[gate] != before[gate]} == fallen


def assert_no_row_holds(
    monkeypatch: pytest.MonkeyPatch,
    before: pl.DataFrame,
    checked: Callable[[], pl.DataFrame],
    place: tuple[Any, str],
    change: float,
    parts: int | None = None,
) -> None:
    """No theory row holds that reads the output of a function, ``place``, where that is none.

    A row reads an output if it would measure something else than ``before`` with another one, changed by ``change``.
    Of an output in several parts the first ``parts`` are spoilt, or all.
    """
    where, name = place
    right = getattr(where, name)

    def made(change: float) -> pl.DataFrame:
        def spoilt(*args: Any, **kwargs: Any) -> Any:
            output = right(*args, **kwargs)
            if isinstance(output, tuple):
                own = output[:parts]
                return (*(part * (1 + change) + change for part in own), *output[len(own) :])
            return output * (1 + change) + change

        monkeypatch.setattr(where, name, spoilt)
        return checked()

    other, none = made(change), made(float("nan"))
    read = before["check"].filter(other["measured"].ne_missing(before["measured"]))
    assert len(read) > 0
    assert none.filter("passed", pl.col("check").is_in(read.to_list()))["check"].to_list() == []
