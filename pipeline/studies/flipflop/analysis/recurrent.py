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
        config = reading.configs(context)[LSTM]
        for dataset in ("", LONG):
            found, bins = reading.final(context, config, dataset)
            rows += found
            binned += [] if dataset else bins
        curves = reading.curves(context, config)
    final = pl.DataFrame(rows)
    held = final.filter(
        pl.col("set").is_in(["val", *reading.OUT]), pl.col("length") == pl.col("length").min()
    )
    clean = held.group_by("replica", maintain_order=True).agg((pl.col("n_err") == 0).all())
    return {
        "configs": pl.DataFrame([reading.described(config)], infer_schema_length=None),
        "final": final,
        "curves": curves,
        "by_distance": pl.DataFrame(binned),
        "violin": reading.violins(final),
        "contrasts": contrasts.table(contrasts.share(context, "lstm without error", clean["n_err"])),
    }
