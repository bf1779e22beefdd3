"""Names of the tasks, for parameters, tables, figures and claims, which load no algebra.

They are those of `pipeline.languages.automata` in its order, which a test holds against them.
"""

from __future__ import annotations

# The 19 tasks of the depth experiment (Liu 2024, section 3.4.5.1.1), in the order of Figures 3.15 and 3.16.
TASKS = (
    "dyck42",
    "grid4",
    "grid9",
    "c2",
    "c3",
    "c4",
    "c5",
    "c6",
    "c7",
    "c8",
    "c2p2",
    "c2p3",
    "d6",
    "d8",
    "q8",
    "a4",
    "a5",
    "s4",
    "s5",
)
# Tasks whose states are seen through a map (section 3.4.5.2.1).
OBSERVED = ("dyck48-top", "grid9-boundary", "s5-first", "c4-zero", "d8-location", "abab1", "abab2")
ALL_TASKS = (*TASKS, *OBSERVED, "s3")
