"""E1, E2 and X1: value matrices with uniform and with trained attention, beside least squares on the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from pipeline.studies.topic.measures import attention, blocks, closed, contrasts, models
from pipeline.studies.topic.measures.contrasts import Row
from pipeline.studies.topic.measures.models import Group
from pipeline.studies.topic.names import (
    DOCUMENTS,
    EXACT,
    FROZEN_ADAM,
    FROZEN_EXACT,
    FROZEN_RELEASED,
    FROZEN_SGD_SQ,
    JOINT_ADAM,
    JOINT_LONG,
    JOINT_LONG_RELEASED,
    SHOWN,
)
from schemas.topic import datasets

Floats = NDArray[np.float64]
GRADIENT_STEPS = 2000  # of conjugate gradients: exact arithmetic needs as many as there are ids
CLOSED = {  # what least squares is solved on: dataset and masking of the run that it is compared with
    FROZEN_ADAM: (DOCUMENTS, "thesis"), FROZEN_SGD_SQ: (DOCUMENTS, "thesis"),
    FROZEN_RELEASED: (DOCUMENTS, "released"), FROZEN_EXACT: (EXACT, "thesis"),
}  # fmt: skip
COMPARED = ("block_mean", "diff_mean", "diag_mean")


def analyse(context: Inputs) -> dict[str, Sequence[pl.DataFrame]]:
    """Return the tables of the experiment."""
    documents = context.dataset(DOCUMENTS)
    topics, words = int(documents["topics"][0]), int(documents["words"][0])
    with one_thread():
        every = list(models.groups(context))
        # A second rate is there for Table 2.2.
        groups = [group for group in every if group.lr == group.entry["lr"][0]]
        stats = [row for group in groups for row in _stats(group, topics, words)]
        optima = _closed(context, groups, topics, words)
        moments = [
            row for dataset in (DOCUMENTS, EXACT) for row in _moments(context.dataset(dataset), dataset)
        ]
        table = {
            "doc_moments": moments,
            "configs": models.configs(context, every),
            "block_stats": stats,
            "matrices": optima.matrices + [row for group in groups for row in _matrix(group, SHOWN * words)],
            "closed_form": optima.rows,
            "pair_shares": _shares(documents.filter(split="train"), topics, words),
            "contrasts": _contrasts(context, groups, stats, optima.rows),
        }
    return {
        name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in table.items()
    }


def values_of(group: Group, params: dict[str, Any]) -> Floats:
    """Return (S, V, V) W_V + b_V 1' of the models of a group, float64."""
    added = one_layer.output_bias(group.spec, params, group.table)[..., None]
    return (one_layer.value_map(group.spec, params, group.table) + added).double().numpy()


def _stats(group: Group, topics: int, words: int) -> list[Row]:
    """Return the block statistics of the trained and the initial values of each model."""
    rows = []
    for name, params in (("WV_plus_bias", group.params), ("WV_initial", group.start)):
        for seed, matrix in zip(group.seeds, values_of(group, params), strict=True):
            inner = matrix[1 : topics * words + 1, 1 : topics * words + 1]
            mask = {"mask_col_mean": float(matrix[1 : topics * words + 1, 0].mean())}
            stats = blocks.block_stats(inner, topics, words) | mask
            rows.append(group.keys | {"replica": seed, "matrix": name} | stats)
    return rows


def _matrix(group: Group, size: int) -> list[Row]:
    """Return the rows of the first ``size`` words of the first seed's values, for figures."""
    if not group.seeds:
        return []
    matrix = values_of(group, group.params)[0][1 : size + 1, 1 : size + 1]
    same = group.keys | {"matrix": "WV_plus_bias"}
    return [same | {"row": n, "values": row.tolist()} for n, row in enumerate(matrix, 1)]


