"""EXP-1: every task at every depth (Figure 2), its controls, and other settings of contextual generalization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.studies.depth.measures import findings, training
from pipeline.studies.depth.measures.contrasts import STEPS, interval, row, steps_to
from pipeline.studies.depth.measures.runs import read
from pipeline.studies.depth.names import FROZEN, GENERALIZATION, LIKENESS


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment, what was found, and contrasts.

    Contrasts are of attention that learns with attention that is frozen, and of attention that is trained with that of
    the construction.
    """
    runs = list(read(context, context.runs()).values())
    tables = training.tables(context, runs)
    if not runs:
        return tables | {"contrasts": [], "findings": []}
    summary, accuracy, rates, metadata = (
        pl.concat(tables[name], how="diagonal_relaxed")
        for name in ("summary", "accuracy", "learning_rates", "runs")
    )
    agreement = (
        pl.concat(tables["agreement"], how="diagonal_relaxed") if tables["agreement"] else pl.DataFrame()
    )
    rows = [*_frozen(context, summary), *(_likeness(context, summary, agreement) if agreement.height else ())]
    contrasts = pl.DataFrame(rows, infer_schema_length=None) if rows else pl.DataFrame({"contrast": []})
    statements = [*findings.of_layers(accuracy, metadata, contrasts, rates), *findings.start_scores(runs)]
    return tables | {"contrasts": [contrasts] if rows else [], "findings": findings.table(iter(statements))}


def _frozen(context: Inputs, summary: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the ratio of median steps to the threshold where attention learns to that where it is frozen."""
    for trained, frozen in FROZEN.items():
        for n in summary.filter(run=frozen)["sequences"].unique().sort():
            parts = [summary.filter(pl.col("chosen"), run=run, sequences=n) for run in (trained, frozen)]
            if not parts[0].height:
                continue
            steps, censored = zip(*map(steps_to, parts), strict=True)
            name = f"attention that learns, N={n}"
            if any(2 * count >= len(sample) for count, sample in zip(censored, steps, strict=True)):
                ratio = stats.Interval(np.nan, np.nan, np.nan)
            else:
                ratio = interval(context, stats.median_ratio, *steps, names=("contrast", name))
            yield row(context, name, STEPS, "median ratio", parts, ratio, censored=sum(censored))


def _likeness(context: Inputs, summary: pl.DataFrame, agreement: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield how much the cosine with the construction changed in the models of two layers that solve generalization."""
    run = GENERALIZATION[2]
    ours = summary.filter(pl.col("chosen") & (pl.col("accuracy") >= context.settings.solved), run=run)
    joined = agreement.filter(run=run).join(ours.select("run", "lr", "replica"), on=("run", "lr", "replica"))
    for layer, name in LIKENESS.items():
        cosines = joined.filter(layer=layer).drop_nulls("cosine")
        if cosines.height:
            change = (cosines["cosine"] - cosines["cosine_start"]).to_numpy()
            median = interval(context, stats.median, change, names=("contrast", name))
            start = float(np.median(cosines["cosine_start"].to_numpy()))
            yield row(context, name, "cosine", "median change", [ours], median, start=start)
