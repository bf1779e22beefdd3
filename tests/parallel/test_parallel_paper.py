"""The translators of scale paper are built as its parameters say, and take steps."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline import params
from pipeline.models.parallel import translator
from pipeline.studies.parallel import datasets, runs
from pipeline.studies.parallel.names import LARGE, LARGE_CORPUS, MASKED_START, NO_POSITION, PADIR
from pipeline.training.core import train_chunk
from pipeline.training.ensemble import write_job
from pipeline.training.jobs import TrainingJob

ROOT = Path(__file__).parents[2]
FEW = {"train": 60, "valid": 5, "test": 10}


@pytest.mark.parametrize(
    ("run", "millions"), [(LARGE, 8.8), (PADIR[0.5], 0.273), (NO_POSITION, 0.239), (MASKED_START, 0.273)]
)
def test_a_run_takes_steps(run: str, millions: float, tmp_path: Path) -> None:
    loaded = params.load(ROOT, "paper")
    entry = loaded.members("runs")[run]
    assert entry.replicas >= 3 and entry.steps >= 1200
    corpus = loaded.members("datasets")[entry.dataset]
    assert (run == LARGE) == (entry.dataset == LARGE_CORPUS)
    frame, _ = datasets.generate(corpus.model_copy(update=FEW), entry.dataset, 1)
    short = entry.model_copy(update={"replicas": 1, "steps": 2, "warmup": 1, "batch": 4, "log_every": 1})
    header, data, table = runs.prepare(short, frame, 1)
    spec = translator.Spec(**header.spec)
    weights = sum(math.prod(shape) for shape in translator.shapes(spec).values())
    assert weights / 1e6 == pytest.approx(millions, abs=0.03)
    write_job(tmp_path / "job.safetensors", header, data, table)
    job = TrainingJob(tmp_path / "job.safetensors")
    before = job.initial([0])
    state = train_chunk(job, [0], torch.device("cpu"))
    assert state.step == 2 and not (state.flat == before).all()
    assert np.isfinite(torch.stack(state.curves["loss"]).numpy()).all()
