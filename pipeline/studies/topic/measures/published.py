"""Numbers that the thesis prints, for tables that have ours beside them."""

from __future__ import annotations

from typing import NamedTuple


class Average(NamedTuple):
    """A row of table 2.1 or 2.2: means and, where printed, standard deviations of the three kinds of pairs."""

    table: str
    optimiser: str
    lr: float
    runs: int
    trained: int  # with those that are left out
    same_word: float
    same_word_sd: float | None
    same_topic: float
    same_topic_sd: float | None
    diff_topic: float
    diff_topic_sd: float | None


AVERAGES = (
    Average("Table 2.1", "adam", 0.003, 3, 3, 0.00759, 0.00171, 0.0108, 0.000657, 0.00689, 0.000160),
    Average("Table 2.1", "adam", 0.01, 3, 3, 0.00811, 0.000705, 0.010, 0.000392, 0.00707, 0.000178),
    Average("Table 2.1", "adam", 0.03, 3, 3, 0.00453, 0.000346, 0.0116, 0.000460, 0.00665, 0.000200),
    Average("Table 2.1", "sgd", 0.01, 1, 3, 0.0105, None, 0.0106, None, 0.00673, None),
    Average("Table 2.1", "sgd", 0.03, 3, 3, 0.0140, 0.00158, 0.0103, 0.000357, 0.00641, 0.0000239),
    Average("Table 2.2", "adam", 0.003, 7, 10, 0.0916, 0.000901, 0.00185, 0.000170, 0.00256, 0.0000332),
    Average("Table 2.2", "adam", 0.01, 7, 10, 0.0918, 0.00244, 0.00182, 0.000474, 0.00256, 0.000109),
)
