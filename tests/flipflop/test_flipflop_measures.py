"""Measures of the errors and of attention on small cases whose answer is known; the grids at scale paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy import stats
from workspace import load_study

from pipeline.languages import flipflop as language
from pipeline.studies.flipflop.analysis import autopsy, errors, simulation
from pipeline.studies.flipflop.measures import maps, reading
from pipeline.studies.flipflop.names import (
    BASE,
    GENERATIVE,
    LINEAR,
    LINEAR_ARMS,
    MANY,
    MANY_FIRST,
    MANY_SHARP,
)


def law(inputs: np.ndarray, p: float) -> np.ndarray:
    """Return (N, T, 5) the probabilities of the next token of FFL(p) strings without their last token."""
    n, length = inputs.shape
    probabilities = np.zeros((n, length, 5))
    last = np.zeros(n, int)
    for t in range(length):
        if t % 2:
            last = np.where(inputs[:, t - 1] == language.WRITE, inputs[:, t], last)
            probabilities[:, t, :3] = ((1 - p) / 2, (1 - p) / 2, p) if t < length - 2 else (0, 1, 0)
        else:
            probabilities[:, t, 3:] = 0.5
            read = inputs[:, t] == language.READ
            probabilities[read, t, 3:] = 0
            probabilities[read, t, last[read]] = 1
    return probabilities


@pytest.mark.parametrize(("blur", "excess"), [(0.0, 0.0), (0.2, None)])
def test_the_generative_excess_is_0_for_the_law_itself(
    blur: float, excess: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = language.sample(np.random.default_rng(0), 50, 24, 0.1, 0.1)

    def forward(inputs: np.ndarray) -> tuple[torch.Tensor, dict[str, Any]]:
        exact = law(inputs, 0.8)
        with np.errstate(divide="ignore"):
            logits = np.log((1 - blur) * exact + blur / 5)
        return torch.from_numpy(np.maximum(logits, -1e3))[None], {}

    config = SimpleNamespace(entry={"train": [0.8], "length": 24}, forward=forward)
    monkeypatch.setattr(reading, "held", lambda context, of: {"val": tokens})
    known: Any = SimpleNamespace(configs={GENERATIVE: config}, context=None)
    estimate, deviation = errors._excess(known)
    assert estimate.shape == deviation.shape == (1,)
    if excess is None:
        assert estimate[0] > 10 * deviation[0] > 0
    else:
        assert abs(estimate[0]) < 1e-9


def test_errors_of_each_model_have_their_own_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = language.sample(np.random.default_rng(0), 50, 24, 0.3, 0.3)
    targets = language.reads(tokens).target
    answers = np.stack([targets, np.where(np.arange(len(targets)) < 3, 1 - targets, targets)])
    monkeypatch.setattr(reading, "held", lambda context, of, dataset: {"dense": tokens})
    config: Any = SimpleNamespace(
        name="x",
        entry={"family": "baseline"},
        seeds=[(0, 0, 0), (1, 1, 1)],
        answers=lambda strings: (answers, answers),
    )
    context: Any = SimpleNamespace(settings=SimpleNamespace(confidence=0.95))
    rows, _ = reading.final(context, config)
    assert [row["n_err"] for row in rows] == [0, 3]
    for row in rows:
        interval = stats.binomtest(row["n_err"], len(targets)).proportion_ci(0.95, method="exact")
        assert (row["lo"], row["hi"]) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert row["lo"] <= row["error"] < row["hi"]


def sizes(**changed: list[float]) -> list[dict[str, Any]]:
    shapes = {
        BASE: (6, 512, 8), "l2": (2, 512, 8), "l4": (4, 512, 8), "d128": (6, 128, 8), "d1024": (6, 1024, 8),
        "h2": (6, 512, 2), "h16": (6, 512, 16), "largest": (8, 1024, 8),
    }  # fmt: skip
    rng = np.random.default_rng(0)
    logs = {run: changed.get(run, rng.normal(size=3).tolist()) for run in shapes}
    configs = {
        run: SimpleNamespace(
            entry={"family": "baseline" if run == BASE else "scale_size"}
            | dict(zip(("layers", "width", "heads"), shape, strict=True))
        )
        for run, shape in shapes.items()
    }
    known: Any = SimpleNamespace(
        configs=configs,
        of=lambda run, name: np.array(logs[run]),
        decades=lambda run, name: np.array(logs[run]),
    )
    return list(errors._sizes(known))


def test_a_model_of_two_sizes_at_once_has_no_part_in_correlations() -> None:
    assert [row["contrast"] for row in sizes()] == ["sparse size, p value", "dense size, p value"]
    plain, largest, wide = (
        sizes(**changed)[0]["value"] for changed in ({}, {"largest": [9.0] * 3}, {"d1024": [9.0] * 3})
    )
    assert plain == largest != wide


def test_a_rise_before_a_model_has_learned_does_not_count() -> None:
    def unsteady(val: list[float], dense: list[float]) -> list[bool]:
        rows = [
            (name, step, error)
            for name, values in (("val", val), ("dense", dense), ("sparse", [0.0] * 4))
            for step, error in enumerate(values)
        ]
        curves = pl.DataFrame(rows, schema=["set", "step", "error"], orient="row").with_columns(
            run=pl.lit(BASE), replica=pl.lit(3)
        )
        config = SimpleNamespace(replicas=[3], entry={"online": 10})
        known: Any = SimpleNamespace(
            curves=curves, configs={BASE: config}, learned=lambda run: np.array([True]), read_count=lambda *of: 1000,
            context=SimpleNamespace(
                settings=SimpleNamespace(learned=0.001), dataset=lambda name: pl.DataFrame({"set": ["dense", "sparse"]})
            ),
        )  # fmt: skip
        return errors._unsteady(known)

    assert unsteady([0.5, 0, 0, 0], [0.0, 0.1, 0.1, 0.5]) == [True]
    assert unsteady([0.5, 0.5, 0.5, 0], [0.0, 0.1, 0.5, 0.5]) == [False]
    assert unsteady([0.5, 0.5, 0.5, 0.5], [0.0, 0.1, 0.1, 0.5]) == [False]


def test_heads_that_look_at_the_last_write() -> None:
    symbols = simulation.PROBE
    ideal = language.last_symbol(symbols)[0]
    assert (ideal + 1).tolist() == [1, 1, 3, 3, 3, 6, 7, 7]
    at = np.arange(8)
    patterns = np.zeros((1, 1, 1, 3, 8, 8))
    patterns[0, 0, 0, 0, at, ideal] = 1
    patterns[0, 0, 0, 1, at, at] = 1  # of no-ops, none looks at the write
    patterns[0, 0, 0, 2, at, 0] = 1  # the first write: right for the second symbol alone
    assert maps.on_last_write(patterns, symbols)[0, 0].tolist() == [1, 0, 0.25]


def test_what_is_said_of_several_heads() -> None:
    heads = pl.DataFrame(
        [
            (run, r, layer, head, 0.5 + 0.1 * (run != MANY) * layer, run == MANY_SHARP and layer == head == 1)
            for run in (MANY, MANY_SHARP, MANY_FIRST) for r in range(3) for layer in (1, 2) for head in (1, 2)
        ],
        schema=["run", "replica", "layer", "head", "max_weight", "ideal"], orient="row",
    )  # fmt: skip
    config: Any = SimpleNamespace(entry={"steps": 8, "length": 4})
    norms = pl.DataFrame(
        [(run, r, step, 10.0 if run == MANY or step < 8 else 1.0) for run in (MANY, MANY_SHARP) for r in range(3)
         for step in (0, 8)], schema=["run", "replica", "step", "frobenius"], orient="row",
    )  # fmt: skip
    known = simulation.Known({MANY: config, MANY_SHARP: config}, pl.DataFrame(), heads, norms)
    assert known.ideal(MANY_SHARP).tolist() == [1, 1, 1] and known.ideal(MANY).tolist() == [0, 0, 0]
    assert known.later(MANY_FIRST) - known.later(MANY) == pytest.approx(0.2)
    assert known.size(MANY_SHARP) - known.size(MANY) == pytest.approx(-1) and len(known.size(MANY_FIRST)) == 0
    assert len(known.of("flipflop-one-l2", "p05")) == 0


def test_a_model_that_is_trained_twice_counts_once_in_autopsies() -> None:
    """The factorial has the baseline's models of equal seeds among its own."""
    rows = [
        (run, family, replica, looks)
        for run, family, looks in (("a", "baseline", "last write"), ("b", "seeds", "older write, other bit"))
        for replica in range(3)
    ]
    table = pl.DataFrame(
        rows, schema=["run", "family", "replica", "top_looks_at"], orient="row"
    ).with_columns(learned=True, set=pl.lit("dense"), any_removed=1, ignored_removed=1, top_on_last_write=0.5)
    context: Any = SimpleNamespace(
        seed=0, study="flipflop", settings=SimpleNamespace(confidence=0.95, resamples=100)
    )
    contrasts = {row["contrast"]: row for row in autopsy._contrasts(context, table)}
    assert {row["n"] for row in contrasts.values()} == {3}
    assert (
        contrasts["autopsy dense, elsewhere"]["value"] == contrasts["autopsy dense, other bit"]["value"] == 0
    )


