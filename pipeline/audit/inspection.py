"""The command `audit`: does what lies here agree with itself, without training anything?

Five questions, each answered apart. Is dvc.lock the committed one? Was everything that is published built by the code
and the parameters that are here, and does every file of it have the md5 that dvc.lock records? Do claims and figures
come out the same when they are made again from the tables that lie here? Are the reference sets what their ``.dvc``
files say? If the commit is a signed release, is the signature good? Whoever edits a number and its md5 together is
found by the third.

A build on another machine has other bytes than the committed one and is no fault: it is said in one line, and what
lies here is compared with the lock file that lies here.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track

from pipeline import params as parameters
from pipeline.audit import elsewhere, hashing, provenance, release, verify, worktree
from pipeline.audit.compare import IDENTICAL, ROUNDING, WITHIN, compare
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import LOCK
from pipeline.engine import graph, runner
from pipeline.errors import SandglassError
from pipeline.params import Params
from pipeline.report import site
from pipeline.store import paths

RECOMPUTED = ("figures", "claims", "report")  # steps that take seconds; the first two read what is published
RECORD, PUBLISHED, AGAIN, SETS, RELEASE = "record", "published", "made again", "reference sets", "release"


@dataclass(frozen=True)
class Finding:
    """Something that does not agree: in which part of the audit, what, why, and the command that mends it, if any."""

    part: str
    what: str
    text: str
    mend: str = ""


@dataclass(frozen=True)
class Audit:
    """What was found, what was looked at, what could not be since it is never published, how the lock stands, and the
    signatures of the release that is checked out, if it is one."""

    findings: list[Finding]
    files: int
    made_again: int
    sets: int
    kept_back: dict[str, int]
    lock: str
    releases: list[release.Release]

    @property
    def passed(self) -> bool:
        """Return whether everything agrees."""
        return not self.findings


def run(*, as_json: bool) -> bool:
    """Audit this work tree, print what was found, and return whether everything agrees."""
    audit = inspect(parameters.load())
    if as_json:
        print(json.dumps(asdict(audit) | {"passed": audit.passed}, indent=1, ensure_ascii=False))
    else:
        _print(audit)
    return audit.passed


def inspect(params: Params) -> Audit:
    """Return the audit of the work tree in the current directory.

    Raises SandglassError if dvc.lock is not a lock file of DVC.
    """
    chain = Chain(provenance.resolve("report", params), params)
    findings = [*_record(chain)]
    files, lost = _published(chain)
    findings += lost
    again, differing = _made_again(chain)
    sets, changed = _sets(chain)
    signed = release.releases()
    forged = [Finding(RELEASE, each.tag, each.text) for each in signed if each.state == release.BAD]
    absent = Counter(job.step for job in chain.jobs if not graph.is_published(graph.outputs(job, params)[0]))
    return Audit(
        [*findings, *differing, *changed, *forged],
        files,
        again,
        sets,
        dict(absent),
        elsewhere.distance(params.studies, params.scale),
        signed,
    )


def _record(chain: Chain) -> Iterator[Finding]:
    """Yield what of the code and the parameters here is not what dvc.lock says the results were made with."""
    for job in chain.jobs:
        if chain.stage(job) is None:
            mend = f"snakemake {graph.outputs(job, chain.params)[0]}"
            yield Finding(RECORD, job.stage, f"{LOCK} has no record of this job", mend)
    jobs: dict[tuple[str, str], list[str]] = {}
    for check in verify.record(chain):
        if check.job == "report":
            continue  # its pages are drawn again, if they are here
        if check.state == verify.MISMATCH and not (
            check.kind == "lock" and check.job and check.job not in chain.lock
        ):
            jobs.setdefault((check.what, check.text), []).append(check.job)
    for (what, text), those in jobs.items():
        more = f" and {len(those) - 3} more" if len(those) > 3 else ""
        yield Finding(
            RECORD, what, f"{text} ({', '.join(those[:3])}{more})", "make reproduce builds what that changes"
        )


def _published(chain: Chain) -> tuple[int, list[Finding]]:
    """Return how many published files were hashed, and those that are lost or not what dvc.lock records."""
    count, findings = 0, []
    for job in chain.jobs:
        stage = chain.stage(job)
        for entry in stage.outs.values() if stage else ():
            if not graph.is_published(entry.path):
                continue
            listing = chain.contents(entry) if entry.is_folder else {"": entry.md5}
            if listing is None:
                findings.append(
                    Finding(PUBLISHED, str(entry.path), "the list of its files is lost", _fetch(entry.path))
                )
                continue
            recorded = {entry.path / name if name else entry.path: md5 for name, md5 in listing.items()}
            count += len(recorded)
            for path, md5 in recorded.items():
                if not path.is_file():
                    findings.append(Finding(PUBLISHED, str(path), "lost", _fetch(entry.path)))
                elif (here := chain.md5(path)) != md5:
                    text = f"is not what {LOCK} records ({md5[:8]}), it is {here[:8]}"
                    findings.append(Finding(PUBLISHED, str(path), text, _fetch(entry.path)))
            if entry.is_folder:
                strange = {file for file in entry.path.rglob("*") if file.is_file()} - set(recorded)
                findings += [
                    Finding(PUBLISHED, str(path), f"{LOCK} knows no such file", f"rm {path}")
                    for path in sorted(strange)
                ]
    return count, findings


def _fetch(path: Path) -> str:
    return f"dvc pull --force {path}"


def _made_again(chain: Chain) -> tuple[int, list[Finding]]:
    """Return how many files were made again from what lies here, and those that came out otherwise.

    Pages are among them if a site lies here, drawn as it was: by a build, or from the store.
    """
    jobs = [job for job in chain.jobs if job.step in RECOMPUTED and (job.step != "report" or site.is_here())]
    jobs.reverse()  # the report takes longest
    with tempfile.TemporaryDirectory(prefix="sandglass-") as folder:
        again = partial(_again, folder=Path(folder))
        with _several(len(jobs)) as run:
            bar = Console(stderr=True)
            steps = track(
                run(again, jobs),
                "made again",
                len(jobs),
                console=bar,
                transient=True,
                disable=not bar.is_terminal,
            )
            counts, findings = zip(*steps, strict=True) if jobs else ((), ())
    return sum(counts), [each for group in reversed(findings) for each in group]


@contextmanager
def _several(jobs: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a ``map`` that uses all cores; a few jobs are not worth the start of processes."""
    if jobs < 8:
        yield map
        return
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        yield pool.map


