"""The analysis of the Dyck study on small ensembles with made-up weights: tables valid, numbers as defined."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from dyck_experiments import analyse, compared
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit import intervals, stats
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer import decoder as transformer
from pipeline.models.transformer import theory as theory_transformer
from pipeline.store import tables
from pipeline.studies.dyck import comparisons, datasets
from pipeline.studies.dyck.measures import metrics, model
from pipeline.studies.dyck.names import (
    ARMS,
    LINEAR,
    LONG_PROBE,
    MINIMAL,
    PREFIX_MINIMAL,
    PREFIX_STANDARD_ALL,
    PRUNING_TARGET,
    READINGS,
    STANDARD,
    TABLE_1,
    TABLE_1_COMPLETE,
    THEORY_LAYERS,
    UNIFORM,
)
from pipeline.studies.dyck.params import Complete, Nested, Prefix
from schemas.comparisons import SEEDS
from schemas.dyck.tables import SCHEMAS

REPLICAS = 4
COMPLETE, PREFIXES = ARMS["complete"], ARMS["prefix"]
# Tables with tests of their own, in test_dyck_copying and test_dyck_stack.
ELSEWHERE = {"class_lift", "ablation", "copy_maps", "head_importance", "stack_effects", "families", "family_distances"}
GRAMMAR = {"k": 2, "depth": 4}
COMMON = {"study": "dyck", "language": "dyck", "grammars": [GRAMMAR]}
CHAIN = {"q": 0.5, "sequences": 40, "corpora": 1}
DATASETS = {
    "train": Complete(**COMMON, **CHAIN, split="train_complete", sampler="complete", p_stop=0.5, max_length=26),
    "dev": Complete(**COMMON, **CHAIN, split="dev_complete", sampler="complete", p_stop=0.5, max_length=26),
    "long": Prefix(
        **COMMON, **CHAIN | {"sequences": 3}, split="lengen", sampler="prefix", min_length=60, max_length=80
    ),
    "probe": Nested(**COMMON, split="probe16", sampler="nested"),
}
PREFIX = {**COMMON, **CHAIN, "sampler": "prefix", "min_length": 28, "max_length": 28}
DATASETS |= {
    "train-prefix": Prefix(**PREFIX, split="train_prefix"),
    "dev-prefix": Prefix(**PREFIX, split="dev_prefix"),
    "probe19": Prefix(
        **PREFIX | {"sequences": 6, "min_length": 19, "max_length": 19, "grammars": [{"k": 3, "depth": 4}, GRAMMAR]},
        split="probe19",
    ),
    "probe28": Prefix(**PREFIX | {"sequences": 1}, split="probe28"),
}
GPT = {
    "dataset": "train",
    "k": 2,
    "depth": 4,
    "block": "gpt",
    "layers": 2,
    "heads": 1,
    "width": 50,
    "ffn": 50,
    "attention": "learned",
    "embedding": "token",
    "position": "none",
    "t_max": 6000,
    "replicas": REPLICAS,
    "lr": 0.003,
    "batch": 8,
    "steps": 10,
    "loss_positions": "closing",
    "contrastive": 0.0,
    "corpus": "shared",
    "stream": "a",
    "objective": "next_token",
}
MFL = GPT | {"block": "stripped", "layers": 1, "ffn": 0, "embedding": "pair", "stream": "b"}
RUNS = {
    STANDARD: GPT,
    LINEAR: GPT | {"position": "linear", "t_max": 28},
    MINIMAL: MFL,
    COMPLETE["standard"]: MFL | {"corpus": "per_replica"},
    COMPLETE["contrastive"]: MFL | {"corpus": "per_replica", "contrastive": 0.3},
    UNIFORM["complete"]: GPT | {"attention": "uniform"},
    TABLE_1[2, 4, 3]: GPT | {"block": "resln", "layers": 3, "dataset": "train-prefix"},
    PRUNING_TARGET: GPT | {"block": "eq6", "width": 6, "ffn": 8},
}
# Trained on prefixes, or readings of what the texts leave open.
MORE = {
    PREFIX_STANDARD_ALL: GPT | {"dataset": "train-prefix", "loss_positions": "all"},
    PREFIX_MINIMAL: MFL | {"dataset": "train-prefix"},
    PREFIXES["standard"]: MFL | {"dataset": "train-prefix", "corpus": "per_replica"},
    PREFIXES["contrastive"]: MFL | {"dataset": "train-prefix", "corpus": "per_replica", "contrastive": 0.3},
    TABLE_1_COMPLETE[2, 4, 3]: GPT | {"block": "resln", "layers": 3},
    "dyck-standard-double": GPT | {"steps": 20},
    THEORY_LAYERS: GPT | {"block": "eq6", "width": 6, "ffn": 8},
    "dyck-theory-squared": GPT | {"block": "eq6", "width": 6, "ffn": 8, "objective": "squared_error"},
}


@cache
def ensemble(run: str) -> transformer.Ensemble | theory_transformer.Ensemble:
    """Random weights, ten times those of an initialisation, so that attention is far from uniform.

    They are in double precision: in single precision two orders of sums differ by up to 2e-5 of an attention weight.
    """
    entry = (RUNS | MORE)[run]
    module = theory_transformer if entry["block"] == "eq6" else transformer
    table = torch.from_numpy(dyck.embedding_table(entry["embedding"], 2, 4, entry["width"]))
    named = ("block", "layers", "heads", "width", "ffn", "attention", "position", "t_max")
    spec = module.Spec(**{name: entry[name] for name in named}, inputs=len(table), outputs=4)
    scale = 1 if entry["block"] == "eq6" else 10
    models = [module.initial(spec, stream(0, run, replica)) for replica in range(REPLICAS)]
    params = {
        name: torch.from_numpy(np.stack([model[name] for model in models])).double() * scale for name in models[0]
    }
    return module.Ensemble(spec, params, table.double(), {})


def context(
    runs: list[str] | None = None,
    without: tuple[str, ...] = (),
    diverged: dict[str, dict[str, int]] | None = None,
    min_accuracy: float = 0.0,
) -> Any:
    settings = SimpleNamespace(min_accuracy=min_accuracy, confidence=0.95, stored_maps=2)
    return SimpleNamespace(
        study="dyck",
        settings=settings,
        datasets=lambda: [key for key in DATASETS if key not in without],
        scale="smoke",
        seed=1,
        params_hash="0" * 32,
        dataset=lambda key: datasets.generate(DATASETS[key], key, 1)[0],
        model=ensemble,
        runs=lambda: runs or list(RUNS),
        run_header=lambda run: {"entry": (RUNS | MORE)[run], "diverged": (diverged or {}).get(run, {})},
        curves=lambda run: pl.DataFrame(
            {
                "run": run,
                "replica": [0, 0, 1, 1, 2, 2, 3, 3],
                "step": [5, 10] * 4,
                "loss": [2.0, 1.0, 2.0, 1.5, 2.0, 0.5, 2.0, None],
            }
        ),
    )


def made_of(some: Any) -> dict[str, pl.DataFrame]:
    return analyse(some, pruning={"candidates": [6], "strings": 4})


@pytest.fixture(scope="module")
def made() -> dict[str, pl.DataFrame]:
    return made_of(context())


def test_every_table_is_valid_and_none_is_empty(made: dict[str, pl.DataFrame]) -> None:
    assert set(made) == set(SCHEMAS)
    for name, frame in made.items():
        tables.validate(frame, SCHEMAS[name], name)
        assert (frame.height == 0) == (name in ELSEWHERE), name


def test_runs_say_what_was_trained(made: dict[str, pl.DataFrame]) -> None:
    runs = made["runs"]
    assert runs.height == 8 * REPLICAS
    rows = {row["run"]: row for row in runs.filter(replica=3).iter_rows(named=True)}
    assert [rows[run]["arch"] for run in RUNS] == ["gpt", "gpt_pos", *["mfl15"] * 3, "uniform", "resln", "eq6"]
    assert rows[STANDARD]["t_max"] is None and rows[LINEAR]["t_max"] == 28
    assert rows[MINIMAL]["corpus"] == 0 and rows[COMPLETE["standard"]]["corpus"] == 3
    assert runs.filter(run=STANDARD)["final_loss"].to_list() == [1.0, 1.5, 0.5, None]


@pytest.mark.parametrize("run", [STANDARD, LINEAR, MINIMAL, PRUNING_TARGET])
def test_accuracy_is_that_of_one_sequence_after_another(made: dict[str, pl.DataFrame], run: str) -> None:
    """No padding, no batches: what the batched evaluation must not change."""
    model = ensemble(run)
    for key, split in (("dev", "dev_complete"), ("long", "lengen")):
        total = None
        for row in context().dataset(key)["tokens"].to_list():
            tokens = np.array([row], np.int8)
            ids = tokens if run != MINIMAL else dyck.symbols(tokens, 4)
            read = torch.from_numpy(dyck.with_start(ids).astype(np.int64))[None, :, :-1]
            module = theory_transformer if run == PRUNING_TARGET else transformer
            logits, _ = module.forward(model.spec, model.params, model.table, read)
            top = torch.from_numpy(dyck.stack_top(tokens)).long()
            counts = metrics.accuracy(logits, torch.from_numpy(tokens).long(), top)
            total = counts if total is None else total.add(counts)
        assert total is not None
        table = made["accuracy"].filter(run=run, eval_split=split).sort("replica")
        for name in ("acc_close", "acc_all", "acc_thr80"):
            assert table[name].to_list() == pytest.approx(getattr(total, name).tolist(), abs=1e-12), name
        assert table["n_close"][0] == total.n_close
        assert table["in_distribution"].to_list() == [split == "dev_complete"] * REPLICAS


def test_batches_hold_every_sequence_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = context().dataset("dev")
    monkeypatch.setattr(model, "MAX_NUMBERS", 4 * 10 * 256 * 3)
    batches = list(model._batches(frame, 4))
    assert len(batches) > 5 and pl.concat(batches).sort("seq_id").equals(frame)
    for batch in batches:
        assert batch.height == 1 or batch.height * 4 * batch["length"].max() * 256 <= 4 * 10 * 256 * 3  # type: ignore[operator]


def test_attention_is_the_softmax_of_the_weights(made: dict[str, pl.DataFrame]) -> None:
    tokens = dyck.nested_probe(2, 4)
    for run in (STANDARD, MINIMAL):  # the first layer reads the table alone
        model = ensemble(run)
        for start in (False, True):
            ids = tokens if run == STANDARD else dyck.symbols(tokens, 4)
            x = model.table[torch.from_numpy((dyck.with_start(ids) if start else ids).astype(int))[0]]
            q, k, _ = (x @ model.params["blocks.0.attn.W_QKV"] + model.params["blocks.0.attn.b_QKV"][:, None]).chunk(
                3, -1
            )
            scores = q @ k.transpose(-1, -2) / 50**0.5
            n = len(x)
            expected = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf).softmax(-1)
            rows = made["attention"].filter(run=run, layer=1, start_included=start)
            dense = np.zeros((2, n, n))
            dense[rows["replica"], rows["query"], rows["key"]] = rows["weight"]
            assert n == 16 + start and np.allclose(dense, expected[:2].numpy(), atol=1e-6)


def test_only_the_maps_that_figures_show_are_stored(made: dict[str, pl.DataFrame]) -> None:
    assert set(made["attention"].select("run", "probe_split").unique().rows()) == {
        *((run, "probe16") for run in (STANDARD, LINEAR, MINIMAL)),
        (TABLE_1[2, 4, 3], "probe19"),
    }
    some = made_of(context([STANDARD], diverged={STANDARD: {"0": 7, "2": 3}}))["attention"]
    assert set(some["replica"]) == {1, 3}


def maps(run: str, tokens: list[int], start: bool, layer: int) -> np.ndarray:
    """(R, N, N) on one sequence."""
    model, row = ensemble(run), np.array([tokens], np.int8)
    ids = row if (RUNS | MORE)[run]["embedding"] == "token" else dyck.symbols(row, 4)
    read = torch.from_numpy((dyck.with_start(ids) if start else ids).astype(np.int64))[None]
    name = f"blocks.{layer - 1}.attn.pattern"
    _, recorded = transformer.forward(model.spec, model.params, model.table, read, record=[name])
    return recorded[name][:, 0, 0].double().numpy()


def pair_mean(pattern_RxNxN: np.ndarray) -> float:
    pairs = [((a - b) ** 2).sum() for i, a in enumerate(pattern_RxNxN) for b in pattern_RxNxN[:i]]
    return float(np.mean(pairs))


def test_variation_is_that_of_the_maps(made: dict[str, pl.DataFrame]) -> None:
    where = {"run": STANDARD, "probe_split": "probe16", "layer": 2, "start_included": True}
    found = made["variation"].filter(**where).row(0, named=True)
    assert found["variation_mean"] == pytest.approx(
        pair_mean(maps(STANDARD, dyck.nested_probe(2, 4)[0].tolist(), True, 2))
    )
    assert found["ci_lo"] < found["variation_mean"] < found["ci_hi"] and found["interval"] == "jackknife"
    assert (found["n_models"], found["n_rows"], found["last_layer"]) == (REPLICAS, 17, True)
    assert found["random_baseline"] == stats.causal_distance(17)
    plain = made["variation"].filter(**where | {"start_included": False}).row(0, named=True)
    mean, over = (
        compared(made, comparisons.VARIATION[STANDARD, False]),
        compared(made, comparisons.OVER_RANDOM[STANDARD]),
    )
    assert (mean["value"], mean["lo"], mean["hi"]) == tuple(
        plain[name] for name in ("variation_mean", "ci_lo", "ci_hi")
    )
    assert over["hi"] == pytest.approx(plain["ci_hi"] / stats.causal_distance(16))


def test_table_1_is_the_mean_over_sentences_of_the_variation(made: dict[str, pl.DataFrame]) -> None:
    """In float32: the first layer's attention is summed in another order when its own map is not recorded."""
    run, means = TABLE_1[2, 4, 3], []
    sentences = context().dataset("probe19").filter(lang_k=2)["tokens"].to_list()
    for layer, published in ((1, 0.070), (2, 5.072), (3, 24.063)):
        each = [pair_mean(maps(run, tokens, True, layer)) for tokens in sentences]
        found = made["variation_table1"].filter(run=run, layer=layer).row(0, named=True)
        assert found["mean"] == pytest.approx(np.mean(each), rel=1e-4)
        assert found["sd_over_sentences"] == pytest.approx(np.std(each, ddof=1), rel=1e-4)
        assert (found["n_sentences"], found["n_rows"], found["n_models"]) == (6, 20, REPLICAS)
        assert found["ci_lo"] < found["mean"] < found["ci_hi"]
        assert found["published_mean"] == published
        of_layer = compared(made, comparisons.BY_LAYER[(2, 4, 3), layer])
        assert (of_layer["value"], of_layer["lo"]) == (found["mean"], found["ci_lo"])
        stored = made["variation"].filter(run=run, probe_split="probe19", layer=layer, start_included=True)
        assert stored.sort("seq_id")["variation_mean"].to_list() == pytest.approx(each, rel=1e-4)
        means.append(found["mean"])
    assert made["variation_table1"].height == 3
    ratio = compared(made, comparisons.LAYER_RATIO[2, 4, 3])
    assert ratio["lo"] < ratio["value"] < ratio["hi"] and ratio["state"] == "too few models"
    assert ratio["value"] == pytest.approx(means[2] / means[1])


