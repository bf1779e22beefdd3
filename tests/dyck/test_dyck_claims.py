"""The Dyck claims read the right rows, say what is missing, fail where they should, and pass no NaN."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from dyck_experiments import EXPERIMENTS
from workspace import load_study

from pipeline.kit import stats
from pipeline.store import tables
from pipeline.studies.dyck import claims
from pipeline.studies.dyck.claims import table1
from pipeline.studies.dyck.claims.theory import CONSTRUCTIONS, PUBLISHED_SIZES, RANDOM_SIZES
from pipeline.studies.dyck.names import (
    ALL_CELLS,
    ARM_OF,
    ARMS,
    COPY_DEEP,
    COPY_HEADS,
    COPY_NO_SKIP,
    COPY_SHALLOW,
    COPY_STRIPPED,
    FACTORS,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MODELS,
    PREFIX_MINIMAL,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PUBLISHED_TABLE_1,
    PUBLISHED_TABLE_1_RANDOM,
    READINGS,
    RUNS,
    STACK_CELLS,
    STANDARD,
    TABLE_1,
    TABLE_1_COMPLETE,
    THEORY_LAYERS,
    UNIFORM,
    WIDE,
)
from pipeline.studies.dyck.theory import random_attention
from schemas import theory
from schemas.claims import FAILS, HOLDS, NOT_RUN, UNDECIDED, Claims

COMPLETE = ARMS["complete"]
loaded = partial(load_study, "dyck")


# Tables as a study that reproduces everything would have them

CONVENTIONS = {False: "variation, start token omitted", True: "variation, start token included"}


def variation(**values: float) -> pl.DataFrame:
    rows = []
    for run, means in {STANDARD: (2.3, 6.2), LINEAR: (2.6, 6.4), MINIMAL: (0.08, 0.2)}.items():
        for start, mean in enumerate(means):
            mean = values.get(run, mean)
            for last, factor in ((False, 100.0), (True, 1.0)):  # the first layer is nobody's business
                rows.append(
                    {"run": run, "probe_split": "probe16", "seq_id": 0, "layer": 1 + last, "head": 0,
                     "last_layer": last, "start_included": bool(start), "causal": True, "n_models": 9,
                     "variation_mean": mean * factor, "ci_lo": mean * 0.97, "ci_hi": mean * 1.03, "n_excluded": 1,
                     "excluded_reason": "1 diverged"}
                )  # fmt: skip
    return pl.DataFrame(rows)


def contrasts(**changed: tuple[float, float, float]) -> pl.DataFrame:
    first, second = COMPLETE["contrastive"], COMPLETE["standard"]
    intervals = {
        ("beta", "ratio of medians", first, second, "beta"): (0.24, 0.2, 0.3),
        ("beta", "difference of medians", first, second, "beta"): (-0.17, -0.2, -0.15),
        ("accuracy", "difference of means", first, second, "acc_close"): (0.05, 0.03, 0.07),
        ("accuracy", "difference of means", first, second, "acc_thr80"): (0.1, 0.08, 0.12),
        ("rank", "spearman", second, None, "beta, acc_thr80"): (-0.5, -0.7, -0.2),
        ("rank", "spearman", first, None, "beta, acc_thr80"): (0.1, -0.3, 0.5),
        ("rank", "spearman of both arms pooled", first, second, "beta, acc_thr80"): (-0.8, -0.9, -0.6),
        ("rank", "spearman within arms", first, second, "beta, acc_thr80"): (-0.4, -0.6, -0.2),
    }
    arms = {first: ARMS["prefix"]["contrastive"], second: ARMS["prefix"]["standard"]}
    intervals |= {
        (what, statistic, arms[one], arms[other], metric): numbers
        for (what, statistic, one, other, metric), numbers in intervals.items()
        if what in ("beta", "accuracy") and other
    }
    models = (*(run for run in MODELS if run != WIDE), *TABLE_1.values(), *UNIFORM.values())
    for run in (*models, THEORY_LAYERS):
        for metric in ("acc_close", "acc_close_unseen"):
            intervals["in_distribution", "median", run, None, metric] = (0.995, 0.99, 1.0)
    for run in (COPY_DEEP, COPY_HEADS, COPY_SHALLOW, COPY_NO_SKIP, COPY_STRIPPED):
        intervals["copying", "median", run, None, "accuracy"] = (0.98, 0.97, 0.99)
    for run in (STACK_CELLS | LONGER_CELLS).values():
        intervals["stack", "mean on D5", run, None, "stack_argmax"] = (0.45, 0.35, 0.5)
    for run in (STANDARD, LINEAR, *TABLE_1.values(), THEORY_LAYERS):
        intervals["stack", "mean", run, None, "stack_argmax"] = (0.35, 0.3, 0.4)
        intervals["stack", "stack-like share", run, None, "stack_argmax"] = (0.0, 0.0, 0.0)
    for (_, _, layers), run in TABLE_1.items():
        if layers == 3:
            intervals["layer_ratio", "of means", run, None, "layer 3 over layer 2"] = (3.5, 3.0, 4.0)
    for start, convention in CONVENTIONS.items():
        for run in (STANDARD, LINEAR):
            key = ("variation_over_random", "ratio to closed form", run, None, convention)
            intervals[key] = (50.0, 49, 51) if start else (0.77, 0.7, 0.9)
        intervals["variation_ratio", "ratio of means over pairs", MINIMAL, STANDARD, convention] = (
            0.035,
            0.02,
            0.05,
        )
        for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL):
            intervals["variation_ratio", "times", run, PREFIX_MINIMAL, convention] = (30.0, 20.0, 40.0)
    names = ("contrast", "statistic", "first", "second", "metric")
    return pl.DataFrame(
        [
            dict(zip(names, key, strict=True))
            | dict(
                zip(
                    ("value", "lo", "hi"),
                    changed.get(key[0], changed.get(key[1].split()[0], numbers)),
                    strict=True,
                )
            )
            | {"n": 10, "n_excluded": 0, "excluded_reason": ""}
            for key, numbers in intervals.items()
        ]
    )


def table_1(**values: float) -> pl.DataFrame:
    """As published; ``layer_2=3.0`` changes a layer of all cells."""
    rows = pl.DataFrame(
        {"run": TABLE_1[cell], "layer": layer, "mean": values.get(f"layer_{layer}", mean), "n_models": 39,
         "n_excluded": 1, "excluded_reason": "1 diverged"}
        for cell, published in PUBLISHED_TABLE_1.items()
        for layer, (mean, _) in enumerate(published, start=1)
    )  # fmt: skip
    return rows.with_columns(ci_lo=pl.col("mean") * 0.99, ci_hi=pl.col("mean") * 1.01)


def stack_effects(lo: float = 0.1, scope: str = ALL_CELLS) -> pl.DataFrame:
    """Every factor as expected, over all cells; what else is measured is nobody's business."""
    return pl.DataFrame(
        {"factor": factor, "scope": name, "value": 0.2, "lo": end, "hi": 0.3, "n": 80}
        for factor in FACTORS for name, end in ((scope, lo), ("short", -0.1))
    )  # fmt: skip


