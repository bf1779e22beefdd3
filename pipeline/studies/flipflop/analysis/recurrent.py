"""E1: LSTMs on the held-out sets, at the length they were trained on and at a longer one (R2, section 3.5.6.2)."""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline.kit.inputs import Inputs
from pipeline.kit.streams import one_thread
from pipeline.studies.flipflop.measures import contrasts, reading
from pipeline.studies.flipflop.names import LONG, LSTM


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
    short = final.filter(pl.col("length") == pl.col("length").min(), run=LSTM)
    held = short.filter(pl.col("set").is_in(["val", *reading.OUT]))
    clean = held.group_by("replica", maintain_order=True).agg((pl.col("n_err") == 0).all())
    return {
        "configs": pl.DataFrame(
            [reading.described(config) for config in configs.values()], infer_schema_length=None
        ),
        "final": final,
        "curves": curves,
        "by_distance": pl.DataFrame(binned),
        "violin": reading.violins(final),
        "scatter": reading.scatter(short),
        "contrasts": contrasts.table(contrasts.share(context, "lstm without error", clean["n_err"])),
    }
