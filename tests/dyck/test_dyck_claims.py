"""The Dyck claims read the right rows, say what is missing, fail where they should, and pass no NaN."""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from dyck_experiments import EXPERIMENTS, comparisons
from workspace import load_study

from pipeline.errors import SandglassError
from pipeline.kit import stats
from pipeline.kit.comparisons import Comparison
from pipeline.store import tables
from pipeline.studies.dyck import claims
from pipeline.studies.dyck import comparisons as declared
from pipeline.studies.dyck.claims import table1
from pipeline.studies.dyck.names import (
    ARM_OF,
    ARMS,
    COPY_NAMES,
    FACTORS,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MODELS,
    PUBLISHED_TABLE_1,
    PUBLISHED_TABLE_1_RANDOM,
    READINGS,
    RUNS,
    STACK_CELLS,
    STANDARD,
    TABLE_1,
    TABLE_1_COMPLETE,
)
from pipeline.studies.dyck.theory import random_attention
from schemas import theory
from schemas.claims import CORRECTED, FAILS, HOLDS, NOT_RUN, OWN, TOO_FEW, UNDECIDED, Claims

COMPLETE = ARMS["complete"]
loaded = partial(load_study, "dyck")


# Tables as a study that reproduces everything would have them

Changes = dict[str, tuple[float, float, float]]


def near(value: float, part: float = 0.01) -> tuple[float, float, float]:
    return value, value * (1 - part), value * (1 + part)


OF_RUNS = {STANDARD: 2.3, LINEAR: 2.6, MINIMAL: 0.08}
# By group of comparisons, which a test can change as one.
FOUND: dict[str, dict[Comparison, tuple[float, float, float]]] = {
    "in_distribution": dict.fromkeys([*declared.ACCURACY.values(), *declared.UNSEEN.values()], (0.995, 0.99, 1.0)),
    "stack_share": dict.fromkeys(declared.STACK_SHARE.values(), (0.0, 0.0, 0.1)),
    "stack_mean": dict.fromkeys(declared.STACK_MEAN.values(), (0.35, 0.3, 0.4)),
    "cells": dict.fromkeys(declared.ON_SENTENCES.values(), (0.45, 0.35, 0.5)),
    "effects": dict.fromkeys(declared.EFFECTS.values(), (0.2, 0.1, 0.3)),
    **{
        f"variation of {MODELS[run]}": {each: near(value) for (of, _), each in declared.VARIATION.items() if of == run}
        for run, value in OF_RUNS.items()
    },
    "over_random": dict.fromkeys(declared.OVER_RANDOM.values(), (0.77, 0.7, 0.9)),
    "variation_ratio": {
        each: (0.035, 0.02, 0.05) for (first, _, _), each in declared.VARIATION_RATIO.items() if first == MINIMAL
    },
    "times": {each: near(30.0) for (first, _, _), each in declared.VARIATION_RATIO.items() if first != MINIMAL},
    **{
        f"layer {layer}": {
            each: near(PUBLISHED_TABLE_1[cell][layer - 1][0])
            for (cell, at), each in declared.BY_LAYER.items()
            if at == layer
        }
        for layer in (1, 2, 3)
    },
    "layer_ratio": dict.fromkeys(declared.LAYER_RATIO.values(), (3.5, 3.0, 4.0)),
    "ratio": dict.fromkeys(declared.VIOLATION_RATIO.values(), (0.24, 0.2, 0.3)),
    "difference": dict.fromkeys(declared.VIOLATION_SHIFT.values(), (-0.17, -0.2, -0.15)),
    "gained": dict.fromkeys(declared.GAINED.values(), (0.1, 0.08, 0.12)),
    "spearman": dict.fromkeys([*declared.RANK.values(), *declared.RANK_WITHIN.values()], (-0.5, -0.7, -0.2)),
    "pooled": dict.fromkeys(declared.RANK_POOLED.values(), (-0.8, -0.9, -0.6)),
    "copying": dict.fromkeys(declared.COPIED.values(), (0.98, 0.97, 0.99)),
    "misleading": dict.fromkeys(declared.MISLEADING.values(), (1.0, 0.7, 1.0)),
}