def test_two_models_have_a_distance_and_no_interval() -> None:
    frames = made_of(context([TABLE_1[2, 4, 3]], diverged={TABLE_1[2, 4, 3]: {"0": 1, "2": 1}}))
    for found in frames["variation_table1"].iter_rows(named=True):
        assert (found["n_models"], found["n_excluded"]) == (2, 2)
        assert found["mean"] > 0 and found["ci_lo"] is None and found["ci_hi"] is None


@pytest.mark.parametrize("run", [STANDARD, MINIMAL, UNIFORM["complete"], TABLE_1[2, 4, 3]])
def test_stack_scores_are_those_of_one_query_after_another(made: dict[str, pl.DataFrame], run: str) -> None:
    split = "dev-prefix" if run == TABLE_1[2, 4, 3] else "dev"
    for layer in range(1, RUNS[run]["layers"] + 1):
        query_scores: dict[str, list[list[float]]] = {}
        for row in context().dataset(split)["tokens"].to_list():
            tokens = np.array([row], np.int8)
            text, pattern = dyck.with_start(tokens)[0], maps(run, row, True, layer)
            stack: list[int] = []
            for i in range(1, len(text)):
                stack = [*stack, i] if text[i] % 2 else stack[:-1]
                if stack:
                    levels = _open_at(text[: i + 1], len(stack))
                    scores = {
                        "stack_argmax": pattern[:, i, stack[-1]] > np.delete(pattern[:, i], stack[-1], 1).max(1),
                        "stack_argmax_tied": pattern[:, i, stack[-1]]
                        >= (1 - 1e-5) * np.delete(pattern[:, i], stack[-1], 1).max(1),
                        "stack_mass": pattern[:, i, stack[-1]],
                        "stack_mass_uniform": np.full(REPLICAS, 1 / (i + 1)),
                        "same_depth_mass": pattern[:, i, levels].sum(-1),
                    }
                    if text[i] % 2 == 0:
                        scores["stack_argmax_closers"] = scores["stack_argmax"]
                    for name, values in scores.items():
                        query_scores.setdefault(name, []).append(values.tolist())
        table = made["stack_score"].filter(run=run, layer=layer).sort("replica")
        assert (table["n_queries"] == len(query_scores["stack_mass"])).all()
        assert (table["n_closers"] == len(query_scores["stack_argmax_closers"])).all()
        if run != MINIMAL:
            assert table["same_depth_mass"].is_null().all()
            del query_scores["same_depth_mass"]
        for name, values in query_scores.items():
            assert table[name].to_list() == pytest.approx(np.mean(values, 0).tolist(), abs=1e-6), name