def accuracy(share: float = 0.3) -> pl.DataFrame:
    return pl.DataFrame(
        {"run": run, "replica": 0, "in_distribution": here, "unseen_share": share if here else 1.0}
        for run in (STANDARD, TABLE_1[2, 4, 2]) for here in (True, False)
    )  # fmt: skip


def ablation(misleading: int = 2, mode: str = "uniform") -> pl.DataFrame:
    """Of three maps in each run of two replicas, how many mislead; in the other mode all do."""
    return pl.DataFrame(
        {
            "run": run,
            "replica": replica,
            "layer": layer,
            "mode": other,
            "misleading": other != mode or i < misleading,
            "acc_before": 0.99,
            "acc_after": 0.985,
        }
        for run in (COPY_DEEP, COPY_HEADS)
        for i, (replica, layer) in enumerate(((0, 1), (0, 2), (1, 1)))
        for other in ("uniform", "identity")
    )


def theory_rows() -> pl.DataFrame:
    def row(
        check: str, measured: float, comparison: str, bound: float, tolerance: float | None = None
    ) -> dict[str, Any]:
        return {"check": check, "statement": check, "size": "", "measured": measured, "comparison": comparison,
                "bound": bound, "tolerance": tolerance}  # fmt: skip

    return theory.rows(
        "dyck", "t", "somewhere",
        [
            row("prefix-chi2", 0.4, ">=", 0.001), row("depth-zero", 0.2505, "within", 0.25, 0.005),
            *(row(f"causal-monte-carlo-{n}", 2.99, "within", 2.9968, 0.02) for n in RANDOM_SIZES),
            *(row(f"square-{n}", 1.77, "<=", 2) for n in PUBLISHED_SIZES),
            *(row(f"published-most-{n}", 60.0, ">=", 2.0) for n in PUBLISHED_SIZES),
            row("published-16", 2.9968, "within", 2.85, 0.22), row("published-19", 3.3, "within", 3.33, 0.2),
            *(row(check, 1.0, "<=", 2.0) for checks in CONSTRUCTIONS.values() for check in checks),
            *(row(f"pruning-legal-l{layers}", 0.0, "<=", 0.0) for layers in (1, 2)),
            *(row(f"pruning-slope-l{layers}", -0.29, "within", -0.3, 0.06) for layers in (1, 2)),
            *(row(f"pruning-slope-{end}-l{layers}", value, comparison, value)
              for layers in (1, 2) for end, value, comparison in (("low", -0.31, ">="), ("high", -0.27, "<="))),
            *(row(f"pruning-error-l1-n{n}-seed{seed}", 1e-4 * (seed + 1), "<=", 9.0)
              for n in (8, 16) for seed in (0, 1)),
            *(row(f"shared-identical-{layer}", 0.0, "<=", 0.0) for layer in (1, 2, 3, 4)),
            *(row(f"shared-error-{layer}-target-{target}", 3e-4, "<=", 2e-3)
              for layer in (1, 2, 3, 4) for target in (1, 2)),
            row("shared-distance", 0.43, ">=", 0.1),
        ],
    )  # fmt: skip


