"""The experiments of params/dyck/ on models and data that a test makes up."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import polars as pl
from workspace import load_study

from pipeline.kit.comparisons import Comparison, frame, not_run, row
from pipeline.kit.intervals import Interval
from pipeline.steps.analyse import finished
from pipeline.studies.dyck.comparisons import DECLARED
from schemas.dyck.tables import SCHEMAS

Numbers = tuple[float, float, float]
LOADED = load_study("dyck")
EXPERIMENTS = LOADED.of_study("experiments", "dyck")
FIGURES = {
    figure: getattr(importlib.import_module(f"pipeline.studies.dyck.figures.{entry.module}"), figure)
    for entry in EXPERIMENTS.values()
    for figure in entry.figures
}


def analyse(context: SimpleNamespace, **own: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """Return the tables of all experiments, those of one name below each other.

    Each experiment sees those runs of ``context`` that it names; ``own`` changes its entry, by its module.
    """
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for experiment, entry in EXPERIMENTS.items():
        if entry.tables:
            owner = {run: LOADED.owner("runs", run).id for run in context.runs()}
            runs = [run for run in owner if owner[run] in entry.runs]
            seen = vars(context) | {
                "experiment": experiment,
                "entry": entry.model_copy(update=own.get(entry.module, {})),
                "runs": lambda runs=runs: runs,
                "run_header": lambda run, owner=owner: context.run_header(run) | {"job": owner[run]},
            }
            module = importlib.import_module(f"pipeline.studies.dyck.analysis.{entry.module}")
            made = module.analyse(SimpleNamespace(**seen))
            assert list(made) == entry.tables
            for name, frame in finished(made, SCHEMAS, context).items():
                parts[name].append(frame)
    return {name: pl.concat(frames) for name, frames in parts.items()}


def compared(tables: dict[str, pl.DataFrame], comparison: Comparison) -> dict[str, Any]:
    """Return what ``tables`` say of a comparison."""
    return tables["comparisons"].filter(comparison=comparison.key).row(0, named=True)


def comparisons(value: Callable[[Comparison], Numbers | None], n: int = 10) -> pl.DataFrame:
    """Return the table ``comparisons`` with what ``value`` says of each: value and ends of the interval, None where
    it is not run."""
    return frame(
        not_run(each, 0.9) if (numbers := value(each)) is None else row(each, Interval(*numbers, "Student", n, 2), 0.9)
        for each in DECLARED
    )
