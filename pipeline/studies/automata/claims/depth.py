"""Claims 7 to 15, 28: what depth learns."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline.kit import evidence
from pipeline.kit.evidence import Evidence
from pipeline.kit.results import Results
from pipeline.kit.verdicts import Condition, Gate, Published
from schemas.claims import OWN

FIGURE = "Liu 2024, Figures 3.5a and 3.15"


def contrast(context: Results, name: str) -> Evidence:
    """Return the evidence of a contrast, or that its models are not trained."""
    rows = context.table("contrasts").filter(contrast=name)
    return evidence.one_row(rows, f"{name}: not trained at this scale")


def above(value: float) -> tuple[Condition, ...]:
    """Return the condition that the value is above ``value``."""
    return (Condition("value", ">", value),)


def gates(context: Results) -> Iterator[Gate]:
    """Yield the gates on depth."""
    yield from _free(context)
    for task in ("d8", "q8", "s5"):
        name = task.upper()
        yield Gate(
            "9",
            f"{name}, four layers over one",
            "mean accuracy of four layers is above that of one",
            FIGURE,
            above(0.0),
            *contrast(context, f"{task} L=4 - L=1"),
        )
        yield Gate(
            "9",
            f"{name}, trend",
            "Spearman's correlation of layers and accuracy is positive",
            FIGURE,
            above(0.0),
            *contrast(context, f"{task} spearman"),
        )
    pairs = {"Dyck over D8": "dyck42 - d8", "Grid 9 over D8": "grid9 - d8", "D8 over Q8": "d8 - q8"}
    for depth in (2, 4):
        for label, name in pairs.items():
            found = contrast(context, f"{name} L={depth}")
            if found[0] is not None:
                yield Gate("10", f"{label}, L={depth}", "mean accuracy is higher", FIGURE, above(0.0), *found)
    best, missing = contrast(context, "best of every task")
    if best is not None and best.n != 19:
        missing = f"{best.n} of 19 tasks are trained at this scale"
        best = None
    yield Gate(
        "11",
        "all tasks",
        "smallest best accuracy over tasks is at least 0.99",
        FIGURE,
        (Condition("value", ">=", 0.99),),
        best,
        missing,
        scale_needed="paper",
    )
    yield from _minimum(context)
    yield from _printed(context)
    yield from _noise(context)
    for task, label, sign in (("d8", "D8", 1), ("dyck42", "Dyck (4, 2)", -1)):
        for rate in (0.1,):
            way, bound = ("higher", above(0.0)) if sign > 0 else ("lower", (Condition("value", "<", 0.0),))
            yield Gate(
                "28",
                f"{label}, dropout {rate:g}",
                f"mean accuracy with dropout is {way} than without",
                "Liu 2024, section 3.4.5.1.1",
                bound,
                *contrast(context, f"{task} dropout {rate:g} - none"),
            )


def _free(context: Results) -> Iterator[Gate]:
    for task, label, printed in (("dyck42", "Dyck (4, 2)", 0.993), ("grid4", "Grid 4", 0.999)):
        yield Gate(
            "7",
            f"{label}, one layer",
            "mean accuracy of one layer is at least 0.99",
            FIGURE,
            (Condition("value", ">=", 0.99),),
            *contrast(context, f"accuracy {task} L=1"),
            Published(printed, derivation="maximum of 20 models"),
            scale_needed="paper",
        )
    yield Gate(
        "7",
        "Dyck (4, 2), two layers",
        "mean accuracy of two layers is at least 0.97",
        FIGURE,
        (Condition("value", ">=", 0.97),),
        *contrast(context, "accuracy dyck42 L=2"),
        Published(1.0, derivation="maximum of 20 models"),
    )
    yield Gate(
        "7",
        "Dyck (4, 2), two over one",
        "mean accuracy of two layers is above that of one by more than 0.05",
        FIGURE,
        above(0.05),
        *contrast(context, "dyck42 L=2 - L=1"),
        kind=OWN,
    )
    yield Gate(
        "8",
        "two over one",
        "mean accuracy of two layers is above that of one by more than 0.04",
        FIGURE,
        above(0.04),
        *contrast(context, "grid9 L=2 - L=1"),
    )
    yield Gate(
        "8",
        "one layer",
        "mean accuracy of one layer is within 0.03 of 0.922",
        FIGURE,
        (Condition("value", ">=", 0.892), Condition("value", "<=", 0.952)),
        *contrast(context, "accuracy grid9 L=1"),
        Published(0.922, derivation="maximum of 20 models"),
        scale_needed="paper",
    )
    yield Gate(
        "8",
        "two layers",
        "mean accuracy of two layers is at least 0.99",
        FIGURE,
        (Condition("value", ">=", 0.99),),
        *contrast(context, "accuracy grid9 L=2"),
        Published(1.0, derivation="maximum of 20 models"),
        scale_needed="paper",
    )


def _minimum(context: Results) -> Iterator[Gate]:
    rows = context.table("min_depth").drop_nulls("depth")
    rank = pl.corr("depth", "published_depth", method="spearman")
    found = evidence.reduced(rows, rank, f"{rows.height} tasks are solved at this scale", least=15)
    yield Gate(
        "12",
        "order",
        "Spearman's correlation of first depths at 99 % with the published ones is above 0.6",
        FIGURE,
        above(0.6),
        *found,
        scale_needed="paper",
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
        "smallest best accuracy in these cells is at least 98.5 %",
        source,
        (Condition("value", ">=", 98.5),),
        *evidence.reduced(high, pl.col("percent").min(), "no such cell is trained"),
        scale_needed="paper",
    )
    off = (pl.col("percent") - pl.col("published_max")).abs().max()
    yield Gate(
        "13",
        "cells below 60",
        "best accuracy is at most 8 points from the published one: largest distance",
        source,
        (Condition("value", "<=", 8.0),),
        *evidence.reduced(low, off, "no such cell is trained"),
        scale_needed="paper",
    )


def _noise(context: Results) -> Iterator[Gate]:
    source, several = "Liu 2024, Figures 3.5b and 3.16", context.settings.several
    for depth, printed in ((4, 19.1), (6, 14.3), (8, 15.2)):
        measured, missing = contrast(context, f"c2 max - median L={depth}")
        if measured is not None and (measured.n or 0) < several:
            missing = f"{measured.n} models, a maximum needs {several}"
            measured = None
        yield Gate(
            "14",
            f"C2, L={depth}",
            "best accuracy of the models is above their median by more than 0.05",
            source,
            above(0.05),
            measured,
            missing,
            Published(printed / 100, derivation="maximum minus median of 20 models"),
            scale_needed="paper",
        )
    noise = contrast(context, "evaluation noise")
    near = (Condition("value", ">=", 0.0002), Condition("value", "<=", 0.0005))
    yield Gate(
        "15",
        "C2",
        "standard deviation over evaluation sets is 0.02 to 0.05 percentage points",
        "Liu 2024, footnote 31",
        near,
        *noise,
        Published(0.00031),
        scale_needed="paper",
    )
