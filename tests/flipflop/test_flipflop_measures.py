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
from pipeline.models.flipflop import decoder
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.analysis import errors, simulation
from pipeline.studies.flipflop.claims import HEADLINES, STATEMENTS
from pipeline.studies.flipflop.measures import interventions, maps, reading
from pipeline.studies.flipflop.names import BASE, GENERATIVE, LINEAR, LINEAR_ARMS, MANY, MANY_FIRST, MANY_SHARP


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
    estimate = errors._excess(known)
    assert estimate.shape == (1,)
    if excess is None:
        assert estimate[0] > 0.1
    else:
        assert abs(estimate[0]) < 1e-9


def test_errors_of_each_model_have_their_own_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = language.sample(np.random.default_rng(0), 50, 24, 0.3, 0.3)
    targets = language.reads(tokens).target
    answers = np.stack([targets, np.where(np.arange(len(targets)) < 3, 1 - targets, targets)])
    monkeypatch.setattr(reading, "held", lambda context, of, dataset="": {"val": tokens, "dense": tokens})
    config: Any = SimpleNamespace(
        name="x",
        entry={"family": "baseline", "dataset": "s", "train": [0.8]},
        seeds=[(0, 0, 0), (1, 1, 1)],
        answers=lambda strings: (answers, answers),
    )
    context: Any = SimpleNamespace(
        settings=SimpleNamespace(confidence=0.95, learned=0.001), dataset=lambda name: frame({"val": (0.8, tokens)})
    )
    rows, bins = reading.final(context, config)
    assert [row["n_err"] for row in rows] == [0, 3, 0, 3]
    assert [row["learned"] for row in rows] == [True, False] * 2
    assert {row["n"] for row in bins} == {1} and sum(row["n_err"] for row in bins) == 0  # of the one that learned
    for row in rows:
        interval = stats.binomtest(row["n_err"], len(targets)).proportion_ci(0.95, method="exact")
        assert (row["lo"], row["hi"]) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert row["lo"] <= row["error"] < row["hi"]


