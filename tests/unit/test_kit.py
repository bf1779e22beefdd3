"""No NaN passes a reduction; evidence for gates says what is missing."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import SandglassError
from pipeline.kit import evidence, verdicts
from pipeline.kit.conditions import within
from pipeline.kit.evidence import Part
from pipeline.kit.extremes import column_max, column_min, largest, smallest
from pipeline.kit.verdicts import Gate, Published
from schemas.claims import FAILS, OWN
from schemas.theory import rows

NUMBERS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20)


@settings(deadline=None)  # machines may be busy
@given(NUMBERS, st.integers(0, 20))
def test_one_nan_makes_every_extreme_nan(numbers: list[float], place: int) -> None:
    assert largest(numbers) == max(numbers) and smallest(*numbers) == min(numbers)
    spoilt = [*numbers[:place], math.nan, *numbers[place:]]
    assert math.isnan(largest(spoilt)) and math.isnan(smallest(0.0, spoilt)) and math.isnan(largest(*spoilt))
    for values in (spoilt, [None if math.isnan(v) else v for v in spoilt]):  # tables store NaN as null
        frame = pl.DataFrame({"x": values}, schema={"x": pl.Float64})
        assert all(math.isnan(frame.select(of("x")).item()) for of in (column_max, column_min))


def test_extremes_of_nothing() -> None:
    with pytest.raises(ValueError):
        largest([])
    assert pl.DataFrame({"x": []}, schema={"x": pl.Float64}).select(column_max("x")).item() is None


def test_a_check_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SandglassError, match="claim 1, g: no theory check is named lemma-7"):
        evidence.check_gate({}, "1", "g", "lemma-7", "s")


def test_one_row_takes_interval_and_counts_where_the_table_has_them() -> None:
    table = pl.DataFrame({"run": ["a", "b"], "value": [1.0, 2.0], "lo": [0.5, 1.5], "hi": [1.5, 2.5], "n": [3, 4]})
    measured, _ = evidence.one_row(table, "no such run", run="b")
    assert measured is not None and (measured.value, measured.lo, measured.hi, measured.n) == (2.0, 1.5, 2.5, 4)
    assert evidence.one_row(table, "no such run", run="c") == (None, "no such run")


def test_the_bound_of_a_gate_is_stated() -> None:
    gate = Gate("1", "g", "p", "s", within(2.0, 0.5), None, "why", published=Published(1.0, 3.0))
    row = verdicts.table([gate], {"1": "It is so."}, "s", "quick", "h").row(0, named=True)
    assert row["bound"] == "value >= 1.5 and value <= 2.5"
    assert (row["published"], row["published_high"]) == (1.0, 3.0)


def parts() -> pl.DataFrame:
    """Two parts of claim 22, of which one has a check that fails, and a check of no claim."""
    made = [
        {
            "check": f"c-{number}",
            "statement": "s",
            "size": "",
            "measured": value,
            "comparison": "<=",
            "bound": 1.0,
            "claim": claim,
            "part": part,
        }
        for number, (value, claim, part) in enumerate(
            [(0.5, "22", "exact"), (2.0, "22", "exact"), (math.nan, "22", "broken"), (0.1, "", "")]
        )
    ]
    return rows("s", "s-entry", "Paper, section 1", made)


def test_a_part_counts_the_checks_that_carry_it() -> None:
    said = {"exact": Part("they are exact", "A"), "broken": Part("they break", "B", OWN)}
    exact, broken = evidence.part_gates(parts(), "22", said)
    assert exact.measured is not None and (exact.measured.value, exact.measured.n) == (1, 2)
    assert exact.verdict("quick")[0] == broken.verdict("quick")[0] == FAILS and broken.kind == OWN
    assert exact.predicate == "checks that do not hold (they are exact): at most 0"


def test_parts_and_gates_belong_together() -> None:
    with pytest.raises(SandglassError, match="a part 'broken', which no gate judges"):
        list(evidence.part_gates(parts(), "22", {"exact": Part("they are exact", "A")}))
    with pytest.raises(SandglassError, match="no theory check belongs to the part 'other'"):
        said = {name: Part("so", "A") for name in ("exact", "broken", "other")}
        list(evidence.part_gates(parts(), "22", said))
