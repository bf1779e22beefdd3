"""Analysis of the depth study: rates, agreement with the constructions, comparisons, letters."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.streams import stream
from pipeline.languages import sequence_tasks as tasks
from pipeline.models.attention_only import network as attention_only
from pipeline.studies.depth.analysis import attention as probes
from pipeline.studies.depth.analysis import examples, heads, layers
from pipeline.studies.depth.comparisons import (
    ENDED,
    FOUR_LAYERS,
    FROZEN_STEPS,
    HEADS_P,
    HEADS_STEPS,
    RIGHT_PAIR,
    SOLVED,
)
from pipeline.studies.depth.measures import attention, runs, training
from pipeline.studies.depth.names import HEADS, MEMORIZATION, REASONING

CONTEXT: Any = SimpleNamespace(
    seed=1, study="depth", settings=SimpleNamespace(confidence=0.95, solved=0.99, threshold=0.95)
)


def run(losses: list[list[float]], diverged: dict[int, int], corpora: int = 1) -> runs.Run:
    """A run with the final training losses ``losses``, a list per learning rate 0.1, 0.2, ..."""
    replicas = len(losses[0])
    flat = [loss for rate in losses for loss in rate]
    curves = pl.DataFrame(
        {
            "replica": np.repeat(np.arange(len(flat), dtype=np.int32), 2),
            "step": [1, 2] * len(flat),
            "loss": [x for loss in flat for x in (0.0, loss)],
            "accuracy": 0.5,
        }
    )
    shape = {"task": "sc", "k": 0, "l": 2, "d1": 3, "d2": 0}
    spec = attention_only.Spec(1, (1,), "relu", 7, 3, 4, 2, "memorization")
    parts = [runs.Corpus(0, c + 1, np.zeros((1, 3), int), np.zeros(1, int)) for c in range(corpora)]
    return runs.Run(
        "run",
        {"experiment": "exp-1"},
        spec,
        shape,
        0,
        {},
        {("train", c): c + 1 for c in range(corpora)},
        parts,
        [0.1 * (i + 1) for i in range(len(losses)) for _ in range(replicas)],
        list(range(replicas)) * len(losses),
        diverged,
        curves,
        np.zeros(len(flat), bool),
        pl.DataFrame(),
    )


def test_the_rate_of_the_lowest_median_training_loss_is_chosen() -> None:
    chosen, rates = runs._choose(run([[3.0, 3.0, 0.1], [2.0, 2.0, 9.0], [4.0, 4.0, 4.0]], {}))
    assert chosen.tolist() == [False] * 3 + [True] * 3 + [False] * 3
    assert rates["training_loss"].to_list() == [3.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("losses", "place"),
    [([3.0, 1.0, 2.0], "inside"), ([1.0, 2.0, 3.0], "lowest"), ([3.0, 2.0, 1.0], "highest"), ([1.0], "only")],
)
def test_a_rate_at_an_edge_of_its_grid_is_marked(losses: list[float], place: str) -> None:
    _, rates = runs._choose(run([[loss, loss] for loss in losses], {}))
    assert rates.filter("chosen")["place"].to_list() == [place]
    assert set(rates.filter(~pl.col("chosen"))["place"]) <= {""}


def test_models_that_diverged_count_as_infinite() -> None:
    chosen, rates = runs._choose(run([[3.0, 3.0, 3.0], [1.0, 1.0, 1.0]], {3: 1, 4: 1}))
    assert chosen.tolist() == [True] * 3 + [False] * 3
    assert rates["training_loss"].to_list() == [3.0, None] and rates["n_diverged"].to_list() == [0, 2]


def test_a_loss_that_is_not_finite_counts_as_infinite() -> None:
    chosen, rates = runs._choose(run([[math.nan] * 3, [1.0, 1.0, 1.0]], {}))
    assert chosen.tolist() == [False] * 3 + [True] * 3
    assert rates["training_loss"].to_list() == [None, 1.0] and rates["n_diverged"].to_list() == [3, 0]


def test_models_that_diverged_are_counted_but_have_no_accuracy() -> None:
    one = run([[1.0, 1.0, 1.0]], {2: 1})
    (row,) = training.accuracy(CONTEXT, runs.Run(**(vars(one) | {"chosen": np.full(3, True)})))
    assert (row["n"], row["n_diverged"], row["n_solved"]) == (2, 1, 0)
    assert row["value"] == 0.5 and row["chance"] == 1.0  # one sequence


def test_every_corpus_chooses_its_rate() -> None:
    chosen, _ = runs._choose(run([[1.0, 9.0], [2.0, 2.0]], {}, corpora=2))
    assert chosen.tolist() == [True, False, False, True]


def constructed_by_weights(task: str, k: int, l: int, d1: int, d2: int, ids: np.ndarray) -> list[np.ndarray]:
    """Attention of the first two layers of a model with weights set as in Theorems 3 and 5."""
    d, n = tasks.inputs(task, d1, d2), tasks.length(task, k, l)
    spec = attention_only.Spec(2, (1, 1), "relu", d + n, n, d, d, "task")
    W = np.zeros((2, d + n, d + n))
    W[0] = tasks.start("copying" if task == "ic_qa" else "parsing", task, k, l, d1, d2, d + n)
    if task == "ic_qa":
        W[1, :d1, :d1] = np.eye(d1)
    else:
        W[0, d1, d1] = 1  # the sign is equal to itself
    weights = {f"blocks.{i}.W": torch.from_numpy(W[i])[None, None] for i in range(2)}
    weights |= {f"blocks.{i}.V": torch.eye(d + n).double()[None, None] for i in range(2)}
    weights["head.W"] = torch.zeros(1, d + n, d).double()
    names = [f"blocks.{i}.attn.pattern" for i in range(2)]
    _, patterns = attention_only.forward(
        spec, weights, torch.from_numpy(attention_only.embedding(spec)).double(), torch.from_numpy(ids)[None], names
    )
    return [patterns[name][0, :, 0].numpy() for name in names]


def test_constructed_reasoning_is_what_the_weights_of_theorem_3_do() -> None:
    ids = tasks.question_answering(stream(1, "qa"), 40, 3, 5, 4).ids_NxT
    first, second = constructed_by_weights("ic_qa", 3, 0, 5, 4, ids)
    patterns = attention.constructed("ic_qa", 3, 0, 2, ids)
    np.testing.assert_array_equal(patterns[0], first)
    np.testing.assert_array_equal(patterns[1][..., -1], second[..., -1])


def test_constructed_parsing_is_what_the_weights_of_theorem_5_do() -> None:
    ids = tasks.template_matching(stream(1, "tm"), 40, 3, (0, 6), 6, None).ids_NxT
    first, _ = constructed_by_weights("tm", 0, 3, 6, 0, ids)
    patterns = attention.constructed("tm", 0, 3, 2, ids)
    np.testing.assert_array_equal(patterns[0][:, :3, :3], first[:, :3, :3])
    same = (ids[:, :3, None] == ids[:, None, :3]) + np.eye(3)
    np.testing.assert_array_equal(patterns[1][:, :3, -1], same @ [9, 3, 1])


def test_cosine_of_maps() -> None:
    one = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    assert attention._cosine(3 * one, one) == pytest.approx(1.0)
    assert attention._cosine(one, np.array([[[0.0, 1.0], [1.0, 0.0]]])) == 0.0
    assert attention._cosine(0 * one, one) == 0.0
    assert attention._cosine(one, 0 * one) is None
    assert attention._cosine(one, np.ones((1, 2, 2))) == pytest.approx(2**-0.5)


def test_dead_heads_are_silent_where_it_counts() -> None:
    """A head of the last layer that answers every query but the last reaches no output."""
    first, last = np.zeros((5, 2, 3, 3)), np.zeros((5, 2, 3, 3))
    first[0, 0, 1, 1] = last[:, 0, :, :2] = last[:, 1, 0, 2] = 1
    measures = attention._silence([first, last])
    assert measures == {"heads_total": 4, "heads_dead": 2, "zero_share": pytest.approx(1 - 1 / 6)}


def ended(steps: list[int | None], accuracy: float = 1.0, replicas: list[int] | None = None) -> pl.DataFrame:
    """How models of a run ended that trains for 100 steps."""
    n = len(steps)
    return pl.DataFrame(
        {
            "steps": [100] * n,
            "accuracy": [accuracy] * n,
            "replica": replicas or list(range(n)),
            "steps_to_95": pl.Series(steps, dtype=pl.Int32),
            "diverged_at": pl.Series([None] * n, dtype=pl.Int32),
        }
    )


def measured(*compared: Comparison) -> Any:
    """Measurements of the experiment of these comparisons, at a scale that trains their runs alone."""
    (experiment,) = {each.experiment for each in compared}
    trained = [run for each in compared for arm in each.arms for run in arm.runs]
    context: Any = SimpleNamespace(**vars(CONTEXT), experiment=experiment, runs=lambda: trained)
    return Measurements(context)


def row(found: Any, comparison: Comparison) -> dict[str, Any]:
    return dict(found.rows[comparison.key])


def test_models_that_never_get_there_come_last() -> None:
    assert training.steps_to_95(ended([40, None, 60])).tolist() == [40, 101, 60]


def test_steps_are_compared_by_the_quotients_of_all_models() -> None:
    found = measured(FOUR_LAYERS)
    training.add_steps(found, FOUR_LAYERS, ended([10, 20, 30, 40, 50]), ended([100, 100, 100, 100, None]))
    given = row(found, FOUR_LAYERS)
    assert (given["value"], given["n"], given["interval"]) == (0.3, 5, "Mann-Whitney")
    assert given["state"] == "measured" and given["hi"] < 1


def test_nothing_is_compared_where_half_never_got_there() -> None:
    found = measured(FOUR_LAYERS)
    training.add_steps(found, FOUR_LAYERS, ended([10] * 4), ended([40, 40, None, None]))
    given = row(found, FOUR_LAYERS)
    assert (given["state"], given["n_excluded"], given["excluded_reason"]) == (
        "too few models",
        8,
        "fewer than half of an arm get to 95%",
    )


def test_frozen_attention_is_paired_by_start_and_data() -> None:
    """Replica r of both has the same weights and data: six pairs, of which both arms have five."""
    comparison = FROZEN_STEPS[MEMORIZATION[1]]
    found = measured(comparison)
    training.add_steps(
        found, comparison, ended([10, 20, 30, 40, 50, 60]), ended([90, 80, 40, 20], replicas=[5, 3, 1, 0])
    )
    given = row(found, comparison)
    assert (given["in_common"], given["n"], given["value"]) == ("seed and data", 4, 0.5)


def test_heads_and_steps_are_ranked_over_all_models() -> None:
    found = measured(HEADS_STEPS, HEADS_P)
    by_heads = {run: ended([80 // int(h), 80 // int(h) + 1, 80 // int(h) + 2]) for h, run in HEADS["sc"].items()}
    heads._speed(found, by_heads)
    steps, p = row(found, HEADS_STEPS), row(found, HEADS_P)
    assert steps["value"] < -0.9 and steps["hi"] < 0 and steps["n"] == 12 and steps["interval"] == "Fisher"
    assert p["value"] < 0.001 and p["interval"] == "none"
    found = measured(HEADS_STEPS, HEADS_P)
    heads._speed(found, {run: ended([int(h), int(h) + 1]) for h, run in HEADS["sc"].items()})
    assert row(found, HEADS_P)["value"] == 1.0  # a correlation of the other sign shows nothing


def test_attention_is_measured_in_models_that_learned() -> None:
    """Replica 1 did not, and of two heads the mean counts."""
    models = {"run": REASONING[2], "lr": 0.1, "chosen": True}
    summary = pl.DataFrame([models | {"replica": r, "learned": r != 1} for r in range(3)])
    part = {"run": REASONING[2], "lr": 0.1, "layer": 2, "cosine": None, "cosine_start": None}
    agreement = pl.DataFrame(
        [part | {"replica": r, "head": h, "right_example": 0.1 * r + h} for r in range(3) for h in range(2)]
    )
    found = measured(RIGHT_PAIR)
    layers._attention(found, summary, agreement)
    given = row(found, RIGHT_PAIR)
    assert given["value"] == pytest.approx(0.6) and (given["n"], given["n_excluded"]) == (2, 1)
    assert given["state"] == "too few models" and given["excluded_reason"] == "did not learn the task"


def test_a_model_that_diverged_has_solved_nothing() -> None:
    """Of the runs here nobody solves anything; the one that diverged leaves the median and stays in the share."""
    one = run([[1.0, 1.0, 1.0]], {2: 1})
    of = runs.Run(
        **(vars(one) | {"chosen": np.full(3, True), "name": REASONING[2], "shape": one.shape | {"task": "ic_qa"}})
    )
    of.curves.insert_column(0, of.curves["accuracy"].alias("accuracy_fresh"))
    found = measured(ENDED[REASONING[2], "fresh", "outputs"], SOLVED[REASONING[2]])
    layers._ended(found, of)
    median, share = row(found, ENDED[REASONING[2], "fresh", "outputs"]), row(found, SOLVED[REASONING[2]])
    assert (median["value"], median["n"], median["excluded_reason"]) == (0.5, 2, "diverged")
    assert (share["value"], share["n"], share["n_excluded"]) == (0.0, 3, 0)


def test_letters() -> None:
    assert examples.letters([7, 7, 3, 9, 12, 7, 9], 9) == "AAB=1A="
    shape = {"task": "ic_qa", "k": 2, "l": 0, "d1": 5, "d2": 4}
    ids = probes.encode("A=1B=2A=", shape)
    assert ids is not None and ids.tolist() == [[0, 5, 6, 1, 5, 7, 0, 5]]
    assert examples.letters(ids[0].tolist(), 5) == "A=1B=2A="
    assert probes.encode("A=1B=2A=", shape | {"k": 3}) is None
    assert probes.encode("A=1B=2A=", shape | {"d2": 1}) is None
