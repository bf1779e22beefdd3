"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

# Of several runs the first that has models stands for the arm: at `paper` the plain model is as deep as its rivals.
C2 = {
    "gpt": ("automata-c2-gpt", "automata-c2-l4"),
    "shift": ("automata-c2-shift",),
    "none": ("automata-c2-none",),
    "scratchpad": ("automata-c2-scratchpad",),
    "recency": ("automata-c2-recency",),
    "lstm": ("automata-c2-lstm",),
}
C2_CELL = "automata-c2-l4"  # is also the cell C2 of four layers
DYCK = {"gpt": ("automata-dyck42-l2",), "lstm": ("automata-dyck42-lstm",)}
DEPTHS = (1, 2, 3, 4, 6, 8, 12)
# The sinusoidal model is the one that is as deep as the linear one, which depends on the scale.
POSITIONS = {
    ("grid9", "sin"): ("automata-grid9-l1", "automata-grid9-l2", "automata-grid9-l8"),
    ("grid9", "linear"): ("automata-grid9-linear",),
    ("abab2", "sin"): ("automata-abab2-gpt",),
    ("abab2", "linear"): ("automata-abab2-linear",),
}
ATTENTION = "automata-attention"
TINY = {f"automata-tiny-{name}": name for name in ("c2", "c3", "grid4", "d6")}  # of the explorer
ARMS = {
    "gpt": "Transformer",
    "shift": "Transformer, shifted positions",
    "none": "Transformer, no positions",
    "scratchpad": "scratchpad",
    "recency": "scratchpad, recency bias",
    "lstm": "LSTM",
}
SHOWN = {  # tasks whose states are seen through a map
    "dyck48-top": "Dyck (4, 8), top",
    "grid9-boundary": "Grid 9, boundary",
    "s5-first": "S5, first entry",
    "c4-zero": "C4, zero",
    "d8-location": "D8, location",
    "abab1": "abab (1)",
    "abab2": "abab (2)",
}
FREE = {  # and those whose states are seen as they are, where the id is no name
    "dyck42": "Dyck (4, 2)",
    "grid4": "Grid 4",
    "grid9": "Grid 9",
    "c2p2": "C2²",
    "c2p3": "C2³",
}
# Parameters that lack one of these are refused at the start.
RUNS = tuple(
    dict.fromkeys(
        [*(run for arms in (C2, DYCK, POSITIONS) for runs in arms.values() for run in runs), ATTENTION, *TINY]
    )
)
DATASETS = ("automata-parity", "automata-shown", "automata-partial")
THEORY = tuple(f"automata-{name}" for name in ("gadgets", "prefix", "counters", "groups", "cascades", "gridworld"))

MAXIMUM, MEDIAN = "3.15", "3.16"  # published figures


def cell(task: str, depth: int) -> str:
    """Return the run of a task whose states are seen as they are."""
    return f"automata-{task}-l{depth}"


def seen(task: str, arm: str) -> str:
    """Return the run of a task whose states are seen through a map."""
    return f"automata-{task}-{arm}"


def hidden(task: str, arm: str, share: float) -> str:
    """Return the run of a task of which a share of the labels is shown."""
    return f"automata-incomplete-{task}-{arm}-p{round(100 * share):03d}"


def shown(task: str) -> str:
    """Return how pages and figures call a task."""
    return (FREE | SHOWN).get(task, task.upper())
