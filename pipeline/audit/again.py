"""What is made again, in a scratch folder, and compared with what lies here.

Claims, figures and pages come from the tables here, in seconds. What needs no training can be computed from the
parameters alone as well (`from_parameters`): datasets, theory checks, analyses that read no model. A number in these
that was changed together with all that follows from it is found so.

On another processor than that of the results last bits differ. What moves on the same side of its bound is then a
warning, and so is what comes out otherwise of the jobs in `PROCESSORS`: these descend for thousands of steps, and were
found to differ between processors of two makers.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from pipeline import params as parameters
from pipeline.audit import elsewhere, hashing, rebuild
from pipeline.audit.compare import IDENTICAL, INSIDE, NOT_COMPARED, ROUNDING, WITHIN, Comparison, compare
from pipeline.audit.findings import AGAIN, RECOMPUTED, Finding
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import LOCK, Entry
from pipeline.engine import graph, machine, preload, runner
from pipeline.engine.build import Reference
from pipeline.params import Params
from pipeline.report import site
from pipeline.store import paths

FROM_TABLES = ("figures", "claims", "report")  # steps that take seconds; the first two read what is published
PROCESSORS = Path("profiles/processors.json")
SHOWN_PAGES = 5  # of the site, each by itself; more are one finding
FROM_PARAMETERS = ("dataset", "theory", "analyse")  # steps some of whose jobs have no training behind them


@dataclass(frozen=True)
class Again:
    """How many files were made again and what of them differs; what differs as another processor may have it; the
    jobs whose files all came out the same; how many jobs of each step were left out, by the package that is not
    installed."""

    files: int = 0
    findings: list[Finding] = field(default_factory=list)
    moved: list[Finding] = field(default_factory=list)
    same: frozenset[str] = frozenset()  # stages
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Made:
    """One job, made again."""

    job: graph.Job
    files: int
    findings: list[Finding]
    moved: list[Finding] = field(default_factory=list)
    lacks: str | None = None  # the package without which it could not run


def from_tables(chain: Chain) -> Again:
    """Make claims, figures and pages again from what lies here.

    Pages are among them if a site lies here, drawn as it was: by a build, or from the store.
    """
    jobs = [job for job in chain.jobs if job.step in FROM_TABLES and (job.step != "report" or site.is_here())]
    jobs.reverse()  # the report takes longest
    with tempfile.TemporaryDirectory(prefix="sandglass-") as folder:
        made = _all(partial(_from_tables, folder=Path(folder)), [jobs], AGAIN)
    return _together(reversed(made))


def from_parameters(chain: Chain) -> Again:
    """Compute again, from the parameters alone, everything that has no training behind it."""
    jobs = without_training(chain)
    seconds = Reference.load(chain.params.scale).seconds
    jobs.sort(key=lambda job: -seconds(job.name))  # no core waits long for the last one
    datasets = [job for job in jobs if job.step == "dataset"]
    others = [job for job in jobs if job.step != "dataset"]
    recorded = {
        job: [out for out in stage.outs.values() if not graph.is_published(out.path)]
        for job in jobs
        if (stage := chain.stage(job))
    }
    moving = _moving(chain)
    with tempfile.TemporaryDirectory(prefix="sandglass-") as name:
        folder = Path(name)
        rebuild.lay_out(folder)  # an analysis reads the datasets that were made there
        work = partial(_from_parameters, folder=folder, here=Path.cwd(), recorded=recorded, moving=moving)
        made = _all(work, [datasets, others], RECOMPUTED)
    return _together(sorted(made, key=lambda each: chain.jobs.index(each.job)))


def _moving(chain: Chain) -> frozenset[str] | None:
    """Return the jobs whose results another processor changes; None on the machine that made them, as nothing moves."""
    try:
        here = machine.description()
    except ModuleNotFoundError:  # it names the version of torch
        here = ""
    if elsewhere.made_on(chain.lock, chain.params.scale) == here:
        return None
    try:
        return frozenset(json.loads(PROCESSORS.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return frozenset()


def without_training(chain: Chain) -> list[graph.Job]:
    """Return the jobs on the chain that no training is behind."""
    trained: set[graph.Job] = set()
    for job in chain.jobs:  # each after those that it depends on
        if job.step == "train" or trained & set(chain.parents[job]):
            trained.add(job)
    return [job for job in chain.jobs if job.step in FROM_PARAMETERS and job not in trained]


def _all(work: Callable[[graph.Job], _Made], rounds: list[list[graph.Job]], title: str) -> list[_Made]:
    """Do ``work`` for all jobs of one round after another, with a line of progress on a terminal."""
    bar = Console(stderr=True)
    count = sum(map(len, rounds))
    with _several(count) as run:
        steps = (made for jobs in rounds for made in run(work, jobs))
        return list(track(steps, title, count, console=bar, transient=True, disable=not bar.is_terminal))


@contextmanager
def _several(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a ``map`` that uses all cores; a few jobs are not worth the start of processes."""
    if jobs < 8:
        yield map
        return
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), _grant_one_core) as pool:
        yield pool.map


def _grant_one_core() -> None:
    """Have the libraries that a process loads use one thread, as an engine does: there is a process for every core."""
    os.environ |= preload.THREADS


def _together(made: Iterable[_Made]) -> Again:
    made = list(made)
    left_out: dict[str, Counter[str]] = {}
    for each in made:
        if each.lacks:
            left_out.setdefault(each.lacks, Counter())[each.job.step] += 1
    return Again(
        sum(each.files for each in made),
        [finding for each in made for finding in each.findings],
        [finding for each in made for finding in each.moved],
        frozenset(each.job.stage for each in made if not (each.findings or each.moved or each.lacks)),
        {package: dict(steps) for package, steps in left_out.items()},
    )


