"""Claims 7 to 15: what depth learns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.conditions import Condition, above, at_least, at_most
from pipeline.kit.evidence import Evidence
from pipeline.kit.extremes import column_max, column_min
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate, Measured, Published
from pipeline.studies.automata.names import FEWEST, MAXIMUM, MEDIAN
from schemas.automata.tables import TASKS
from schemas.claims import OWN, STATED

FIGURE = "Liu 2024, Figures 3.5a and 3.15"
BEST = "maximum of 20 models"
NOISY = (0.99, 0.9999)  # accuracies of a model whose noise of evaluation is compared (chapter, claim 15)


def between(low: float, high: float) -> tuple[Condition, Condition]:
    """Return the conditions that the value lies in [low, high]."""
    return Condition("value", ">=", low), Condition("value", "<=", high)


def contrast(context: Results, name: str) -> Evidence:
    """Return the evidence of a comparison of models; too few of them are no evidence, and their value is the reason."""
    return evidence.enough(*single(context, name), FEWEST)


def single(context: Results, name: str) -> Evidence:
    """Return the evidence of a contrast, whatever the number of models."""
    rows = context.table("contrasts").filter(contrast=name)
    return evidence.one_row(rows, f"{name}: not trained at this scale, or no model learned its task")


def printed(context: Results, task: str, depth: int) -> Published | None:
    """Return the published best accuracy; None where it is not legible."""
    cells = context.table("published_cells").filter(figure=MAXIMUM, task=task, depth=depth)
    cell = cells["value"].item()
    return None if cell is None else Published(round(cell / 100, 6), derivation=BEST)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on depth."""
    yield from _free(context)
    for task in ("d8", "q8", "s5"):
        name = task.upper()
        yield Gate(
            "9",
            f"{name}, four layers over one",
            "mean accuracy of four layers minus that of one",
            FIGURE,
            above(0.1),
            *contrast(context, f"{task} L=4 - L=1"),
        )
        yield Gate(
            "9",
            f"{name}, trend",
            "Spearman's correlation of layers and accuracy (no interval where that of resampled models, which tie, "
            "lies beyond the value)",
            FIGURE,
            above(0.0),
            *_trend(context, task),
        )
    pairs = {"Dyck over D8": "dyck42 - d8", "Grid 9 over D8": "grid9 - d8", "D8 over Q8": "d8 - q8"}
    for depth in (2, 4):
        for label, name in pairs.items():
            measure = "mean accuracy on {} minus that on {}, at equal depth".format(*label.split(" over "))
            difference = contrast(context, f"{name} L={depth}")
            yield Gate("10", f"{label}, L={depth}", measure, FIGURE, above(0.0), *difference)
    best = context.table("depth_grid").group_by("task").agg(column_max("acc_max"))
    yield Gate(
        "11",
        "all tasks",
        "best accuracy of a task's models, smallest of all tasks",
        FIGURE,
        at_least(0.99),
        *evidence.reduced(
            best,
            column_min("acc_max"),
            f"{best.height} of {len(TASKS)} tasks are trained at this scale",
            len(TASKS),
        ),
    )
    yield from _minimum(context)
    yield from _printed(context)
    yield from _unstable(context)
    yield from _noise(context)


def _trend(context: Results, task: str) -> Evidence:
    """Return the correlation of depth and accuracy, counting the models of the depth that has fewest.

    Resampled models tie within their depth, which can take the whole interval beyond the value, to the same
    side of zero. Such an interval says nothing, and is left out; no verdict changes by it.
    """
    correlation, missing = single(context, f"{task} spearman")
    if correlation and None not in (correlation.value, correlation.lo, correlation.hi):
        value, lo, hi = correlation.value, correlation.lo, correlation.hi
        if 0 < value < lo or hi < value < 0:  # type: ignore[operator]
            correlation = replace(correlation, lo=None, hi=None)
    models = context.table("depth_grid").filter(task=task)["n"].min()
    correlation = correlation and replace(correlation, n=models)  # type: ignore[arg-type]
    return evidence.enough(correlation, missing, FEWEST)


def _best(context: Results, task: str, depth: int) -> Evidence:
    """Return the best accuracy of the models of a task and depth, which has no interval."""
    rows = context.table("depth_grid").filter(task=task, depth=depth)
    return evidence.one_row(rows, f"{task} with {depth} layers is not trained at this scale", value="acc_max")


def _free(context: Results) -> Iterator[Gate]:
    for claim, gate, task, depth, conditions, scale in (
        ("7", "Dyck (4, 2), one layer", "dyck42", 1, at_least(0.99), "quick"),
        ("7", "Grid 4, one layer", "grid4", 1, at_least(0.99), "quick"),
        ("8", "one layer", "grid9", 1, between(0.892, 0.952), "paper"),  # around the published number
        ("8", "two layers", "grid9", 2, at_least(0.99), "quick"),
    ):
        yield Gate(
            claim,
            gate,
            "best accuracy of the models",
            FIGURE,
            conditions,
            *_best(context, task, depth),
            printed(context, task, depth),
            scale_needed=scale,
            size_needed="paper",
        )
    yield Gate(
        "7",
        "Dyck (4, 2), two layers",
        "mean accuracy of two layers",
        FIGURE,
        at_least(0.97),
        *contrast(context, "accuracy dyck42 L=2"),
        kind=OWN,
    )
    for claim, gate, name, bar in (
        ("7", "Dyck (4, 2), two over one", "dyck42", 0.05),
        ("8", "two over one", "grid9", 0.04),
    ):
        yield Gate(
            claim,
            gate,
            "mean accuracy of two layers minus that of one",
            FIGURE,
            above(bar),
            *contrast(context, f"{name} L=2 - L=1"),
            kind=OWN,
        )


