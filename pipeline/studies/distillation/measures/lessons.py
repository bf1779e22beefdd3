"""How far teachers and students are after each step, one by one, and how their arms compare (chapter section 3.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.shares import share_interval
from pipeline.kit.streams import stream
from schemas.distillation.datasets import ABOUT

Floats = NDArray[np.float64]

CONVERGED = 0.99  # accuracy of a teacher that has learned its parity (chapter section 6, C12)


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
    """Return the mean accuracy of each arm after each step, with a bootstrap interval over its models, and its mean
    loss."""
    keys = ["run", "width", "heads", "arm", "step"]
    rows: list[dict[str, Any]] = []
    for group, own in frame.group_by(keys, maintain_order=True):
        values = own["accuracy"].to_numpy()
        interval = stats.bootstrap(
            stats.mean, values, rng=stream(context.seed, context.study, "average", *map(str, group)),
            resamples=context.settings.resamples, confidence=context.settings.confidence,
        )  # fmt: skip
        more = {"loss": own["loss"].mean(), "n": len(values)}
        rows.append(dict(zip(keys, group, strict=True)) | _interval(interval) | more)
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
            model=pl.col("replica") * pl.col("side")
            + pl.col("student").str.split(".").list.last().cast(pl.Int32),
            order=pl.int_ranges(pl.col("schedule").list.len()),
        )
        .select(pl.lit(dataset).alias("dataset"), "arm", "model", "teacher", "schedule", "order")
        .explode("schedule", "order")
        .unnest("schedule")
        .rename({"checkpoint": "teacher_step", "end": "until"})
        .drop("start")
        .join(
            teachers.select(pl.col("model").alias("teacher"), pl.col("step").alias("teacher_step"), "accuracy"),
            on=["teacher", "teacher_step"], how="left", maintain_order="left",
        )
    )  # fmt: skip


def finals(frame: pl.DataFrame) -> dict[str, Floats]:
    """Return the accuracies (models,) of each arm after the last step of a run."""
    arms = frame["arm"].unique(maintain_order=True)
    last = frame.group_by("arm", "model", maintain_order=True).agg(pl.col("accuracy").last())
    return {arm: last.filter(arm=arm)["accuracy"].to_numpy() for arm in arms}


def better_temperature(final: dict[str, Floats]) -> str:
    """Return the arm of one-shot distillation with the larger mean: of the two temperatures the better one counts
    (section 4.2.1)."""
    return max(("os", "warm"), key=lambda arm: float(final[arm].mean()))


def converged(teachers: pl.DataFrame) -> list[int]:
    """Return the numbers of the teachers that end with an accuracy of `CONVERGED`."""
    last = teachers.group_by("model", maintain_order=True).agg(pl.col("accuracy").last())
    return last.filter(pl.col("accuracy") >= CONVERGED)["model"].sort().to_list()


def ends(
    context: Inputs, run: str, frame: pl.DataFrame, pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return the mean accuracy of each arm of a run after its last step, and the differences of pairs of arms, model by
    model; of pairs of which the run has both."""
    final = finals(frame)
    rows: list[dict[str, Any]] = []
    for arm, values in final.items():
        rows += contrast(context, f"{run}, {arm}", stats.mean, values)
    for first, second in pairs:
        if {first, second} <= set(final):
            name = f"{run}, {first} - {second}"
            rows += contrast(context, name, stats.mean_difference, final[first], final[second], paired=True)
    return rows


def task_fields(dataset: pl.DataFrame) -> dict[str, Any]:
    """Return what tells the task of a dataset from others, such as its grammar."""
    return dataset.filter(part="held").select(ABOUT).row(0, named=True)


def task(answers: pl.DataFrame) -> tuple[int, int, int]:
    """Return d, k and depth of a dataset."""
    d, k, depth = (int(answers[name][0]) for name in ("d", "k", "depth"))
    return d, k, depth


def contrast(
    context: Inputs, name: str, statistic: stats.Statistic, *samples: Floats, paired: bool = False
) -> list[dict[str, Any]]:
    """Return the row of ``statistic`` of the samples, a value for each model, with its bootstrap interval; none where a
    sample is empty."""
    if not samples or min(map(len, samples)) == 0:
        return []
    interval = stats.bootstrap(
        statistic, *samples, rng=stream(context.seed, context.study, "contrast", name),
        resamples=context.settings.resamples, confidence=context.settings.confidence, paired=paired,
    )  # fmt: skip
    return [{"contrast": name, **_interval(interval), "n": min(map(len, samples))}]


def share(context: Inputs, name: str, hits: Sequence[bool]) -> list[dict[str, Any]]:
    """Return the row of the share of ``hits`` that are true, with its exact binomial interval; none of none."""
    if not hits:
        return []
    interval = share_interval(hits, context.settings.confidence)
    return [{"contrast": name, **_interval(interval), "n": len(hits)}]


def speed(context: Inputs, name: str, models: pl.DataFrame, horizon: int) -> list[dict[str, Any]]:
    """Return the rank correlation of the number of heads with the step at which a model that learns from labels has 80
    % of its last accuracy, over those that train for ``horizon`` steps; none where all have as many heads."""
    own = models.filter(pl.col("arm").is_in(["label", "ce"]), pl.col("horizon") == horizon)
    if own["heads"].n_unique() < 2:
        return []
    heads, late = own["heads"].to_numpy().astype(float), own["t80"].to_numpy().astype(float)
    return contrast(context, name, stats.spearman, heads, late, paired=True)


def _interval(interval: stats.Interval) -> dict[str, float | None]:
    lo, hi = (None if np.isnan(end) else float(end) for end in (interval.lo, interval.hi))
    value = None if np.isnan(interval.value) else float(interval.value)
    return {"value": value, "lo": lo, "hi": hi}
