"""How training of runs ended: the tables that every experiment with runs of its own makes (chapter section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.depth.measures import attention
from pipeline.studies.depth.measures import runs as trained
from pipeline.studies.depth.names import IN_CONTEXT, JUDGED
from schemas.depth.tables import SPLITS

TOO_SLOW = "fewer than half of an arm get to 95%"


def solved(context: Inputs, task: str) -> float:
    """Return the accuracy from which a model has learned ``task``."""
    return float(context.settings.threshold if task == IN_CONTEXT else context.settings.solved)


def learned(context: Inputs, run: trained.Run) -> NDArray[np.bool_]:
    """Return which models of a run learned their task, (models,): the one rule of this study.

    A model that diverged has not, whatever its accuracy was before.
    """
    ends = run.last("accuracy", JUDGED[run.task]) >= solved(context, run.task)
    return ends & ~np.isin(run.models, list(run.diverged))


def tables(context: Inputs, runs: Iterable[trained.Run] | None = None) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of ``runs``, or of all runs of the experiment if these are not given.

    They hold what was trained, curves, how it ended, which rates are chosen, agreement with the
    constructions, and final accuracy.
    """
    frames: dict[str, list[pl.DataFrame]] = {
        name: [] for name in ("runs", "learning_rates", "curves", "summary", "agreement", "accuracy")
    }
    with one_thread():
        for run in trained.read(context, context.runs()).values() if runs is None else runs:
            frames["runs"].append(_runs(run))
            frames["learning_rates"].append(run.rates)
            frames["curves"] += trained.curves(run)
            silent, agreement = attention.models(context, run)
            frames["summary"].append(pl.concat([endings(context, run), _frame(silent)], how="horizontal"))
            frames["agreement"] += [_frame(agreement)] if agreement else []
            frames["accuracy"].append(_frame(list(accuracy(context, run))))
    return frames


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, infer_schema_length=None)


def _runs(run: trained.Run) -> pl.DataFrame:
    """Return what was trained, a row for each corpus."""
    entry, spec = run.entry, run.spec
    weights = sum(int(np.prod(shape)) for shape in trained.attention_only.shapes(spec).values())
    same = (
        "dataset",
        "init",
        "readout",
        "later",
        "optimizer",
        "trained",
        "attention",
        "clip",
        "steps",
        "batch",
        "width",
    )
    metadata = {name: entry[name] for name in same} | {
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
            run.row_keys(corpus) | metadata | {"replicas": count}
            for corpus, count in zip(run.corpora, counts, strict=True)
        ]
    )


def endings(context: Inputs, run: trained.Run) -> pl.DataFrame:
    """Return how training ended, a row for each model: the summary without what attention does.

    Values that are not defined are null, as in the table.
    """
    judged = JUDGED[run.task]
    final = {
        "training_loss": run.last("loss", "train"),
        "accuracy": run.last("accuracy", judged),
        "context": run.last("context", judged),
        "accuracy_unseen_repetition": run.last("accuracy", "unseen_repetition"),
        "accuracy_unseen_token": run.last("accuracy", "unseen_token"),
    }
    reached = _first_step(run.curves, judged, context.settings.threshold)
    solves, rows = learned(context, run), []
    for model in run.models:
        corpus = run.corpus(model)
        rows.append(
            run.row_keys(corpus)
            | {name: float(values[model]) for name, values in final.items()}
            | {
                "lr": run.lr[model],
                "replica": run.replica[model],
                "chosen": bool(run.chosen[model]),
                "learned": bool(solves[model]),
                "diverged_at": run.diverged.get(model),
                "steps_to_95": reached.get(model),
                "steps": run.entry["steps"],
                "chance": run.chance(judged, corpus),
                "chance_context": 1 / run.offered if run.offered else None,
            }
        )
    types = dict.fromkeys(("steps", "steps_to_95", "diverged_at"), pl.Int32)
    frame = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    return frame.with_columns(pl.selectors.float().fill_nan(None))


def _first_step(curves: pl.DataFrame, split: str, threshold: float) -> dict[int, int]:
    """Return the first step at which the accuracy is at least ``threshold``, by model.

    Models that never get there are left out.
    """
    column = "accuracy" if split == "train" else f"accuracy_{split}"
    rows = curves.filter(pl.col(column) >= threshold)
    return dict(rows.group_by("replica").agg(pl.col("step").min()).iter_rows())


def add_steps(found: Measurements, comparison: Comparison, first: pl.DataFrame, second: pl.DataFrame) -> None:
    """Compare how many steps the models of two arms, rows of how they ended, take to the threshold.

    A model that never gets there counts with one step more than training has: later than any that does. Where fewer
    than half of an arm get there, the quotient would be that of two lengths of training, and nothing is compared.
    """
    if comparison.paired:
        replicas = set(first["replica"]) & set(second["replica"])
        first, second = (part.filter(pl.col("replica").is_in(replicas)).sort("replica") for part in (first, second))
    slow = any(2 * part["steps_to_95"].null_count() >= part.height for part in (first, second))
    first_steps, second_steps = (steps_to_95(part.clear() if slow else part) for part in (first, second))
    left_out = first.height + second.height if slow else 0
    found.add(comparison, first_steps, second_steps, excluded=left_out, reason=TOO_SLOW)


def steps_to_95(part: pl.DataFrame) -> NDArray[np.float64]:
    """Return the steps of each model to the threshold; of one that never got there, one more than training has."""
    return part["steps_to_95"].fill_null(part["steps"] + 1).cast(pl.Float64).to_numpy()


def accuracy(context: Inputs, run: trained.Run) -> Iterator[dict[str, Any]]:
    """Yield rows of the table ``accuracy``: final accuracy of the models at the chosen rates."""
    confidence, bar = context.settings.confidence, solved(context, run.task)
    for number, corpus in enumerate(run.corpora):
        models, kept = run.models_of(corpus)
        for split in filter(run.has, SPLITS):
            chances = {"accuracy": run.chance(split, corpus)}
            chances |= {"context": 1 / run.offered} if run.offered else {}
            for metric, chance in chances.items():
                values = run.last(metric, split)[kept]
                median = intervals.median(values, confidence)
                solves = np.zeros(len(models), bool)  # a model that diverged has not solved anything
                solves[: len(kept)] = values >= bar
                share = intervals.share(solves, confidence)
                yield run.row_keys(corpus) | {
                    "lr": run.lr[models[0]],
                    "split": split,
                    "among": "outputs" if metric == "accuracy" else metric,
                    "value": median.value,
                    "lo": median.lo,
                    "hi": median.hi,
                    "interval": median.kind,
                    "confidence": confidence,
                    "least": values.min() if kept else None,
                    "most": values.max() if kept else None,
                    "n": len(kept),
                    "n_diverged": len(models) - len(kept),
                    "distinct": run.distinct[split, number],
                    "solved": bar,
                    "n_solved": int(solves.sum()),
                    "share": share.value,
                    "share_lo": share.lo,
                    "share_hi": share.hi,
                    "chance": chance,
                }
