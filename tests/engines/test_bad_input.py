"""Damage, wrong parameters and interruptions: one clear line, nothing half-written, and the next run continues."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace import Done, Workspace

RUN_PARAMS = "params/dyck/runs.yaml"
MODEL = "data/runs/dyck/dyck-minimal/dyck-minimal.safetensors"
DATASET = "data/datasets/dyck/dyck-train-complete/dyck-train-complete.parquet"


def one_line(done: Done, *parts: str) -> None:
    """The step ended with a single line that says what is wrong."""
    assert done.status == 1
    assert "Traceback" not in done.output
    lines = [line for line in done.output.splitlines() if line.startswith("sandglass: ")]
    assert len(lines) == 1, done.output
    for part in parts:
        assert part in lines[0], done.output


def step(workspace: Workspace, *arguments: str) -> Done:
    return workspace.run("python", "-m", "pipeline", *arguments)


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_a_damaged_dataset_stops_training_and_is_rebuilt(dyck: Workspace) -> None:
    before = dyck.artifacts()
    flip(dyck.path / DATASET, 5000)
    one_line(step(dyck, "train", "dyck-minimal"), DATASET, "truncated or damaged", "checksum")
    done = dyck.snakemake(DATASET)  # what is below it is as it was, so it need not be made again
    assert done.ran == {"dataset dyck-train-complete"}, done.output
    assert dyck.artifacts() == before
    dyck.assert_clean()


def test_a_truncated_table_stops_the_figures_and_is_rebuilt(dyck: Workspace) -> None:
    before = dyck.artifacts()
    table = dyck.path / "data/tables/dyck/dyck-attention/variation.parquet"
    table.write_bytes(table.read_bytes()[:300])
    one_line(step(dyck, "figures", "dyck-attention"), "variation.parquet", "truncated or damaged")
    assert dyck.artifacts().keys() == before.keys()
    done = dyck.repro("analyse-dyck-attention")
    assert done.status == 0, done.output
    assert dyck.artifacts() == before


@pytest.mark.slow
def test_a_missing_checkpoint_says_how_to_make_it(dyck: Workspace) -> None:
    """An analysis of the models that are left would be another one."""
    (dyck.path / MODEL).unlink()
    one_line(step(dyck, "analyse", "dyck-attention"), f"{MODEL} is missing; make it with: snakemake {MODEL}")
    assert dyck.snakemake(MODEL).status == 0
    dyck.assert_clean()


@pytest.mark.parametrize(
    "command", [("python", "-m", "pipeline", "train", "dyck-minimal"), ("snakemake",), ("dvc", "repro")]
)
def test_wrong_parameters_stop_every_command_before_it_writes(dyck: Workspace, command: tuple[str, ...]) -> None:
    dyck.change_study(lambda params: params["runs"]["dyck-minimal"].update(heads=3), "dyck")
    before = dyck.artifacts()
    done = dyck.run(*command)
    assert done.status != 0
    assert "Traceback" not in done.output
    place = f"{RUN_PARAMS}: dyck-minimal.variants.dyck-minimal"
    assert f"sandglass: {place}: width 50 must be a multiple of heads 3" in done.output
    lost = before.keys() - dyck.artifacts().keys()
    # `dvc repro` deletes the outputs of a stage before it starts it; they are in its cache.
    assert lost <= (
        {p for p in before if p.startswith(("runs/dyck/dyck-minimal/", "runs/dyck/dyck-minimal.json"))}
        if "dvc" in command
        else set()
    )
    assert not [path for path in (dyck.path / "data").rglob("*.tmp") if path.is_file()]


def test_every_replica_diverging_is_one_line_and_leaves_no_output(dyck: Workspace) -> None:
    dyck.change_study(lambda params: params["runs"]["dyck-minimal"].update(lr=1e30), "dyck")
    before = dyck.artifacts()
    one_line(step(dyck, "train", "dyck-minimal"), "every replica diverged (replica 0 at step")
    assert dyck.artifacts() == before


TWO = "dyck-balance"  # a run of two variants, of two replicas each
TWO_MODELS = [
    f"data/runs/dyck/{TWO}/{member}.safetensors" for member in ("dyck-minimal-own-corpus", "dyck-minimal-contrastive")
]


def long_run(dyck: Workspace) -> None:
    dyck.change_study(lambda params: params["runs"][TWO].update(steps=120, log_every=1), "dyck")


def wait_for(path: Path, pattern: str) -> None:
    deadline = time.monotonic() + 60
    while not list(path.glob(pattern)):
        assert time.monotonic() < deadline, f"no {pattern} in {path}"
        time.sleep(0.02)


@pytest.mark.started
def test_an_interrupted_training_leaves_nothing_half_written_and_continues(
    dyck: Workspace, calmed: Callable[[Workspace], Workspace]
) -> None:
    long_run(dyck)
    before, resumed = dyck.artifacts(), []
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        interrupt(dyck, sent)
        assert {p for p in dyck.artifacts() if not p.startswith(".tmp")} == before.keys()
        done = step(calmed(dyck), "train", TWO)
        assert done.status == 0, done.output
        resumed.append(models(dyck))
        assert not (dyck.path / ".work/dyck" / TWO).exists()
        assert not list((dyck.path / "data/.tmp").iterdir())
    assert step(calmed(dyck), "train", TWO).status == 0
    assert resumed == [models(dyck)] * 3


def models(dyck: Workspace) -> list[bytes]:
    return [(dyck.path / path).read_bytes() for path in TWO_MODELS]


def interrupt(dyck: Workspace, sent: signal.Signals) -> None:
    process = dyck.start("python", "-m", "pipeline", "train", TWO, OMP_NUM_THREADS="1")
    # One replica of four is done, another at work.
    wait_for(dyck.path / ".work/dyck" / TWO, "*/chunks/0.safetensors")
    os.kill(process.pid, sent)
    output, _ = process.communicate(timeout=30)
    if sent == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130
        assert f"sandglass: train {TWO}: interrupted; run the same command again to continue" in output
        assert "Traceback" not in output
