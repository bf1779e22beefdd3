"""Models that copy, and models without a head: lifts, ablations and importances against one query after another."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from dyck_experiments import analyse, compared

from pipeline.errors import SandglassError
from pipeline.kit import intervals
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer
from pipeline.store import tables
from pipeline.studies.dyck import comparisons, datasets, inputs
from pipeline.studies.dyck.analysis import copying
from pipeline.studies.dyck.analysis import heads as importance
from pipeline.studies.dyck.names import COPY_DEEP, COPY_STRIPPED, HEADS
from pipeline.studies.dyck.params import Complete, Nested, Prefix
from schemas.dyck.tables import SCHEMAS

REPLICAS = 3
COMMON: dict[str, Any] = {"study": "dyck", "language": "dyck", "grammars": [{"k": 2, "depth": 4}], "q": 0.5}
STRINGS = COMMON | {"sampler": "prefix", "min_length": 8, "max_length": 9, "sequences": 12, "corpora": 1}
COMPLETE = COMMON | {"sampler": "complete", "p_stop": 0.5, "max_length": 26, "sequences": 40, "corpora": 1}
ENTRIES = {
    "copy": Prefix(**STRINGS, split="copy"),
    "dev-copy": Prefix(**STRINGS, split="dev_copy"),
    "train": Complete(**COMPLETE, split="train_complete"),
    "dev": Complete(**COMPLETE, split="dev_complete"),
    "probe": Nested(study="dyck", language="dyck", grammars=COMMON["grammars"], split="probe16", sampler="nested"),
}
COPY: dict[str, Any] = {
    "dataset": "copy",
    "k": 2,
    "depth": 4,
    "block": "gpt",
    "layers": 2,
    "heads": 2,
    "width": 12,
    "ffn": 10,
    "attention": "learned",
    "embedding": "token",
    "position": "none",
    "t_max": 28,
    "replicas": REPLICAS,
    "objective": "next_token",
    "lr": 0.003,
    "betas": [0.9, 0.999],
    "eps": 1e-8,
    "batch": 8,
    "steps": 10,
    "loss_positions": "all",
    "contrastive": 0.0,
    "corpus": "shared",
    "stream": "a",
}
RUNS = {
    COPY_DEEP: COPY,
    COPY_STRIPPED: COPY | {"block": "stripped", "layers": 1, "ffn": 0, "heads": 1},
    HEADS: COPY | {"dataset": "train", "loss_positions": "closing"},
}
Tables = dict[str, pl.DataFrame]


@cache
def ensemble(run: str) -> transformer.Ensemble:
    """Random weights, thirty times those of an initialisation, so that attention is far from uniform."""
    entry = RUNS[run]
    table = torch.from_numpy(dyck.embedding_table("token", 2, 4, entry["width"]))
    named = ("block", "layers", "heads", "width", "ffn", "attention", "position", "t_max")
    outputs = 5 if entry["dataset"] == "copy" else 4
    spec = transformer.Spec(**{name: entry[name] for name in named}, inputs=5, outputs=outputs)
    models = [transformer.initial(spec, stream(0, run, replica)) for replica in range(REPLICAS)]
    params = {name: torch.from_numpy(np.stack([m[name] for m in models])).float() * 30 for name in models[0]}
    return transformer.Ensemble(spec, params, table, {})


def context(
    runs: tuple[str, ...] = tuple(RUNS),
    without: str = "",
    diverged: dict[str, int] | None = None,
    min_accuracy: float = 0.0,
) -> Any:
    settings = SimpleNamespace(min_accuracy=min_accuracy, confidence=0.95, stored_maps=1)
    listed = [key for key in ENTRIES if key != without]
    return SimpleNamespace(
        study="dyck",
        scale="smoke",
        seed=1,
        params_hash="0" * 32,
        settings=settings,
        datasets=lambda: listed,
        runs=lambda: list(runs),
        dataset=lambda key: datasets.generate(ENTRIES[key], key, 1)[0],
        model=ensemble,
        run_header=lambda run: {"entry": RUNS[run], "diverged": diverged or {}},
        curves=lambda run: pl.DataFrame({"run": run, "replica": [0], "step": [5], "loss": [1.0]}),
    )


def made_of(some: Any) -> Tables:
    return analyse(some, heads={"finetune_dataset": "train", "finetune_steps": 3, "finetune_rate": 0.5})


@pytest.fixture(scope="module")
def made() -> Tables:
    frames = made_of(context())
    for name, frame in frames.items():
        tables.validate(frame, SCHEMAS[name], name)
    return frames


def strings() -> list[list[int]]:
    return [[0, *row] for row in context().dataset("dev-copy")["tokens"].to_list()]


def run_one(
    run: str, ids: list[int], changed: dict[str, torch.Tensor] | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits (R, T, O) and patterns (R, H, T, T) of every layer, of one string."""
    model = ensemble(run)
    names = [f"blocks.{layer}.attn.pattern" for layer in range(model.spec.layers)]
    logits, recorded = transformer.forward(
        model.spec, model.params | (changed or {}), model.table, torch.tensor([[ids]]), record=names
    )
    return logits[:, 0].numpy(), [recorded[name][:, 0].double().numpy() for name in names]


