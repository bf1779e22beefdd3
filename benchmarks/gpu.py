"""Ten minutes of a GPU, study by study.

``python benchmarks/gpu.py pack dyck away``, there ``sh go.sh``, and back here ``python benchmarks/gpu.py take dyck
away``.

``pack`` makes the datasets that the study's runs below need, at the scale of params.yaml (`paper` for what is worth a
data-centre GPU), and exports each run with its trainer (`python -m pipeline train RUN --export`). ``go.sh`` runs on a
machine with torch, numpy and safetensors: it measures all models of a run beside one after the other, then trains
them, eight members at a time; stopped, it goes on. ``take`` brings the weights back as if they had been trained here,
and appends the speeds to benchmarks/GPU.md. Then a build of the study goes on with them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline import params
from pipeline.engine import build, portable

RESULTS = Path(__file__).parent / "GPU.md"
HEADER = """# All models at once beside one after the other, on GPUs

Written by `python benchmarks/gpu.py take`: seconds of a step of all models of a run together and of one of them, and
how many times as fast together is as one after the other.

| run | scale | models | together, ms | one, ms | times as fast | on |
| --- | --- | ---: | ---: | ---: | ---: | --- |
"""
# What decides statements of the source and fits into about ten minutes of an H100 or H200 at scale paper.
WORTH = {
    "dyck": ["dyck-standard", "dyck-minimal", "dyck-stack"],  # ensembles of 40
    "depth": ["depth-contextual", "depth-contextual-heads"],
    "nce": ["nce-digits-full", "nce-digits-diag"],
    "automata": ["automata-nonabelian"],
    "flipflop": ["flipflop-middles"],  # the chapter's size for one GPU: T = 512, 4 layers, width 128
    "distillation": ["distillation-bert", "distillation-gpt"],
    "topic": ["topic-encoders"],
    "parallel": ["parallel-ar", "parallel-padir"],
    "verifier": ["verifier-dyck"],
}

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)
Study = Annotated[str, typer.Argument(help=f"one of {', '.join(WORTH)}")]
Folder = Annotated[Path, typer.Argument(help="what is carried to the GPU and back")]


@app.command()
def pack(study: Study, folder: Folder) -> None:
    """Write the study's runs, their trainers and go.sh to a new folder."""
    runs, loaded = _runs(study), params.load()
    groups = loaded.of_study("runs", study)
    needed = dict.fromkeys(entry.dataset for run in runs for entry in groups[run].members.values() if entry.replicas)
    for dataset in dict.fromkeys(loaded.owner("datasets", member).id for member in needed):
        if status := build.one("dataset", dataset):
            raise typer.Exit(status)
    for run in runs:
        print(f"{run}: {len(portable.export(run, folder / run))} members at scale {loaded.scale}")
    lines = [
        f"(cd {run} && python {portable.TRAINER} --speed && python {portable.TRAINER} --at-once 8)" for run in runs
    ]
    (folder / "go.sh").write_text("\n".join(["set -e", *lines, ""]), encoding="utf-8")
    print(f"carry {folder} to the GPU, there: sh go.sh; and back: python benchmarks/gpu.py take {study} {folder}")


@app.command()
def take(study: Study, folder: Folder) -> None:
    """Take back what go.sh trained, and write down how fast it was."""
    scale, rows = params.load().scale, []
    for run in _runs(study):
        subprocess.run([sys.executable, "-m", "pipeline", "train", run, "--import", str(folder / run)], check=True)
        speed = json.loads((folder / run / "speed.json").read_text(encoding="utf-8"))
        for row in speed["seconds_per_step"]:
            together, alone, models = row["together"], row["alone"], row["models"]
            cells = (row["member"], scale, models, f"{together * 1e3:.2f}", f"{alone * 1e3:.2f}")
            on = f"{speed['processor']}, torch {speed['torch']}"
            rows.append(f"| {' | '.join(map(str, cells))} | {models * alone / together:.1f} | {on} |")
    before = RESULTS.read_text(encoding="utf-8") if RESULTS.is_file() else HEADER
    RESULTS.write_text(before + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"{len(rows)} members are trained; their speeds are in {RESULTS.name}")


def _runs(study: str) -> list[str]:
    if study not in WORTH:
        raise typer.BadParameter(f"{study} is none of {', '.join(WORTH)}")
    return WORTH[study]


if __name__ == "__main__":
    app()
