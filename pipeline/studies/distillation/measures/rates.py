"""Which of the learning rates that were tried is the best (Liu 2024, sections 4.2.7.2 and 4.2.8.5)."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.studies.distillation.measures import lessons


def table(context: Inputs, run: str) -> pl.DataFrame:
    """Return how the models of each arm of a run do at each rate, over seeds
    (`schemas.distillation.tables.LearningRates`).

    The best rate has the largest mean accuracy after the last step, where two are equal the smaller mean number of
    steps to 80 % of it, then the lower rate. An accuracy that is not finite counts as none.
    """
    entry = context.run_header(run)["entry"]
    models = lessons.models(context, lessons.courses(context, run))
    means = (
        _with_rates(context, run, models)
        .group_by("run", "arm", "lr")
        .agg(n=pl.len(), accuracy=pl.col("final").mean(), t80=pl.col("t80").mean())
        .sort("run", "arm", "lr")
    )
    rows: list[dict[str, Any]] = []
    for _, own in means.group_by("arm", maintain_order=True):
        tried = list(own.iter_rows(named=True))
        best = min(tried, key=_order)
        for row in tried:
            chosen = row is best
            rows.append(row | {"chosen": chosen, "place": place(tried.index(row), len(tried)) if chosen else ""})
    assert all(row["n"] == entry["side"] * entry["replicas"] for row in rows)
    return pl.DataFrame(rows, infer_schema_length=None)


def best_courses(context: Inputs, run: str, tried: pl.DataFrame) -> pl.DataFrame:
    """Return `lessons.courses` of those models of a run whose rate is the chosen one of their arm in ``tried``
    (`table`)."""
    best = tried.filter("chosen", run=run).select("arm", "lr")
    own = _with_rates(context, run, lessons.courses(context, run))
    return own.join(best, on=["arm", "lr"], how="semi", maintain_order="left").drop("lr")


def _with_rates(context: Inputs, run: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with the rate ``lr`` of each ``model`` of an arm: replicas of the first rate come first, and
    models are numbered replica by replica."""
    header = context.run_header(run)
    each = [float(rate) for rate in header["lr"] for _ in range(header["entry"]["side"])]
    rates = pl.DataFrame({"model": range(len(each)), "lr": each}, schema_overrides={"model": pl.Int64})
    return frame.with_columns(pl.col("model").cast(pl.Int64)).join(rates, on="model", how="left", maintain_order="left")


def _order(row: dict[str, Any]) -> tuple[float, float, float]:
    accuracy, t80 = (math.nan if row[name] is None else row[name] for name in ("accuracy", "t80"))
    return (-accuracy if math.isfinite(accuracy) else math.inf, t80 if math.isfinite(t80) else math.inf, row["lr"])


def place(which: int, count: int) -> str:
    """Return where the chosen one of ``count`` ascending rates lies in its grid: a best rate at an edge may have a
    better one beyond it.

    >>> place(0, 1), place(0, 3), place(1, 3), place(2, 3)
    ('only', 'lowest', 'inside', 'highest')
    """
    if count == 1:
        return "only"
    return "lowest" if which == 0 else "highest" if which == count - 1 else "inside"
