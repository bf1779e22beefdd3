"""E8: what a BERT leans on, which of its checkpoints teaches, what students have (Liu 2024, section 4.2.3.1)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import (
    BEST_OFF,
    FLAT,
    LEANING,
    LONG_LEFT,
    NEAREST,
    READ_EARLY,
    SHORT_LEFT,
)
from pipeline.studies.distillation.measures import lessons, phases, probe, windows
from pipeline.studies.distillation.names import ALONE, BERT, CHOICES, CHOOSERS, LONERS, PUPILS, SENTENCES

STUDENTS = ("os", "half", "prog", "ce")  # whose features are compared, of the horizon in the middle


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
                windows.summary(context, pupils, sentences, entry.sentences, entry.ngrams, _last(context, pupils))
            ),
        ]
        steps = sorted({*_last(context, BERT), *_every(teachers, entry.probed), *_middles(stages, teachers)})
        read = [
            probe.table(context, BERT, task_fields, entry.probe, steps),
            _of_arms(probe.table(context, pupils, task_fields, entry.probe, _last(context, pupils))),
        ]
        students = [lessons.courses(context, run) for run in (*CHOOSERS, *LONERS) if run in known]
        chosen = [
            lessons.checkpoints(context, name, teachers)
            for name in (*CHOICES, ALONE)
            if context.dataset(name).filter(part="student").height
        ]
        summary, probed, everything = pl.concat(near), pl.concat(read), pl.concat([teachers, *students])
    found = Measurements(context)
    _teachers(found, stages, summary.filter(run=BERT), probed.filter(run=BERT))
    _choices(context, found, stages, students, pl.concat(chosen).filter(order=0))
    _students(found, summary.filter(run=pupils), probed.filter(run=pupils))
    return {
        "phases": stages,
        "ngram_summary": summary,
        "nt_probe": probed,
        "chosen": pl.concat(chosen),
        "arms": lessons.averages(context, everything),
        "models": lessons.models(context, everything),
        "courses": lessons.one_by_one(teachers),
        "comparisons": found.table(),
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


def _teachers(found: Measurements, stages: pl.DataFrame, summary: pl.DataFrame, probed: pl.DataFrame) -> None:
    """Compare what teachers lean on, and what can be read from them, with how that is later."""
    wide = int(summary["ngram"].max())  # type: ignore[arg-type]
    robust, close, read = [], [], []
    for model, c1, start, end in stages.select("model", "c1", "p2_start", "p2_end").iter_rows():
        own = summary.filter(model=model).sort("step")
        near, far = (own.filter(measure="robust", ngram=windows.NARROW), own.filter(measure="close", ngram=wide))
        robust.append(near["q50"][-1] / near["q50"].max())
        close.append(far["q50"][-1] / far.filter(step=c1)["q50"].item())
        if start is not None and end is not None:
            by_step = (
                probed.filter(model=model)
                .group_by("step", maintain_order=True)  # of two steps that are as near the first counts
                .agg(pl.col("acc_boundary").mean())
            )
            scores = dict(by_step.iter_rows())
            middle = min(scores, key=lambda step: abs(step - (start + end) / 2))
            read.append(scores[middle] / scores[max(scores)])
    found.add(FLAT, windows.at_inflection(stages, summary))
    found.add(SHORT_LEFT, robust)
    found.add(LONG_LEFT, close)
    found.add(READ_EARLY, read, excluded=stages.height - len(read), reason="their loss has no fast phase")


def _choices(
    context: Inputs, found: Measurements, stages: pl.DataFrame, students: list[pl.DataFrame], first: pl.DataFrame
) -> None:
    """Compare students of the checkpoint nearest the inflection, where so many steps are spent with a checkpoint as are
    best for that one, with others."""
    compared: list[lessons.Floats] = []  # of each number of steps with a checkpoint
    inflection = dict(stages.select("model", "c1").iter_rows())
    for course in students:
        run = course["run"][0]
        if run not in CHOOSERS:
            continue
        of_run = first.filter(dataset=context.run_header(run)["entry"]["dataset"])
        final = lessons.finals(course)
        ends, arms = [], [arm for arm in final if arm != "c9"]
        for model, teacher in of_run.filter(arm="c1").select("model", "teacher").iter_rows():
            by_arm = dict(of_run.filter(model=model).select("arm", "teacher_step").iter_rows())
            nearest = min(arms, key=lambda arm: abs(by_arm[arm] - inflection[teacher]))
            best = max(arms, key=lambda arm: final[arm][model])
            steps = sorted(set(by_arm.values()))
            ends.append(
                (
                    final[nearest][model],
                    final["c9"][model],
                    final["c1"][model],
                    abs(steps.index(by_arm[best]) - steps.index(by_arm[nearest])),
                )
            )
        compared.append(np.array(ends, float).T)
    if not compared:
        return
    near, last, early, off = max(compared, key=lambda ends: lessons.mean(ends[0]))
    found.add(NEAREST["one-shot"], near, last)
    found.add(NEAREST["plateau"], near, early)
    found.add(BEST_OFF, off)


def _students(found: Measurements, summary: pl.DataFrame, probed: pl.DataFrame) -> None:
    """Compare features of progressive students with those of the last checkpoint's."""
    wide = int(summary["ngram"].max())  # type: ignore[arg-type]
    ours = "prog" if "prog" in summary["arm"].to_list() else "half"
    high = [level for level in probed["level"].unique() if level >= 4] or [probed["level"].max()]
    features = {
        "robust": summary.filter(measure="robust", ngram=windows.NARROW).rename({"q50": "value"}),
        "close": summary.filter(measure="close", ngram=wide).rename({"q50": "value"}),
        "probe": probed.filter(pl.col("level").is_in(high))
        .group_by("arm", "model")
        .agg(value=pl.col("acc_boundary").mean()),
    }
    for name, frame in features.items():
        samples = [frame.filter(arm=arm).sort("model")["value"] for arm in (ours, "os")]
        found.add(LEANING[name], *samples)
