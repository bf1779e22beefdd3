"""A trained model as the target of pruning: the same function, and tables that say what was found."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer import theory as theory_transformer
from pipeline.store import tables
from pipeline.studies.dyck import datasets
from pipeline.studies.dyck.analysis import pruning as demonstration
from pipeline.studies.dyck.exact import pruning
from pipeline.studies.dyck.names import PARENT, PRUNED, PRUNING_TARGET, TARGET
from pipeline.studies.dyck.params import Complete, Nested
from schemas.dyck.tables import SCHEMAS

COMMON = {"study": "dyck", "language": "dyck", "grammars": [{"k": 2, "depth": 4}]}
CHAIN = {"sampler": "complete", "q": 0.5, "p_stop": 0.5, "max_length": 26, "sequences": 20, "corpora": 1}
ENTRIES = {
    "dev": Complete(**COMMON, **CHAIN, split="dev_complete"),
    "probe": Nested(**COMMON, split="probe16", sampler="nested"),
}
DATASETS = {key: datasets.generate(entry, key, 1)[0] for key, entry in ENTRIES.items()}
SIZES = {PARENT: 8, PRUNED: 8, TARGET: 2}  # layers


@cache
def ensemble() -> theory_transformer.Ensemble:
    """Two replicas with random weights and biases."""
    table = torch.from_numpy(dyck.embedding_table("token", 2, 4, 6))
    spec = theory_transformer.Spec("eq6", 2, 1, 6, 8, "learned", "none", 1, inputs=len(table), outputs=4)
    models = [theory_transformer.initial(spec, stream(0, "r", replica)) for replica in range(2)]
    params = {name: torch.from_numpy(np.stack([model[name] for model in models])).float() for name in models[0]}
    rng = np.random.default_rng(0)
    for name, value in params.items():
        if name.endswith(".b"):
            value += torch.from_numpy(rng.normal(0, 0.3, value.shape)).float()
    return theory_transformer.Ensemble(spec, params, table, {})


def context(runs: tuple[str, ...] = (PRUNING_TARGET,), candidates: tuple[int, ...] = (6, 12)) -> Any:
    entry = {"k": 2, "depth": 4, "model": "transformer/theory"}
    return SimpleNamespace(
        seed=1,
        entry=SimpleNamespace(candidates=list(candidates), strings=12),
        runs=lambda: list(runs),
        model=lambda run: ensemble(),
        run_header=lambda run: {"entry": entry},
    )


@pytest.fixture(scope="module")
def found() -> dict[str, pl.DataFrame]:
    frames = demonstration.demonstration(context(), DATASETS)
    complete = {
        name: tables.conform(parts, SCHEMAS[name], scale="smoke", params_hash="0" * 32)
        for name, parts in frames.items()
    }
    for name, frame in complete.items():
        tables.validate(frame, SCHEMAS[name], name)
    return complete


def test_the_target_without_biases_is_the_trained_model() -> None:
    target, trained = demonstration.as_target(ensemble()), ensemble()
    ids = np.random.default_rng(1).integers(0, 5, (9, 12))
    output, patterns = pruning.run(target.layers, target.table[ids].transpose(2, 0, 1), target.floor)
    params = {name: value.double() for name, value in trained.params.items()}
    names = [f"blocks.{layer}.attn.pattern" for layer in (0, 1)]
    logits, recorded = theory_transformer.forward(
        trained.spec, params, trained.table.double(), torch.from_numpy(ids)[None], record=names
    )
    assert np.abs(np.einsum("mbn,mo->bno", output, target.head) - logits[0].numpy()).max() < 1e-10
    assert np.abs(output[-1] - 1).max() < 1e-12  # what carries the biases stays 1
    for name, pattern in zip(names, patterns, strict=True):
        assert np.abs(recorded[name][0, :, 0].numpy() - pattern.transpose(0, 2, 1)).max() < 1e-12


def test_the_pruned_parent_does_what_the_target_does(found: dict[str, pl.DataFrame]) -> None:
    demo = found["pruning_demo"]
    assert demo.select("network", "candidates").rows() == [
        (TARGET, None),
        (PARENT, 6),
        (PRUNED, 6),
        (PARENT, 12),
        (PRUNED, 12),
    ]
    assert dict(demo.select("network", "n_layers").unique().iter_rows()) == SIZES
    assert set(demo["n_sequences"]) == {12} and set(demo["illegal"]) == {0}
    target, coarse, fine = (
        demo.filter(pl.col("network") == name, pl.col("candidates").eq_missing(n)).row(0, named=True)
        for name, n in ((TARGET, None), (PRUNED, 6), (PRUNED, 12))
    )
    assert (target["logit_error"], target["map_distance"], target["weight_error"]) == (0, 0, None)
    assert fine["logit_error"] < coarse["logit_error"] / 4
    assert fine["map_distance"] < 1e-3 and fine["acc_close"] == pytest.approx(target["acc_close"], abs=0.05)
    assert 0 < fine["kept"] < fine["weights"] / 100 and 0 < fine["weight_error"] < 0.05
    parent = demo.filter(network=PARENT, candidates=12).row(0, named=True)
    assert parent["kept"] == parent["weights"] and parent["map_distance"] > 1 > target["map_distance"]


def test_maps_are_those_of_the_layers_that_host_the_target(found: dict[str, pl.DataFrame]) -> None:
    maps = found["pruning_maps"]
    assert maps.height == 3 * 2 * 16 * 17 // 2
    assert set(maps.select("network", "candidates", "layer", "network_layer").unique().iter_rows()) == {
        (TARGET, None, 1, 1),
        (TARGET, None, 2, 2),
        (PARENT, 12, 1, 2),
        (PARENT, 12, 2, 4),
        (PRUNED, 12, 1, 2),
        (PRUNED, 12, 2, 4),
    }
    wide = maps.pivot("network", index=["layer", "query", "key"], values="weight")
    distance = ((wide[PRUNED] - wide[TARGET]) ** 2).sum() / 2
    demo = found["pruning_demo"].filter(network=PRUNED, candidates=12)
    assert demo["map_distance"][0] == pytest.approx(distance)


def test_without_the_trained_target_there_are_no_rows() -> None:
    assert demonstration.demonstration(context(runs=("other",)), DATASETS) == {}
    assert demonstration.demonstration(context(), {"dev": DATASETS["dev"]}) == {}