class _Optima:
    """Rows of table ``closed_form``, and of ``matrices``."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.matrices: list[Row] = []


def _closed(context: Inputs, groups: list[Group], topics: int, words: int) -> _Optima:
    """Solve least squares for each dataset, masking and penalty that runs with squared loss have, and without b_V."""
    made, shown = _Optima(), SHOWN * words
    frames = {name: context.dataset(name) for name in (DOCUMENTS, EXACT)}
    cases = {
        (*CLOSED[group.run], group.settings["l2"])
        for group in groups
        if group.run in CLOSED and group.settings["loss"] == "sq_sum"
    }
    for dataset, masking in sorted({each[:2] for each in cases}):
        questions, held = (
            datasets.questions(frames[dataset].filter(split=split), masking) for split in ("train", "dev")
        )
        for intercept in (True, False):
            problem, unseen = closed.problem(questions, intercept), closed.problem(held, intercept)
            for l2 in sorted(each[2] for each in cases if each[:2] == (dataset, masking)):
                weights = closed.optimum(problem, l2)
                again = closed.descended(problem, l2, GRADIENT_STEPS)
                matrix = closed.values(weights, questions.counts.shape[1])
                inner = matrix[1 : topics * words + 1, 1 : topics * words + 1]
                kind = {"dataset": dataset, "masking": masking, "intercept": intercept, "l2": l2}
                made.rows.append(
                    kind
                    | {"train_loss": problem.loss(weights), "held_loss": unseen.loss(weights)}
                    | {"solver_gap": float(np.abs(again - weights).max())}
                    | {"mask_col_mean": float(matrix[1 : topics * words + 1, 0].mean())}
                    | blocks.block_stats(inner, topics, words)
                )
                if intercept and dataset == DOCUMENTS:
                    name = "WV_ridge" if l2 else "WV_ols"
                    own = {"run": f"closed form, {masking}", "cell": f"l2 {l2:g}", "lr": 0.0, "matrix": name}
                    made.matrices += [
                        own | {"row": n, "values": row.tolist()}
                        for n, row in enumerate(inner[:shown, :shown], 1)
                    ]
    return made


def _moments(frame: pl.DataFrame, dataset: str) -> list[Row]:
    """Return the moments of the documents of each split of a dataset."""
    rows = []
    topics, words = int(frame["topics"][0]), int(frame["words"][0])
    for split in ("train", "dev"):
        read = datasets.documents(frame.filter(split=split))
        owner = np.repeat(np.arange(len(read.lengths)), read.lengths)
        topic = (read.tokens - 1) // words
        many = np.bincount(owner * topics + topic, minlength=len(read.lengths) * topics).reshape(-1, topics)
        shares = many / read.lengths[:, None]
        heavy, any_ = (shares >= 0.05).sum(1), (many > 0).sum(1)
        theta = read.theta[read.theta > 0]
        rows.append(
            {
                "dataset": dataset, "split": split, "n_docs": len(read.lengths),
                "mean_len": float(read.lengths.mean()),
                "mean_sum_p2": float((shares**2).sum(1).mean()),
                "mean_entropy": float(-(theta * np.log(theta)).sum() / len(read.lengths)),
                "share_2_to_4": float(((heavy >= 2) & (heavy <= 4)).mean()),
                "share_2_to_4_any": float(((any_ >= 2) & (any_ <= 4)).mean()),
                "share_k": [float((heavy == k).mean()) for k in range(topics + 1)],
            }
        )  # fmt: skip
    return rows


def _shares(frame: pl.DataFrame, topics: int, words: int) -> list[Row]:
    """Return the shares of pairs of tokens by category, with right and with shifted labels, without special tokens."""
    read = datasets.documents(frame)
    counts = language.keys(read.tokens, read.lengths, topics, words, released=False)
    pairs = counts.T.astype(float) @ counts
    rows = []
    for offset in attention.OFFSETS:
        kind = attention.categories(attention.labels(counts.shape[1], topics, words, offset))
        for number, category in enumerate(attention.CATEGORIES):
            share = float(pairs[kind == number].sum() / pairs.sum())
            rows.append({"label_offset": offset, "category": category, "pair_share": share})
    return rows


def _contrasts(context: Inputs, groups: list[Group], stats: list[Row], optima: list[Row]) -> list[Row]:
    by = {(group.run, group.cell): group for group in groups}
    if not by:
        return []

    def column(run: str, cell: str, name: str, matrix: str = "WV_plus_bias") -> list[float]:
        keys = (run, cell, matrix)
        return [row[name] for row in stats if (row["run"], row["cell"], row["matrix"]) == keys]

    rows: list[Row] = []
    for run, cell in by:
        rows += contrasts.least(f"auc {run} {cell}", column(run, cell, "auc"))
        ratio = _ratio(column(run, cell, "diag_mean"), column(run, cell, "same_offdiag_mean"))
        rows += contrasts.median(context, f"diagonal {run} {cell}", ratio)
        rows += contrasts.median(context, f"block mean {run} {cell}", column(run, cell, "block_mean"))
        gap = np.subtract(column(run, cell, "block_mean"), column(run, cell, "diff_mean"))
        for name in ("top_share", "top_is_self", "top_distinct"):
            rows += contrasts.median(context, f"{name} {run} {cell}", column(run, cell, name))
        scaled = gap / np.array(column(run, cell, "nonblock_sub_std"))
        rows += contrasts.median(context, f"block in standard deviations {run} {cell}", scaled)
    for run, cells in ((FROZEN_ADAM, ("sq", "sq-l2")), (FROZEN_SGD_SQ, ("sq", "sq-l2"))):
        for cell in cells:
            if (run, cell) in by:
                rows += _against_closed_form(context, by[run, cell], column, optima)
    every = [
        v
        for run, cell in by
        for v in column(run, cell, "nonblock_sub_std", "WV_initial")
        if run == JOINT_ADAM
    ]
    rows += contrasts.most("initial subset, largest", every)
    rows += contrasts.least("initial subset, smallest", every)
    for cell in ("ce", "sq"):
        if (FROZEN_ADAM, cell) in by and (JOINT_ADAM, cell) in by:
            alone, both = by[FROZEN_ADAM, cell], by[JOINT_ADAM, cell]
            shared = [seed for seed in alone.seeds if seed in both.seeds]
            first, second = (
                models.held_losses(context, group)[[group.seeds.index(seed) for seed in shared]]
                for group in (alone, both)
            )
            rows += contrasts.median(context, f"joint gain {cell}", (first - second) / first)
    long, released = (column(run, "sq", "diag_mean") for run in (JOINT_LONG, JOINT_LONG_RELEASED))
    others = (column(run, "sq", "same_offdiag_mean") for run in (JOINT_LONG, JOINT_LONG_RELEASED))
    for name, top, below in zip(("thesis", "released"), (long, released), others, strict=True):
        ratio = _ratio(top, np.abs(below))
        rows += contrasts.least(f"long {name}, least ratio", ratio)
        rows += contrasts.most(f"long {name}, largest ratio", ratio)
    kept = {group.run: group.seeds for group in groups if group.run in (JOINT_LONG, JOINT_LONG_RELEASED)}
    shared = sorted({*kept.get(JOINT_LONG, [])} & {*kept.get(JOINT_LONG_RELEASED, [])})
    if shared:
        own, theirs = (
            [column(run, "sq", "top_is_self")[kept[run].index(seed)] for seed in shared]
            for run in (JOINT_LONG, JOINT_LONG_RELEASED)
        )
        rows += contrasts.median(context, "long, words matched with themselves", np.subtract(own, theirs))
    losses = [loss for run in (FROZEN_ADAM, FROZEN_SGD_SQ) for cell in ("sq",) if (run, cell) in by
              for loss in models.held_losses(context, by[run, cell])]  # fmt: skip
    rows += contrasts.least("held squared loss, uniform attention", losses)
    entropies = [
        loss for run, cell in by if cell == "ce" for loss in models.held_losses(context, by[run, cell])
    ]
    return rows + contrasts.least("held cross-entropy", entropies)


def _ratio(top: Any, below: Any) -> Floats:
    return np.divide(np.asarray(top, float), np.asarray(below, float))


def _against_closed_form(context: Inputs, group: Group, column: Any, optima: list[Row]) -> list[Row]:
    """Return the largest distances over seeds between trained values and the optimum of the same loss."""
    dataset, masking = CLOSED[group.run]
    own = next(
        row for row in optima
        if (row["dataset"], row["masking"], row["l2"], row["intercept"])
        == (dataset, masking, group.settings["l2"], True)
    )  # fmt: skip
    rows: list[Row] = []
    for name in COMPARED:
        distance = np.abs(np.subtract(column(group.run, group.cell, name), own[name]))
        rows += contrasts.most(f"closed form {group.run} {group.cell} {name}", distance)
    losses = models.held_losses(context, group) - own["held_loss"]
    return rows + contrasts.most(f"closed form {group.run} {group.cell} held_loss", np.abs(losses))
