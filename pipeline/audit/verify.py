"""Does what lies here match what was recorded? Every file on a chain is hashed again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.audit import git, hashing
from pipeline.audit.lineage import Chain, covering
from pipeline.audit.provenance import LOCK, Entry, Lock, Stage, reference_set
from pipeline.engine import graph
from pipeline.errors import SandglassError
from pipeline.store import checkpoints, tables
from pipeline.store.paths import REFERENCE, REPORT

MATCH, MISMATCH, NOT_CHECKED = "match", "mismatch", "not checked"
ELSEWHERE = "another build"  # not what was committed, and no fault
NOT_HERE = "not here: never pushed, not pulled, or not built"
LINK = "is a link: what it shows lies elsewhere, and can change without a trace here"


@dataclass(frozen=True)
class Check:
    """One comparison: of ``what`` (a path of a file or of a parameter), on behalf of ``job``."""

    job: str  # a stage of dvc.yaml; empty where it is no job's
    kind: str  # lock, inputs, code, parameter, data, output or seal
    what: str
    state: str
    text: str = ""


Maker = Callable[..., Check]  # (kind, what, state, text)


def verdict(checks: list[Check]) -> str:
    """Return the worst state of all checks."""
    states = Counter(check.state for check in checks)
    return next((state for state in (MISMATCH, NOT_CHECKED) if states[state]), MATCH)


def lock(chain: Chain) -> Iterator[Check]:
    """Compare dvc.lock with the committed one: its record of every job and, if all records agree, its bytes.

    A build with other results than the committed ones is no fault of the record: its state is `ELSEWHERE`.
    """
    text = git.committed(LOCK)
    if text is None:
        yield Check("", "lock", str(LOCK), NOT_CHECKED, "no commit holds one to compare it with")
    committed = None if text is None else Lock(text, f"the committed {LOCK}")
    edited = text != chain.lock.text
    if committed is not None and edited and dict(chain.lock) == dict(committed):
        yield Check("", "lock", str(LOCK), MISMATCH, "says what the committed one says, but in other bytes")
    for job in chain.jobs:
        check, stage = partial(Check, job.stage, "lock", str(LOCK)), chain.stage(job)
        theirs = None if committed is None else committed.get(job.stage)
        if stage is None and theirs is not None:
            yield check(MISMATCH, "has lost its record of this job, which the committed one has")
        elif stage is None:
            yield check(NOT_CHECKED, "has no record of this job")
        elif committed is not None and edited and stage != theirs:
            damage = None if theirs is None else _damage(job, stage, theirs)
            yield check(MISMATCH, damage) if damage else check(ELSEWHERE, _unlike(stage, theirs))
        elif committed is not None:
            yield check(MATCH)


def _damage(job: graph.Job, stage: Stage, committed: Stage) -> str | None:
    """Return what of a record no build can have made so; None if another build can."""
    if stage.cmd not in (committed.cmd, job.command):
        return f"records another command, {stage.cmd}"
    for ours, theirs in ((stage.deps, committed.deps), (stage.outs, committed.outs)):
        for path, entry in ours.items():
            if path in theirs and entry != theirs[path] and entry.md5 == theirs[path].md5:
                return f"records another size of {path} under the same md5"
    return None


def record(chain: Chain) -> Iterator[Check]:
    """Compare dvc.lock with the committed one, and what it says of code and parameters with those here."""
    yield from lock(chain)
    for job in chain.jobs:
        stage = chain.stage(job)
        if stage is not None:
            check = partial(Check, job.stage)
            yield from _inputs(chain, job, stage, check)
            yield from _code(chain, job, stage, check)
            yield from _parameters(chain, job, stage, check)


def results(chain: Chain) -> Iterator[Check]:
    """Hash every wanted output and reference file on the chain, and compare every link between two jobs."""
    yield from links(chain)
    for job in chain.jobs:
        check, stage = partial(Check, job.stage), chain.stage(job)
        for entry in chain.data(job):
            if entry.path == REFERENCE:
                yield from folder(chain, entry, None, "data", check)
        whole: dict[Entry, set[Path]] = {}
        for path in chain.requested_outputs(job):
            entry_of = covering(stage.outs, path) if stage else None
            if entry_of is None:
                yield check("output", str(path), NOT_CHECKED, f"{LOCK} has no record of it")
            elif entry_of.is_folder:
                whole.setdefault(entry_of, set()).add(path)
            else:
                yield _file(chain, path, entry_of.md5, "output", check)
            yield from _seal(path, check)
        for entry, paths in whole.items():  # the page of the report stands for all files of the report
            selection = None if set(paths) == {REPORT / "index.html"} else paths
            yield from folder(chain, entry, selection, "output", check)


def links(chain: Chain) -> Iterator[Check]:
    """Compare, by dvc.lock alone, what each job read with what others made: for files that are not here as well."""
    for job in chain.jobs:
        for entry in chain.data(job):
            if entry.path != REFERENCE:
                yield _link(chain, entry, partial(Check, job.stage))


def references(chain: Chain) -> Iterator[Check]:
    """Check the files of reference sets that were asked for, by the md5 that `dvc add` keeps beside a set or by git."""
    check = partial(Check, "")
    for path in (artifact.path for artifact in chain.artifacts if artifact.job is None):
        entry = reference_set(path)
        if entry is not None:
            yield from folder(chain, entry, {path} if path.is_file() else None, "output", check)
        elif git.committed(path) is None:
            yield check("output", str(path), NOT_CHECKED, "neither a .dvc file nor a commit has a record of it")
        elif git.edited([path]):
            yield check("output", str(path), MISMATCH, "differs from the committed one")
        else:
            yield check("output", str(path), MATCH)


# --- inputs ---------------------------------------------------------------------------------------


def _unlike(stage: Stage, committed: Stage | None) -> str:
    if committed is None:
        return "the committed one has no record of this job"
    parts: list[str] = []
    for kind in ("deps", "outs", "params"):
        ours: dict[Any, Any] = getattr(stage, kind)
        theirs: dict[Any, Any] = getattr(committed, kind)
        odd = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        parts += map(str, odd)
    return f"differs from the committed one in {_few(parts or ['the command'])}"


def _inputs(chain: Chain, job: graph.Job, stage: Stage, check: Maker) -> Iterator[Check]:
    """Compare the sets of inputs, not only their content: an input that came or went is a difference as well."""
    named = [*graph.code(job, chain.params), *graph.data(job, chain.params)]
    new = [str(path) for path in named if covering(stage.deps, path) is None]
    around = {parent for path in named for parent in (path, *path.parents)}
    gone = [str(path) for path in stage.deps if path not in around]
    if new:
        yield check("inputs", job.stage, MISMATCH, f"was built before it read {_few(new)}")
    if gone:
        yield check("inputs", job.stage, MISMATCH, f"was built from {_few(gone)}, which it no longer reads")
    if not new and not gone:
        yield check("inputs", job.stage, MATCH)


def _code(chain: Chain, job: graph.Job, stage: Stage, check: Maker) -> Iterator[Check]:
    for file in chain.code(job):
        if file.md5 is not None and file.md5.endswith(".dir"):  # its list has another md5 now
            yield check("code", str(file.path), MISMATCH, "built by an older version of this folder")
        elif not file.path.is_file():
            yield check("code", str(file.path), MISMATCH, f"recorded {_short(file.md5)}, is gone")
        elif (here := chain.md5(file.path)) != file.md5:
            text = f"built by another version (recorded {_short(file.md5)}, here {_short(here)})"
            yield check("code", str(file.path), MISMATCH, text)
        else:
            yield check("code", str(file.path), MATCH)


def _parameters(chain: Chain, job: graph.Job, stage: Stage, check: Maker) -> Iterator[Check]:
    now = {name: chain.params.value(name) for name in job.tracked}
    for name in {**now, **stage.params}:
        if name not in now or name not in stage.params:
            text = "was not tracked then" if name in now else "is not tracked now"
            yield check("parameter", name, MISMATCH, text)
        elif now[name] != stage.params[name]:
            yield from (check("parameter", *odd) for odd in _differences(name, stage.params[name], now[name]))
        else:
            yield check("parameter", name, MATCH)


def _differences(name: str, then: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in {**then, **now}:
            if then.get(key) != now.get(key):
                yield from _differences(f"{name}.{key}", then.get(key), now.get(key))
    else:
        yield name, MISMATCH, f"was {then}, is {now} now"


# --- results --------------------------------------------------------------------------------------


def _link(chain: Chain, entry: Entry, check: Maker) -> Check:
    """Check that the job read what its parents recorded: by dvc.lock alone, so also for files that are not here."""
    made = covering(chain.made, entry.path)
    if made is not None and made.path == entry.path:
        md5: str | None = made.md5
    elif made is not None:
        md5 = chain.recorded({made.path: made}, entry.path).md5
    else:
        listing = chain.made_in(entry.path)
        md5 = None if listing is None else hashing.digest(listing)
    if md5 is None:
        return check("data", str(entry.path), NOT_CHECKED, "the list of its files is not in DVC's cache")
    if md5 == entry.md5:
        return check("data", str(entry.path), MATCH)
    text = f"the job read {_short(entry.md5)}, recorded as made is {_short(md5)}"
    return check("data", str(entry.path), MISMATCH, text)


def _file(chain: Chain, path: Path, recorded: str, kind: str, check: Maker) -> Check:
    if not path.is_file() and graph.is_published(path) and chain.is_asked(path):
        return check(kind, str(path), MISMATCH, f"lost; dvc pull --force {path} fetches it")
    if not path.is_file():
        return check(kind, str(path), NOT_CHECKED, NOT_HERE)
    if graph.is_published(path) and (linked := hashing.link(path)):
        return check(kind, str(path), MISMATCH, LINK if linked == path else f"its folder {linked} {LINK}")
    if (here := chain.md5(path)) == recorded:
        return check(kind, str(path), MATCH)
    return check(kind, str(path), MISMATCH, f"recorded {_short(recorded)}, here {_short(here)}")


def folder(chain: Chain, entry: Entry, selection: set[Path] | None, kind: str, check: Maker) -> Iterator[Check]:
    """Check the files ``selection`` (or all) of a recorded folder, and that no others lie there."""
    here = hashing.files_in(entry.path)
    listing = chain.contents(entry)
    if listing is None and not here:
        yield check(kind, str(entry.path), NOT_CHECKED, NOT_HERE)
        return
    if listing is None:
        absent = len(here) < (entry.nfiles or 0)
        state = NOT_CHECKED if absent else MISMATCH
        text = f"as a whole; which file cannot be told, DVC's cache has no list of them ({_short(entry.md5)})"
        yield check(kind, str(entry.path), state, f"{'incomplete' if absent else 'differs'} {text}")
        return
    recorded = {entry.path / name: each for name, each in listing.items()}
    for path in sorted(recorded if selection is None else selection):
        if path in recorded:
            yield _file(chain, path, recorded[path], kind, check)
        else:
            yield check(kind, str(path), MISMATCH, "was not there when the folder was recorded")
    if selection is None or set(recorded) <= selection:
        for path in set(here) - set(recorded) - (selection or set()):
            yield check(kind, str(path), MISMATCH, "was not there when the folder was recorded")


def _seal(path: Path, check: Maker) -> Iterator[Check]:
    """Check the checksum that tables and checkpoints hold of themselves, whatever dvc.lock says."""
    reader = {".parquet": tables.read_metadata, ".safetensors": checkpoints.read}.get(path.suffix)
    if reader is None or not path.is_file():
        return
    try:
        reader(path)
        yield check("seal", str(path), MATCH)
    except SandglassError:
        yield check("seal", str(path), MISMATCH, "is truncated or damaged: its own checksum does not match")


def _short(md5: str | None) -> str:
    return "nothing" if md5 is None else md5[:8]


def _few(names: list[str], shown: int = 4) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
