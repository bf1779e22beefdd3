"""What the source prints: Figures 3.15 (maximum) and 3.16 (median), and the table of Figure 3.18; dashes are cells that
cannot be read in the available text."""

from __future__ import annotations

import polars as pl

from pipeline.studies.automata.names import MAXIMUM, MEDIAN
from schemas.automata.tasks import TASKS

THRESHOLD = 99.0  # per cent

_CELLS = {
    MAXIMUM: """
dyck42 99.3 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
grid4 99.9 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
grid9 92.2 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
c2 - 99.8 99.9 100 100 99.5 100 99.7 100 100 100 100 100 100 100 100
c3 54.6 94.6 96.7 99.4 100 100 99.8 100 99.9 100 100 100 100 100 99.8 100
c4 95.1 92.3 84.2 99.9 99.7 99.9 100 100 100 100 100 100 100 100 100 100
c5 89.0 99.1 99.9 100 100 100 100 100 100 100 100 100 100 100 100 100
c6 59.8 98.7 - 99.9 99.8 99.9 99.9 100 100 100 99.8 99.9 100 99.8 99.9 99.9
c7 90.9 95.0 99.9 99.9 100 99.9 100 100 100 100 100 99.8 100 100 100 100
c8 - 96.2 99.8 99.8 99.9 100 99.9 99.9 100 99.4 99.9 99.9 99.9 100 99.9 99.9
c2p2 90.5 98.8 99.9 100 100 99.9 100 100 99.9 99.9 100 100 100 100 100 100
c2p3 - - 99.9 97.9 100 99.8 98.2 99.9 100 100 91.9 95.9 91.7 90.6 87.5 80.6
d6 25.4 27.2 47.4 - 100 100 100 100 100 100 100 100 100 100 100 100
d8 45.6 98.0 100 100 100 100 100 100 100 100 100 100 100 100 100 100
q8 31.6 49.2 59.6 - - 99.3 100 100 100 100 100 100 100 100 100 100
a4 25.0 35.4 49.1 - 62.6 82.3 90.9 98.0 98.0 99.1 99.8 100 99.7 100 100 100
a5 12.5 23.1 32.5 46.7 - 98.8 100 100 100 100 100 100 100 100 100 100
s4 11.3 17.6 22.0 27.1 37.7 44.8 50.8 - 91.3 97.1 97.9 98.7 99.9 100 99.8 99.9
s5 7.9 11.8 14.6 19.7 26.0 28.4 32.8 51.8 86.3 94.8 90.2 97.2 99.3 99.1 99.9 99.9
""",
    MEDIAN: """
dyck42 98.8 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
grid4 99.8 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
grid9 91.4 100 100 100 100 100 100 100 100 100 100 100 100 100 100 100
c2 56.4 83.0 - 80.9 89.1 85.2 84.8 84.9 88.8 94.5 98.3 86.4 90.4 88.7 94.6 99.3
c3 40.3 - - 85.0 84.0 84.9 87.9 96.2 99.4 89.2 82.5 99.3 87.4 98.0 89.6 92.0
c4 56.8 - 56.2 - - - - - 85.8 - - 84.1 - - - 99.3
c5 75.6 62.7 99.0 99.5 99.8 99.9 99.8 99.5 99.8 99.8 99.7 99.8 99.8 99.9 99.9 99.7
c6 45.8 49.0 53.0 59.6 - - 95.6 91.2 83.4 59.6 98.4 - 89.7 94.5 99.8 87.5
c7 51.0 - 99.7 99.7 99.6 99.6 99.4 99.7 99.7 99.6 99.6 99.6 99.7 99.6 99.8 99.7
c8 - 58.8 99.0 98.5 99.6 99.7 99.4 99.5 99.6 98.5 99.5 99.8 99.8 99.6 99.3 99.7
c2p2 62.6 - - - - - 84.1 82.4 - - - - - - - -
c2p3 50.0 61.4 60.6 - - - - - - 59.0 - 54.6 59.5 53.0 44.7 48.4
d6 24.8 26.8 40.8 57.2 81.3 91.6 100 99.6 100 100 93.0 96.2 100 97.7 99.6 99.3
d8 38.1 - 99.7 100 100 100 100 100 100 100 100 100 100 100 100 100
q8 29.0 45.8 38.5 42.7 57.4 79.5 84.7 89.2 95.9 98.1 98.8 97.8 99.8 98.3 98.8 99.4
a4 19.7 30.4 41.0 45.4 44.7 52.8 60.0 - - - 91.4 82.6 88.2 97.9 99.0 98.5
a5 10.5 18.7 26.6 30.5 40.6 - - 99.4 99.3 100 100 100 100 100 99.9 100
s4 10.7 15.1 18.8 22.9 25.0 31.1 36.6 43.6 56.2 - - 88.1 91.0 97.6 95.6 97.8
s5 7.1 11.0 13.1 16.5 20.9 24.3 29.4 37.6 40.1 59.0 - 91.3 91.2 94.6 98.0 99.1
""",
}


def cells() -> pl.DataFrame:
    """Return one row per figure, task and depth: the value in per cent, null where it is not legible."""
    rows = []
    for figure, text in _CELLS.items():
        for line in text.split("\n")[1:-1]:
            task, *values = line.split()
            for depth, value in enumerate(values, 1):
                known = value != "-"
                rows.append((figure, task, depth, float(value) if known else None, known))
    table = pl.DataFrame(rows, schema=["figure", "task", "depth", "value", "legible"], orient="row")
    assert table.height == 2 * 16 * len(TASKS)
    return table


def minimum_depths() -> dict[str, tuple[int, bool]]:
    """Return for each task the first depth whose published maximum is at least 99 %, and whether a shallower cell is
    not legible, so that it is an upper bound."""
    depths = {}
    for (task,), rows in cells().filter(figure=MAXIMUM).group_by("task", maintain_order=True):
        depth = int(rows.filter(pl.col("value") >= THRESHOLD)["depth"].to_list()[0])
        depths[str(task)] = depth, not rows.filter(pl.col("depth") < depth)["legible"].all()
    return depths