def found(n: int = 39, **changed: tuple[float, float, float]) -> pl.DataFrame:
    """The table of comparisons, where a group of them has other numbers."""
    numbers = {each: changed.get(group, given) for group, of in FOUND.items() for each, given in of.items()}
    return comparisons(lambda each: numbers.get(each, (0.0, -1.0, 1.0)), n)


def accuracy(share: float = 0.3) -> pl.DataFrame:
    return pl.DataFrame(
        {"run": run, "replica": 0, "in_distribution": here, "unseen_share": share if here else 1.0}
        for run in (STANDARD, TABLE_1[2, 4, 2])
        for here in (True, False)
    )


# Parts of claims on constructions, each with one theory check.
CONSTRUCTIONS = {
    "15": [
        *(f"k={k}, D={depth}, sigma={sigma}" for k, depth in ((2, 4), (3, 4), (2, 8)) for sigma in ("0", "0.5", "1")),
        "variation, sigma=1",
        "variation, sigma=2",
    ],
    "16": [
        *(f"{what}, k={k}, D={depth}" for what in ("first layer", "decoded stacks") for k, depth in ((2, 4), (3, 8))),
        "no start token",
    ],
    "17": ["balanced", "decay, delta=1", *(f"acc_close at 450, delta={delta}" for delta in (0.02, 0.05, 0.1, 0.2))],
    "20": ["N times distance"],
}


def slug(text: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in text.lower())


def theory_rows() -> pl.DataFrame:
    def row(
        claim: str,
        part: str,
        measured: float,
        comparison: str,
        bound: float,
        tolerance: float | None = None,
        check: str = "",
        group: str = "",
    ) -> dict[str, Any]:
        return {
            "check": check or slug(f"{claim}-{part}"),
            "statement": part,
            "size": "",
            "measured": measured,
            "comparison": comparison,
            "bound": bound,
            "tolerance": tolerance,
            "claim": claim,
            "part": part,
            "group": group,
        }

    published = {16: (2.9968, 2.85, 0.22), 19: (3.3, 3.33, 0.2)}
    return theory.rows(
        "dyck",
        "t",
        "somewhere",
        [
            row("1", "law of prefixes", 0.4, ">=", 0.001),
            row("1", "depth 0 at length 28", 0.2505, "within", 0.25, 0.005),
            *(row("2", f"random causal maps, N={n}", 2.99, "within", 2.9968, 0.02) for n in random_attention.SIZES),
            *(row("2", f"maps without mask, N={n}", 1.77, "<=", 2) for n in published),
            *(row("2", f"most matrices, N={n}", 60.0, ">=", 2.0) for n in published),
            *(
                row("2", f"published value, N={n}", value, "within", *bar, group=f"published, N = {n}")
                for n, (value, *bar) in published.items()
            ),
            *(row(claim, part, 1.0, "<=", 2.0) for claim, parts in CONSTRUCTIONS.items() for part in parts),
            *(row("18", f"masks, L={layers}", 0.0, "<=", 0.0) for layers in (1, 2)),
            *(
                row("18", f"slope, L={layers}", -0.29, "within", -0.3, 0.06, group=f"slope, L = {layers}")
                for layers in (1, 2)
            ),
            *(
                row(
                    "",
                    "",
                    value,
                    comparison,
                    value,
                    check=f"{end}-{layers}",
                    group=f"{end} end of the slope, L = {layers}",
                )
                for layers in (1, 2)
                for end, value, comparison in (("lower", -0.31, ">="), ("upper", -0.27, "<="))
            ),
            *(row("18", "error, L=1, n=16", 1e-4 * (seed + 1), "<=", 2e-3, check=f"error-{seed}") for seed in (0, 1)),
            *(row("19", f"layer {layer} is the same", 0.0, "<=", 0.0) for layer in (1, 2, 3, 4)),
            *(
                row("19", f"layer {layer} shared, target {target}", 3e-4, "<=", 2e-3)
                for layer in (1, 2, 3, 4)
                for target in (1, 2)
            ),
            row("19", "targets differ", 0.43, ">=", 0.1),
        ],
    )