@cache
def _loaded(folder: Path) -> Params:
    """Return the parameters of the current directory, read once by each process for all that it makes in ``folder``."""
    return parameters.load()


def _from_tables(job: graph.Job, folder: Path) -> _Made:
    """Make what ``job`` makes below ``folder``, and compare."""
    params = _loaded(folder)
    from_store = job.step == "report" and site.is_from_store()
    lost = [path for path in graph.data(job, params) if not path.is_file()]
    if lost and not from_store:
        return _Made(job, 0, [Finding(AGAIN, job.stage, f"cannot be made again: {lost[0]} is lost")])
    try:
        _run(job, params, folder, from_store)
    except Exception as error:  # of a step on files that may be damaged in any way
        return _Made(job, 0, [Finding(AGAIN, job.stage, f"cannot be made again: {_in_a_line(error)}")])
    made = graph.outputs(job, params)
    if job.step == "report":
        made = [path.relative_to(folder) for path in hashing.files_in(folder / paths.REPORT)]
    compared = [compare(path, Path(), folder, ROUNDING) for path in made]
    findings = [
        Finding(
            AGAIN,
            file.path,
            f"comes out otherwise from the tables that lie here: {file.text or file.state}",
            _remake(job, file.path, from_store),
        )
        for file in compared
        if file.state not in (IDENTICAL, WITHIN) and Path(file.path).is_file()
    ]
    if job.step == "report" and findings:
        drawn, now = site.identity(), site.identity(folder)
        findings = together(findings, len(made)) if drawn == now else [_older(drawn, now, findings[0].mend)]
    return _Made(job, len(made), findings)


def _older(drawn: str | None, now: str | None, mend: str) -> Finding:
    """Return the finding that a site was drawn before code or parameters changed, for instance by `git pull`."""
    text = f"was drawn from other code or parameters than these (its build is {drawn}, today's {now}): draw it again"
    return Finding(AGAIN, str(paths.REPORT), text, mend)


def together(findings: list[Finding], pages: int) -> list[Finding]:
    """Return the findings on ``pages`` of the site; one in place of many, as where it was drawn from other results."""
    if len(findings) <= SHOWN_PAGES:
        return findings
    some = ", ".join(each.what for each in findings[:SHOWN_PAGES])
    text = f"{len(findings)} of {pages} files come out otherwise from the tables that lie here ({some}, …)"
    return [Finding(AGAIN, str(paths.REPORT), text, findings[0].mend)]


def _run(job: graph.Job, params: Params, folder: Path, from_store: bool = False) -> None:
    """Run a step in this process; what it makes lies below ``folder`` then."""
    log = io.StringIO()
    context = runner.context(job, params, folder, log)
    with redirect_stderr(log):
        if from_store:
            site.build(params, context.out, from_store=True)
        else:
            importlib.import_module(f"pipeline.steps.{job.step}").run(context)


def _in_a_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _remake(job: graph.Job, path: str, from_store: bool) -> str:
    if job.step == "report":
        return "python -m pipeline report --from-store" if from_store else f"snakemake --force {graph.REPORT_PAGE}"
    return f"snakemake --force {path}"


def _from_parameters(
    job: graph.Job, folder: Path, here: Path, recorded: dict[graph.Job, list[Entry]], moving: frozenset[str] | None
) -> _Made:
    """Run ``job`` in the workspace ``folder``. Compare what it makes with what lies ``here`` or, where it is never
    published, with its md5 in dvc.lock, as ``recorded``; ``moving`` is as `_moving` returns it."""
    with contextlib.chdir(folder):
        params = _loaded(folder)
        try:
            _run(job, params, folder)
        except Exception as error:  # of a step on parameters that nobody may ever have run
            package = (getattr(error, "name", None) or "").partition(".")[0]
            if isinstance(error, ModuleNotFoundError) and package not in ("pipeline", "schemas"):
                return _Made(job, 0, [], lacks=package)
            return _Made(job, 0, [Finding(RECOMPUTED, job.stage, f"cannot be computed again: {_in_a_line(error)}")])
    made = graph.outputs(job, params)
    compared = [compare(path, here, folder, ROUNDING) for path in made if graph.is_published(path)]
    odd, moved = dict[str, str](), []
    for file in compared:
        text = file.text or _largest(file)
        if file.state in (IDENTICAL, WITHIN, NOT_COMPARED):
            continue  # that a published file is lost is said elsewhere
        if moving is not None and (file.state == INSIDE or job.stage in moving):
            words = f"comes out otherwise here, as another processor may have it: {text}"
            moved.append(Finding(RECOMPUTED, file.path, words))
        else:
            odd[file.path] = text
    for out in recorded.get(job, []):
        path = folder / out.path
        md5 = hashing.digest(hashing.listing(path)) if out.is_folder else hashing.md5(path)
        if md5 != out.md5:
            odd[str(out.path)] = f"its md5 is {md5[:8]}, {LOCK} records {out.md5[:8]}"
    return _Made(
        job,
        len(made),
        [
            Finding(
                RECOMPUTED,
                path,
                f"comes out otherwise from the parameters: {text}",
                f"snakemake --force {next(each for each in made if Path(path) in (each, *each.parents))}",
            )
            for path, text in odd.items()
        ],
        moved,
    )


def _largest(made: Comparison) -> str:
    if made.difference is None:
        return made.state
    return f"{made.column} by {made.difference:.2g} of a value, tolerance {made.tolerance:g}"
