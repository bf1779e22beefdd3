"""The same bytes from two clones, one core or two, and whatever surroundings; where not, how far apart."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from workspace import STUDIES, Workspace, lay_out

from pipeline import params
from pipeline.engine import graph
from pipeline.kit.inputs import Inputs
from pipeline.studies.dyck import datasets, runs
from pipeline.studies.dyck.analysis import attention
from pipeline.studies.dyck.measures import model
from pipeline.training import core, ensemble, jobs

REPOSITORY = Path(__file__).parents[2]

# One step of each kind; each was built on one thread (`smoke`).
STEPS = (
    ("dataset", "dyck-train-complete"),
    ("train", "dyck-minimal"),
    ("theory", "dyck-random-attention"),
    ("analyse", "dyck-attention"),
    ("figures", "dyck-attention"),
    ("claims", "dyck"),
    ("report", "all"),
)
YEARS = 4e7  # seconds
LATER = f"""
import datetime, time
now, local, universal, text = time.time, time.localtime, time.gmtime, time.strftime
time.time = lambda: now() + {YEARS}
time.time_ns = lambda: int(time.time() * 1e9)
time.localtime = lambda *seconds: local(*(seconds or [time.time()]))
time.gmtime = lambda *seconds: universal(*(seconds or [time.time()]))
time.strftime = lambda form, *t: text(form, *(t or [time.localtime()]))
class Later(datetime.datetime):
    now = classmethod(lambda cls, tz=None: cls.fromtimestamp(time.time(), tz))
    today = classmethod(lambda cls: cls.fromtimestamp(time.time()))
    utcnow = classmethod(lambda cls: cls.now(datetime.timezone.utc).replace(tzinfo=None))
