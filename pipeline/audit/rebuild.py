"""A chain of jobs built once more, in a scratch workspace, and compared with what lies here.

The workspace gets the code, the parameters and the reference sets of this work tree, nothing that was
built, and no link back: what the scratch build does cannot touch the results here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

from pipeline import params
from pipeline.audit import elsewhere, hashing
from pipeline.audit.compare import DIFFERENT, NOT_COMPARED, ROUNDING, STATES, TRAINING, Comparison, compare
from pipeline.audit.hashing import DVC
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import LOCK, Artifact
from pipeline.engine import build, graph, machine
from pipeline.engine import snakemake as engines
from pipeline.engine.build import Reference, duration
from pipeline.errors import SandglassError
from pipeline.store.paths import REFERENCE

FOLDERS = (Path("pipeline"), Path("schemas"), Path("profiles"), Path("params"), REFERENCE)
FILES = (
    *(Path("Snakefile"), Path("dvc.yaml"), Path("requirements.txt"), Path(".dvcignore"), DVC / "config"),
    *(Path(params.FILE), graph.ACCEPTED),
)
POLL = 0.1  # seconds
TAKEN = ("dataset", "train", "labels")  # steps whose results may be taken from here
# Says that a folder is such a workspace, and whether results were taken into it.
MARK = graph.STATE / "scratch"


@dataclass(frozen=True)
class Rebuilt:
    """``made`` are the jobs that ran in the workspace, ``kept`` those whose results were taken from here.

    ``recorded_on`` and ``rebuilt_on`` are the two machines, in words; the first is None where nobody wrote it down.
    """

    state: str
    comparisons: list[Comparison]
    made: list[str]
    kept: list[str]
    recorded_on: str | None
    rebuilt_on: str
    workspace: str | None  # where it is kept
    workspace_size: int | None  # in bytes
    temporary: bool  # whether the workspace was chosen here, so that it is left for someone to remove


def rebuild(chain: Chain, workspace: Path | None, *, keep_runs: bool, train: bool = False) -> Rebuilt:
    """Build the artifacts of ``chain`` in ``workspace``, which is kept and continued, or in a temporary folder.

    With ``keep_runs``, datasets and runs that are as dvc.lock records them are taken from here; those that are not are
    trained if ``train`` says so.

    Raises SandglassError naming the workspace if a step fails there, and before anything is built if runs would have to
    be trained that nobody asked for.
    """
    if keep_runs and not train:
        _refuse_training(chain, workspace)
    folder = workspace.resolve() if workspace else Path(tempfile.mkdtemp(prefix="sandglass-"))
    _prepare(folder, "kept" if keep_runs else "")
    if keep_runs:
        _take(chain, folder)
    _build(chain, folder)
    comparisons = [_compare(artifact, chain, folder) for artifact in chain.artifacts]
    state = min((each.state for each in comparisons), key=STATES.index)
    made, kept = _made(chain, folder)
    gone = workspace is None and state != DIFFERENT
    size = None if gone else sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
    if gone:
        shutil.rmtree(folder)
    return Rebuilt(
        state,
        comparisons,
        made,
        kept,
        recorded_on=elsewhere.made_on(chain.lock, chain.params.scale),
        rebuilt_on=machine.description(),
        workspace=None if gone else str(folder),
        workspace_size=size,
        temporary=workspace is None,
    )


def _refuse_training(chain: Chain, workspace: Path | None) -> None:
    lacking = [
        job
        for job in chain.jobs
        if job.step == "train"
        and not _is_as_recorded(chain, job)
        and not (workspace and all((workspace / path).is_file() for path in graph.outputs(job, chain.params)))
    ]
    if lacking:
        work = duration(Reference.known(chain.params).work(lacking))
        names = ", ".join(job.stage for job in lacking[:3]) + (" and others" if len(lacking) > 3 else "")
        raise SandglassError(
            f"--keep-runs: the checkpoints of {names} are not here as dvc.lock records them; "
            f"add --train to train {len(lacking)} of them again, about {work} of one core"
        )


def _is_as_recorded(chain: Chain, job: graph.Job) -> bool:
    md5s = {path: _recorded(chain, job, path) for path in graph.outputs(job, chain.params)}
    return all(path.is_file() and chain.md5(path) == md5 for path, md5 in md5s.items())


def _prepare(folder: Path, mark: str) -> None:
    """Lay out what builds in a folder that may be a former workspace, and note whether results are taken into it."""
    if folder in (Path.cwd(), *Path.cwd().parents):
        raise SandglassError(f"--workspace {folder} holds this work tree; name another folder")
    if folder.exists() and not folder.is_dir():
        raise SandglassError(f"--workspace {folder} is no folder; name another one")
    before = (folder / MARK).read_text(encoding="utf-8") if (folder / MARK).is_file() else None
    if before is None and folder.exists() and any(folder.iterdir()):
        raise SandglassError(f"--workspace {folder} is neither empty nor a workspace of an earlier rebuild")
    if before == "kept" and not mark:
        raise SandglassError(
            f"--workspace {folder} holds runs that were taken from here; add --keep-runs, or name another folder"
        )
    lay_out(folder)
    (folder / MARK).parent.mkdir(exist_ok=True)
    (folder / MARK).write_text(mark or before or "", encoding="utf-8")


def lay_out(folder: Path) -> None:
    """Copy what builds to ``folder``; a second time, bring it up to date and leave what was built.

    Raises SandglassError if an engine is at work there.
    """
    if engine := engines.at_work(folder):
        raise SandglassError(f"{engine} is at work in {folder}; wait until it ends, or stop it")
    for name in FOLDERS:
        shutil.rmtree(folder / name, ignore_errors=True)
        if name.is_dir():
            shutil.copytree(name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / DVC).mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if name.is_file():
            shutil.copy2(name, folder / name)
    # A cache of its own, and no git: it may lie inside another repository.
    (folder / DVC / "config.local").write_text("[core]\n    no_scm = true\n[cache]\n    dir = cache\n")


def _take(chain: Chain, folder: Path) -> None:
    """Copy datasets and runs that are as recorded, with their records: the engines judge them by content.

    A job whose code or parameters have changed since is therefore run again.
    """
    yaml = YAML(typ="safe")
    records = yaml.load(LOCK.read_text(encoding="utf-8"))["stages"] if LOCK.is_file() else {}
    target = folder / LOCK
    lock = yaml.load(target.read_text(encoding="utf-8")) if target.is_file() else {}
    lock = {"schema": "2.0", "stages": {}} | (lock or {})
    for job in chain.jobs:
        files = graph.outputs(job, chain.params)
        if job.step not in TAKEN or any((folder / path).exists() for path in files):
            continue
        if _is_as_recorded(chain, job):
            for path in files:
                content = path.read_bytes()
                for copy in (folder / path, _cached(folder, chain.md5(path))):
                    _write(copy, content)
            for out in chain.lock[job.stage].outs.values():
                if out.is_folder and (listing := chain.contents(out)) is not None:
                    _write(_cached(folder, out.md5), hashing.listing_text(listing).encode())
            lock["stages"][job.stage] = records[job.stage]
    with target.open("w", encoding="utf-8") as file:
        yaml.dump(lock, file)


def _cached(folder: Path, md5: str) -> Path:
    return folder / DVC / "cache" / "files" / "md5" / md5[:2] / md5[2:]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _build(chain: Chain, folder: Path) -> None:
    targets = {str(path) for job in chain.jobs for path in _targets(job, chain)}
    if not targets:
        return
    quiet = ("--quiet", "host", "reason", "rules")
    command = [*build.SNAKEMAKE, *sorted(targets), *quiet]
    process = subprocess.Popen(command, cwd=folder, env=build.surroundings(), stdout=sys.stderr)
    try:
        while (status := process.poll()) is None:
            time.sleep(POLL)  # a blocking wait would go on: polars restarts it after a signal
    except KeyboardInterrupt:
        build.interrupt(process)
        print(f"sandglass: interrupted; go on with --workspace {folder}", file=sys.stderr)
        raise
    if status:
        raise SandglassError(
            f"the rebuild failed, see above and {folder / graph.LOGS}; go on with --workspace {folder}"
        )


def _targets(job: graph.Job, chain: Chain) -> list[Path]:
    """Return what Snakemake is asked for: of the report only its page is declared."""
    targets = {artifact.path for artifact in chain.artifacts if artifact.job == job}
    declared = graph.outputs(job, chain.params)
    return [path for path in declared if path in targets] or (declared if targets else [])


def _compare(artifact: Artifact, chain: Chain, folder: Path) -> Comparison:
    if artifact.job is None:
        return Comparison(str(artifact.path), NOT_COMPARED, "no job makes it")
    trained = [job.stage for job in _behind(artifact.job, chain) if job.step == "train"]
    tolerance = TRAINING if set(trained) & set(_made(chain, folder)[0]) else ROUNDING
    recorded = _recorded(chain, artifact.job, artifact.path)
    return compare(artifact.path, Path(), folder, tolerance, recorded, artifact.claim)


def _behind(job: graph.Job, chain: Chain) -> set[graph.Job]:
    """Return ``job`` and all that it comes from."""
    return {job}.union(*(_behind(parent, chain) for parent in chain.parents[job]))


def _recorded(chain: Chain, job: graph.Job, path: Path) -> str | None:
    stage = chain.stage(job)
    return chain.recorded(stage.outs, path).md5 if stage else None


def _made(chain: Chain, folder: Path) -> tuple[list[str], list[str]]:
    """Return the jobs on the chain that ran in the workspace, and those that did not have to."""
    ran = [job for job in chain.jobs if (folder / graph.LOGS / "steps" / f"{job.name}.json").is_file()]
    return [job.stage for job in ran], [job.stage for job in chain.jobs if job not in ran]
