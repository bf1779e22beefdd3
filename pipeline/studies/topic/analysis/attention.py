"""E4 and E5: average attention by the kind of pair, with labels as they are and as the released code shifts them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit import comparisons, extremes
from pipeline.kit.comparisons import Comparison
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.models.topic import one_layer
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.comparisons import Trained
from pipeline.studies.topic.measures import attention, blocks, models, published
from pipeline.studies.topic.measures.models import Floats, Group, Row
from pipeline.studies.topic.names import ATTENTION_SGD_SHORT, DOCUMENTS, JOINT_LONG, RELEASED_ADAM, RELEASED_SGD

WORD, TOPIC, OTHER = "same_word", "same_topic_diff_word", "diff_topic"
DIAGONAL = 3.0  # the rule that keeps a jointly trained model: its diagonal over the rest of its blocks, at least
NO_DIAGONAL = "no visible diagonal"
Key = tuple[str, str, float]  # run, cell, learning rate


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment."""
    frame = context.dataset(DOCUMENTS)
    topics, words = int(frame["topics"][0]), int(frame["words"][0])
    counts = {
        scheme: attention.plain_counts(frame, scheme, context.settings.attention_documents)
        for scheme in ("thesis", "released")
    }
    rows: list[Row] = []
    others = ("topic-joint", "topic-released")  # of which some are measured elsewhere
    groups = [
        group
        for group in models.groups(context)
        if not group.run.startswith(others) or group.run in (JOINT_LONG, RELEASED_ADAM, RELEASED_SGD)
    ]
    with one_thread():
        for group in groups:
            spec, params = group.one_hot
            for place, seed in enumerate(group.seeds):
                own = {name: value[place : place + 1] for name, value in params.items()}
                read = counts[group.entry["masking"]]
                kinds = attention.averages(spec, own, group.table, read, topics, words)
                rows += [group.keys | {"replica": seed} | row for row in kinds]
        kept = {_key(group): _kept(group, topics, words) for group in groups if group.run == JOINT_LONG}
        made = {
            "configs": models.configs(context, [group for group in groups if group.run != JOINT_LONG]),
            "attention": rows,
            "averages": _averages(groups, rows, kept),
        }
        found = _compared(context, groups, rows, counts, kept)
    return {name: [pl.DataFrame(made[name], infer_schema_length=None)] if made[name] else [] for name in made} | {
        "comparisons": [found]
    }


def _key(group: Group) -> Key:
    return group.run, group.cell, group.lr


def _kept(group: Group, topics: int, words: int) -> list[int]:
    """Return the seeds whose values have a visible diagonal, by rule: `DIAGONAL` times the rest of the blocks."""
    matrices = one_layer.value_map(group.spec, group.params, group.table) + one_layer.output_bias(
        group.spec, group.params, group.table
    ).unsqueeze(-1)
    kept = []
    for seed, matrix in zip(group.seeds, matrices.double().numpy(), strict=True):
        inner = matrix[1 : topics * words + 1, 1 : topics * words + 1]
        stats = blocks.block_stats(inner, topics, words)
        if stats["diag_mean"] >= DIAGONAL * abs(stats["same_offdiag_mean"]):
            kept.append(seed)
    return kept


def _values(rows: list[Row], group: Group, offset: int, norm: str, category: str, seeds: list[int]) -> list[float]:
    key = (group.run, group.cell, group.lr, offset, norm, category)
    names = ("run", "cell", "lr", "label_offset", "norm", "category")
    by_seed = {row["replica"]: row["mean_attn"] for row in rows if tuple(row[name] for name in names) == key}
    return [by_seed[seed] for seed in seeds]


