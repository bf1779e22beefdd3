"""A run that is trained on another machine: its jobs packed with their trainer, and the weights taken back.

What comes back is what an interrupted training of this clone would have left, so the step ``train`` goes on from it as
ever: it finds every model trained, and both engines record what it makes. A job's own digest tells whether it is the
job that parameters, data and code of this clone ask for.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import params as parameters
from pipeline.engine import graph, runner
from pipeline.engine.imports import PACKAGES, Sources, is_for_types
from pipeline.errors import SandglassError
from pipeline.store import paths

if TYPE_CHECKING:
    from pipeline.params import Params
    from pipeline.training.jobs import TrainingJob

    Weights = dict[int, tuple[dict[str, Any], int]]  # of each model the arrays of its chunk, and its place in them

TRAINER = "trainer.pyz"
START = "pipeline/training/bare.py"
# Packages import `pipeline` itself, and that the arithmetic.
WITH_PACKAGE = ("pipeline/__init__.py", "pipeline/arithmetic.py", "pipeline/errors.py")
MAIN = "import sys\n\nfrom pipeline.training import bare\n\nsys.exit(bare.main())\n"
README = """{count} job(s) of the run {run}, scale {scale}, to train on another machine.

It needs Python 3.11, torch, numpy and safetensors{more}; nothing has to be installed here.

    python {trainer}              trains on the GPU if there is one; stopped, it goes on where it was
    python {trainer} --at-once 8  trains eight jobs at a time: a step of small models leaves most of a GPU idle
    python {trainer} --speed      measures all models of a job at once beside one of them

Then carry the folder back:

    python -m pipeline train {run} --import FOLDER
"""
PROVIDED = {"torch", "numpy", "safetensors"}


def export(run: str, folder: Path) -> list[str]:
    """Write the jobs of ``run`` and their trainer to ``folder``; return the names of the members.

    Raises SandglassError if the folder holds something, a dataset is missing, or nothing trains at this scale.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SandglassError(f"{folder} is there already and not empty: name a new folder")
    job, params, members = _prepared(run, folder)
    if not members:
        raise SandglassError(f"{run} trains no model at scale {params.scale}")
    more = sorted(_pack(job, params, folder / TRAINER) - PROVIDED)
    told = {"count": len(members), "run": run, "scale": params.scale, "trainer": TRAINER}
    text = README.format(more="".join(f", {name}" for name in more), **told)
    (folder / "README.txt").write_text(text, encoding="utf-8")
    return list(members)


def take(run: str, folder: Path) -> list[str]:
    """Put what was trained in ``folder`` where the step ``train`` goes on; return the names of the members.

    Raises SandglassError, and changes nothing, if a member is missing, was not trained to its end, or is not the job
    that parameters, data and code ask for here.
    """
    bare = importlib.import_module("pipeline.training.bare")
    record = _record(folder / bare.RECORD)
    scratch = graph.STATE / "import" / run
    try:
        job, params, members = _prepared(run, scratch)
        trained = {member: _weights(member, path, folder / bare.JOBS / member, run) for member, path in members.items()}
        work = paths.WORK / job.study / job.id
        shutil.rmtree(work, ignore_errors=True)
        for member, (training, weights) in trained.items():
            target = work / member / "job.safetensors"
            target.parent.mkdir(parents=True)
            shutil.copyfile(training.path, target)
            _split(training, weights, target.parent / "chunks", params.device)
        digests = [training.digest for training, _ in trained.values()]
        (work / paths.TRAINED_ON).write_text(json.dumps(record | {"jobs": digests}), encoding="utf-8")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return list(trained)


