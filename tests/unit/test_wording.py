"""Numbers are found in a text, and names are not taken for numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.audit.wording import RESIDUAL, Number, read

FORMS = st.sampled_from(["{:.2f}", "{:.6f}", "{:.3g}", "{:.2e}", "{:,.1f}", "{:g}", "{:+.2f}"])
VALUES = st.floats(-1e6, 1e6).filter(lambda value: value == 0 or abs(value) > 1e-5)
WORDS = st.sampled_from(["ρ =", "mean", "(k=2)", "layer", "·[[]]", "dyck-k2-d4", "–", "M1:", "16d", "a_1", "|p - p*|"])
BEHIND = st.sampled_from(["", ".", ",", ";", ")", "]", " %", "%", " of all"])


def values(text: str) -> list[float]:
    return [number.value for number in read(text).numbers]


@given(VALUES, FORMS, WORDS, BEHIND)
def test_a_printed_number_is_read_back(value: float, form: str, before: str, behind: str) -> None:
    """As the value that was printed, to half of its last place, whatever stands around it."""
    printed = form.format(value)
    for text in (printed, printed.replace("-", "−")):
        found = read(f"{before} {text}{behind}").numbers
        assert found[-1].value == float(printed.replace(",", ""))
        assert found[-1].prints(value)
        assert found[-1].unit > 0
        assert not found[-1].prints(value + 2 * found[-1].unit)


@given(VALUES, VALUES, FORMS)
def test_a_share_is_that_of_the_values_but_for_what_printing_rounds_off(a: float, b: float, form: str) -> None:
    one, other = (read(f"x {form.format(value)} y").numbers[0] for value in (a, b))
    share, larger = one.share(other), max(abs(one.value), abs(other.value))
    assert share == other.share(one) >= 0
    assert (share == 0) or larger > RESIDUAL
    if larger > RESIDUAL:
        rounded = 0 if one.whole and other.whole else min(one.unit, other.unit)
        assert abs(share * larger - max(0, abs(one.value - other.value) - rounded)) <= 1e-8 * larger


@given(st.lists(st.one_of(VALUES.map("{:.3g}".format), WORDS), max_size=8).map(" ".join))
def test_nothing_of_a_text_is_lost(text: str) -> None:
    """Words and numbers together are the text again: whatever is changed is in one of the two."""
    found = read(text)
    parts = found.words.split("\0")
    assert len(parts) == len(found.numbers) + 1
    whole = parts[0] + "".join(number + part for number, part in zip(found.printed, parts[1:], strict=True))
    assert whole == text


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    found = read(text)
    assert len(found.numbers) == len(found.printed)
    assert all(number.value == number.value and abs(number.value) < float("inf") for number in found.numbers)


@given(VALUES, VALUES, VALUES, st.sampled_from(["{} [{}, {}]", "ρ = {} [{}, {}].", "({} ({} to {}))", "{} % [{}, {}]"]))
def test_a_value_with_its_interval(value: float, lo: float, hi: float, form: str) -> None:
    ends = sorted([float(f"{lo:.2f}"), float(f"{hi:.2f}")])
    text = form.format(*(f"{each:.2f}".replace("-", "−") for each in (value, *ends)))
    found = read(f"in 3 of 5 {text}")
    assert found.intervals == [(2, 3, 4)]
    assert [found.numbers[i].value for i in (3, 4)] == ends


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("standard: ρ = 0.21 [−0.55, 0.73]", [0.21, -0.55, 0.73]),
        ("4.66e-15, 1e-05, −2E+3, 1e6", [4.66e-15, 1e-05, -2e3, 1e6]),
        ("19,684 of 1,082,000", [19684, 1082000]),
        ("226/1,082 and 0.25,0.5", [226, 1082, 0.25, 0.5]),
        ("12 %, 12%, 87.2", [12, 12, 87.2]),
        ("0.022 (0.004).", [0.022, 0.004]),
        ("dyck-k2-d4, M1, 16d, 3x, x2, a_1, 2-layer, tm-l3, eq-7", []),
        ("version 2.1.3, torch 2.13.0+cpu, 2026-11-26", []),
        ("Figure 10, Figures 2.1 and 2.2, Table 3, eq. (4.5), Theorem 2.1.2, claim 9, § 3.5 to 3.6", []),
        ("Figure 10 shows 0.5", [0.5]),
        ("Table 2.1 0.55", [0.55]),
        ("Figures 1 and 2: 0.3 and 0.4", [0.3, 0.4]),
        ("1e999 and 12345678901234567890 do not fit", []),
        ("1,2", [1, 2]),
        ("[MASK] 1.421", [1.421]),
        ("", []),
    ],
)
def test_what_is_a_number(text: str, numbers: list[float]) -> None:
    assert values(text) == numbers


def test_counts_are_apart_by_one_and_percents_by_more_than_their_rounding() -> None:
    three, four = read("3 of 4").numbers
    assert three.share(four) == pytest.approx(0.25)
    twelve, thirteen, fourteen = read("12 %, 13%, 14 %").numbers
    assert twelve.share(thirteen) == 0 < twelve.share(fourteen)


def test_residues_of_rounding_are_equal_whatever_they_are() -> None:
    none, some, more = read("0 4.66e-15 2.84e-12").numbers
    assert none.share(some) == some.share(more) == 0
    assert none.share(Number(2 * RESIDUAL, 1e-12, False)) > 0.9
    assert none.share(read("0.4").numbers[0]) > 0.7


def test_an_interval_with_its_ends_exchanged_is_none() -> None:
    assert read("0.2 [0.7, 0.1]").intervals == []
