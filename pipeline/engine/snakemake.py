"""Keeps Snakemake and DVC in step: DVC decides by content what is fresh, Snakemake follows by clock.

Snakemake alone can take a stale file for a fresh one: after a failed job, after another engine's work,
after `--touch`. So at every start, before it looks at anything, the Snakefile calls ``begin``, which
takes the locks of both engines, asks DVC what has changed, and sets the times of files to match. At
the end of a run what was built is recorded in DVC. Where DVC runs the steps it needs none of this but
``prune``, which each step then calls.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from pipeline import params as parameters
from pipeline.engine import build, freshness, graph, lockfile, preload, stages
from pipeline.engine.runner import refuse_links
from pipeline.engine.software import check_software
from pipeline.errors import SandglassError, in_words, meant
from pipeline.params import Params

if TYPE_CHECKING:
    from pipeline.engine.repository import Repository

UNKNOWN_TRAINING = 1e6  # seconds, of a training without a recorded time
KINDS = ("datasets", "runs", "tables", "theory", "figures", "claims")  # folders of data/ that jobs fill
# Options with which Snakemake builds no graph, and those with which it builds one but runs nothing.
NO_GRAPH = {"--lint", "--list", "--list-rules", "-l", "--list-target-rules", "--lt", "--print-compilation"}
NO_RUN = {"--dag", "--rulegraph", "--filegraph", "--d3dag", "--unlock"} | {
    *("--summary", "-S", "--detailed-summary", "-D", "--list-changes", "--lc")
}


def begin(workflow: Any, config: dict[str, Any]) -> Params:
    """Read params.yaml and, in Snakemake's main process, prepare the run.

    Ends the process with one line on anything the user can act on; nothing was touched then.
    """
    try:
        if config:
            raise SandglassError(
                "--config and --configfile are refused: results are built from params.yaml and params/ alone; "
                "edit them, or use dvc exp run -S scale=paper"
            )
        # Jobs call ``python``, and DVC asks for the name of the user, which one without an entry in passwd has not.
        os.environ.update(build.surroundings())
        try:
            getpass.getuser()
        except (KeyError, OSError):
            os.environ["LOGNAME"] = "sandglass"
        params = parameters.load()
        if workflow.is_main_process and not NO_GRAPH & set(sys.argv):
            _check_targets(_targets(sys.argv), params)
            check_software(Path())
            refuse_links()
            stages.write(params)
            logging.getLogger("snakemake.logging").addFilter(_not_of_records)
            run = _Run.start()
            run.reconcile(params, looks_only=workflow.output_settings.dryrun or bool(NO_RUN & set(sys.argv)))
            workflow.onstart(lambda log: _started(workflow, params, run))
            workflow.onsuccess(lambda log: run.finish())
            workflow.onerror(lambda log: run.finish())
        return params
    except SandglassError as error:
        raise SystemExit(f"sandglass: {error}") from None
    except OSError as error:
        raise SystemExit(f"sandglass: {in_words(error)}") from None
    except KeyboardInterrupt:
        raise SystemExit("sandglass: interrupted; run the same command again") from None


def _targets(words: list[str]) -> list[str]:
    """Return the targets that a command line of Snakemake names; none where another program reads the Snakefile.

    A Snakefile is read before Snakemake passes them on, so its own parser is asked once more.
    """
    # Its script, or its package by ``python -m snakemake``.
    if Path(words[0]).name != "snakemake" and Path(words[0]).parts[-2:] != ("snakemake", "__main__.py"):
        return []
    from snakemake.cli import get_argument_parser

    targets: list[str] = get_argument_parser().parse_known_args(words[1:])[0].targets
    return targets


def _check_targets(targets: Iterable[str], params: Params) -> None:
    """Raise SandglassError for a target that nothing makes: Snakemake would prepare all else first, for many seconds.

    It knows outputs by their paths from the root alone.
    """
    jobs = graph.jobs(params)
    rules = [*params.studies, "all", *(job.name.replace("-", "_") for job in jobs)]
    files = [str(path) for job in jobs for path in graph.outputs(job, params)]
    for target in targets:
        if target not in rules and os.path.normpath(target) not in files:
            path = os.path.relpath(target) if "/" in target else target
            hint = meant(path, files if "/" in target else rules, "python -m pipeline list --all")
            raise SandglassError(f"no study, rule or file is called {target!r}; {hint}")


def _not_of_records(record: logging.LogRecord) -> bool:
    """Return whether a message of Snakemake is not the one about jobs of which it has no records.

    It has none by intent: they are set aside at every start, since DVC says what is up to date (`_Run.reconcile`).
    """
    return "provenance/metadata" not in str(record.msg)


def _started(workflow: Any, params: Params, run: _Run) -> None:
    """Refuse ``--touch``, note what will run for whoever shows how far the build is, and spare Snakemake its timers.

    With a limit on jobs per second, as by default, every look at the ready jobs starts a timer that makes it look
    again, for ever: after a hundred jobs it looked a hundred times a second, at the size of every input of every
    ready job, which took a quarter of a core. Jobs here take seconds, so there is nothing to limit. (A longer span of
    the limit is no way out: Snakemake waits for its timers when it ends.)
    """
    if workflow.touch:
        raise SystemExit(
            "sandglass: --touch is refused: it would pass stale results off as fresh; "
            "what is up to date by content is never built again anyway"
        )
    if workflow.local_exec:  # jobs on other machines have nobody to ask
        preload.start()
    else:
        _ask_who_answers(workflow.executor_settings)
    run.note_interrupts()
    known = {job.name.replace("-", "_"): job.name for job in graph.jobs(params)}
    workflow.scheduler.job_rate_limiter = None
    build.plan([known[job.rule.name] for job in workflow.dag.needrun_jobs() if job.rule.name in known])


def _ask_who_answers(settings: Any) -> None:
    """Have SLURM asked by squeue where it keeps no accounts.

    Its plugin asks sacct wherever that is installed. After an answer that is an error it forgets the jobs which it
    waits for, so that the build waits for ever, without a word.
    """
    if getattr(settings, "status_command", None) != "sacct":
        return
    sacct = ("sacct", "--noheader", "--allocations")
    if not shutil.which(sacct[0]) or subprocess.run(sacct, capture_output=True, check=False).returncode:
        settings.status_command = "squeue"
        _say("sacct does not answer, as on a cluster without accounting: squeue is asked how jobs stand")


class Jobs:
    """The jobs of each step as the Snakefile states them."""

    def __init__(self, params: Params) -> None:
        self._params = params
        self._longest = _longest_ways(params)

    def __call__(self, step: str) -> list[Rule]:
        """Return the jobs of ``step``."""
        jobs = [job for job in graph.jobs(self._params) if job.step == step]
        return [Rule(job, self._params, round(100 * self._longest[job])) for job in jobs]

    def made(self, study: str | None = None) -> list[str]:
        """Return all files that jobs make, or the claims, figures and tables of one study; the report apart."""
        steps = ("analyse", "figures", "claims") if study else graph.STEPS[:-1]
        jobs = [job for job in graph.jobs(self._params) if study in (None, job.study) and job.step in steps]
        return [str(path) for job in jobs for path in graph.outputs(job, self._params)]


@dataclass(frozen=True)
class Rule:
    """What the Snakefile says of one job."""

    job: graph.Job
    params: Params
    priority: int  # of those that can start, the one with the highest starts first

    @property
    def name(self) -> str:
        """Return the name of the rule: ``train-dyck-standard`` with underscores."""
        return self.job.name.replace("-", "_")

    @property
    def input(self) -> list[str]:
        """Return what decides the result: data, code and the tracked parameters, as files."""
        files = (*graph.data(self.job, self.params), *graph.code(self.job, self.params))
        return [str(path) for path in (*files, freshness.tracked_file(self.job))]

    @property
    def output(self) -> list[str]:
        """Return the files that the job makes."""
        return [str(path) for path in graph.outputs(self.job, self.params)]

    @property
    def log(self) -> str:
        """Return the file that the step writes its log to."""
        return str(graph.LOGS / f"{self.job.name}.log")

    @property
    def command(self) -> str:
        """Return the command line, the same as in dvc.yaml."""
        return self.job.command


def _longest_ways(params: Params) -> dict[graph.Job, float]:
    """Return for each job the seconds of the longest chain of jobs that begins with it, as the reference machine took
    them. Who starts the longest first has the least left for one core at the end.

    A training that was never recorded counts as long, so that none is left for the end.
    """
    reference = build.Reference.known(params)
    lengths: dict[graph.Job, float] = {}
    behind: dict[graph.Job, float] = {}
    for job in reversed(graph.jobs(params)):
        unknown = job.step == "train" and job.name not in reference.jobs
        lengths[job] = behind.get(job, 0.0) + (UNKNOWN_TRAINING if unknown else reference.seconds(job.name))
        for parent in graph.parents(job, params):
            behind[parent] = max(behind.get(parent, 0.0), lengths[job])
    return lengths


def missing_references(root: Path) -> list[Path]:
    """Return the ``.dvc`` files of reference sets that are not in the work tree, as in a fresh clone."""
    return [file for file in sorted((root / graph.REFERENCE).glob("*.dvc")) if not file.with_suffix("").is_dir()]


def record(root: Path = Path()) -> None:
    """Record in DVC what Snakemake had finished when it was killed; every start does this as well.

    Raises SandglassError if an engine is at work in ``root`` or params.yaml is wrong.
    """
    with contextlib.chdir(root):
        _Run.start().reconcile(parameters.load(), looks_only=False)


@contextlib.contextmanager
def alone() -> Iterator[Repository]:
    """Yield DVC's repository while no engine can start in this folder.

    Raises SandglassError naming the engine that is at work.
    """
    run = _Run.start()
    try:
        yield run.repository
    finally:
        run.repository.close()
        run.lock.close()


def at_work(folder: Path = Path()) -> str | None:
    """Return the Snakemake that runs in ``folder``, in words, or None.

    Its lock is not taken for this, since a start might want it.
    """
    from pipeline.engine.repository import alive

    file = folder / graph.STATE / "lock"
    try:
        pid, named = int(file.read_text()), file.stat().st_mtime
    except (OSError, ValueError):
        return None
    return f"snakemake (process {pid})" if alive(pid, named) else None


@dataclass
class _Run:
    """Snakemake's main process at work: holds both engines' locks for as long as it lives."""

    lock: TextIO
    repository: Repository
    interrupted: bool = False

    @classmethod
    def start(cls) -> _Run:
        """Take the locks, or raise SandglassError naming who holds them."""
        from pipeline.engine.repository import Repository  # half a second that job processes can do without

        lock = _only_snakemake()
        repository = Repository(Path())
        shutil.rmtree(freshness.SNAKEMAKE / "locks", ignore_errors=True)  # of a killed run: the lock is ours
        return cls(lock, repository)

    def reconcile(self, params: Params, *, looks_only: bool) -> None:
        """Set file times so that Snakemake agrees with DVC on what is fresh; drop Snakemake's own records.

        What a killed run had finished is recorded first, so that it is not done again. When Snakemake
        only looks (a dry run, a picture of the graph) nothing changes but file times.
        """
        freshness.write_tracked(params)
        if missing := missing_references(Path()):
            try:
                self.repository.pull(missing)
            except SandglassError as error:
                _say(f"the report goes without {', '.join(f.stem for f in missing)} of data/reference: {error}")
        if not looks_only:
            prune(Path(), params)
        freshness.set_records_aside()
        changed = self.repository.changed()
        for file in sorted(Path(stage) for stage in changed if graph.REFERENCE in Path(stage).parents):
            if file not in missing:  # as after git pull
                _say(
                    f"{file.with_suffix('')} is not what {file} says: `dvc pull {file}` brings that, `dvc add` keeps it"
                )
        finished = {job.stage for job, current in freshness.finished(params).items() if current}
        if not looks_only:
            self.repository.commit(changed & finished)
            freshness.drop_records()
        freshness.set_times(params, changed - finished)

    def note_interrupts(self) -> None:
        """Note it when Ctrl-C ends this run, which then goes on as before.

        A signal to Snakemake alone, as supervisors send it, reaches no step, and Snakemake would wait for those that
        run. So they are told, if they have not ended by themselves (`pipeline.engine.build.PATIENCE`).
        """
        before = signal.getsignal(signal.SIGINT)

        def note(number: int, frame: FrameType | None) -> None:
            self.interrupted = True
            later = threading.Timer(build.PATIENCE, build.interrupt_steps, [os.getpid()])
            later.daemon = True
            later.start()
            if callable(before):
                before(number, frame)

        if callable(before):
            signal.signal(signal.SIGINT, note)

    def finish(self) -> None:
        """Record in DVC what this run built, except jobs whose inputs were edited while it ran.

        After Ctrl-C the next start does that, as after a kill: it takes many seconds, for which nobody waits then.
        """
        if self.interrupted:
            return
        try:
            params = parameters.load()
            freshness.write_tracked(params)
            freshness.set_records_aside()
            finished = freshness.finished(params)
            stages = {job.stage for job, current in finished.items() if current}
            self.repository.commit(self.repository.changed(stages))
            freshness.drop_records()
        except (SandglassError, OSError) as error:
            reason = in_words(error) if isinstance(error, OSError) else error
            raise SystemExit(f"sandglass: what was built is not recorded in DVC: {reason}") from None
        if edited := [job.name for job, current in finished.items() if not current]:
            _say(f"edited while they ran, so the next start runs them again: {', '.join(edited)}")


def _only_snakemake() -> TextIO:
    """Lock this work tree and return the lock file; the kernel releases the lock however the process ends.

    Raises SandglassError if another Snakemake holds it.
    """
    graph.STATE.mkdir(exist_ok=True)
    lock = (graph.STATE / "lock").open("a+")
    lock.seek(0)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SandglassError(
            f"another snakemake (process {lock.read().strip()}) is at work in this folder; "
            "nothing was started, try again when it is done"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def strays(root: Path, params: Params) -> list[Path]:
    """Return the files under ``root/data`` that no job of ``params`` makes, except reference sets and the report."""
    expected = {root / path for job in graph.jobs(params) for path in graph.outputs(job, params)}
    files = [path for kind in KINDS for path in (root / graph.DATA / kind).rglob("*") if not path.is_dir()]
    files += (root / graph.DATA).glob(".*.tmp")  # of a killed DVC, which copies to such a name first
    return sorted(set(files) - expected)


def prune(root: Path, params: Params) -> list[Path]:
    """Delete the ``strays`` and return them.

    Folders are inputs to DVC: a leftover of a removed run would become part of a result's record. Each
    file is named on stderr and in logs/prune.log. Removed stages leave dvc.lock as well.
    """
    removed = strays(root, params)
    if removed:
        (root / graph.LOGS).mkdir(exist_ok=True)
        with (root / graph.LOGS / "prune.log").open("a", encoding="utf-8") as log:
            for path in removed:
                path.unlink(missing_ok=True)
                text = f"removed {path.relative_to(root)}: no job of params.yaml makes it"
                _say(text)
                log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
        _remove_empty_folders(root / graph.DATA)
    _forget_stages(root, {job.stage for job in graph.jobs(params)})
    return removed


def _remove_empty_folders(data: Path) -> None:
    for kind in KINDS:
        for folder in sorted((path for path in (data / kind).rglob("*") if path.is_dir()), reverse=True):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()


def _forget_stages(root: Path, stages: set[str]) -> None:
    """Drop from dvc.lock the stages that are not in ``stages``; load DVC, which is slow, only if there are any."""
    try:
        text = (root / "dvc.lock").read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    if lockfile.blocks(text).keys() - stages:
        from pipeline.engine.repository import forget_stages

        forget_stages(root, stages)


def _say(text: str) -> None:
    print(f"sandglass: {text}", file=sys.stderr, flush=True)
