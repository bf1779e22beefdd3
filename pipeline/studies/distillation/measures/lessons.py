"""How far teachers and students are after each step, one by one, and how their arms compare (chapter section 3.9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from schemas.distillation.datasets import ABOUT

Floats = NDArray[np.float64]

UNLEARNED = "their teacher has not learned its parity"


def courses(context: Inputs, run: str) -> pl.DataFrame:
    """Return a row for each model of a run and point of its curves: ``run``, ``width``, ``heads``, ``arm``, ``model``
    (its number within the arm), ``step``, ``accuracy``, ``loss``."""
    entry = context.run_header(run)["entry"]
    frame = context.curves(run)
    parts = []
    for column in frame.columns:
        what, _, name = column.partition("_")
        if what != "accuracy" or not name:
            continue
        arm, _, own = name.partition(".")
        parts.append(
            frame.select(
                "step",
                run=pl.lit(run),
                width=pl.lit(entry["width"], pl.Int32),
                heads=pl.lit(entry["heads"], pl.Int16),
                arm=pl.lit(arm),
                model=pl.col("replica") * entry["side"] + int(own),
                accuracy=pl.col(column),
                loss=pl.col(f"loss_{name}"),
            )
        )
    order = ["run", "width", "heads", "arm", "model", "step", "accuracy", "loss"]
    return pl.concat(parts).select(order).sort("run", "arm", "model", "step", maintain_order=True)


def averages(context: Inputs, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the mean accuracy of each arm after each step, with its interval over models, and its mean loss."""
    keys = ["run", "width", "heads", "arm", "step"]
    rows: list[dict[str, Any]] = []
    for group, own in frame.group_by(keys, maintain_order=True):
        found = intervals.mean(own["accuracy"].to_numpy(), context.settings.confidence).within(0, 1)
        ends = {name: None if math.isnan(end := getattr(found, name)) else end for name in ("value", "lo", "hi")}
        more = {"interval": found.kind, "loss": own["loss"].mean(), "n": found.n}
        rows.append(dict(zip(keys, group, strict=True)) | ends | more)
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides={"heads": pl.Int16})