def _minimum(context: Results) -> Iterator[Gate]:
    """Yield the gates on first depths; a task that no depth solves comes after the deepest that was trained."""
    rows = context.table("min_depth").with_columns(
        first=pl.coalesce(pl.col("depth").cast(pl.Float64), pl.col("deepest").max().cast(pl.Float64) + 1)
    )
    rank = pl.corr("first", "published_depth", method="spearman")
    yield Gate(
        "12",
        "order",
        "Spearman's correlation of first depths at 99 % with the published ones",
        FIGURE,
        above(0.6),
        *evidence.reduced(
            rows, rank, f"{rows.height} of {len(TASKS)} tasks are trained at this scale", len(TASKS)
        ),
    )
    first = dict(rows.select("task", "first").iter_rows())

    def compared(easy: tuple[str, ...], hard: tuple[str, ...]) -> Evidence:
        missing = [task for task in (*easy, *hard) if task not in first]
        if missing:
            return None, f"not trained at this scale: {', '.join(missing)}"
        return Measured(min(first[task] for task in hard) - max(first[task] for task in easy)), ""

    groups = {"D8, then D6 and Q8": (("d8",), ("d6", "q8")), "D6 and Q8, then A4": (("d6", "q8"), ("a4",))}
    groups |= {"A4, then S4 and S5": (("a4",), ("s4", "s5"))}
    for gate, (easy, hard) in groups.items():
        yield Gate(
            "12",
            gate,
            "layers to reach 99 %, fewest of the harder ones minus most of the easier ones",
            FIGURE,
            above(0.0),
            *compared(easy, hard),
        )
    free = rows.filter(pl.col("task").is_in(["dyck42", "grid4", "grid9"]))
    yield Gate(
        "12",
        "without groups",
        "layers to reach 99 % on Dyck (4, 2) and both gridworlds, largest number",
        FIGURE,
        at_most(2.0),
        *evidence.reduced(free, column_max("first"), "not all three are trained at this scale", 3),
    )


def _printed(context: Results) -> Iterator[Gate]:
    grid = (
        context.table("depth_grid").drop_nulls("published_max").with_columns(percent=100 * pl.col("acc_max"))
    )
    source = "Liu 2024, Figure 3.15"
    high, low = grid.filter(pl.col("published_max") >= 99), grid.filter(pl.col("published_max") < 60)
    yield Gate(
        "13",
        "cells of 99 and more",
        "best accuracy in these cells in percent, smallest",
        source,
        at_least(98.5),
        *evidence.reduced(high, column_min("percent"), "no such cell is trained"),
        scale_needed="paper",
    )
    off = column_max((pl.col("percent") - pl.col("published_max")).abs())
    yield Gate(
        "13",
        "cells below 60",
        "distance of the best accuracy in these cells from the published one in percentage points, largest",
        source,
        at_most(8.0),
        *evidence.reduced(low, off, "no such cell is trained"),
        scale_needed="paper",
    )


def _unstable(context: Results) -> Iterator[Gate]:
    source, several = "Liu 2024, Figures 3.5b, 3.15 and 3.16", context.settings.several
    cells = context.table("published_cells").filter(task="c2")
    for depth in range(4, 9):
        rows = context.table("depth_grid").filter(task="c2", depth=depth)
        rows = rows.with_columns(gap=pl.col("acc_max") - pl.col("acc_median"))
        at = {row["figure"]: row["value"] for row in cells.filter(depth=depth).iter_rows(named=True)}
        gap = Published(
            round((at[MAXIMUM] - at[MEDIAN]) / 100, 6),
            derivation=f"{at[MAXIMUM]:g} - {at[MEDIAN]:g}, of 20 models",
        )
        for gate, column, bar, measure, quoted in (
            ("", "gap", 0.05, "best accuracy of the models minus their median", gap),
            (", quartiles", "acc_iqr", 0.02, "interquartile range of the models' accuracies", None),
        ):
            measured, missing = evidence.one_row(
                rows, f"C2 with {depth} layers is not trained at this scale", value=column
            )
            yield Gate(
                "14",
                f"C2, L={depth}{gate}",
                measure,
                source,
                above(bar),
                *evidence.enough(measured, missing, several),
                quoted,
                size_needed="paper",
                kind=OWN if quoted is None else STATED,
            )


def _noise(context: Results) -> Iterator[Gate]:
    noise, missing = single(context, "evaluation noise")
    mean = context.table("eval_noise").select(pl.col("accuracy").fill_null(math.nan).mean()).item()
    low, high = NOISY
    if noise is not None and mean is not None and math.isnan(mean):
        noise = replace(noise, value=math.nan)
    elif noise is not None and (mean is None or not low <= mean <= high):
        noise, missing = None, f"the model's accuracy, {mean}, is not within {low:g} and {high:g}"
    yield Gate(
        "15",
        "C2",
        "standard deviation of the share of tokens that are right, over evaluation sets",
        "Liu 2024, footnote 31",
        between(0.0002, 0.0005),
        noise and replace(noise, n=1),
        missing,
        Published(0.00031),
        scale_needed="paper",
    )