def test_a_run_that_copies_has_no_row_about_next_tokens(made: Tables) -> None:
    assert set(made["runs"].filter(arch="copy")["run"]) == {COPY_DEEP, COPY_STRIPPED}
    for name in ("accuracy", "stack_score", "variation"):
        assert set(made[name]["run"]) == {HEADS}, name
    assert inputs.labels(COPY, ensemble(COPY_DEEP).spec.outputs) == ["start", "[", "]", "(", ")"]


@pytest.mark.parametrize("run", [COPY_DEEP, COPY_STRIPPED])
def test_lifts_are_those_of_one_query_after_another(made: Tables, run: str) -> None:
    spec, names = ensemble(run).spec, dyck.vocabulary(2)
    patterns = [(ids, run_one(run, ids)[1]) for ids in strings()]
    rows = made["class_lift"].filter(run=run)
    assert set(rows["replica"]) == set(range(REPLICAS))
    for row in rows.filter(replica=1, head=spec.heads - 1).iter_rows(named=True):
        mass, uniform = [], []
        for ids, maps in patterns:
            for i, token in enumerate(ids):
                if row["query_class"] not in ("all", names[token]):
                    continue
                positions = {"current position": [i], "same token": [j for j in range(i + 1) if ids[j] == token]}
                keys = positions.get(row["key_class"], [j for j in range(i + 1) if names[ids[j]] == row["key_class"]])
                mass.append(sum(maps[row["layer"] - 1][1, row["head"], i, j] for j in keys))
                uniform.append(len(keys) / (i + 1))
        assert row["n_queries"] == len(mass)
        assert row["mass"] == pytest.approx(np.mean(mass), abs=1e-6)
        assert row["mass_uniform"] == pytest.approx(np.mean(uniform), abs=1e-6)
        assert row["lift"] == pytest.approx(np.mean(mass) / np.mean(uniform), rel=1e-5)
    pairs = set(rows.select("query_class", "key_class").iter_rows())
    assert {(query, "start") for query in ["all", *names]} <= pairs
    assert ("start", "[") not in pairs and ("start", "start") in pairs  # the start token sees only itself


def test_uniform_attention_has_no_lift() -> None:
    tokens = torch.tensor(strings()[:1])
    uniform = copying.MODES["uniform"](tokens.shape[1]).expand(2, 1, 3, -1, -1)
    masses = copying.class_mass(uniform, tokens, k=2)
    assert masses.mass.shape == (2, 3, 6, 7) and masses.n_queries.tolist()[0] == tokens.numel()
    torch.testing.assert_close(masses.mass, masses.uniform.expand(2, 3, 6, 7))
    twice = masses.add(masses)
    assert twice.n_queries.equal(2 * masses.n_queries) and twice.uniform.equal(2 * masses.uniform)


