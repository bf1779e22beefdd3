"""``python -m pipeline accept X``: a cosmetic edit of code is declared harmless for X, and signed.

dvc.lock then names the edited code as what X was built from, and accepted.jsonl, which git tracks and the
report shows, says who declared it and why. Nothing is run, and the declaration is shown as unproved; with ``--prove``
the jobs run again in a scratch folder, and only what comes out identical is accepted, with the md5s as ``proof``.
"""

from __future__ import annotations

import difflib
import getpass
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pipeline import params as parameters
from pipeline.audit import changes, git, hashing, rebuild
from pipeline.audit.causes import Cause, names
from pipeline.audit.changes import Changes
from pipeline.audit.compare import IDENTICAL, ROUNDING, compare
from pipeline.engine import graph
from pipeline.engine import snakemake as engines
from pipeline.engine.repository import record_code
from pipeline.engine.software import check_software
from pipeline.errors import SandglassError
from pipeline.params import Params

Proof = dict[str, str]  # path of an output -> its md5, here and as made again


@dataclass(frozen=True)
class _Edit:
    """A file of code before and after; ``diff`` is None where git does not hold what it was.

    ``old`` is None for a file that the job reads since, for instance one that code was moved to, and ``new`` for one
    that it reads no more.
    """

    path: Path
    old: str | None
    new: str | None
    content: bytes
    diff: str | None

    @property
    def dependency(self) -> dict[str, Any] | None:
        """Return what dvc.lock says of the file; None if it is read no more."""
        return {"hash": "md5", "md5": self.new, "size": len(self.content)} if self.new else None


def accept(name: str | None, reason: str, *, dry_run: bool = False, proved: bool = False) -> None:
    """Record for the jobs of ``name`` (None: for all) that edits of code since dvc.lock change no result.

    With ``proved`` the jobs are built again with the edited code, and accepted only if every byte is the same.

    Raises SandglassError, before anything is written, if anything but code differs for one of these jobs, or if the
    proof fails.
    """
    params = parameters.load()
    reason = " ".join(reason.split())
    if not reason:
        raise SandglassError("accept: a reason is required, for whoever reads the record: --reason '…'")
    with changes.looking() if dry_run else engines.alone() as view:
        accepted = _only_code(changes.find(view, params), name, params, proved)
        seen: dict[tuple[str, str | None, str | None], _Edit] = {}
        edits = {job: [_edit(cause, seen) for cause in causes] for job, causes in accepted.items()}
        if dry_run or sys.stdout.isatty():
            _show(list(seen.values()))
        if dry_run:
            print(f"would accept this for {names(edits)}")
            return
        proofs = _proofs(edits, params) if proved else {}
        # In this order: a kill in between leaves an entry without effect, never an effect without entry.
        _log(edits, reason, proofs)
        files = {job.stage: {str(edit.path): edit.dependency for edit in of} for job, of in edits.items()}
        record_code(Path(), files)
        left = changes.find(view, params).jobs
    how = "proved identical, and accepted" if proved else "accepted, unproved,"
    print(f"{how} for {names(edits)}; logged in {graph.ACCEPTED}")
    print(f"left to build: {names(left)} (python -m pipeline why)")


def _proofs(edits: dict[graph.Job, list[_Edit]], params: Params) -> dict[graph.Job, Proof]:
    code = {edit.path: edit.new for of in edits.values() for edit in of if edit.new}
    try:
        return _prove(edits, params, code)
    except SandglassError as error:
        raise SandglassError(f"accept: nothing was accepted, because {error}") from None


def _prove(jobs: Iterable[graph.Job], params: Params, code: dict[Path, str]) -> dict[graph.Job, Proof]:
    """Run ``jobs`` again in a scratch folder, with files of ``code`` that have these md5s, and compare the results.

    Each job reads the inputs that lie here. Raises SandglassError if one fails or makes anything else than what is
    here; the scratch folder then stays.
    """
    check_software(Path())
    folder = Path(tempfile.mkdtemp(prefix="sandglass-proof-"))
    try:
        rebuild.lay_out(folder)
        if edited := [str(path) for path, md5 in code.items() if hashing.md5(folder / path) != md5]:
            raise SandglassError(f"{', '.join(edited)} was edited at this moment")
        proofs = {job: _prove_one(job, params, folder) for job in jobs}
    except (SandglassError, KeyboardInterrupt):
        print(f"sandglass: what was made again is in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    return proofs


def _prove_one(job: graph.Job, params: Params, folder: Path) -> Proof:
    for path in graph.data(job, params):
        if not (folder / path).is_file():  # else a job before this one made it, the same as here
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / path)
    env = {key: value for key, value in os.environ.items() if key != "DVC_ROOT"}
    words = [sys.executable, *job.command.split()[1:]]
    if subprocess.run(words, cwd=folder, env=env, stdout=sys.stderr, check=False).returncode:
        raise SandglassError(f"{job.stage} fails with this code: see {folder / graph.LOGS / job.name}.log")
    proof = {}
    for path in graph.outputs(job, params):
        made = compare(path, Path(), folder, ROUNDING)
        if made.state != IDENTICAL:
            text = f" ({made.text})" if made.text else ""
            raise SandglassError(f"{job.stage}, run again with this code, makes {path} {made.state}{text}")
        proof[str(path)] = hashing.md5(path)
    return proof


