"""The benchmarks build and run one repeat; what they measure is for `make bench`."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.errors import SandglassError

ROOT = Path(__file__).parents[2]


def load(name: str, file: Path) -> ModuleType:
    """Import a file that lies in no package."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("bench", ROOT / "benchmarks" / "bench.py")


@pytest.mark.parametrize(("prefixes", "longest"), [(False, 26), (True, 28)])
def test_both_training_jobs_take_a_step(bench: ModuleType, tmp_path: Path, prefixes: bool, longest: int) -> None:
    job = bench.job(tmp_path, prefixes)
    assert job.objective.data["lengths"].max() == longest
    assert job.header.batch == 100
    bench.our_step(job)(0)


@pytest.mark.parametrize(("optimiser", "models"), [("sgd", 1), ("adam", 2)])
def test_the_trainer_and_the_plain_loop_take_steps_on_models_of_one_size(
    tmp_path: Path, optimiser: str, models: int
) -> None:
    loops = load("loops", ROOT / "benchmarks" / "loops.py")
    job = loops.job(tmp_path, 30, 10, 4, optimiser, models)
    assert sum(math.prod(shape) for shape in job.shapes.values()) == 10 * 30 + 30 + 30 * 2 + 2
    assert job.initial(list(range(models))).shape[0] == models and job.header.optimizer == optimiser
    loops.ours(job, models)(0)
    loops.plain(30, 10, 4, optimiser, models)(0)


def test_fresh_data_are_timed_beside_the_step_they_are_drawn_for(bench: ModuleType, tmp_path: Path) -> None:
    rows = bench.fresh(tmp_path, "smoke", blocks=1)
    assert len(rows) == len(bench.FRESH)
    assert all(0 <= float(row.ours.rstrip("%")) <= 100 and "share of a step" in row.what for row in rows)
    job = bench.fresh_job(tmp_path, "flipflop-base", "smoke")
    first, again, later = (job.batch([0], step)["tokens"] for step in (0, 0, 1))
    assert (first == again).all() and (first != later).any()


def test_the_plain_sampler_draws_from_the_language(bench: ModuleType) -> None:
    from pipeline.languages import dyck

    for tokens in (bench.plain_chain(28), bench.plain_chain(None)):
        rows = dyck.parse("".join(dyck.vocabulary(2)[token] for token in tokens))
        assert dyck.is_valid(rows, 2, 4).all()


def test_a_parent_is_pruned(bench: ModuleType) -> None:
    (row,) = bench.prune_parent(n=4, layers=1)
    assert row.what == "pruning 4 layers, n = 4, L = 1, s on one core (at most 10)"


def test_paths_in_a_batch_are_the_paths_of_the_plain_loop(bench: ModuleType) -> None:
    """Both functions compare what they time before they time it."""
    for row in (*bench.sampled(), *bench.population()):
        assert row.what.endswith("paths x steps/s") and row.ratio > 0


def test_samplers_and_hitting_times_are_those_of_plain_loops(bench: ModuleType) -> None:
    """The function compares what it times before it times it."""
    steps, times = bench.block_dynamics()
    assert steps.what.endswith("steps/s") and times.what.endswith("values/s") and steps.ratio > 0 < times.ratio


def test_perturbed_weights_differ_in_their_last_bits(tmp_path: Path, bench: ModuleType) -> None:
    rounding = load("rounding", ROOT / "benchmarks" / "rounding.py")
    file = tmp_path / rounding.JOBS
    file.parent.mkdir(parents=True)
    file.write_text((ROOT / rounding.JOBS).read_text())
    for _ in range(2):  # a clone that is continued is perturbed once
        rounding.perturb(tmp_path)
    job = bench.job(tmp_path, False)
    perturbed = load("perturbed_core", file).TrainingJob(job.path)
    plain, other = job.initial([0, 1]), perturbed.initial([0, 1])
    share = ((plain - other).abs() / plain.abs().clamp(min=1e-9)).flatten()
    assert 0 < share.mean() < 2e-7 and share.max() < 1e-6
    file.write_text("nothing that it knows")
    with pytest.raises(SandglassError, match="are not made as"):
        rounding.perturb(tmp_path)