def judge(scale: str = "quick", theory: pl.DataFrame | None = None, **replaced: pl.DataFrame) -> pl.DataFrame:
    frames = {"variation": variation(), "contrasts": contrasts(), "variation_table1": table_1()}
    frames |= {"ablation": ablation(), "stack_effects": stack_effects(), "accuracy": accuracy()} | replaced
    rows = theory_rows() if theory is None else theory
    context = SimpleNamespace(
        study="dyck", scale=scale, seed=1, params_hash="0" * 32, table=frames.__getitem__, theory=lambda: rows,
        settings=loaded(scale).studies["dyck"].claims,
    )  # fmt: skip
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
        ("13", 2 * (8 + 8) + 4 + 4), ("14", 2 * 4), ("15", 9 + 2), ("19", 4 * 3 + 1),
        ("2", 5 + 2 * 3), ("23", 16 + 6), ("3", 2 * (6 + 8) + 2), ("4", 2 * (2 + 4)),
    ]  # fmt: skip
    last = frame.filter(claim="13", gate="k=2, D=4, 3 layers: layer 3, size").row(0, named=True)
    assert (last["published"], last["value"], last["n"], last["excluded"]) == (24.063, 24.063, 39, 1)
    assert frame.filter(claim="14")["published"][0] == pytest.approx(24.063 / 5.072)
    m1 = frame.filter(claim="5", gate="M1").row(0, named=True)
    assert (m1["published"], m1["value"], m1["n"], m1["excluded"]) == (2.27, 2.3, 9, 1)
    assert frame.filter(claim="6", gate="M1")["published"][0] == pytest.approx(2.27 / 2.85)
    assert frame.filter(claim="2", gate="published value, N=16")["published"][0] == 2.85
    assert set(frame.filter(claim="2").filter(pl.col("published").is_null())["gate"].str.head(6)) == {
        "random",
        "maps w",
        "most m",
    }
    assert frame.filter(claim="6")["value"].to_list() == [0.77, 0.77]  # without the start token
    maps = frame.filter(claim="21", gate="misleading maps, 4 layers").row(0, named=True)
    assert (maps["value"], maps["n"]) == (2, 2)


