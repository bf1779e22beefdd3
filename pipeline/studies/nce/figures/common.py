"""What figures of this study share: names and looks of losses and methods."""

from __future__ import annotations

import polars as pl

from pipeline.kit import charts, plots
from pipeline.kit.plots import Kinds, Look
from pipeline.studies.nce.names import LOSS_NAMES

LOSSES = Kinds("name", {"NCE": Look(charts.VERMILLION), "eNCE": Look(charts.BLUE, shape="square")})
# As published where it says: NCE with GD black, with NGD yellow; eNCE with NGD blue. Dashes let a line below be seen.
METHODS = Kinds(
    "method",
    {
        "NCE-GD": Look(charts.BLACK),
        "NCE-NGD": Look(charts.ORANGE, plots.DASHED),
        "eNCE-GD": Look(charts.PURPLE, plots.DOTTED),
        "eNCE-NGD": Look(charts.BLUE),
    },
    columns=4,
)
CROSS = "M-.4,-.4L.4,.4M.4,-.4L-.4,.4"  # the symbol ×


def largest(values: pl.Series, otherwise: float = 1.0) -> float:
    """Return the largest of ``values``; ``otherwise`` if there is none."""
    return float(values.to_numpy().max()) if len(values) else otherwise


def loss_name() -> pl.Expr:
    """Return an expression of the losses as readers know them, as column ``name``."""
    return pl.col("loss").replace_strict(LOSS_NAMES).alias("name")


def method_name() -> pl.Expr:
    """Return an expression of the methods, ``eNCE-NGD`` and the like, as column ``method``."""
    name = pl.concat_str(
        pl.col("loss").replace_strict(LOSS_NAMES), pl.col("optimizer").str.to_uppercase(), separator="-"
    )
    return name.alias("method")
