"""``python -m pipeline why X``: why a step would run again, for both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape

from pipeline import params as parameters
from pipeline.audit import changes
from pipeline.audit.causes import names
from pipeline.audit.changes import Change, Changes
from pipeline.engine import graph


def explain(name: str | None, *, as_json: bool = False) -> bool:
    """Print why ``name`` (anything that ``trace`` takes; None for everything) would be built again.

    Return whether it is up to date. Raise SandglassError if it stands for nothing.
    """
    params = parameters.load()
    jobs = None if name is None else graph.with_ancestors(changes.jobs_of(name, params), params)
    with changes.looking() as view:
        busy, diff = changes.at_work(view), changes.find(view, params)
    if jobs is not None:
        diff.jobs = {job: change for job, change in diff.jobs.items() if job in jobs}
        diff.unrecorded = [job for job in diff.unrecorded if job in jobs]
    shown = list(diff.jobs.values())
    if as_json:
        print(json.dumps(_as_dict(shown, diff, busy), indent=1))
    else:
        _print(Console(highlight=False, soft_wrap=True), shown, diff, busy, name)
    return not shown


def _lines(change: Change) -> Iterator[str]:
    yield from map(str, change.own)
    if change.because:
        yield f"because {names(change.because)} will run"


def _print(console: Console, shown: list[Change], diff: Changes, busy: str | None, name: str | None) -> None:
    if busy:
        console.print(f"note: {escape(busy)} is at work here; below is what is there now")
    for jobs, lines in _groups(shown):
        console.print(f"[bold]{escape(names(jobs))}[/]")
        for line in lines:
            console.print(f"  {escape(line)}")
    for job in diff.unrecorded:
        console.print(
            f"{job.stage}: made by a snakemake that was killed; its next start records it, dvc repro makes it again"
        )
    for stage in diff.gone:
        console.print(f"{stage}: no longer in the parameters; the next start of an engine deletes its files")
    if not shown:
        console.print(f"nothing to do: {'everything' if name is None else escape(name)} is up to date")
        return
    _print_reach(console, shown)
    if len(shown) == 1:
        console.print("both engines run it")
        return
    certain = [change.job for change in shown if change.certain]
    console.print(f"snakemake plans for the worst and runs all {len(shown)}")
    if len(certain) == len(shown):
        console.print("dvc repro runs them as well")
    else:
        console.print(f"dvc repro runs {names(certain)}, the others only where what these make comes out different")


def _print_reach(console: Console, shown: list[Change]) -> None:
    """Print which jobs an edit reaches, where others would run only because results are not here."""
    if not any(cause.is_absence for change in shown for cause in change.causes):
        return
    reached: dict[graph.Job, None] = {}
    for change in shown:  # parents first
        if change.is_edited or not reached.keys().isdisjoint(change.because):
            reached[change.job] = None
    if reached:
        others = "; the others make what is not here" if len(reached) < len(shown) else ""
        console.print(f"an edit reaches {names(reached)}{others}")
    else:
        console.print(
            "no edit reaches them: they make what is not here; `dvc pull --allow-missing` fetches what is published"
        )


def _groups(shown: list[Change]) -> Iterator[tuple[list[graph.Job], list[str]]]:
    """Yield jobs with the same causes, and these; where only the id differs, a star is in its place."""
    groups: dict[tuple[str, ...], list[tuple[graph.Job, list[str]]]] = {}
    for change in shown:
        lines = list(_lines(change))
        key = change.job.step, *(line.replace(change.job.id, "*") for line in lines)
        groups.setdefault(key, []).append((change.job, lines))
    for (_, *starred), of in groups.items():
        first = of[0][1]
        yield [job for job, _ in of], first if all(lines == first for _, lines in of) else starred


def _as_dict(shown: list[Change], diff: Changes, busy: str | None) -> dict[str, Any]:
    return {
        "jobs": [
            {
                "job": change.job.stage,
                "causes": [
                    {
                        "kind": cause.kind,
                        "what": cause.what,
                        "old": cause.old,
                        "new": cause.new,
                        "note": cause.note,
                        "made_by": [job.stage for job in cause.makers],
                    }
                    for cause in change.causes
                ],
                "because": [job.stage for job in change.because],
                "snakemake": "runs",
                "dvc": "runs" if change.certain else "runs if what its parents make comes out different",
            }
            for change in shown
        ],
        "unrecorded": [job.stage for job in diff.unrecorded],
        "no_longer_in_params": diff.gone,
        "at_work": busy,
    }
