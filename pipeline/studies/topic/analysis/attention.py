"""E4 and E5: average attention by the kind of pair, with labels as they are and as the released code shifts them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.models.topic import one_layer
from pipeline.studies.topic.measures import attention, blocks, contrasts, models, published
from pipeline.studies.topic.measures.contrasts import Row
from pipeline.studies.topic.measures.models import Group
from pipeline.studies.topic.names import DOCUMENTS, JOINT_LONG

WORD, TOPIC, OTHER = "same_word", "same_topic_diff_word", "diff_topic"
DIAGONAL = (
    3.0  # the rule that keeps a jointly trained model: its diagonal over the rest of its blocks, at least
)
NO_DIAGONAL = f"no visible diagonal, or {contrasts.DIVERGED}"
Key = tuple[str, str, float]  # run, cell, learning rate


def analyse(context: Inputs) -> dict[str, Sequence[pl.DataFrame]]:
    """Return the tables of the experiment."""
    frame = context.dataset(DOCUMENTS)
    topics, words = int(frame["topics"][0]), int(frame["words"][0])
    counts = {
        scheme: attention.plain_counts(frame, scheme, context.settings.attention_documents)
        for scheme in ("thesis", "released")
    }
    rows: list[Row] = []
    groups = [
        group
        for group in models.groups(context)
        if not group.run.startswith("topic-joint") or group.run == JOINT_LONG
    ]
    with one_thread():
        for group in groups:
            for place, seed in enumerate(group.seeds):
                own = {name: value[place : place + 1] for name, value in group.params.items()}
                read = counts[group.entry["masking"]]
                kinds = attention.averages(group.spec, own, group.table, read, topics, words)
                rows += [group.keys | {"replica": seed} | row for row in kinds]
        kept = {_key(group): _kept(group, topics, words) for group in groups if group.run == JOINT_LONG}
        made = {
            "configs": models.configs(context, [group for group in groups if group.run != JOINT_LONG]),
            "attention": rows,
            "averages": _averages(groups, rows, kept),
            "contrasts": _contrasts(context, groups, rows, counts, kept),
        }
    return {name: [pl.DataFrame(made[name], infer_schema_length=None)] if made[name] else [] for name in made}


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


def _values(
    rows: list[Row], group: Group, offset: int, norm: str, category: str, seeds: list[int]
) -> list[float]:
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
            "source": "here",
        }
        for name, category in (("same_word", WORD), ("same_topic", TOPIC), ("diff_topic", OTHER)):
            values = _values(rows, group, offset, norm, category, seeds)
            row |= {
                name: _mean(values),
                f"{name}_sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            }
        made.append(row)
    for entry in published.AVERAGES:
        keys = {"run": f"{entry.table}, {entry.optimiser}", "cell": "ce", "lr": entry.lr, "n": entry.runs}
        keys |= {"n_trained": entry.trained}
        source = {"label_offset": None, "norm": None, "source": f"Li 2025, {entry.table}"}
        made.append(keys | source | {name: getattr(entry, name) for name in entry._fields[5:]})
    return made


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _contrasts(
    context: Inputs, groups: list[Group], rows: list[Row], counts: dict[str, Any], kept: dict[Key, list[int]]
) -> list[Row]:
    made: list[Row] = []
    for group in groups:
        name = f"{group.run} {group.lr:g}"
        seeds = kept.get(_key(group), group.seeds)
        reason = NO_DIAGONAL if _key(group) in kept else contrasts.DIVERGED
        left = len(group.seeds) - len(seeds) + len(group.diverged), reason
        for offset in attention.OFFSETS:
            word, topic, other = (
                np.array(_values(rows, group, offset, "raw", category, seeds))
                for category in (WORD, TOPIC, OTHER)
            )
            labels = "right labels" if offset == 0 else "shifted labels"
            made += contrasts.least(f"topic over other, least, {labels} {name}", topic / other, *left)
            made += contrasts.median(context, f"topic over other {labels} {name}", topic / other, *left)
            for kind, values in ((WORD, word), (TOPIC, topic), (OTHER, other)):
                made += contrasts.median(context, f"{kind} {labels} {name}", values, *left)
            if offset == 0:
                made += contrasts.most(
                    f"topic over other, largest distance from 1 {name}", np.abs(topic / other - 1), *left
                )
                made += contrasts.least(f"word above other {name}", word - other, *left)
                made += contrasts.median(context, f"word minus topic {name}", word - topic, *left)
                made += contrasts.least(f"other above topic {name}", other - topic, *left)
    for norm in attention.NORMS:
        gaps = []
        for group, offset in product(groups, attention.OFFSETS):
            expectation = attention.expected(counts[group.entry["masking"]], norm)
            for seed in group.seeds:
                own = [
                    row for row in rows
                    if (row["run"], row["cell"], row["lr"]) == (group.run, group.cell, group.lr)
                    and (row["replica"], row["label_offset"], row["norm"]) == (seed, offset, norm)
                ]  # fmt: skip
                pooled = sum(row["mean_attn"] * row["pair_share"] for row in own if row["n_pairs"])
                gaps.append(abs(pooled - expectation))
        made += contrasts.most(f"pooled mean, {norm}", gaps)
    return made