def _averages(groups: list[Group], rows: list[Row], kept: dict[Key, list[int]]) -> list[Row]:
    """Return means and standard deviations over seeds as tables 2.1 and 2.2 print them, and what is printed: over those
    that a rule has ``kept``, where there is one."""
    made: list[Row] = []
    for group, offset, norm in product(groups, attention.OFFSETS, attention.NORMS):
        seeds = kept.get(_key(group), group.seeds)
        row: Row = group.keys | {
            "label_offset": offset,
            "norm": norm,
            "n": len(seeds),
            "n_trained": len(group.seeds) + len(group.diverged),
            "n_learned": sum(bool(own) for seed, own in zip(group.seeds, group.learned, strict=True) if seed in seeds),
            "source": "here",
        }
        for name, category in (("same_word", WORD), ("same_topic", TOPIC), ("diff_topic", OTHER)):
            values = _values(rows, group, offset, norm, category, seeds)
            row |= {name: _mean(values), f"{name}_sd": float(np.std(values, ddof=1)) if len(values) > 1 else None}
        made.append(row)
    for entry in published.AVERAGES:
        keys = {"run": f"{entry.table}, {entry.optimiser}", "cell": "ce", "lr": entry.lr, "n": entry.runs}
        keys |= {"n_trained": entry.trained, "n_learned": None}
        source = {"label_offset": None, "norm": None, "source": f"Li 2025, {entry.table}"}
        made.append(keys | source | {name: getattr(entry, name) for name in entry._fields[5:]})
    return made


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _compared(
    context: Inputs, groups: list[Group], rows: list[Row], counts: dict[str, Any], kept: dict[Key, list[int]]
) -> pl.DataFrame:
    """Return the table of the comparisons that the experiment declares."""
    found = comparisons.Measurements(context)
    by = {(group.run, group.lr): group for group in groups}

    def given(group: Group, category: str, offset: int = 0) -> Floats:
        return np.array(_values(rows, group, offset, "raw", category, group.seeds), float)

    def measured(comparison: Comparison, key: Trained, of: Callable[[Group], Floats]) -> None:
        if group := by.get(key):
            seeds = kept.get(_key(group), group.seeds)
            models.measure(found, comparison, group, of(group), [seed in seeds for seed in group.seeds], NO_DIAGONAL)
        elif key[0] in context.runs():
            found.not_run(comparison)  # not at this rate

    def ratio(group: Group) -> Floats:
        return given(group, TOPIC) / given(group, OTHER)

    for key, comparison in declared.TOPIC_FIRST.items():
        measured(comparison, key, ratio)
    for comparison, key in ((declared.SHORT, (ATTENTION_SGD_SHORT, 0.03)), (declared.FAILED, (RELEASED_SGD, 0.003))):
        measured(comparison, key, lambda group: np.abs(ratio(group) - 1))

    def less(first: str, second: str) -> Callable[[Group], Floats]:
        return lambda group: given(group, first) - given(group, second)

    def alone(kind: str, offset: int = 0) -> Callable[[Group], Floats]:
        return lambda group: given(group, kind, offset)

    for (order, run, rate), comparison in declared.ORDER.items():
        measured(comparison, (run, rate), less(*declared.ORDERS[order]))
    for (kind, run), comparison in declared.SIZES.items():
        measured(comparison, (run, declared.FROZEN_RATE), alone(kind))
    for name, (run, rate) in declared.CAPTIONED.items():
        measured(declared.CAPTION[name], (run, rate), less(WORD, TOPIC))
    for name, (run, rate, _) in declared.ROWS.items():
        measured(declared.RIGHT[name], (run, rate), alone(OTHER))
        for kind in declared.KINDS:
            measured(declared.SHIFTED[kind, name], (run, rate), alone(kind, 4))
    if groups:
        for norm, comparison in declared.POOLED.items():
            found.add(comparison, [gap for group in groups for gap in _pooled(group, rows, counts, norm)])
    return found.table()


def _pooled(group: Group, rows: list[Row], counts: dict[str, Any], norm: str) -> list[float]:
    """Return how far the mean over all pairs of each model is from what lengths fix, the farther of both labellings."""
    expectation = attention.expected(counts[group.entry["masking"]], norm)
    gaps = []
    for seed in group.seeds:
        pooled = [
            sum(
                row["mean_attn"] * row["pair_share"]
                for row in rows
                if (row["run"], row["cell"], row["lr"]) == _key(group)
                and row["n_pairs"]
                and (row["replica"], row["label_offset"], row["norm"]) == (seed, offset, norm)
            )
            for offset in attention.OFFSETS
        ]
        gaps.append(extremes.largest(np.abs(np.subtract(pooled, expectation))))
    return gaps
