"""E6: hierarchical parity, where one checkpoint may not be enough (Liu 2024, section 4.2.7.3)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.distillation.comparisons import APART, BEST_PAIR, PAIR_LESS_SINGLE
from pipeline.studies.distillation.measures import curriculum, lessons
from pipeline.studies.distillation.names import LATE, PAIRS, SINGLES, TAUGHT, TREE_NARROW, TREE_STUDENTS, TREE_TEACHER


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return correlations with the parities on the way to class 0, checkpoints, courses and comparisons."""
    task = lessons.task(context.dataset(TAUGHT))
    found = Measurements(context)
    with one_thread():
        _, summary = curriculum.tables(context, TREE_TEACHER, task)
        teachers = lessons.courses(context, TREE_TEACHER)
        courses = {run: lessons.courses(context, run) for run in (TREE_STUDENTS, TREE_NARROW) if run in context.runs()}
        everyone = pl.concat([teachers, *courses.values()])
        chosen = lessons.checkpoints(context, TAUGHT, teachers)
        learned = lessons.learned(context, teachers)
        if TREE_STUDENTS in courses:
            _compared(found, *lessons.taught_by(chosen, learned, lessons.finals(courses[TREE_STUDENTS])))
        gaps = _gaps(context, teachers.filter(pl.col("model").is_in(learned)), summary)
        left_out = teachers["model"].n_unique() - len(learned)
        found.add(APART, gaps, excluded=left_out, reason="they have not learned the task")
    return {
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, everyone),
        "models": lessons.models(context, everyone),
        "comparisons": found.table(),
    }


def _compared(found: Measurements, values: dict[str, lessons.Floats], others: dict[str, int]) -> None:
    """Compare students of the best pair of checkpoints with those of the best single one.

    The best is the arm with the largest mean: chosen on the same models. Of the candidates, one lies behind the
    transition.
    """
    pair, single = (
        max((arm for arm in arms if arm in values and LATE not in arm), key=lambda arm: lessons.mean(values[arm]))
        for arms in (PAIRS, SINGLES)
    )
    found.add(BEST_PAIR, values[pair], excluded=others[pair], reason=lessons.UNLEARNED)
    both = values[pair], values[single]
    found.add(PAIR_LESS_SINGLE, *both, excluded=others[pair], reason=lessons.UNLEARNED)


def _gaps(context: Inputs, teachers: pl.DataFrame, summary: pl.DataFrame) -> lessons.Floats:
    """Return how many steps lie between the first and the last of the peaks of each teacher's parities, as a share of
    those until it has learned."""
    done = teachers.filter(pl.col("accuracy") >= context.settings.solved).group_by("model").agg(pl.col("step").min())
    gaps = []
    for model, step in sorted(done.iter_rows()):
        own = summary.filter(model=model).sort("separation", descending=True)
        peaks = own.unique("feature", keep="first", maintain_order=True)["step"].to_list()
        gaps.append((max(peaks) - min(peaks)) / step)
    return np.array(gaps, float)