def _open_at(text: np.ndarray, level: int) -> list[int]:
    """Positions of open brackets that opened this level."""
    depth = np.cumsum(np.where(text == 0, 0, np.where(text % 2 == 1, 1, -1)))
    return [j for j in range(1, len(text)) if text[j] % 2 == 1 and depth[j] == level]


def test_comparisons_are_those_of_the_tables(made: dict[str, pl.DataFrame]) -> None:
    fig3 = made["fig3"]
    first, second = (fig3.filter(arm=arm).sort("replica") for arm in ("contrastive", "standard"))
    beta = [arm["beta"].to_numpy() for arm in (first, second)]

    def value(comparison: Any) -> float:
        found = compared(made, comparison)
        assert (found["n"], found["n_excluded"]) == (REPLICAS, 0)
        assert found["lo"] is None or found["lo"] <= found["value"] <= found["hi"]
        return float(found["value"])

    assert value(comparisons.VIOLATION_RATIO["complete"]) == pytest.approx(np.median(beta[0] / beta[1]))
    assert value(comparisons.VIOLATION_SHIFT["complete"]) == pytest.approx(np.median(beta[0] - beta[1]))
    gained = first["acc_thr80"].mean() - second["acc_thr80"].mean()  # type: ignore[operator]
    assert value(comparisons.GAINED["complete", "acc_thr80"]) == pytest.approx(gained)
    expected = fig3.select(pl.corr("beta", "acc_thr80", method="spearman")).item()
    assert value(comparisons.RANK_POOLED["complete", "acc_thr80"]) == pytest.approx(expected)
    ranks = fig3.with_columns(pl.col("beta", "acc_thr80").rank().over("arm"))
    centred = ranks.with_columns(pl.col("beta", "acc_thr80") - pl.col("beta", "acc_thr80").mean().over("arm"))
    expected = centred.select(pl.corr("beta", "acc_thr80")).item()
    assert value(comparisons.RANK_WITHIN["complete", "acc_thr80"]) == pytest.approx(expected)
    expected = intervals.spearman(beta[1], second["acc_thr80"].to_numpy())
    assert value(comparisons.RANK["complete", "standard", "acc_thr80"]) == pytest.approx(expected)
    for run in (STANDARD, TABLE_1[2, 4, 3]):
        accuracy = made["accuracy"].filter(run=run).filter("in_distribution")["acc_close"]
        assert value(comparisons.ACCURACY[run]) == pytest.approx(accuracy.median())
    scores = made["stack_score"].filter(run=STANDARD, layer=2)["stack_argmax"]
    assert value(comparisons.STACK_MEAN[STANDARD]) == pytest.approx(scores.mean())
    assert value(comparisons.STACK_SHARE[STANDARD]) == (scores >= 0.9).mean()
    for start in (False, True):
        last = made["variation"].filter("last_layer", probe_split="probe16", start_included=start)
        means = [last.filter(run=run)["variation_mean"][0] for run in (MINIMAL, STANDARD)]
        ratio = value(comparisons.VARIATION_RATIO[MINIMAL, STANDARD, start])
        assert ratio == pytest.approx(means[0] / means[1])


