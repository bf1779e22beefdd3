"""``python -m pipeline list``: what exists, in which state, and what it costs to bring it up to date."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params as parameters
from pipeline.audit import changes
from pipeline.audit.changes import Changes
from pipeline.engine import graph
from pipeline.engine.repository import Difference
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.references.record import RECORD
from pipeline.store.paths import REFERENCE, REPORT

FOLDED = 5  # jobs of one step and state beyond which they share a row
COLOURS = {"fresh": "green", "recorded": "cyan", "not pulled": "cyan", "stale": "yellow", "missing": "red"}
MEANING = {
    "recorded": "as dvc.lock has it, but something that it was made from is not here; an engine builds both",
    "not pulled": "dvc.lock knows it; dvc pull --allow-missing (or dvc checkout) brings it",
}


@dataclass(frozen=True)
class Row:
    """A job and what there is of it."""

    study: str
    job: str  # its stage
    step: str
    state: str  # of COLOURS
    files: int  # that exist
    bytes: int  # of these
    seconds: float | None  # what it took when it last ran here


@dataclass(frozen=True)
class ReferenceSet:
    """A set in data/reference."""

    name: str
    study: str | None  # None where its record is not here
    state: str  # present, changed, not pulled
    scale: str | None
    made_from: str | None
    files: int
    bytes: int


def show(study: str | None, *, every: bool = False, as_json: bool = False) -> None:
    """Print the jobs of ``study`` (None: of all) and the reference sets; ``every`` gives each job a row."""
    params = parameters.load()
    if study is not None and study not in params.studies:
        near = difflib.get_close_matches(study, params.studies, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(params.studies)}"
        raise SandglassError(f"list {study}: no such study in {parameters.FILE}; {hint}")
    with changes.looking() as view:
        busy, diff = changes.at_work(view), changes.find(view, params)
    states = _states(diff)
    jobs = [job for job in graph.jobs(params) if study in (None, job.study)]
    rows = [_row(job, states.get(job, "fresh"), params) for job in jobs]
    sets = [each for each in _reference_sets(diff) if study is None or each.study in (None, study)]
    cost = _cost(row for row in rows if row.state != "fresh")
    if as_json:
        report: dict[str, Any] = {"scale": params.scale, "jobs": [asdict(row) for row in rows]}
        report |= {"reference": [asdict(each) for each in sets], "to_bring_up_to_date": cost, "at_work": busy}
        print(json.dumps(report, indent=1))
        return
    console = Console(highlight=False)
    if busy:
        console.print(f"note: {escape(busy)} is at work here; below is what is there now")
    for each in dict.fromkeys(row.study for row in rows):
        of = [row for row in rows if row.study == each]
        title = "report" if each == "all" else f"study {each}"
        console.print(_table(f"{title}, scale {params.scale}", of, every or study is not None))
    _print_sets(console, sets)
    _print_summary(console, rows, cost)


def _row(job: graph.Job, state: str, params: Params) -> Row:
    files = [path for path in _files(job, params) if path.is_file()]
    return Row(
        study=job.study,
        job=job.stage,
        step=job.step,
        state=state,
        files=len(files),
        bytes=sum(path.stat().st_size for path in files),
        seconds=_seconds(job, params.scale),
    )


def _files(job: graph.Job, params: Params) -> list[Path]:
    return list(REPORT.rglob("*")) if job.step == "report" else graph.outputs(job, params)


def _states(diff: Changes) -> dict[graph.Job, str]:
    """Return the states of the jobs that would run; ``missing`` goes before ``stale``: there is nothing to look at."""
    states: dict[graph.Job, str] = {}
    outdated: set[graph.Job] = set()
    for job, change in diff.jobs.items():
        kinds = {"absent" if c.new is None and c.kind in ("data", "output") else c.kind for c in change.causes}
        if kinds - {"absent"} or outdated & set(change.because):
            outdated.add(job)
        missing = any(cause.kind == "output" and cause.new is None for cause in change.causes)
        if "never built" in kinds:
            states[job] = "missing"
        elif missing:
            back = job not in outdated and _can_come_back(diff.differences[job.stage])
            states[job] = "not pulled" if back else "missing"
        else:
            states[job] = "stale" if job in outdated else "recorded"
    return states


def _can_come_back(difference: Difference) -> bool:
    """Return whether DVC can bring all outputs."""
    return difference.outs.keys() <= difference.returnable


def _seconds(job: graph.Job, scale: str) -> float | None:
    """Return how long the job took when it was last done at ``scale``."""
    try:
        noted = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text(encoding="utf-8"))
        return float(noted["seconds"]) if (noted["status"], noted["scale"]) == ("done", scale) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _cost(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the cost of running these jobs one after another, by what each took last."""
    known = [row.seconds for row in rows]
    return {
        "jobs": len(known),
        "seconds": round(sum(filter(None, known)), 2),
        "unknown": sum(seconds is None for seconds in known),
    }