def _only_code(diff: Changes, name: str | None, params: Params, proved: bool) -> dict[graph.Job, list[Cause]]:
    """Return the edits of code by the jobs to accept: those of ``name`` for which code differs, and nothing else.

    Where none is named, jobs whose code is as it was are left aside. Results that are not here, as in a clone that has
    pulled only some, were not edited: dvc.lock says what they are. To prove something they are needed.
    """
    jobs = list(graph.jobs(params)) if name is None else changes.jobs_of(name, params)
    if name is not None and any(job.step == "report" for job in jobs):
        raise SandglassError("accept report: it prints the md5 of all code, so it is simply built again")
    selection = {job: diff.jobs[job] for job in jobs if job in diff.jobs and job.step != "report"}
    edited: dict[graph.Job, list[Cause]] = {}
    for job, change in selection.items():
        code = [cause for cause in change.causes if cause.kind == "code"]
        others = [cause for cause in change.causes if cause not in code]
        if not proved:
            others = [cause for cause in others if cause.kind not in ("data", "output") or cause.new is not None]
        if others and (code or name is not None):
            raise SandglassError(
                f"accept: nothing was accepted, because for {job.stage} not only code was edited: {others[0]}"
            )
        if code:
            edited[job] = code
    if not edited and selection:
        own = [f"{job.stage}: {change.causes[0]}" for job, change in selection.items() if change.causes]
        parents = dict.fromkeys(parent for change in selection.values() for parent in change.because)
        why = own[0] if own else f"it waits for {names(parents)}"
        raise SandglassError(f"accept {name or '--all'}: no edit of code touches it; {why}")
    if not edited:
        raise SandglassError(f"accept {name or '--all'}: it is up to date, there is nothing to accept")
    return edited


def _edit(cause: Cause, seen: dict[tuple[str, str | None, str | None], _Edit]) -> _Edit:
    key = cause.what, cause.old, cause.new
    if cause.new is None:
        seen[key] = _Edit(Path(cause.what), cause.old, None, b"", f"{cause.what}: read no more\n")
    if key not in seen:
        content = Path(cause.what).read_bytes()
        if hashlib.md5(content).hexdigest() != cause.new:
            raise SandglassError(f"accept: {cause.what} was edited at this moment; nothing was accepted")
        version = git.find(Path(cause.what), cause.old) if cause.old else None
        before = b"" if cause.old is None else version.content if version else None
        diff = None if before is None else _diff(cause.what, before, content)
        seen[key] = _Edit(Path(cause.what), cause.old, cause.new, content, diff)
    return seen[key]


def _diff(path: str, old: bytes, new: bytes) -> str:
    before, after = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (old, new))
    lines = difflib.unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _show(edits: list[_Edit]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for edit in edits:
        unknown = f"{edit.path}: {edit.old} → {edit.new}; git does not hold what it was\n"
        console.print(edit.diff or unknown, end="", markup=False)


def _log(edits: dict[graph.Job, list[_Edit]], reason: str, proofs: dict[graph.Job, Proof]) -> None:
    lines = graph.ACCEPTED.read_text(encoding="utf-8").splitlines() if graph.ACCEPTED.is_file() else []
    author = git.author() or _login()
    for job, of in edits.items():
        diffs = [edit.diff for edit in of]
        known = hashlib.sha256("".join(filter(None, diffs)).encode()).hexdigest() if None not in diffs else None
        entry = {
            "job": job.stage,
            "files": [{"path": str(edit.path), "old": edit.old, "new": edit.new} for edit in of],
            "reason": reason,
            "author": author,
            "diff": known,
            "proof": proofs.get(job),
        }
        line = json.dumps(entry, sort_keys=True, ensure_ascii=False)
        if line not in lines[-len(edits) :]:  # of an acceptance that was killed before dvc.lock was written
            lines.append(line)
    temporary = graph.ACCEPTED.with_name(f".{graph.ACCEPTED}.{os.getpid()}.tmp")
    temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    temporary.replace(graph.ACCEPTED)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid {os.getuid()}"