@pytest.fixture(scope="module")
def more() -> dict[str, pl.DataFrame]:
    frames = made_of(context([STANDARD, PRUNING_TARGET, *MORE]))
    for name, frame in frames.items():
        tables.validate(frame, SCHEMAS[name], name)
    return frames


def test_prefix_models_are_compared_like_the_others(more: dict[str, pl.DataFrame]) -> None:
    first, second = (more["fig3"].filter(arm=arm).sort("replica") for arm in ("contrastive", "standard"))
    assert set(more["fig3"]["data"]) == {"prefix"} and first.height == second.height == REPLICAS
    assert compared(more, comparisons.VIOLATION_RATIO["complete"])["state"] == "not run at this scale"
    found = compared(more, comparisons.VIOLATION_RATIO["prefix"])
    assert found["value"] == pytest.approx((first["beta"] / second["beta"]).median())
    probe = dyck.nested_probe(2, 4)[0].tolist()
    means = [pair_mean(maps(run, probe, True, layer)) for run, layer in ((PREFIX_STANDARD_ALL, 2), (PREFIX_MINIMAL, 1))]
    ratio = compared(more, comparisons.VARIATION_RATIO[PREFIX_STANDARD_ALL, PREFIX_MINIMAL, True])
    assert ratio["value"] == pytest.approx(means[0] / means[1], rel=1e-4)


