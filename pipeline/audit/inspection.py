"""The command `audit`: does what lies here agree with itself and with its commit, without training anything?

Questions, each answered apart. Are the files of the commit here as it has them, the audit's own code among them? Is
dvc.lock the committed one? Was everything that is published built by the code and the parameters that are here, for all
studies that dvc.lock knows, and is every file of it here, no link, with the md5 that dvc.lock records? Do its tables
name runs and datasets that there are? Do claims and figures come out the same when they are made again from the tables
that lie here? Are the reference sets those of their names, with the files that were frozen? If the commit is a signed
release, is the signature good?

Whoever edits a number of a claim or of a figure and its md5 together is found by making it again. Whoever edits a table
as well, and makes again all that follows from it, is found by computing that table again from the parameters, which is
done if it is asked for and the table needs no training; else only by `trace --rebuild`.

A build on another machine has other bytes than the committed one and is no fault: it is said in one line, and what
lies here is compared with the lock file that lies here. Any other difference from the commit is one: then this is not
what somebody published. An edit of code that was accepted and never proved is a warning.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from pipeline import params as parameters
from pipeline.audit import again, elsewhere, git, lineage, provenance, published, release, sets, verify
from pipeline.audit.again import Again
from pipeline.audit.findings import AGAIN, COMMIT, IDS, PUBLISHED, RECOMPUTED, RECORD, RELEASE, SETS, Finding
from pipeline.audit.lineage import Chain
from pipeline.audit.provenance import LOCK
from pipeline.engine import graph
from pipeline.params import FOLDER, Params

CODE = ("pipeline", "schemas", "params", ":(glob)*.py")  # where a file that no commit holds could change an answer


@dataclass(frozen=True)
class Audit:
    """What does not agree, what was not proved, what was looked at, and what could not be since it is never published.

    ``commit`` is the one that is checked out; ``lock`` says how dvc.lock stands to its own. ``recomputed`` files came
    from the parameters alone, None if that was not asked for; ``left_out`` are jobs that were not made again there, by
    the package that is not installed and by step. ``releases`` are the signatures of the release that is checked out.
    ``unchecked`` is what an audit looks at and this one could not.
    """

    commit: str | None
    lock: str
    studies: list[str]
    sets: list[str]
    findings: list[Finding]
    warnings: list[Finding]
    files: int
    tables: int
    made_again: int
    recomputed: int | None
    left_out: dict[str, dict[str, int]]
    kept_back: dict[str, int]
    releases: list[release.Release]
    unchecked: list[Finding]

    @property
    def passed(self) -> bool:
        """Return whether everything was checked and agrees."""
        return self.status == 0

    @property
    def status(self) -> int:
        """Return 0 if everything was checked and agrees, 1 if something does not, 3 if something was not checked."""
        return 1 if self.findings else 3 if self.unchecked else 0


def run(*, as_json: bool, recompute: bool = False) -> int:
    """Audit this work tree, print what was found, and return the exit status, as `Audit.status` has it."""
    audit = inspect(parameters.load(), recompute=recompute)
    if as_json:
        print(json.dumps(asdict(audit) | {"passed": audit.passed}, indent=1, ensure_ascii=False))
    else:
        show(audit, Console(highlight=False))
    return audit.status


def inspect(params: Params, *, recompute: bool = False) -> Audit:
    """Return the audit of the work tree in the current directory.

    With ``recompute``, what has no training behind it is computed again from the parameters.

    Raises SandglassError if dvc.lock is not a lock file of DVC.
    """
    chain = Chain(provenance.resolve("report", params), params)
    commit = git.commit()
    findings = [*_commit()] if commit else []
    findings += [*_record(chain), *_dropped(chain)]
    files, lost = published.files(chain)
    tables, strange = published.ids(chain)
    remade = again.from_tables(chain)
    computed = again.from_parameters(chain) if recompute else None
    names, changed = sets.sets(chain)
    signed = release.releases()
    forged = [Finding(RELEASE, each.tag, each.text) for each in signed if each.state == release.BAD]
    findings += [*lost, *strange, *remade.findings, *(computed or Again()).findings, *changed, *forged]
    same = remade.same | (computed or Again()).same
    kept_back = [job for job in chain.jobs if not graph.is_published(graph.outputs(job, params)[0])]
    absent = Counter(job.step for job in kept_back if computed is None or job.stage not in computed.same)
    return Audit(
        commit=commit,
        lock=elsewhere.distance(params.studies, params.scale, chain.lock),
        studies=list(params.studies),
        sets=names,
        findings=findings,
        warnings=[*_unlisted(params), *_unproved(chain, same), *(computed or Again()).moved],
        files=files,
        tables=tables,
        made_again=remade.files,
        recomputed=computed.files if computed else None,
        left_out=computed.left_out if computed else {},
        kept_back=dict(absent),
        releases=signed,
        unchecked=[*_unchecked(commit, signed, (computed or Again()).left_out)],
    )


def _unchecked(
    commit: str | None, signed: list[release.Release], left_out: dict[str, dict[str, int]]
) -> Iterator[Finding]:
    """Yield what could not be looked at, and why: what git has to say, signatures by unknown keys, other packages."""
    if commit is None:
        text = f"not checked, so whether anybody published or signed this cannot be told: {git.trouble()}"
        yield Finding(COMMIT, "commit and release", text)
    for tag in signed:
        if tag.state == release.UNCHECKED:
            yield Finding(RELEASE, f"release {tag.tag}", f"is signed, but that was not checked: {tag.text}")
    for package, steps in left_out.items():
        yield Finding(RECOMPUTED, RECOMPUTED, f"not {_counts(steps)}, which need {package}")


def _commit() -> Iterator[Finding]:
    """Yield the files that are not as the commit has them; dvc.lock, which a build elsewhere changes, has a line of its
    own."""
    for path in git.differing():
        if path != LOCK:
            text = "differs from the committed one" if path.exists() else "is gone, and the commit has it"
            yield Finding(COMMIT, str(path), text, f"git checkout HEAD {path}, or commit it")
    for path in git.unknown(*CODE):
        yield Finding(COMMIT, str(path), "lies where code does, and no commit holds it", f"rm {path}, or commit it")


def _record(chain: Chain) -> Iterator[Finding]:
    """Yield what of the code and the parameters here is not what dvc.lock says the results were made with."""
    for job in chain.jobs:
        if chain.stage(job) is None:
            mend = f"snakemake {graph.outputs(job, chain.params)[0]}"
            yield Finding(RECORD, job.stage, f"{LOCK} has no record of this job", mend)
    jobs: dict[tuple[str, str], list[str]] = {}
    for check in itertools.chain(verify.record(chain), verify.links(chain)):
        if check.job == "report":
            continue  # its pages are drawn again, if they are here
        if check.state == verify.MISMATCH and not (check.kind == "lock" and check.job and check.job not in chain.lock):
            jobs.setdefault((check.what, check.text), []).append(check.job)
    for (what, text), those in jobs.items():
        more = f" and {len(those) - 3} more" if len(those) > 3 else ""
        yield Finding(RECORD, what, f"{text} ({', '.join(those[:3])}{more})", "make reproduce builds what that changes")


def _dropped(chain: Chain) -> Iterator[Finding]:
    """Yield what dvc.lock records and the parameters do not ask for: whole studies, and single jobs of the others."""
    dropped: dict[str, list[str]] = {}
    known = {job.stage for job in graph.jobs(chain.params)}
    for name in (name for name in chain.lock if name not in known):
        studies = {path.parts[2] for path in chain.lock[name].outs if len(path.parts) > 2}
        dropped.setdefault(", ".join(sorted(studies)), []).append(name)
    for study, names in dropped.items():
        if study not in chain.params.studies:
            text = f"{LOCK} records {len(names)} jobs of this study, which params.yaml does not list"
            yield Finding(RECORD, study, text, "list it again under `studies` in params.yaml")
            continue
        for name in names:
            text = f"{LOCK} records this job, and the parameters do not ask for it"
            yield Finding(RECORD, name, text, "the next start of an engine drops it: snakemake -n")


def _unlisted(params: Params) -> Iterator[Finding]:
    """Yield the folders of parameters of studies that params.yaml does not list: nothing of them is looked at."""
    for path in sorted({file.parent for file in Path(FOLDER).glob("*/*.yaml")}):
        if path.name not in params.studies:
            text = "is there, and params.yaml does not list this study: nothing of it was looked at"
            yield Finding(RECORD, str(path), text)


def _unproved(chain: Chain, same: frozenset[str]) -> Iterator[Finding]:
    """Yield the edits of code on which a record rests and that nobody proved; not of jobs that came out the ``same``
    just now."""
    accepted = graph.accepted()
    for job in chain.jobs:
        if chain.stage(job) is None or job.stage in same:
            continue
        for edit in lineage.accepted_for(chain, job, accepted):
            if not edit.get("proof"):
                paths = ", ".join(str(file.get("path")) for file in edit["files"])
                words = f"of {paths} by {edit.get('author')}: “{edit.get('reason')}”"
                text = f"rests on an edit that was accepted without proof, {words}"
                mend = f"python -m pipeline trace {job.stage} --rebuild tells whether it changes a result"
                yield Finding(RECORD, job.stage, text, mend)


def show(audit: Audit, console: Console) -> None:
    """Print an audit: a line for what agrees, and one for each thing that does not, or that nobody proved."""
    moved = sum(each.part == RECOMPUTED for each in audit.warnings)
    same = f", the same but for {moved} (⚠)" if moved else ", the same"
    console.print(escape(audit.lock), soft_wrap=True)
    console.print(escape(f"studies: {', '.join(audit.studies)}"), soft_wrap=True)
    sentences = {
        COMMIT: f"commit {audit.commit}: every file that it has is here as it has it",
        RECORD: "code and parameters are those that the results were made with",
        PUBLISHED: f"published: {audit.files} files, each with the md5 that {LOCK} records",
        IDS: f"ids: {audit.tables} tables name only what the parameters have",
        AGAIN: f"claims, figures and pages, made again from the tables here: {audit.made_again} files, the same",
        RECOMPUTED: f"what needs no training, computed again from the parameters: {audit.recomputed} files{same}",
        SETS: f"reference sets: {len(audit.sets)}, as recorded: {', '.join(audit.sets)}",
    }
    if audit.commit is None:
        del sentences[COMMIT]
    if audit.recomputed is None:
        del sentences[RECOMPUTED]
    good = [f"{each.tag}, {each.text}" for each in audit.releases if each.state == release.GOOD]
    if good or any(each.part == RELEASE for each in audit.findings):
        sentences[RELEASE] = f"release: {'; '.join(good)}"
    for part, words in sentences.items():
        findings = [each for each in audit.findings if each.part == part]
        if findings:
            console.print(f"[red]✗[/] {part}: {len(findings)} do not agree")
        else:
            console.print(f"[green]✓[/] {escape(words)}", soft_wrap=True)
        for each in findings:
            _print_finding(each, console, "    ")
    for each in audit.warnings:
        _print_finding(each, console, "[yellow]⚠[/] ")
    for each in audit.unchecked:
        _print_finding(each, console, "[yellow]?[/] ")
    console.print(
        f"never published, so not audited: the results of {_counts(audit.kept_back)} (rebuild them: make reproduce)",
        soft_wrap=True,
    )
    warned = f", with {len(audit.warnings)} warning{'s' * (len(audit.warnings) > 1)}" if audit.warnings else ""
    ends = {
        0: f"[bold green]audit passed[/]{warned}",
        1: f"[bold red]audit failed: {len(audit.findings)} of what was checked does not agree[/]",
        3: f"[bold yellow]audit incomplete: what was checked agrees, {len(audit.unchecked)} could not be[/]{warned}",
    }
    console.print(ends[audit.status])


def _counts(steps: dict[str, int]) -> str:
    return ", ".join(f"{count} {step}" for step, count in steps.items())


def _print_finding(finding: Finding, console: Console, mark: str) -> None:
    mend = f"  → {escape(finding.mend)}" if finding.mend else ""
    console.print(f"{mark}[bold]{escape(finding.what)}[/]: {escape(finding.text)}{mend}", soft_wrap=True)