datetime.datetime = Later
"""


def test_a_fresh_clone_built_on_one_core_leaves_the_recorded_results_as_they_are(
    template: Path, tmp_path: Path
) -> None:
    """dvc.lock holds the md5 of every file that a build on all cores has made elsewhere."""
    original = Workspace(template)
    original.git("clone", "-q", str(template), str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    assert not clone.artifacts()
    assert clone.snakemake("--cores", "1").status == 0
    assert clone.artifacts() == original.artifacts()
    assert clone.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_every_step_gives_the_same_bytes_in_other_surroundings(dyck: Workspace, tmp_path: Path) -> None:
    """Other folder, threads, hash seed, locale, time zone, year."""
    before = dyck.artifacts()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(LATER)
    loaded = params.load(dyck.path)
    jobs = {(job.step, job.id): job for job in graph.jobs(loaded)}
    for key in STEPS:
        for path in graph.outputs(jobs[key], loaded):
            (dyck.path / path).unlink()
        done = Workspace(dyck.path).run(  # started, not forked
            *jobs[key].command.split(),
            OMP_NUM_THREADS="2",
            POLARS_MAX_THREADS="1",
            PYTHONHASHSEED="1",
            TZ="Pacific/Kiritimati",
            LC_ALL="C",
            PYTHONPATH=str(tmp_path / "site"),
        )
        assert done.status == 0, done.output
        note = json.loads((dyck.path / f"logs/steps/{key[0]}-{key[1]}.json").read_text())
        assert note["finished"] > time.time() + YEARS / 2
    assert dyck.artifacts() == before


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_every_analysis_makes_the_same_tables_in_another_process(smoke: Workspace, tmp_path: Path, study: str) -> None:
    """Sets of words, and the arrays of a checkpoint, have another order there."""
    tree = tmp_path / "tree"
    workspace = lay_out(tree, [study])  # started, not forked: a fork would have the same order
    workspace.take(study, smoke)
    before, loaded = workspace.artifacts(), params.load(tree)
    jobs = [job for job in graph.jobs(loaded) if job.step == "analyse"]
    for path in (path for job in jobs for path in graph.outputs(job, loaded)):
        (tree / path).unlink()
    code = "import sys; from pipeline.__main__ import _step; [_step('analyse', key) for key in sys.argv[1:]]"
    done = workspace.run(sys.executable, "-c", code, *(job.id for job in jobs), PYTHONHASHSEED="1")
    assert done.status == 0, done.output
    after = workspace.artifacts()
    assert after.keys() == before.keys()
    for path in (path for path in before if before[path] != after[path]):
        # Sums of numpy's libraries have other last bits where an array begins at another address.
        ours, theirs = (pl.read_parquet(io.BytesIO(content[path])) for content in (before, after))
        assert_frame_equal(ours, theirs, check_exact=False, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("run", ["dyck-standard", "dyck-minimal-contrastive"])
def test_a_chunk_on_two_threads_is_that_on_one_to_rounding(tmp_path: Path, run: str) -> None:
    """Not bit for bit, so a worker takes one thread on a CPU, whatever it may have.

    The weights that differ most by far are key biases: the softmax cancels them, their gradient is nothing but
    rounding, and Adam takes its sign for a direction.
    """
    loaded = params.load(REPOSITORY, "smoke")
    entry = loaded.members("runs")[run].model_copy(update={"replicas": 2})
    source = loaded.members("datasets")[entry.dataset]
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    states, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            job = jobs.TrainingJob(tmp_path / "job.safetensors")
            states.append(core.train_chunk(job, [0, 1], torch.device("cpu")))
    finally:
        torch.set_num_threads(before)
    one, two = states
    assert one.step == two.step == 10
    torch.testing.assert_close(one.curves, two.curves, atol=1e-6, rtol=0)
    torch.testing.assert_close(one.flat, two.flat, atol=1e-4, rtol=0)
    for name, weights in job.unflatten(one.flat).items():
        other = job.unflatten(two.flat)[name]
        if name.endswith("b_QKV"):  # without its middle third, the key biases
            weights, other = (torch.stack(w.chunk(3, -1)[::2]) for w in (weights, other))
        torch.testing.assert_close(weights, other, atol=1e-6, rtol=0, msg=lambda m, name=name: f"{name}: {m}")


# Sums of float32 weights in another order; and hits, which ask whether one weight is larger than the others:
# to a first layer without positions equal tokens are one, so there rounding decides between equal weights.
# At scale quick that moves stack_argmax of dyck-minimal by up to 0.0014, and nothing else; at smoke, where 275 tokens
# are asked about, one of them is 0.0036.
ROUNDED = dict.fromkeys(("stack_mass", "stack_mass_uniform", "same_depth_mass", "kl_uniform"), 1e-7)
ROUNDED |= dict.fromkeys(("stack_argmax", "stack_argmax_closers", "stack_argmax_unseen"), 2.5 / 275)


@pytest.mark.study("dyck")
def test_the_batch_size_of_the_analysis_changes_only_what_is_said_here(
    smoke: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a constant of the code, an input like any other, so no build meets this; another machine might."""
    monkeypatch.chdir(smoke.path)
    loaded = params.load()
    entry, settings = loaded.experiments["dyck-attention"], loaded.studies["dyck"].analysis

    def analysed() -> dict[str, pl.DataFrame]:
        context = Inputs("dyck", "dyck-attention", entry, settings, loaded.scale, loaded.seed, "")
        frames = attention.analyse(context)
        return {name: stacked(frames[name]) for name in entry.tables}

    whole = analysed()
    monkeypatch.setattr(model, "MAX_NUMBERS", 2**17)
    parts = analysed()
    scores, others = whole.pop("stack_score"), parts.pop("stack_score")
    assert not scores.equals(others)  # the batches were others
    for column, tolerance in ROUNDED.items():
        np.testing.assert_allclose(scores[column], others[column], atol=tolerance, rtol=0)
    assert scores.drop(ROUNDED).equals(others.drop(ROUNDED))
    score = pl.col("measure").str.contains("stack score")
    means = [tables["comparisons"].filter(score) for tables in (whole, parts)]
    assert means[0].height
    assert means[0].drop("value", "lo", "hi").equals(means[1].drop("value", "lo", "hi"))
    for tables in (whole, parts):
        tables["comparisons"] = tables["comparisons"].filter(~score)
    assert [name for name, table in whole.items() if not table.equals(parts[name])] == []


def stacked(found: pl.DataFrame | list[pl.DataFrame]) -> pl.DataFrame:
    """A table as an analysis gives it: whole, or in parts."""
    return pl.concat(found, how="diagonal_relaxed") if isinstance(found, list) else found
