"""E3: Gram matrices of trained embeddings, before and after training (figure 2.1, theorem 2.1.1)."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.kit import comparisons
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import blocks, models
from pipeline.studies.topic.measures.models import Floats, Group, Row
from pipeline.studies.topic.names import ALL, DOCUMENTS, ONLY_SQ, UNIT


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment."""
    documents = context.dataset(DOCUMENTS)
    topics, words = int(documents["topics"][0]), int(documents["words"][0])
    with one_thread():
        groups = list(models.groups(context))
        stats = [row for group in groups for row in _stats(group, topics, words)]
        made = {
            "configs": models.configs(context, groups),
            "gram_stats": stats,
            "matrices": [row for group in groups for row in _matrices(group, topics * words)],
        }
        found = _compared(context, groups, stats)
    return {name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in made.items()} | {
        "comparisons": [found]
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
                    "cos_same": float(cosines[pairs].mean()),
                    "cos_diff": float(cosines[~same].mean()),
                    "diag_least": float(np.diag(gram).min()),
                    "offdiag_largest": float(off.max()),
                }
            )
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


def _compared(context: Inputs, groups: list[Group], stats: list[Row]) -> pl.DataFrame:
    """Return the table of the comparisons that the experiment declares."""
    found = comparisons.Measurements(context)
    by = {(group.run, group.cell): group for group in groups}

    def column(group: Group | None, name: str) -> Floats:
        keys = (group.run, group.cell, "Gram") if group else ()
        return np.array([row[name] for row in stats if (row["run"], row["cell"], row["matrix"]) == keys], float)

    for table, first, second in (
        (declared.SUMS, "block_sum_same", "block_sum_diff"),
        (declared.INNER, "same_offdiag_mean", "diff_mean"),
        (declared.PAIRED_OFF, "auc", ""),
        (declared.COSINES, "cos_same", "cos_diff"),
    ):
        for key, comparison in table.items():
            group = by.get(key)
            less = column(group, second) if second else 0.0
            models.measure(found, comparison, group, column(group, first) - less)
    alone = by.get((ONLY_SQ, "sq"))
    for name, comparison in declared.THEOREM_SUMS.items():
        models.measure(found, comparison, alone, column(alone, name))
    unit = by.get((UNIT, "ce"))
    ends = column(unit, "diag_least") / column(unit, "offdiag_largest")
    models.measure(found, declared.UNIT_DIAGONAL, unit, ends)
    for cell, comparison in declared.ALONE_COST.items():
        models.lost(context, found, comparison, by.get((declared.ALONE[cell], cell)), by.get((ALL, cell)))
    return found.table()
