"""EXP-DEPTH, EXP-INSTAB, EXP-EVALSD: accuracy by task and depth, its spread over models, and noise of evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from pipeline.kit import intervals
from pipeline.kit.comparisons import Comparison, Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread, stream
from pipeline.languages import automata
from pipeline.languages.automata import TASKS
from pipeline.studies.automata import comparisons
from pipeline.studies.automata.comparisons import SOLVED
from pipeline.studies.automata.measures import published
from pipeline.studies.automata.measures.arms import Arm, Floats, Sample, arms, compare, frame, measured, over_runs
from pipeline.studies.automata.names import C2_CELL, DEPTHS, MAXIMUM, MEDIAN, shown

CURVES = ("c2", "s5")  # Figure 3.5 b, c
NOISY = (0.99, 0.9999)  # accuracies of a model whose noise of evaluation is compared (chapter, claim 15)
LIKE = 0.999  # accuracy of the model that is chosen for it: a perfect one has no noise

Cells = dict[tuple[str, int], Sample]  # accuracy of each model, by task and depth


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return the tables of the depth experiment."""
    with one_thread():
        known = {name: arm for name, arm in arms(context).items() if _is_cell(name, arm)}
        tested, runs = measured(context, known)
        noise = _noise(context, known)
    cells: Cells = {(arm.task.name, arm.depth or 0): Sample(arm, tested[name][0]) for name, arm in known.items()}
    lengths = {arm.task.name: context.dataset(arm.entry["dataset"])["length"][0] for arm in known.values()}
    curves = [_curve(context, arm) for arm in known.values() if arm.task.name in CURVES]
    return {
        "runs": runs,
        "depth_grid": _grid(context, cells, lengths),
        "min_depth": _min_depth(context, cells),
        "published_cells": published.cells(),
        "curves": pl.concat(curves) if curves else None,
        "eval_noise": frame(noise),
        "comparisons": _compared(context, cells, noise),
    }


def _is_cell(name: str, arm: Arm) -> bool:
    """Whether a run is a cell of the grid: those beside it have other arms."""
    return arm.arm == "gpt" and arm.entry["dropout"] == 0 and (arm.entry["experiment"] == "depth" or name == C2_CELL)


def _grid(context: Inputs, cells: Cells, lengths: dict[str, int]) -> pl.DataFrame | None:
    printed = {
        (row["figure"], row["task"], row["depth"]): row["value"] for row in published.cells().iter_rows(named=True)
    }
    rows = [
        {
            "task": task,
            "depth": depth,
            "n": len(values),
            "acc_max": values.max(),
            "acc_median": float(np.median(values)),
            "acc_iqr": float(np.subtract(*np.quantile(values, [0.75, 0.25]))),
            "solved": float((values >= context.settings.solved).mean()),
            "constant": automata.constant_accuracy(task, lengths[task]),
            "published_max": printed.get((MAXIMUM, task, depth)),
            "published_median": printed.get((MEDIAN, task, depth)),
        }
        for (task, depth), (_, values) in cells.items()
    ]
    return frame(rows)


def _min_depth(context: Inputs, cells: Cells) -> pl.DataFrame | None:
    rows = []
    printed = published.minimum_depths()
    for task in TASKS:
        depths = sorted(depth for name, depth in cells if name == task)
        if depths:
            enough = [d for d in depths if cells[task, d].values.max() >= context.settings.solved]
            rows.append(
                {
                    "task": task,
                    "name": shown(task),
                    "threshold": context.settings.solved,
                    "depth": enough[0] if enough else None,
                    "deepest": depths[-1],
                    "published_depth": printed[task][0],
                    "is_upper_bound": printed[task][1],
                }
            )
    return frame(rows)


def _curve(context: Inputs, arm: Arm) -> pl.DataFrame:
    header = context.run_header(arm.run)
    models = [m for m, lr in enumerate(header["lr"]) if lr == arm.lr]
    columns = [pl.lit(value).alias(name) for name, value in arm.row_keys().items()]
    curves = context.curves(arm.run).filter(pl.col("replica").is_in(models)).drop("accuracy")
    streams = pl.col("replica").replace_strict({m: header["streams"][m] for m in models}).alias("replica")
    return curves.rename({"loss": "train_loss", "accuracy_held": "accuracy"}).select(
        *columns, streams, "step", "train_loss", "accuracy"
    )


def _noise(context: Inputs, known: dict[str, Arm]) -> list[dict[str, Any]]:
    """Return the accuracy of one C2 model on several samples of test sequences."""
    arm = known.get(C2_CELL)
    if arm is None:
        return []
    one, rows = int(np.argmin(np.abs(arm.validation - LIKE))), []
    length, size = int(context.dataset(arm.entry["dataset"])["length"][0]), context.entry.sequences
    for k in range(context.entry.evaluations):
        rng = stream(context.seed, context.study, context.experiment, "noise", k)
        tokens, states = automata.sample("c2", length, size, rng)
        right = arm.answers(tokens)[one] == states
        rows.append(
            {
                "run": arm.run,
                "replica": arm.replicas[one],
                "sample": k,
                "sequences": size,
                "accuracy": float(right.mean()),
            }
        )
    return rows


