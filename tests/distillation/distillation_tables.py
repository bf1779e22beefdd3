"""Tables of comparisons with which gates hold or fail, made from what is declared and from the bars of the gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import polars as pl

from pipeline.kit import comparisons, intervals
from pipeline.kit.intervals import Interval
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.comparisons import DECLARED
from schemas.comparisons import Comparisons
from schemas.theory import rows as theory_rows

SETTINGS = SimpleNamespace(confidence=0.95, solved=0.99, risen=0.9)
Values = dict[str, Interval]
Judge = Callable[[Any], Iterable[Gate]]


def inputs(experiment: str, *runs: str) -> Any:
    """Return what an analysis needs to measure comparisons."""
    return SimpleNamespace(study="distillation", experiment=experiment, settings=SETTINGS, runs=lambda: list(runs))


def measured(value: float, n: int = 10, lo: float | None = None, hi: float | None = None) -> Interval:
    """Return a value of ``n`` models with a narrow interval."""
    ends = (value if end is None else end for end in (lo, hi))
    return Interval(value, *ends, intervals.STUDENT, n, 2)


def table(values: Values) -> pl.DataFrame:
    """Return the rows of all comparisons; those without a value are not run."""
    rows = [
        comparisons.row(each, values[each.key], SETTINGS.confidence)
        if each.key in values
        else comparisons.not_run(each, SETTINGS.confidence)
        for each in DECLARED
        if each.experiment != comparisons.CLAIMS
    ]
    own = comparisons.frame(rows).with_columns(scale=pl.lit("paper"), params_hash=pl.lit("0" * 32))
    return Comparisons.validate(own.select(list(Comparisons.to_schema().columns)))


def context(values: Values, scale: str, theory: pl.DataFrame | None = None, **more: pl.DataFrame) -> Any:
    """Return what claims read."""
    tables = {"comparisons": table(values), **more}
    plain = {"size": "", "measured": 0.0, "comparison": "<=", "bound": 0.0, "statement": "classes"}
    classes = [plain | {"check": "tree.corrected", "claim": "19", "part": "classes"}]
    checks = theory_rows("distillation", "distillation-definitions", "7.3", classes) if theory is None else theory
    return SimpleNamespace(
        study="distillation", table=tables.__getitem__, theory=lambda: checks, scale=scale, settings=SETTINGS
    )


def on_comparisons(judge: Judge, values: Values, scale: str, **more: Any) -> dict[str, Gate]:
    """Return the gates on comparisons that analyses measure, by the key of what they judge; of several gates on one the
    strictest."""
    measured = {each.key for each in DECLARED if each.experiment != comparisons.CLAIMS}
    strictest: dict[str, Gate] = {}
    for gate in judge(context(values, scale, **more)):
        other = strictest.get(gate.comparison)
        if gate.comparison in measured and (other is None or _is_stricter(gate, other)):
            strictest[gate.comparison] = gate
    return strictest


def _is_stricter(gate: Gate, other: Gate) -> bool:
    """Return whether the other gate holds just beyond the bars of ``gate``."""
    return all(condition.meets(value) for value in outside(gate) for condition in other.conditions)


def good(gates: dict[str, Gate]) -> Values:
    """Return a value for each comparison with which its gate holds."""
    return {key: measured(inside(gate)) for key, gate in gates.items()}


def inside(gate: Gate) -> float:
    """Return a value that meets all conditions of a gate."""
    low = [each.bound for each in gate.conditions if each.comparison.startswith(">")]
    high = [each.bound for each in gate.conditions if each.comparison.startswith("<")]
    return (low[0] + high[0]) / 2 if low and high else low[0] + 1 if low else high[0] - 1


def outside(gate: Gate) -> list[float]:
    """Return values that are just beyond each bar of a gate."""
    step = 1e-6
    return [each.bound - step if each.comparison.startswith(">") else each.bound + step for each in gate.conditions]