def _prepared(run: str, folder: Path) -> tuple[graph.Job, Params, dict[str, Path]]:
    """Return the job of ``run`` and the job files of its members, written to ``folder``/jobs."""
    params = parameters.load(of=run)
    job = runner.find(params, "train", run)
    runner.check_inputs(job, params)
    bare, train = (importlib.import_module(f"pipeline.{name}") for name in ("training.bare", "steps.train"))
    folder.mkdir(parents=True, exist_ok=True)
    context = runner.context(job, params, folder, io.StringIO())
    members = {member: path for member, (path, _) in train.prepared(context, folder / bare.JOBS).items()}
    return job, params, members


def _pack(job: graph.Job, params: Params, file: Path) -> set[str]:
    """Write the trainer with the modules that it and the job import; return the libraries that they need."""
    found = Sources().closure([START], lambda pattern: graph.stands_for(pattern, job, params))
    files = sorted({*found, *WITH_PACKAGE, *(str(init) for each in found for init in _packages(Path(each)))})
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__main__.py", MAIN)
        for each in files:
            archive.write(each)
    return {name for each in files for name in _libraries(Path(each))}


def _packages(file: Path) -> Iterator[Path]:
    return (folder / "__init__.py" for folder in file.parents if (folder / "__init__.py").is_file())


def _libraries(file: Path) -> set[str]:
    """Return the libraries that a module imports, without Python's own."""
    names: list[str] = []
    ahead: list[ast.AST] = [ast.parse(file.read_bytes())]
    while ahead:
        node = ahead.pop()
        if isinstance(node, ast.If) and is_for_types(node.test):
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or PACKAGES[0])
        ahead += ast.iter_child_nodes(node)
    return {name.split(".")[0] for name in names} - {*PACKAGES, *sys.stdlib_module_names}


def _record(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise SandglassError(f"{file} is missing: `python {TRAINER}` there trains, and writes it") from None
    except ValueError:
        raise SandglassError(f"{file} is damaged") from None


def _weights(member: str, path: Path, there: Path, run: str) -> tuple[TrainingJob, Weights]:
    """Return the job of a member as it is asked for here, and what its models came to in ``there``."""
    core, jobs = (importlib.import_module(f"pipeline.training.{name}") for name in ("core", "jobs"))
    exported = there / "job.safetensors"
    if not exported.is_file():
        raise SandglassError(f"{exported} is missing: this is not what was exported of {run}")
    if exported.read_bytes() != path.read_bytes():
        raise SandglassError(
            f"{exported} is not what parameters, data and code ask for here: export {run} again, or go back to what "
            "it was exported from"
        )
    training: TrainingJob = jobs.TrainingJob(path)
    found: Weights = {}
    for chunk in sorted((there / "chunks").glob("*.safetensors")):
        state = None if ".partial." in chunk.name else core.read_state(chunk, training.digest)
        if state is not None and state.pop("step") == training.header.steps:
            replicas = core.chunk_replicas(chunk.name.split(".")[0])
            found |= {replica: (state, place) for place, replica in enumerate(replicas)}
    if missing := [str(replica) for replica in range(len(training.header.corpus)) if replica not in found]:
        raise SandglassError(
            f"{member}: models {', '.join(missing)} are not trained to the end: `python {TRAINER}` goes on"
        )
    return training, found


def _split(training: TrainingJob, weights: Weights, folder: Path, device: str) -> None:
    """Write the chunks that the step looks for: of the models that it would have trained together."""
    core, ensemble = (importlib.import_module(f"pipeline.training.{name}") for name in ("core", "ensemble"))
    checkpoints = importlib.import_module("pipeline.store.checkpoints")
    torch = importlib.import_module("torch")
    for replicas in ensemble.groups(training, ensemble.pick_device(device)):
        arrays = {}
        for name in weights[replicas[0]][0]:
            axis = 1 if name.startswith("curves.") else 0  # of the replicas
            parts = [state[name].select(axis, place) for state, place in (weights[each] for each in replicas)]
            arrays[name] = torch.stack(parts, axis).numpy()
        header = {"digest": training.digest, "step": training.header.steps}
        checkpoints.write(folder / f"{core.chunk_name(replicas)}.safetensors", arrays, header)