def replaced_by_weights(spec: transformer.Spec, params: dict[str, torch.Tensor], layer: int, head: int, mode: str):  # type: ignore[no-untyped-def]
    """The same model without a hook: queries of the head times 0 give uniform attention, values times 0 none."""
    size = spec.width // spec.heads
    part = {"uniform": 0, "zero": 2}[mode]
    cut = slice(part * spec.width + head * size, part * spec.width + (head + 1) * size)
    changed = {name: params[f"blocks.{layer}.attn.{name}"].clone() for name in ("W_QKV", "b_QKV")}
    for value in changed.values():
        value[..., cut] = 0
    return {f"blocks.{layer}.attn.{name}": value for name, value in changed.items()}


@pytest.mark.parametrize("mode", ["uniform", "zero"])
def test_an_ablated_head_is_one_with_such_weights(made: Tables, mode: str) -> None:
    model, total = ensemble(COPY_DEEP), sum(map(len, strings()))
    different = 0
    for layer in range(2):
        for head in range(2):
            changed = replaced_by_weights(model.spec, model.params, layer, head, mode)
            hits: np.ndarray = np.zeros((2, REPLICAS), int)
            for ids in strings():
                for which, params in enumerate(({}, changed)):
                    hits[which] += (run_one(COPY_DEEP, ids, params)[0].argmax(-1) == np.array(ids)).sum(-1)
            rows = made["ablation"].filter(run=COPY_DEEP, layer=layer + 1, head=head, mode=mode).sort("replica")
            assert rows["acc_before"].to_list() == pytest.approx(hits[0] / total)
            assert rows["acc_after"].to_list() == pytest.approx(hits[1] / total)
            assert set(rows["n_positions"]) == {total}
            different += (hits[0] != hits[1]).sum()
    assert different


def test_what_misleads_is_read_off_the_lifts_and_the_accuracy(made: Tables) -> None:
    all_queries = made["class_lift"].filter(pl.col("key_class").is_in(list("[]()")), query_class="all")
    seen = set()
    for row in made["ablation"].iter_rows(named=True):
        where = {name: row[name] for name in ("run", "replica", "layer", "head")}
        lifts = all_queries.filter(**where)["lift"].to_numpy()
        assert len(lifts) == 4
        read = bool(((lifts <= 0.25) | (lifts >= 2)).any())
        assert row["interpretable"] == read
        assert row["misleading"] == (read and abs(row["acc_after"] - row["acc_before"]) < 0.01)
        seen.add((read, row["misleading"]))
    assert len(seen) > 1


def test_maps_and_median_accuracy_are_those_of_the_models(made: Tables) -> None:
    ids = [0, *dyck.nested_probe(2, 4)[0].tolist()]
    rows = made["copy_maps"].filter(run=COPY_DEEP, replica=2, layer=2, head=1)
    dense = np.zeros((17, 17))
    dense[rows["query"], rows["key"]] = rows["weight"]
    np.testing.assert_allclose(dense, run_one(COPY_DEEP, ids)[1][1][2, 1], atol=1e-6)
    assert "".join(rows.filter(query=16).sort("key")["key_token"]) == "start[[[[]]]](((())))"
    median = compared(made, comparisons.COPIED[COPY_DEEP])
    before = made["ablation"].filter(run=COPY_DEEP, layer=1, head=0, mode="zero")["acc_before"]
    assert (median["value"], median["n"]) == (before.median(), REPLICAS)
    maps = made["ablation"].filter(run=COPY_DEEP, mode="uniform").group_by("replica").agg(pl.col("misleading").any())
    share = compared(made, comparisons.MISLEADING[COPY_DEEP])
    assert (share["value"], share["n"]) == (maps["misleading"].mean(), REPLICAS)


def test_maps_of_models_that_do_not_copy_mislead_nobody() -> None:
    """What a map says of a model that cannot copy is no evidence; its accuracy is."""
    frames = made_of(context((COPY_DEEP,), min_accuracy=1.1))
    assert compared(frames, comparisons.MISLEADING[COPY_DEEP])["n"] == 0
    assert compared(frames, comparisons.MISLEADING[COPY_DEEP])["excluded_reason"] == (
        f"{COPY_DEEP}: {REPLICAS} with accuracy of copying below 1.1"
    )
    assert compared(frames, comparisons.COPIED[COPY_DEEP])["n"] == REPLICAS


