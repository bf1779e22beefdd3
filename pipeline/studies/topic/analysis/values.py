"""E1, E2 and X1: value matrices with uniform and with trained attention, beside least squares on the same documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.kit import comparisons, extremes
from pipeline.kit.comparisons import Comparison
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.languages import topic as language
from pipeline.models.topic import one_layer
from pipeline.studies.topic import comparisons as declared
from pipeline.studies.topic.measures import attention, blocks, closed, models
from pipeline.studies.topic.measures.models import Group, Row
from pipeline.studies.topic.names import (
    DOCUMENTS,
    EXACT,
    FROZEN_ADAM,
    FROZEN_EXACT,
    FROZEN_RELEASED,
    FROZEN_SGD_SQ,
    JOINT_ADAM,
    RELEASED_ADAM,
    RELEASED_SGD,
)
from schemas.topic import datasets

Floats = NDArray[np.float64]
GRADIENT_STEPS = 2000  # of conjugate gradients: exact arithmetic needs as many as there are ids
CLOSED = {  # what least squares is solved on: dataset and masking of the run that it is compared with
    FROZEN_ADAM: (DOCUMENTS, "thesis"),
    FROZEN_SGD_SQ: (DOCUMENTS, "thesis"),
    FROZEN_RELEASED: (DOCUMENTS, "released"),
    FROZEN_EXACT: (EXACT, "thesis"),
}
RELEASED_WORDS = 99  # of a document, behind START, which the released statistics are of


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of the experiment."""
    documents = context.dataset(DOCUMENTS)
    topics, words = int(documents["topics"][0]), int(documents["words"][0])
    with one_thread():
        every = [group for group in models.groups(context) if group.run not in (RELEASED_ADAM, RELEASED_SGD)]
        # A second rate is there for Table 2.2.
        groups = [group for group in every if group.lr == group.entry["lr"][0]]
        stats = [row for group in groups for row in _stats(group, topics, words)]
        optima = _closed(context, groups, topics, words)
        moments = [row for dataset in (DOCUMENTS, EXACT) for row in _moments(context.dataset(dataset), dataset)]
        table = {
            "doc_moments": moments,
            "configs": models.configs(context, every),
            "block_stats": stats,
            "matrices": optima.matrices + [row for group in groups for row in _matrix(group, topics * words)],
            "closed_form": optima.rows,
            "pair_shares": _shares(documents.filter(split="train"), topics, words),
        }
        found = _compared(context, groups, stats, optima.rows, topics, words)
    return {name: [pl.DataFrame(rows, infer_schema_length=None)] if rows else [] for name, rows in table.items()} | {
        "comparisons": [found.table()]
    }


def values_of(group: Group, params: dict[str, Any]) -> Floats:
    """Return (S, V, V) W_V + b_V 1' of the models of a group, float64; of the released model W_V alone, as printed."""
    if group.normalised:
        return np.asarray(params["attn.W_V"].double().numpy())
    added = one_layer.output_bias(group.spec, params, group.table)[..., None]
    return (one_layer.value_map(group.spec, params, group.table) + added).double().numpy()


def _stats(group: Group, topics: int, words: int) -> list[Row]:
    """Return the block statistics of the trained and the initial values of each model."""
    rows = []
    for name, params in ((_name(group), group.params), ("WV_initial", group.start)):
        for seed, matrix in zip(group.seeds, values_of(group, params), strict=True):
            inner = matrix[1 : topics * words + 1, 1 : topics * words + 1]
            mask = {"mask_col_mean": float(matrix[1 : topics * words + 1, 0].mean())}
            stats = blocks.block_stats(inner, topics, words) | mask
            rows.append(group.keys | {"replica": seed, "matrix": name} | stats)
    return rows


def _name(group: Group) -> str:
    return "WV" if group.normalised else "WV_plus_bias"


def _matrix(group: Group, size: int) -> list[Row]:
    """Return the rows of the first seed's values, of all ``size`` words, for figures."""
    if not group.seeds:
        return []
    matrix = values_of(group, group.params)[0][1 : size + 1, 1 : size + 1]
    same = group.keys | {"matrix": _name(group)}
    return [same | {"row": n, "values": row.tolist()} for n, row in enumerate(matrix, 1)]


