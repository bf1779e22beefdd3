"""What a kill costs: ``make kill``.

Each round starts an engine on a reduced study in a work tree of its own, sends SIGKILL to its whole process
group at a random moment, starts an engine again with nothing repaired in between, and compares what is then
there with a build that was left alone. `rounds.py` does it; benchmarks/KILL.md holds the last full result.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "engines")]

import workspace  # noqa: E402
from rounds import STARTS, Bench, Round, lay_out_reduced, other_rate, plans  # noqa: E402
from workspace import Workspace  # noqa: E402

RESULTS = HERE / "KILL.md"


def prepare(folder: Path) -> Bench:
    """Lay out the study, build it once uninterrupted, and once with another learning rate."""
    empty = lay_out_reduced(folder / "empty")
    reference = Workspace(Path(shutil.copytree(empty.path, folder / "reference", symlinks=True)))
    began = time.monotonic()
    reference.engine("snakemake")
    seconds = time.monotonic() - began
    changed = Workspace(Path(shutil.copytree(empty.path, folder / "changed", symlinks=True)))
    changed.change_study(other_rate, "dyck")
    changed.engine("dvc")
    changed.restore(
        {changed.path / file.relative_to(empty.path): text for file, text in empty.parameters("dyck").items()}
    )
    bench = Bench(folder, reference, {"empty": empty.path, "changed": changed.path})
    bench.durations["empty", "snakemake"] = seconds
    return bench


def summary(rounds: list[Round]) -> str:
    """Return one line that counts rounds, identical results and kills."""
    kills = [kill for trial in rounds for kill in trial.kills]
    mended = sum(trial.mended for trial in rounds)
    text = f"{len(rounds)} rounds, {sum(trial.identical for trial in rounds)} identical"
    text += f" ({len(kills)} kills, {sum(kill.resumable for kill in kills)} with half-trained models"
    return text + (f"; in {mended} DVC needed one `snakemake -n` to read its own files)" if mended else ")")


def render(rounds: list[Round], seed: int) -> str:
    """Return the result as Markdown: counts by what was at work and by engine, then every round."""
    places: Counter[str] = Counter()
    for trial in rounds:
        places.update(place for kill in trial.kills for place in kill.at.split(", "))
    lines = [
        "# Kills\n",
        "`make kill` writes this file.\n",
        f"**{summary(rounds)}**, seed {seed}, on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, torch {torch.__version__}.\n",
        "A round: an engine at work on a reduced Dyck study (one training set, two runs of four replicas), SIGKILL "
        "to its process group at a moment uniform over the time of a whole run, then an engine to the end, nothing "
        "repaired in between. Identical: every file under data/ has the bytes of an uninterrupted build, dvc.lock "
        "says the same, DVC's cache holds all it names, both engines have nothing to do, no process outlived the "
        "kill, no temporary file is left. Rounds start from two states: "
        + "; ".join(f"*{name}*, {text}" for name, text in STARTS.items())
        + ". SIGKILL is not a power cut: what the system had not yet written to disk is not lost.\n",
        "| at work when killed | kills |",
        "|---|---:|",
        *(f"| {place} | {count} |" for place, count in places.most_common()),
        "",
        "| round | start | killed | after | at work | half-trained | continued by | result |",
        "|---:|---|---|---|---|---|---|---|",
    ]
    for trial in rounds:
        plan, kills = trial.plan, trial.kills
        result = "; ".join(trial.complaints) or ("identical, mended" if trial.mended else "identical")
        cells = [str(plan.number), plan.start, ", ".join(plan.engines[: len(kills)])]
        cells += [" + ".join(f"{kill.seconds:.1f} s" for kill in kills), " + ".join(k.at for k in kills)]
        cells += [" + ".join("yes" if kill.resumable else "no" for kill in kills), plan.then, result]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(
    rounds: Annotated[int, typer.Option(min=1, help="how many; each takes about a minute on two cores")] = 50,
    seed: Annotated[int, typer.Option(help="of the moments")] = 1,
    keep: Annotated[bool, typer.Option(help="keep all work trees; those of failed rounds stay anyway")] = False,
    output: Annotated[Path, typer.Option(help="where the result goes when all rounds are done")] = RESULTS,
) -> None:
    """Kill a reduced pipeline at random moments and count how often the next run ends as if nothing had been.

    Ctrl-C stops and prints the counts so far. Exit status 1 if a round ended otherwise.
    """
    workspace.TIMEOUT = 7200.0  # a machine that does other work as well must not end a round
    folder = Path(tempfile.mkdtemp(prefix="sandglass-kill-"))
    done: list[Round] = []
    columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()]
    stopped = False
    console = Console(stderr=True, soft_wrap=True)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("uninterrupted builds", total=rounds)
        try:
            bench = prepare(folder)
            for plan in plans(rounds, seed):
                bar.update(task, description=f"{plan.engine} from {plan.start}, then {plan.then}")
                done.append(trial := bench.run(plan))
                result = "identical" if trial.identical else "; ".join(trial.complaints)
                at = " + ".join(f"{kill.seconds:.1f} s ({kill.at})" for kill in trial.kills)
                place = "" if trial.identical else f", kept in {folder / f'round-{plan.number}'}"
                console.print(f"{plan.number}: {plan.engine} killed at {at}, {plan.then}: {result}{place}")
                if trial.identical and not keep:
                    shutil.rmtree(folder / f"round-{plan.number}")
                bar.update(task, advance=1)
        except KeyboardInterrupt:
            stopped = True
    print(summary(done) + (", stopped before the end" if stopped else ""))
    if not stopped:
        output.write_text(render(done, seed), encoding="utf-8")
    if keep or not all(trial.identical for trial in done):
        print(f"work trees: {folder}")
    else:
        shutil.rmtree(folder)
    raise typer.Exit(int(stopped or not all(trial.identical for trial in done)))


if __name__ == "__main__":
    typer.run(main)
