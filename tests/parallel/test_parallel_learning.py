"""Masked Transformers under several sets of masks: what is exact of them, their data, and how they are trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from pydantic import ValidationError
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit.streams import stream
from pipeline.languages import ising
from pipeline.models.ising import transformer
from pipeline.store import tables
from pipeline.studies.parallel import datasets, runs, scheme_datasets, scheme_runs
from pipeline.studies.parallel.analysis import schemes as analysis
from pipeline.studies.parallel.exact import chains, modes, schemes
from pipeline.studies.parallel.names import SETS
from pipeline.studies.parallel.params import MaskedRun, SchemeDraws
from pipeline.training import core, ensemble, jobs
from schemas.parallel.datasets import SCHEMA, SCHEME_DRAWS
from schemas.parallel.tables import ALIGNED, ALL, MISALIGNED, PAIRS, SCHEMES, SINGLES

SEED = 20251127
BLOCKS = load_study("parallel").members("datasets")["parallel-schemes"].sets


def drawn(**changes: Any) -> SchemeDraws:
    """Samples of two laws."""
    entry = {"study": "parallel", "language": "ising", "kind": "schemes", "n": 200, "repetitions": 2}
    laws = {"J_in": [1.0], "J_out": 0.05, "sigma": [0.6], "draws": 1, "masks": BLOCKS}
    return SchemeDraws(**(entry | laws | changes))


def test_relaxation_is_that_of_block_dynamics() -> None:
    p = ising.law(schemes.two_pairs(1.0, 0.05), 4)
    for name in BLOCKS:
        times, slow = modes.relaxation(p, schemes.scheme(BLOCKS[name]))
        P = chains.block_dynamics(p, schemes.scheme(BLOCKS[name]))
        assert np.isclose(times[-1], 1 / chains.gap(P, p)) and len(times) == 15
        assert np.allclose([p @ slow, p @ slow**2], [0, 1]) and np.isclose(chains.dirichlet(P, p, slow), 1 / times[-1])
    assert np.allclose(modes.relaxation(p, schemes.scheme(BLOCKS[ALL]))[0], 1)
    # chapter, EXP-6, J_in = 1
    for name, expected in ((SINGLES, 20.08), (MISALIGNED, 9.83), (PAIRS, 4.87), (ALIGNED, 2.42)):
        assert modes.relaxation(p, schemes.scheme(BLOCKS[name]))[0][-1] == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("name", [SINGLES, MISALIGNED, ALL])
def test_a_model_that_says_what_is_true_has_the_true_law(name: str) -> None:
    p = ising.law(ising.random_parameters(stream(SEED, "x"), 4, 0.6), 4)
    states, of_mask, _ = scheme_runs.contexts(len(BLOCKS[name][0]))
    own = np.isin(ising.masks(4, len(BLOCKS[name][0])), schemes.masks(BLOCKS[name]))
    true = p[states] / p[states].sum(1, keepdims=True)
    P = modes.learned_chain(true[None], states, (own / own.sum())[of_mask])
    assert np.allclose(P[0], chains.block_dynamics(p, schemes.scheme(BLOCKS[name])), atol=1e-15)
    assert np.allclose(modes.stationary(P)[0], p, atol=1e-12)


@pytest.mark.parametrize("name", [SINGLES, MISALIGNED, PAIRS])
def test_the_sum_over_modes_is_what_tables_of_conditional_laws_err(name: str) -> None:
    """A table learns each conditional law as it is counted: 2 n times the divergence is the sum, of which one is C."""
    p, n, runs_ = ising.law(schemes.two_pairs(1.0, 0.05), 4), 40000, 400
    states, of_mask, _ = scheme_runs.contexts(len(BLOCKS[name][0]))
    every = np.array(ising.masks(4, len(BLOCKS[name][0])))
    own = np.isin(every, schemes.masks(BLOCKS[name]))
    rng = stream(SEED, "tables", name)
    counts = rng.multinomial(rng.multinomial(n, p, runs_), own / own.sum()).swapaxes(1, 2)
    seen = counts[:, of_mask[:, None], states] + np.where(own[of_mask], 0.0, 1.0)[None, :, None]  # masks of others
    models = seen / seen.sum(-1, keepdims=True)
    laws = modes.stationary(modes.learned_chain(models, states, (own / own.sum())[of_mask]))
    times, slow = modes.relaxation(p, schemes.scheme(BLOCKS[name]))
    assert 2 * n * chains.divergence(p, laws).mean() == pytest.approx(times.sum(), rel=0.12)
    assert n * (((laws - p) @ slow) ** 2).mean() == pytest.approx(times[-1], rel=0.25)


def test_samples_are_the_same_for_all_sets_of_masks() -> None:
    entry = drawn()
    frame, metadata = datasets.generate(entry, "x", SEED)
    assert metadata == {"kind": SCHEME_DRAWS}
    tables.validate(frame, SCHEMA[SCHEME_DRAWS], "made")
    predicted = frame.with_columns(k=pl.col("mask").bitwise_count_ones()).group_by("law", "scheme", "n", "repetition")
    sums = predicted.agg(pl.col("count").sum(), tokens=(pl.col("count") * pl.col("k")).sum())
    assert (sums["count"] == sums["n"]).all()
    assert {SINGLES, ALL} < set(sums.filter(tokens=400)["scheme"]) and len(sums) == 2 * 2 * 8
    wrong = frame.with_columns(pl.col("count") + 1)
    with pytest.raises(SandglassError, match="a sample has n states"):
        tables.validate(wrong, SCHEMA[SCHEME_DRAWS], "made")
    assert [n for _, n in scheme_datasets.arms(entry)] == [200] * 6 + [400, 100]


def test_rows_that_models_read_hide_what_is_masked() -> None:
    states, of_mask, rows = scheme_runs.contexts(2)
    assert rows.shape == (24, 4) and states.shape == (24, 4)
    assert ((rows == transformer.MASKED).sum(1) == 2).all()
    for row, fits, mask in zip(rows, states, of_mask, strict=True):
        shown = row != transformer.MASKED
        assert [i for i in range(4) if not shown[i]] == ising.positions(4, ising.masks(4, 2)[mask])
        assert ((ising.states(4)[fits][:, shown] > 0) == row[shown]).all()


def test_refusals() -> None:
    loaded = load_study("parallel")
    entry = loaded.members("runs")["parallel-masked-2"]
    frame = datasets.generate(drawn(), "x", SEED)[0]
    with pytest.raises(SandglassError, match=r"has 16 samples with masks of 2: expected one for each of the 3 repl"):
        runs.prepare(entry.model_copy(update={"replicas": 3}), frame, SEED)
    for masks, message in (
        ([[1, 2], [2, 3]], r"masks of 'aligned pairs', \[\[1, 2\], \[2, 3\]\], do not cover position 4"),
        ([[1, 2], [3]], "masks of 'aligned pairs' have several sizes, .*: expected one"),
        ([[1, 2], [3, 5]], r"masks of 'aligned pairs': \[3, 5\] has other than different positions from 1 to 4"),
    ):
        with pytest.raises(ValidationError, match=message):
            drawn(masks=BLOCKS | {ALIGNED: masks})
    with pytest.raises(ValueError, match="do not cover position 4 of 4"):
        schemes.scheme([[1, 2], [2, 3]])
    assert list(SETS) == SCHEMES
    with pytest.raises(ValidationError, match="masks lack 'all', which claims compare with others"):
        drawn(masks={name: blocks for name, blocks in BLOCKS.items() if name != ALL})
    for changes, message in (({"heads": 3}, "heads 3 do not divide"), ({"batch": 2}, "expected batch 1")):
        with pytest.raises(ValidationError, match=message):
            MaskedRun(**(entry.model_dump(exclude_none=True) | changes))


@pytest.mark.parametrize(
    "run", ["parallel-masked-1", "parallel-masked-2", "parallel-masked-4", "parallel-fits-modes-3"]
)
def test_paper_size_builds_and_takes_steps(tmp_path: Path, run: str) -> None:
    """The full-size models, a few of them."""
    loaded = load_study("parallel", "paper")
    entry = loaded.members("runs")[run]
    source = loaded.members("datasets")[entry.dataset]
    few = {"repetitions": 2, "draws": 1} if hasattr(source, "draws") else {"repetitions": 2}
    source = source.model_copy(update=few)
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    count = len(
        scheme_runs.samples(frame, entry.k) if hasattr(source, "draws") else datasets.samples(frame, entry.k)[0]
    )
    header, data, table = runs.prepare(entry.model_copy(update={"replicas": count, "steps": 2}), frame, loaded.seed)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    state = core.train_chunk(job, list(range(4)), torch.device("cpu"))
    assert (state.diverged_at == -1).all() and torch.isfinite(state.flat).all()
    if "masked" in run:
        starts = job.initial(list(range(count)))
        of_law = count // (len(source.J_in) + len(source.sigma))
        assert not torch.equal(starts[0], starts[of_law])  # another law
        assert torch.equal(starts[0], starts[1])  # the same law and repetition under other masks


def test_training_learns_a_law(tmp_path: Path) -> None:
    """A hundred steps bring the conditional laws near those of the sample."""
    loaded = load_study("parallel")
    entry = loaded.members("runs")["parallel-masked-2"]
    frame = datasets.generate(drawn(n=4000, repetitions=2), "x", SEED)[0].filter(law="pairs-1")
    entry = entry.model_copy(update={"replicas": 8, "steps": 100})
    ensemble.write_job(tmp_path / "job.safetensors", *runs.prepare(entry, frame, SEED))
    job = jobs.TrainingJob(tmp_path / "job.safetensors")
    state = core.train_chunk(job, list(range(8)), torch.device("cpu"))
    found = transformer.Ensemble(job.spec, job.unflatten(state.flat), torch.as_tensor(job.table), {})
    models = analysis.conditionals(found, found.params, 2)
    before = analysis.conditionals(found, job.unflatten(job.initial(list(range(8)))), 2)
    assert models.shape == (8, 24, 4) and np.allclose(models.sum(-1), 1)
    cells = [analysis._Exact(sample) for sample, _ in scheme_runs.samples(frame, 2)]
    rows = [cell.row(cell.sample, 2, *both) for cell, *both in zip(cells, models, before, strict=True)]
    assert all(row["kl"] < row["kl_untrained"] / 20 and row["kl_conditional"] < 0.02 for row in rows)
    with pytest.raises(SandglassError, match="cannot record"):
        transformer.forward(job.spec, found.params, found.table, torch.zeros(8, 1, dtype=torch.long), ["nothing"])
