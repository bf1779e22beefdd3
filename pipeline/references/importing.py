"""Reference sets: the result tables of a long run, made in another clone, frozen in data/reference/<set>/.

A set holds the tables, theory rows, figures and claims of one study as ``<kind>/<experiment>/…``, and ``record.json``,
which says its name and for every job behind them what dvc.lock of that clone says: parameters, md5 of code, data and
outputs (checkpoints among them, which stay behind), and the device it ran on. The report shows its claims in a column
of their own, and its figures where its scale is above that of the build.

A study may have several, for instance where its runs were spread over machines that share no storage. Each stays
what one clone built: nothing is merged, and a gate that needs runs of two sets is tested by neither.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline import params as parameters
from pipeline.engine import graph
from pipeline.engine import snakemake as engines
from pipeline.errors import SandglassError
from pipeline.references.reading import stranger
from pipeline.references.record import RECORD, kept_path, lock_parameters, step_log, write_name
from pipeline.store.paths import DATA, REFERENCE

KEPT = ("theory", "analyse", "figures", "claims")  # steps whose files make up a set
DVC = (sys.executable, "-m", "dvc")
ABSENT = ("deleted", "not in cache")  # DVC's words for a file that is not here


def freeze(study: str, clone: Path, name: str | None = None) -> Path:
    """Copy the results of ``study`` from the work tree ``clone`` to data/reference, ``dvc add`` and return the folder.

    ``name`` is the name of the set, which is that of the study without it; a set of that name is replaced.

    Raises SandglassError if they are not there, or are not what dvc.lock of ``clone`` says, if the name is no
    name of a folder or belongs to another study, or if an engine is at work here. The old set is in place then.
    """
    name = study if name is None else name
    params = parameters.load(clone)
    if study not in params.studies:
        raise SandglassError(f"{clone}/{parameters.FILE} knows no study {study!r}: it has {', '.join(params.studies)}")
    _refuse_name(name, study, parameters.load())
    with engines.alone():  # `dvc add` below takes DVC's lock by itself
        pass
    kept = [job for job in graph.jobs(params) if job.study == study and job.step in KEPT]
    behind = graph.with_ancestors(kept, params)  # a run that none of them reads is not asked for
    jobs = [job for job in graph.jobs(params) if job in behind]
    _refuse_stale(clone, jobs)
    stages = YAML(typ="safe").load((clone / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    record = {
        "name": name,
        "study": study,
        "scale": params.scale,
        "jobs": {job.stage: _job(stages[job.stage], clone, job) for job in jobs},
    }
    files = [path for job in kept for path in graph.outputs(job, params)]
    staging, before = (DATA / ".tmp" / f"{kind}-{name}.{os.getpid()}" for kind in ("reference", "replaced"))
    target = REFERENCE / name
    try:
        for path in files:
            copy = staging / kept_path(name, path).relative_to(target)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(clone / path, copy)
        text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
        (staging / RECORD).write_text(text + "\n", encoding="utf-8")
        if target.is_dir():
            target.replace(before)
        staging.replace(target)
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "add", str(target)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            shutil.rmtree(target)
            if before.is_dir():
                before.replace(target)
            raise SandglassError(f"dvc add {target}: {' '.join(done.stderr.split())}")
        added = YAML(typ="safe").load(REFERENCE / f"{name}.dvc")
        write_name(name, added["outs"][0]["md5"])
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
    return target


def _refuse_name(name: str, study: str, here: parameters.Params) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise SandglassError(f"{name!r} is no name of a set: small letters, digits and hyphens, please")
    try:
        taken = stranger(REFERENCE / name, study, here.studies)
    except SandglassError:  # damaged: to replace it mends it
        taken = None
    if taken:
        raise SandglassError(f"{REFERENCE / name} is for results of {taken}: give the set another --name")


def _refuse_stale(clone: Path, jobs: list[graph.Job]) -> None:
    """Raise SandglassError if the clone's DVC finds anything changed about these jobs.

    Checkpoints and datasets need not lie there: a set has none of them, and a clone of published results neither.
    """
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "status", "--json"], cwd=clone, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SandglassError(f"dvc status in {clone}: {' '.join(done.stderr.split())}")
    status = json.loads(done.stdout)
    changed = sorted(stage for stage in {job.stage for job in jobs} & set(status) if _is_changed(status[stage]))
    if changed:
        raise SandglassError(
            f"{clone}: not up to date, so nothing was copied: {', '.join(changed)}; "
            "build it there with: snakemake --cores all"
        )


def _is_changed(reasons: list[Any]) -> bool:
    """Return whether DVC has another reason to call a stage changed than that unpublished files are not here.

    Reasons are as `dvc status --json` says them: ``{"changed outs": {path: state}}``, or a word.
    """
    states = [
        (path, state)
        for reason in reasons
        for path, state in (reason.popitem()[1].items() if isinstance(reason, dict) else [("", reason)])
    ]
    return any(
        state not in ABSENT or not path.startswith(f"{DATA}/") or graph.is_published(Path(path))
        for path, state in states
    )


def _job(stage: dict[str, Any], clone: Path, job: graph.Job) -> dict[str, Any]:
    """Return what the lock file says of one job, and the device from its log."""
    deps = {dep["path"]: dep["md5"] for dep in stage.get("deps", [])}
    params = lock_parameters(stage)
    made = f"{DATA}/"
    noted = step_log(job, params, clone)
    return {
        "params": params,
        "code": {path: md5 for path, md5 in deps.items() if not path.startswith(made)},
        "inputs": {path: md5 for path, md5 in deps.items() if path.startswith(made)},
        "outputs": {out["path"]: out["md5"] for out in stage["outs"]},
        "device": noted.get("device") if job.step == "train" else "cpu",  # the other steps know no other
        "software_overridden": noted.get("software_overridden", []),
    }
