"""E8: what a BERT leans on, which of its checkpoints teaches, what students have (Liu 2024, section 4.2.3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.measures import lessons, phases, probe, windows
from pipeline.studies.distillation.names import ALONE, BERT, CHOICES, CHOOSERS, LONERS, PUPILS, SENTENCES

STUDENTS = ("os", "half", "prog", "ce")  # whose features are compared, of the horizon in the middle
NARROW = 3  # tokens of the window whose importance the source plots


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return phases, distances by windows, probes, checkpoints that were chosen, courses, and comparisons."""
    known, entry = context.runs(), context.entry
    sentences = context.dataset(SENTENCES)
    task_fields = lessons.task_fields(sentences)
    with one_thread():
        teachers = lessons.courses(context, BERT)
        stages = phases.phases(teachers)
        pupils = PUPILS[1]
        near = [
            windows.summary(context, BERT, sentences, entry.sentences, entry.ngrams),
            _of_arms(
                windows.summary(
                    context, pupils, sentences, entry.sentences, entry.ngrams, _last(context, pupils)
                )
            ),
        ]
        steps = sorted({*_last(context, BERT), *_every(teachers, entry.probed), *_middles(stages, teachers)})
        read = [
            probe.table(context, BERT, task_fields, entry.probe, steps),
            _of_arms(probe.table(context, pupils, task_fields, entry.probe, _last(context, pupils))),
        ]
        students = [lessons.courses(context, run) for run in (*CHOOSERS, *LONERS) if run in known]
        chosen = [lessons.checkpoints(context, name, teachers) for name in (*CHOICES, ALONE)
                  if context.dataset(name).filter(part="student").height]  # fmt: skip
        summary, probed, everything = pl.concat(near), pl.concat(read), pl.concat([teachers, *students])
        rows = [
            *_teachers(context, stages, summary, probed), *_choices(context, stages, students, chosen),
            *_students(context, pupils, summary, probed),
        ]  # fmt: skip
    return {
        "phases": stages,
        "ngram_summary": summary,
        "nt_probe": probed,
        "chosen": pl.concat(chosen),
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _last(context: Inputs, run: str) -> list[int]:
    return [context.run_header(run)["entry"]["steps"]]


def _every(course: pl.DataFrame, each: int) -> list[int]:
    return sorted(course["step"].unique())[each - 1 :: each]


def _middles(stages: pl.DataFrame, course: pl.DataFrame) -> list[int]:
    """Return the kept steps in the middle of each teacher's fast phase."""
    steps = sorted(course["step"].unique())
    middles = ((stages["p2_start"] + stages["p2_end"]) / 2).drop_nulls()
    return [min(steps, key=lambda step: abs(step - middle)) for middle in middles]


def _of_arms(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("arm").is_in(STUDENTS))


def _teachers(
    context: Inputs, stages: pl.DataFrame, summary: pl.DataFrame, probed: pl.DataFrame
) -> list[dict[str, Any]]:
    """Return where the inflection lies beside the peak of L_robust, and how both distances end."""
    rows: list[dict[str, Any]] = []
    values: dict[str, list[float]] = {"distance": [], "robust": [], "close": [], "probe": []}
    wide = int(summary["ngram"].max())  # type: ignore[arg-type]
    for model, c1, start, end in stages.select("model", "c1", "p2_start", "p2_end").iter_rows():
        own = summary.filter(run=BERT, model=model)
        robust = own.filter(measure="robust", ngram=NARROW).sort("step")
        close = own.filter(measure="close", ngram=wide).sort("step")
        steps = robust["step"].to_list()
        peak = steps[int(robust["q50"].arg_max())]  # type: ignore[arg-type]
        values["distance"].append(abs(steps.index(peak) - steps.index(c1)))
        values["robust"].append(robust["q50"][-1] / robust["q50"].max())
        values["close"].append(close["q50"][-1] / close.filter(step=c1)["q50"].item())
        if start is not None and end is not None:
            own_probe = (
                probed.filter(run=BERT, model=model)
                .group_by("step", maintain_order=True)  # of two steps that are as near the first counts
                .agg(pl.col("acc_boundary").mean())
            )
            by_step = dict(own_probe.iter_rows())
            middle = min(by_step, key=lambda step: abs(step - (start + end) / 2))
            values["probe"].append(by_step[middle] / by_step[max(by_step)])
    names = {
        "distance": "checkpoints between inflection and peak", "robust": "L_robust(3), last over largest",
        "close": "L_close, last over inflection", "probe": "probe, middle over last",
    }  # fmt: skip
    for name, each in values.items():
        rows += lessons.contrast(context, names[name], stats.median, np.array(each, float))
    return rows


def _choices(
    context: Inputs, stages: pl.DataFrame, students: list[pl.DataFrame], chosen: list[pl.DataFrame]
) -> list[dict[str, Any]]:
    """Return final accuracies by checkpoint, and how that nearest the inflection compares, where so many steps are
    spent with a checkpoint as are best for that one."""
    rows: list[dict[str, Any]] = []
    compared: list[lessons.Floats] = []  # of each number of steps with a checkpoint
    inflection = dict(stages.select("model", "c1").iter_rows())
    every = pl.concat(chosen).filter(order=0)
    for course in students:
        run = course["run"][0]
        dataset = context.run_header(run)["entry"]["dataset"]
        first = every.filter(dataset=dataset)
        final = lessons.finals(course)
        for arm, own in final.items():
            rows += lessons.contrast(context, f"{run}, {arm}", stats.mean, own)
        if run not in CHOOSERS:
            continue
        ends, arms = [], [arm for arm in final if arm != "c9"]
        for model, teacher in first.filter(arm="c1").select("model", "teacher").iter_rows():
            by_arm = {
                row["arm"]: row["teacher_step"] for row in first.filter(model=model).iter_rows(named=True)
            }
            nearest = min(arms, key=lambda arm: abs(by_arm[arm] - inflection[teacher]))
            best = max(arms, key=lambda arm: float(final[arm].mean()))
            steps = sorted(set(by_arm.values()))
            ends.append((final[nearest][model], final["c9"][model], final["c1"][model],
                         abs(steps.index(by_arm[best]) - steps.index(by_arm[nearest]))))  # fmt: skip
        compared.append(np.array(ends, float).T)
    if not compared:
        return rows
    near, last, early, off = max(compared, key=lambda ends: float(ends[0].mean()))
    for other, values in (("one-shot", last), ("plateau", early)):
        name = f"inflection - {other}"
        rows += lessons.contrast(context, name, stats.mean_difference, near, values, paired=True)
    return rows + lessons.contrast(context, "checkpoints between best and inflection", stats.median, off)


def _students(context: Inputs, run: str, summary: pl.DataFrame, probed: pl.DataFrame) -> list[dict[str, Any]]:
    """Return how features of progressive students differ from those of the last checkpoint's."""
    rows: list[dict[str, Any]] = []
    wide = int(summary["ngram"].max())  # type: ignore[arg-type]
    ours = "prog" if "prog" in summary["arm"].to_list() else "half"
    own, read = summary.filter(run=run), probed.filter(run=run)
    top = [level for level in read["level"].unique() if level >= 4] or [int(read["level"].max())]  # type: ignore[arg-type]
    parts = {
        "L_robust(3)": own.filter(measure="robust", ngram=NARROW).select("arm", "model", value="q50"),
        f"L_close({wide})": own.filter(measure="close", ngram=wide).select("arm", "model", value="q50"),
        "probe": read.filter(pl.col("level").is_in(top))
        .group_by("arm", "model")
        .agg(value=pl.col("acc_boundary").mean()),
    }  # fmt: skip
    for name, frame in parts.items():
        both = [frame.filter(arm=arm).sort("model")["value"].to_numpy() for arm in (ours, "os")]
        rows += lessons.contrast(
            context,
            f"students' {name.split('(')[0]}, progressive - one-shot",
            stats.mean_difference,
            *both,
            paired=True,
        )
    levels = read.filter(pl.col("level").is_in(top)).sort("level", "model")
    both = [levels.filter(arm=arm)["acc_boundary"].to_numpy() for arm in (ours, "os")]
    hits = [bool(first > second) for first, second in zip(*both, strict=True) if first != second]
    return rows + lessons.share(
        context, "students' probe, levels at which progressive ones read better", hits
    )
