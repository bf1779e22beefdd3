"""What differs from dvc.lock, job by job, and which jobs would run again because of it.

DVC judges, by content; this module says in the words of the parameter files and of the code what it judged by.
Nothing here changes the work tree, but for params/graph.json: DVC knows its stages from there, so it is brought up to
date first, as at every start of an engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.audit import provenance
from pipeline.audit.causes import Cause, Search
from pipeline.engine import freshness, graph, stages
from pipeline.engine import snakemake as engines
from pipeline.engine.repository import Difference, Repository, View
from pipeline.params import Params


@dataclass(frozen=True)
class Change:
    """Why a job would run again: what differs for itself, and which of its parents would run."""

    job: graph.Job
    causes: tuple[Cause, ...]
    because: tuple[graph.Job, ...]

    @property
    def own(self) -> list[Cause]:
        """Return what differs for the job itself: of what a parent will make anew, the parent says it."""
        return [cause for cause in self.causes if not set(cause.makers) & set(self.because)]

    @property
    def certain(self) -> bool:
        """Return whether DVC runs the job whatever its parents make; else only where they make other bytes."""
        return not self.because or bool(self.own)

    @property
    def is_edited(self) -> bool:
        """Return whether something of the job itself differs, and not merely is not here."""
        return any(not cause.is_absence for cause in self.own)


@dataclass
class Changes:
    """What would run, in the order of the graph, and what else an engine's start would do."""

    jobs: dict[graph.Job, Change] = field(default_factory=dict)
    unrecorded: list[graph.Job] = field(default_factory=list)  # made by a killed Snakemake
    gone: list[str] = field(default_factory=list)  # stages of dvc.lock that the parameters no longer ask for
    differences: dict[str, Difference] = field(default_factory=dict)  # by stage


def find(view: View, params: Params) -> Changes:
    """Compare the work tree with dvc.lock and return what differs."""
    if isinstance(view, Repository) or at_work(view) is None:
        stages.write(params)
    lock = provenance.read_lock()
    diff = Changes(differences=view.differences())
    jobs = graph.jobs(params)
    diff.gone = sorted(set(lock) - {job.stage for job in jobs})
    finished = _finished(params)
    search = Search(view, params, lock)
    for job in jobs:
        difference = diff.differences.get(job.stage)
        if difference and job in finished:
            diff.unrecorded.append(job)
            difference = None
        because = tuple(parent for parent in graph.parents(job, params) if parent in diff.jobs)
        if difference or because:
            causes = tuple(search.causes(job, difference)) if difference else ()
            diff.jobs[job] = Change(job, causes, because)
    return diff


def _finished(params: Params) -> set[graph.Job]:
    """Return the jobs that a killed Snakemake finished with today's parameters; its next start records them."""
    current = {job for job, current in freshness.finished(params).items() if current}
    files = {job: freshness.tracked_file(job) for job in current}
    return {
        job
        for job, file in files.items()
        if file.is_file() and file.read_text(encoding="utf-8") == job.tracked_text(params)
    }


@contextmanager
def looking() -> Iterator[View]:
    """Yield a view of the repository here; it needs no lock, so that one can look while an engine works."""
    view = View(Path())
    try:
        yield view
    finally:
        view.close()


def at_work(view: View) -> str | None:
    """Return the engine that is at work here, in words; None if none is."""
    return engines.at_work() or view.at_work()


def jobs_of(name: str, params: Params) -> list[graph.Job]:
    """Return the jobs that ``name`` stands for: all jobs of a study, else those that make the artifacts it names."""
    if name in params.studies:
        return [job for job in graph.jobs(params) if job.study == name]
    return list(dict.fromkeys(each.job for each in provenance.resolve(name, params) if each.job))
