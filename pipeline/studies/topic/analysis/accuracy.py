"""Accuracy of the trained models."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.studies.topic.measures import prediction
from pipeline.studies.topic.names import SEQUENCES


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the table of accuracies: a row for each member of the experiment's runs.

    Its types, scale and hash of parameters are filled in by the step, from the table's schema.
    """
    tokens = np.array(context.dataset(SEQUENCES)["tokens"].to_list())
    rows = []
    with one_thread():
        for run in context.runs():
            values = prediction.accuracy(context.model(run), tokens)
            found = stats.bootstrap(
                stats.mean, values, rng=stream(context.seed, context.study, "bootstrap", run),
                resamples=context.settings.resamples, confidence=context.settings.confidence,
            )  # fmt: skip
            rows.append({"run": run, "value": found.value, "lo": found.lo, "hi": found.hi, "n": len(values)})
    return {"accuracy": pl.DataFrame(rows)}