def test_scales() -> None:
    quick = judge("quick")
    later = quick.filter(verdict=NOT_RUN)  # what asks for a printed number, and no bound
    near = [name for cell in CELLS for name in (f"{cell}: layer 2, size", f"{cell}: layer 3, size")]
    assert set(later["claim"]) == {"13"} and set(later["gate"]) == set(near) - {
        f"{c}: layer 3, size" for c in FLAT
    }
    assert later["value"].is_not_null().all()  # shown all the same
    unsized = quick.filter(size=NOT_RUN).filter(~pl.col("gate").is_in(later["gate"].implode()))
    assert set(unsized["claim"]) == {"13", "14", "22"} and set(unsized["verdict"]) == {HOLDS}
    assert unsized.filter(claim="13")["gate"].str.ends_with(": layer 1, size").all()
    assert unsized.filter(claim="14")["gate"].str.ends_with(": over 2").all()
    assert set(judge("smoke")["verdict"]) == {NOT_RUN}
    far = variation(**{STANDARD: 3.0})
    assert ("5", "M1") not in fallen(judge("quick", variation=far))
    assert ("5", "M1") in fallen(judge("paper", variation=far))


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
RATIOS = {("7", "M4 over M1, start token omitted"), ("7", "M4 over M1, start token included")}


@pytest.mark.parametrize(
    ("replaced", "expected"),
    [
        ({"variation": variation(**{LINEAR: 3.2})}, {("5", "M2")}),
        ({"variation": variation(**{STANDARD: 1.3})}, {("5", "M1")}),
        (
            {"variation": variation(**{MINIMAL: 0.6})},
            {("7", "M4, start token omitted"), ("7", "M4, start token included")},
        ),
        ({"contrasts": contrasts(ratio=(0.6, 0.5, 0.7))}, {("8", "ratio of medians"), *ON_PREFIXES, *RATIOS}),
        ({"contrasts": contrasts(ratio=(0.2, 0.1, 0.55))},
         {("6", "M1"), ("6", "M2"), ("8", "ratio of medians"), *ON_PREFIXES, *RATIOS}),
        ({"contrasts": contrasts(ratio=(1.5, 1.4, 1.6))},
         {("6", "M1"), ("6", "M2"), ("8", "ratio of medians"), *ON_PREFIXES, *RATIOS}),
        ({"contrasts": contrasts(in_distribution=(0.96, 0.95, 0.965))},
         {*(("3", f"{name}{end}") for name in ACCURATE for end in ("", ", unseen")), ("25", "accuracy"),
          ("12", "M7, complete data"), ("12", "M7, prefix data")}),
        ({"contrasts": contrasts(in_distribution=(0.98, 0.975, 0.985))},
         {("12", "M7, complete data"), ("12", "M7, prefix data")}),
        ({"contrasts": contrasts(stack=(0.5, 0.1, 0.95))},
         {("4", f"{name}, {what}")
          for name in ("M1", "M2", *(f"M8, {cell}" for cell in CELLS if cell not in DEEP))
          for what in ("mean", "stack-like share")}
         | {("23", cell) for cell in LONG_CELLS} | {("25", "M9, mean"), ("25", "M9, stack-like share")}),
        ({"accuracy": accuracy(0.05)},
         {("3", f"{data} data, share of unseen strings") for data in ("complete", "prefix")}),
        ({"stack_effects": stack_effects(lo=-0.05)}, {("24", factor) for factor in FACTORS}),
        ({"contrasts": contrasts(layer_ratio=(1.5, 1.4, 1.6))}, {("14", f"{cell}: over 2") for cell in DEEP}),
        ({"contrasts": contrasts(layer_ratio=(0.9, 0.8, 0.95))},
         {("13", f"{cell}: layer 3 over 2") for cell in DEEP}
         | {("14", f"{cell}: over {bound}") for cell in DEEP for bound in ("1.3", "2")}),
        ({"variation_table1": table_1(layer_1=1.5)}, {("13", f"{cell}: layer 1, size") for cell in CELLS}),
        ({"variation_table1": table_1(layer_1=3.3)},
         {("13", f"{cell}: layer 1{what}") for cell in CELLS for what in ("", ", size")}),
        ({"variation_table1": table_1(layer_2=2.5)},
         {("13", f"{cell}: layer 2{what}") for cell in CELLS for what in ("", ", size")}),
        ({"variation_table1": table_1(layer_3=15.5)},
         {("13", f"{cell}: layer 3, size") for cell in DEEP if cell != "k=2, D=8, 3 layers"}),
        ({"contrasts": contrasts(difference=(0.05, -0.01, 0.1))},
         {("8", "difference of medians"), ("9", "acc_close"), ("9", "acc_thr80"),
          ("11", "balance, difference of medians"), ("11", "acc_close"), ("11", "acc_thr80")}),
        ({"contrasts": contrasts(times=(4.9, 4.8, 4.95))},
         {("22", f"M1, {loss}, start token {start}")
          for loss in ("closing brackets", "all positions") for start in ("omitted", "included")}),
        ({"contrasts": contrasts(spearman=(-0.4, -0.6, 0.1))}, {("10", "standard"), ("10", "within both arms")}),
        ({"contrasts": contrasts(copying=(0.95, 0.94, 0.955))},
         {("21", "accuracy, 4 layers"), ("21", "accuracy, 4 layers, 4 heads")}),
        ({"contrasts": contrasts(copying=(0.89, 0.88, 0.895))},
         {("21", f"accuracy, {name}") for name in (
             "4 layers", "4 layers, 4 heads", "1 layer", "1 layer, no skip connection around the MLP",
             "1 layer, attention alone")}),
        ({"ablation": ablation(misleading=0)},
         {("21", "misleading maps, 4 layers"), ("21", "misleading maps, 4 layers, 4 heads")}),
    ],
)  # fmt: skip
def test_each_gate_can_fail(replaced: dict[str, pl.DataFrame], expected: set[tuple[str, str]]) -> None:
    assert fallen(judge("paper", **replaced)) == expected