def test_the_longer_probe_is_shown_with_its_text(more: dict[str, pl.DataFrame]) -> None:
    shown = more["attention"].filter(run=PREFIX_STANDARD_ALL, probe_split=LONG_PROBE, start_included=True)
    tokens = context().dataset("probe28")["tokens"][0].to_list()
    assert set(shown["text"]) == {"·" + "".join("[]()"[token - 1] for token in tokens)}
    assert shown["query"].max() == 28


def test_the_second_arm_of_table_1_says_so(more: dict[str, pl.DataFrame]) -> None:
    assert set(more["variation_table1"].select("run", "data").rows()) == {(TABLE_1_COMPLETE[2, 4, 3], "complete")}
    assert more["variation_table1"]["published_mean"].to_list() == [0.070, 5.072, 24.063]


def test_readings_stand_beside_the_recommended_one(more: dict[str, pl.DataFrame]) -> None:
    readings = more["readings"]
    assert set(readings["choice"]) <= set(READINGS)
    assert set(readings.select("choice", "reading", "recommended", "run", "steps").rows()) == {
        ("length of training, M1", "recommended", True, STANDARD, 10),
        ("length of training, M1", "double", False, "dyck-standard-double", 20),
        ("objective, M9", "cross-entropy", True, THEORY_LAYERS, 10),
        ("objective, M9", "squared error", False, "dyck-theory-squared", 10),
    }
    variation = more["variation"].filter("last_layer", run="dyck-standard-double", probe_split="probe16")
    for start, word in ((False, "omitted"), (True, "included")):
        found = readings.filter(run="dyck-standard-double", quantity=f"variation on D4, start token {word}").row(
            0, named=True
        )
        assert found["value"] == variation.filter(start_included=start)["variation_mean"][0]
        assert found["published"] == (None if start else 2.27)
    accuracy = more["accuracy"].filter(run="dyck-standard-double", eval_split="dev_complete")["acc_close"]
    found = readings.filter(run="dyck-standard-double", quantity="acc_close in distribution").row(0, named=True)
    assert found["value"] == pytest.approx(accuracy.mean()) and found["lo"] <= found["value"] <= found["hi"]


