"""How an error falls with the number of samples: slopes of logarithms, model by model and of medians."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def fitted(
    rows: pl.DataFrame, quantity: str, against: str = "N", *, case: int = 0, group: str = ""
) -> tuple[dict[str, Any], Floats]:
    """Return a row of `schemas.selfsup.hmm.HmmSlopes`, and the slope (models,) of each model's own line.

    ``rows`` have one value of ``quantity`` for each model (``instance_id``) and each value of ``against``. The mean of
    the models' slopes is the slope of the means of logarithms, so that its interval is that of a mean.
    """
    table = rows.pivot(against, index="instance_id", values=quantity, aggregate_function=None)
    x = np.log([float(name) for name in table.columns[1:]])
    values = table.drop("instance_id").to_numpy()
    each = np.array([_slope(x, np.log(row)) for row in values])
    medians = np.median(values, axis=0)
    sizes = sorted(rows[against].unique().to_list())
    last = float(medians[int(x.argmax())])
    return {
        "quantity": quantity,
        "case": case,
        "group": group,
        "first_N": int(sizes[0]) if against == "N" else 0,
        "last_N": int(sizes[-1]) if against == "N" else 0,
        "instances": len(values),
        "of_medians": _slope(x, np.log(medians)),
        "mean": float(each.mean()),
        "last_median": last,
    }, each


def _slope(x: Floats, y: Floats) -> float:
    """Return the slope of the least-squares line; NaN for fewer than two points."""
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else float("nan")
