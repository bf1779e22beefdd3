"""From trained models to result tables (Chen and Zou 2024, section 6; chapter sections 4, 6 and 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.streams import one_thread
from pipeline.store import tables
from pipeline.studies.depth.analysis import attention, contrasts, measure, text
from schemas.depth.tables import JUDGED, SCHEMAS


def analyse(context: Any) -> dict[str, pl.DataFrame]:
    """Every table of the study (`schemas.depth.tables.SCHEMAS`).

    Raises SandglassError if a dataset or a checkpoint is missing or damaged.
    """
    datasets = {key: context.dataset(key) for key in context.entry.datasets}
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    runs = {}
    with one_thread():
        for name in context.runs():
            runs[name] = run = measure.read(context, name, datasets)
            rows["runs"].append(_runs(run, datasets))
            rows["learning_rates"].append(run.rates)
            rows["curves"] += measure.curves(run)
            silent, agreement = attention.models(context, run)
            rows["summary"].append(_summary(context, run, silent))
            rows["agreement"] += [_frame(agreement)] if agreement else []
            rows["accuracy"].append(_frame(list(contrasts.accuracy(context, run))))
        rows["attention"] += attention.probes(context, runs)
    rows["examples"] += text.examples(datasets, context.entry.analysis.examples)
    stamp = {"scale": context.scale, "params_hash": context.params_hash}
    found = {name: tables.conform(frames, SCHEMAS[name], **stamp) for name, frames in rows.items()}
    compared = list(contrasts.contrasts(context, found["summary"]))
    found["contrasts"] = tables.conform([_frame(compared)] if compared else [], SCHEMAS["contrasts"], **stamp)
    return found


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _runs(run: measure.Run, datasets: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """What was trained, a row for each corpus."""
    entry, spec = run.entry, run.spec
    weights = sum(int(np.prod(shape)) for shape in measure.attention_only.shapes(spec).values())
    same = ("dataset", "init", "readout", "later", "optimizer", "clip", "steps", "batch", "width")
    about = {name: entry[name] for name in same} | {
        "d1": run.shape["d1"],
        "d2": run.shape["d2"],
        "length": spec.length,
        "outputs": spec.outputs,
        "weights": weights,
        "constructed": ", ".join(entry["constructed"] or []),
        "rates": ", ".join(f"{rate:g}" for rate in entry["lr"]),
    }
    counts = [sum(run.corpus(m) is corpus for m in run.models) // len(entry["lr"]) for corpus in run.corpora]
    return _frame(
        [
            run.about(corpus) | about | {"replicas": count}
            for corpus, count in zip(run.corpora, counts, strict=True)
        ]
    )


def _summary(context: Any, run: measure.Run, silent: list[dict[str, Any]]) -> pl.DataFrame:
    """How training ended, a row for each model."""
    judged = JUDGED[run.task]
    final = {
        "training_loss": run.last("loss", "train"),
        "accuracy": run.last("accuracy", judged),
        "context": run.last("context", judged),
        "accuracy_unseen_repetition": run.last("accuracy", "unseen_repetition"),
        "accuracy_unseen_token": run.last("accuracy", "unseen_token"),
    }
    reached = _first_step(run.curves, judged, context.entry.analysis.threshold)
    rows = []
    for model in run.models:
        corpus = run.corpus(model)
        rows.append(
            run.about(corpus)
            | {name: float(values[model]) for name, values in final.items()}
            | {
                "lr": run.lr[model],
                "replica": run.replica[model],
                "chosen": bool(run.chosen[model]),
                "diverged_at": run.diverged.get(model),
                "steps_to_95": reached.get(model),
                "steps": run.entry["steps"],
                "chance": run.chance(judged, corpus),
                "chance_context": 1 / run.offered if run.offered else None,
            }
            | silent[model]
        )
    return _frame(rows)


def _first_step(curves: pl.DataFrame, split: str, threshold: float) -> dict[int, int]:
    """The first step at which a model's accuracy is at least ``threshold``, of those that get there."""
    column = "accuracy" if split == "train" else f"accuracy_{split}"
    there = curves.filter(pl.col(column) >= threshold)
    return dict(there.group_by("replica").agg(pl.col("step").min()).iter_rows())
