"""Accuracy of the trained models."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.selfsup.comparisons import LEARNS
from pipeline.studies.selfsup.measures import prediction
from pipeline.studies.selfsup.names import SEQUENCES


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the accuracy of every model, and the comparisons of the experiment.

    Types, scale and hash of parameters are filled in by the step, from the tables' schemas.
    """
    tokens = np.array(context.dataset(SEQUENCES)["tokens"].to_list())
    rows, found = [], Measurements(context)
    with one_thread():
        for run in context.runs():
            values = prediction.accuracy(context.model(run), tokens)
            rows += [{"run": run, "replica": r, "accuracy": value} for r, value in enumerate(values)]
            if run in LEARNS:
                found.add(LEARNS[run], values)
    return {"accuracy": pl.DataFrame(rows), "comparisons": found.table()}
