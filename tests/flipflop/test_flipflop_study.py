"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from workspace import Workspace

from pipeline.studies.flipflop.claims import STATEMENTS, arithmetic, autopsy, controls, glitches, simulation
from pipeline.studies.flipflop.measures import contrasts
from pipeline.studies.flipflop.names import LSTM
from schemas.claims import FAILS, HOLDS, NOT_TESTED

PARTS = (glitches, controls, simulation, arithmetic, autopsy)
HOLD = {  # the value of each comparison
    "lstm without error": 1.0, "fitted base": 1.0, "glitches base": 1.0, "dense median base": 0.03,
    "sparse median base": 0.01,
    "dense tail base": 20.0, "sparse tail base": 20.0, "unsteady base": 0.9, "configurations without error": 0.0,
    "dense data seeds, decades": 0.5, "dense model seeds, decades": 0.5, "generative excess": 0.001,
    "generative val": 0.0, "generative glitches": 1.0, "dense tenfold mixture": 0.01, "sparse tenfold mixture": 0.01,
    "dense mixture - fresh": -1.0, "mixture without error": 0.24, "sparse fresh - base": -0.3,
    "dense fresh - base": 0.1, "sparse epochs - base": -0.3, "dense epochs - base": 0.1, "sparse size, p value": 0.5,
    "dense size, p value": 0.5, "sparse emb05 - base": -2.0, "dense base - sin": 0.02, "optimiser, largest change": 0.1,
    **{f"sparse {kind}, paired": -1.0 for kind in ("entropy", "l-infinity", "l2")},
    **{f"dense {kind}, paired": -0.5 for kind in ("entropy", "l-infinity", "l2")},
    **{f"max weight {kind}": 0.2 for kind in ("entropy", "l-infinity", "l2")},
    **{f"{name}, max weight": 0.3 for name in ("linear", "one head")},
    **{f"{name}, error plain - entropy": 0.1 for name in ("linear", "one head")},
    "linear, penalised that err": 0.8, "drift, models that stay": 0.0, "drift, disagreements": 0.0,
    "bad minima p=0.5 - p=0.9": 0.2, "one head, value - raw": 0.3,
    **{f"autopsy {name}, {what}": 0.9 for name in ("dense", "sparse") for what in ("elsewhere", "other bit")},
}  # fmt: skip


def made() -> dict[str, pl.DataFrame]:
    """Return tables of ten models at scale paper."""
    rows = [(name, value, value, value, 10) for name, value in HOLD.items()]
    known = pl.DataFrame(rows, schema=["contrast", "value", "lo", "hi", "n"], orient="row")
    sets = [
        (name, r, length) for name in ("val", "sparse", "dense") for r in range(10) for length in (512, 2048)
    ]
    final = pl.DataFrame(sets, schema=["set", "replica", "length"], orient="row")
    parts = [("dense", "data seed", 0.4), ("dense", "model seed", 0.4)]
    variance = pl.DataFrame(parts, schema=["set", "part", "share"], orient="row")
    return {
        "contrasts": known.with_columns(n_excluded=0, excluded_reason=pl.lit("")),
        "final": final.with_columns(run=pl.lit(LSTM), n_err=0, n_reads=100, error=0.0),
        "seed_variance": variance.with_columns(lo=0.1, hi=0.6, n=5),
        "ngram": pl.DataFrame({"set": ["dense", "sparse"], "n": [11, 21], "error": [0.0, 0.397]}),
    }


def judged(tables: dict[str, pl.DataFrame]) -> dict[str, tuple[float | None, str]]:
    context: Any = SimpleNamespace(
        table=tables.__getitem__, settings=SimpleNamespace(fewest=3), study="flipflop", scale="paper"
    )
    every = [gate for part in PARTS for gate in part.gates(context)]
    return {f"{g.claim}, {g.gate}": (g.measured and g.measured.value, g.verdict("paper")[0]) for g in every}


def test_every_gate_holds_where_everything_does() -> None:
    assert {gate: told for gate, told in judged(made()).items() if told[1] != HOLDS} == {}


@pytest.mark.parametrize("name", HOLD)
def test_a_comparison_that_is_none_lets_its_gates_fall(name: str) -> None:
    tables = made()
    before = judged(tables)
    for column in ("value", "lo"):
        spoilt = (
            pl.when(pl.col("contrast") == name).then(float("nan")).otherwise(pl.col(column)).alias(column)
        )
        after = judged(tables | {"contrasts": tables["contrasts"].with_columns(spoilt)})
        fallen = {gate for gate, told in after.items() if told[1] == FAILS}
        assert fallen and {gate for gate in before if after[gate] != before[gate]} == fallen


def test_two_models_and_no_models_give_no_verdict() -> None:
    tables = made()
    few = judged(tables | {"contrasts": tables["contrasts"].with_columns(n=2)})
    assert few["2, canonical model"][1] == few["19, switch"][1] == NOT_TESTED
    none = judged({name: frame.clear() for name, frame in tables.items()} | {"ngram": tables["ngram"]})
    assert {verdict for gate, (_, verdict) in none.items() if not gate.startswith("23")} == {NOT_TESTED}


def test_an_interval_across_the_bar_is_undecided() -> None:
    tables = made()
    wide = pl.when(pl.col("contrast") == "dense base - sin").then(-0.01).otherwise(pl.col("lo")).alias("lo")
    found = judged(tables | {"contrasts": tables["contrasts"].with_columns(wide)})
    assert found["12, sinusoidal"][1] not in (HOLDS, FAILS)


def test_two_way_shares_and_holm() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert contrasts.two_way(rows) == (1.0, 0.0, 0.0) and contrasts.two_way(rows.T) == (0.0, 1.0, 0.0)
    assert contrasts.holm([0.02, 0.5, 0.9]) == pytest.approx(0.06)
    assert contrasts.spread(np.array([0.0, 0.01, 0.1])) == pytest.approx(10)


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("flipflop").path / "data"
    claims = pl.read_parquet(data / "claims/flipflop/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    assert (data / "report/study/flipflop.html").is_file()