def frame(sets: dict[str, tuple[float, np.ndarray]]) -> pl.DataFrame:
    """Return a dataset of sets with the p_ignore of their language and their strings."""
    rows = [(name, p, row.tolist()) for name, (p, tokens) in sets.items() for row in tokens]
    schema: Any = {"set": pl.String, "p_ignore": pl.Float64, "tokens": pl.List(pl.UInt8)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_models_of_a_mixture_are_judged_on_its_languages() -> None:
    rng = np.random.default_rng(0)
    sets = {
        name: (p, language.sample(rng, 20, 24, (1 - p) / 2, (1 - p) / 2))
        for name, p in (("val", 0.8), ("mix", 0.9), ("dense", 0.1))
    }
    shares = {tokens.tobytes(): share for share, (_, tokens) in zip((1.0, 0.2, 0.4), sets.values(), strict=True)}
    context: Any = SimpleNamespace(dataset=lambda name: frame(sets))

    def error(train: list[float]) -> list[float]:
        config: Any = SimpleNamespace(entry={"dataset": "s", "train": train})
        found = reading.own_error(context, config, lambda tokens: np.full((2, 5), shares[tokens.tobytes()]))
        return [float(each) for each in found]

    assert error([0.8]) == [1.0, 1.0] and error([0.9, 0.1]) == pytest.approx([0.3, 0.3])


def test_where_nothing_errs_there_is_nothing_to_reduce() -> None:
    added: list[tuple[int, int, str]] = []
    known: Any = SimpleNamespace(
        good=lambda run, name: np.array({"dense": [0.1, 0.2, 0.0], "sparse": [0.1, 0.0, 0.0]}[name]),
        found=SimpleNamespace(
            add=lambda comparison, own, other, excluded, reason="": added.append((len(own), excluded, reason))
        ),
    )
    for name in ("dense", "sparse"):
        errors.Known.compare(known, comparisons.REMOVED[name], np.zeros(4), np.zeros(3), 1, (BASE, name))
    assert added == [(4, 1, ""), (0, 4, errors.FLOORED)]


def sizes(**changed: list[float]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the samples of the correlations with depth, width and heads, where models have these log errors."""
    shapes = {
        BASE: (6, 512, 8),
        "flipflop-l2": (2, 512, 8),
        "flipflop-l4": (4, 512, 8),
        "flipflop-d128": (6, 128, 8),
        "flipflop-d1024": (6, 1024, 8),
        "flipflop-h2": (6, 512, 2),
        "flipflop-h16": (6, 512, 16),
        "flipflop-l8-d1024": (8, 1024, 8),
    }
    rng = np.random.default_rng(0)
    logs = {run: np.array(changed.get(run[9:], rng.normal(size=9 if run == BASE else 3))) for run in shapes}
    samples: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    known: Any = SimpleNamespace(
        configs={
            run: SimpleNamespace(entry=dict(zip(("layers", "width", "heads"), shape, strict=True)))
            for run, shape in shapes.items()
        },
        of=lambda run, name: logs[run],
        good_decades=lambda run, name: logs[run],
        lost=lambda *runs: 0,
        found=SimpleNamespace(add=lambda comparison, *pair, excluded: samples.update({comparison.key: pair})),
    )
    errors._sizes(known)
    return samples


def test_correlations_with_size_take_as_many_models_of_each() -> None:
    plain, largest = sizes(), sizes(**{"l8-d1024": [9.0] * 3})
    depths, values = plain["size-dense-layers"]
    assert depths.tolist() == [6] * 3 + [2] * 3 + [4] * 3 and len(values) == 9
    # A model of two sizes at once has no part in them.
    assert all((plain[key][1] == largest[key][1]).all() for key in plain)
    few = sizes(l2=[], l4=[])
    assert len(few["size-dense-layers"][0]) == 0 and len(few["size-dense-width"][0]) == 9


def test_a_rise_before_a_model_has_learned_does_not_count() -> None:
    def unsteady(val: list[float], dense: list[float]) -> list[float]:
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
            curves=curves,
            configs={BASE: config},
            learned=lambda run: np.array([True]),
            read_count=lambda *of: 1000,
            context=SimpleNamespace(
                settings=SimpleNamespace(learned=0.001), dataset=lambda name: pl.DataFrame({"set": ["dense", "sparse"]})
            ),
        )
        rises: list[float] = errors._rises(known).tolist()
        return rises

    assert unsteady([0.5, 0, 0, 0], [0.0, 0.1, 0.1, 0.5]) == [1]
    assert unsteady([0.5, 0.5, 0.5, 0], [0.0, 0.1, 0.5, 0.5]) == [0]
    assert unsteady([0.5, 0.5, 0.5, 0.5], [0.0, 0.1, 0.1, 0.5]) == [0]


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
            for run in (MANY, MANY_SHARP, MANY_FIRST)
            for r in range(3)
            for layer in (1, 2)
            for head in (1, 2)
        ],
        schema=["run", "replica", "layer", "head", "max_weight", "ideal"],
        orient="row",
    )
    config: Any = SimpleNamespace(entry={"steps": 8, "length": 4})
    norms = pl.DataFrame(
        [
            (run, r, step, 10.0 if run == MANY or step < 8 else 1.0)
            for run in (MANY, MANY_SHARP)
            for r in range(3)
            for step in (0, 8)
        ],
        schema=["run", "replica", "step", "frobenius"],
        orient="row",
    )
    known = simulation.Known({MANY: config, MANY_SHARP: config}, pl.DataFrame(), heads, norms, pl.DataFrame())
    assert known.ideal(MANY_SHARP).tolist() == [1, 1, 1] and known.ideal(MANY).tolist() == [0, 0, 0]
    assert known.later(MANY_FIRST) - known.later(MANY) == pytest.approx(0.2)
    assert known.size(MANY_SHARP) - known.size(MANY) == pytest.approx(-1) and len(known.size(MANY_FIRST)) == 0
    assert len(known.of("flipflop-one-l2", "p05")) == 0


def test_pairs_of_which_one_model_did_not_learn_are_left_out() -> None:
    rows = [
        (run, r, name, 8, 0.001 * (r + 1) + (run == "b"), not (run == "a" and r == 1))
        for run in ("a", "b")
        for r in range(3)
        for name in ("p05", "p098")
    ]
    measured = pl.DataFrame(rows, schema=["run", "replica", "set", "length", "error", "learned"], orient="row")
    configs: Any = {run: SimpleNamespace(entry={"train": [0.5], "length": 8}, replicas=[0, 1, 2]) for run in ("a", "b")}
    known = simulation.Known(configs, measured, pl.DataFrame(), pl.DataFrame(), pl.DataFrame())
    first, second, lost = known.paired("b", "a", lambda run: known.of(run, "p098"))
    assert lost == 1 and first - second == pytest.approx([1, 1]) and len(known.paired("b", "c", known.later)[0]) == 0


@pytest.mark.parametrize("position", ["learned", "sin"])
def test_attention_that_is_changed_is_the_model_s_own_otherwise(position: str) -> None:
    spec = decoder.Spec(2, 2, 8, position, "gelu", 24, 5, 5)
    drawn = [decoder.initial(spec, np.random.default_rng(seed)) for seed in (0, 1)]
    params = {name: torch.tensor(np.stack([each[name] for each in drawn]), dtype=torch.float32) for name in drawn[0]}
    params["blocks.1.attn.W_O"] *= 5  # so that attention matters
    tokens = language.sample(np.random.default_rng(0), 20, 24, 0.3, 0.3)
    reads = language.reads(tokens)
    ids = torch.from_numpy(tokens[:, :-1].astype(np.int64))[None]
    names = ("blocks.1.attn.pattern", "blocks.1.attn.norms")
    logits, recorded = decoder.forward(spec, params, torch.zeros(1, 1), ids, record=names)
    seen = interventions.seen(spec, params, tokens)
    answers = logits[:, reads.row, 2 * reads.pair].argmax(-1).numpy() - language.DATA
    assert ((answers != reads.target) == seen.wrong).all() and (seen.patched_wrong != seen.wrong).any()
    pattern, norms = (recorded[name].numpy() for name in names)
    weights = pattern.swapaxes(2, 3)[:, reads.row, 2 * reads.pair]  # (R, reads, H, T)
    last = 2 * (reads.pair - reads.dist_write)
    both = [np.take_along_axis(weights, (last + k)[None, :, None, None], 3)[..., 0] for k in (0, 1)]
    assert np.allclose((both[0] + both[1]).mean(-1), seen.on_write, atol=1e-6)
    heavy = (weights * norms[:, reads.row]).sum(2)
    shown = tokens[reads.row, :-1].astype(int) - language.DATA
    sides = [(heavy * (shown == bit[:, None])).sum(-1) for bit in (1 - reads.target, reads.target)]
    assert ((sides[0] > sides[1]) == seen.votes).all()
    # A model whose last layer is told to look at the last write alone, read by read: keys elsewhere are masked.
    x, scores, v = interventions.last_layer(spec, params, tokens[:, :-1])
    for n, (row, pair, write) in enumerate(zip(reads.row, reads.pair, last, strict=True)):
        kept = torch.full_like(scores[:, row, :, 2 * pair], -torch.inf)
        kept[..., write : write + 2] = scores[:, row, :, 2 * pair, write : write + 2]
        mixed = (kept.softmax(-1)[..., None, :] @ v[:, row]).reshape(2, 1, 8)
        stream = interventions.added(spec, params, 1, x[:, row, 2 * pair][:, None], mixed)
        stream = decoder._norm(params, "ln", stream)
        answer = (stream @ params["head.W"] + params["head.b"][:, None]).argmax(-1)[:, 0].numpy() - language.DATA
        assert ((answer != reads.target[n]) == seen.patched_wrong[:, n]).all()


# --- grids ---------------------------------------------------------------------------------------------


def test_the_grids_of_the_chapter_are_trained_at_paper() -> None:
    groups = load_study("flipflop", "paper").runs.values()
    entries: dict[str, Any] = {name: each for group in groups for name, each in group.members.items()}
    members = {name: each for name, each in entries.items() if each.study == "flipflop" and each.replicas}

    def of(family: str) -> list[Any]:
        return [each for each in members.values() if getattr(each, "family", "") == family]

    sharp = {
        (each.sharpen.kind, each.sharpen.weight, each.sharpen.schedule, each.sharpen.start) for each in of("sharpen")
    }
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
    }
    assert {(0.5, s, p) for s in (True, False) for p in ("learned", "sin", "alibi")} <= combined
    assert {(e.layers, e.width, e.heads) for e in of("scale_size")} >= {
        *((n, 512, 8) for n in (2, 4, 8)),
        *((6, d, 8) for d in (128, 256, 1024)),
        *((6, 512, h) for h in (2, 4, 16)),
        (8, 1024, 8),
    }
    arms = {
        (each.family, each.train[0], each.sharpen and each.sharpen.kind)
        for each in members.values()
        if getattr(each, "family", "") in ("linear", "one_head")
    }
    assert arms == {
        (family, p, kind) for family in ("linear", "one_head") for p in (0.5, 0.9) for kind in (None, *kinds)
    }
    assert members[LINEAR].length == 500 and len(LINEAR_ARMS) == 2
    middle = {(each.position, each.dropout.embed, each.sharpen is not None, len(each.train)) for each in of("middle")}
    assert middle == {("learned", 0, False, 1), ("learned", 0, False, 3), ("sin", 0, False, 1)} | {
        ("learned", 0.5, False, 1),
        ("learned", 0, True, 1),
    }
    assert {(each.layers, each.heads, each.width, each.length) for each in of("middle")} == {(4, 4, 128, 512)}


def test_headlines_are_decided_at_quick_on_six_models_in_each_arm() -> None:
    groups = load_study("flipflop", "quick").runs.values()
    replicas = {name: each.replicas for group in groups for name, each in group.members.items()}
    decided = (
        comparisons.FITTED,
        comparisons.GLITCHES[BASE],
        comparisons.LSTM_CLEAN,
        comparisons.GAP,
        comparisons.REMOVED["dense"],
        comparisons.POSITIONS["sinusoidal"],
        comparisons.WEIGHTS["linear positions", "entropy"],
        comparisons.PERSISTS,
        comparisons.LEAVES,
    )
    for comparison in decided:
        assert all(sum(replicas[run] for run in arm.runs) >= 6 for arm in comparison.arms), comparison.key
    gates = {number for numbers in HEADLINES.values() for number in numbers}
    assert gates <= set(STATEMENTS) and len(HEADLINES) == 6
