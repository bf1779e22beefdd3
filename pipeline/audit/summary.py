"""What a run left behind, for the person who started it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params
from pipeline.engine import graph
from pipeline.params import Params


def summarise(status: int) -> None:
    """Print the jobs, the failures with their logs, the claims, where to look, and what to type next."""
    console = Console(highlight=False)
    loaded = params.load()
    records = {job: _record(job) for job in graph.jobs(loaded)}
    there = [job for job in records if all(path.is_file() for path in graph.outputs(job, loaded))]
    missing = [job for job in records if job not in there]
    seconds = sum(r.get("seconds", 0) for r in records.values())
    console.print(
        f"\nscale {loaded.scale}: {len(there)} of {len(records)} jobs have their results ({seconds:.0f} s of work)"
    )
    for job in missing:
        state = records[job].get("status", "has not run")
        console.print(f"  [bold]{job.name}[/]: {escape(str(state))}; log: {graph.LOGS / job.name}.log")
    if not missing:
        _claims(console, loaded)
    _next(console, status, bool(missing))


def _record(job: graph.Job) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def _claims(console: Console, loaded: Params) -> None:
    for study, entry in loaded.studies.items():
        ours = json.loads(graph.claims_path(study, "json").read_text(encoding="utf-8"))
        before = _committed(study)
        table = Table(title=f"claims of {study}", title_justify="left")
        for column in ("claim", "verdict", "model or quantity", "ours", "committed"):
            table.add_column(column, justify="right" if column in ("ours", "committed") else "left")
        for claim, found in sorted(ours.items(), key=lambda item: (len(item[0]), item[0])):
            for i, (gate, row) in enumerate(found["gates"].items()):
                old = before.get(claim, {}).get("gates", {}).get(gate, {}).get("value")
                first = (claim, found["verdict"]) if i == 0 else ("", "")
                table.add_row(*first, escape(gate), _number(row["value"]), _number(old))
        console.print(table)
        figures = ", ".join(str(graph.figure_path(study, name, "svg")) for name in entry.figures)
        console.print(f"figures: {figures}", soft_wrap=True)
        console.print(f"claims table: {graph.claims_path(study, 'parquet')}", soft_wrap=True)
    console.print(f"report: {graph.DATA / 'report' / 'index.html'}", soft_wrap=True)


def _committed(study: str) -> dict[str, Any]:
    """The claims of the committed dvc.lock, if DVC's cache or remote still holds them."""
    path = str(graph.claims_path(study, "json"))
    done = subprocess.run(
        ["dvc", "metrics", "show", "HEAD", "--json", path], capture_output=True, text=True, check=False
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)["HEAD"]["data"][path]["data"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _next(console: Console, status: int, incomplete: bool) -> None:
    if status or incomplete:
        console.print("next: look at the log named above, then run the same command again; it continues")
        return
    lock = subprocess.run(
        ["git", "status", "--porcelain", "dvc.lock"], capture_output=True, text=True, check=False
    )
    if lock.stdout.strip():
        console.print(
            "dvc.lock differs from the committed one: compare the columns above; "
            "git diff dvc.lock names the files, git checkout dvc.lock && dvc checkout goes back"
        )
    console.print(f"next: open {Path('data/report/index.html')}, or edit params.yaml and run snakemake again")