def _reference_sets(diff: Changes) -> list[ReferenceSet]:
    folder = REFERENCE
    names = {path.stem for path in folder.glob("*.dvc")} | {path.name for path in folder.glob("*/")}
    sets = []
    for name in sorted(names):
        files = [path for path in (folder / name).rglob("*") if path.is_file()]
        difference = diff.differences.get(f"{folder / name}.dvc")
        state = "present" if not difference else "changed" if files else "not pulled"
        if not (folder / f"{name}.dvc").is_file():
            state = "not versioned"
        record = _json(folder / name / RECORD)
        sets.append(
            ReferenceSet(
                name=name,
                study=record.get("study"),
                state=state,
                scale=record.get("scale"),
                made_from=_made_from(record),
                files=len(files),
                bytes=sum(path.stat().st_size for path in files),
            )
        )
    return sets


def _made_from(record: dict[str, Any]) -> str | None:
    """Return how many jobs made a reference set, on which devices, by the record that lies in the set."""
    jobs = record.get("jobs", {})
    devices = sorted({str(job["device"]) for job in jobs.values() if job.get("device")})
    return f"{len(jobs)} jobs{' on ' if devices else ''}{', '.join(devices)}" if jobs else None


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def size(count: int) -> str:
    """Return bytes as people read them: ``1.2 MB``."""
    if count < 1000:
        return f"{count} B"
    power = min(len(str(count)) - 1, 9) // 3
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _table(title: str, rows: list[Row], every: bool) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("job", "state", "files", "size", "cost"):
        table.add_column(column, justify="left" if column in ("job", "state") else "right", no_wrap=True)
    for name, group in _groups(rows, every).items():
        known = [row.seconds for row in group if row.seconds is not None]
        state = group[0].state
        table.add_row(
            escape(name),
            f"[{COLOURS[state]}]{state}[/]",
            str(sum(row.files for row in group)),
            size(sum(row.bytes for row in group)),
            _time(sum(known) if len(known) == len(group) else None),
        )
    return table


def _groups(rows: list[Row], every: bool) -> dict[str, list[Row]]:
    """Return the rows to print: one for each job, but one together for many jobs of a step in the same state."""
    groups: dict[str, list[Row]] = {}
    alike = Counter((row.step, row.state) for row in rows)
    for row in rows:
        count = alike[row.step, row.state]
        fold = count > FOLDED and not every
        groups.setdefault(f"{row.step}: {count} {row.state}" if fold else row.job, []).append(row)
    return groups


def _print_sets(console: Console, sets: list[ReferenceSet]) -> None:
    if not sets:
        console.print("no reference sets in data/reference")
        return
    table = Table(title="reference sets", title_justify="left")
    for column in ("set", "state", "scale", "made from", "files", "size"):
        table.add_column(column, justify="right" if column in ("files", "size") else "left")
    for each in sets:
        cells = (each.name, each.state, each.scale or "-", each.made_from or "-", str(each.files), size(each.bytes))
        table.add_row(*map(escape, cells))
    console.print(table)


def _print_summary(console: Console, rows: list[Row], cost: dict[str, Any]) -> None:
    states = Counter(row.state for row in rows)
    counts = ", ".join(f"{states[state]} {state}" for state in COLOURS if states[state])
    console.print(f"{len(rows)} jobs: {counts}; {size(sum(row.bytes for row in rows))}")
    for state, meaning in MEANING.items():
        if states[state]:
            console.print(f"{state}: {meaning}", soft_wrap=True)
    if cost["jobs"]:
        work = f"{_time(cost['seconds'])} of work when they last ran"
        if cost["unknown"]:
            work += f", and {cost['unknown']} that never ran here"
        if cost["unknown"] == cost["jobs"]:
            work = "none of which ever ran here"
        console.print(f"to bring up to date: {cost['jobs']} jobs, {work}", soft_wrap=True)
