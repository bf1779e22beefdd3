"""E3: Gram matrices of trained embeddings, before and after training (figure 2.1, theorem 2.1.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.topic.measures import blocks, contrasts, models
from pipeline.studies.topic.measures.contrasts import Row
from pipeline.studies.topic.measures.models import Group
from pipeline.studies.topic.names import ALL, DOCUMENTS, ONLY_CE, SHOWN, UNIT, UNIT_SGD


def analyse(context: Inputs) -> dict[str, Sequence[pl.DataFrame]]:
    """Return the tables of the experiment."""
    documents = context.dataset(DOCUMENTS)
    topics, words = int(documents["topics"][0]), int(documents["words"][0])
    with one_thread():
        groups = list(models.groups(context))
        stats = [row for group in groups for row in _stats(group, topics, words)]
        made = {
            "configs": models.configs(context, groups),
            "gram_stats": stats,
            "matrices": [row for group in groups for row in _matrices(group, SHOWN * words)],
            "contrasts": _contrasts(context, groups, stats),
        }
    return {
        name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in made.items()
    }


def _stats(group: Group, topics: int, words: int) -> list[Row]:
    """Return statistics of the Gram matrix of words, and mean cosines of pairs of different words."""
    same = blocks.same_topic(topics, words)
    pairs = same & ~np.eye(len(same), dtype=bool)
    rows = []
    for name, params in (("Gram", group.params), ("Gram_init", group.start)):
        for seed, embedding in zip(group.seeds, params["embed.W"].double().numpy(), strict=True):
            own = embedding[:, 1 : topics * words + 1]
            gram, cosines = own.T @ own, blocks.cosines(own)
            off = np.abs(gram[~np.eye(len(gram), dtype=bool)])
            rows.append(
                group.keys
                | {"replica": seed, "matrix": name}
                | blocks.block_stats(gram, topics, words)
                | {
                    "cos_same": float(cosines[pairs].mean()), "cos_diff": float(cosines[~same].mean()),
                    "diag_least": float(np.diag(gram).min()), "offdiag_largest": float(off.max()),
                }
            )  # fmt: skip
    return rows


def _matrices(group: Group, size: int) -> list[Row]:
    """Return the rows of the words of the first seed's Gram matrices, for figures."""
    rows: list[Row] = []
    for name, params in (("Gram", group.params), ("Gram_init", group.start)):
        if not group.seeds:
            continue
        own = params["embed.W"][0, :, 1 : size + 1].double()
        same = group.keys | {"matrix": name}
        rows += [same | {"row": n, "values": row} for n, row in enumerate((own.T @ own).tolist(), 1)]
    return rows


def _contrasts(context: Inputs, groups: list[Group], stats: list[Row]) -> list[Row]:
    by = {(group.run, group.cell): group for group in groups}
    rows: list[Row] = []
    for (run, cell), group in by.items():
        own = [row for row in stats if (row["run"], row["cell"]) == (run, cell)]
        last = [row for row in own if row["matrix"] == "Gram"]
        first = [row for row in own if row["matrix"] == "Gram_init"]
        gone = len(group.diverged)
        for name in ("block_sum_same", "block_sum_diff"):
            rows += contrasts.median(context, f"{name} {run} {cell}", [row[name] for row in last], gone)
        rows += contrasts.least(f"gram auc {run} {cell}", [row["auc"] for row in last], gone)
        lead = [row["same_offdiag_mean"] - row["diff_mean"] for row in last]
        rows += contrasts.least(f"block above rest {run} {cell}", lead, gone)
        cosines = [row["cos_same"] - row["cos_diff"] for row in last]
        rows += contrasts.least(f"cosine gap {run} {cell}", cosines, gone)
        rows += contrasts.median(context, f"median cosine gap {run} {cell}", cosines, gone)
        if run in (UNIT, UNIT_SGD):
            for when, which in (("before", first), ("after", last)):
                means = [row["diag_mean"] / abs(row["same_offdiag_mean"]) for row in which]
                rows += contrasts.least(f"diagonal over rest of blocks, {when} {run} {cell}", means, gone)
                ends = [row["diag_least"] / row["offdiag_largest"] for row in which]
                rows += contrasts.least(
                    f"least diagonal over largest other entry, {when} {run} {cell}", ends, gone
                )
    return rows + _price(context, by)


def _price(context: Inputs, by: dict[tuple[str, str], Group]) -> list[Row]:
    """Return what training embeddings alone costs over training everything, in nats, seed by seed."""
    if (ONLY_CE, "ce") not in by or (ALL, "ce") not in by:
        return []
    alone, every = by[ONLY_CE, "ce"], by[ALL, "ce"]
    shared = [seed for seed in alone.seeds if seed in every.seeds]
    first, second = (
        models.held_losses(context, group)[[group.seeds.index(seed) for seed in shared]]
        for group in (alone, every)
    )
    return contrasts.median(context, "price of embeddings alone, ce", first - second)
