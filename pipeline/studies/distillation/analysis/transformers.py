"""E3 and E5: Transformers on sparse parity: acceleration, curriculum, attention (Liu 2024, section 4.2.7.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch

from pipeline.kit import stats
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import parity
from pipeline.models.distillation import transformer
from pipeline.studies.distillation.measures import curriculum, lessons
from pipeline.studies.distillation.measures.kept import Kept
from pipeline.studies.distillation.names import ATTENDING, ATTENTION, TOKENS_TAUGHT

LEARNED = 0.95  # accuracy of a student that has learned (chapter section 6, C16)
SEQUENCES = 256  # on which attention is measured; 1024 in the source, whose medians they give to a hundredth


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return correlations, checkpoints, courses, attention on the support, and comparisons."""
    answers = context.dataset(TOKENS_TAUGHT)
    task = lessons.task(answers)
    with one_thread():
        single, summary = curriculum.tables(context, ATTENTION, task)
        teachers, students = lessons.courses(context, ATTENTION), lessons.courses(context, ATTENDING)
        chosen = lessons.checkpoints(context, TOKENS_TAUGHT, teachers)
        rows: list[dict[str, Any]] = []
        for arm, final in lessons.finals(students).items():
            rows += lessons.contrast(context, f"attending {arm}", stats.median, final)
            rows += lessons.contrast(
                context, f"attending {arm}, learned", stats.mean, (final >= LEARNED).astype(float)
            )
        first = summary.filter(degree=1)
        peaks = (
            first.group_by("model", maintain_order=True)
            .agg(pl.col("separation").max())["separation"]
            .to_numpy()
        )
        ends = (
            first.group_by("model", maintain_order=True)
            .agg(pl.col("separation").last())["separation"]
            .to_numpy()
        )
        rows += lessons.contrast(context, "attention peak", stats.median, peaks)
        rows += lessons.contrast(context, "attention final", stats.median, ends)
        between = chosen.filter(arm="between", order=0).rename({"teacher_step": "step"})
        valley = between.join(
            first.select("model", "step", "separation").rename({"model": "teacher"}), on=["teacher", "step"]
        )
        rows += lessons.contrast(context, "separation between", stats.median, valley["separation"].to_numpy())
        attention = _attention(context, task)
    return {
        "correlations": single,
        "separation": summary,
        "chosen": chosen,
        "arms": lessons.averages(context, pl.concat([teachers, students])),
        "models": lessons.models(context, pl.concat([teachers, students])),
        "attention": attention,
        "contrasts": pl.DataFrame(rows, infer_schema_length=None),
    }


def _attention(context: Inputs, task: curriculum.Task) -> pl.DataFrame:
    """Return where the last token looks, along paths of two layers, after each kept step (section 4.2.7.2.1)."""
    d, k, _ = task
    kept = Kept(context, ATTENTION)
    bits = parity.sample(stream(context.seed, context.study, "attention", d), (SEQUENCES,), d)
    ids = torch.from_numpy(bits.astype(np.int64))[None, None]
    names = [f"blocks.{layer}.attn.pattern" for layer in range(2)]
    rows = []
    for step in kept.steps:
        _, patterns = transformer.forward(kept.spec, kept.weights(step), torch.zeros(1, 1), ids, record=names)
        mass = along_paths(*(patterns[name].flatten(0, 1) for name in names))
        medians = mass.median(1).values
        for model, own in enumerate(medians.tolist()):
            rows += [
                {
                    "run": ATTENTION,
                    "model": model,
                    "step": step,
                    "place": place,
                    "inside": place < k,
                    "weight": value,
                }
                for place, value in enumerate(own)
            ]
    return pl.DataFrame(rows)


def along_paths(first_NxBxHxTxT: torch.Tensor, second_NxBxHxTxT: torch.Tensor) -> torch.Tensor:
    """Return (N, B, T): how much the last token attends to each token by way of any token of the layer between.

    Heads are averaged, so that the weights of a string sum to 1.
    """
    first, second = first_NxBxHxTxT.mean(2), second_NxBxHxTxT.mean(2)
    return torch.einsum("nbi,nbij->nbj", second[:, :, -1], first)
