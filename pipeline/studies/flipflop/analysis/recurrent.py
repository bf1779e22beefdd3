"""E1: LSTMs on the held-out sets, at the length they were trained on and at a longer one (R2, section 3.5.6.2)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.comparisons import Measurements
from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.flipflop import comparisons
from pipeline.studies.flipflop.measures import reading
from pipeline.studies.flipflop.names import LONG, LSTM, LSTM_LONG


def analyse(context: Inputs) -> dict[str, pl.DataFrame | None]:
    """Return errors, curves, errors by distance and their summaries, of LSTMs, and the share of them that make none."""
    rows: list[dict[str, Any]] = []
    binned: list[dict[str, Any]] = []
    with one_thread():
        configs = reading.configs(context)
        for config in configs.values():
            for dataset in ("", LONG) if config.name == LSTM else ("",):
                errors, bins = reading.final(context, config, dataset)
                rows += errors
                binned += [] if dataset else bins
        curves = pl.concat(reading.curves(context, config) for config in configs.values())
    final = pl.DataFrame(rows)
    own = pl.col("length").min().over("run")
    shorter, longer = final.filter(pl.col("length") == own), final.filter(pl.col("length") > own)
    found = Measurements(context, reading.UNTRAINED)
    for comparison, part, run in (
        (comparisons.LSTM_CLEAN, shorter, LSTM),
        (comparisons.LSTM_LONG_CLEAN, shorter, LSTM_LONG),
        (comparisons.LSTM_LONGER_CLEAN, longer, LSTM),
    ):
        wrong = part.filter(run=run).group_by("replica").agg(pl.col("n_err").sum())
        found.add(comparison, wrong["n_err"].to_numpy())
    return {
        "configs": pl.DataFrame([reading.described(config) for config in configs.values()], infer_schema_length=None),
        "final": final,
        "curves": curves,
        "by_distance": pl.DataFrame(binned) if binned else None,
        "violin": reading.violins(final),
        "scatter": reading.scatter(shorter.filter(run=LSTM)),
        "comparisons": found.table(),
    }
