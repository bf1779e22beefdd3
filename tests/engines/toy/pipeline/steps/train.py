"""Step ``train`` without torch. The tests steer it from outside the parameters:

TOY_FAIL=<run> makes that run fail; TOY_WAIT=<run>:<file> lets it wait for that file.
"""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

import polars as pl

from pipeline.languages import toy
from pipeline.store import checkpoints, paths, tables
from schemas.curves import Curves


def run(job: Any) -> None:
    """Make the checkpoint of each member and the curves of the run."""
    module = importlib.import_module(f"pipeline.studies.{job.study}.runs")
    toy.wait(job.id)
    if job.id == os.environ.get("TOY_FAIL"):
        raise RuntimeError("told to fail")
    frames = []
    for position, (member, entry) in enumerate(job.entry.members.items()):
        dataset = next(path for path in job.inputs if path.stem == entry.dataset)
        weights = module.train(entry, tables.read(dataset, module.DATASET_SCHEMA)["value"].to_numpy())
        frames.append(
            pl.DataFrame(
                {
                    "run": member,
                    "replica": range(entry.replicas),
                    "step": entry.steps,
                    "loss": entry.lr,
                    "accuracy": 1.0,
                    "regulariser": 0.0,
                },
                schema_overrides={"replica": pl.Int32, "step": pl.Int32},
            )
        )
        about = {"run": member, "job": job.id, "position": position, "params_hash": job.params_hash}
        path = job.out(paths.checkpoint_path(job.study, job.id, member))
        checkpoints.write(path, {"weights": weights}, about | {"entry": entry.model_dump(), "diverged": {}})
    curves = pl.concat(frames)
    tables.write(curves, job.out(paths.curves_path(job.study, job.id)), Curves)
    points = curves.select("run", "step", "loss", "accuracy").to_dicts()
    job.out(paths.plot_path(job.study, job.id)).write_text(json.dumps(points), encoding="utf-8")
