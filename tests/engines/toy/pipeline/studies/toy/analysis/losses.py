"""Last losses, by run."""

from __future__ import annotations

import polars as pl

from pipeline.kit.inputs import Inputs


def analyse(context: Inputs) -> dict[str, pl.DataFrame]:
    """Return the table of losses."""
    assert context.dataset("toy-numbers").height
    losses = [{"run": run, "loss": context.curves(run)["loss"].mean()} for run in context.runs()]
    return {"losses": pl.DataFrame(losses)}
