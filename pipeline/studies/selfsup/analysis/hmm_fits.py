"""E9: Definition 2 by optimisation, parameters fitted to exact predictors of each task from random starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import stream
from pipeline.languages import hmm
from pipeline.languages.hmm import Floats
from pipeline.models.masked_prediction import fitting, identifiability
from pipeline.studies.selfsup.comparisons import CONVERGED, FITTED_ERROR
from pipeline.studies.selfsup.measures import models
from pipeline.studies.selfsup.names import FITTED, PUBLISHED

CLOSE = 1e-16  # squared distance of predictors below which a start has converged


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return tables ``hmm_fit`` and ``comparisons``."""
    printed = models.read(context.dataset(PUBLISHED))["published-0"]
    drawn = models.read(context.dataset(FITTED)) | {"published-0": exact(*printed)}
    rows = [
        row for name, model in drawn.items() for task in context.entry.tasks for row in fits(context, name, model, task)
    ]
    table = pl.DataFrame(rows)
    found = Measurements(context)
    for task in context.entry.tasks:
        own = table.filter(task=task)
        by_model = own.group_by("instance_id", maintain_order=True).agg(
            pl.col("param_error").filter("converged").median(), pl.col("converged").mean()
        )
        found.add(FITTED_ERROR[task], by_model["param_error"].drop_nulls().to_numpy())
        found.add(CONVERGED[task], by_model["converged"].to_numpy())
    return {"hmm_fit": table, "comparisons": found.table()}


def exact(emission: Floats, transition: Floats) -> tuple[Floats, Floats]:
    """Return a printed model with sums that are exactly 1, so that a fit of it can have no residual."""
    return emission / emission.sum(0), hmm.sinkhorn(transition)


def fits(context: Inputs, name: str, model: tuple[Floats, Floats], task: str) -> Iterator[dict[str, Any]]:
    """Yield rows of ``hmm_fit`` of a model and task; logits of a start are standard normal, the same for all tasks."""
    target = identifiability.predictions(*model, task)
    for start in range(context.entry.starts):
        rng = stream(context.seed, context.study, context.experiment, name, start)
        logits = rng.standard_normal(model[0].shape), rng.standard_normal(model[1].shape)
        found = fitting.fit(
            target, task, logits, evaluations=context.entry.evaluations, iterations=context.entry.iterations
        )
        error = np.sum(hmm.distance(*model, found.emission, found.transition))
        yield {
            "instance_id": name,
            "task": task,
            "start": start,
            "residual": found.residual,
            "param_error": error,
            "evaluations": found.evaluations,
            "converged": found.residual < CLOSE,
        }