# --- grids ---------------------------------------------------------------------------------------------


def test_the_grids_of_the_chapter_are_trained_at_paper() -> None:
    groups = load_study("flipflop", "paper").runs.values()
    entries: dict[str, Any] = {name: each for group in groups for name, each in group.members.items()}
    members = {name: each for name, each in entries.items() if each.study == "flipflop" and each.replicas}

    def of(family: str) -> list[Any]:
        return [each for each in members.values() if getattr(each, "family", "") == family]

    sharp = {
        (each.sharpen.kind, each.sharpen.weight, each.sharpen.schedule, each.sharpen.start) for each in of("sharpen")
    }  # fmt: skip
    kinds, weights = ("entropy", "l2", "linf"), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    assert {(kind, weight, "linear", 2000) for kind in kinds for weight in weights} <= sharp
    schedules = [(name, start) for name in ("linear", "oscillating") for start in (0, 2000, 5000)]
    assert {(kind, 0.1, *how) for kind in kinds for how in schedules} <= sharp
    base, tuned = members[BASE], of("optimiser")
    assert {each.lr[0] for each in [base, *tuned]} == {1e-4, 3e-4, 1e-3, 3e-3}
    assert {each.betas[0] for each in [base, *tuned]} == {0.85, 0.9, 0.95}
    assert {each.betas[1] for each in [base, *tuned]} == {0.95, 0.99, 0.999}
    assert {each.batch for each in [base, *tuned]} == {8, 16, 32, 64}
    combined = {
        (each.dropout.embed, each.sharpen is not None, each.position) for each in [*of("combo"), *of("dropout_emb")]
    }  # fmt: skip
    assert {(0.5, s, p) for s in (True, False) for p in ("learned", "sin", "alibi")} <= combined
    assert {(e.layers, e.width, e.heads) for e in of("scale_size")} >= {
        *((n, 512, 8) for n in (2, 4, 8)), *((6, d, 8) for d in (128, 256, 1024)), *((6, 512, h) for h in (2, 4, 16)),
        (8, 1024, 8),
    }  # fmt: skip
    arms = {(each.family, each.train[0], each.sharpen and each.sharpen.kind) for each in members.values()
            if getattr(each, "family", "") in ("linear", "one_head")}  # fmt: skip
    assert arms == {
        (family, p, kind) for family in ("linear", "one_head") for p in (0.5, 0.9) for kind in (None, *kinds)
    }
    assert members[LINEAR].length == 500 and len(LINEAR_ARMS) == 2
