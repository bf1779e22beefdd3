"""Claims on tables in which every gate holds, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from spoiling import assert_gates_fall
from workspace import Workspace

from pipeline.studies.flipflop.analysis import errors
from pipeline.studies.flipflop.claims import STATEMENTS, arithmetic, autopsy, controls, glitches, simulation
from pipeline.studies.flipflop.figures import common
from pipeline.studies.flipflop.measures import contrasts
from pipeline.studies.flipflop.names import BASE, FAMILIES, LSTM, LSTM_LONG
from schemas.claims import FAILS, HOLDS, NOT_RUN

PARTS = (glitches, controls, simulation, arithmetic, autopsy)
KINDS, FORMS = ("entropy", "l-infinity", "l2"), ("linear", "one head")
HOLD = {  # the value of each comparison
    "lstm without error": 1.0, "fitted base": 1.0, "glitches base": 1.0, "dense median base": 0.03,
    "sparse median base": 0.01,
    "dense tail base": 20.0, "sparse tail base": 20.0, "unsteady base": 0.9, "configurations without error": 0.0,
    "dense data seeds, decades": 0.5, "dense model seeds, decades": 0.5, "generative excess": 0.001,
    "generative, errors above the floor": 2.0,
    "generative val": 0.0, "generative glitches": 1.0, "dense tenfold mixture": 0.01, "sparse tenfold mixture": 0.01,
    "dense mixture - plain": -1.0, "mixture without error": 0.24, "mixture without error, lead": 0.2,
    "sparse fresh10 - base": -0.3,
    "dense fresh10 - base": 0.1, "sparse epochs10 - base": -0.3, "dense epochs10 - base": 0.1,
    **{f"{name} {more} - mixture": 0.7 for name in ("sparse", "dense") for more in ("fresh10", "epochs10")},
    "sparse size, p value": 0.5,
    "dense size, p value": 0.5, "sparse emb05 - base": -2.0, "emb05 without error": 0.2, "dense base - sin": 0.02,
    "dense base - best positions": 0.02, "optimiser, largest change": 0.1, "sparse best sharpening, paired": -1.0,
    "best sharpening, places to an end": 2.0, "max weight, least rise": 0.05,
    **{f"sparse {kind}, paired": -1.0 for kind in KINDS}, **{f"dense {kind}, paired": -0.5 for kind in KINDS},
    **{f"max weight {kind}": 0.2 for kind in KINDS},
    **{f"{name}, {kind}, max weight": 0.3 for name in FORMS for kind in KINDS},
    **{f"{name}, {kind}, error plain - penalised": 0.1 for name in FORMS for kind in KINDS},
    **{f"{name}, {kind}, bad minima p=0.5 - p=0.9": 0.2 for name in FORMS for kind in KINDS},
    "many, max weight": 0.1, "many, one ideal head": 0.9, "first layer, later layers": 0.1, "many, norms": -0.1,
    "first layer, norms": -0.1,
    "linear, penalised that err": 0.8, "drift, models that stay": 0.0, "drift, disagreements": 0.0,
    "one head, value - raw": 0.3,
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
    variance = pl.DataFrame(parts, schema=["set", "part", "ratio"], orient="row")
    return {
        "contrasts": known.with_columns(n_excluded=0, excluded_reason=pl.lit("")),
        "final": pl.concat(
            final.with_columns(run=pl.lit(run), n_err=0, n_reads=100, error=0.0) for run in (LSTM, LSTM_LONG)
        ),
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
    assert {gate: outcome for gate, outcome in judged(made()).items() if outcome[1] != HOLDS} == {}


@pytest.mark.parametrize("name", HOLD)
def test_a_comparison_that_is_none_lets_its_gates_fall(name: str) -> None:
    assert_gates_fall(judged, made(), name)


def test_two_models_and_no_models_give_no_verdict() -> None:
    tables = made()
    few = judged(tables | {"contrasts": tables["contrasts"].with_columns(n=2)})
    assert few["2, canonical model"][1] == few["19, switch"][1] == NOT_RUN
    none = judged({name: frame.clear() for name, frame in tables.items()} | {"ngram": tables["ngram"]})
    assert {verdict for gate, (_, verdict) in none.items() if not gate.startswith("23")} == {NOT_RUN}


def test_a_direction_is_judged_wherever_there_are_models() -> None:
    """A published size alone waits for the published sizes."""
    context: Any = SimpleNamespace(
        table=made().__getitem__, settings=SimpleNamespace(fewest=3), study="flipflop", scale="quick"
    )
    every = [gate for part in PARTS for gate in part.gates(context)]
    assert {gate.verdict("quick")[0] for gate in every} == {HOLDS}
    waits = {gate.gate for gate in every if gate.size("paper") != gate.size("quick")}
    sharpened = {f"{kind}, sparse" for kind in KINDS} | {"best setting, sparse"}
    assert waits == {"models without error", "sparse"} | sharpened


def test_a_spread_of_errors_takes_two_models_that_err() -> None:
    tables = made()
    none = pl.when(pl.col("contrast") == "sparse tail base").then(None).otherwise("value").alias("value")
    tables["contrasts"] = tables["contrasts"].with_columns(none)
    clean = tables["final"].with_columns(run=pl.lit(BASE))
    assert judged(tables)["6, sparse"][1] == FAILS
    final = pl.concat([tables["final"], clean])
    assert judged(tables | {"final": final})["6, sparse"][1] == NOT_RUN
    failed = clean.with_columns(error=pl.lit(None, pl.Float64))
    assert judged(tables | {"final": pl.concat([tables["final"], failed])})["6, sparse"][1] == FAILS


def test_an_interval_across_the_bar_is_undecided() -> None:
    tables = made()
    wide = pl.when(pl.col("contrast") == "dense base - sin").then(-0.01).otherwise(pl.col("lo")).alias("lo")
    outcomes = judged(tables | {"contrasts": tables["contrasts"].with_columns(wide)})
    assert outcomes["12, sinusoidal"][1] not in (HOLDS, FAILS)


def test_no_bad_minimum_is_no_evidence_and_a_tie_does_not_hold() -> None:
    tables = made()
    name = "linear, entropy, bad minima p=0.5 - p=0.9"
    none = [(f"linear, entropy, bad minima p={p}", 0.0, 0.0, 0.3, 10) for p in ("0.5", "0.9")]
    shares = pl.DataFrame(none, schema=["contrast", "value", "lo", "hi", "n"], orient="row")
    rows = tables["contrasts"].filter(pl.col("contrast") != name)
    rows = pl.concat(
        [rows, shares.with_columns(n_excluded=0, excluded_reason=pl.lit(""))], how="vertical_relaxed"
    )
    assert judged(tables | {"contrasts": rows})["20, linear positions, entropy"][1] == NOT_RUN
    tie = pl.when(pl.col("contrast") == name).then(0.0).otherwise("value").alias("value")
    ends = [pl.when(pl.col("contrast") == name).then(0.0).otherwise(end).alias(end) for end in ("lo", "hi")]
    rows = tables["contrasts"].with_columns(tie, *ends)
    assert judged(tables | {"contrasts": rows})["20, linear positions, entropy"][1] == FAILS


def test_variance_components_are_unbiased_and_their_interval_covers() -> None:
    rng, k = np.random.default_rng(0), 5
    inside, estimates = 0, []
    for _ in range(2000):
        values = 0.5 * rng.normal(size=(k, 1)) + rng.normal(size=(k, k))
        data, model, rest = contrasts.components(values, 0.95)
        estimates.append((data.value, model.value, rest.value))
        inside += data.lo <= 0.25 <= data.hi
    mean, deviation = np.mean(estimates, 0), np.std(estimates, 0) / np.sqrt(len(estimates))
    assert (np.abs(mean - [0.25, 0, 1]) < 4 * deviation).all()
    assert abs(inside / 2000 - 0.95) < 0.02
    # Columns do nothing: their share of the sum of squares is above 0 all the same, the component half of the time.
    assert 0.4 < np.mean(np.array(estimates)[:, 1] > 0) < 0.6


def test_the_choice_among_configurations_is_judged_on_other_models() -> None:
    even, odd = np.array([0.0, 9.0] * 3), np.array([1.0, 1.0] * 3)
    assert errors.chosen({"a": even, "b": odd})[0] == "a"
    assert errors.chosen({"a": even, "b": odd})[1].tolist() == [9.0, 9.0, 9.0]
    assert errors.chosen({"a": even})[0] == "" and errors.chosen({"a": even[:4], "b": odd})[0] == ""


def test_two_way_shares_and_holm() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert contrasts.two_way(rows) == (1.0, 0.0, 0.0) and contrasts.two_way(rows.T) == (0.0, 1.0, 0.0)
    assert contrasts.holm([0.02, 0.5, 0.9]) == pytest.approx(0.06)
    assert contrasts.spread(np.array([0.0, 0.01, 0.1])) == pytest.approx(10)


def test_every_family_has_a_mark_of_its_own_in_legends() -> None:
    assert set(common.LOOKS) == set(FAMILIES)
    assert len(set(common.LOOKS.values())) == len(FAMILIES)
    shapes, colours = (of([*FAMILIES]).to_dict()["scale"] for of in (common.shaped, common.coloured))
    assert shapes["domain"] == colours["domain"] == [*FAMILIES.values()]
    marks = dict(zip(FAMILIES, zip(colours["range"], shapes["range"], strict=True), strict=True))
    assert marks == common.LOOKS


def test_errors_have_exact_binomial_intervals() -> None:
    counts = [(0, 353_875), (1, 4), (7, 1000), (4, 4)]
    bounds = common.bounded(pl.DataFrame(counts, schema=["n_err", "n_reads"], orient="row"), 0.95)
    for (wrong, reads), lo, hi in zip(counts, bounds["lo"], bounds["hi"], strict=True):
        interval = stats.binomtest(wrong, reads).proportion_ci(0.95, method="exact")
        assert (lo, hi) == pytest.approx((interval.low, interval.high), rel=1e-9)
        ends = contrasts.error_interval([wrong], reads, 0.95)
        assert [float(end[0]) for end in ends] == pytest.approx([lo, hi], rel=1e-9)
    # Chapter section 9: no error among the published reads bounds the error by 8.5e-6, on one side.
    assert common.bounded(bounds[:1], 0.9)["hi"].item() == pytest.approx(8.5e-6, rel=0.01)


def test_the_study_is_built(smoke_of: Callable[[str], Workspace]) -> None:
    data = smoke_of("flipflop").path / "data"
    claims = pl.read_parquet(data / "claims/flipflop/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    assert (data / "report/study/flipflop.html").is_file()