def _compared(context: Inputs, cells: Cells, noise: list[dict[str, Any]]) -> pl.DataFrame:
    found = Measurements(context)
    samples = {sample.arm.run: sample for sample in cells.values()}
    for group in ("GAIN", "HARDER", "REACHED", "BEST_C2", "LOW_C2"):
        for comparison in getattr(comparisons, group).values():
            compare(context, found, comparison, samples)
    for comparison in (comparisons.MISSED, comparisons.DYCK_TWO):
        compare(context, found, comparison, samples)
    for task, comparison in comparisons.TREND.items():
        by_depth = _depths(cells, task)
        layers = [float(depth) for depth, each in by_depth.items() for _ in each.values]
        _add(context, found, comparison, layers, [value for each in by_depth.values() for value in each.values])
    for task, comparison in comparisons.SOME_DEPTH.items():
        by_depth = _depths(cells, task)
        best = [over_runs([*by_depth.values()], np.max)] if by_depth else []
        compare(context, found, comparison, {each.arm.run: each for each in best})
    _first_depths(context, found, cells)
    _published(context, found, cells)
    if noise:
        _spread(context, found, np.array([row["accuracy"] for row in noise]))
    return found.table()


def _add(context: Inputs, found: Measurements, comparison: Comparison, *samples: ArrayLike, **left_out: Any) -> None:
    """Measure a comparison whose arms were all trained; it is empty where all models of one diverged."""
    trained = set(context.runs())
    if all(trained.intersection(arm.runs) for arm in comparison.arms):
        found.add(comparison, *samples, **left_out)


def _depths(cells: Cells, task: str) -> dict[int, Sample]:
    """Return the models of a task by depth."""
    return {depth: cells[task, depth] for depth in DEPTHS if (task, depth) in cells}


def _first_depths(context: Inputs, found: Measurements, cells: Cells) -> None:
    """Measure how many layers models take, those of equal number at each depth, of the depths that all tasks of a
    comparison have: otherwise the order of tasks would be that of their deepest models.

    Where no depth is enough, one more than the deepest is taken for the least that can be; a difference of two tasks
    of which this is so says nothing.
    """
    by_task = {task: by_depth for task in TASKS if (by_depth := _depths(cells, task))}

    def first(*tasks: str) -> tuple[dict[str, Sample], int]:
        """Return the numbers of layers of each task, and the number that stands for more than the deepest."""
        shared = [depth for depth in DEPTHS if all(depth in by_task.get(task, {}) for task in tasks)]
        depths = np.array([*shared, max(shared, default=0) + 1], float)

        def layers(values: Floats, axis: int) -> Floats:
            reached = np.concatenate([values >= SOLVED, np.ones((1, values.shape[1]), bool)])
            return depths[reached.argmax(axis)]

        samples = {task: [by_task[task][depth] for depth in shared] for task in tasks if shared}
        return {task: over_runs(own, layers) for task, own in samples.items()}, int(depths[-1])

    printed, (known, _) = published.minimum_depths(), first(*TASKS)
    means = [sample.values.mean() for sample in known.values()]
    if known:
        _add(context, found, comparisons.ORDER, means, [printed[task][0] for task in known])
    else:
        found.not_run(comparisons.ORDER)
    for (easy, hard), comparison in comparisons.LATER.items():
        known, unsolved = first(*easy, *hard)

        def difference(values: Floats, axis: int, places: int = len(hard), unsolved: int = unsolved) -> Floats:
            fewest, most = values[:places].min(axis), values[places:].max(axis)
            return np.where(np.minimum(fewest, most) < unsolved, fewest - most, np.nan)

        both = [known[task] for task in (*hard, *easy)] if known else []
        later = over_runs(both, difference).values if both else np.array([])
        told = later[~np.isnan(later)]
        why = "no depth solves either task"
        _add(context, found, comparison, told, excluded=len(later) - len(told), reason=why)
    known, unsolved = first(*comparisons.GROUPLESS)
    layers = over_runs([*known.values()], np.max).values if known else np.array([])
    # What no depth solves takes more layers than the bar has.
    _add(context, found, comparisons.WITHOUT_GROUPS, np.where(layers < unsolved, layers, np.inf))


def _published(context: Inputs, found: Measurements, cells: Cells) -> None:
    """Measure how the order of accuracies goes with the published one, leaving out whole tasks."""
    printed = {
        (row["task"], row["depth"]): row["value"]
        for row in published.cells().filter(figure=MAXIMUM).drop_nulls("value").iter_rows(named=True)
    }
    tasks = sorted({task for task, depth in cells if (task, depth) in printed})
    both = np.full((len(tasks), 2, len(DEPTHS)), np.nan)
    for i, task in enumerate(tasks):
        for j, depth in enumerate(DEPTHS):
            if (task, depth) in cells and (task, depth) in printed:
                both[i, :, j] = cells[task, depth].values.mean(), printed[task, depth]

    def correlation(both: Floats) -> float:
        ours, theirs = both[:, 0].ravel(), both[:, 1].ravel()
        return intervals.spearman(ours[~np.isnan(ours)], theirs[~np.isnan(theirs)])

    interval = intervals.jackknife(correlation, both, confidence=context.settings.confidence)
    found.put(comparisons.CELLS, interval.within(*comparisons.CELLS.span))


def _spread(context: Inputs, found: Measurements, accuracy: Floats) -> None:
    """Measure the noise of evaluation, of a model whose accuracy is one that has some."""
    low, high = NOISY
    if not low <= accuracy.mean() <= high:
        accuracy = accuracy[:0]
    spread = intervals.jackknife(
        lambda sample: float(np.std(sample, ddof=1)), accuracy, confidence=context.settings.confidence, log=True
    )
    left = context.entry.evaluations - len(accuracy)
    why = f"the model's accuracy is not from {low:g} to {high:g}"
    found.put(comparisons.NOISE, spread.within(*comparisons.NOISE.span), left, why)
