"""What the engines' own book-keeping costs with five and with ten studies of thirty jobs each.

``python benchmarks/scale.py`` generates a workspace of copies of the tests' toy study, builds it once, and times the
commands that find nothing to do. `bench.py` prints the same rows.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/engines")]

import psutil  # noqa: E402
from workspace import TOY, Workspace, lay_out  # noqa: E402

from pipeline.params.sharing import SHARED  # noqa: E402

COUNTS = {"datasets": 6, "runs": 8, "theory": 5}  # and five experiments of two jobs each, and claims: 30 jobs
EXPERIMENTS = 5
COMMANDS = {
    "dvc status": [("dvc", "status", "-q")],
    "snakemake -n": [("snakemake", "-n", "--quiet")],
    # What `make reproduce` runs once its environment stands.
    "make reproduce": [("snakemake", "--cores", "all", "--quiet"), ("python", "-m", "pipeline", "summary")],
    "why": [("python", "-m", "pipeline", "why")],
    "list": [("python", "-m", "pipeline", "list")],
}
# Seconds that each may take with ten studies.
LIMITS = {"dvc status": 15, "snakemake -n": 8, "make reproduce": 15, "why": 5, "list": 5}


@dataclass
class Cost:
    """Seconds of each command in a workspace, and Snakemake's share of a core while it built that."""

    studies: int
    jobs: int
    seconds: dict[str, float]
    share: float


def workspace(path: Path, studies: int) -> Workspace:
    """Lay out the repository's code with ``studies`` copies of the toy study, thirty jobs each."""
    tree = lay_out(path)
    names = [f"toy{chr(ord('a') + i)}" for i in range(studies)]
    for name in names:
        for part in ("pipeline/studies", "schemas"):
            shutil.copytree(TOY / part / "toy", path / part / name)
            for file in (path / part / name).rglob("*.py"):
                text = re.sub(r"\b(studies|schemas)([./])toy\b", rf"\1\2{name}", file.read_text())
                file.write_text(text.replace('"toy-', f'"{name}-'))
        shutil.copytree(TOY / "params/toy", path / "params" / name)
        for file in (path / "params" / name).iterdir():
            file.write_text(file.read_text().replace("toy-", f"{name}-"))
        tree.change_study(partial(_fill, name=name), name)
    tree.change(lambda params: params.update(studies=names))
    done = tree.run(sys.executable, "-m", "pipeline", "params", "--write")
    assert done.status == 0, done.output
    tree.git("add", "-A")
    tree.git("commit", "-qm", "studies")
    return tree


def _fill(study: dict[str, Any], name: str) -> None:
    """Add to a study, a copy of the toy study, what makes it thirty jobs."""
    for section, count in COUNTS.items():
        entries = study[section]
        keys = [key for key in entries if key != SHARED]
        first = entries[keys[0]]
        if section == "runs":
            first["weights"] = 100
        for i in range(count - len(keys)):
            entries[f"{name}-{section}-{i}"] = dict(first)
    first = next(iter(study["experiments"].values()))
    runs = [key for key in study["runs"] if key != SHARED]
    for i in range(EXPERIMENTS - 2):
        study["experiments"][f"{name}-experiment-{i}"] = first | {
            "runs": runs[i + 2 : i + 4],
            "datasets": [f"{name}-numbers"],
            "figures": [],
            "module": "means",
        }


def cost(tree: Workspace, studies: int, repeats: int = 3) -> Cost:
    """Build ``tree`` once, then time the commands that find nothing to do."""
    share = _built(tree)
    jobs = tree.run(sys.executable, "-m", "pipeline", "check").output
    seconds = {}
    for name, commands in COMMANDS.items():
        times = []
        for _ in range(repeats):
            started = time.perf_counter()
            for command in commands:
                done = tree.run(*command)
                assert done.status == 0, done.output
            times.append(time.perf_counter() - started)
        seconds[name] = statistics.median(times)
    count = re.search(r"(\d+) jobs", jobs)
    return Cost(studies, int(count[1]) if count else 0, seconds, share)


def _built(tree: Workspace) -> float:
    """Build everything; return what share of a core Snakemake's own process used."""
    started = time.perf_counter()
    process = tree.start("snakemake", "--cores", "2", "--quiet")
    used = 0.0
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(process.pid).cpu_times()
            used = times.user + times.system
        time.sleep(0.2)
    output = process.communicate()[0]
    assert process.returncode == 0, output[-2000:]
    return used / (time.perf_counter() - started)


def measure(counts: tuple[int, ...] = (5, 10)) -> list[Cost]:
    """Return what the engines cost with each number of studies in ``counts``."""
    costs = []
    for studies in counts:
        print(f"engines: building {studies} copies of the toy study", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            costs.append(cost(workspace(Path(folder) / "tree", studies), studies))
    return costs


def table(costs: list[Cost]) -> str:
    """Return the measured seconds as a Markdown table, with the limits at ten studies."""
    head = "| | " + " | ".join(f"{cost.studies} studies, {cost.jobs} jobs" for cost in costs) + " | at most |"
    lines = [head, "|---|" + "---|" * (len(costs) + 1)]
    for name, limit in LIMITS.items():
        lines.append(f"| {name} | " + " | ".join(f"{cost.seconds[name]:.1f} s" for cost in costs) + f" | {limit} s |")
    shares = " | ".join(f"{cost.share:.0%}" for cost in costs)
    return "\n".join([*lines, f"| Snakemake's process while it builds, of a core | {shares} | |"])


if __name__ == "__main__":
    print(table(measure(tuple(map(int, sys.argv[1:])) or (5, 10))))
