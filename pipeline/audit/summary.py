"""What a run left behind, for the person who started it; in a clone with pulled results, what came with them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rich.console import Console
from rich.markup import escape

from pipeline import params
from pipeline.audit import elsewhere
from pipeline.audit.claims import overview
from pipeline.audit.provenance import Lock
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.references import reading, standing
from pipeline.references.reading import Reference
from pipeline.store import paths


def summarise(status: int) -> None:
    """Print the jobs, the failures with their logs, the claims, where to look, and what to type next."""
    console = Console(highlight=False)
    loaded = params.load()
    jobs = graph.jobs(loaded)
    missing = [job for job in jobs if not all(path.is_file() for path in graph.outputs(job, loaded))]
    noted = {job: _noted(job) for job in jobs}
    seconds = sum(each.get("seconds", 0) for each in noted.values())
    console.print(
        f"\nscale {loaded.scale}: {len(jobs) - len(missing)} of {len(jobs)} jobs have their results "
        f"({seconds:.0f} s of work here)"
    )
    # A step that ended well and whose results are gone since has not failed; nor has one that never ran here.
    failed = [job for job in missing if noted[job].get("status", "done") != "done"]
    for job in failed:
        text = escape(str(noted[job]["status"]))
        console.print(f"  [bold]{job.stage}[/]: {text}; log: {graph.LOGS / job.name}.log", soft_wrap=True)
    if absent := Counter(job.step for job in missing if job not in failed):
        counts = ", ".join(f"{count} {step}" for step, count in absent.items())
        console.print(f"  not here: {counts} (never built here, or left behind by dvc pull --allow-missing)")
    _claims(console, loaded)
    _next(console, loaded, status, failed, missing)


def _noted(job: graph.Job) -> dict[str, Any]:
    try:
        log: dict[str, Any] = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return log


def _claims(console: Console, loaded: Params) -> None:
    """Print how the claims of each study stand that has some here, beside the committed ones where they differ."""
    committed = elsewhere.committed_lock()
    for study in loaded.studies:
        try:
            sets = reading.load(study)
            rows = standing.rows(study, sets, partial=True)
        except SandglassError as error:
            console.print(f"claims of {study}: {escape(str(error))}", soft_wrap=True)
            continue
        if rows:
            console.print(overview(study, standing.lines(rows), _committed(study, committed, sets)))
            console.print(f"figures: {paths.figure_folder(study, '*')}/*.svg", soft_wrap=True)


def _committed(study: str, lock: Lock | None, sets: list[Reference]) -> dict[str, str]:
    """Return how each claim stands by the committed ``lock``, if its claims can still be read."""
    claims = elsewhere.committed_claims(study, lock)
    lines = [] if claims is None else standing.lines(standing.beside_sets(claims, sets))
    return {line.claim: line.verdict for line in lines}


def _next(
    console: Console, loaded: Params, status: int, failed: list[graph.Job], missing: list[graph.Job]
) -> None:
    """Say what to type next."""
    index = paths.REPORT / "index.html"
    if failed:
        console.print("next: look at the log named above, then run the same command again; it continues")
        return
    if status:
        console.print("next: see above why it ended, then run the same command again; it continues")
        return
    console.print(escape(elsewhere.distance(loaded.studies, loaded.scale)), soft_wrap=True)
    if not missing:
        console.print(f"next: open {index}, or edit a parameter file and run snakemake again")
    elif index.is_file():
        console.print(f"next: open {index}; snakemake --cores all builds what is not here")
    else:
        console.print(
            "next: python -m pipeline report --from-store draws the pages from what is here; "
            "snakemake --cores all builds the rest"
        )