def test_diverged_replicas_and_missing_strings_leave_no_rows() -> None:
    some = made_of(context((COPY_DEEP,), diverged={"1": 3}))
    for name in ("class_lift", "ablation", "copy_maps"):
        assert set(some[name]["replica"]) == {0, 2}, name
    assert compared(some, comparisons.COPIED[COPY_DEEP])["n_excluded"] == 1
    with pytest.raises(SandglassError, match="was not measured"):
        made_of(context((COPY_DEEP,), without="dev-copy"))
    no_probe = made_of(context((COPY_DEEP,), without="probe"))
    assert no_probe["copy_maps"].is_empty() and no_probe["ablation"].height


# Without a head


def test_a_zeroed_head_is_one_without_values() -> None:
    model, ids = ensemble(HEADS), torch.tensor([[[0, 1, 3, 4, 2, 1]]])
    heads = importance.without_each_head(model, np.array([0, 2]))
    logits = heads.logits(ids).view(2, 5, 6, 4)
    for which, (layer, head) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        params = model.params | replaced_by_weights(model.spec, model.params, layer, head, "zero")
        expected, _ = transformer.forward(model.spec, params, model.table, ids)
        torch.testing.assert_close(logits[:, which], expected[[0, 2], 0], atol=1e-5, rtol=1e-4)
    whole, _ = transformer.forward(model.spec, model.params, model.table, ids)
    torch.testing.assert_close(logits[:, 4], whole[[0, 2], 0], atol=1e-5, rtol=1e-4)


def test_further_training_keeps_the_head_away_and_models_apart() -> None:
    """The zeroed head's values get no gradient; a model is trained alike whatever stands beside it."""
    heads = importance.without_each_head(ensemble(HEADS), np.arange(2))
    double = {name: value.double() for name, value in heads.params.items()}  # Adam divides rounding by rounding
    heads = dataclasses.replace(heads, params=double, table=heads.table.double(), present=heads.present.double())
    frame = context().dataset("train")

    def trained(some: importance.Heads) -> importance.Heads:
        return importance.finetuned(some, RUNS[HEADS], frame, 3, 0.01, np.random.default_rng(1))

    tuned_heads = trained(heads)
    first = tuned_heads.params["blocks.0.attn.W_QKV"] - heads.params["blocks.0.attn.W_QKV"]
    values = first.view(2, 5, 12, 3, 2, 6)[..., 2, :, :]  # (replica, zeroed head, input, head, width)
    assert values[:, 0, :, 0].abs().max() == 0 and values[:, 1, :, 1].abs().max() == 0
    assert values[:, 0, :, 1].abs().max() > 0.001 and values[:, 4].abs().max() > 0.001
    alone = dataclasses.replace(
        heads, params={name: value[3:4] for name, value in heads.params.items()}, present=heads.present[3:4]
    )
    for name, value in trained(alone).params.items():
        torch.testing.assert_close(value[0], tuned_heads.params[name][3], atol=1e-6, rtol=0)


def test_importance_is_the_accuracy_that_is_lost(made: Tables) -> None:
    table, accuracy = made["head_importance"], made["accuracy"].filter(eval_split="dev_complete")
    assert table.height == REPLICAS * 2 * 2
    joined = table.join(accuracy, on="replica")
    assert joined["acc_before"].to_list() == pytest.approx(joined["acc_close"].to_list(), abs=0.02)
    scores = table.join(made["stack_score"], on=["replica", "layer", "head"])
    assert scores.height == table.height and (scores["stack_argmax"] == scores["stack_argmax_right"]).all()
    fixed, adapted = (table["acc_before"] - table["acc_fixed"]), (table["acc_control"] - table["acc_adapted"])
    assert table["importance_fixed"].equals(fixed) and table["importance_adapt"].equals(adapted)
    assert fixed.abs().max() > 0  # type: ignore[operator]
    for name, comparison in comparisons.HEAD_RANK.items():
        of_models = [
            intervals.spearman(*(heads[column].to_numpy() for column in (name, "stack_argmax")))
            for _, heads in table.group_by("replica")
        ]
        assert (compared(made, comparison)["value"], compared(made, comparison)["n"]) == (
            pytest.approx(np.mean(of_models)),
            REPLICAS,
        )