def test_a_failed_theory_check_fails_its_gate() -> None:
    wrong = pl.col("check").is_in(["prefix-chi2", "causal-monte-carlo-20"])
    rows = theory_rows().with_columns(measured=pl.when(wrong).then(0.0).otherwise("measured"))
    assert fallen(judge(theory=rows)) == {("1", "law of prefixes"), ("2", "random causal maps, N=20")}


@pytest.mark.parametrize(
    ("claim", "check"), [(claim, check) for claim, checks in CONSTRUCTIONS.items() for check in checks]
)
def test_a_construction_that_fails_fails_its_gate(claim: str, check: str) -> None:
    rows = theory_rows().with_columns(
        measured=pl.when(pl.col("check") == check).then(2.1).otherwise("measured")
    )
    assert fallen(judge(theory=rows)) == {(claim, CONSTRUCTIONS[claim][check])}


PRUNING_GATES = [
    ("pruning-legal-l2", 1.0, ("18", "masks, L=2")),
    ("pruning-slope-l1", -0.23, ("18", "slope, L=1")),
    ("pruning-error-l1-n16-seed1", 3e-3, ("18", "error, L=1, n=16")),
    ("shared-identical-3", 1.0, ("19", "layer 3 is the same")),
    ("shared-error-2-target-1", 3e-3, ("19", "layer 2 shared, target 1")),
    ("shared-distance", 0.05, ("19", "targets differ")),
]


@pytest.mark.parametrize(("check", "measured", "expected"), PRUNING_GATES)
def test_each_gate_of_the_pruning_claims_can_fail(
    check: str, measured: float, expected: tuple[str, str]
) -> None:
    changed = pl.when(pl.col("check") == check).then(measured).otherwise("measured")
    assert fallen(judge(theory=theory_rows().with_columns(measured=changed))) == {expected}


def test_pruning_claims_tell_interval_and_number_of_parents() -> None:
    frame = judge()
    slope = frame.filter(claim="18", gate="slope, L=2").row(0, named=True)
    assert (slope["value"], slope["lo"], slope["hi"]) == (-0.29, -0.31, -0.27)
    error = frame.filter(claim="18", gate="error, L=1, n=16").row(0, named=True)
    assert (error["value"], error["n"]) == (2e-4, 2)
    without = judge(theory=theory_rows().filter(~pl.col("check").str.contains("pruning|shared")))
    assert set(without.filter(pl.col("claim").is_in(["18", "19"]))["verdict"]) == {NOT_RUN}


