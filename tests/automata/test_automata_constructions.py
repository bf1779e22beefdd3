"""Constructions as weights: exact where corrected, refused where no group is solvable, of the sizes that are
claimed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.errors import SandglassError
from pipeline.languages import automata
from pipeline.languages.automata import automaton, every_input, generated, simulate
from pipeline.models.automata import exact
from pipeline.studies.automata import names
from pipeline.studies.automata.constructions import wrong
from pipeline.studies.automata.theory import cascades, counters, gadgets, gridworld, groups, prefix

NAN = float("nan")
MODULES: dict[str, Any] = {
    "gadgets": gadgets,
    "prefix": prefix,
    "counters": counters,
    "groups": groups,
    "cascades": cascades,
    "gridworld": gridworld,
}


@pytest.mark.parametrize("module", MODULES)
def test_every_check_holds(module: str) -> None:
    entry = SimpleNamespace(study="automata", sequences=8, length=12, short=5)
    checks = MODULES[module].check(entry, f"automata-{module}", 0)
    assert f"automata-{module}" in names.THEORY
    assert checks.filter(~checks["passed"])["check"].to_list() == []


@pytest.mark.parametrize(
    ("name", "depth", "dim", "heads"),
    [("s3", 4, 5, 2), ("d8", 7, 9, 4), ("q8", 7, 9, 4), ("a4", 7, 12, 6), ("s4", 10, 23, 12)],
)
def test_sizes_of_solvable_groups(name: str, depth: int, dim: int, heads: int) -> None:
    """The table of chapter 5.8."""
    group = generated(automaton(name).maps)
    sizes = exact.group_network(exact.solvable(group), [0], 20, 4, name).network.sizes
    assert (sizes["depth"], sizes["dim"], sizes["heads"], sizes["head_dim"]) == (depth, dim, heads, 1)


@pytest.mark.parametrize("name", ["a5", "s5"])
def test_groups_that_are_not_solvable_are_refused(name: str) -> None:
    with pytest.raises(SandglassError, match="is not solvable: a factor of 60 elements") as error:
        exact.solvable(generated(automaton(name).maps))
    assert "\n" not in str(error.value)


def test_near_misses_are_seen() -> None:
    """A distance of an output from an integer is reported, and NaN is no distance of 0."""
    assert exact.rounded(np.array([1.0, 2.2]))[1] == pytest.approx(0.2)
    assert np.isnan(exact.rounded(np.array([1.0, np.nan]))[1])


@pytest.mark.parametrize("name", ["c2", "grid4", "abab", "d6"])
def test_logarithmic_depth_on_all_inputs(name: str) -> None:
    known = automaton(name)
    words = every_input(known.next.shape[1], 7)
    built = exact.prefix_composition(known.next, known.q0, 7)
    assert wrong(built, words, simulate(known, words))[0] == 0 and len(built.network.layers) == 3


def test_the_cascade_as_a_network_on_all_inputs() -> None:
    for name in ("abab", "grid4"):
        known = automaton(name)
        words = every_input(2, 8)
        built = exact.cascade_network(automata.cascade(known), 2, 8)
        errors, off = wrong(built, words, simulate(known, words))
        assert errors == 0 and off < 1e-6


def test_bad_components_are_one_line() -> None:
    with pytest.raises(SandglassError, match="is neither a permutation nor a reset"):
        exact.one_level([(0, 0, 1)], 0)
    with pytest.raises(SandglassError, match="is not cyclic"):
        exact.cyclic(generated([(1, 0, 2), (1, 2, 0)]))


def test_sines_and_pooling_are_exact_and_of_the_claimed_size() -> None:
    """Footnotes 14 to 16 and 23: widths without T, and a second MLP of constant depth."""
    words = every_input(2, 7)
    for n in (2, 5):
        built = exact.counter(n, 1, 7, periodic=True)
        assert wrong(built, words, simulate(automaton(f"c{n}"), words, 1))[0] == 0
        assert built.network.sizes["mlp_width"] == n
    for form in ({"least": "pool"}, {"least": "pairs"}, {"least": "pool", "periodic": True}):
        built = exact.grid_network(4, 7, **form)  # type: ignore[arg-type]
        assert wrong(built, 2 * words, automata.grid_states(4, 2 * words - 1))[0] == 0
        hidden = len(built.network.layers[1].mlp) - 1
        assert hidden == (4 if form["least"] == "pool" else 3 + 3)


def test_a_wreath_product_has_the_group_law_of_its_source() -> None:
    simulator = exact.wreath(exact.cyclic(generated([(1, 0)])), 2)
    assert simulator.group.orders() == generated(automaton("d8").maps).orders()
    assert len(exact.solvable(generated(automaton("q8").maps), counters=True).stages) == 4


@pytest.mark.parametrize("module", [name for name in MODULES if name != "groups"])  # those are slow to build
def test_no_row_holds_that_read_an_output_which_is_none(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row reads the outputs of networks if it would measure something else with other ones."""
    entry = SimpleNamespace(study="automata", sequences=4, length=12, short=4)
    right = exact.Network.__call__

    def made(change: float) -> pl.DataFrame:
        def spoilt(self: exact.Network, x_NxTxD: np.ndarray, dtype: type = np.float64) -> np.ndarray:
            return right(self, x_NxTxD, dtype) + change  # type: ignore[no-any-return]

        monkeypatch.setattr(exact.Network, "__call__", spoilt)
        checks: pl.DataFrame = MODULES[module].check(entry, f"automata-{module}", 0)
        return checks

    before, other, none = (made(change) for change in (0.0, 0.7, NAN))
    assert before["passed"].all()
    read = before["check"].filter(other["measured"].ne_missing(before["measured"]))
    assert len(read) > 4
    assert none.filter("passed", pl.col("check").is_in(read.to_list()))["check"].to_list() == []