def models(context: Inputs, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each model: ``t90``, the first point at which it has learned (null: not until its last),
    ``t80``, that at which it has 80 % of its ``final`` accuracy, and ``horizon``, its last step."""
    risen = pl.col("accuracy") >= context.settings.risen
    return frame.group_by("run", "width", "heads", "arm", "model", maintain_order=True).agg(
        t90=pl.col("step").filter(risen).min(),
        t80=pl.col("step").filter(pl.col("accuracy") >= 0.8 * pl.col("accuracy").last()).min(),
        final=pl.col("accuracy").last(),
        horizon=pl.col("step").last(),
    )


def one_by_one(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the courses of all models as the table ``courses`` has them."""
    return frame.select("run", "arm", "model", "step", "accuracy", "loss")


def at(frame: pl.DataFrame, steps: dict[int, int], arm: str) -> Floats:
    """Return the accuracies (models,) of an arm at the steps given for each model, in the order of models."""
    own = frame.filter(arm=arm)
    return np.array(
        [
            own.filter(model=model, step=steps[model])["accuracy"].item()
            for model in sorted(own["model"].unique())
            if model in steps
        ],
        float,
    )


def checkpoints(context: Inputs, dataset: str, teachers: pl.DataFrame) -> pl.DataFrame:
    """Return which checkpoint each student learned from before the last: ``dataset``, ``arm``, ``model``, ``teacher``,
    ``order``, ``teacher_step`` and its ``accuracy`` there (null: before the first point of its curve), ``until``, the
    student's step at which it ends."""
    students = context.dataset(dataset).filter(pl.col("part") == "student", pl.col("teacher").is_not_null())
    side = students.group_by("replica", maintain_order=True).agg(
        pl.col("student").str.split(".").list.last().cast(pl.Int32).max() + 1
    )
    return (
        students.join(side.rename({"student": "side"}), on="replica")
        .with_columns(
            arm=pl.col("student").str.split(".").list.first(),
            model=pl.col("replica") * pl.col("side") + pl.col("student").str.split(".").list.last().cast(pl.Int32),
            order=pl.int_ranges(pl.col("schedule").list.len()),
        )
        .select(pl.lit(dataset).alias("dataset"), "arm", "model", "teacher", "schedule", "order")
        .explode("schedule", "order")
        .unnest("schedule")
        .rename({"checkpoint": "teacher_step", "end": "until"})
        .drop("start")
        .join(
            teachers.select(pl.col("model").alias("teacher"), pl.col("step").alias("teacher_step"), "accuracy"),
            on=["teacher", "teacher_step"],
            how="left",
            maintain_order="left",
        )
    )


def finals(frame: pl.DataFrame) -> dict[str, Floats]:
    """Return the accuracies (models,) of each arm after the last step of a run."""
    arms = frame["arm"].unique(maintain_order=True)
    last = frame.group_by("arm", "model", maintain_order=True).agg(pl.col("accuracy").last())
    return {arm: last.filter(arm=arm)["accuracy"].to_numpy() for arm in arms}


def number(context: Inputs, run: str) -> int:
    """Return how many models a run has: replicas of all rates, with those side by side."""
    entry = context.run_header(run)["entry"]
    return int(entry["replicas"] * entry["side"] * len(entry["lr"]))


def of_teachers(final: dict[str, Floats], teachers: int) -> dict[str, Floats]:
    """Return the values of each arm (`finals`) with one for each teacher: the mean of its students.

    Students with numbers that are equal up to a multiple of ``teachers`` have one teacher, and those of labels that
    read their inputs are taken together alike. What is averaged counts once, as students of one teacher are not
    independent.
    """
    return {
        arm: values.reshape(-1, teachers).mean(0) if len(values) > teachers else values for arm, values in final.items()
    }


def better_temperature(final: dict[str, Floats]) -> str:
    """Return the arm of one-shot distillation with the larger mean: of the two temperatures the better one counts
    (section 4.2.1)."""
    return max(("os", "warm"), key=lambda arm: mean(final[arm]))


def mean(values: Floats) -> float:
    """Return the mean; of nothing NaN, without a warning."""
    return float(values.mean()) if len(values) else math.nan


def learned(context: Inputs, teachers: pl.DataFrame) -> list[int]:
    """Return the numbers of the teachers that have learned: those that end with the accuracy ``solved``."""
    last = teachers.group_by("model", maintain_order=True).agg(pl.col("accuracy").last())
    return last.filter(pl.col("accuracy") >= context.settings.solved)["model"].sort().to_list()


def taught_by(
    chosen: pl.DataFrame, teachers: Sequence[int], final: dict[str, Floats]
) -> tuple[dict[str, Floats], dict[str, int]]:
    """Return of the values of each arm (`finals`) those of students of ``teachers``, and how many others there are.

    ``chosen`` says who taught whom (`checkpoints`); arms of labels have no teacher, and stay whole.
    """
    kept, others = {}, {}
    for arm, values in final.items():
        own = dict(chosen.filter(arm=arm).select("model", "teacher").unique().iter_rows())
        some = np.array([not own or own[model] in teachers for model in range(len(values))], bool)
        kept[arm], others[arm] = values[some], int((~some).sum())
    return kept, others


def task_fields(dataset: pl.DataFrame) -> dict[str, Any]:
    """Return what tells the task of a dataset from others, such as its grammar."""
    return dataset.filter(part="held").select(ABOUT).row(0, named=True)


def task(answers: pl.DataFrame) -> tuple[int, int, int]:
    """Return d, k and depth of a dataset."""
    d, k, depth = (int(answers[name][0]) for name in ("d", "k", "depth"))
    return d, k, depth


def add(found: Measurements, comparison: Comparison, *samples: Floats | None) -> None:
    """Measure a comparison; it is not run where the models of a sample are not trained at this scale."""
    known = [sample for sample in samples if sample is not None]
    if len(known) == len(samples):
        found.add(comparison, *known)
    else:
        found.not_run(comparison)


def speed(models: pl.DataFrame, horizon: int) -> tuple[Floats, Floats] | None:
    """Return the numbers of heads, and the steps at which a model that learns from labels has 80 % of its last
    accuracy, over those that train for ``horizon`` steps; none where all have as many heads."""
    own = models.filter(pl.col("arm").is_in(["label", "ce"]), pl.col("horizon") == horizon)
    if own["heads"].n_unique() < 2:
        return None
    return own["heads"].to_numpy().astype(float), own["t80"].to_numpy().astype(float)