def _again(job: graph.Job, folder: Path) -> tuple[int, list[Finding]]:
    """Make what ``job`` makes below ``folder``; return how many files that is, and those that came out otherwise."""
    params = parameters.load()
    from_store = job.step == "report" and site.is_from_store()
    lost = [path for path in graph.data(job, params) if not path.is_file()]
    if lost and not from_store:
        return 0, [Finding(AGAIN, job.stage, f"cannot be made again: {lost[0]} is lost")]
    log = io.StringIO()
    context = runner.context(job, params, folder, log)
    try:
        with redirect_stderr(log):
            if from_store:
                site.build(params, context.out, from_store=True)
            else:
                importlib.import_module(f"pipeline.steps.{job.step}").run(context)
    except SandglassError as error:
        return 0, [Finding(AGAIN, job.stage, f"cannot be made again: {error}")]
    made = graph.outputs(job, params)
    if job.step == "report":
        made = [path.relative_to(folder) for path in hashing.files_in(folder / paths.REPORT)]
    compared = [compare(path, Path(), folder, ROUNDING) for path in made]
    return len(made), [
        Finding(AGAIN, file.path, f"comes out otherwise from the tables that lie here: {file.text or file.state}",
                _remake(job, file.path, from_store))
        for file in compared
        if file.state not in (IDENTICAL, WITHIN) and Path(file.path).is_file()
    ]  # fmt: skip


def _remake(job: graph.Job, path: str, from_store: bool) -> str:
    if job.step == "report":
        return "python -m pipeline report --from-store" if from_store else "snakemake --force report"
    return f"snakemake --force {path}"


def _sets(chain: Chain) -> tuple[int, list[Finding]]:
    """Return how many reference sets there are, and their files that are not what their ``.dvc`` files say."""
    names = sorted(path.stem for path in paths.REFERENCE.glob("*.dvc"))
    findings = []
    for name in names:
        entry = provenance.reference_set(paths.REFERENCE / name / "record.json")
        assert entry is not None
        pointer = paths.REFERENCE / f"{name}.dvc"
        if worktree.committed(pointer) is not None and worktree.edited([pointer]):
            findings.append(
                Finding(SETS, str(pointer), "differs from the committed one", f"git checkout {pointer}")
            )
        for check in verify.folder(chain, entry, None, "output", partial(verify.Check, "")):
            if check.state != verify.MATCH:
                findings.append(Finding(SETS, check.what, check.text, f"dvc checkout --force {pointer}"))
    return len(names), findings


def _print(audit: Audit) -> None:
    console = Console(highlight=False)
    console.print(escape(audit.lock), soft_wrap=True)
    sentences = {
        RECORD: "code and parameters are those that the results were made with",
        PUBLISHED: f"published: {audit.files} files, each with the md5 that {LOCK} records",
        AGAIN: f"claims, figures and pages, made again from the tables here: {audit.made_again} files, the same",
        SETS: f"reference sets: {audit.sets}, as recorded",
    }
    good = [f"{each.tag}, {each.text}" for each in audit.releases if each.state == release.GOOD]
    if good or any(each.part == RELEASE for each in audit.findings):
        sentences[RELEASE] = f"release: {'; '.join(good)}"
    for part, words in sentences.items():
        findings = [each for each in audit.findings if each.part == part]
        if not findings:
            console.print(f"[green]✓[/] {words}", soft_wrap=True)
            continue
        console.print(f"[red]✗[/] {part}: {len(findings)} do not agree")
        for each in findings:
            mend = f"  → {escape(each.mend)}" if each.mend else ""
            console.print(f"    [bold]{escape(each.what)}[/]: {escape(each.text)}{mend}", soft_wrap=True)
    for tag in audit.releases:
        if tag.state == release.UNCHECKED:
            text = f"? release: {tag.tag} is signed, but that was not checked: {tag.text}"
            console.print(escape(text), soft_wrap=True)
    kept = ", ".join(f"{count} {step}" for step, count in audit.kept_back.items())
    console.print(
        f"never published, so not audited: the results of {kept} (rebuild them: make reproduce)",
        soft_wrap=True,
    )
    console.print(
        "[bold green]audit passed[/]"
        if audit.passed
        else f"[bold red]audit failed: {len(audit.findings)} of what was checked does not agree[/]"
    )