def test_outputs_that_estimate_probabilities_are_read_as_such(more: dict[str, pl.DataFrame]) -> None:
    """p(right closer) / p(all closers) of the outputs themselves, not of their exponentials."""
    model, hits, queries = ensemble("dyck-theory-squared"), np.zeros(REPLICAS), 0
    for row in context().dataset("dev")["tokens"].to_list():
        tokens = np.array([row], np.int8)
        read = torch.from_numpy(dyck.with_start(tokens).astype(np.int64))[None, :, :-1]
        outputs, _ = theory_transformer.forward(model.spec, model.params, model.table, read)
        top = dyck.stack_top(tokens)[0]
        closers = outputs[:, 0, :, 1::2].clamp(min=1e-9).numpy()
        for i in np.flatnonzero(top > 0):
            hits += closers[:, i, top[i] - 1] / closers[:, i].sum(-1) > 0.8
            queries += 1
    table = more["accuracy"].filter(run="dyck-theory-squared", eval_split="dev_complete").sort("replica")
    assert table["acc_thr80"].to_list() == pytest.approx((hits / queries).tolist(), abs=0.01)


def test_balance_detail_adds_up_to_beta(made: dict[str, pl.DataFrame]) -> None:
    ratio = pl.col("s_norm") / pl.col("p_dj")
    mean = made["balance_detail"].group_by("run", "replica").agg(ratio.mean().alias("mean"), pl.len())
    joined = made["balance"].join(mean, on=["run", "replica"])
    assert joined.height == 3 * REPLICAS and set(joined["len"]) == {3 * 4 * 2 * 2}
    assert joined["mean"].to_list() == pytest.approx(joined["beta"].to_list())


