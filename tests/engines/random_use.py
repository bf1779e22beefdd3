"""Both engines under random use: a work tree, what people do in it, and what must hold after each of these.

What both engines call fresh has the bytes of a build from nothing: one of the same sources in an empty folder, which
runs the steps one by one and asks no engine. An engine that works, is killed or is refused loses no result. Nothing
ends with a traceback. Sequences are drawn by hypothesis: ten in the tests, thousands by ``make soak``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from workspace import Done, Workspace, cache_complaints, lay_out, one_after_another, outliving

SOURCES = ("params.yaml", "params", "pipeline", "schemas", "requirements.txt", "data/reference/README.md")
METRIC, ANALYSIS, MORE, FIGURE = (
    f"pipeline/studies/toy/{name}.py"
    for name in ("measures/metrics", "analysis/means", "measures/more", "figures/means")
)
ENGINES = {
    "snakemake": ("snakemake", "--printshellcmds", "--nocolor"),
    "dvc": ("dvc", "repro"),
    "build": (sys.executable, "-m", "pipeline", "build"),
}
BOTH = ("snakemake", "dvc")
MODEL, DATASET = "data/runs/toy/toy-a/toy-a.safetensors", "data/datasets/toy/toy-numbers/toy-numbers.parquet"
TARGETS = {
    "snakemake": ((), (), ("toy",), (MODEL,), ("data/claims/toy/claims.parquet",)),
    "dvc": ((), (), ("figures-toy-means",), ("train-toy-b",), ("--single-item", "analyse-toy-means")),
    "build": ((), ("toy",)),
}
HELD = ("dataset-toy-numbers", "train-toy-a", "train-toy-b")  # jobs that wait while somebody asks them to
BY_HAND = ("dataset toy-numbers", "train toy-b", "analyse toy-means", "figures toy-means", "judge toy", "report")
STATE = (".snakemake", ".sandglass", "logs", ".dvc/tmp", "dvc.lock", "data/tables", "data/runs/toy/toy-b")
# Why a command may be refused; anything else is a fault. DVC builds by dvc.yaml, which follows from the sources.
OUTDATED = ("`python -m pipeline params --write`", "are missing from")
BUSY = ("nothing was started", "Unable to acquire lock", "is busy, it is being blocked by")


# --- the sources ---------------------------------------------------------------------------------------------


def lay_out_small(path: Path, env: dict[str, str]) -> Workspace:
    """Lay out the toy study with one experiment and models of a few kilobytes: eight jobs."""
    tree = lay_out(path, env=env)

    def fewer(params: dict[str, Any]) -> None:
        params["runs"]["shared"]["base"]["weights"] = 1000
        del params["experiments"]["toy-losses"]
        params["experiments"]["toy-means"]["theory"] = ["toy-identity"]

    tree.change_study(fewer)
    done = tree.run(sys.executable, "-m", "pipeline", "params", "--write")
    assert done.status == 0, done.output
    return tree


def _in_study(change: Callable[[dict[str, Any], Any], None]) -> Callable[[Workspace, Any], None]:
    return lambda tree, value: tree.change_study(lambda params: change(params, value))


def _rows(params: dict[str, Any], rows: int) -> None:
    params["datasets"]["toy-numbers"]["rows"]["smoke"] = rows


def _tolerance(params: dict[str, Any], tolerance: float) -> None:
    params["claims"]["tolerance"] = tolerance


def _offset(params: dict[str, Any], offset: float) -> None:
    params["analysis"]["offset"] = offset


def _variants(params: dict[str, Any], names: tuple[str, ...]) -> None:
    params["runs"]["toy-b"]["variants"] = {name: {"lr": 0.25 / (place + 1)} for place, name in enumerate(names)}


def _scale(tree: Workspace, scale: str) -> None:
    tree.change(lambda params: params.update(scale=scale))


def _metric(tree: Workspace, factor: int) -> None:
    """What a module computes."""
    head = (tree.path / METRIC).read_text(encoding="utf-8").partition("    return ")[0]
    (tree.path / METRIC).write_text(
        f"{head}    return {factor} * weights.mean(1, dtype=np.float64)\n", encoding="utf-8"
    )


def _comment(tree: Workspace, number: int) -> None:
    """An edit that changes no result."""
    text = (tree.path / FIGURE).read_text(encoding="utf-8").partition("# edit")[0]
    (tree.path / FIGURE).write_text(text + f"# edit {number}\n" * bool(number), encoding="utf-8")


def _import(tree: Workspace, shift: float | None) -> None:
    """A module that another one imports, or does not; what it says is part of a result."""
    text = (tree.path / ANALYSIS).read_text(encoding="utf-8")
    text = text.replace("metrics, more\n", "metrics\n").replace(" + more.SHIFT", "")
    if shift is None:
        (tree.path / MORE).unlink(missing_ok=True)
    else:
        (tree.path / MORE).write_text(f'"""A shift."""\n\nSHIFT = {shift}\n', encoding="utf-8")
        text = text.replace("import metrics\n", "import metrics, more\n").replace(".offset", ".offset + more.SHIFT")
    (tree.path / ANALYSIS).write_text(text, encoding="utf-8")


# What may be edited, the values that it takes (few, so that many sequences meet the same sources), and how.
EDITS: dict[str, tuple[tuple[Any, ...], Callable[[Workspace, Any], None]]] = {
    "rate": ((0.5, 0.75), lambda tree, lr: tree.set_lr("toy-a", lr)),
    "rows": ((100, 50), _in_study(_rows)),
    "offset": ((0.0, 0.25), _in_study(_offset)),
    "tolerance": ((0.5, 0.25), _in_study(_tolerance)),
    "variants": ((("toy-b", "toy-c"), ("toy-b",)), _in_study(_variants)),
    "scale": (("smoke", "quick"), _scale),
    "module": ((1, 2), _metric),
    "comment": ((0, 1, 2), _comment),
    "import": ((None, 0.5, 1.5), _import),
}


Edits = tuple[tuple[str, Any], ...]
SOME = st.lists(st.sampled_from(sorted(EDITS)), max_size=2, unique=True).flatmap(
    lambda names: st.tuples(*(st.tuples(st.just(name), st.sampled_from(EDITS[name][0])) for name in names))
)


# --- builds from nothing -------------------------------------------------------------------------------------

LIST = """
import json
from pipeline import params
from pipeline.engine import graph
loaded = params.load()
jobs = [
    {"stage": job.stage, "command": job.command.removeprefix("python -m pipeline "),
     "parents": [parent.stage for parent in graph.parents(job, loaded)],
     "outputs": [str(path) for path in graph.outputs(job, loaded)]}
    for job in graph.jobs(loaded)
]
print("jobs", json.dumps(jobs), flush=True)
"""


class References:
    """What a build from nothing makes of given sources: of each stage the md5s of its outputs.

    Each is made once, and kept in a folder by the md5 of the sources.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.scratch = folder, folder / f"scratch-{os.getpid()}"  # others may keep theirs there too
        folder.mkdir(parents=True, exist_ok=True)

    def of(self, tree: Workspace) -> dict[str, Any]:
        """By stage: its ``command``, the stages it depends on (``parents``), and the md5s of its ``outputs``."""
        file = self.folder / f"{_digest(tree.path)}.json"
        if not file.is_file():
            made = json.dumps(self._build(tree))
            own = file.with_suffix(f".{os.getpid()}.tmp")
            own.write_text(made, encoding="utf-8")
            own.replace(file)
        return dict(json.loads(file.read_text(encoding="utf-8")))

    def _build(self, tree: Workspace) -> dict[str, Any]:
        shutil.rmtree(self.scratch, ignore_errors=True)
        for path in _sources(tree.path):
            target = self.scratch / path.relative_to(tree.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        here = Workspace(self.scratch)
        code = LIST + one_after_another([]).replace("[]", '[job["command"] for job in jobs]')
        done = here.run(sys.executable, "-c", code)
        listed = re.search(r"^jobs (.*)$", done.output, re.M)
        assert listed, done.output
        jobs = json.loads(listed[1])
        assert done.output.count("status 0\n") == len(jobs), done.output
        md5s = {str(path.relative_to(here.path)): _md5(path) for path in _built(here.path)}
        stages = {job["stage"]: job | {"outputs": {path: md5s[path] for path in job["outputs"]}} for job in jobs}
        assert len(md5s) == sum(len(stage["outputs"]) for stage in stages.values())
        return stages


def _sources(root: Path) -> Iterator[Path]:
    for name in SOURCES:
        files = (root / name).rglob("*") if (root / name).is_dir() else [root / name]
        yield from sorted(path for path in files if path.suffix in (".yaml", ".py", ".txt", ".md", ".json", ".j2"))


def _digest(root: Path) -> str:
    md5 = hashlib.md5(usedforsecurity=False)
    for path in _sources(root):
        # What is made from them anew by every start is no source.
        if path.name != "graph.json":
            md5.update(f"{path.relative_to(root)}\0{_md5(path)}\n".encode())
    return md5.hexdigest()


def _built(root: Path) -> Iterator[Path]:
    data = root / "data"
    yield from (path for path in data.rglob("*") if path.is_file() and path.relative_to(data).parts[0] != "reference")


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


# --- one sequence --------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was done in some sequences, and what was at fault."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class RandomUse(RuleBasedStateMachine):
    """A work tree in which everything is up to date, and then one thing after another is done."""

    def __init__(self, start: Path, folder: Path, references: References, env: dict[str, str], tally: Tally) -> None:
        super().__init__()
        self.folder, self.references, self.tally, self.counts = folder, references, tally, tally.counts
        shutil.rmtree(folder, ignore_errors=True)
        path = Path(shutil.copytree(start, folder / "tree", symlinks=True))
        self.tree = Workspace(path, env)  # whose programs are forked
        self.started = Workspace(path)  # whose programs are started, as users do: they can be killed
        self.history: list[str] = []
        self.failed = False  # its work tree then stays
        self.commits = [self.tree.git("rev-parse", "HEAD").strip()]
        self.experiments: list[str] = []
        # What both engines called fresh when last asked, if nothing came between; where it starts from, all is.
        self.fresh: set[str] | None = set(references.of(self.tree))

    # --- what must hold

    def note(self, what: str) -> None:
        self.history.append(what)
        self.counts[what.split()[0]] += 1

    def fail(self, why: str) -> None:
        self.failed = True
        text = "\n".join(["", *self.history, "", why, f"(work tree: {self.tree.path})"])
        self.tally.faults.append(text)
        raise AssertionError(text)

    def check_output(self, output: str) -> None:
        if "Traceback" in output or "unexpected error" in output:
            self.fail(f"a traceback:\n{output}")

    def do(self, *command: str, **env: str) -> Done:
        """Run a command to its end; a traceback is a fault."""
        done = self.tree.run(*command, **env)
        self.check_output(done.output)
        return done

    def refused(self, done: Done, reasons: tuple[str, ...]) -> None:
        """A command that did not succeed must have one of these reasons."""
        if done.status:
            self.counts["refused"] += 1
            if not any(reason in done.output for reason in reasons):
                self.fail(f"status {done.status}:\n{done.output}")

    def look(self) -> set[str]:
        """Ask both engines; return the stages that both call fresh. What one calls fresh must be what sources say."""
        reference = self.references.of(self.tree)
        dry = self.do(*ENGINES["snakemake"], "-n")
        if dry.status:
            self.fail(f"snakemake -n ends with status {dry.status}:\n{dry.output}")
        planned = {name for name, stage in reference.items() if _ran(stage["command"]) in dry.ran}
        status = self.do("dvc", "status", "--json")
        if status.status:
            self.fail(f"dvc status ends with status {status.status}:\n{status.output}")
        changed = set(json.loads(status.output))
        for name, stage in reference.items():  # parents come first
            if changed & {*stage["parents"]}:
                changed.add(name)
        for engine, stale in (("Snakemake", planned), ("DVC", changed)):
            for name in reference.keys() - stale:
                for path, md5 in reference[name]["outputs"].items():
                    file = self.tree.path / path
                    if not file.is_file() or _md5(file) != md5:
                        self.fail(f"{engine} calls {name} fresh, but {path} is not what a build from nothing makes")
        if (self.tree.path / "dvc.lock").is_file() and (lost := cache_complaints(self.tree)):
            self.fail("; ".join(lost))
        self.fresh = reference.keys() - planned - changed
        return self.fresh

    def look_after_work(self) -> None:
        """No engine makes stale or loses what was fresh before it worked, failed or was killed."""
        before = self.fresh
        if before is not None and (lost := before - self.look()):
            self.fail(f"was fresh before, and is not: {', '.join(sorted(lost))}")
        elif before is None:
            self.look()

    # --- what people do

    def edit(self, edits: Edits) -> None:
        """Values, code, imports, the scale: what is done next is the first that sees it."""
        for name, value in edits:
            self.note(f"edit {name} {value}")
            EDITS[name][1](self.tree, value)
            self.fresh = None
        self.tree.git("add", "-A")

    @rule(edits=SOME)
    def edit_and_look(self, edits: Edits) -> None:
        self.edit(edits)
        self.look()

    @rule(edits=SOME, command=st.sampled_from([(engine, target) for engine in TARGETS for target in TARGETS[engine]]))
    def build(self, edits: Edits, command: tuple[str, tuple[str, ...]]) -> None:
        """Everything, a study, or one target."""
        self.edit(edits)
        engine, target = command
        self.note(f"build {engine} {' '.join(target)}")
        done = self.do(*ENGINES[engine], *target)
        self.refused(done, OUTDATED if engine == "dvc" else ())
        self.look_after_work()

    @rule(edits=SOME, engine=st.sampled_from(BOTH), run=st.sampled_from(["toy-a", "toy-b"]))
    def build_while_a_job_fails(self, edits: Edits, engine: str, run: str) -> None:
        self.edit(edits)
        self.note(f"build_while_a_job_fails {engine} {run}")
        self.do(*ENGINES[engine], TOY_FAIL=run)
        self.look_after_work()

    @rule(edits=SOME, engine=st.sampled_from(BOTH), job=st.sampled_from(HELD), alone=st.booleans())
    def kill_at_a_job(self, edits: Edits, engine: str, job: str, alone: bool) -> None:
        """SIGKILL in the middle of a job, if it is built: to the engine alone, or to all processes of it."""
        self.edit(edits)
        self.note(f"kill_at_a_job {engine} {job}{' the engine alone' if alone else ''}")
        go, lock = self.tree.path.with_name("go"), self.tree.path / ".sandglass/jobs" / f"{job}.lock"
        go.unlink(missing_ok=True)
        before = lock.read_text() if lock.is_file() else ""
        process = self.started.start(*ENGINES[engine], **self.tree.hold(job.partition("-")[2]))
        while process.poll() is None and (not lock.is_file() or lock.read_text() in ("", before)):
            time.sleep(0.02)
        self._kill(process, alone)

    def _kill(self, process: Any, alone: bool) -> None:
        if process.poll() is None:
            self.counts["killed"] += 1
            (process.kill if alone else partial(os.killpg, process.pid, signal.SIGKILL))()
        self.tree.release()
        if left := outliving(self.tree.path):
            self.fail("; ".join(left))
        self.check_output(process.communicate()[0])
        self.look_after_work()

    @rule(edits=SOME)
    def two_at_once(self, edits: Edits) -> None:
        """One works, the other is refused; or one has ended before the other begins."""
        self.edit(edits)
        self.note("two_at_once")
        both = {engine: self.started.start(*ENGINES[engine]) for engine in BOTH}
        done = {engine: Done(0, process.communicate()[0]) for engine, process in both.items()}
        for engine in BOTH:
            done[engine].status = both[engine].returncode
            self.check_output(done[engine].output)
            self.refused(done[engine], BUSY + OUTDATED * (engine == "dvc"))
        if all(each.status for each in done.values()) and not any(text in done["dvc"].output for text in OUTDATED):
            self.fail("\n".join(f"{engine}:\n{each.output}" for engine, each in done.items()))
        self.look_after_work()

    @rule(
        how=st.sampled_from(["flip", "cut", "lengthen", "empty", "delete", "swap", "touch", "date back", "date ahead"]),
        which=st.integers(0, 99),
    )
    def damage(self, how: str, which: int) -> None:
        """Something happens to a file of a result."""
        files = sorted(_built(self.tree.path))
        if not files:
            return
        path = files[which % len(files)]
        self.note(f"damage {how} {path.relative_to(self.tree.path)}")
        content = path.read_bytes()
        if how == "flip":
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 4]) if content else b"!")
        elif how in ("cut", "empty"):
            path.write_bytes(content[: len(content) // 2 if how == "cut" else 0])
        elif how == "lengthen":
            path.write_bytes(content + b"\0")
        elif how == "delete":
            path.unlink()
        elif how == "swap":  # by renaming, which keeps times and sizes
            other = next((each for each in files if each.suffix == path.suffix and each != path), path)
            if other != path:
                aside = self.folder / "aside"
                path.rename(aside)
                other.rename(path)
                aside.rename(other)
        else:
            shift = {"touch": 0.0, "date back": -1e8, "date ahead": 3600.0}[how]
            os.utime(path, (time.time() + shift,) * 2)
        self.fresh = None
        self.look()

    @rule(name=st.sampled_from(STATE))
    def lose(self, name: str) -> None:
        """What the engines note for themselves, or a folder of results."""
        self.note(f"lose {name}")
        path = self.tree.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        self.fresh = None
        self.look()

    @rule(edits=SOME, step=st.sampled_from(BY_HAND))
    def step_by_hand(self, edits: Edits, step: str) -> None:
        """On inputs that may be stale, damaged or not there."""
        self.edit(edits)
        self.note(f"step_by_hand {step}")
        self.do(sys.executable, "-m", "pipeline", *step.split())
        self.fresh = None
        self.look()

    @rule(force=st.booleans())
    def dvc_checkout(self, force: bool) -> None:
        self.note(f"dvc_checkout {'--force' * force}")
        self.do("dvc", "checkout", *["--force"] * force)
        self.fresh = None
        self.look()

    @rule()
    def all_is_committed(self) -> None:
        self.note("commit")
        self.tree.git("add", "-A")
        self.tree.git("commit", "-qm", "a state", "--allow-empty")
        self.commits.append(self.tree.git("rev-parse", "HEAD").strip())

    @rule(which=st.integers(0, 9), results=st.booleans())
    def git_checkout(self, which: int, results: bool) -> None:
        """Go back to what was committed, with the results of that state or with those that lie here."""
        self.note(f"git_checkout {which % len(self.commits)}{' and dvc checkout' * results}")
        self.tree.git("checkout", "-q", "-f", self.commits[which % len(self.commits)])
        if results:
            self.do("dvc", "checkout", "--force")
        self.fresh = None
        self.look()

    @rule(lr=st.sampled_from(EDITS["rate"][0]))
    def experiment(self, lr: float) -> None:
        name = f"try-{len(self.experiments)}"
        self.note(f"experiment {name} rate {lr}")
        done = self.do("dvc", "exp", "run", "--name", name, "-S", f"params/toy/runs.yaml:toy-a.lr={lr}")
        self.refused(done, OUTDATED)
        if done.status == 0:
            self.experiments.append(name)
        self.fresh = None
        self.look()

    @precondition(lambda self: self.experiments)
    @rule(which=st.integers(0, 9))
    def experiment_is_applied(self, which: int) -> None:
        name = self.experiments[which % len(self.experiments)]
        self.note(f"apply {name}")
        done = self.do("dvc", "exp", "apply", name)
        self.refused(done, ("ERROR: ",))
        self.fresh = None
        self.look()

    @rule(edits=SOME)
    def edits_are_proved(self, edits: Edits) -> None:
        """What is proved to change no result is accepted, and nothing else."""
        self.edit(edits)
        self.note("accept")
        done = self.do(sys.executable, "-m", "pipeline", "accept", "--all", "--reason", "words", "--prove")
        self.refused(done, ("sandglass: ",))
        self.look_after_work()

    @rule(older=st.booleans())
    def prune(self, older: bool) -> None:
        """With the cache of older results, these cannot be gone back to: only to what was committed just now."""
        if older:
            self.all_is_committed()
        self.note(f"prune {'--cache' * older}")
        done = self.do(sys.executable, "-m", "pipeline", "prune", "--yes", *["--cache"] * older)
        self.refused(done, ())
        if older:
            self.commits, self.experiments = self.commits[-1:], []
        self.look_after_work()

    # --- the end

    def teardown(self) -> None:
        """An engine builds all that is left; then everything is what a build from nothing makes, and both agree."""
        try:
            if not self.failed and sys.exc_info()[0] is None:
                self.finish("dvc" if len(self.history) % 2 else "snakemake")
        finally:
            if not self.failed:
                shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self, engine: str) -> None:
        self.note(f"finish {engine}")
        if engine == "dvc":  # which builds by dvc.yaml
            self.do(sys.executable, "-m", "pipeline", "params", "--write")
        done = self.do(*ENGINES[engine])
        if done.status:
            self.fail(f"{engine} ends with status {done.status}:\n{done.output}")
        reference = self.references.of(self.tree)
        expected = {path: md5 for stage in reference.values() for path, md5 in stage["outputs"].items()}
        found = {str(path.relative_to(self.tree.path)): _md5(path) for path in _built(self.tree.path)}
        if wrong := sorted(path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path)):
            self.fail(f"not what a build from nothing makes: {', '.join(wrong)}")
        if stale := reference.keys() - self.look():
            self.fail(f"still to be built: {', '.join(sorted(stale))}")
        self.counts["sequences"] += 1


class AnyMoment(RandomUse):
    """The same, with kills at any moment: no two runs of a sequence are alike."""

    @rule(edits=SOME, engine=st.sampled_from(BOTH), tenths=st.integers(0, 80), alone=st.booleans())
    def kill_at_a_moment(self, edits: Edits, engine: str, tenths: int, alone: bool) -> None:
        self.edit(edits)
        self.note(f"kill_at_a_moment {engine} after {tenths / 10} s{' the engine alone' * alone}")
        process = self.started.start(*ENGINES[engine])
        deadline = time.monotonic() + tenths / 10
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self._kill(process, alone)


def _ran(command: str) -> str:
    """What `Done.ran` calls the step of this command."""
    return command.replace("judge ", "claims ")


def run(machine: Callable[[], RandomUse], number: int, sequences: int, steps: int) -> None:
    """Draw ``sequences`` of ``steps`` from the stream of this number and carry them out; raises what goes wrong.

    A sequence that goes wrong is not made shorter: that would take as long as a hundred of them.
    """
    chosen = settings(
        max_examples=sequences,
        stateful_step_count=steps,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(number)(machine), settings=chosen)
