"""The benchmarks build and run one repeat; what they measure is for `make bench`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "benchmarks" / "bench.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["bench"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("prefixes", "longest"), [(False, 26), (True, 28)])
def test_both_training_jobs_take_a_step(
    bench: ModuleType, tmp_path: Path, prefixes: bool, longest: int
) -> None:
    job = bench.job(tmp_path, prefixes)
    assert job.objective.data["lengths"].max() == longest
    assert job.header.batch == 100
    bench.our_step(job)(0)


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
