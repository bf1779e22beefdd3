"""How a build ended, for the person who started it; in a clone with pulled results, what came with them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params
from pipeline.audit import changes, elsewhere, provenance
from pipeline.audit.claims import STYLES
from pipeline.engine import build, graph
from pipeline.engine.build import Outcome, duration
from pipeline.errors import SandglassError
from pipeline.kit.verdicts import short
from pipeline.params import Params
from pipeline.references import standing
from pipeline.store import paths
from schemas.claims import SCALES, STATES

INDEX = paths.REPORT / "index.html"


# --- after a build --------------------------------------------------------------------------------


def finish(outcome: Outcome, study: str | None) -> Outcome:
    """Draw what a build of ``study`` leaves undrawn, say how it stands, and return how it ended in the end."""
    loaded = params.load()
    if study is not None and not _is_drawn(study, loaded, outcome):
        with changes.looking() as view:
            stale = {job.step for job in changes.find(view, loaded).jobs}
        if stale == {"report"}:
            drawn = build.build(report=True)
            if drawn.status:
                return drawn
        elif stale:
            from pipeline.report import site  # with what draws charts, which takes a second to load

            build.say("drawing the site: other studies are shown as they lie here")
            site.build_from_store(loaded)
    console = Console(highlight=False)
    console.print(_what_ran(outcome, study, loaded), soft_wrap=True)
    _print_claims(console, [study] if study else list(loaded.studies), loaded.scale)
    page = paths.REPORT / "study" / f"{study}.html" if study else INDEX
    listed = f"python -m pipeline claims{f' {study}' if study else ''}"
    console.print(f"open {page}; each claim in a sentence: {listed}", soft_wrap=True)
    return outcome


def _is_drawn(study: str, loaded: Params, outcome: Outcome) -> bool:
    """Return whether the site is of what lies here: nothing ran, and nothing that it shows has been written since.

    Of the site that engines draw they keep the time of its first page alone, so the newer of two pages counts.
    """
    pages = [path for path in (INDEX, paths.REPORT / "study" / f"{study}.html") if path.is_file()]
    if outcome.planned or len(pages) < 2:
        return False
    job = graph.job("report", "all", loaded)
    shown = [path for path in (*graph.data(job, loaded), *graph.code(job, loaded)) if path.is_file()]
    return max(path.stat().st_mtime for path in shown) <= max(page.stat().st_mtime for page in pages)


def _what_ran(outcome: Outcome, study: str | None, loaded: Params) -> str:
    """Return in a sentence what was built, which all succeeded."""
    what = f"{study}, scale {loaded.scale}" if study else f"scale {loaded.scale}"
    if not outcome.planned:
        return f"{what}: all is up to date, nothing had to run"
    return f"{what}: {len(outcome.done)} jobs ran, in {duration(outcome.seconds)}; all is up to date"


# --- without one ----------------------------------------------------------------------------------


def summarise() -> None:
    """Print which jobs have their results, what failed, how the claims stand, and what to type next."""
    console = Console(highlight=False)
    loaded = params.load()
    jobs = graph.jobs(loaded)
    there = [job for job in jobs if all(path.is_file() for path in graph.outputs(job, loaded))]
    own = _at_its_scale(there, loaded)
    noted = {job: _noted(job) for job in jobs}
    # A step that ended well and whose results are gone since has not failed; nor has one that never ran here.
    missing = [job for job in jobs if job not in there]
    failed = [job for job in missing if str(noted[job].get("status")).startswith("failed")]
    console.print(f"scale {loaded.scale}: {len(own)} of {len(jobs)} jobs have their results", soft_wrap=True)
    if others := len(there) - len(own):
        console.print(f"  {others} have results of another scale, which are not counted")
    for job in failed:
        text = escape(str(noted[job]["status"]))
        console.print(f"  [bold]{job.stage}[/]: {text}; log: {graph.LOGS / job.name}.log", soft_wrap=True)
    if absent := Counter(job.step for job in missing if job not in failed):
        counts = ", ".join(f"{count} {step}" for step, count in absent.items())
        console.print(f"  not here: {counts} (never built here, or left behind by dvc pull --allow-missing)")
    _print_claims(console, list(loaded.studies), loaded.scale)
    console.print(f"next: {_next(failed, len(own) == len(jobs))}", soft_wrap=True)


def _at_its_scale(there: Iterable[graph.Job], loaded: Params) -> list[graph.Job]:
    """Return the jobs whose results are of the scale of params.yaml, by dvc.lock or by what their step noted."""
    lock = provenance.read_lock()

    def of(job: graph.Job) -> bool:
        stage = lock.get(job.stage)
        recorded = stage is not None and stage.params.get("scale") == loaded.scale
        return recorded or _noted(job).get("params_hash") == job.params_hash(loaded)

    return [job for job in there if of(job)]


def _noted(job: graph.Job) -> dict[str, Any]:
    try:
        log: dict[str, Any] = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return log


def _next(failed: list[graph.Job], complete: bool) -> str:
    """Return what to type next."""
    if failed:
        return "look at the log named above, then run the same command again; it continues"
    if complete:
        return f"open {INDEX}, or edit a parameter file and run snakemake again"
    if INDEX.is_file():
        return f"open {INDEX}; snakemake --cores all builds what is not here"
    return (
        "python -m pipeline report --from-store draws the pages from what is here; "
        "snakemake --cores all builds the rest"
    )


# --- claims ---------------------------------------------------------------------------------------


def _print_claims(console: Console, studies: list[str], scale: str) -> None:
    """Print of each study with claims here how many of them stand how, and what differs from the committed results."""
    if scale == SCALES[0]:
        console.print(f"scale {scale} proves that everything runs: it judges no claim", soft_wrap=True)
    else:
        counts: dict[str, Counter[str]] = {}
        for study in studies:
            try:
                lines = standing.lines(standing.rows(study, partial=True))
            except SandglassError as error:
                console.print(f"claims of {study}: {escape(str(error))}", soft_wrap=True)
                continue
            if lines:
                counts[study] = Counter(line.verdict for line in lines)
        if counts:
            console.print(_table(counts))
    console.print(escape(elsewhere.distance(studies, scale)), soft_wrap=True)


def _table(counts: dict[str, Counter[str]]) -> Table:
    """Return a table with a row for each study: how many of its claims have each verdict."""
    verdicts = [verdict for verdict in STATES if any(count[verdict] for count in counts.values())]
    table = Table(box=None, pad_edge=False)
    table.add_column("claims of", justify="left")
    table.add_column("all", justify="right")
    for verdict in verdicts:
        table.add_column(f"[{STYLES[verdict]}]{standing.PLURAL.get(verdict, short(verdict))}[/]", justify="right")
    for study, count in counts.items():
        cells = (str(count[verdict] or "–") for verdict in verdicts)
        table.add_row(study, str(count.total()), *cells)
    return table