def judge(
    scale: str = "quick",
    theory: pl.DataFrame | None = None,
    unseen: float = 0.3,
    table: pl.DataFrame | None = None,
    **changed: tuple[float, float, float],
) -> pl.DataFrame:
    frames = {"comparisons": found(**changed) if table is None else table, "accuracy": accuracy(unseen)}
    rows = theory_rows() if theory is None else theory
    context = SimpleNamespace(
        study="dyck",
        scale=scale,
        seed=1,
        params_hash="0" * 32,
        table=frames.__getitem__,
        theory=lambda: rows,
        settings=loaded(scale).studies["dyck"].claims,
    )
    frame = claims.judge(context)
    tables.validate(frame, Claims, "claims")
    return frame


def fallen(frame: pl.DataFrame) -> set[tuple[str, str]]:
    """Gates that were tested and do not hold: they fail, or the interval reaches across their bar."""
    return set(frame.filter(pl.col("verdict").is_in([FAILS, UNDECIDED])).select("claim", "gate").iter_rows())


def test_everything_is_reproduced_where_it_is() -> None:
    frame = judge("paper")
    assert set(frame["verdict"]) == {HOLDS}
    numbers = range(1, 26)
    assert frame["claim"].unique(maintain_order=True).to_list() == [str(number) for number in numbers]
    assert frame["claim"].value_counts().sort("claim").filter(pl.col("count") >= 8).rows() == [
        ("13", 2 * (8 + 8) + 4 + 4),
        ("14", 2 * 4),
        ("15", 9 + 2),
        ("19", 4 * 3 + 1),
        ("2", 5 + 2 * 3),
        ("23", 16 + 6),
        ("3", 2 * (6 + 8) + 2),
        ("4", 3 * (2 + 4)),
    ]
    last = frame.filter(claim="13", gate="k=2, D=4, 3 layers: layer 3, size").row(0, named=True)
    assert (last["published"], last["value"], last["n"]) == (24.063, 24.063, 39)
    assert frame.filter(claim="14")["published"][0] == pytest.approx(24.063 / 5.072)
    m1 = frame.filter(claim="5", gate="M1").row(0, named=True)
    assert (m1["published"], m1["value"], m1["comparison"]) == (2.27, 2.3, declared.VARIATION[STANDARD, False].key)
    assert frame.filter(claim="6", gate="M1")["published"][0] == pytest.approx(2.27 / 2.85)
    assert frame.filter(claim="2", gate="published value, N=16")["published"][0] == 2.85
    assert set(frame.filter(claim="2").filter(pl.col("published").is_null())["gate"].str.head(6)) == {
        "random",
        "maps w",
        "most m",
    }
    assert frame.filter(claim="6")["value"].to_list() == [0.77, 0.77]  # without the start token
    read = {key for key in frame["comparison"] if key}
    beside = {each.key for of in FOUND.values() for each in of} - read  # in figures alone
    assert len(read) == frame.filter(pl.col("comparison") != "")["comparison"].n_unique()
    assert all(key.startswith(("accuracy-stack", "accuracy-standard-double", "d5-", "rank-")) for key in beside)


def test_scales() -> None:
    quick = judge("quick")
    later = quick.filter(verdict=NOT_RUN)  # what asks for a printed number, and no bound
    sizes = [name for cell in CELLS for name in (f"{cell}: layer 2, size", f"{cell}: layer 3, size")]
    assert set(later["claim"]) == {"13"} and set(later["gate"]) == set(sizes) - {f"{c}: layer 3, size" for c in FLAT}
    assert later["value"].is_not_null().all()  # shown all the same
    unsized = quick.filter(size=NOT_RUN).filter(~pl.col("gate").is_in(later["gate"].implode()))
    assert set(unsized["claim"]) == {"13", "14", "22"} and set(unsized["verdict"]) == {HOLDS}
    assert unsized.filter(claim="13")["gate"].str.ends_with(": layer 1, size").all()
    assert unsized.filter(claim="14")["gate"].str.ends_with(": over 2").all()
    assert set(judge("smoke")["verdict"]) == {NOT_RUN}
    far: Changes = {"variation of M1": near(3.0)}
    assert ("5", "M1") not in fallen(judge("quick", **far))
    assert ("5", "M1") in fallen(judge("paper", **far))


