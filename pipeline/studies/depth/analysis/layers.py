"""EXP-1: every task at every depth (Figure 2), its controls, and other settings of contextual generalization."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.store.tables import conform
from pipeline.studies.depth.comparisons import ENDED, FROZEN_STEPS, LIKENESS, RIGHT_PAIR, SOLVED
from pipeline.studies.depth.measures import findings, training
from pipeline.studies.depth.measures.runs import Run, read
from pipeline.studies.depth.names import CONTEXT, FROZEN, GENERALIZATION, JUDGED, REASONING
from schemas.depth.tables import Agreement


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of all runs of the experiment, comparisons of their models, and what was found."""
    runs = read(context, context.runs())
    tables = training.tables(context, runs.values())
    found = Measurements(context)
    for run in runs.values():
        _ended(found, run)
    summary = pl.concat(tables["summary"], how="diagonal_relaxed")
    for trained, frozen in FROZEN.items():
        if trained in runs and frozen in runs:
            parts = (_largest(summary.filter(pl.col("chosen"), run=run)) for run in (trained, frozen))
            training.add_steps(found, FROZEN_STEPS[trained], *parts)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    _attention(found, summary, conform(tables["agreement"], Agreement, **stamp))  # it may have no rows
    rates = pl.concat(tables["learning_rates"], how="diagonal_relaxed")
    sentences = [*findings.of_rates(rates), *findings.start_scores(list(runs.values()))]
    return tables | {"comparisons": [found.table()], "findings": findings.table(iter(sentences))}


def _ended(found: Measurements, run: Run) -> None:
    """Add how accurate the models of a run end, on its largest corpus, and how many of them solve the task."""
    models, kept = run.models_of(max(run.corpora, key=lambda corpus: corpus.sequences))
    for (name, split, among), comparison in ENDED.items():
        if name == run.name:
            values = run.last("context" if among == CONTEXT else "accuracy", split)[kept]
            found.add(comparison, values, excluded=len(models) - len(kept), reason="diverged")
    if run.name in SOLVED:
        ends = run.last("accuracy", JUDGED[run.task])[kept]
        found.add(SOLVED[run.name], np.append(ends, np.zeros(len(models) - len(kept))))


def _largest(summary: pl.DataFrame) -> pl.DataFrame:
    return summary.filter(pl.col("sequences") == pl.col("sequences").max())


def _attention(found: Measurements, summary: pl.DataFrame, agreement: pl.DataFrame) -> None:
    """Add where models of two layers that learned their task look, and by how much training made attention more like
    the construction; of several heads the mean."""
    for run, comparisons in (
        (REASONING[2], {2: (RIGHT_PAIR, ["right_example"])}),
        (GENERALIZATION[2], {layer: (each, ["cosine", "cosine_start"]) for layer, each in LIKENESS.items()}),
    ):
        models = summary.filter(pl.col("chosen"), run=run)
        if not models.height:
            continue
        learned = models.filter("learned").select("lr", "replica")
        rows = agreement.filter(run=run).join(learned, on=("lr", "replica"), how="semi")
        for layer, (comparison, columns) in comparisons.items():
            means = rows.filter(layer=layer).group_by("replica").agg(pl.col(columns).fill_null(np.nan).mean())
            samples = means.sort("replica").select(columns).to_numpy().T
            left = models.height - learned.height
            found.add(comparison, *samples, excluded=left, reason="did not learn the task")