def test_diverged_and_weak_replicas_are_left_out_and_counted() -> None:
    frames = made_of(context(diverged={STANDARD: {"1": 7}, COMPLETE["standard"]: {"0": 3}}))
    probe = {"run": STANDARD, "probe_split": "probe16", "layer": 2, "start_included": False}
    found = frames["variation"].filter(**probe).row(0, named=True)
    assert (found["n_models"], found["n_excluded"], found["excluded_reason"]) == (3, 1, "1 diverged")
    assert frames["runs"].filter(run=STANDARD)["diverged_at"].to_list() == [None, 7, None, None]
    assert frames["runs"].filter(run=STANDARD)["learned"].to_list() == [True, False, True, True]
    beta = compared(frames, comparisons.VIOLATION_SHIFT["complete"])
    assert (beta["n"], beta["n_excluded"]) == (3, 1)
    assert beta["excluded_reason"] == f"{COMPLETE['standard']}: 1 diverged"

    strict = made_of(context(min_accuracy=0.97))
    for name, frame in strict.items():
        tables.validate(frame, SCHEMAS[name], name)
    found = strict["variation"].filter(**probe).row(0, named=True)
    assert (found["n_models"], found["variation_mean"], found["ci_lo"]) == (0, None, None)
    assert found["excluded_reason"] == "4 with acc_close below 0.97"
    assert strict["fig3"].height == 2 * REPLICAS and not strict["fig3"]["learned"].any()  # Figure 3 shows all models
    for comparison in (comparisons.VIOLATION_SHIFT["complete"], comparisons.STACK_MEAN[STANDARD]):
        assert compared(strict, comparison)["state"] == "too few models" and not compared(strict, comparison)["n"]
    assert compared(strict, comparisons.ACCURACY[STANDARD])["n"] == REPLICAS


@pytest.mark.parametrize(
    ("runs", "empty"),
    [
        ([STANDARD], {"variation_table1", "balance", "balance_detail", "fig3", "readings"}),
        ([COMPLETE["standard"]], {"attention", "variation_table1", "readings", "stack_cells"}),
    ],
)
def test_what_is_not_trained_leaves_no_rows(runs: list[str], empty: set[str]) -> None:
    frames = made_of(context(runs))
    for name, frame in frames.items():
        tables.validate(frame, SCHEMAS[name], name)
        assert (frame.height == 0) == (name in empty | ELSEWHERE | {"pruning_demo", "pruning_maps"}), name


@pytest.mark.parametrize("without", ["long", "probe", "probe19", "dev"])
def test_data_that_models_are_not_measured_on_are_missed(without: str) -> None:
    with pytest.raises(SandglassError, match="is declared, its models are trained, and it was not measured"):
        made_of(context(without=(without,)))


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_paired_arms_start_alike_and_see_the_same_strings(scale: str) -> None:
    runs = load_study("dyck", scale).members("runs", "dyck")
    paired = [each for each in comparisons.DECLARED if each.in_common == SEEDS]
    assert paired
    for comparison in paired:
        first, second = (
            {(runs[run].stream, runs[run].dataset, runs[run].corpus, runs[run].batch) for run in arm.runs}
            for arm in comparison.arms
        )
        assert first == second, comparison.key