def test_four_models_decide_nothing_of_models() -> None:
    frame = judge("paper", table=found(n=4)).filter(pl.col("comparison") != "")
    assert set(frame["verdict"]) == {TOO_FEW} and frame["value"].is_not_null().all()


CELLS = [f"k={k}, D={depth}, {layers} layers" for k, depth, layers in TABLE_1]
ACCURATE = [*(name for name in MODELS.values() if name != "M3"), *(f"M8, {cell}" for cell in CELLS)]
LONG_CELLS = [
    f"{block}, {data}, k={k}, D={depth}" + (", trained longer" if length == "longer" else "")
    for k, depth, block, data, length in STACK_CELLS | LONGER_CELLS
    if length != "short"
]
DEEP = [cell for cell in CELLS if cell.endswith("3 layers")]
FLAT = [cell for cell in CELLS if cell not in DEEP]
ON_PREFIXES = {("11", "balance, ratio of medians")}
STACKS = ("M1", "M2", *(f"M8, {cell}" for cell in FLAT))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"variation of M2": near(3.2)}, {("5", "M2")}),
        ({"variation of M1": near(1.3)}, {("5", "M1")}),
        ({"variation of M4": near(0.6)}, {("7", f"M4, start token {word}") for word in ("omitted", "included")}),
        (
            {"variation_ratio": (0.2, 0.1, 0.55)},
            {("7", f"M4 over M1, start token {word}") for word in ("omitted", "included")},
        ),
        ({"over_random": (0.6, 0.45, 0.7)}, {("6", "M1"), ("6", "M2")}),
        ({"over_random": (1.5, 1.4, 1.6)}, {("6", "M1"), ("6", "M2")}),
        ({"ratio": (0.4, 0.1, 0.55)}, {("8", "ratio of medians"), ("11", "balance, ratio of medians")}),
        (
            {"in_distribution": (0.96, 0.95, 0.965)},
            {
                *(("3", f"{name}{end}") for name in ACCURATE for end in ("", ", unseen")),
                ("25", "accuracy"),
                ("12", "M7, complete data"),
                ("12", "M7, prefix data"),
            },
        ),
        ({"in_distribution": (0.98, 0.975, 0.985)}, {("12", "M7, complete data"), ("12", "M7, prefix data")}),
        (
            {"stack_share": (0.1, 0.0, 0.3)},
            {("25", "M9, stack-like share"), *(("4", f"{name}, stack-like share") for name in STACKS)},
        ),
        (
            {"stack_share": (0.4, 0.2, 0.6)},
            {
                (claim, f"{name}, {what}")
                for claim, names in (("25", ["M9"]), ("4", STACKS))
                for name in names
                for what in ("most models", "stack-like share")
            },
        ),
        ({"stack_mean": (0.5, 0.1, 0.95)}, {("25", "M9, mean"), *(("4", f"{name}, mean") for name in STACKS)}),
        ({"cells": (0.5, 0.1, 0.95)}, {("23", cell) for cell in LONG_CELLS}),
        ({"effects": (0.2, -0.05, 0.3)}, {("24", factor) for factor in FACTORS}),
        ({"layer_ratio": near(1.5)}, {("14", f"{cell}: over 2") for cell in DEEP}),
        (
            {"layer_ratio": near(0.9)},
            {("13", f"{cell}: layer 3 over 2") for cell in DEEP}
            | {("14", f"{cell}: over {bound}") for cell in DEEP for bound in ("1.3", "2")},
        ),
        ({"layer 1": near(1.5)}, {("13", f"{cell}: layer 1, size") for cell in CELLS}),
        ({"layer 1": near(3.3)}, {("13", f"{cell}: layer 1{what}") for cell in CELLS for what in ("", ", size")}),
        ({"layer 2": near(2.5)}, {("13", f"{cell}: layer 2{what}") for cell in CELLS for what in ("", ", size")}),
        ({"layer 3": near(15.5)}, {("13", f"{cell}: layer 3, size") for cell in DEEP if cell != "k=2, D=8, 3 layers"}),
        (
            {"difference": (-0.05, -0.1, 0.01)},
            {("8", "difference of medians"), ("11", "balance, difference of medians")},
        ),
        (
            {"gained": (0.05, -0.01, 0.1)},
            {(claim, name) for claim in ("9", "11") for name in ("acc_close", "acc_thr80")},
        ),
        (
            {"times": (4.9, 4.8, 4.95)},
            {
                ("22", f"M1, {loss}, start token {start}")
                for loss in ("closing brackets", "all positions")
                for start in ("omitted", "included")
            },
        ),
        (
            {"spearman": (-0.4, -0.6, 0.1)},
            {("10", f"{arm}{of}") for arm in ("standard", "within both arms") for of in ("", ", closing brackets")},
        ),
        ({"pooled": (-0.8, -0.9, -0.4)}, {("10", "both arms pooled")}),
        ({"copying": (0.95, 0.94, 0.955)}, {("21", "accuracy, 4 layers"), ("21", "accuracy, 4 layers, 4 heads")}),
        ({"copying": (0.89, 0.88, 0.895)}, {("21", f"accuracy, {name}") for name in COPY_NAMES.values()}),
        (
            {"misleading": (0.7, 0.4, 0.9)},
            {("21", "misleading maps, 4 layers"), ("21", "misleading maps, 4 layers, 4 heads")},
        ),
    ],
)
def test_each_gate_can_fail(changed: Changes, expected: set[tuple[str, str]]) -> None:
    assert fallen(judge("paper", **changed)) == expected


