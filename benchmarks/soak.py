"""Both engines under random use, kills, flipped bytes and broken parameter files, by the thousand: ``make soak``.

Random use: sequences of what people do in a work tree (`random_use` in tests/engines, of which the tests carry out
ten). Kills: rounds of `kill.py` on the toy study. Flipped bytes and broken parameter files: on the Dyck study. What was
done is noted after each part of it in benchmarks/soak.json, which is kept with the code, so that the same command goes
on where it was stopped, here or on another machine. A part of it takes many hours, and code is edited in between: what
was done is counted by the code that it was done with. benchmarks/SOAK.md holds the result.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from rich.console import Console

HERE = Path(__file__).parent
REPOSITORY = HERE.parent
TESTS = REPOSITORY / "tests"
sys.path[:0] = [str(HERE), str(REPOSITORY), str(TESTS / "engines"), str(TESTS / "unit")]

import forked  # noqa: E402
import test_corruption  # noqa: E402
import test_params_fuzz  # noqa: E402
import workspace  # noqa: E402
from random_use import AnyMoment, References, Tally, lay_out_small, run  # noqa: E402
from rounds import Bench, plans  # noqa: E402
from workspace import Workspace, lay_out  # noqa: E402

from pipeline import params  # noqa: E402

RESULTS = HERE / "SOAK.md"
NOTES = HERE / "soak.json"
PARTICULAR = {"studies", "languages", "models", "objectives"}  # folders of what the machine is indifferent to
CHUNK, STEPS = 5, 8  # sequences that one stream of random numbers draws, and what is done in each
FLIPS = {"tables": 200, "checkpoints": 125, "figures": 125, "lock": 50}  # in one piece of work
FILES = 50  # broken parameter files in one piece of work, of each of two kinds
BY_COMMAND = 20  # every so many of them are given to the commands themselves
console = Console(stderr=True, soft_wrap=True)


class Notes:
    """What was done so far, by part and by the code that it was done with; written after each piece of work.

    Random numbers go on where those of earlier code ended, so that no two versions are tried with the same.
    """

    def __init__(self, file: Path, code: str) -> None:
        """Go on with ``file``, with the code of this md5."""
        self.file, self.code = file, code[:8]
        self.parts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def part(self, name: str) -> dict[str, Any]:
        """Return what is noted of a part: the ``next`` stream of random numbers, ``seconds``, ``counts``, and of each
        code (`by_code`) what was ``done`` and what was at fault (``complaints``)."""
        empty: dict[str, Any] = {"next": 0, "seconds": 0.0, "counts": {}, "by_code": {}}
        noted: dict[str, Any] = self.parts.setdefault(name, empty)
        noted["by_code"].setdefault(self.code, {"done": 0, "complaints": []})
        return noted

    def done(self, name: str) -> int:
        """Return how much of a part was done, with any code."""
        return sum(of["done"] for of in self.part(name)["by_code"].values())

    def now(self, name: str) -> dict[str, Any]:
        """Return what was ``done`` with the code as it is, and what was at fault."""
        of: dict[str, Any] = self.part(name)["by_code"][self.code]
        return of

    def add(self, name: str, began: float, done: int, counts: Counter[str], complaints: list[str]) -> None:
        """Note one piece of work."""
        part, now = self.part(name), self.now(name)
        now["done"] += done
        now["complaints"] += complaints
        part["next"] += 1
        part["seconds"] += time.monotonic() - began
        part["counts"] = dict(Counter(part["counts"]) + counts)
        self.file.parent.mkdir(exist_ok=True)
        temporary = self.file.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.parts, indent=1), encoding="utf-8")
        temporary.replace(self.file)
        faults = len(now["complaints"])
        console.print(f"{name}: {self.done(name)} done, {faults} faults, {part['seconds'] / 60:.0f} min")
        for complaint in complaints:
            console.print(complaint, markup=False)


def code_md5() -> str:
    """Return one md5 over the code that is tried: the machine, and of what is particular to a study that of Dyck."""
    md5 = hashlib.md5(usedforsecurity=False)
    for file in sorted([REPOSITORY / "Snakefile", *(REPOSITORY / "pipeline").rglob("*.py")]):
        path = file.relative_to(REPOSITORY)
        if "dyck" in path.parts or not PARTICULAR.intersection(path.parts):
            md5.update(f"{path} {hashlib.md5(file.read_bytes()).hexdigest()}\n".encode())
    return md5.hexdigest()


# --- random use --------------------------------------------------------------------------------------------------


def sequences(count: int, notes: Notes, folder: Path, env: dict[str, str]) -> None:
    """Carry out sequences until ``count`` are done, as many streams of them at a time as there are cores.

    Streams are noted in their order, so that those which a stop cuts short are carried out by the next call.
    """
    start = lay_out_small(folder / "small", env)
    start.engine("snakemake")
    start.git("add", "-A")
    start.git("commit", "-qm", "results")
    numbers, ahead = itertools.count(notes.part("sequences")["next"]), deque[Future[tuple[Counter[str], list[str]]]]()
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        began = time.monotonic()
        while (done := notes.done("sequences")) < count:
            while len(ahead) < cores and done + len(ahead) * CHUNK < count:
                ahead.append(pool.submit(_stream, next(numbers), start.path, folder, env))
            counts, faults = ahead.popleft().result()
            notes.add("sequences", began, counts["sequences"] + len(faults), counts, faults)
            began = time.monotonic()


def _stream(number: int, start: Path, folder: Path, env: dict[str, str]) -> tuple[Counter[str], list[str]]:
    """Carry out the sequences of a stream, of one in which something is at fault those before it; return what was
    done, and the faults."""
    tally, references = Tally(), References(folder / "references")
    tree = folder / f"stream-{number}"
    try:
        run(partial(AnyMoment, start, tree, references, env, tally), number, CHUNK, STEPS)
    except Exception as error:  # of a fault that did not come again hypothesis says only that
        tally.faults = tally.faults[:1] or [f"{type(error).__name__}: {error}"]
    return tally.counts, [f"stream {number}: {text}" for text in tally.faults]


# --- kills -------------------------------------------------------------------------------------------------------


def kills(count: int, notes: Notes, folder: Path, env: dict[str, str]) -> None:
    """Carry out rounds of `kill.py` on the toy study until ``count`` are done."""
    empty = lay_out_small(folder / "empty", {})
    trees = {name: Workspace(Path(shutil.copytree(empty.path, folder / name))) for name in ("reference", "changed")}
    files = trees["changed"].parameters()
    trees["changed"].set_lr("toy-a", 0.75)
    for tree in trees.values():
        Workspace(tree.path, env).engine("dvc")
    trees["changed"].restore(files)
    bench = Bench(folder, trees["reference"], {"empty": empty.path, "changed": trees["changed"].path})
    for plan in list(plans(count, seed=1))[notes.part("kills")["next"] :]:
        began, trial = time.monotonic(), bench.run(plan)
        counts = Counter(place for kill in trial.kills for place in kill.at.split(", "))
        complaints = [f"round {plan.number}: {text}" for text in trial.complaints]
        notes.add("kills", began, 1, counts + Counter(mended=int(trial.mended)), complaints)
        if trial.identical:
            shutil.rmtree(folder / f"round-{plan.number}")


# --- flipped bytes -----------------------------------------------------------------------------------------------


def flips(count: int, notes: Notes, folder: Path, env: dict[str, str]) -> None:
    """Flip ``count`` bytes in tables, checkpoints, figures and the lock file of the Dyck study at scale smoke."""
    if notes.done("flips") >= count:
        return
    tree = lay_out(folder / "dyck", ["dyck"], env)
    tree.engine("snakemake")
    tree.git("add", "-A")
    tree.git("commit", "-qm", "results")
    os.chdir(tree.path)
    while notes.done("flips") < count:
        began = time.monotonic()
        first = 100 * (1 + notes.part("flips")["next"])  # other flips than those of the test
        missed = test_corruption.flip(params.load(), pytest.MonkeyPatch(), FLIPS, first)
        notes.add("flips", began, sum(FLIPS.values()), Counter(FLIPS), [f"not noticed: {flip}" for flip in missed])


# --- broken parameter files --------------------------------------------------------------------------------------


def parameters(count: int, notes: Notes, folder: Path, env: dict[str, str]) -> None:
    """Write ``count`` broken parameter files: each is refused in one line, or says something that makes sense.

    Some are given to `check`, to `snakemake -n` and to `dvc repro` as well.
    """
    tree = lay_out(folder / "commands", ["dyck"], env)
    whole = {tree.path / file: (tree.path / file).read_bytes() for file in test_params_fuzz.FILES}
    (folder / "files").mkdir()
    os.chdir(REPOSITORY)
    while notes.done("parameters") < count:
        number, began, counts, complaints = notes.part("parameters")["next"], time.monotonic(), Counter[str](), []

        judged = partial(judge, tree, whole, folder / "files", counts, complaints)
        for files in (test_params_fuzz.trees(), test_params_fuzz.texts()):
            draw(files, number, judged)
        notes.add("parameters", began, counts.pop("files"), counts, complaints)


def draw(files: SearchStrategy[Any], number: int, judged: Callable[[Any], None]) -> None:
    """Hand `FILES` of these to ``judged``, from the stream of random numbers with this number."""

    @seed(number)
    @settings(
        max_examples=FILES,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(files)
    def one(content: Any) -> None:
        judged(content)

    one()


def judge(
    tree: Workspace,
    whole: dict[Path, bytes],
    folder: Path,
    counts: Counter[str],
    complaints: list[str],
    drawn: dict[str, bytes] | bytes,
) -> None:
    """Count what becomes of parameter files, by name, or of one; complain of what is neither valid nor refused."""
    contents = drawn if isinstance(drawn, dict) else {test_params_fuzz.RUNS: drawn}
    counts["files"] += 1
    try:
        with test_params_fuzz.all_renamed():
            valid = test_params_fuzz.judge(folder, contents) is not None
        counts["valid" if valid else "refused"] += 1
        if not valid and counts["files"] % BY_COMMAND == 0:
            counts["refused by commands as well"] += 1
            assert_refused(tree, whole, contents)
    except Exception as error:
        kept = {name: content.decode(errors="backslashreplace")[:500] for name, content in contents.items()}
        complaints.append(f"{type(error).__name__}: {error}\n{kept}")


def assert_refused(tree: Workspace, whole: dict[Path, bytes], contents: dict[str, bytes]) -> None:
    """Assert that commands which meet these parameter files end with one line."""
    for file, content in (whole | {tree.path / name: content for name, content in contents.items()}).items():
        file.write_bytes(content)
    for command in ((sys.executable, "-m", "pipeline", "check"), ("snakemake", "-n"), ("dvc", "repro")):
        done = tree.run(*command)
        assert done.status, f"{command[0]} does not refuse it"
        assert "Traceback" not in done.output, done.output
        # DVC reads them before any step does, and has words of its own, for a list nested 300 deep "unexpected error".
        said = [line for line in done.output.splitlines() if line.startswith("sandglass: ")]
        assert len(said) == 1 or command[0] == "dvc", done.output


# --- all of it ---------------------------------------------------------------------------------------------------

PARTS: dict[str, tuple[str, Callable[[int, Notes, Path, dict[str, str]], None]]] = {
    "sequences": (
        f"{STEPS} things one after another that people do with both engines, drawn at random: edit a value, a module, "
        "an import or the scale; build all, a study or a target by Snakemake or DVC; a job fails; SIGKILL; two starts "
        "at once; damage, delete or swap results; lose what the engines note; `dvc checkout`, `git checkout`, `dvc exp "
        "run` and `apply`, `accept`, `prune`. After each, what either engine calls fresh has the bytes of a build from "
        "nothing, and no result is lost; at the end one engine builds the rest, and all is as a build from nothing",
        sequences,
    ),
    "kills": (
        "SIGKILL at a random moment of a build of the toy study, by either engine, and once more in every fifth; then "
        "an engine ends it, and all is as if nothing had been (`kill.py` does the same on the Dyck study)",
        kills,
    ),
    "flips": (
        "one byte is another one, in a table, a checkpoint, a figure or dvc.lock of the Dyck study: reading refuses "
        "it, or verification names it",
        flips,
    ),
    "parameters": (
        "parameter files of the Dyck study with parts removed, renamed, replaced, moved, and texts cut and spoiled: "
        "refused in one line that names the place, or valid and a graph that makes sense",
        parameters,
    ),
}


def render(notes: Notes, asked: dict[str, int]) -> str:
    """Return the result as Markdown: a row for each part, what was counted in it, and its faults."""
    noted = {name: notes.part(name) for name in PARTS}
    codes = {code for part in noted.values() for code, of in part["by_code"].items() if of["done"]} - {notes.code}
    lines = [
        "# Random use\n",
        "`make soak` writes this file.\n",
        f"On {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, with {len(codes) + 1} "
        f"versions of the code that is tried; the md5 of the last begins with {notes.code}.\n",
        "| part | done | asked for | with the last version | its faults | faults of earlier ones | hours |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, part in noted.items():
        now = notes.now(name)
        earlier = sum(len(of["complaints"]) for code, of in part["by_code"].items() if code != notes.code)
        counts = (notes.done(name), asked[name], now["done"], len(now["complaints"]), earlier)
        lines.append(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {part['seconds'] / 3600:.1f} |")
    for name, part in noted.items():
        lines += [f"\n## {name.capitalize()}\n", f"{PARTS[name][0][0].upper()}{PARTS[name][0][1:]}.\n"]
        counted = sorted(part["counts"].items(), key=lambda item: -item[1])
        if counted:
            lines += ["| counted | |", "|---|---:|", *(f"| {what} | {count:,} |" for what, count in counted)]
        lines += [f"\n```\n{complaint}\n```" for complaint in notes.now(name)["complaints"]]
    return "\n".join(lines) + "\n"


Count = Annotated[int, typer.Option(min=0)]


def main(
    sequences: Count = 1000,
    kills: Count = 500,
    flips: Count = 10_000,
    parameters: Count = 1000,
    output: Annotated[Path, typer.Option(help="where the result goes")] = RESULTS,
    notes_file: Annotated[Path, typer.Option("--notes", help="what was done so far")] = NOTES,
) -> None:
    """Try both engines at random until so much of each part is done; go on where the last call stopped.

    Ctrl-C stops, and what was done until then is written. Exit status 1 if anything was at fault.
    """
    # A machine that does other work as well must not end a sequence, nor a process that takes its time to end.
    workspace.TIMEOUT, workspace.GONE_SECONDS = 7200.0, 120.0
    counts = {"sequences": sequences, "kills": kills, "flips": flips, "parameters": parameters}
    notes = Notes(notes_file.resolve(), code_md5())
    folder, output = Path(tempfile.mkdtemp(prefix="sandglass-soak-")), output.resolve()
    env, server = forked.launch(os.getpid(), folder / "bin")
    try:
        for name, count in counts.items():
            (folder / name).mkdir()
            if notes.done(name) < count:
                PARTS[name][1](count, notes, folder / name, env)
    except KeyboardInterrupt:
        console.print("stopped before the end; the same command goes on")
    finally:
        server.kill()
        server.wait()
        output.write_text(render(notes, counts), encoding="utf-8")
    at_fault = any(notes.now(name)["complaints"] for name in PARTS)
    if at_fault:
        console.print(f"work trees: {folder}")
    else:
        os.chdir(REPOSITORY)
        shutil.rmtree(folder)
    raise typer.Exit(int(at_fault))


if __name__ == "__main__":
    typer.run(main)