def test_missing_runs_are_not_tested_and_named() -> None:
    frame = judge(
        variation=variation().filter(pl.col("run") != LINEAR),
        variation_table1=table_1().clear(),
        contrasts=contrasts().filter(pl.col("first") != COMPLETE["contrastive"], pl.col("first") != LINEAR),
        theory=theory_rows().filter(pl.col("check") == "prefix-chi2"),
    )
    reasons = dict(
        frame.filter(verdict=NOT_RUN).select(pl.concat_str("claim", "gate", separator=" "), "reason").rows()
    )
    assert LINEAR in reasons["5 M2"] and LINEAR in reasons["6 M2"]
    assert all(
        COMPLETE["contrastive"] in reasons[key]
        for key in ("8 ratio of medians", "9 acc_close", "10 within both arms")
    )
    assert "depth-zero" in reasons["1 depth 0 at length 28"]
    assert "vanishing-rate" in reasons["20 N times distance"]
    assert "causal-monte-carlo-16" in reasons["2 random causal maps, N=16"]
    assert TABLE_1[3, 8, 2] in reasons["13 k=3, D=8, 2 layers: layer 2"]
    assert frame.filter(claim="6", gate="M1")["published"][0] is None  # the random value is not there


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


def test_no_replica_left_is_not_a_success() -> None:
    empty = variation().with_columns(
        variation_mean=pl.lit(None, pl.Float64),
        ci_lo=pl.lit(None, pl.Float64),
        ci_hi=pl.lit(None, pl.Float64),
    )
    frame = judge(variation=empty).filter(claim="5")
    assert frame["verdict"].to_list() == [FAILS] * 2
    assert frame["reason"][0].startswith("value not defined")


def test_the_published_variation_of_random_maps_is_that_of_the_checks() -> None:
    assert tuple(random_attention.PUBLISHED) == PUBLISHED_SIZES and random_attention.SIZES == RANDOM_SIZES
    assert random_attention.PUBLISHED[19][0] == PUBLISHED_TABLE_1_RANDOM


def test_one_experiment_makes_the_rows_of_a_run() -> None:
    """Those that compare runs may measure them again."""
    single = {
        "runs",
        "accuracy",
        "stack_score",
        "attention",
        "variation",
        "balance",
        "balance_detail",
        "contrasts",
    }
    makers = [
        (entry, table)
        for experiment in EXPERIMENTS.values()
        for entry in experiment.runs
        if entry not in getattr(experiment, "repeated", ())
        for table in experiment.tables
        if table in single
    ]
    assert len(set(makers)) == len(makers)
    assert {entry for entry, table in makers if table == "runs"} == set(
        loaded("paper").of_study("runs", "dyck")
    )


# A NaN never passes


def judged(found: dict[str, pl.DataFrame]) -> dict[tuple[str, str], tuple[Any, ...]]:
    """What was measured, and the verdict, by gate."""
    tables_, checks = {name: frame for name, frame in found.items() if name != "theory"}, found["theory"]
    context = SimpleNamespace(
        study="dyck", scale="paper", params_hash="0" * 32, table=tables_.__getitem__, theory=lambda: checks,
        settings=loaded("paper").studies["dyck"].claims,
    )  # fmt: skip
    columns = ["claim", "gate", "value", "lo", "hi", "n", "verdict"]
    return {row[:2]: row[2:] for row in claims.judge(context).select(columns).iter_rows()}


def test_a_nan_in_any_row_fails_every_gate_that_reads_it() -> None:
    """A gate reads a row if it judges otherwise, or not at all, without it."""
    frames = {"variation": variation(), "contrasts": contrasts(), "variation_table1": table_1()}
    frames |= {"ablation": ablation(), "stack_effects": stack_effects(), "accuracy": accuracy()}
    frames |= {"theory": theory_rows()}
    whole, seen = judged(frames), set()
    for name, frame in frames.items():
        number = pl.int_range(pl.len())
        floats = pl.col("measured") if name == "theory" else pl.selectors.float()
        for row in range(frame.height):
            without = judged(frames | {name: frame.filter(number != row)})
            readers = {gate for gate, judgement in whole.items() if without.get(gate) != judgement}
            undefined = pl.when(number == row).then(float("nan")).otherwise(floats).name.keep()
            verdicts = judged(frames | {name: frame.with_columns(undefined)})
            assert {gate for gate in readers if verdicts[gate][-1] == HOLDS} == set(), (name, row)
            seen |= readers
    assert seen == set(whole)


@pytest.mark.parametrize("end", ["low", "high"])
def test_a_slope_without_an_interval_is_not_tested(end: str) -> None:
    rows = theory_rows().filter(pl.col("check") != f"pruning-slope-{end}-l2")
    row = judge(theory=rows).filter(claim="18", gate="slope, L=2").row(0, named=True)
    assert (row["verdict"], row["reason"]) == (NOT_RUN, f"no theory check is named pruning-slope-{end}-l2")
