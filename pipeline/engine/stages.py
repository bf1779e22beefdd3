"""What DVC is told: dvc.yaml, a block for each job, and the lists that claims track, in params/graph.json.

Both follow from the parameter files and from what the code imports (`pipeline.engine.graph`). Templates of DVC hold no
lists, so that dvc.yaml is written out. Every start of Snakemake and ``python -m pipeline params --write`` bring it up
to date, and a step that DVC runs refuses to start on one that is not: an edit may have given it other inputs.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.engine import graph
from pipeline.engine.graph import Job
from pipeline.errors import SandglassError
from pipeline.params import FILE, GRAPH, Params
from pipeline.store import paths

DVC_FILE, LISTS = Path("dvc.yaml"), Path(GRAPH)
WIDTH = 118

HEADER = """\
# Written by `python -m pipeline params --write` and by every start of Snakemake, from the parameter files and from what
# each step imports; edits are lost. A block is a job, as `dvc repro <name>` runs it; the Snakefile runs the same jobs.
stages:
"""


def texts(params: Params) -> dict[Path, str]:
    """Return the content of each file that follows from the parameters and the code."""
    lists = json.dumps({"claims": params.value(f"{GRAPH}:claims")}, indent=1, sort_keys=True) + "\n"
    blocks = "\n".join(_grouped(params))
    graph.of(params).sources.keep()
    return {LISTS: lists, DVC_FILE: HEADER + blocks}


def write(params: Params, root: Path = Path()) -> dict[Path, bool]:
    """Bring these files up to date; return of each whether it had to change."""
    changed = {}
    for file, text in texts(params).items():
        changed[file] = not _is(root / file, text)
        if changed[file]:
            temporary = root / file.with_name(f".{file.name}.tmp")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(root / file)
    return changed


def check(params: Params, root: Path = Path()) -> None:
    """Raise SandglassError if DVC runs on a graph that parameters and code no longer ask for."""
    for file, text in texts(params).items():
        if not _is(root / file, text):
            raise SandglassError(
                f"{file} is not what the parameters and the code ask for, so DVC would build another graph: run "
                "`python -m pipeline params --write`, then the same command again"
            )


def _is(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text


def _grouped(params: Params) -> Iterator[str]:
    """Yield the block of each job, those of a study together; another order of entries makes no other text."""
    jobs = sorted(graph.jobs(params), key=lambda job: (graph.STEPS.index(job.step), job.id))
    for study in params.studies:
        yield f"\n  # {study}: {params.studies[study].title}\n"
        yield from (_block(job, params) for job in jobs if job.study == study)
    yield from (_block(job, params) for job in jobs if job.step == "report")


def _block(job: Job, params: Params) -> str:
    deps = [*graph.code_named(job, params), *sorted(map(str, graph.inputs(job, params)))]
    lines = [f"  {job.stage}:", f"    cmd: {job.command}", *_list("params", _tracked(job, params))]
    return "\n".join([*lines, *_list("deps", dict.fromkeys(deps)), *_outs(job, params)]) + "\n"


def _tracked(job: Job, params: Params) -> list[str]:
    """Return the parameters that DVC compares, by file: of an entry with what it is like beside it."""
    by_file: dict[str, list[str]] = {}
    for name in (*job.tracked, *graph.shared_parameters(job, params)):
        file, _, key = name.rpartition(":")
        by_file.setdefault(file or FILE, []).append(key)
    main = by_file.pop(FILE, [])
    return [*main, *(f"{file}: [{', '.join(keys)}]" for file, keys in by_file.items())]


def _outs(job: Job, params: Params) -> list[str]:
    study, key = job.study, job.id
    if job.step in ("dataset", "labels"):
        return [f"    outs: [{paths.dataset_folder(study, key)}: {{push: false}}]"]
    if job.step == "train":
        # Of the plot: medians over replicas.
        return [
            f"    outs: [{paths.run_folder(study, key)}: {{push: false}}]",
            f"    plots: [{paths.plot_path(study, key)}: {{x: step, y: loss}}]",
        ]
    if job.step == "claims":
        table, metrics = graph.outputs(job, params)
        return [f"    outs: [{table}]", f"    metrics: [{metrics}]"]
    if job.step == "report":
        # Drawn in seconds from what is pushed. DVC notes its md5 and leaves it alone: a pull or a checkout must not
        # stop at pages that `python -m pipeline report --from-store` has drawn.
        return [f"    outs: [{paths.REPORT}: {{cache: false}}]"]
    (folder,) = {path if job.step == "theory" else path.parent for path in graph.outputs(job, params)}
    return [f"    outs: [{folder}]"]


def _list(name: str, items: Iterable[str]) -> list[str]:
    """Return a list in YAML, in as few lines as its items need."""
    return textwrap.wrap(
        f"{name}: [{', '.join(items)}]",
        WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )
