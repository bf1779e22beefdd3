"""Claims on comparisons that all hold, and with a number that is none; all of the study at smoke scale."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from fitting import fitting
from workspace import Workspace

from pipeline.kit import intervals
from pipeline.kit.comparisons import CLAIMS
from pipeline.kit.verdicts import Gate
from pipeline.studies.flipflop.analysis import errors
from pipeline.studies.flipflop.claims import STATEMENTS, autopsy, controls, glitches, language_models, simulation
from pipeline.studies.flipflop.comparisons import DECLARED
from pipeline.studies.flipflop.figures import common
from pipeline.studies.flipflop.measures import factorial
from pipeline.studies.flipflop.names import BASE, FACTORIAL, FAMILIES, LSTM
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW, UNDECIDED
from schemas.comparisons import MEASURED
from schemas.comparisons import NOT_RUN as NO_MODELS
from schemas.flipflop.tables import SCHEMAS

PARTS = (glitches, controls, simulation, autopsy, language_models)
KEYS = [each.key for each in DECLARED if each.experiment != CLAIMS]


def made(values: dict[str, float | None] | None = None, **more: Any) -> pl.DataFrame:
    """Return the table of all comparisons of ten models each, with these values and no spread."""
    known = values or {}
    rows = [
        {
            "comparison": key,
            "state": MEASURED,
            "value": known.get(key, 0.0),
            "lo": known.get(key, 0.0),
            "hi": known.get(key, 0.0),
            "interval": intervals.STUDENT,
            "n": 10,
            "fewest": 5,
            "n_excluded": 0,
            "excluded_reason": "",
            "confidence": 0.95,
        }
        | more
        for key in KEYS
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def final(transformers: list[float], lstms: list[float]) -> pl.DataFrame:
    """Return the errors of models that learned, and one of each kind that did not, on the dense set."""
    rows = [
        {"run": run, "set": "dense", "learned": learned, "error": error}
        for run, errors in ((BASE, transformers), (LSTM, lstms))
        for learned, error in [*((True, each) for each in errors), (False, 0.5)]
    ]
    return pl.DataFrame(rows)


def gates(table: pl.DataFrame) -> list[Gate]:
    """Return the gates of all comparisons."""
    tables = {
        "comparisons": table,
        "final": final([0.1] * 6, [0.0] * 6),
        "ngram": pl.DataFrame({"set": ["dense", "sparse"], "n": [11, 21], "error": [0.0, 0.397]}),
        "lm_eval": pl.DataFrame(
            [
                {"model": "oracle", "kind": "oracle", "length": 4, "n": 10, "accuracy": 1.0, "expected": 1.0},
                {"model": "5-gram", "kind": "ngram", "length": 8, "n": 100, "accuracy": 0.7, "expected": 0.68},
            ]
        ),
    }
    context: Any = SimpleNamespace(
        table=fitting(tables, SCHEMAS).__getitem__, settings=SimpleNamespace(far=4.5), study="flipflop", scale="paper"
    )
    return [gate for part in PARTS for gate in part.gates(context) if gate.comparison in KEYS]


def holding() -> dict[str, float | None]:
    """Return for each comparison a value inside the bars of all its gates."""
    low, high = dict.fromkeys(KEYS, -np.inf), dict.fromkeys(KEYS, np.inf)
    for gate in gates(made()):
        for condition in gate.conditions:
            side, closer = (low, max) if condition.comparison.startswith(">") else (high, min)
            side[gate.comparison] = closer(side[gate.comparison], condition.bound)
    assert all(low[key] < high[key] for key in KEYS)
    ends = {key: (max(low[key], high[key] - 1), min(high[key], low[key] + 1)) for key in KEYS}
    return {key: (below + above) / 2 for key, (below, above) in ends.items()}


def judged(table: pl.DataFrame) -> dict[str, tuple[str, str]]:
    return {f"{g.claim}, {g.gate}": (g.comparison, g.verdict("paper")[0]) for g in gates(table)}


def test_each_comparison_has_a_gate_that_can_hold() -> None:
    found = judged(made(holding()))
    assert {comparison for comparison, _ in found.values()} == set(KEYS)
    assert {gate: outcome for gate, outcome in found.items() if outcome[1] != HOLDS} == {}


def test_a_number_or_an_end_that_is_none_does_not_hold() -> None:
    values = holding()
    for spoilt in (made(dict.fromkeys(KEYS)), made(values).with_columns(lo=pl.lit(None, pl.Float64))):
        assert {outcome for _, outcome in judged(spoilt).values()} == {FAILS}


def test_transformers_are_held_against_lstms_of_another_experiment() -> None:
    def gate(table: pl.DataFrame) -> Gate:
        tables = fitting({"final": table, "comparisons": made()}, SCHEMAS)
        context: Any = SimpleNamespace(study="flipflop", table=tables.__getitem__)
        return glitches._gap(context)

    errs = [0.1, 0.2, 0.15, 0.12, 0.18]
    assert gate(final(errs, [0.0] * 5)).verdict("quick")[0] == HOLDS
    assert gate(final(errs, errs)).verdict("quick")[0] == UNDECIDED
    assert gate(final([0.0] * 5, errs)).verdict("quick")[0] == FAILS
    few = gate(final(errs[:4], [0.0] * 5))
    assert few.verdict("quick")[0] == TOO_FEW
    assert few.measured is not None and (few.measured.n, few.measured.excluded) == (4, 2)
    assert gate(final(errs, []).filter(run=BASE)).verdict("quick")[0] == NOT_RUN


def test_two_models_and_no_models_give_no_verdict() -> None:
    few = judged(made(holding(), n=2))
    assert {outcome for _, outcome in few.values()} == {TOO_FEW}
    none = judged(made(dict.fromkeys(KEYS), n=0, state=NO_MODELS))
    assert {outcome for _, outcome in none.values()} == {NOT_RUN}


def test_a_direction_is_judged_wherever_there_are_models() -> None:
    """A published size alone waits for the published sizes, and what small models cannot show."""
    every = gates(made(holding()))
    waits = {gate.gate for gate in every if gate.verdict("quick")[0] != HOLDS}
    assert waits == {"norms, all layers", "sparse"}
    assert [gate.claim for gate in every if gate.gate == "sparse" and gate.verdict("quick")[0] != HOLDS] == ["4"]
    sizes = {gate.gate for gate in every if gate.size("paper") != gate.size("quick")}
    assert sizes >= {"models without error", "sparse", "entropy, sparse", "best setting, sparse"}


def test_an_interval_across_a_bar_is_undecided() -> None:
    found = judged(made(holding()).with_columns(lo=-1e9, hi=1e9))
    assert {outcome for _, outcome in found.values()} == {UNDECIDED}


def test_variance_components_are_unbiased_and_their_interval_covers() -> None:
    rng, k = np.random.default_rng(0), 5
    inside, estimates = 0, []
    for _ in range(2000):
        values = 0.5 * rng.normal(size=(k, 1)) + rng.normal(size=(k, k - 1))
        data, model, rest = factorial.components(values, 0.95)
        estimates.append((data[0], model[0], rest[0]))
        inside += data[1].lo <= 0.25 <= data[1].hi
    mean, deviation = np.mean(estimates, 0), np.std(estimates, 0) / np.sqrt(len(estimates))
    assert (np.abs(mean - [0.25, 0, 1]) < 4 * deviation).all()
    assert abs(inside / 2000 - 0.95) < 0.02
    # Columns do nothing: their share of the sum of squares is above 0 all the same, the component half of the time.
    assert 0.4 < np.mean(np.array(estimates)[:, 1] > 0) < 0.7
    assert all(interval.n < interval.fewest for _, interval in factorial.components(values[:, :1], 0.95))


def test_seeds_are_judged_where_models_learned() -> None:
    cells = [(d, m, m > 0 or d == 2, 0.1 * (1 + m)) for d in range(3) for m in range(3)]
    rows = pl.DataFrame(cells, schema=["data_seed", "model_seed", "learned", "error"], orient="row")
    config = SimpleNamespace(entry={"data_seeds": 3})
    known: Any = SimpleNamespace(
        errors=rows.with_columns(run=pl.lit(FACTORIAL), set=pl.lit("dense")),
        configs={FACTORIAL: config},
        read_count=lambda run, name: 1000,
    )
    values = errors._square(known, "dense")
    assert values.shape == (3, 2) and np.allclose(10 ** values[0] - 0.0005, [0.2, 0.3])


def test_the_choice_among_configurations_is_judged_on_other_models() -> None:
    even, odd = np.array([0.0, 9.0] * 5), np.array([1.0, 1.0] * 5)
    best, kept = errors.halved([("a", even), ("b", odd)])
    assert best == "a" and even[kept].tolist() == [9.0] * 5
    for few in ([("a", even)], [("a", even[:4]), ("b", odd)]):
        best, kept = errors.halved(few)
        assert best == "" and len(even[kept]) == 0


def test_two_way_shares() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert factorial.two_way(rows) == (1.0, 0.0, 0.0) and factorial.two_way(rows.T) == (0.0, 1.0, 0.0)


def test_every_family_has_a_mark_of_its_own_in_legends() -> None:
    assert set(common.LOOKS) == set(FAMILIES)
    marks = {(look.colour, look.shape) for look in common.LOOKS.values()}
    assert len(marks) == len(FAMILIES)
    channels = common.by_family(pl.Series([*FAMILIES])).points()
    colours, shapes = (channels[name].to_dict()["scale"] for name in ("color", "shape"))
    assert colours["domain"] == shapes["domain"] == list(FAMILIES.values())
    assert set(zip(colours["range"], shapes["range"], strict=True)) == marks


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/flipflop/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    assert (data / "report/study/flipflop.html").is_file()
