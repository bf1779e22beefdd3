"""One line for a whole build: jobs done of all, time elapsed, an estimate of what is left, and what is at work.

Snakemake does the work, in a process of its own; its output goes to ``logs/build.log``. What each job took on the
reference machine is in ``profiles/times.json``; the estimate goes by what jobs of each kind have taken here
(`pipeline.engine.estimate`).
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from ruamel.yaml import YAML

from pipeline import params
from pipeline.engine import estimate, graph, lockfile, machine
from pipeline.engine.estimate import Left, Pace
from pipeline.engine.runner import INTERRUPTED
from pipeline.engine.software import check_software

PLAN = graph.STATE / "plan.json"  # written by Snakemake's process when it knows what it will run
LOG = graph.LOGS / "build.log"
TIMES = Path("profiles/times.json")
UNKNOWN_SECONDS = 5.0  # of a job that the reference machine never ran
TIMED, LARGER = "quick", ("long", "paper")  # the scale that is always timed, and those that take longer
TERMINAL_SECONDS, LOG_SECONDS = 0.5, 60.0  # between two lines, on a terminal and elsewhere
LITTLE = 1e8  # bytes of disk that are not worth a line, where there is room for them
COPIES = 2  # of each result: in data/, and in DVC's cache where the disk cannot share the bytes
SNAKEMAKE = (sys.executable, "-m", "snakemake")  # by the interpreter: scripts name the folder they were installed in
PATIENCE = 10.0  # seconds, after which a program was not told of an interrupt: steps end in fewer
MARK = "sandglass: "  # begins a line that is meant for the user
STOPPED = 130  # the exit status after Ctrl-C
SHOWN_LINES = 8  # of Snakemake's log, and failed jobs, at the end of a build that went wrong


@dataclass(frozen=True)
class Reference:
    """What a build took on the reference machine: seconds of each job, and from start to end. Jobs that it never ran
    have the seconds of another machine, which says more than nothing.

    ``outputs`` stands for the results that are committed (`lockfile.digest`), and ``made_on`` for the machine that made
    them, which may be another than the one that the times are of; empty where that was not recorded.
    """

    machine: str
    elapsed: float
    jobs: dict[str, float]
    outputs: str = ""
    made_on: str = ""

    @classmethod
    def load(cls, scale: str, root: Path = Path()) -> Reference:
        """Return the recorded times at ``scale``; without a record, an empty `Reference`."""
        try:
            times = json.loads((root / TIMES).read_text(encoding="utf-8"))[scale]
            machine, jobs = times["machine"], dict(times["jobs"])
            for others in times.get("elsewhere", {}).values():
                jobs = others | jobs
            return cls(machine, times["elapsed"], jobs, times.get("outputs", ""), times.get("made_on", machine))
        except (OSError, ValueError, KeyError):
            return cls("", 0.0, {})

    @classmethod
    def known(cls, loaded: params.Params, root: Path = Path()) -> Reference:
        """Return the recorded times at the scale of ``loaded``, or what those at quick say of a larger scale.

        A training is then taken to last longer as it sees more examples, one without models at quick to see as many in
        a second as the others of its study; jobs of other steps are taken to last as long. ``elapsed`` is 0.
        """
        recorded, quick = cls.load(loaded.scale, root), cls.load(TIMED, root)
        if recorded.jobs or loaded.scale not in LARGER or not quick.jobs:
            return recorded
        then, jobs = params.load(root, TIMED), dict(quick.jobs)
        for study in loaded.studies:
            before, now = (
                {key: _examples(run) for key, run in each.of_study("runs", study).items()} for each in (then, loaded)
            )
            timed = {key: jobs[f"train-{key}"] for key in before if before[key] and f"train-{key}" in jobs}
            if timed:
                usual = sum(timed.values()) / sum(before[key] for key in timed)  # seconds of an example
                jobs |= {
                    f"train-{key}": (timed[key] / before[key] if key in timed else usual) * now[key] for key in now
                }
        return cls("", 0.0, jobs)

    def seconds(self, name: str) -> float:
        """Return how many seconds the job ``name`` took on the reference machine."""
        return self.jobs.get(name, UNKNOWN_SECONDS)

    def work(self, jobs: Iterable[graph.Job]) -> float:
        """Return how many seconds of one core ``jobs`` took together on the reference machine."""
        return sum(self.seconds(job.name) for job in jobs)


@dataclass(frozen=True)
class Outcome:
    """How a build ended: Snakemake's exit status (`STOPPED` after Ctrl-C), the jobs that it set out to run and those of
    them that it did, by name, and the seconds from start to end."""

    status: int
    planned: list[str]
    done: list[str]
    seconds: float


def build(study: str | None = None, *, report: bool = False) -> Outcome:
    """Run Snakemake for everything, for one study or for the ``report``; say what went wrong, if anything did.

    Raises SandglassError for a study that params.yaml does not list.
    """
    loaded = params.load()
    if study is not None:
        graph.check_study(study, loaded)
    check_software(Path())  # an environment that only reads results has no Snakemake
    reference = Reference.known(loaded)
    jobs = [job for job in graph.jobs(loaded) if study in (None, job.study)]
    if not report and reference.jobs and not reference.elapsed:
        work = duration(reference.work(jobs))
        unknown = sum(job.name not in reference.jobs for job in jobs if job.step == "train")
        more = f" and {unknown} trainings of which no time is known" if unknown else ""
        times = f"by the times at {TIMED} {work} of a core{more}"
        say(f"scale {loaded.scale}: {len(jobs)} jobs; none was timed at it; {times}")
    if study is None and not report and reference.elapsed:
        took = duration(reference.elapsed)
        timed = sum(job.name in reference.jobs for job in jobs)
        these = "they" if timed == len(jobs) else f"{timed} of them"  # others are newer than the record
        say(f"scale {loaded.scale}: {len(jobs)} jobs; from nothing {these} took {took} on {reference.machine}")
    if needs := disk(loaded, study):
        say(needs)
    before = earlier(loaded, reference)
    graph.LOGS.mkdir(exist_ok=True)
    PLAN.unlink(missing_ok=True)
    targets = [study] if study else [str(graph.REPORT_PAGE)] if report else []
    # Targets come first: `--quiet` takes every word after it.
    command = [*SNAKEMAKE, *targets, "--cores", "all", "--quiet", "host", "progress", "reason", "rules"]
    started, interrupted = time.time(), False
    with LOG.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=surroundings(), stdout=log, stderr=subprocess.STDOUT)
        try:
            _follow(process, started, reference, before)
        except KeyboardInterrupt:
            interrupted = True
            if sys.stderr.isatty():
                print(file=sys.stderr)
            with contextlib.suppress(KeyboardInterrupt):
                interrupt(process)
        except BaseException:  # nothing may go on that nobody follows
            interrupt(process)
            raise
    ends = {name: _ended(name, started) for name in _planned()}
    # A step notes it as well: Python drops an interrupt that comes while it clears up objects.
    interrupted = interrupted or INTERRUPTED in ends.values()
    done = [name for name, end in ends.items() if end == "done"]
    status = STOPPED if interrupted else process.returncode
    outcome = Outcome(status, list(ends), done, time.time() - started)
    if outcome.status:
        _say_what_went_wrong(outcome, started)
    return outcome


def one(step: str, key: str) -> int:
    """Run Snakemake for one job, with its output as it comes; return its exit status."""
    loaded = params.load()
    targets = map(str, graph.outputs(graph.job(step, key, loaded), loaded))
    return subprocess.run([*SNAKEMAKE, *targets, "--cores", "all"], env=surroundings(), check=False).returncode


def surroundings() -> dict[str, str]:
    """Return the environment for Snakemake: its jobs call ``python``, which must be the one that runs here.

    A user without a home that can be written to, as in a container, has Snakemake keep its caches in the work tree.
    """
    ours = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~")) / ".cache")  # noqa: PTH111
    nearest = next((folder for folder in (caches, *caches.parents) if folder.is_absolute() and folder.exists()), None)
    if nearest is None or not os.access(nearest, os.W_OK):
        ours["XDG_CACHE_HOME"] = str(Path.cwd() / graph.STATE / "cache")
    return os.environ | ours


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """End Snakemake and its steps in order, and wait. Ctrl-C has told all of them already; a signal to this process
    alone, as `kill`, `docker stop` and supervisors send it, has not."""
    try:
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        interrupt_steps(process.pid)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        process.wait()


def interrupt_steps(engine: int) -> None:
    """Send SIGINT to all that the process ``engine`` has started: steps keep what they have, and end."""
    for each in psutil.Process(engine).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            each.send_signal(signal.SIGINT)


def _say_what_went_wrong(outcome: Outcome, started: float) -> None:
    """Say how far the build came, what failed, and what to type next.

    What Snakemake and the steps say to the user was passed on when they said it.
    """
    far = f": {len(outcome.done)} of {len(outcome.planned)} jobs are done" if outcome.planned else ""
    if outcome.status == STOPPED:
        say(f"interrupted after {duration(outcome.seconds)}{far}; the same command continues")
        return
    text = LOG.read_text(encoding="utf-8", errors="replace")
    if not outcome.planned and MARK in text:  # nothing was begun, and it was said why
        return
    ends = {name: _ended(name, started) for name in outcome.planned}
    failed = [name for name, end in ends.items() if end not in ("", "done", INTERRUPTED)]
    if not failed and MARK not in text:
        print("\n".join(text.strip().splitlines()[-SHOWN_LINES:]), file=sys.stderr)
    named = ", ".join(f"{graph.LOGS / name}.log" for name in failed[:SHOWN_LINES])
    say(f"the build stopped with status {outcome.status}{far}; see {named or LOG}")
    say("when that is mended, the same command continues")


def record(elapsed: float | None, root: Path = Path()) -> int:
    """Write what the jobs of this work tree took, on which machine, and what they made to ``profiles/times.json``.

    ``elapsed`` is the time of the whole build in seconds, at the scale of params.yaml. None: this is another machine
    than the reference, and built only some studies; it adds the jobs that have no time yet, under its own name.

    Returns how many jobs of this work tree have one in the file.
    """
    loaded = params.load(root)
    steps = {job.name: _step(job.name, root) for job in graph.jobs(loaded)}
    jobs = {name: round(log["seconds"], 1) for name, log in steps.items() if log.get("status") == "done"}
    file = root / TIMES
    kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if elapsed is None:
        known = Reference.load(loaded.scale, root).jobs
        times = kept.setdefault(loaded.scale, {"elapsed": 0.0, "machine": "", "jobs": {}})
        others = times.setdefault("elsewhere", {}).setdefault(machine.description(), {})
        others |= {name: seconds for name, seconds in jobs.items() if name not in known}
    else:
        stages = YAML(typ="safe").load(root / lockfile.NAME)["stages"].values()
        outputs = lockfile.digest({Path(out["path"]): out["md5"] for stage in stages for out in stage["outs"]})
        kept[loaded.scale] = {"machine": machine.description(), "elapsed": elapsed, "jobs": jobs, "outputs": outputs}
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return len(jobs)


def say(text: str) -> None:
    """Print a line to the user."""
    print(f"{MARK}{text}", file=sys.stderr, flush=True)


def plan(names: list[str]) -> None:
    """Write the names of the jobs that Snakemake is about to run to `PLAN`, which `line` reads."""
    graph.STATE.mkdir(exist_ok=True)
    PLAN.write_text(json.dumps(names), encoding="utf-8")


def duration(seconds: float) -> str:
    """Return seconds as people say them.

    >>> duration(42), duration(130), duration(7500)
    ('42 s', '2:10 min', '2:05 h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole // 60 % 60:02d} h"


def disk(loaded: params.Params, study: str | None = None) -> str:
    """Return in a sentence how much disk what is not here needs, by what it takes in dvc.lock, and how much is free.

    Empty where little is missing, or where dvc.lock holds results of another scale.
    """
    sizes = lockfile.sizes(Path(lockfile.NAME), loaded.scale)
    missing = [
        job
        for job in graph.jobs(loaded)
        if study in (None, job.study) and not all(path.is_file() for path in graph.outputs(job, loaded))
    ]
    needed = COPIES * sum(sizes.get(job.stage, 0) for job in missing)
    free = shutil.disk_usage(Path()).free
    if needed < min(LITTLE, free) or not needed:
        return ""
    text = f"what is not here needs about {_bytes(needed)} of disk, DVC's copies included; {_bytes(free)} are free"
    return text if needed < free else f"{text}: THE DISK WILL BE FULL before the build ends, make room first"


def _examples(run: params.Group) -> float:
    """Return how many examples all models of a run see in training."""
    entries = run.members.values()
    rates = [len(entry.lr) if isinstance(entry.lr, list) else 1 for entry in entries]
    return sum(entry.replicas * n * entry.steps * entry.batch for entry, n in zip(entries, rates, strict=True))


def _bytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def earlier(loaded: params.Params, reference: Reference) -> Pace:
    """Return how fast this machine was in the builds whose logs lie here, against ``reference``."""
    steps = {job.name: _step(job.name) for job in graph.jobs(loaded)}
    mine = {"status": "done", "scale": loaded.scale, "host": platform.node()}
    took = {name: log["seconds"] for name, log in steps.items() if mine.items() <= log.items()}
    known = reference.jobs
    return Pace({name: took[name] for name in took.keys() & known.keys()}, known.__getitem__)


def _follow(process: subprocess.Popen[bytes], started: float, reference: Reference, before: Pace) -> None:
    """Show how far the build is until ``process`` ends; print what Snakemake says to the user."""
    shown, read = 0.0, 0
    terminal = sys.stderr.isatty()
    while process.poll() is None:
        time.sleep(TERMINAL_SECONDS)
        read = _pass_on(read)
        if time.monotonic() - shown > (TERMINAL_SECONDS if terminal else LOG_SECONDS):
            shown = time.monotonic()
            if text := line(started, reference, before):
                _show(text, terminal)
    _pass_on(read)
    if text := line(started, reference, before):
        _show(text, terminal)
    if terminal:
        print(file=sys.stderr)


def line(started: float, reference: Reference, before: Pace | None = None) -> str:
    """Return the state of the build that began at ``started``; empty before it is known what will run.

    ``before`` is how fast this machine was in earlier builds.
    """
    if not (names := _planned()):
        return ""
    # Read once: jobs go on ending.
    steps = {name: log for name in names if (log := _end(name, started))}
    done = {name for name, log in steps.items() if log["status"] == "done"}
    at_work = [name for name in names if name not in steps and _began(name) > started]
    now = time.time()
    spent = {name: now - _began(name) for name in at_work}
    text = f"{len(done)} of {len(names)} jobs, {duration(now - started)}"
    if done and len(done) < len(names):
        took = {name: steps[name]["seconds"] for name in done}
        waiting = [name for name in names if name not in steps and name not in spent]
        left = estimate.left(took, spent, waiting, now - started, reference.seconds, before, reference.jobs)
        text += f", about {between(left)} left"
    if len(done) == len(names):
        return f"{text}; recording the results in DVC"
    return text + (f": {', '.join(at_work)}" if at_work else "")


def between(left: Left) -> str:
    """Return a range of seconds as people say it.

    >>> between(Left(100, 80, 130)), between(Left(0.1, 0.1, 0.2)), between(Left(4000, 3000, 5000))
    ('1:20 to 2:10 min', '0 s', '50:00 min to 1:23 h')
    """
    least, most = duration(left.least), duration(left.most)
    if least == most:
        return most
    (first, unit), last = least.split(), most
    return f"{first} to {last}" if last.endswith(f" {unit}") else f"{least} to {last}"


def _step(name: str, root: Path = Path()) -> dict[str, Any]:
    try:
        log: dict[str, Any] = json.loads((root / graph.LOGS / "steps" / f"{name}.json").read_text())
    except (OSError, ValueError):
        return {}
    return log


def _planned() -> list[str]:
    """Return the jobs that Snakemake set out to run; none before it knows, or where there is nothing to do."""
    try:
        names: list[str] = json.loads(PLAN.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return names


def _ended(name: str, started: float) -> str:
    """Return how a job ended since ``started``, as its step noted it; empty if it did not."""
    return str(_end(name, started).get("status", ""))


def _end(name: str, started: float) -> dict[str, Any]:
    """Return what a step noted as it ended since ``started``; empty if it did not."""
    noted = _step(name)
    return noted if noted.get("finished", 0) > started else {}


def _began(name: str) -> float:
    """Return when a job last took its lock, in which it writes as it begins; 0 if never."""
    try:
        return (graph.STATE / "jobs" / f"{name}.lock").stat().st_mtime
    except OSError:
        return 0.0


def _pass_on(read: int) -> int:
    """Print what was said to the user since byte ``read`` of Snakemake's log; return where the log ends."""
    with LOG.open(encoding="utf-8", errors="replace") as log:
        log.seek(read)
        for text in log:
            if text.startswith(MARK):
                if sys.stderr.isatty():
                    _show("", terminal=True)  # the line of progress, which may be longer
                    print("\r", end="", file=sys.stderr)
                print(text, end="", file=sys.stderr, flush=True)
        return log.tell()


def _show(text: str, terminal: bool) -> None:
    if terminal:
        width = shutil.get_terminal_size().columns
        print("\r" + text[: width - 1].ljust(width - 1), end="", file=sys.stderr, flush=True)
    else:
        say(text)
