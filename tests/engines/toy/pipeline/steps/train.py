"""Step ``train`` without torch. The tests steer it from outside the parameters:

TOY_FAIL=<run> makes that run fail; TOY_SECONDS=<run>:<seconds> makes it slow.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from typing import Any

import polars as pl

from pipeline.engine import graph
from pipeline.store import checkpoints, tables
from schemas.curves import Curves


def run(job: Any) -> None:
    """Make ``model.safetensors``, ``curves.parquet`` and ``curves.json`` of the run."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.runs")
    frame = tables.read(graph.dataset_path(job.study, job.entry.dataset), module.DATASET_SCHEMA)
    slow, _, seconds = os.environ.get("TOY_SECONDS", "").partition(":")
    if job.id == slow:
        time.sleep(float(seconds))
    if job.id == os.environ.get("TOY_FAIL"):
        raise RuntimeError("told to fail")
    folder = graph.run_folder(job.study, job.id)
    weights = module.train(job.entry, frame["value"].to_numpy())
    curves = pl.DataFrame(
        {
            "run": job.id,
            "replica": range(job.entry.replicas),
            "step": job.entry.steps,
            "loss": job.entry.lr,
            "accuracy": 1.0,
            "regulariser": 0.0,
        },
        schema_overrides={"replica": pl.Int32, "step": pl.Int32},
    )
    tables.write(curves, job.out(folder / "curves.parquet"), Curves)
    points = curves.select("step", "loss", "accuracy").to_dicts()
    job.out(folder / "curves.json").write_text(json.dumps(points), encoding="utf-8")
    about = {"run": job.id, "params_hash": job.params_hash, "entry": job.entry.model_dump()}
    checkpoints.write(job.out(folder / "model.safetensors"), {"weights": weights}, about)
