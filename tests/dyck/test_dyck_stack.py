"""The factorial of DYCK-A4 and the families of appendix D.2, on small ensembles with made-up weights."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from dyck_experiments import compared

from pipeline.kit import intervals
from pipeline.kit.streams import stream
from pipeline.languages import dyck
from pipeline.models.transformer import decoder
from pipeline.steps.analyse import finished
from pipeline.store import tables
from pipeline.studies.dyck import comparisons, datasets
from pipeline.studies.dyck.analysis import prefix, stack
from pipeline.studies.dyck.measures import model
from pipeline.studies.dyck.names import ALL_CELLS, FACTORS, LONGER_CELLS, OWN_KIND, STACK_CELLS, TABLE_1
from pipeline.studies.dyck.params import Complete, Prefix
from schemas.dyck.tables import SCHEMAS

GRAMMARS = [{"k": k, "depth": depth} for k in (2, 3) for depth in (4, 8)]
COMMON = {"study": "dyck", "language": "dyck", "grammars": GRAMMARS, "q": 0.5, "sequences": 30, "corpora": 1}
COMPLETE = COMMON | {"sampler": "complete", "p_stop": 0.5, "max_length": 26}
PREFIXES = COMMON | {"sampler": "prefix", "min_length": 28, "max_length": 28}
DATASETS = {
    "complete": Complete(**COMPLETE, split="train_complete"),
    "prefix": Prefix(**PREFIXES, split="train_prefix"),
    "dev": Complete(**COMPLETE, split="dev_complete"),
    "dev-prefix": Prefix(**PREFIXES, split="dev_prefix"),
    "sentences": Prefix(**PREFIXES | {"min_length": 19, "max_length": 19, "sequences": 5}, split="probe19"),
}
LONGER = TABLE_1[3, 8, 2]
CELLS = {run: cell for cell, run in (STACK_CELLS | LONGER_CELLS).items()}
TABLES = ["runs", "accuracy", "stack_score", "variation", "variation_table1"]


def entry(run: str) -> dict[str, Any]:
    k, depth, block, data, length = CELLS[run]
    return {
        "dataset": data,
        "k": k,
        "depth": depth,
        "block": block,
        "layers": 2,
        "heads": 1,
        "width": 12,
        "ffn": 12,
        "attention": "learned",
        "embedding": "token",
        "position": "none",
        "t_max": 6000,
        "lr": 0.003,
        "batch": 8,
        "replicas": 3 + (length == "longer"),
        "steps": {"short": 10, "long": 40, "longer": 120}[length],
        "loss_positions": "closing",
        "contrastive": 0.0,
        "corpus": "shared",
        "stream": f"k{k}-d{depth}",
        "objective": "next_token",
    }


@cache
def ensemble(run: str) -> decoder.Ensemble:
    settings = entry(run)
    table = torch.from_numpy(dyck.embedding_table("token", settings["k"], settings["depth"], 12))
    named = ("block", "layers", "heads", "width", "ffn", "attention", "position", "t_max")
    spec = decoder.Spec(**{name: settings[name] for name in named}, inputs=len(table), outputs=2 * settings["k"])
    models = [decoder.initial(spec, stream(0, run, replica)) for replica in range(settings["replicas"])]
    params = {name: torch.from_numpy(np.stack([each[name] for each in models])).float() * 20 for name in models[0]}
    return decoder.Ensemble(spec, params, table, {})


def analysed(
    runs: list[str], diverged: dict[str, dict[str, int]] | None = None, min_accuracy: float = 0.0
) -> dict[str, pl.DataFrame]:
    names = [*TABLES, "stack_cells", "stack_effects", "comparisons"]
    context: Any = SimpleNamespace(
        study="dyck",
        experiment="dyck-stack",
        scale="smoke",
        seed=1,
        params_hash="0" * 32,
        datasets=lambda: list(DATASETS),
        settings=SimpleNamespace(min_accuracy=min_accuracy, confidence=0.95, stored_maps=2),
        entry=SimpleNamespace(tables=names, repeated=["elsewhere"]),
        dataset=lambda key: datasets.generate(DATASETS[key], key, 1)[0],
        model=ensemble,
        runs=lambda: runs,
        run_header=lambda run: {
            "entry": entry(run),
            "diverged": (diverged or {}).get(run, {}),
            "job": "elsewhere" if run in LONGER_CELLS.values() else "dyck-stack",
        },
        curves=lambda run: pl.DataFrame({"run": run, "replica": [0], "step": [5], "loss": [1.0]}),
    )
    frames = finished(stack.analyse(context), SCHEMAS, context)
    for name, frame in frames.items():
        tables.validate(frame, SCHEMAS[name], name)
    return frames


@pytest.fixture(scope="module")
def made() -> dict[str, pl.DataFrame]:
    return analysed([*STACK_CELLS.values(), LONGER])


def test_a_cell_is_the_mean_over_its_models(made: dict[str, pl.DataFrame]) -> None:
    cells = made["stack_cells"]
    assert cells.height == len(STACK_CELLS) + 1 and set(made["runs"]["run"]) == set(STACK_CELLS.values())
    for run in (STACK_CELLS[2, 8, "resln", "prefix", "long"], STACK_CELLS[3, 4, "gpt", "complete", "short"]):
        row = cells.filter(run=run).row(0, named=True)
        scores = made["stack_score"].filter(run=run, layer=2)
        assert row["mean"] == pytest.approx(scores["stack_argmax"].mean())
        assert row["unseen"] == pytest.approx(scores["stack_argmax_unseen"].mean())
        assert row["lo"] <= row["mean"] <= row["hi"] and row["n"] == row["n_accurate"] == 3
        assert row["n_stack_like"] == (scores["stack_argmax"] >= 0.9).sum()
        assert (row["share_lo"], row["share_hi"]) == intervals.binomial(row["n_stack_like"], 3, 0.95)


def test_an_effect_is_the_difference_of_means_over_pairs_of_cells(made: dict[str, pl.DataFrame]) -> None:
    cells, effects = made["stack_cells"], made["stack_effects"]
    assert effects.height == 2 * (4 * 3 + 1 + 1)
    effects = effects.filter(pl.col("scope").str.ends_with(OWN_KIND))
    effects = effects.with_columns(pl.col("scope").str.strip_suffix(OWN_KIND))
    columns = dict(zip(FACTORS, ("lang_k", "lang_D", "block", "data", "length"), strict=True))
    own = cells.filter(pl.col("length") != "longer")
    for factor, (low, high) in FACTORS.items():
        column = columns[factor]
        for row in effects.filter(factor=factor).iter_rows(named=True):
            if row["high"] == "longer":
                continue
            some = own if row["scope"] == ALL_CELLS else own.filter(length=row["scope"])
            means = [some.filter(**{column: level})["mean"].mean() for level in (low, high)]
            assert (row["mean_low"], row["mean_high"]) == pytest.approx(tuple(means))
            assert row["value"] == pytest.approx(means[1] - means[0])  # type: ignore[operator]
            assert row["lo"] <= row["value"] <= row["hi"]
            assert (row["n_pairs"], row["n"]) == (some.height // 2, 3 * some.height)
    longer = effects.filter(high="longer").row(0, named=True)
    pair = cells.filter(lang_k=3, lang_D=8, block="resln", data="prefix").filter(pl.col("length") != "short")
    scores = dict(pair.select("length", "mean").iter_rows())
    assert longer["value"] == pytest.approx(scores["longer"] - scores["long"])
    assert (longer["n_pairs"], longer["n"]) == (1, 3 + 4)


def test_cells_are_compared_on_the_same_sentences(made: dict[str, pl.DataFrame]) -> None:
    run = STACK_CELLS[3, 4, "resln", "complete", "long"]
    frame = datasets.generate(DATASETS["sentences"], "sentences", 1)[0].filter(lang_k=3, lang_D=4)
    _, scores = model._evaluate(ensemble(run), entry(run), frame, True)
    means = {cell: compared(made, comparisons.ON_SENTENCES[cell])["value"] for cell in STACK_CELLS}
    assert means[CELLS[run]] == pytest.approx(scores[-1].stack_argmax.mean().item())
    levels = [[means[cell] for cell in STACK_CELLS if cell[3] == data] for data in ("prefix", "complete")]
    effect = made["stack_effects"].filter(factor="training data", scope=ALL_CELLS).row(0, named=True)
    assert effect["value"] == pytest.approx(np.mean(levels[0]) - np.mean(levels[1]))
    judged = compared(made, comparisons.EFFECTS["training data"])
    assert [judged[name] for name in ("value", "lo", "hi")] == [effect[name] for name in ("value", "lo", "hi")]


def test_cells_that_start_alike_are_one_unit() -> None:
    """Of two cells with one stream only their differences count; of two with streams of their own both spreads do."""
    cell, other = (2, 4, "gpt", "complete", "short"), (2, 4, "gpt", "complete", "long")
    scores = {cell: np.array([0.1, 0.2, 0.3]), other: np.array([0.2, 0.3, 0.4])}
    some: Any = SimpleNamespace(settings=SimpleNamespace(confidence=0.95))

    def effect(*streams: str) -> intervals.Interval:
        models: Any = {
            each: SimpleNamespace(entry={"stream": name}) for each, name in zip((cell, other), streams, strict=True)
        }
        return stack._effect(some, models, scores, [(cell, other)])

    alike, apart = effect("a", "a"), effect("a", "b")
    assert alike.value == apart.value == pytest.approx(0.1)
    assert (alike.lo, alike.hi) == pytest.approx((0.1, 0.1)) and (alike.n, apart.n) == (3, 3)
    welch = intervals.mean_difference(scores[other], scores[cell], 0.95, paired=False)
    assert (apart.lo, apart.hi) == pytest.approx((welch.lo, welch.hi))


def test_a_cell_without_models_leaves_no_effect_over_it() -> None:
    absent = STACK_CELLS[2, 4, "gpt", "complete", "short"]
    frames = analysed([run for run in STACK_CELLS.values() if run != absent])
    assert set(frames["stack_effects"]["scope"]) == {"long", f"long{OWN_KIND}"}
    assert compared(frames, comparisons.EFFECTS["block"])["state"] == "too few models"


def test_models_that_are_not_accurate_count_in_the_mean_alone() -> None:
    run = STACK_CELLS[2, 4, "gpt", "complete", "short"]
    row = analysed([run], {run: {"1": 5}}, min_accuracy=1.0)["stack_cells"].row(0, named=True)
    assert (row["n"], row["n_accurate"], row["share_lo"]) == (2, 0, None) and row["mean"] is not None


# Strings that training did not show


def test_unseen_strings_are_in_no_corpus_that_a_replica_trains_on() -> None:
    tokens = [[1, 2], [1, 1, 2, 2], [3, 4], [1, 2, 1, 2]]
    frame = pl.DataFrame({"tokens": tokens, "lang_k": 2, "lang_D": 4, "corpus_seed": [0, 0, 1, 2]})
    trained = frame.head(3)
    run = {"k": 2, "depth": 4, "replicas": 2, "corpus": "shared"}
    assert model._unseen(frame, trained, run).to_list() == [False, False, True, True]
    assert model._unseen(frame, trained, run | {"corpus": "per_replica"}).to_list() == [False] * 3 + [True]
    assert model._unseen(frame, trained, run | {"k": 3}).all()


def test_accuracy_on_unseen_strings_is_that_of_these_strings_alone(made: dict[str, pl.DataFrame]) -> None:
    run = STACK_CELLS[2, 4, "gpt", "complete", "long"]
    frames = {
        key: datasets.generate(DATASETS[key], key, 1)[0].filter(lang_k=2, lang_D=4) for key in ("complete", "dev")
    }
    seen = {tuple(row) for row in frames["complete"]["tokens"].to_list()}
    unseen = frames["dev"].filter([tuple(row) not in seen for row in frames["dev"]["tokens"].to_list()])
    assert 0 < unseen.height < frames["dev"].height
    accuracy, _ = model._evaluate(ensemble(run), entry(run), unseen, False)
    table = made["accuracy"].filter(run=run, eval_split="dev_complete").sort("replica")
    assert table["acc_close_unseen"].to_list() == pytest.approx(accuracy.acc_close.tolist())
    assert (table["n_close_unseen"] == accuracy.n_close).all() and (table["n_sequences"] == 30).all()


# Families of maps


def test_families_are_told_by_where_maps_look() -> None:
    n, current, first = 5, np.eye(5), np.zeros((5, 5))
    first[:, 0] = 1
    maps = {"a": np.stack([current, current, first]), "b": np.stack([first, 0.9 * first + 0.1 * current])}
    shares = prefix._current_and_first(maps["b"])
    assert np.allclose(shares, [[0.0, 0.1], [1.0, 0.9]])
    rows = {row["run"]: row for frame in prefix._distances(maps, False) for row in frame.iter_rows(named=True)}
    assert (rows["a"]["n_models"], rows["a"]["n_first"]) == (3, 1)
    assert (rows["a"]["within"], rows["a"]["between"]) == (0.0, 2.0 * (n - 1))
    assert rows["b"]["between"] is None and rows["b"]["n_within"] == 1
    assert rows["all"]["n_within"] + rows["all"]["n_between"] == 10 and rows["all"]["bimodality"]


def test_bimodality_knows_two_points_from_one_hump() -> None:
    rng = np.random.default_rng(0)
    laws = ([0.0, 1.0] * 500, rng.uniform(size=20_000), rng.normal(size=20_000))
    assert [prefix.bimodality(np.array(each)) for each in laws] == pytest.approx([1.0, 5 / 9, 1 / 3], abs=0.01)
    assert prefix.bimodality(np.ones(9)) is None and prefix.bimodality(np.array([1.0, 2, 4])) is None
