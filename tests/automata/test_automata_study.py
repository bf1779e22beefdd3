"""The study: what is published, what parameters refuse, claims on tables, and all of it at smoke scale."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from figure_words import unsaid
from fitting import fitting
from pydantic import ValidationError
from scipy import stats as scipy_stats
from workspace import Workspace, load_study

from pipeline.errors import SandglassError
from pipeline.kit import charts
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.intervals import NONE, STUDENT
from pipeline.kit.verdicts import Gate
from pipeline.languages import automata
from pipeline.models.automata import exact, gpt
from pipeline.store import tables
from pipeline.studies.automata import comparisons, datasets, inputs, names, runs
from pipeline.studies.automata.analysis import attention, brittleness
from pipeline.studies.automata.analysis.depth import _first_depths
from pipeline.studies.automata.claims import STATEMENTS, depth, robustness, stabilisers, theory
from pipeline.studies.automata.comparisons import BOTH
from pipeline.studies.automata.figures import stabilisers as stabilised
from pipeline.studies.automata.measures import published
from pipeline.studies.automata.measures.arms import Arm, Sample, compare
from pipeline.studies.automata.params import Dataset
from pipeline.studies.automata.theory import counters
from pipeline.training import core, ensemble, jobs
from schemas.automata.datasets import SCHEMA
from schemas.automata.tables import SCHEMAS
from schemas.automata.tasks import OBSERVED, TASKS
from schemas.claims import FAILS, HOLDS, NOT_RUN, TOO_FEW
from schemas.comparisons import MEASURED
from schemas.comparisons import NOT_RUN as NOT_RUN_HERE
from schemas.comparisons import TOO_FEW as TOO_FEW_HERE


def test_published_cells() -> None:
    cells = published.cells()
    assert cells.filter(figure="3.15", task="grid9", depth=1)["value"].item() == 92.2
    assert cells.filter(figure="3.16", task="s5", depth=16)["value"].item() == 99.1
    values = cells["value"].drop_nulls()
    assert values.filter((values > 62.7) & (values < 75.6)).len() == 0
    depths = {task: depth for task, (depth, _) in published.minimum_depths().items()}
    assert (depths["dyck42"], depths["grid9"], depths["a4"], depths["s5"], depths["a5"]) == (1, 2, 10, 13, 7)
    assert published.minimum_depths()["a5"][1] and not published.minimum_depths()["c5"][1]


def dataset(**changes: Any) -> Dataset:
    base = {"study": "automata", "language": "automata", "tasks": ["c2"], "length": 6, "train": 8, "held": 4}
    return Dataset(**(base | changes))


def test_splits_follow_their_laws_and_are_validated() -> None:
    made, _ = datasets.generate(dataset(probabilities=[0.0, 1.0], counts=3, lengths=[9], probes=5), "x", 1)
    tables.validate(made, SCHEMA, "made")
    assert made.group_by("split").len().sort("split").rows() == [
        ("count", 15),
        ("length", 5),
        ("probability", 10),
        ("test", 4),
        ("train", 8),
        ("validation", 4),
    ]
    assert made.filter(p1=1.0)["tokens"].list.sum().to_list() == [6] * 5
    wrong = made.with_columns(states=pl.col("states").list.eval((pl.element() + 1) % 2))
    with pytest.raises(SandglassError, match="the states are those of the automaton"):
        tables.validate(wrong, SCHEMA, "made")
    again, _ = datasets.generate(dataset(train=16), "x", 1)
    assert again.filter(split="test").equals(datasets.generate(dataset(), "x", 1)[0].filter(split="test"))


def test_no_input_of_a_test_is_one_of_training() -> None:
    made, _ = datasets.generate(dataset(tasks=["c2", "grid9"], train=40, held=30, lengths=[6, 9], probes=20), "x", 1)
    for (_,), rows in made.group_by("task"):
        trained = set(map(tuple, rows.filter(split="train")["tokens"].to_list()))
        tested = rows.filter(pl.col("split") != "train", pl.col("length") == 6)
        assert tested.height == 80 and not trained.intersection(map(tuple, tested["tokens"].to_list()))
    some = made.filter(split="test").head(1)
    with pytest.raises(SandglassError, match="no input of validation or test is one of training"):
        tables.validate(pl.concat([made, some.with_columns(split=pl.lit("train"))]), SCHEMA, "made")
    with pytest.raises(SandglassError, match="c2: next to all inputs of length 6 are among the training sequences"):
        datasets.generate(dataset(train=2000), "x", 1)
    tables.validate(datasets.generate(dataset(tasks=["abab1", "abab2"]), "x", 1)[0], SCHEMA, "made")  # one input recurs


def test_the_law_without_the_inputs_of_training_is_the_law() -> None:
    """Where all inputs are as probable, those that are left are so as well."""
    made, _ = datasets.generate(dataset(length=4, train=10, held=4000), "x", 1)
    left = made.filter(split="test").group_by("tokens").len()
    assert left.height == 16 - made.filter(split="train")["tokens"].n_unique()
    assert scipy_stats.chisquare(left["len"].to_numpy()).pvalue > 1e-3


@pytest.mark.parametrize("scale", ["quick", "long", "paper"])
def test_every_run_is_read_and_compared_with_enough_others(scale: str) -> None:
    members = load_study("automata", scale).members("runs")
    trained = {run: entry for run, entry in members.items() if entry.study == "automata" and entry.replicas}
    compared = {run for each in comparisons.DECLARED for arm in each.arms for run in arm.runs}
    drawn = [f"automata-d8-dropout{n}" for n in (2, 3)] + [run for run in trained if "-incomplete-" in run]
    assert not trained.keys() - compared - set(drawn) - names.TINY.keys()
    # Of the models of C2 with four layers not all learn their task: there are more of them.
    assert {entry.replicas for run, entry in trained.items() if run in compared} == {6, 9}
    depths = {
        arm: next(trained[run].layers for run in runs if run in trained)
        for arm, runs in names.C2.items()
        if arm != "lstm" and any(run in trained for run in runs)
    }
    assert scale == "quick" or (len(set(depths.values())) == 1 and len(depths) == 5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ["c9"]}, "tasks"),
        ({"tasks": ["grid9"], "counts": 1, "probes": 2}, "are for c2 alone"),
        ({"lengths": [9]}, "probes must be there exactly with"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        dataset(**changes)


def test_a_run_that_would_read_sequences_twice_is_refused() -> None:
    loaded = load_study("automata")
    entry = loaded.members("runs")["automata-c2-l4"]
    source = loaded.members("datasets")[entry.dataset].model_copy(update={"train": 3})
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    with pytest.raises(
        SandglassError, match=r"holds 3 training sequences, but .* raise datasets.automata-parity.train"
    ):
        runs.prepare(entry, frame, loaded.seed)
    with pytest.raises(SandglassError, match="has no task d8; it has: c2"):
        runs.prepare(entry.model_copy(update={"task": "d8"}), frame, loaded.seed)


@pytest.mark.parametrize(
    "run",
    [
        "automata-grid9-l12",
        "automata-c2-shift",
        "automata-c2-recency",
        "automata-s5-first-gpt",
        "automata-dyck48-top-lstm",
    ],
)
def test_paper_size_builds_and_takes_steps(tmp_path: Path, run: str) -> None:
    """The full-size shapes at their length, on few sequences and in small batches."""
    loaded = load_study("automata", "paper")
    entry = loaded.members("runs")[run].model_copy(update={"replicas": 1, "batch": 4, "steps": 2, "warmup": 1})
    few = {"train": 8, "held": 4, "probabilities": None, "counts": None, "lengths": None, "probes": None}
    source = loaded.members("datasets")[entry.dataset].model_copy(update=few)
    frame, _ = datasets.generate(source, entry.dataset, loaded.seed)
    header, data, table = runs.prepare(entry, frame, loaded.seed)
    ensemble.write_job(tmp_path / "job.safetensors", header, data, table)
    state = core.train_chunk(jobs.TrainingJob(tmp_path / "job.safetensors"), [0], torch.device("cpu"))
    assert (state.diverged_at == -1).all() and torch.isfinite(state.flat).all()
    assert all(torch.isfinite(average).all() for average in state.averages.values())


def test_inputs_in_words() -> None:
    assert inputs.encode({"task": "abab1"}, "a b a").tolist() == [[0, 1, 0]]
    with pytest.raises(SandglassError, match="symbol 'c' is not in the alphabet of abab1: a, b"):
        inputs.encode({"task": "abab1"}, "a c")
    assert inputs.labels({"task": "c4-zero"}, 2) == ["0", "0"] or len(inputs.labels({"task": "c4-zero"}, 2)) == 2


def test_count_coverage_of_the_chapter() -> None:
    """The numbers of chapter 4.11, T = 40, N = 6e5."""
    from scipy import stats

    t, c = np.arange(1, 41)[:, None], np.arange(41)[None]
    often = 6e5 * stats.binom.pmf(c, t, 0.5)
    for seen, expected in ((1, (0.803, 0.884, 0.983, 1.0)), (1000, (0.640, 0.680, 0.807, 0.999))):
        for p, value in zip((0.05, 0.1, 0.2, 0.5), expected, strict=True):
            guessed = (stats.binom.pmf(c, t, p) * (often < seen)).sum(1).mean()
            assert 1 - guessed / 2 == pytest.approx(value, abs=6e-4)


def test_the_study_is_built(smoke: Workspace) -> None:
    data = smoke.path / "data"
    claims = pl.read_parquet(data / "claims/automata/claims.parquet")
    assert set(claims["claim"]) == set(STATEMENTS)
    moves = pl.read_parquet(data / "tables/automata/automata-objects/transitions.parquet")
    assert moves["automaton"].n_unique() == len(automata.TASKS) + 3
    assert (data / "report/study/automata.html").is_file()
    # A checkpoint's arrays come in another order in every process; those of the table do not.
    weights = pl.read_parquet(data / "tables/automata/automata-explorer/explorer.parquet")
    for (_,), of in weights.filter(kind="trained").group_by("automaton"):
        layers = int(of.filter(part="layers")["values"].item()[0])
        named = gpt.shapes(gpt.Spec(layers, 1, 1, 1, "sin", 0.0, 1, 1))
        assert of["part"].to_list() == [*named, "layers", "heads", "length", "most", "accuracy"]


def test_tasks_have_one_order() -> None:
    """The schemas of tables list the tasks themselves, so that figures and claims load no algebra."""
    assert tuple(TASKS) == automata.TASKS and tuple(OBSERVED) == automata.OBSERVED


# --- claims on comparisons of which every gate holds --------------------------------------------------------

GROUPS = (depth, stabilisers, robustness)


def row_of(comparison: Comparison, value: float | None, /, **changes: Any) -> dict[str, Any]:
    """Return the row of a comparison, of six units that agree; without a value, one that was not run."""
    columns: dict[str, Any] = {"value": value, "lo": value, "hi": value, "interval": STUDENT, "n": 6, "fewest": 5}
    if value is None:
        columns |= {"interval": NONE, "n": 0, "fewest": 0}
    same = {"comparison": comparison.key, "measure": comparison.words, "confidence": 0.95, "n_excluded": 0}
    state = NOT_RUN_HERE if value is None else MEASURED
    return same | columns | {"excluded_reason": "", "state": state} | changes


def context_of(values: Mapping[str, float | None], scale: str = "paper", **changes: Any) -> Any:
    """Return what claims read, with these values by comparison; each with the same changes of its columns."""
    rows = [row_of(each, values[each.key], **changes) for each in comparisons.DECLARED]
    table = pl.DataFrame(rows, infer_schema_length=None)
    read = fitting({"comparisons": table}, SCHEMAS)
    settings = SimpleNamespace(best_of=20)
    return SimpleNamespace(table=read.__getitem__, settings=settings, study="automata", scale=scale)


def gates_of(context: Any) -> list[Gate]:
    return [gate for group in GROUPS for gate in group.gates(context)]


def within(gate: Gate) -> float:
    """Return a number that meets all conditions of a gate."""
    lows = [each.bound for each in gate.conditions if each.comparison in (">", ">=")]
    highs = [each.bound for each in gate.conditions if each.comparison in ("<", "<=")]
    low = max(lows) if lows else min(highs) - 0.02
    return (low + (min(highs) if highs else low + 0.02)) / 2


def holding() -> dict[str, float | None]:
    """Return values at which every gate holds."""
    nothing: dict[str, float | None] = {each.key: None for each in comparisons.DECLARED}
    return {gate.comparison: within(gate) for gate in gates_of(context_of(nothing))}


def verdicts_of(context: Any) -> dict[str, str]:
    return {f"{gate.claim}, {gate.gate}": gate.verdict(context.scale)[0] for gate in gates_of(context)}


def test_every_comparison_is_judged_and_of_runs_that_exist() -> None:
    assert holding().keys() == {each.key for each in comparisons.DECLARED}
    members = load_study("automata", "paper").members("runs").keys()
    named = {run for each in comparisons.DECLARED for arm in each.arms for run in arm.runs}
    missing = {run for run in named if run not in members}
    assert missing == set()


def test_every_gate_holds_where_everything_does() -> None:
    assert set(verdicts_of(context_of(holding())).values()) == {HOLDS}


@pytest.mark.parametrize("column", ["value", "lo"])
@pytest.mark.parametrize("none", [None, float("nan")])
def test_every_gate_falls_whose_number_is_none(column: str, none: float | None) -> None:
    assert set(verdicts_of(context_of(holding(), **{column: none})).values()) == {FAILS}


def test_every_gate_turns_with_its_comparison_alone() -> None:
    values = holding()
    for gate in gates_of(context_of(values))[::25]:  # of all: test_gates, by what the comparison found
        beyond = 1e9 if any(each.comparison in ("<", "<=") for each in gate.conditions) else -1e9
        told = verdicts_of(context_of(values | {gate.comparison: beyond}))
        assert [key for key, verdict in told.items() if verdict != HOLDS] == [f"{gate.claim}, {gate.gate}"]


def test_few_models_and_none_are_no_evidence() -> None:
    few = verdicts_of(context_of(holding(), n=4, state=TOO_FEW_HERE))
    assert set(few.values()) == {TOO_FEW}
    nothing: dict[str, float | None] = {each.key: None for each in comparisons.DECLARED}
    assert set(verdicts_of(context_of(nothing)).values()) == {NOT_RUN}


# --- what is measured, on small cases -----------------------------------------------------------------------


def an_arm(run: str, replicas: list[int], validation: list[float], diverged: int = 0) -> Arm:
    return Arm(
        run,
        {},
        automata.task("c2"),
        None,
        replicas,
        0.1,
        False,
        diverged,
        np.zeros(len(replicas)),
        np.array(validation),
    )


def found_by(experiment: str, measure: Callable[[Any, Measurements], None], *runs: str) -> dict[str, dict[str, Any]]:
    settings = SimpleNamespace(confidence=0.95, solved=0.99)
    context: Any = SimpleNamespace(study="automata", experiment=experiment, settings=settings, runs=lambda: runs)
    found = Measurements(context)
    measure(context, found)
    return found.rows


def test_twins_are_compared_where_both_learned() -> None:
    """Models 0 and 2 learned in both arms; of model 1 the second arm lacks the twin, and model 3 did not learn."""
    comparison = comparisons.AGAINST_PLAIN["shift"]
    first, second = (arm.runs[0] for arm in comparison.arms)
    samples = {
        first: Sample(an_arm(first, [0, 1, 2, 3], [1, 1, 1, 0.5]), np.array([0.9, 0.0, 0.7, 0.0])),
        second: Sample(an_arm(second, [0, 2, 3], [1, 1, 1], diverged=1), np.array([0.5, 0.6, 1.0])),
    }
    row = found_by(
        "automata-shifts", lambda context, found: compare(context, found, comparison, samples), first, second
    )[comparison.key]
    assert row["value"] == pytest.approx((0.4 + 0.1) / 2) and row["n"] == 2 and row["n_excluded"] == 4
    assert row["interval"] == STUDENT and "twin" in row["excluded_reason"]


def test_arms_of_other_shapes_are_independent() -> None:
    comparison = comparisons.HARDER["d8", "q8", 2]
    first, second = (arm.runs[0] for arm in comparison.arms)
    x, y = np.array([0.5, 0.7, 0.6, 0.8, 0.6]), np.array([0.2, 0.5, 0.35, 0.3, 0.2, 0.4])
    samples = {run: Sample(an_arm(run, [*range(len(v))], [0.5] * len(v)), v) for run, v in ((first, x), (second, y))}
    row = found_by(
        "automata-accuracy", lambda context, found: compare(context, found, comparison, samples), first, second
    )[comparison.key]
    ends = scipy_stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert (row["lo"], row["hi"]) == pytest.approx(tuple(ends)) and row["n"] == 5 and row["n_excluded"] == 0


def test_what_was_not_trained_is_not_compared_and_what_diverged_is_empty() -> None:
    comparison = comparisons.GAIN["d8", 4]
    four, one = (arm.runs[0] for arm in comparison.arms)
    samples = {one: Sample(an_arm(one, [0, 1], [1, 1]), np.array([0.1, 0.2]))}

    def measure(context: Any, found: Measurements) -> None:
        compare(context, found, comparison, samples)

    assert found_by("automata-accuracy", measure, one) == {}
    row = found_by("automata-accuracy", measure, one, four)[comparison.key]
    assert (row["n"], row["state"]) == (0, TOO_FEW_HERE)


@pytest.mark.parametrize(
    ("solved", "harder"),
    [  # from which depth on A4, and S4 and S5, are solved; layers that these take more, None if nothing can be said
        ((2, 4), 2.0),
        ((2, None), 3.0),  # five, one more than the deepest, less two
        ((None, 2), -3.0),  # the harder ones are solved and the easier one is not
        ((None, None), None),
    ],
)
def test_how_many_layers_more_a_harder_task_takes(solved: tuple[int | None, int | None], harder: float | None) -> None:
    easy, hard = ("a4",), ("s4", "s5")
    comparison = comparisons.LATER[easy, hard]

    def accuracies(depth: int, first: int | None) -> Sample:
        right = first is not None and depth >= first
        return Sample(an_arm("run", [*range(6)], [1.0] * 6), np.full(6, 1.0 if right else 0.5))

    cells = {
        (task, level): accuracies(level, first)
        for tasks, first in zip((easy, hard), solved, strict=True)
        for task in tasks
        for level in (1, 2, 4)
    }
    runs = [arm.runs[0] for arm in comparison.arms]
    rows = found_by(comparisons.DEPTH, lambda context, found: _first_depths(context, found, cells), *runs)
    row = rows[comparison.key]
    assert (row["value"], row["n"]) == ((None, 0) if harder is None else (harder, 6))
    assert rows[comparisons.ORDER.key]["state"] == NOT_RUN_HERE  # of most tasks there is nothing


def test_a_model_that_is_right_everywhere_does_not_fail_at_an_end() -> None:
    run, key = "automata-c2-l4", comparisons.WORST.key
    curves = {0.05: [1, 0.9, 0.9], 0.5: [1, 1, 0.8], 0.95: [1, 0.8, 1]}
    shifted = {run: (an_arm(run, [0, 1, 2], [1, 1, 1]), {p: np.array(v, float) for p, v in curves.items()})}
    row = found_by("automata-shifts", lambda context, found: brittleness._probability(context, found, shifted), run)[
        key
    ]
    assert row["value"] == pytest.approx(1 / 3)  # only the second is worse at an end than within


def test_prediction_by_number_of_ones() -> None:
    """With two symbols: a count of 1 at either place, of 0 and 2 at the ends."""
    assert brittleness.predicted_by_count(10**6, 2, BOTH, 1).tolist() == [1, 1, 1]
    # 1500 sequences show each of the counts 0 and 2 at position 2 some 375 times, and 1 some 750 times.
    assert brittleness.predicted_by_count(1500, 2, BOTH, 500).tolist() == [0.75, 1, 0.75]


def test_a_head_that_prefers_late_places_or_one_symbol_does_not_look_at_states() -> None:
    rng = np.random.default_rng(0)
    tokens, states = automata.sample("grid9", 24, 400, rng)
    moves = np.where(tokens == 1, 1.0, -1.0)[:, None, None] * np.ones((1, 1, 24, 1))
    late = -0.3 * (np.arange(24)[:, None] - np.arange(24)[None])
    at_end = (states == 8) | (states == 0)
    scores = np.stack([np.broadcast_to(late, (400, 24, 24)), late + moves[:, 0], 3.0 * at_end[:, None] + 0 * late], 1)
    masked = np.where(np.tril(np.ones((24, 24), bool)), scores, -np.inf)
    weights = np.exp(masked - masked.max(-1, keepdims=True))
    pattern = (weights / weights.sum(-1, keepdims=True))[None]
    arm = an_arm("automata-attention", [0], [1])
    heads = pl.DataFrame(list(attention._metrics(arm, [pattern], tokens, states, 8)))
    lifts = heads.select("blind_lift_0", "blind_lift_S").to_numpy()
    assert heads["lift_S"][0] > 1.5  # of uniform attention, though it sees no state
    assert np.abs(lifts[:2] - 1).max() < 0.25 and lifts[2].min() > 1.3


def test_of_each_model_the_head_counts_that_shows_most() -> None:
    """Six models: of the last no head looks at state 0, and of the fifth the head that looks sees what is before."""
    rows = []
    for replica, trained, layer, head in itertools.product(range(6), (True, False), (1, 2), (0, 1)):
        looks = trained and layer == 2 and (replica < 5 or head == 1)
        lifts = {f"blind_lift_{name}": 2.0 + head if looks and head == k else 1.0 for k, name in enumerate("0S")}
        mass = {"pre_reset_mass": 0.4 if replica == 4 else 0.1, "uniformity": 0.95 if layer == 1 else 0.5}
        about = {"trained": trained, "replica": replica, "layer": layer, "last_layer": layer == 2}
        rows.append(about | lifts | mass)
    metrics = pl.DataFrame(rows).with_columns(pre_reset_blind=0.5)
    arm = an_arm("automata-attention", [*range(6)], [1] * 6)
    settings = SimpleNamespace(confidence=0.95, solved=0.99)
    context: Any = SimpleNamespace(
        study="automata", experiment="automata-maps", settings=settings, runs=lambda: ["automata-attention"]
    )
    found = attention._compared(context, metrics, arm, arm)
    assert dict(found.select("comparison", "value").iter_rows()) == pytest.approx(
        {
            "boundary": 5 / 6,
            "boundary-untrained": 5 / 6,
            "uniform": 1,
            "uniform-first": 1,
            "uniform-untrained": 0,
            "before": 5 / 6,
        }
    )


# --- claims on theory rows ----------------------------------------------------------------------------------


def test_gates_of_theory_fall_with_their_rows() -> None:
    rows = [
        {"claim": claim, "part": part, "check": f"{claim}-{part}-{k}", "passed": True, "measured": 0.0}
        for claim, parts in theory.PARTS.items()
        for part in parts
        for k in range(2)
    ] + [
        {"claim": "", "part": "", "check": check, "passed": True, "measured": 0.0}
        for check, _ in theory.ALGORITHM.values()
    ]
    frame = pl.DataFrame(rows).with_columns(
        bound=pl.lit(0.0), tolerance=None, comparison=pl.lit("<="), statement=pl.lit("x"), source=pl.lit("x")
    )

    def told(rows: pl.DataFrame) -> dict[str, str]:
        context: Any = SimpleNamespace(theory=lambda: rows)
        return {f"{gate.claim}, {gate.gate}": gate.verdict("quick")[0] for gate in theory.gates(context)}

    before = told(frame)
    assert set(before.values()) == {HOLDS} and {key.split(",")[0] for key in before} == set("123456")
    for row in range(frame.height):
        bad = pl.int_range(pl.len()) == row
        failed = {"passed": pl.col("passed") & ~bad, "measured": pl.when(bad).then(1.0).otherwise("measured")}
        assert list(told(frame.with_columns(**failed)).values()).count(FAILS) == 1, frame["check"][row]
    with pytest.raises(SandglassError, match="no theory check belongs to the part"):
        told(frame.filter(~((pl.col("claim") == "3") & (pl.col("part") == "A5"))))


def test_weights_of_a_memory_stay_within_the_mended_bound_alone() -> None:
    """The proof's sharpness is T log(16 |Q| T), above the printed 2T log(|Q|T) where |Q|T is below 16."""
    rows = counters.check(SimpleNamespace(sequences=4, length=8, short=4), "automata-counters", 1)
    norms = {row["form"]: row for row in rows.filter(erratum="automata-lemma-16-norm").iter_rows(named=True)}
    assert norms["printed"]["measured"] > 1.2 and norms["corrected"]["measured"] == pytest.approx(1)
    assert norms["printed"]["passed"] and norms["corrected"]["passed"]
    assert exact.memory(2, 0, 7).network.sizes["norm"] > max(10, 14 * np.log(14))  # as mended before


@pytest.mark.parametrize("averages", [[0.0], [0.0, 0.9, 0.99]])
def test_stabilisers_are_drawn_with_averages_and_without(averages: list[float]) -> None:
    """No smaller scale tries them; a mean is the line, a model that did not learn is hollow."""
    rows = [
        {"task": task, "depth": 4, "dropout": dropout, "average": average, "replica": replica, "learned": replica > 0}
        | {"accuracy": 0.8 + dropout + 0.01 * replica + 0.02 * (average > 0)}
        for task in list(TASKS)[:2]
        for dropout in (0.0, 0.1)
        for average in averages
        for replica in range(3)
    ]
    chart, data = stabilised.stabilisers(SimpleNamespace(table=lambda name: pl.DataFrame(rows)))  # type: ignore[arg-type]
    spec = charts.specification(chart)
    assert data.height == len(rows) and not unsaid(spec, stabilised.stabilisers.__doc__ or "")
    gains = "The longest averages gain, in points: Dyck (4, 2) +2.00, Grid 4 +2.00"
    assert spec["title"]["text"] == [gains if len(averages) > 1 else "What dropout does to accuracy"]
