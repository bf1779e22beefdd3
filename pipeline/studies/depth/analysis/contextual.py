"""EXP-3: heads, layers and the number of examples in contextual generalization (Figure 7)."""

from __future__ import annotations

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.comparisons import DECLARED
from pipeline.studies.depth.measures import training
from pipeline.studies.depth.measures.runs import read


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the runs of this experiment, and how fast they and those of EXP-1 learn."""
    runs, found = read(context, context.runs()), Measurements(context)
    ended = {name: training.endings(context, run).filter("chosen") for name, run in runs.items()}
    for comparison in DECLARED.of(context.experiment).values():
        first, second = (ended.get(run) for arm in comparison.arms for run in arm.runs)
        if first is not None and second is not None:
            training.add_steps(found, comparison, first, second)
    own = [run for run in runs.values() if run.entry["experiment"] == "exp-3"]
    return training.tables(context, own) | {"comparisons": [found.table()]}
