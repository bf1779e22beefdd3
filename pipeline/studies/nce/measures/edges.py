"""Whether a selected step size lies inside the grid that was tried."""

from __future__ import annotations

import polars as pl


def at_edge(chosen: pl.DataFrame, tried: pl.DataFrame, method: list[str]) -> pl.DataFrame:
    """Return ``chosen`` with column ``at_edge``: whether ``eta`` is the least or the largest step size of its method.

    ``tried`` has a row per method, step size and seed, with column ``diverged``. A largest step size beyond which
    others were tried, and diverged in a seed, is not at the edge: that is where the usable ones end.
    """
    span = tried.group_by(method).agg(pl.col("eta").min().alias("least"), pl.col("eta").max().alias("most"))
    edge = (pl.col("eta") == pl.col("least")) | (pl.col("eta") == pl.col("most"))
    return (
        chosen.join(span, on=method, how="left", maintain_order="left", nulls_equal=True)
        .with_columns(edge.alias("at_edge"))
        .drop("least", "most")
    )
