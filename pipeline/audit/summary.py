"""What a run left behind, for the person who started it; in a clone with pulled results, what came with them."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import params
from pipeline.audit import hashing, provenance, worktree
from pipeline.engine import graph
from pipeline.params import Params
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
    _next(console, status, failed, missing)


def _noted(job: graph.Job) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((graph.LOGS / "steps" / f"{job.name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def _claims(console: Console, loaded: Params) -> None:
    """Print the claims of each study that has some here, beside the committed ones."""
    for study in loaded.studies:
        try:
            ours = json.loads(paths.claims_path(study, "json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        before = _committed(study)
        verdicts = Counter(claim["verdict"] for claim in ours.values())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        table = Table(title=f"claims of {study}: {counts}", title_justify="left")
        for column in ("claim", "verdict", "model or quantity", "ours", "committed"):
            table.add_column(column, justify="right" if column in ("ours", "committed") else "left")
        for claim, found in sorted(ours.items(), key=lambda item: (len(item[0]), item[0])):
            for i, (gate, row) in enumerate(found["gates"].items()):
                old = before.get(claim, {}).get("gates", {}).get(gate, {}).get("value")
                first = (claim, found["verdict"]) if i == 0 else ("", "")
                table.add_row(*first, escape(gate), _number(row["value"]), _number(old))
        console.print(table)
        console.print(f"figures: {paths.figure_folder(study, '*')}/*.svg", soft_wrap=True)
        console.print(f"claims table: {paths.claims_path(study, 'parquet')}", soft_wrap=True)


def _committed(study: str) -> dict[str, Any]:
    """Return the claims that the committed dvc.lock names, if DVC's cache or remote still holds them."""
    text = worktree.committed(provenance.LOCK)
    path = paths.claims_path(study, "json")
    try:
        stage = provenance.Lock(text or "", "the committed dvc.lock")[f"claims@{study}"]
        found: dict[str, Any] = json.loads(hashing.stored_file(stage.outs[path].md5) or b"{}")
    except (KeyError, ValueError):
        return {}
    return found


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _next(console: Console, status: int, failed: list[graph.Job], missing: list[graph.Job]) -> None:
    """Say what to type next."""
    index = paths.REPORT / "index.html"
    if failed:
        console.print("next: look at the log named above, then run the same command again; it continues")
        return
    if status:
        console.print("next: see above why it ended, then run the same command again; it continues")
        return
    lock = subprocess.run(
        ["git", "status", "--porcelain", "dvc.lock"], capture_output=True, text=True, check=False
    )
    if lock.stdout.strip():
        console.print(
            "dvc.lock differs from the committed one: compare the columns above; "
            "git diff dvc.lock names the files, git checkout dvc.lock && dvc checkout goes back"
        )
    if not missing:
        console.print(f"next: open {index}, or edit a parameter file and run snakemake again")
    elif index.is_file():
        console.print(f"next: open {index}; snakemake --cores all builds what is not here")
    else:
        console.print(
            "next: python -m pipeline report --from-store draws the pages from what is here; "
            "snakemake --cores all builds the rest"
        )
