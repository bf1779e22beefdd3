"""E3 and E5: Transformers on sparse parity: acceleration, curriculum, attention (Liu 2024, section 4.2.7.2)."""

from __future__ import annotations

import numpy as np
import polars as pl
import torch

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import parity
from pipeline.models.distillation import transformer
from pipeline.studies.distillation.comparisons import (
    ATTENDING_DELAY,
    ATTENDING_END,
    ATTENTION_END,
    ATTENTION_PEAK,
    BY_PEAK,
    VALLEY,
)
from pipeline.studies.distillation.measures import curriculum, lessons
from pipeline.studies.distillation.measures.kept import Kept
from pipeline.studies.distillation.names import ATTENDING, ATTENTION, TOKENS_TAUGHT


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return correlations, checkpoints, courses, attention on the support, and comparisons."""
    answers = context.dataset(TOKENS_TAUGHT)
    task = lessons.task(answers)
    found = Measurements(context)
    with one_thread():
        single, summary = curriculum.tables(context, ATTENTION, task)
        teachers, students = lessons.courses(context, ATTENTION), lessons.courses(context, ATTENDING)
        chosen = lessons.checkpoints(context, TOKENS_TAUGHT, teachers)
        compare(context, found, teachers, students, summary.filter(degree=1), chosen)
        attention = _attention(context, task)
    return {
        "correlations": single,
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, pl.concat([teachers, students])),
        "models": lessons.models(context, pl.concat([teachers, students])),
        "courses": lessons.one_by_one(pl.concat([teachers, students])),
        "attention": attention,
        "comparisons": found.table(),
    }


def compare(
    context: Inputs,
    found: Measurements,
    teachers: pl.DataFrame,
    students: pl.DataFrame,
    first: pl.DataFrame,
    chosen: pl.DataFrame,
) -> None:
    """Compare how students of teachers that have learned end, by arm, and how far single signs separate (``first``) at
    most and at the end; a teacher that has not learned has nothing to teach, and no transition."""
    learned = lessons.learned(context, teachers)
    final, others = lessons.taught_by(chosen, learned, lessons.finals(students))
    for arm, comparison in {**ATTENDING_END, "peak": BY_PEAK}.items():
        found.add(comparison, final[arm], excluded=others[arm], reason=lessons.UNLEARNED)
    left_out = teachers["model"].n_unique() - len(learned)
    known = first.filter(pl.col("model").is_in(learned)).group_by("model", maintain_order=True)
    separations = known.agg(peak=pl.col("separation").max(), end=pl.col("separation").last())
    between = chosen.filter(pl.col("teacher").is_in(learned), arm="between", order=0)
    valley = between.join(
        first.select(teacher="model", teacher_step="step", separation="separation"),
        on=["teacher", "teacher_step"],
        how="left",
        maintain_order="left",
    ).unique("teacher", maintain_order=True)
    for comparison, values in (
        (ATTENTION_PEAK, separations["peak"]),
        (ATTENTION_END, separations["end"]),
        (VALLEY, valley["separation"]),
    ):
        found.add(comparison, values, excluded=left_out, reason="they have not learned their parity")
    taught = chosen.filter(pl.col("teacher").is_in(learned), arm="prog").select("model", "teacher").unique()
    models = lessons.models(context, pl.concat([teachers, students]))
    both = (
        taught.sort("model")
        .join(models.filter(run=ATTENDING, arm="prog"), on="model", maintain_order="left")
        .join(models.filter(run=ATTENTION).select(teacher="model", base="t90"), on="teacher", maintain_order="left")
    )
    late = both["t90"].fill_null(both["horizon"])
    found.add(ATTENDING_DELAY, late, both["base"], excluded=others["prog"], reason=lessons.UNLEARNED)


def _attention(context: Inputs, task: curriculum.Task) -> pl.DataFrame:
    """Return where the last token looks, along paths of two layers, after each kept step (section 4.2.7.2.1)."""
    d, k, _ = task
    kept = Kept(context, ATTENTION)
    bits = parity.sample(stream(context.seed, context.study, "attention", d), (context.entry.sequences,), d)
    ids = torch.from_numpy(bits.astype(np.int64))[None, None]
    names = [f"blocks.{layer}.attn.pattern" for layer in range(2)]
    rows = []
    for step in kept.steps:
        _, patterns = transformer.forward(kept.spec, kept.weights(step), torch.zeros(1, 1), ids, record=names)
        mass = along_paths(*(patterns[name].flatten(0, 1) for name in names))
        medians = mass.median(1).values
        for model, own in enumerate(medians.tolist()):
            rows += [
                {"run": ATTENTION, "model": model, "step": step, "place": place, "inside": place < k, "weight": value}
                for place, value in enumerate(own)
            ]
    return pl.DataFrame(rows)


def along_paths(first_NxBxHxTxT: torch.Tensor, second_NxBxHxTxT: torch.Tensor) -> torch.Tensor:
    """Return (N, B, T): how much the last token attends to each token by way of any token of the layer between.

    Heads are averaged, so that the weights of a string sum to 1.
    """
    first, second = first_NxBxHxTxT.mean(2), second_NxBxHxTxT.mean(2)
    return torch.einsum("nbi,nbij->nbj", second[:, :, -1], first)