def test_unseen_strings_are_enough() -> None:
    expected = {("3", f"{data} data, share of unseen strings") for data in ("complete", "prefix")}
    assert fallen(judge("paper", unseen=0.05)) == expected


def test_a_failed_theory_check_fails_its_gate() -> None:
    wrong = pl.col("part").is_in(["law of prefixes", "random causal maps, N=20"])
    rows = theory_rows().with_columns(measured=pl.when(wrong).then(0.0).otherwise("measured"))
    assert fallen(judge(theory=rows)) == {("1", "law of prefixes"), ("2", "random causal maps, N=20")}


THEORY_GATES = [
    *((claim, part, 2.1) for claim, parts in CONSTRUCTIONS.items() for part in parts),
    ("18", "masks, L=2", 1.0),
    ("18", "slope, L=1", -0.23),
    ("19", "layer 3 is the same", 1.0),
    ("19", "layer 2 shared, target 1", 3e-3),
    ("19", "targets differ", 0.05),
]


@pytest.mark.parametrize(("claim", "part", "measured"), THEORY_GATES)
def test_each_gate_of_the_theory_can_fail(claim: str, part: str, measured: float) -> None:
    changed = pl.when(claim=claim, part=part).then(measured).otherwise("measured")
    assert fallen(judge(theory=theory_rows().with_columns(measured=changed))) == {(claim, part)}


def test_one_parent_that_errs_is_enough() -> None:
    changed = pl.when(check="error-0").then(3e-3).otherwise("measured")
    expected = {("18", "error, L=1, n=16")}
    assert fallen(judge(theory=theory_rows().with_columns(measured=changed))) == expected


def test_own_checks_are_no_statements_of_the_paper() -> None:
    kinds = dict(judge().filter(claim="15").select("gate", "kind").iter_rows())
    assert kinds["variation, sigma=1"] == OWN and kinds["k=2, D=4, sigma=1"] == CORRECTED


def test_pruning_claims_tell_interval_and_number_of_parents() -> None:
    frame = judge()
    slope = frame.filter(claim="18", gate="slope, L=2").row(0, named=True)
    assert (slope["value"], slope["lo"], slope["hi"]) == (-0.29, -0.31, -0.27)
    error = frame.filter(claim="18", gate="error, L=1, n=16").row(0, named=True)
    assert (error["value"], error["n"]) == (2e-4, 2)
    with pytest.raises(SandglassError, match="claim 19: no theory check"):
        judge(theory=theory_rows().filter(pl.col("claim") != "19"))


def test_what_was_not_run_is_not_tested() -> None:
    absent = declared.VARIATION[STANDARD, False]
    frame = judge(table=comparisons(lambda each: None if each == absent else (0.0, 0.0, 0.0)))
    assert frame.filter(claim="5").select("gate", "verdict").rows() == [("M1", NOT_RUN), ("M2", FAILS)]


