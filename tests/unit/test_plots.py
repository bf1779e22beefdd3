"""The kit of figures: what its parts draw, where nothing is drawn, and that no mark goes without its word."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl
import pytest
from figure_words import unsaid

from pipeline.kit import charts, plots

DATA = pl.DataFrame(
    {
        "step": [1, 2, 1, 2],
        "value": [0.5, 0.75, 0.5, 1.0],
        "lo": [0.4, None, 0.4, 0.9],
        "hi": [0.6, None, 0.6, 1.0],
        "label": ["a", "a", "b", "b"],
        "learned": [True, False, True, None],
        "n": [5, 5, 6, 6],
        "interval": ["none", "none", "Student", "Student"],
    }
)
BY = plots.kinds(["a", "b"])
X, Y = plots.steps(), plots.share("value", low=0.5)


def drawn(layers: plots.Layers, *notes: str) -> dict[str, Any]:
    chart, _ = plots.figure(layers, DATA, "Values rise", *notes, told="a: 0.75.")
    return charts.specification(chart)


def rows_of(spec: dict[str, Any], layer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["datasets"][(layer.get("data") or spec["data"])["name"]]
    return found


def test_a_band_is_drawn_where_there_is_an_interval() -> None:
    spec = drawn(plots.lines(DATA, X, Y, BY, band=("lo", "hi")))
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["area", "line"]
    assert len(rows_of(spec, spec["layer"][0])) == 3
    alone = drawn(plots.lines(DATA.with_columns(lo=None, hi=None), X, Y, BY, band=("lo", "hi")))
    assert [layer["mark"]["type"] for layer in alone["layer"]] == ["line"]  # an axis cannot span an empty layer


@pytest.mark.parametrize(
    ("layers", "notes", "expected"),
    [
        (plots.lines(DATA, X, Y, BY), [], []),
        (
            plots.lines(DATA, X, Y, BY, band=("lo", "hi")),
            [],
            ["a band has no word", "intervals do not say of how many"],
        ),
        (
            plots.lines(DATA, X, Y, BY, band=("lo", "hi")),
            ["bands: 95 % intervals"],
            ["intervals do not say of how many"],
        ),
        (plots.lines(DATA, X, Y, BY, band=("lo", "hi")), ["bands: 95 % intervals over 5 models"], []),
        (plots.points(DATA, X, Y, BY, ends=("lo", "hi")), ["5 models"], ["bars have no word"]),
        (plots.points(DATA, X, Y, BY, hollow="learned"), [], ["hollow points have no word"]),
        (plots.rule(Y, 0.5), [], ["dashes have no word"]),
        (plots.rule(Y, 0.5), ["Dotted: chance"], []),
        (plots.rule(Y, 0.5, "chance"), [], []),  # named where it is drawn
        (plots.lines(DATA, X, Y, charts.BLUE, strokeDash=[4, 3]), [], ["dashes have no word"]),
    ],
)
def test_no_mark_goes_without_its_word(layers: plots.Layers, notes: list[str], expected: list[str]) -> None:
    assert unsaid(drawn(layers, *notes), "") == expected
    assert unsaid(drawn(layers, *notes), "Bands and bars over 5 models; hollow: not learned; dashed: chance.") == []


def test_models_that_did_not_learn_are_hollow() -> None:
    fill = drawn(plots.points(DATA, X, Y, BY, hollow="learned"))["layer"][0]["encoding"]["fill"]
    assert fill["condition"] == {"test": "datum['learned'] === false", "value": "white"}  # not where it is unknown


def test_shares_have_ticks_at_guessing_and_at_one() -> None:
    assert Y.values == [0.5, 0.75, 1]
    axis = Y.at(alt.Y).to_dict()["axis"]
    assert axis["values"] == [0.5, 0.75, 1] and "format" not in axis  # which would print 0.8 for 0.75
    assert plots.share("value").values == [0, 0.25, 0.5, 0.75, 1]


def test_log_axes_end_at_decades() -> None:
    axis = plots.log("value", "loss", [0.003, 20.0, 0.0])
    assert axis.domain == [0.001, 100.0] and axis.values == [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
    assert plots.between([30, 2000]) == [50, 100, 200, 500, 1000, 2000]


def test_nothing_to_draw_is_said_under_the_topic() -> None:
    @plots.drawn("Which checkpoint teaches")
    def figure(rows: pl.DataFrame) -> charts.Figure:
        """Caption."""
        return plots.figure(plots.lines(plots.some(rows, "no student was trained"), X, Y), rows, "Found")

    chart, data = figure(DATA[:0])
    assert data.rows() == [("no student was trained",)]
    assert charts.specification(chart)["description"] == "Which checkpoint teaches: no student was trained."
    assert figure.__doc__ == "Caption." and figure(DATA)[1].equals(DATA)
    with pytest.raises(plots.NothingError):
        plots.grid([])


def test_titles_are_broken_where_they_would_be_cut() -> None:
    lines = plots.broken("a title of very many words " * 8, plots.WIDE, 15, bold=True)
    assert len(lines) == 3 and " ".join(lines) == ("a title of very many words " * 8).strip()


def test_words_are_those_of_the_data() -> None:
    assert plots.tell(DATA[:2], "{label}: {value:.2f} [{lo:.1f}]") == "a: 0.50 [0.4]; a: 0.75 [–]"
    assert plots.tell(pl.DataFrame({"x": [-1.5]}), "{x:.1f}") == "−1.5"
    assert plots.count(DATA["n"], "model") == "5 to 6 models" and plots.count([1], "model") == "1 model"
    assert plots.spread(DATA, "bands") == "bands: 95 % intervals over models (Student)"
    assert plots.about(679453.0) == "680,000" and plots.about(0.000234) == "0.00023"
