"""Where a teacher's loss stands, falls and flattens: A-PHASE (chapter section 3.9; Liu 2024, section 4.2.3.1.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

STARTS, ENDS = 0.05, 0.85  # shares of the fall of the loss between which it falls fast
EARLY = 0.02  # share of the steps before which a loss is not yet that of the plateau


def phases(course: pl.DataFrame) -> pl.DataFrame:
    """Return for each model of `lessons.courses` its ``plateau_loss``, ``final_loss``, and the steps at which the fast
    phase begins, at which half of the fall is done (``c1``), and at which it ends."""
    rows: list[dict[str, Any]] = []
    for (run, arm, model), own in course.group_by("run", "arm", "model", maintain_order=True):
        steps, loss = own["step"].to_numpy(), own["loss"].to_numpy()
        late = steps >= EARLY * steps[-1]
        plateau = loss[late].max()
        drop = (plateau - loss) / (plateau - loss[-1]) if plateau > loss[-1] else np.zeros(len(loss))
        away = np.where(late, np.abs(drop - 0.5), np.inf)
        rows.append(
            {
                "run": run,
                "arm": arm,
                "model": model,
                "plateau_loss": float(plateau),
                "final_loss": float(loss[-1]),
                "p2_start": _first(steps, late & (drop >= STARTS)),
                "c1": int(steps[np.argmin(away)]),
                "p2_end": _first(steps, late & (drop >= ENDS)),
            }
        )
    return pl.DataFrame(rows)


def _first(steps: np.ndarray, reached: np.ndarray) -> int | None:
    return int(steps[np.argmax(reached)]) if reached.any() else None
