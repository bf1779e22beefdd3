"""Prints the job sets of both engines in the current folder as JSON, keyed by command line.

A program of its own, because reading the Snakefile takes the locks of both engines. Underscored names
are private to the engines, whose versions are pinned.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def of_snakemake() -> dict[str, Any]:
    """Inputs and outputs of every job that `snakemake` would run in an empty work tree."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import DAGSettings, OutputSettings, Quietness, ResourceSettings

    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL}, dryrun=True)) as api:
        workflow = api.workflow(resource_settings=ResourceSettings(cores=1), snakefile=Path("Snakefile"))
        workflow.dag(dag_settings=DAGSettings(forceall=True))
        inner = workflow._workflow
        inner._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
        inner._build_dag()
        return {
            job.shellcmd: {
                "inputs": sorted(map(str, job.input)),
                "outputs": sorted(map(str, job.output)),
                "log": list(map(str, job.log)),
            }
            for job in inner.dag.jobs
            if not job.is_norun
        }


def of_dvc() -> dict[str, Any]:
    """Dependencies, outputs and tracked parameters of every stage."""
    from dvc.repo import Repo

    with Repo() as repo:
        assert repo.index.graph  # raises on outputs that two stages share
        return {
            stage.cmd: {
                "name": stage.addressing,
                "inputs": sorted(dep.def_path for dep in stage.deps if not hasattr(dep, "params")),
                "outputs": sorted(out.def_path for out in stage.outs),
                "tracked": sorted(_tracked(dep.def_path, p) for dep in stage.deps for p in getattr(dep, "params", ())),
            }
            for stage in repo.index.stages
            if stage.cmd  # not a reference set
        }


def _tracked(file: str, name: str) -> str:
    return name if file == "params.yaml" else f"{file}:{name}"


def of_code() -> dict[str, Any]:
    """What pipeline/engine/graph.py says of every job."""
    from pipeline import params
    from pipeline.engine import graph

    loaded = params.load()
    return {
        job.command: {
            "name": job.name,
            "stage": job.stage,
            "tracked": sorted([*job.tracked, *graph.shared_parameters(job, loaded)]),
            "read": sorted(json.loads(job.text_of(dict.fromkeys(job.tracked)))),
            "inputs": sorted(map(str, {*graph.code(job, loaded), *graph.data(job, loaded)})),
            "outputs": sorted(map(str, graph.outputs(job, loaded))),
        }
        for job in graph.jobs(loaded)
    }


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    json.dump({"dvc": of_dvc(), "snakemake": of_snakemake(), "code": of_code()}, sys.stdout)
