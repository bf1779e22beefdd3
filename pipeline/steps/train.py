"""Step ``train``: all members of a run with all their replicas, to checkpoints and a table of curves.

Resume state lives in ``.work/<study>/<run>/<member>/``, outside the declared outputs (both engines delete those before
a step starts), keyed by the content of the job: other parameters, data or code that trains start afresh. Members are
prepared and stored one by one, so a member's weights do not depend on its company.
"""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.store import checkpoints, paths, tables
from pipeline.training import core, ensemble, jobs
from schemas.curves import Curves

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make the checkpoint of each member, ``curves.parquet`` and, for ``dvc plots``, medians over replicas.

    A member without replicas at this scale gets a checkpoint without a model.
    """
    members = _trained(job)
    for member in job.entry.members.keys() - members.keys():
        job.say(f"{member}: no replicas at this scale")
    work = paths.WORK / job.study / job.id
    made = prepared(job, work)
    trained = _train(job, work, [path for path, _ in made.values()])
    curves = []
    for position, (member, entry) in enumerate(job.entry.members.items()):
        header: dict[str, Any] = {"run": member, "job": job.id, "position": position, "entry": entry.model_dump()}
        if member not in members:
            _write(job, member, {}, header | {"diverged": {}})
            continue
        result, (path, models) = trained[list(members).index(member)], made[member]
        for replica, step in result.diverged.items():
            job.say(f"{member}: replica {replica} diverged at step {step} and was frozen there")
        curves.append(_curve_table(member, range(len(models["lr"])), result.logged, result.curves))
        diverged = {str(replica): step for replica, step in result.diverged.items()}
        table = checkpoints.read(path)[0]["table"]
        _write(job, member, result.params | {"table": table}, header | {"diverged": diverged} | models)
    frame = pl.concat(curves, how="diagonal") if curves else Curves.empty()
    tables.write(frame, job.out(paths.curves_path(job.study, job.id)), Curves)
    medians = frame.group_by("run", "step", maintain_order=True).agg(pl.median("loss", "accuracy"))
    text = json.dumps(medians.to_dicts(), indent=0) + "\n"
    job.out(paths.plot_path(job.study, job.id)).write_text(text, encoding="utf-8")
    shutil.rmtree(work, ignore_errors=True)


def _trained(job: Job) -> dict[str, Any]:
    """Return the members that have models at this scale."""
    return {member: entry for member, entry in job.entry.members.items() if entry.replicas}


def prepared(job: Job, work: Path) -> dict[str, tuple[Path, dict[str, Any]]]:
    """Write the job file of each member that is trained, ``work``/<member>/job.safetensors.

    Return its path and what its checkpoint says of the models.
    """
    module = importlib.import_module(f"pipeline.studies.{job.study}.runs")

    @cache  # many share theirs
    def read(dataset: str) -> pl.DataFrame:
        return tables.read(next(path for path in job.inputs if path.stem == dataset), module.DATASET_SCHEMA)

    jobs = {}
    for member, entry in _trained(job).items():
        header, data, table = module.prepare(entry, read(entry.dataset), job.seed)
        path = work / member / "job.safetensors"
        ensemble.write_job(path, replace(header, code=job.trainer), data, table)
        jobs[member] = path, {"spec": header.spec, "lr": header.lr, "streams": header.streams}
    return jobs


def _train(job: Job, work: Path, files: list[Path]) -> list[ensemble.Trained]:
    if not files:
        return []
    device = ensemble.pick_device(job.device)
    job.notes["device"] = device
    if (elsewhere := work / paths.TRAINED_ON).is_file():  # `python -m pipeline train RUN --import DIR`
        there = json.loads(elsewhere.read_text(encoding="utf-8"))
        if there.pop("jobs") == [jobs.TrainingJob(file).digest for file in files]:  # else these are other jobs
            job.notes["trained_on"] = there

    def publish_curves(jobs: list[jobs.TrainingJob]) -> None:
        """Write the curves so far, for whoever watches: ``.work/<study>/<run>/curves.parquet``."""
        curves = [frame for training in jobs if (frame := _curves_so_far(training)).height]
        if curves:
            tables.write(pl.concat(curves, how="diagonal"), work / "curves.parquet", Curves)

    return ensemble.train(files, device, job.say, publish_curves)


def _write(job: Job, member: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    metadata = {"study": job.study, "scale": job.scale, "params_hash": job.params_hash}
    checkpoints.write(job.out(paths.checkpoint_path(job.study, job.id, member)), arrays, metadata | header)


def _curve_table(run: str, replicas: Any, steps: np.ndarray, curves: dict[str, np.ndarray]) -> pl.DataFrame:
    """Return one row per replica and logged step; a value that is not finite (a diverged replica) is null."""
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


def _curves_so_far(training: jobs.TrainingJob) -> pl.DataFrame:
    """Return the curves that the checkpoints of a job's chunks hold; empty before the first."""
    steps, frames, run = ensemble.logged_steps(training.header), [], training.path.parent.name
    for path in sorted(training.folder.glob("*.safetensors")):
        state = core.read_state(path, training.digest)
        if state is None or any(f"curves.{metric}" not in state for metric in training.metrics):
            continue
        curves = {metric: state[f"curves.{metric}"].numpy().T for metric in training.metrics}
        points = next(iter(curves.values())).shape[1]
        replicas = core.chunk_replicas(path.name.split(".")[0])
        frames.append(_curve_table(run, replicas, steps[:points], curves))
    if not frames:
        return pl.DataFrame()
    # A replica may be in several: in those of another device, or from before memory ran out.
    return pl.concat(frames).unique(["replica", "step"], keep="last").sort("replica", "step")
