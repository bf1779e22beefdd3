"""Figures of the Dyck study: what is drawn is what the tables say, in the same bytes."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from itertools import starmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
import vl_convert
from dyck_experiments import EXPERIMENTS, FIGURES, comparisons
from fitting import fitting

from pipeline.kit import charts
from pipeline.kit.comparisons import Comparison
from pipeline.languages import dyck
from pipeline.studies.dyck import comparisons as declared
from pipeline.studies.dyck.figures import attention as complete
from pipeline.studies.dyck.figures import prefix, table1
from pipeline.studies.dyck.figures.common import PROBE_TEXT
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
    FAMILIES,
    FAMILY_RUNS,
    HEADS,
    LINEAR,
    LONG_PROBE,
    MAPPED,
    MINIMAL,
    PARENT,
    PREFIX_MINIMAL,
    PREFIX_STANDARD_ALL,
    PROBE,
    PRUNED,
    PUBLISHED_TABLE_1,
    STACK_CELLS,
    STANDARD,
    TABLE_1,
    TABLE_1_PROBE,
    TARGET,
    TRAINING_LENGTHS,
    WIDE,
)
from schemas.dyck.tables import SCHEMAS

pytestmark = pytest.mark.usefixtures("fonts")

COMPLETE_ARMS = ARMS["complete"]
TEXTS = {PROBE: "[[[[]]]](((())))", LONG_PROBE: "[()]" * 7, TABLE_1_PROBE: "[[]]" * 4 + "[()"}


def variation() -> pl.DataFrame:
    rows = []
    for run, means in {STANDARD: (2.33, 6.25), LINEAR: (2.61, 6.4), MINIMAL: (0.08, 0.18)}.items():
        excluded = int(run == LINEAR)
        for start, mean in enumerate(means):
            rows.append(
                {
                    "run": run,
                    "probe_split": "probe16",
                    "seq_id": 0,
                    "layer": 2,
                    "head": 0,
                    "last_layer": True,
                    "start_included": bool(start),
                    "causal": True,
                    "n_models": 10 - excluded,
                    "n_rows": 16 + start,
                    "variation_mean": mean,
                    "ci_lo": mean * 0.8,
                    "ci_hi": mean * 1.2,
                    "confidence": 0.9,
                    "interval": "jackknife",
                    "random_baseline": 3.0 + start / 10,
                    "n_excluded": excluded,
                    "excluded_reason": "1 diverged" if excluded else "",
                }
            )
            rows.append(rows[-1] | {"last_layer": False, "layer": 1, "variation_mean": 99.0})
    return pl.DataFrame(rows)


def prefix_variation() -> pl.DataFrame:
    """Of M4 on D4 and, of M1 trained on all positions, on two sentences of D5."""
    row = variation().filter("last_layer").head(1)
    return pl.concat(
        row.with_columns(
            run=pl.lit(run),
            probe_split=pl.lit(probe),
            seq_id=pl.lit(seq, pl.Int64),
            start_included=pl.lit(start),
            variation_mean=pl.lit(value),
            ci_lo=pl.lit(value * 0.8),
            ci_hi=pl.lit(value * 1.2),
        )
        for run, probe, seq, start, value in (
            (PREFIX_MINIMAL, PROBE, 0, False, 0.2),
            (PREFIX_STANDARD_ALL, TABLE_1_PROBE, 0, True, 6.0),
            (PREFIX_STANDARD_ALL, TABLE_1_PROBE, 1, True, 8.0),
        )
    )


STEPS = dict(zip(TRAINING_LENGTHS, (100, 400, 1200, 2400), strict=True))


def runs() -> pl.DataFrame:
    """M1 and M2 start alike; of M2, replica 3 did not learn its task."""
    return pl.DataFrame(
        {
            "run": run,
            "replica": replica,
            "steps": steps,
            "stream": "dyck-standard",
            "learned": (run, replica) != (LINEAR, 3),
        }
        for run, steps in (STEPS | {LINEAR: 1200}).items()
        for replica in range(10)
    )


def lengths() -> pl.DataFrame:
    """Variation of M1 after trainings of other lengths; after the shortest no model is accurate."""
    row = variation().filter("last_layer", run=STANDARD).head(1)
    return pl.concat(
        row.with_columns(
            run=pl.lit(run),
            n_models=pl.lit(0 if steps == 100 else 5, pl.Int64),
            variation_mean=pl.lit(None if steps == 100 else steps / 1000, pl.Float64),
        )
        for run, steps in STEPS.items()
        if run != STANDARD
    )


def stack_cells() -> pl.DataFrame:
    """More steps, more kinds of bracket: a higher score."""
    return pl.DataFrame(
        {
            "run": run,
            "block": block,
            "data": data,
            "lang_k": k,
            "lang_D": depth,
            "length": length,
            "steps": steps,
            "mean": (mean := steps * k / 4000),
            "lo": mean - 0.05,
            "hi": mean + 0.05,
            "n": 5,
            "acc_close": 0.99,
            "interval": "Student",
            "n_accurate": 4,
            "n_stack_like": int(k == 3),
            "confidence": 0.9,
        }
        for (k, depth, block, data, length), run in STACK_CELLS.items()
        for steps in ({"short": 100, "long": 400}[length],)
    )


def stack_effects() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "factor": factor,
            "low": str(low),
            "high": str(high),
            "scope": scope,
            "value": 0.2,
            "lo": 0.1,
            "hi": 0.3,
            "mean_low": 0.3,
            "mean_high": 0.5,
            "confidence": 0.9,
            "interval": "jackknife",
            "n_pairs": 16,
            "n": 160,
        }
        for factor, (low, high) in FACTORS.items()
        for scope in (ALL_CELLS, "long", f"{ALL_CELLS}, strings of its own kind")
    )


def families() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "run": run,
            "replica": replica,
            "start_included": start,
            "current": 0.1 + 0.6 * replica,
            "first": 0.4,
            "family": FAMILIES[1 - replica],
        }
        for run in FAMILY_RUNS
        for replica in (0, 1)
        for start in (False, True)
    )


FAMILY_DISTANCES = pl.DataFrame(
    {
        "run": run,
        "start_included": start,
        "n_models": 8,
        "n_first": 4,
        "bimodality": 0.9,
        "within": 1.5,
        "between": 12.25,
    }
    for run in ("all", *FAMILY_RUNS)
    for start in (False, True)
)


def fig3() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for run, (data, arm) in ARM_OF.items():
        for replica in range(6):
            beta = rng.normal(0.23 if arm == "standard" else 0.05, 0.01)
            rows.append(
                {
                    "run": run,
                    "replica": replica,
                    "arm": arm,
                    "data": data,
                    "beta": beta,
                    "acc_close": 1 - beta,
                    "acc_thr80": 1 - 2 * beta,
                    "diverged": replica == 5,
                    "learned": replica != 4,
                }
            )
    return pl.DataFrame(rows)


RANKS = {"standard": -0.551, "contrastive": 0.124}


def compared() -> pl.DataFrame:
    numbers: dict[Comparison, tuple[float, float, float]] = {}
    for (data, arm, _), comparison in declared.RANK.items():
        numbers[comparison] = (RANKS[arm] if data == "complete" else 0.33, -0.8, 0.3)
    numbers |= dict.fromkeys(declared.RANK_POOLED.values(), (math.nan, -0.8, 0.3))
    for steps, run in enumerate(TRAINING_LENGTHS):
        numbers[declared.ACCURACY[run]] = (0.9 + steps / 100, 0.9, 1.0)
    means = dict(stack_cells().select("run", "mean").iter_rows())
    numbers |= {declared.ON_SENTENCES[cell]: (means[run] / 2, 0.1, 0.9) for cell, run in STACK_CELLS.items()}
    numbers |= {each: (0.3 - n / 1000, 0.15, 0.35) for n, each in declared.VIOLATION_BY_LENGTH.items()}
    for name, value in (("importance_fixed", 0.25), ("importance_adapt", -0.375)):
        numbers[declared.HEAD_RANK[name]] = (value, -0.5, 0.5)
    return comparisons(numbers.get)


# Run, layers, heads of models that copy; two replicas of each.
COPYING = [(COPY_DEEP, 4, 1), (COPY_HEADS, 4, 4), (COPY_SHALLOW, 1, 1), (COPY_NO_SKIP, 1, 1), (COPY_STRIPPED, 1, 1)]
COPIED = [
    {"run": run, "replica": replica, "layer": layer, "head": head}
    for run, layers, heads in COPYING
    for replica in (1, 2)
    for layer in range(1, layers + 1)
    for head in range(heads)
]
# What stands out: a head on opening brackets, one on the current position, and a one-layer model.
SHARES = {
    (COPY_HEADS, 2, 3, 1): {"[": 0.6, "]": 0.0, "(": 0.3, ")": 0.0, "current position": 0.2},
    (COPY_HEADS, 2, 4, 2): {"[": 0.2, "]": 0.2, "(": 0.2, ")": 0.2, "current position": 0.5},
    (COPY_STRIPPED, 2, 1, 0): {"[": 0.3, "]": 0.1, "(": 0.2, ")": 0.2, "current position": 0.1},
}
MISLEADING = {(COPY_DEEP, 2, 3, 0): True, (COPY_DEEP, 2, 4, 0): True, (COPY_DEEP, 1, 3, 0): True}


def class_lift() -> pl.DataFrame:
    even = {"[": 0.2, "]": 0.2, "(": 0.2, ")": 0.2, "current position": 0.1}
    rows = [
        head | {"query_class": query, "key_class": key, "mass": mass if query == "all" else 1.0, "lift": 5 * mass}
        for head in COPIED
        for key, mass in SHARES.get(tuple(head.values()), even).items()
        for query in ("all", "[")
    ]
    return pl.DataFrame(rows)


def ablation() -> pl.DataFrame:
    rows = [
        head
        | {
            "mode": mode,
            "acc_before": 0.875,
            "acc_after": 0.75 if mode == "zero" else 0.875 - 0.25 * head["head"],
            "misleading": MISLEADING.get(tuple(head.values()), False),
            "interpretable": MISLEADING.get(tuple(head.values()), head["layer"] == 3),
        }
        for head in COPIED
        for mode in ("uniform", "zero")
    ]
    return pl.DataFrame(rows)


def copy_maps() -> pl.DataFrame:
    """Everything looks evenly, on D4 with the start token."""
    text = ["start", *"[[[[]]]](((())))"]
    entries = pl.DataFrame(
        {"query": query, "key": key, "query_token": text[query], "key_token": text[key], "weight": 1 / (query + 1)}
        for query in range(17)
        for key in range(query + 1)
    )
    return pl.DataFrame(COPIED).join(entries, how="cross")


def head_importance() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "run": HEADS,
            "replica": replica,
            "layer": layer,
            "head": head,
            "stack_argmax": 0.1 * layer + 0.05 * head,
            "importance_fixed": 0.02 * head,
            "importance_adapt": 0.01 * head,
            "finetune_steps": 50,
            "learned": True,
        }
        for replica in (0, 1)
        for layer in (1, 2)
        for head in range(4)
    )


def attention() -> pl.DataFrame:
    """Replicas 3 and 5 of every run on its probes; the last layer of replica 3 looks at the stack, of 5 evenly."""
    maps = [_map(probe, start) for probe in TEXTS for start in (False, True)]
    runs = [
        {"run": run, "probe_split": probe, "replica": replica, "layer": layer}
        for run, probes in MAPPED.items()
        for probe in probes
        for replica in (3, 5)
        for layer in (1, 2)
    ]
    frame = pl.DataFrame(runs).join(pl.concat(maps), on="probe_split")
    looks, evenly = pl.col("replica") == 3, 1 / (pl.col("query") + 1)
    weight = pl.when(looks).then(0.7 * pl.col("box")).otherwise(evenly)
    return frame.with_columns(weight=pl.when(pl.col("layer") == 2).then(weight).otherwise(1.0), head=0).drop("box")


def _map(probe: str, start: bool) -> pl.DataFrame:
    """Places of a map on a probe, and which are the last unmatched open bracket of their query."""
    last = dyck.last_unmatched_open(dyck.parse(TEXTS[probe]))[0]
    last = [-1, *(at + 1 if at >= 0 else -1 for at in last)] if start else list(last)
    query, key = np.tril_indices(len(last))
    columns = {"probe_split": probe, "start_included": start, "text": ("·" if start else "") + TEXTS[probe]}
    box = (np.array(last)[query] == key).astype(float)
    return pl.DataFrame({"query": query, "key": key, "box": box}).with_columns(
        **{k: pl.lit(v) for k, v in columns.items()}
    )


def stack_scores() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "run": run,
            "replica": replica,
            "layer": layer,
            "head": 0,
            "stack_argmax": 0.1 * layer + 0.01 * replica,
            "stack_mass": 0.3,
            "stack_mass_uniform": 0.198,
            "stack_argmax_tied": 0.1 * layer + 0.02 * replica,
            "stack_ceiling": 0.7,
        }
        for run in (*MAPPED, COMPLETE_ARMS["standard"])
        for replica in (3, 5)
        for layer in (1, 2)
    )


def table_1() -> pl.DataFrame:
    """Ours is twice what was published, on complete strings three times."""
    return pl.DataFrame(
        {
            "run": TABLE_1[cell],
            "data": data,
            "lang_k": cell[0],
            "lang_D": cell[1],
            "n_layers": cell[2],
            "layer": layer,
            "mean": factor * mean,
            "sd_over_sentences": factor * sd,
            "n_sentences": 40,
            "n_rows": 20,
            "n_models": 3,
            "n_excluded": 1,
            "random_baseline": 3.386,
            "published_mean": mean,
            "published_sd": sd,
            "ci_lo": mean,
            "ci_hi": 3 * mean,
            "confidence": 0.9,
            "interval": "jackknife",
        }
        for cell, published in PUBLISHED_TABLE_1.items()
        for layer, (mean, sd) in enumerate(published, start=1)
        for data, factor in (("prefix", 2), ("complete", 3))
    )


def pruning_maps() -> pl.DataFrame:
    """Of two layers: the target and what is left of the parent look evenly, the parent at the first token."""
    rows = [
        {
            "network": network,
            "candidates": n,
            "layer": layer,
            "network_layer": layer if n is None else 2 * layer,
            "query": query,
            "key": key,
            "weight": float(key == 0) if network == PARENT else 1 / (query + 1),
        }
        for network, n in ((TARGET, None), (PARENT, 16), (PRUNED, 16))
        for layer in (1, 2)
        for query in range(16)
        for key in range(query + 1)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


PRUNING_DEMO = pl.DataFrame(
    {
        "network": network,
        "candidates": n,
        "n_layers": 2 if n is None else 8,
        "weights": weights,
        "kept": kept,
        "acc_close": accuracy,
        "map_distance": 4e-8,
        "n_sequences": 200,
    }
    for network, n, weights, kept, accuracy in (
        (TARGET, None, 1062, 1062, 0.991),
        (PARENT, 8, 10**6, 10**6, 0.49),
        (PRUNED, 8, 10**6, 9000, 0.98),
        (PARENT, 16, 90588168, 90588168, 0.495),
        (PRUNED, 16, 90588168, 19778, 0.9907),
    )
)
ACCURACY = [
    {
        "run": run,
        "replica": replica,
        "eval_split": "dev_complete",
        "in_distribution": True,
        "acc_close": 0.99,
        "shortest": 2,
        "longest": 26,
    }
    for run in MAPPED
    for replica in (3, 5)
]
MADE = {
    "attention": attention(),
    "stack_score": stack_scores(),
    "variation_table1": table_1(),
    "variation": pl.concat([variation(), prefix_variation(), lengths()]),
    "runs": runs(),
    "stack_cells": stack_cells(),
    "stack_effects": stack_effects(),
    "families": families(),
    "family_distances": FAMILY_DISTANCES,
    "fig3": fig3(),
    "comparisons": compared(),
    "pruning_maps": pruning_maps(),
    "pruning_demo": PRUNING_DEMO,
    "class_lift": class_lift(),
    "ablation": ablation(),
    "copy_maps": copy_maps(),
    "head_importance": head_importance(),
    "accuracy": pl.DataFrame(
        [
            *ACCURACY,
            ACCURACY[0]
            | {
                "run": COMPLETE_ARMS["standard"],
                "eval_split": "lengen",
                "in_distribution": False,
                "shortest": 403,
                "longest": 498,
            },
        ]
    ),
}
TABLES = fitting(MADE, SCHEMAS)
# Errors on the line 10^(-0.3 n), in which the second target has another slope and ten times the error.
PRUNING = [
    *((f"L = {layers}", n, layers**3 * 10 ** (-0.3 * n)) for layers in (1, 2) for n in (8, 12, 16) for _ in (0, 1)),
    *(
        (f"{end}, L = {layers}", None, slope / layers)
        for layers in (1, 2)
        for end, slope in (("slope", -0.3), ("lower end of the slope", -0.32), ("upper end of the slope", -0.28))
    ),
]
THEORY = pl.DataFrame(
    [
        ("published, N = 16", None, 2.85, 3.0),
        ("other", None, 7.77, 0.0),
        ("mean, N = 16", None, 0.0, 3.003),
        ("exact solvers", 0.5, 0.0, 0.871),
        ("exact solvers", 2.0, 0.0, 8.664),
        ("", None, 0.0, 5.55),
        *((f"inserted pairs, delta = {delta}", n, 2.0, (1.0 + delta) / n) for delta in (0, 0.2, 1) for n in (1, 16)),
        *((f"length, delta = {delta}", n, 1.0, 1 - delta * n / 900) for delta in (0, 0.02) for n in (28, 450)),
        *((group, x, 9.0, value) for group, x, value in PRUNING),
        *(("N = 16", count, 0.6 / count, 0.0) for count in (2, 40)),
    ],
    schema={"group": pl.String, "x": pl.Float64, "bound": pl.Float64, "measured": pl.Float64},
    orient="row",
    strict=False,
)


def context(theory: pl.DataFrame = THEORY, **replaced: pl.DataFrame) -> Any:
    tables = TABLES | fitting(replaced, SCHEMAS)
    return SimpleNamespace(study="dyck", table=tables.__getitem__, theory=lambda: theory)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_reads_what_its_experiment_makes_or_names(name: str) -> None:
    (entry,) = (each for each in EXPERIMENTS.values() if name in each.figures)
    inputs = {*entry.tables, *(table for other in entry.beside for table in EXPERIMENTS[other].tables)}
    tables = {table: frame for table, frame in TABLES.items() if table in inputs}
    if "comparisons" in tables:
        experiments = {name for name, each in EXPERIMENTS.items() if each is entry} | {*entry.beside}
        here = [each.key for each in declared.DECLARED if each.experiment in experiments]
        tables["comparisons"] = tables["comparisons"].filter(pl.col("comparison").is_in(here))
    theory = (lambda: THEORY) if entry.theory else None
    FIGURES[name](SimpleNamespace(study="dyck", table=tables.__getitem__, theory=theory))


def texts(chart: alt.TopLevelMixin, folder: Path) -> list[str]:
    """What is written in the rendered figure."""
    charts.save(chart, pl.DataFrame({"x": [1]}), folder, "f")
    return re.findall(r">([^<>]+)</t", (folder / "f.svg").read_text(encoding="utf-8"))


def marks(folder: Path) -> str:
    """The figure as the renderer draws it, with a name for each mark, which is not stored."""
    specification = json.loads((folder / "f.vl.json").read_text(encoding="utf-8"))
    return str(vl_convert.vegalite_to_svg(specification))


def test_variation_shows_ours_published_and_random(tmp_path: Path) -> None:
    chart, data = FIGURES["variation"](context())
    assert data.height == 2 * (3 * 2 + 2) and 99.0 not in data["value"].to_list()
    first = data.filter(panel="start token omitted (16 × 16)", model="standard (M1)").sort("source")
    assert first.select("source", "value").rows() == [("published", 2.27), ("this reproduction", 2.33)]
    labels = texts(chart, tmp_path)
    for text in ("2.33", "2.61", "0.08", "3.00", "2.27", "2.20", "0.24", "2.85", "6.25", "3.10"):
        assert text in labels, text
    assert {"this reproduction", "published", "closed form"} <= set(labels)
    said = " ".join(labels)
    assert "Bars: 90 % intervals over models (jackknife)" in said
    assert "standard (M1) 2.33, linear position code (M2) 2.61, minimal first layer (M4) 0.08" in said
    assert "linear position code (M2) 9, without 1 diverged" in said
    assert labels.index("start token omitted (16 × 16)") < labels.index("start token included (17 × 17)")


def test_fig3_shows_both_arms_and_their_correlations(tmp_path: Path) -> None:
    chart, data = FIGURES["fig3"](context())
    assert data.height == 10 and not data["diverged"].any() and data.filter(~pl.col("learned")).height == 2
    labels = texts(chart, tmp_path)
    said = " ".join(labels)
    means = data.filter("learned").group_by("arm").agg(pl.mean("beta", "acc_close"))
    for arm, beta, accuracy in means.iter_rows():
        assert f"{arm} training {beta:.2f} and {accuracy:.3f}" in said
    assert "Accuracies at lengths 403 to 498" in said
    assert labels.count("ρ: standard −0.55, contrastive 0.12") == 2
    told = chart.to_dict()["description"]
    assert "standard: ρ = −0.55 [−0.80, 0.30]; contrastive: ρ = 0.12 [−0.80, 0.30]" in told
    assert told.count("both pooled: ρ = – [−0.80, 0.30]") == 2
    svg = marks(tmp_path)
    points = re.findall(r'aria-roledescription="(?:point|circle)"[^>]*fill="([^"]+)"', svg)
    assert len(points) == 20  # ten models in each of two panels
    assert points.count("white") == 4  # those that did not learn their task


@pytest.mark.parametrize(("name", "panels"), [("fig1", complete.FIGURE_1), ("fig2", complete.FIGURE_2)])
def test_maps_show_the_last_layer_and_box_the_last_unmatched_open(
    name: str, panels: list[tuple[str, int, str]], tmp_path: Path
) -> None:
    chart, data = FIGURES[name](context())
    last = dyck.last_unmatched_open(dyck.parse(PROBE_TEXT))[0]
    assert data.height == 4 * 16 * 17 // 2
    shown = data.group_by("panel", "run", "replica", maintain_order=True).agg("query", "key", "weight", "box")
    for letter, (run, which, label), row in zip("abcd", panels, shown.iter_rows(named=True), strict=True):
        assert (row["panel"], row["run"], row["replica"]) == (f"({letter}) {label}", run, (3, 5)[which])
        boxes = {(q, k) for q, k, box in zip(row["query"], row["key"], row["box"], strict=True) if box}
        assert boxes == {(i, at) for i, at in enumerate(last) if at >= 0} and len(boxes) == 14
        weights = dict(zip(zip(row["query"], row["key"], strict=True), row["weight"], strict=True))
        assert weights[9, 9] == (0.7, 0.1)[which]
    tokens = data.filter(pl.col("panel").str.starts_with("(a)"), query=15).sort("key")["key_token"]
    assert "".join(tokens) == PROBE_TEXT
    labels = texts(chart, tmp_path)
    assert {f"({letter}) {label}" for letter, (_, _, label) in zip("abcd", panels, strict=True)} <= set(labels)
    assert labels.count("attention weight") == 1  # one scale for all panels
    assert labels.count("[") == 4 * 2 * 4 and labels.count(")") == 4 * 2 * 4  # tokens on both axes of each panel
    assert f"accuracy 0.990, stack score {0.2 + 0.01 * 3:.2f}" in labels
    assert "mean weight in the boxes 0.70" in chart.to_dict()["description"]


@pytest.mark.parametrize(
    ("name", "panels", "text"),
    [
        ("fig7", prefix.FIGURE_7, TEXTS[PROBE]),
        ("fig8", prefix.FIGURE_8, TEXTS[LONG_PROBE]),
        ("fig9", prefix.FIGURE_9, TEXTS[PROBE]),
        ("fig13", table1.FIGURE_13[:2], TEXTS[TABLE_1_PROBE]),
    ],
)
def test_maps_with_the_start_token_box_the_last_unmatched_open(
    name: str, panels: list[tuple[str, int, str]], text: str, tmp_path: Path
) -> None:
    chart, data = FIGURES[name](context())
    last = [at + 1 if at >= 0 else -1 for at in dyck.last_unmatched_open(dyck.parse(text))[0]]
    n = len(text) + 1
    assert data.height == len(panels) * n * (n + 1) // 2
    for letter, (run, which, label) in zip("abcd", panels, strict=False):
        shown = data.filter(panel=f"({letter}) {label}")
        assert set(shown["run"]) == {run} and set(shown["replica"]) == {(3, 5)[which]}
        assert set(shown.filter("box").select("query", "key").rows()) == {
            (i + 1, at) for i, at in enumerate(last) if at >= 0
        }
        assert "".join(shown.filter(query=n - 1).sort("key")["key_token"]) == f"·{text}"
    assert texts(chart, tmp_path).count("·") == 2 * len(panels)


def test_training_length_shows_variation_and_accuracy(tmp_path: Path) -> None:
    chart, data = FIGURES["training_length"](context())
    assert data["quantity"].value_counts(sort=True)["count"].to_list() == [4, 4]
    labels = texts(chart, tmp_path)
    said = " ".join(labels)
    assert {"400", "1200", "2400"} <= set(labels) and "90 % intervals" in said
    assert "After 100, 400, 1,200, 2,400 steps of training: attention variation on D4 –, 0.4, 2.33, 2.4" in said
    steps = "{} steps: attention variation on D4 {}"
    sentence = "; ".join(starmap(steps.format, ((100, "–"), (400, "0.40"), (1200, "2.33"))))
    assert sentence in chart.to_dict()["description"]


def test_the_factorial_shows_every_cell_and_every_factor(tmp_path: Path) -> None:
    chart, data = FIGURES["stack_cells"](context())
    assert data.height == len(STACK_CELLS)
    sentence = "k=3, D=8, prefixes, block of Table 1 (M8), 400 steps: 0.15, 1 of 4 accurate models stack-like"
    assert sentence in chart.to_dict()["description"]
    labels = texts(chart, tmp_path)
    assert {"k=2, D=4", "k=2, D=8", "k=3, D=4", "k=3, D=8", "prefixes, block of Table 1 (M8)"} <= set(labels)
    chart, data = FIGURES["stack_effects"](context())
    assert data.height == 2 * len(FACTORS)
    assert "types of bracket: 3 over 2" in texts(chart, tmp_path)
    assert "block: Table 1 (M8) over GPT (M1), all cells: 0.20" in chart.to_dict()["description"]
    empty = context(stack_cells=stack_cells().clear(), stack_effects=stack_effects().clear())
    for name in ("stack_cells", "stack_effects"):
        charts.save(*FIGURES[name](empty), tmp_path, name)


def test_families_and_violation_by_length_are_told(tmp_path: Path) -> None:
    chart, data = FIGURES["families"](context())
    assert data.height == 2 * 2 * len(FAMILY_RUNS)
    said = " ".join(texts(chart, tmp_path))
    assert said.count("variation within a family 1.50, between 12.25") == 2
    assert "4 of 8 (start token omitted), 4 of 8 (start token included)" in said
    chart, data = FIGURES["beta_length"](context())
    assert data["law"].to_list() == pytest.approx([0.286 * 14 / n for n in (14, 28, 56, 112)])
    assert "14 tokens: 0.29" in chart.to_dict()["description"] and texts(chart, tmp_path)


def test_the_law_of_random_maps_is_drawn_from_its_deviations(tmp_path: Path) -> None:
    chart, data = FIGURES["random_law"](context())
    assert data.select("panel", "maps", "mean").rows() == [("N = 16", 2, 3.003), ("N = 16", 40, 3.003)]
    assert data["hi"].to_list() == pytest.approx([3.003 + 1.96 * 0.6 / n for n in (2, 40)])
    assert "N = 16, 40 maps: 2.97 to 3.03 (published 2.85)" in chart.to_dict()["description"]
    assert texts(chart, tmp_path)


def test_figure_1_says_that_its_last_panels_start_alike(tmp_path: Path) -> None:
    note = "(c) and (d) start from the same weights and see the same batches."
    labels = texts(FIGURES["fig1"](context())[0], tmp_path)
    assert note in labels
    assert f"stack scores {0.2 + 0.03:.2f} to {0.2 + 0.05:.2f}, accuracies 0.990" in " ".join(labels)
    apart = runs().with_columns(stream=pl.when(pl.col("run") == LINEAR).then(pl.lit("own")).otherwise("stream"))
    assert note not in texts(FIGURES["fig1"](context(runs=apart))[0], tmp_path)


def test_prefix_variation_shows_every_reading(tmp_path: Path) -> None:
    chart, data = FIGURES["prefix_variation"](context())
    assert data.select("model", "loss", "where", "value", "published").rows() == [
        ("M4", "closing brackets", "D4, start token omitted", 0.2, 0.34),
        ("M1", "all positions", "D5, start token included", 7.0, 14.51),
    ]
    labels = texts(chart, tmp_path)
    panels = {"M1, 10 models a point", "M4, 10 models a point"}
    assert panels | {"all positions", "D5, start token included"} <= set(labels)
    assert "within intervals of models trained on prefixes: 0 of 1 (M4)" in " ".join(labels)


def test_table_1_shows_every_cell_three_times(tmp_path: Path) -> None:
    chart, data = FIGURES["table1"](context())
    assert data.height == 3 * 20 and data["cell"].n_unique() == 8
    labels, told = texts(chart, tmp_path), chart.to_dict()["description"]
    for text in ("0.047 (0.006)", "0.094 (0.012)", "0.141 (0.018)", "24.06 (1.17)", "48.13 (2.33)"):
        assert text in told, text
    assert "k=3, D=8, 3 layers" in labels
    assert labels.index("layer 1") < labels.index("layer 2") < labels.index("layer 3")
    said = " ".join(labels)
    assert "layer 3 47 to 51 (published 24 to 26)" in said
    assert "Models per row: 3 trained on complete strings and 3 trained on prefixes (16 of all rows excluded)" in said
    assert "ours, on prefixes, k=2, D=4, 2 layers, layer 2: 15.44 (1.82)" in told


def test_no_value_of_table_1_is_beyond_its_axis() -> None:
    faint = table_1().with_columns(mean=pl.col("mean") / 500, ci_lo=pl.lit(1e-9))
    chart, data = FIGURES["table1"](context(variation_table1=faint))
    for panel in chart.to_dict()["hconcat"]:
        points = next(layer for layer in panel["layer"] if layer["mark"]["type"] == "point")
        low, high = points["encoding"]["x"]["scale"]["domain"]
        own = data.filter(layer=panel["title"]["text"])["value"]
        assert low <= own.min() < own.max() <= high
        assert low > 1e-7  # the end of an interval near 0 leaves room for the rest
    assert "0.0002 (0.0120)" in data["text"].to_list()


def test_stack_scores_are_those_of_the_last_layer(tmp_path: Path) -> None:
    chart, data = FIGURES["stack_score"](context())
    shown = {run for run in MAPPED if not run.startswith("dyck-prefix")}
    assert set(data["layer"]) == {2} and data.height == 2 * len(shown)
    assert COMPLETE_ARMS["standard"] not in set(data["model"])
    labels = texts(chart, tmp_path)
    assert {"standard (M1)", "k=2, D=4, 3 layers (M8)"} <= set(labels)
    learned = 2 * len(shown) - 1  # one model of M2 did not
    assert f"0 of {learned} models that learned look at the top of the stack" in " ".join(labels)
    assert "standard (M1) 0.24, position code (M2) 0.24" in chart.to_dict()["description"]


def test_exact_solvers_stand_beside_trained_models_and_random_maps(tmp_path: Path) -> None:
    chart, data = FIGURES["exact_solvers"](context())
    assert data.select("what", "value", "kind").rows() == [
        ("exact, σ = 0.5", 0.871, "exact by construction"),
        ("exact, σ = 2", 8.664, "exact by construction"),
        ("standard (M1)", 2.33, "trained"),
        ("linear position code (M2)", 2.61, "trained"),
        ("minimal first layer (M4)", 0.08, "trained"),
        ("random causal maps", 3.003, "random causal maps"),
    ]
    labels = texts(chart, tmp_path)
    assert {"0.87", "8.66", "2.33", "3.00", "exact, σ = 2"} <= set(labels)


def test_broken_solvers_show_every_point_once(tmp_path: Path) -> None:
    chart, data = FIGURES["broken_solvers"](context())
    assert data["panel"].value_counts(sort=True).rows() == [("(a) inserted pairs", 6), ("(b) length", 4)]
    assert data.filter(x=450.0).select("line", "y").rows() == [
        ("delta = 0", 1.0),
        ("delta = 0.02", 1 - 0.02 * 450 / 900),
    ]
    assert 5.55 not in data["y"].to_list()
    texts(chart, tmp_path)
    svg = marks(tmp_path)
    assert svg.count('aria-roledescription="line mark"') == 5
    assert "right at length 450: 1.000 with δ = 0, 0.990 with δ = 0.02" in chart.to_dict()["description"]


def test_pruning_error_shows_every_parent_and_the_measured_slopes(tmp_path: Path) -> None:
    chart, data = FIGURES["pruning_error"](context())
    points = data.filter(pl.col("error").is_not_null())
    assert points.height == 2 * 3 * 2
    line = data.filter(pl.col("fitted").is_not_null(), target="L = 1").sort("candidates")
    assert line["fitted"].to_list() == pytest.approx([10 ** (-0.3 * n) for n in (8, 12, 16)])
    ends = data.filter(pl.col("fitted").is_not_null(), target="L = 2", candidates=8).row(0, named=True)
    center = 8 * 10 ** (-0.3 * 12)
    assert ends["low"] == pytest.approx(center * 10 ** (0.14 * 4))
    assert ends["high"] == pytest.approx(center * 10 ** (0.16 * 4))
    said = " ".join(texts(chart, tmp_path))
    assert "L = 1: −0.300 [−0.320, −0.280]; L = 2: −0.150 [−0.160, −0.140]" in said
    assert "multiplies the error by 0.50 (L = 1), by 0.71 (L = 2)" in said
    assert "Points: 2 random parents of 4L layers" in said
    svg = marks(tmp_path)
    assert svg.count('aria-roledescription="point"') == 12


def test_pruning_maps_stand_side_by_side(tmp_path: Path) -> None:
    chart, data = FIGURES["pruning_maps"](context())
    assert data.height == 6 * 16 * 17 // 2
    labels = texts(chart, tmp_path)
    panels = [
        f"{network}, layer {layer}"
        for network, layer in ((TARGET, 1), (PARENT, 2), (PRUNED, 2), (TARGET, 2), (PARENT, 4), (PRUNED, 4))
    ]
    assert [text for text in labels if text in panels] == panels
    said = " ".join(labels)
    for text in ("bracket accuracy 0.991", "bracket accuracy 0.495", "pruned to 19,778 of its weights"):
        assert text in said, text
    assert "accuracy 0.991, before 0.495, its target 0.991" in said


def chosen(data: pl.DataFrame) -> list[tuple[Any, ...]]:
    return data.select("run", "replica", "layer", "head").unique(maintain_order=True).rows()


def test_maps_of_models_that_copy_are_chosen_by_rule(tmp_path: Path) -> None:
    chart, data = FIGURES["fig4"](context())
    assert chosen(data) == [(COPY_DEEP, 2, layer, 0) for layer in (2, 3, 4)]
    assert data.height == 3 * 17 * 18 / 2 and data.filter(query=0)["query_token"].to_list() == ["·"] * 3
    labels = texts(chart, tmp_path)
    assert {
        "(a) layer 2",
        "lift 1.00 on ( to 1.00 on ]",
        "accuracy 0.875, ablated 0.875",
        "can be read, and misleads",
    } <= set(labels)
    assert "2 of 3 maps can be read, 2 of them misleading" in " ".join(labels)
    worse = ablation().with_columns(
        acc_after=pl.when(run=COPY_DEEP, replica=2).then(0.5).otherwise("acc_after"),
        misleading=pl.col("misleading") & (pl.col("layer") != 4),  # now one map of each, and 2 pays for ablation
    )
    assert {row[1] for row in chosen(FIGURES["fig4"](context(ablation=worse))[1])} == {1}

    _, data = FIGURES["fig5"](context())
    assert chosen(data) == [(COPY_SHALLOW, 1, 1, 0), (COPY_NO_SKIP, 1, 1, 0), (COPY_STRIPPED, 2, 1, 0)]

    chart, data = FIGURES["fig6"](context())
    assert chosen(data) == [(COPY_HEADS, 2, 3, 1), (COPY_HEADS, 2, 4, 2)]
    labels = texts(chart, tmp_path)
    assert "(a) layer 3, head 1: 90% on opening brackets" in labels
    assert "(b) layer 4, head 2: 50% on the current position" in labels
    assert {"lift 0.00 on ) to 3.00 on [", "accuracy 0.875, ablated 0.625", "can be read"} <= set(labels)


def test_importance_stands_against_the_stack_score(tmp_path: Path) -> None:
    chart, data = FIGURES["head_importance"](context())
    assert data.height == 2 * 16 and data["points"].max() == pytest.approx(6.0)
    labels = texts(chart, tmp_path)
    assert {"Spearman 0.25 (−0.50 to 0.50)", "Spearman −0.38 (−0.50 to 0.50)", "trained further without it"} <= set(
        labels
    )


@pytest.mark.parametrize("name", FIGURES)
def test_figures_fit_a_text_column(name: str) -> None:
    chart, _ = FIGURES[name](context())
    width = re.search(r'width="([0-9.]+)"', vl_convert.vegalite_to_svg(charts.specification(chart)))
    assert width and float(width[1]) <= 680


@cache
def lacking() -> dict[str, dict[str, pl.DataFrame]]:
    """Tables of few runs, without a number, and without a row."""
    few = {
        "variation": variation().filter(run=STANDARD),
        "fig3": fig3().filter(arm="standard", data="complete"),
        "comparisons": comparisons(
            lambda each: (-0.5, -0.8, 0.3) if each.arms[0].runs == (COMPLETE_ARMS["standard"],) else None
        ),
        "attention": attention().filter(pl.col("run") != WIDE, replica=3),
        "stack_score": stack_scores().filter(run=STANDARD),
        "variation_table1": table_1().filter(n_layers=2),
        "pruning_maps": pruning_maps().filter(pl.col("network") != PARENT),
    }
    undefined = {
        "variation": variation().with_columns(variation_mean=pl.lit(None, pl.Float64)),
        "variation_table1": table_1().with_columns(
            mean=pl.lit(None, pl.Float64), sd_over_sentences=pl.lit(None, pl.Float64)
        ),
    }
    return {
        "few": fitting(few, SCHEMAS),
        "undefined": fitting(undefined, SCHEMAS),
        "none": {table: frame.clear() for table, frame in TABLES.items()},
    }


@pytest.mark.parametrize("name", FIGURES)
def test_figures_survive_missing_runs(name: str, tmp_path: Path) -> None:
    read: set[str] = set()

    def drawn(lack: dict[str, pl.DataFrame], theory: pl.DataFrame = THEORY) -> tuple[alt.TopLevelMixin, pl.DataFrame]:
        def table(name: str) -> pl.DataFrame:
            read.add(name)
            return (TABLES | lack)[name]

        def rows() -> pl.DataFrame:
            read.add("theory")
            return theory

        return FIGURES[name](SimpleNamespace(study="dyck", table=table, theory=rows))

    charts.save(*drawn(lacking()["none"]), tmp_path, name)
    lacks = {"few": lacking()["few"], "undefined": lacking()["undefined"]}
    found = {each: drawn(lack)[0] for each, lack in lacks.items()} | {"theory": drawn({}, THEORY.clear())[0]}
    for each, chart in found.items():
        if read & {each, *lacks.get(each, ())}:  # else it is the figure that other tests draw
            assert vl_convert.vegalite_to_vega(charts.specification(chart))["marks"]


@pytest.mark.parametrize("name", ["fig1", "variation", "table1", "fig3"])  # one of each make
def test_the_same_figure_has_the_same_bytes_whatever_was_drawn_before(name: str, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        charts.save(*FIGURES[name](context()), tmp_path / folder, name)
        alt.Chart(pl.DataFrame({"x": [1]})).mark_point().interactive().to_dict()  # moves altair's counters
    for suffix in ("vl.json", "svg", "parquet"):
        first, second = ((tmp_path / folder / f"{name}.{suffix}").read_bytes() for folder in "ab")
        assert first == second and len(first) > 500, suffix
