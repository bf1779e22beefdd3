"""A measurement that failed (NaN, or null as tables store it) never passes: in theory modules, and in gates."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_nce_study import SEED, compared, context

from pipeline import params
from pipeline.errors import SandglassError
from pipeline.kit.evidence import part_gates
from pipeline.kit.verdicts import Gate
from pipeline.steps.analyse import finished
from pipeline.studies.nce import claims
from pipeline.studies.nce.claims import gauss, landscape, steps
from pipeline.studies.nce.claims.theory import PARTS
from pipeline.studies.nce.comparisons import ONE
from pipeline.studies.nce.exact import exponential_family as log_ratio
from pipeline.studies.nce.names import THEORY
from pipeline.studies.nce.theory import barrier
from schemas.claims import FAILS, NOT_RUN
from schemas.nce.tables import NCE, NGD, S_BEST, S_LOSS, SCHEMAS
from schemas.theory import rows as theory_rows

Tables = dict[str, pl.DataFrame]
NAN = float("nan")
# What chooses rows; all other numbers are measured.
KEYS = {"R", "r", "eta", "first_R", "last_R"}
# The columns that gates read of each table, and the functions that read them. Steps are whole numbers; -1 is censored.
Gates = Callable[[Any], Iterable[Gate]]
READ: dict[str, tuple[list[str], list[Gates]]] = {
    "landscape": (
        ["loss_init", "loss_opt", "asym_loss", "bc", "sig_max", "lemma46_bound", "kappa"],
        [landscape.loss_range, landscape.curvature],
    ),
    "hessian_q": (["h11", "h12", "h22", "sig_max"], [landscape.at_noise]),
    "annulus": (["kappa_min", "limit"], [landscape.annulus]),
    "steps": (["bound"], [steps.exponential, steps.polynomial, steps.bounded]),
    "rates": (["slope"], [landscape.curvature, steps.exponential, steps.polynomial]),
    "growth_fits": (["aicc"], [steps.exponential]),
    "gauss_selected": (["sd_min_dist"], [gauss.selected]),
}
COMPARED = ["value", "lo", "hi"]  # of comparisons
# Small grids in which every gate finds what it needs.
GRIDS: dict[str, dict[str, Any]] = {
    "nce-landscape": {"means": [0.5, 1, 2, 3, 8, 10, 16, 20], "points": 2001},
    "nce-annulus": {"means": [4, 20], "radii": [0.1, 0.2], "angles": 91},
    "nce-steps": {
        "gd": [2, 3],
        "newton_nce": [2, 3],
        "newton_ence": [2],
        "ngd": [2, 3, 4, 5],
        "bounded": [1, 2],
        "cap": 3000,
        "fitted_ngd": [2, 5],
        "continued": [2, 2.25, 2.5, 2.75, 3, 3.25],
        "compared": [3.25],
    },
}


@pytest.fixture(scope="module")
def made(loaded: params.Params) -> Tables:
    parts: dict[str, list[pl.DataFrame]] = {}
    for key, grid in GRIDS.items():
        run = context(loaded, key, **grid)
        analysis = importlib.import_module(f"pipeline.studies.nce.analysis.{run.entry.module}")
        for name, frame in finished(analysis.analyse(run), SCHEMAS, run).items():
            parts.setdefault(name, []).append(frame)
    tables = {name: pl.concat(frames) for name, frames in parts.items()}
    tables["comparisons"] = compared(-1.0, -2.0, -0.5)
    tables["gauss_selected"] = pl.DataFrame(
        {"dim": ONE, "loss": NCE, "optimizer": NGD, "rule": rule, "n": n, "sd_min_dist": 0.5}
        for rule in (S_LOSS, S_BEST)
        for n in (100, 1000)
    )
    # A line through the steps of GD, and its steps at R = 5, would take minutes.
    line = (
        tables["rates"].filter(quantity="NGD steps", loss="nce").with_columns(quantity=pl.lit("GD steps"), first_R=2.0)
    )
    tables["rates"] = pl.concat([tables["rates"], line])
    gd = (
        tables["steps"].filter(optimizer="gd", target="0.1R", R=3.0).with_columns(R=5.0, steps=pl.lit(40_000, pl.Int64))
    )
    tables["steps"] = pl.concat([tables["steps"], gd])
    return tables


@pytest.fixture(scope="module")
def theory(loaded: params.Params) -> pl.DataFrame:
    return pl.concat(check(loaded, key) for key in THEORY)


def check(loaded: params.Params, key: str) -> pl.DataFrame:
    entry = loaded.theory[key]
    frame: pl.DataFrame = importlib.import_module(f"pipeline.studies.nce.theory.{entry.module}").check(entry, key, SEED)
    return frame


def reading(loaded: params.Params, tables: Tables, theory: pl.DataFrame) -> Any:
    return SimpleNamespace(
        study="nce",
        settings=loaded.studies["nce"].claims,
        scale="paper",
        params_hash="0" * 32,
        table=tables.__getitem__,
        theory=lambda: theory,
    )


def judged(loaded: params.Params, tables: Tables, theory: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    frame = claims.judge(reading(loaded, tables, theory))
    return {(row["claim"], row["gate"]): row for row in frame.iter_rows(named=True)}


def with_cell(frame: pl.DataFrame, row: int, column: str, value: float | None) -> pl.DataFrame:
    at = pl.int_range(pl.len()) == row
    return frame.with_columns(pl.when(at).then(pl.lit(value, pl.Float64)).otherwise(column).alias(column))


@pytest.mark.parametrize("name", READ)
def test_every_gate_falls_that_reads_a_number_which_is_none(
    loaded: params.Params, made: Tables, theory: pl.DataFrame, name: str
) -> None:
    """A gate reads a number if it would measure or say something else with another one there."""
    columns, groups = READ[name]

    def gates(column: str, row: int, value: float | None) -> dict[str, tuple[float | None, str]]:
        run = reading(loaded, made | {name: with_cell(made[name], row, column, value)}, theory)
        every = [gate for group in groups for gate in group(run) if gate.measured]
        return {f"{gate.claim}, {gate.gate}": (gate.measured.value, gate.verdict("paper")[0]) for gate in every}

    readers = set()
    for column in columns:
        before = gates(column, 0, made[name][column][0])
        for row in range(made[name].height):
            others = [gates(column, row, value) for value in (-1e9, 1e9)]
            reading_it = {gate for gate, was in before.items() if any(other[gate] != was for other in others)}
            for value in (NAN, None) if reading_it else ():
                fallen = gates(column, row, value)
                still = {gate for gate in reading_it if fallen[gate][1] != FAILS}
                assert not still, (column, value, made[name].row(row, named=True))
            readers |= {(column, gate) for gate in reading_it}
    assert {column for column, _ in readers} == set(columns)


def test_every_gate_on_a_comparison_falls_without_its_numbers(
    loaded: params.Params, made: Tables, theory: pl.DataFrame
) -> None:
    for column in COMPARED:
        for value in (NAN, None):
            table = made["comparisons"].with_columns(pl.lit(value, pl.Float64).alias(column))
            gates = judged(loaded, made | {"comparisons": table}, theory).values()
            assert {gate["verdict"] for gate in gates if gate["comparison"]} == {FAILS}


def test_gates_read_nothing_else(loaded: params.Params, made: Tables, theory: pl.DataFrame) -> None:
    """So that the tests above leave no column out."""

    def told(tables: Tables) -> list[tuple[float | None, str]]:
        return [(row["value"], row["verdict"]) for row in judged(loaded, tables, theory).values()]

    before = told(made)
    for value in (-1e9, 1e9):
        changed = {}
        for name, frame in made.items():
            columns = {column for column, dtype in frame.schema.items() if dtype == pl.Float64} - KEYS
            read = COMPARED if name == "comparisons" else READ.get(name, ([], []))[0]
            changed[name] = frame.with_columns(pl.lit(value).alias(column) for column in sorted(columns - set(read)))
        assert told(changed) == before


def test_nearly_every_gate_is_tested_here(loaded: params.Params, made: Tables, theory: pl.DataFrame) -> None:
    """So that the test above leaves none out."""
    rest = [gate for gate, row in judged(loaded, made, theory).items() if row["verdict"] == NOT_RUN]
    assert rest == []


def test_a_check_that_measured_nothing_fells_its_gate(theory: pl.DataFrame) -> None:
    for row in range(theory.height):
        changed = with_cell(theory, row, "measured", NAN).drop("passed").to_dicts()
        again = pl.concat(
            theory_rows("nce", key, "", [each for each in changed if each["theory"] == key]) for key in THEORY
        )
        verdicts = {gate.gate: gate.verdict("paper")[0] for gate in part_gates(again, "16", PARTS)}
        assert {gate for gate, verdict in verdicts.items() if verdict == FAILS} == {theory["part"][row]}


def test_a_part_without_a_check_is_named(loaded: params.Params, made: Tables, theory: pl.DataFrame) -> None:
    with pytest.raises(SandglassError, match="'overlap'"):
        judged(loaded, made, theory.filter(pl.col("theory") != "nce-overlap"))


# --- theory modules -----------------------------------------------------------------------------------------

Change = Callable[[np.ndarray], np.ndarray]


def spoilt(change: Change, method: Any) -> Any:
    """``method`` of a problem, changed at the last of its P problems and K places."""

    def call(self: Any, delta: np.ndarray) -> np.ndarray:
        value: np.ndarray = method(self, delta).copy()
        value[-1, -1] = change(value[-1, -1])
        return value

    return call


@pytest.mark.parametrize("key", THEORY)
def test_every_check_fails_that_uses_a_number_which_is_none(
    loaded: params.Params, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A check uses a number if it would measure something else with another one there."""
    monkeypatch.setattr(barrier, "CAP", 2000)  # a path that is lost never arrives
    multiples = getattr(loaded.theory[key], "multiples", [])
    multiples.sort(reverse=True)  # the last path is the longest, and so the last that is left, spoilt or not
    before = check(loaded, key)

    def changed(method: str, change: Change) -> pl.DataFrame:
        with monkeypatch.context() as patch:
            for kind in (log_ratio.Nce, log_ratio.Ence, log_ratio.EnceMean):
                patch.setattr(kind, method, spoilt(change, getattr(kind, method)))
            return check(loaded, key)

    for method in ("loss", "gradient", "hessian"):
        other = changed(method, lambda value: 1.01 * value)
        used = other.filter(pl.col("measured") != before["measured"])["check"].to_list()
        try:
            none = changed(method, lambda value: np.nan * value)
        except (ValueError, np.linalg.LinAlgError):
            continue  # so the step fails, and makes no row that could pass
        assert none.filter(pl.col("check").is_in(used), "passed")["check"].to_list() == [], method