class _Optima:
    """Rows of table ``closed_form``, and of ``matrices``."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.matrices: list[Row] = []


def _closed(context: Inputs, groups: list[Group], topics: int, words: int) -> _Optima:
    """Solve least squares for each dataset, masking and penalty that runs with squared loss have, and without b_V."""
    made = _Optima()
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
                    made.matrices += [own | {"row": n, "values": row.tolist()} for n, row in enumerate(inner, 1)]
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
                "dataset": dataset,
                "split": split,
                "n_docs": len(read.lengths),
                "mean_len": float(read.lengths.mean()),
                "mean_sum_p2": float((shares**2).sum(1).mean()),
                "mean_entropy": float(-(theta * np.log(theta)).sum() / len(read.lengths)),
                "share_2_to_4": float(((heavy >= 2) & (heavy <= 4)).mean()),
                "share_2_to_4_any": float(((any_ >= 2) & (any_ <= 4)).mean()),
                "share_k": [float((heavy == k).mean()) for k in range(topics + 1)],
            }
        )
    return rows


def _shares(frame: pl.DataFrame, topics: int, words: int) -> list[Row]:
    """Return the shares of pairs of tokens by category, with right and with shifted labels, counted as the released
    statistics count them: START and the first words of each document."""
    read = datasets.documents(frame)
    place = np.arange(len(read.tokens)) - np.repeat(read.lengths.cumsum() - read.lengths, read.lengths)
    few = np.minimum(read.lengths, RELEASED_WORDS)
    counts = language.keys(read.tokens[place < RELEASED_WORDS], few, topics, words, released=True)
    counts[:, language.end(topics, words)] = 0
    pairs = counts.T.astype(float) @ counts
    rows = []
    for offset in attention.OFFSETS:
        kind = attention.categories(attention.labels(counts.shape[1], topics, words, offset))
        for number, category in enumerate(attention.CATEGORIES):
            share = float(pairs[kind == number].sum() / pairs.sum())
            rows.append({"label_offset": offset, "category": category, "pair_share": share})
    return rows


def _compared(
    context: Inputs, groups: list[Group], stats: list[Row], optima: list[Row], topics: int, words: int
) -> comparisons.Measurements:
    """Return what was found of the comparisons that the experiment declares."""
    found = comparisons.Measurements(context)
    by = {(group.run, group.cell): group for group in groups}

    def column(group: Group | None, name: str, matrix: str = "") -> Floats:
        keys = (group.run, group.cell, matrix or _name(group)) if group else ()
        return np.array([row[name] for row in stats if (row["run"], row["cell"], row["matrix"]) == keys], float)

    for table, name in (
        (declared.BLOCKS, "auc"),
        (declared.EVEN, "top_share"),
        (declared.COLUMNS, "top_distinct"),
        ({(run, "sq"): declared.BLOCK_MEAN[key] for key, run in declared.PUBLISHED_RUNS.items()}, "block_mean"),
    ):
        for key, comparison in table.items():
            models.measure(found, comparison, by.get(key), column(by.get(key), name))
    for name, run in declared.PUBLISHED_RUNS.items():
        group = by.get((run, "sq"))
        gap = column(group, "block_mean") - column(group, "diff_mean")
        models.measure(found, declared.BLOCK_LEAD[name], group, gap / column(group, "nonblock_sub_std"))
    for key, comparison in declared.DIAGONAL.items():
        group = by.get(key)
        ratio = column(group, "diag_mean") / column(group, "same_offdiag_mean")
        models.measure(found, comparison, group, ratio)
    for name, run in declared.LONG.items():
        group = by.get((run, "sq"))
        ratio = column(group, "diag_mean") / np.abs(column(group, "same_offdiag_mean"))
        models.measure(found, declared.LONG_DIAGONAL[name], group, ratio)
    for key, comparison in declared.MOVED.items():
        if group := by.get(key):
            before, after = (each["attn.W_K"].flatten(1).norm(dim=1) for each in (group.start, group.params))
            models.measure(found, comparison, group, (after / before).double().numpy())
    for run in declared.EXAMPLES.values():
        if group := by.get((run, "ce")):
            columns = group.params["attn.W_V"].double().numpy()[:, :, 1 : topics * words + 1]
            found_of = [blocks.products(own, topics, words) for own in columns]
            for what in declared.PRODUCTS:
                models.measure(found, declared.EXAMPLE[run, what], group, [own[what] for own in found_of])
    initial = by.get((JOINT_ADAM, "sq"))
    models.measure(found, declared.INITIAL, initial, column(initial, "nonblock_sub_std", "WV_initial"))
    for (run, cell, what), comparison in declared.CLOSED.items():
        if group := by.get((run, cell)):
            values = group.held if what == "held_loss" else column(group, what)
            best = _optimum(group, optima)[what]
            models.measure(found, comparison, group, np.abs(values - best))
    for cell, comparison in declared.FROZEN_COST.items():
        models.lost(context, found, comparison, by.get((FROZEN_ADAM, cell)), by.get((JOINT_ADAM, cell)))
    for cell, comparison in declared.PENALTY_COST.items():
        models.lost(context, found, comparison, by.get((FROZEN_ADAM, f"{cell}-l2")), by.get((FROZEN_ADAM, cell)))
    kept = [by.get((run, "sq")) for run in declared.LONG.values()]
    if all(kept):
        found.add(
            declared.SELF_MATCHED,
            *(column(own, "top_is_self")[own.learned] for own in kept if own),
            excluded=sum(own.left_out for own in kept if own),
            reason=f"{models.DIVERGED} or {models.UNLEARNED}",
        )
    for cell, comparison in declared.FLOORS.items():
        _floor(found, comparison, [group for key, group in by.items() if key[1] == cell])
    return found


def _optimum(group: Group, optima: list[Row]) -> Row:
    """Return the closed form on the documents, the masking and the penalty of a group."""
    kind = (*CLOSED[group.run], group.settings["l2"], True)
    return next(row for row in optima if (row["dataset"], row["masking"], row["l2"], row["intercept"]) == kind)


def _floor(found: comparisons.Measurements, comparison: Comparison, groups: list[Group]) -> None:
    """Measure the smallest held-out loss of each seed, over the runs that a floor is compared with."""
    losses: dict[int, float] = {}
    for group in groups:
        if group.run in comparison.arms[0].runs:
            for seed, loss in zip(group.seeds, group.held.tolist(), strict=True):
                losses[seed] = extremes.smallest(loss, losses.get(seed, loss))
    if losses:
        found.add(comparison, list(losses.values()))
