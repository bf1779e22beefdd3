"""The language: exact law by enumeration, reads, the automaton; the objective against plain formulas."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from pipeline.kit.streams import stream
from pipeline.languages import flipflop as language
from pipeline.models.flipflop import decoder
from pipeline.studies.flipflop.exact import recognisers as exact
from pipeline.studies.flipflop.measures import dilution, maps
from pipeline.training.fresh import TOGETHER, Fresh
from pipeline.training.objectives import flipflop as objectives


@pytest.mark.parametrize("length", [4, 6, 8, 10])
def test_the_law_of_short_strings_is_that_of_the_definition(length: int) -> None:
    every = language.enumerate_strings(length)
    assert language.legal(every).all() and len(np.unique(every, axis=0)) == len(every)
    expected = np.exp(language.log_probability(every, 0.2, 0.3))
    assert expected.sum() == pytest.approx(1.0)
    drawn = language.sample(np.random.default_rng(0), 40_000, length, 0.2, 0.3)
    strings, counts = np.unique(np.concatenate([every, drawn]), axis=0, return_counts=True)
    assert len(strings) == len(every)
    order = {row.tobytes(): p for row, p in zip(every, expected, strict=True)}
    theory = np.array([order[row.tobytes()] for row in strings]) * len(drawn)
    assert stats.chisquare(counts - 1, theory * (counts - 1).sum() / theory.sum()).pvalue > 1e-4


def test_reads_against_a_plain_loop() -> None:
    tokens = language.sample(np.random.default_rng(1), 50, 40, 0.2, 0.3)
    reads = language.reads(tokens)
    plain = []
    for row, string in enumerate(tokens):
        memory = write = info = writes = 0
        for pair in range(20):
            instruction, datum = int(string[2 * pair]), int(string[2 * pair + 1]) - language.DATA
            if instruction == language.READ:
                assert datum == memory
                plain.append((row, pair, memory, pair - write, pair - info, writes))
            if instruction == language.WRITE:
                memory, write, writes = datum, pair, writes + 1
            if instruction != language.IGNORE:
                info = pair
    columns = (reads.row, reads.pair, reads.target, reads.dist_write, reads.dist_info, reads.n_writes)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == plain


def test_a_string_with_one_changed_answer_is_not_legal() -> None:
    tokens = language.sample(np.random.default_rng(2), 20, 16, 0.3, 0.3)
    tokens[:, -1] = 7 - tokens[:, -1]
    assert not language.legal(tokens).any()


def test_a_mixture_draws_one_language_for_each_string() -> None:
    p_write, p_read = language.halves(np.array([0.0, 1.0]))
    tokens = language.sample(np.random.default_rng(3), 2, 400, p_write, p_read)
    assert (tokens[0, 0::2] != language.IGNORE).all() and (tokens[1, 2:-2:2] == language.IGNORE).all()


def test_the_automaton_remembers() -> None:
    symbols = language.sample_symbols(np.random.default_rng(4), 30, 50, 0.7)
    plain = []
    for row in symbols:
        state, states = 0, []
        for symbol in row:
            state = state if symbol == language.NOOP else int(symbol) - 1
            states.append(state)
        plain.append(states)
    assert (symbols[:, 0] != language.NOOP).all() and (language.states(symbols) == np.array(plain)).all()


def test_pairs_and_four_symbols() -> None:
    tokens = language.sample(np.random.default_rng(5), 20, 12, 0.3, 0.3, symbols=4)
    assert language.legal(tokens, 4).all() and tokens.max() == language.DATA + 3
    assert language.pairs(np.array([[0, 4, 1, 4]])).tolist() == [[1, 3]]
    with pytest.raises(ValueError, match="even number of tokens"):
        language.sample(np.random.default_rng(0), 1, 5, 0.1, 0.1)


# --- objective -----------------------------------------------------------------------------------------


def settings(**changes: Any) -> dict[str, Any]:
    base = {
        "task": "strings",
        "length": 12,
        "shares": [[0.3, 0.3]],
        "symbols": 2,
        "loss": "clean",
        "sequences": 0,
        "pool": None,
        "dropout": {"embed": 0.0, "attention": 0.0, "ffn": 0.0},
        "sharpen": None,
        "steps": 8,
        "held": [],
    }
    return base | changes


def batch(of: objectives.Objective, step: int = 0) -> dict[str, torch.Tensor]:
    rngs = [lambda r=r: np.random.default_rng(r) for r in range(2)]
    arrays = of.collate([0, 1], [of.sample(rng(), 4) for rng in rngs], rngs)
    return {name: torch.from_numpy(value) for name, value in arrays.items()} | {"step": torch.tensor(step)}


@pytest.mark.parametrize("loss", ["clean", "generative"])
def test_the_loss_is_the_mean_over_what_is_asked(loss: str) -> None:
    of = objectives.Objective({}, settings(loss=loss))
    made = batch(of)
    logits = torch.randn(2, 4, 11, 5)
    metrics = of.loss(lambda ids: (logits, {}), made)
    for r in range(2):
        terms = []
        for row in range(4):
            for t in range(11):
                if loss == "generative" or made["tokens"][r, row, t] == language.READ:
                    terms.append(-logits[r, row, t].log_softmax(-1)[made["tokens"][r, row, t + 1].long()])
        assert metrics["loss"][r] == pytest.approx(torch.stack(terms).mean().item(), rel=1e-5)


def test_penalties_against_plain_loops() -> None:
    pattern = torch.rand(1, 2, 3, 5, 5).tril()
    pattern = pattern / pattern.sum(-1, keepdim=True)
    rows = pattern.reshape(-1, 5)
    plain = {
        "entropy": sum(-float((row[row > 0] * row[row > 0].log()).sum()) for row in rows) / len(rows),
        "l2": -sum(float((row**2).sum().sqrt()) for row in rows) / len(rows),
        "linf": -sum(float(row.max()) for row in rows) / len(rows),
    }
    for kind, value in plain.items():
        assert objectives.penalty(kind, pattern).item() == pytest.approx(value, rel=1e-4)


def test_schedules_of_the_penalty() -> None:
    def weight(schedule: str, step: int) -> float:
        sharpen = {"weight": 2.0, "schedule": schedule, "start": 100}
        return objectives.penalty_weight(sharpen, step, 1100)

    assert weight("constant", 99) == 0 and weight("constant", 100) == 2
    assert weight("linear", 100) == 0 and weight("linear", 600) == 1
    assert weight("oscillating", 1100) == pytest.approx(2.0) and weight("oscillating", 2100) == pytest.approx(0.0)
    assert objectives.penalty_weight(None, 5, 10) == 0


def test_the_penalty_is_added_with_its_weight() -> None:
    sharpen = {"kind": "linf", "weight": 0.5, "schedule": "constant", "start": 0, "layers": 1}
    of = objectives.Objective({}, settings(sharpen=sharpen))
    pattern = torch.full((2, 4, 1, 11, 11), 0.25)
    metrics = of.loss(lambda ids, record: (torch.zeros(2, 4, 11, 5), {record[0]: pattern}), batch(of))
    assert metrics["cross_entropy"].tolist() == pytest.approx([math.log(5)] * 2)
    assert (metrics["loss"] - metrics["cross_entropy"]).tolist() == pytest.approx([-0.125] * 2)


def test_new_examples_are_a_pure_function_of_the_step() -> None:
    """In any order, across the blocks of steps whose examples are drawn at once."""

    def made() -> Fresh:
        return Fresh(lambda rng, n: rng.integers(2**40, size=(n, 2)), np.random.default_rng, 3)

    plain = made()
    inturn = [plain.at(step) for step in range(3 * TOGETHER)]
    assert len(np.unique(np.concatenate(inturn))) == 3 * TOGETHER * 3 * 2 and inturn[0].shape == (3, 2)
    other = made()
    for step in (2 * TOGETHER, TOGETHER - 1, 5, TOGETHER, 3 * TOGETHER - 1):
        assert (other.at(step) == inturn[step]).all() and (made().at(step) == inturn[step]).all()


def test_epochs_read_the_sequences_of_the_other_job() -> None:
    of = objectives.Objective({}, settings(pool=[1, "flipflop", "x", 4], sequences=8))
    fresh = objectives.Objective({}, settings())
    own = Fresh(fresh.sample, lambda block: stream(1, "flipflop", "x", "replica", 3, "fresh", block), 4)
    tokens = of.collate([3], [np.array([5, 0])], [lambda: np.random.default_rng(0)])["tokens"]
    assert (tokens[0] == np.concatenate([own.at(0), own.at(1)])[[5, 0]]).all()


def test_states_are_asked_everywhere() -> None:
    symbols = torch.tensor([[[2, 0, 1, 0]]])
    inputs, labels = objectives.targets("automaton", "clean", symbols)
    assert (inputs == symbols).all() and labels.tolist() == [[[1, 1, 0, 0]]]


# --- drift -----------------------------------------------------------------------------------------------


def test_switches_from_coefficients() -> None:
    of = exact.Linear(A=np.array([0.0, 1.0, 1.0]), b=0.0, g=np.zeros(3), a=1.0, C=10)
    symbols = np.array([1, *[0] * 20])
    # Key 1 scores 1 + i/100, key i scores i^2/100: equal near i = 10.5.
    assert maps.predicted_switch(of, symbols) == 11
    scores = np.full((21, 21), -np.inf)
    for i in range(1, 22):
        keys = np.arange(1, i + 1)
        scores[i - 1, :i] = of.score(i, keys, symbols[keys - 1])
    assert maps.observed_switch(np.exp(scores), symbols) == 11


def test_weights_of_a_model_stay_below_the_bound_and_a_wrong_norm_does_not_keep_them() -> None:
    """Proposition 4 on a model with random weights, whose queries and keys are large."""
    spec = decoder.Spec(2, 2, 8, "learned", "gelu", 12, 5, 5)
    values = [decoder.initial(spec, np.random.default_rng(seed)) for seed in range(2)]
    params = {name: torch.tensor(np.stack([each[name] for each in values]), dtype=torch.float32) for name in values[0]}
    for layer in range(2):
        params[f"blocks.{layer}.attn.W_QKV"] *= 3
    model: Any = SimpleNamespace(
        entry={"position": "learned"}, replicas=[0, 1], ensemble=SimpleNamespace(params=params)
    )
    tokens = torch.from_numpy(language.sample(np.random.default_rng(1), 6, 12, 0.3, 0.3).astype(np.int64))
    names = maps.names(2, maps.PATTERN, maps.INPUTS)
    _, recorded = decoder.forward(spec, params, torch.zeros(1, 1), tokens[None], record=names)
    patterns, inputs = (maps.stacked(recorded, what, 2) for what in (maps.PATTERN, maps.INPUTS))
    rows = dilution.slack(model, patterns, inputs)
    assert all(row["slack"] >= -1e-6 and row["sigma"] > 0 and 0 < row["bound"] <= 1 for row in rows)
    assert all(row["slack"] < -0.1 for row in dilution.slack(model, patterns, 0.2 * inputs))
    model.entry["position"] = "rope"
    assert dilution.slack(model, patterns, inputs)[0] == {"sigma": None, "bound": None, "slack": None}
