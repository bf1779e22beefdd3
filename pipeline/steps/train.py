"""Step ``train``: all replicas of a run, to a checkpoint and a table of curves.

Resume state lives in ``.work/<study>/<run>/``, outside the declared outputs (both engines delete
those before a step starts), keyed by the content of the job: other parameters, data or code of the
preparation start afresh.
"""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.engine import graph
from pipeline.store import checkpoints, tables
from pipeline.training import core, ensemble
from schemas.curves import Curves

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``model.safetensors``, ``curves.parquet`` and, for ``dvc plots``, ``curves.json`` of the run.

    A run without replicas at this scale leaves these files without a model.
    """
    if not job.entry.replicas:
        job.say("no replicas at this scale")
        _write(job, {}, {}, {}, Curves.empty())
        return
    module = importlib.import_module(f"pipeline.studies.{job.study}.runs")
    frame = tables.read(graph.dataset_path(job.study, job.entry.dataset), module.DATASET_SCHEMA)
    header, data, table = module.prepare(job.entry, frame, job.seed)
    work = graph.WORK / job.study / job.id
    job_path = work / "job.safetensors"
    ensemble.write_job(job_path, header, data, table)
    device = ensemble.pick_device(job.device)
    job.notes["device"] = device

    def publish_curves(training: core.TrainingJob, folder: Path) -> None:
        """The curves so far, for whoever watches: ``.work/<study>/<run>/curves.parquet``."""
        curves = _curves_so_far(training, folder, job.id)
        if curves.height:
            tables.write(curves, work / "curves.parquet", Curves)

    trained = ensemble.train(job_path, device, job.say, publish_curves)
    for replica, step in trained.diverged.items():
        job.say(f"replica {replica} diverged at step {step} and was frozen there")
    curves = _curve_table(job.id, range(len(header.corpus)), trained.logged, trained.curves)
    models = {"spec": header.spec, "lr": header.lr, "streams": header.streams}
    _write(job, trained.params | {"table": table}, models, trained.diverged, curves)
    shutil.rmtree(work)


def _write(
    job: Job,
    arrays: dict[str, np.ndarray],
    models: dict[str, Any],
    diverged: dict[int, int],
    curves: pl.DataFrame,
) -> None:
    folder = graph.run_folder(job.study, job.id)
    tables.write(curves, job.out(folder / "curves.parquet"), Curves)
    medians = curves.group_by("step").agg(pl.median("loss", "accuracy")).sort("step")
    text = json.dumps(medians.to_dicts(), indent=0) + "\n"
    job.out(folder / "curves.json").write_text(text, encoding="utf-8")
    about = {
        "run": job.id,
        "study": job.study,
        "scale": job.scale,
        "params_hash": job.params_hash,
        "entry": job.entry.model_dump(),
        "diverged": {str(replica): step for replica, step in diverged.items()},
    } | models
    checkpoints.write(job.out(folder / "model.safetensors"), arrays, about)


def _curve_table(run: str, replicas: Any, steps: np.ndarray, curves: dict[str, np.ndarray]) -> pl.DataFrame:
    """One row per replica and logged step; a value that is not finite (a diverged replica) is null."""
    count, points = len(replicas), len(steps)
    frame = pl.DataFrame(
        {
            "run": [run] * (count * points),
            "replica": np.repeat(np.asarray(replicas, dtype=np.int32), points),
            "step": np.tile(steps.astype(np.int32), count),
        }
        | {metric: values.astype(np.float64).reshape(-1) for metric, values in curves.items()}
    )
    return frame.with_columns(
        pl.when(pl.col(metric).is_finite()).then(pl.col(metric)).alias(metric) for metric in curves
    )


def _curves_so_far(training: core.TrainingJob, folder: Path, run: str) -> pl.DataFrame:
    """What the checkpoints in ``folder`` hold; empty before the first."""
    steps, found = ensemble.logged_steps(training.header), []
    for path in sorted(folder.glob("*.safetensors")):
        state = core.read_state(path, training.digest)
        if state is None or any(f"curves.{metric}" not in state for metric in training.metrics):
            continue
        curves = {metric: state[f"curves.{metric}"].numpy().T for metric in training.metrics}
        points = next(iter(curves.values())).shape[1]
        replicas = core.chunk_replicas(path.name.split(".")[0])
        found.append(_curve_table(run, replicas, steps[:points], curves))
    if not found:
        return pl.DataFrame()
    # A replica may be in several: in those of another device, or from before memory ran out.
    return pl.concat(found).unique(["replica", "step"], keep="last").sort("replica", "step")