def test_the_runs_of_table_1_are_its_cells() -> None:
    """The constants of the published table, against params.yaml and the closed form of random maps."""
    paper = loaded("paper")
    runs, datasets = paper.members("runs", "dyck"), paper.members("datasets", "dyck")
    assert set(TABLE_1) == {(k, depth, layers) for k in (2, 3) for depth in (4, 8) for layers in (2, 3)}
    for (k, depth, layers), run in TABLE_1.items():
        entry = runs[run]
        assert (entry.k, entry.depth, entry.layers, entry.block) == (k, depth, layers, "resln")
        assert datasets[entry.dataset].split == "train_prefix"
        first, middle, *last = [mean for mean, _ in PUBLISHED_TABLE_1[k, depth, layers]]
        assert len(last) == layers - 2 and first < PUBLISHED_TABLE_1_RANDOM < middle < min([39, *last])
        assert all(sd < mean for mean, sd in PUBLISHED_TABLE_1[k, depth, layers])
    assert stats.causal_distance(19) < table1.BELOW_RANDOM < PUBLISHED_TABLE_1_RANDOM
    assert PUBLISHED_TABLE_1_RANDOM < stats.causal_distance(20) < table1.ABOVE_RANDOM
    for cell, run in TABLE_1_COMPLETE.items():
        entry = runs[run]
        assert (entry.k, entry.depth, entry.layers, entry.block) == (*cell, "resln")
        assert datasets[entry.dataset].split == "train_complete"
    assert set(RUNS) == set(runs) and len(set(RUNS)) == len(RUNS)
    assert {*ARM_OF, *(run for readings in READINGS.values() for run in readings.values())} <= set(RUNS)


def test_the_cells_of_the_factorial_are_what_their_names_say() -> None:
    """Cells of one language start alike, and differ in nothing but the factors."""
    for scale in ("quick", "paper"):
        runs, datasets = (loaded(scale).members(kind, "dyck") for kind in ("runs", "datasets"))
        steps = {length: {} for length in ("short", "long", "longer")}
        for (k, depth, block, data, length), run in (STACK_CELLS | LONGER_CELLS).items():
            entry = runs[run]
            assert (entry.k, entry.depth, entry.block, entry.layers) == (k, depth, block, 2)
            assert datasets[entry.dataset].split == f"train_{data}"
            steps[length][run] = entry.steps
        assert {len(set(steps[length].values())) for length in ("short", "long")} == {1}
        entries = [runs[run] for run in STACK_CELLS.values()]
        assert {entry.replicas for entry in entries} == {5 if scale == "quick" else 40}
        assert len({(entry.k, entry.depth, entry.stream) for entry in entries}) == 4
        same = ("lr", "batch", "width", "ffn", "loss_positions", "schedule", "corpus")
        assert len({tuple(getattr(entry, name) for name in same) for entry in entries}) == 1


def test_the_published_variation_of_random_maps_is_that_of_the_checks() -> None:
    assert random_attention.PUBLISHED[19][0] == PUBLISHED_TABLE_1_RANDOM


def test_one_experiment_makes_the_rows_of_a_run() -> None:
    """Those that compare runs may measure them again."""
    single = {"runs", "accuracy", "stack_score", "attention", "variation", "balance", "balance_detail"}
    makers = [
        (entry, table)
        for experiment in EXPERIMENTS.values()
        for entry in experiment.runs
        if entry not in getattr(experiment, "repeated", ())
        for table in experiment.tables
        if table in single
    ]
    assert len(set(makers)) == len(makers)
    assert {entry for entry, table in makers if table == "runs"} == set(loaded("paper").of_study("runs", "dyck"))


# A NaN never passes


@pytest.mark.parametrize("numbers", [(math.nan, 0.0, 1.0), (0.0, math.nan, 1.0), (0.0, 0.0, math.nan)])
def test_where_everything_is_undefined_nothing_holds(numbers: tuple[float, float, float]) -> None:
    theory = theory_rows().with_columns(measured=pl.lit(math.nan))
    frame = judge("paper", theory, unseen=math.nan, table=comparisons(lambda _: numbers))
    assert set(frame["verdict"]) == {FAILS}
