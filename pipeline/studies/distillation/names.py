"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

TEACHER = "distillation-teacher"
NARROW, WIDE = "distillation-narrow", "distillation-wide"
CHECKED = ("distillation-checked-narrow", "distillation-checked-wide")
SWEEP = ("distillation-width1", "distillation-width2", "distillation-width3")
WARMER = ("distillation-warmer",)  # teachers at a higher rate
CANDIDATES = "distillation-candidates"
TREE_TEACHER, TREE_STUDENTS = "distillation-tree-teacher", "distillation-tree-students"
ATTENTION, ATTENDING = "distillation-attention", "distillation-attending"
TAUGHT, TOKENS_TAUGHT = "distillation-tree-taught", "distillation-tokens-taught"
SINGLES, PAIRS = ("low", "mid", "high"), ("lowmid", "lowhigh", "midhigh")  # arms of hierarchical parity
# Theory checks of sparse parity.
DEFINITIONS = "distillation-definitions"
SPARSE_PARITY = ("distillation-majority", "distillation-stages", "distillation-complexity", DEFINITIONS)
LENGTHS, ORACLE, SELECTION = "distillation-lengths", "distillation-oracle", "distillation-selection"
GRAMMARS = {"cfg3b": "cfg3b", "cfg3i": "cfg3i", "cfg3h": "cfg3h", "cfg3g": "cfg3g", "cfg3f": "cfg3f"} | {
    "cfg3b_pdcode": "cfg3b, published code"
}

# How students are taught, as the figures and the page call it.
ARMS = {
    "label": "teacher (labels)",
    "ce": "student of labels",
    "os": "one-shot",
    "warm": "one-shot, temperature 1",
    "prog": "progressive",
    "before": "1: before the transition, then last",
    "middle": "2: in the transition, then last",
    "behind": "3: behind the transition, then last",
    "cool": "2, temperature 0.0001",
    "mild": "2, temperature 0.01",
    "hot": "2, temperature 1",
    "low": "at accuracy 0.2, then last",
    "mid": "at accuracy 0.45, then last",
    "high": "at accuracy 0.75, then last",
    "lowmid": "at 0.2, at 0.45, then last",
    "lowhigh": "at 0.2, at 0.75, then last",
    "midhigh": "at 0.45, at 0.75, then last",
    "peak": "at the largest correlation, then last",
    "between": "between the peaks, then last",
}

# Parameters that lack one of these are refused at the start.
RUNS = (TEACHER, NARROW, WIDE, *CHECKED, *SWEEP, *WARMER, TREE_TEACHER, TREE_STUDENTS, ATTENTION, ATTENDING)
DATASETS = ("distillation-parity", CANDIDATES, TAUGHT, TOKENS_TAUGHT)
THEORY = (*SPARSE_PARITY, LENGTHS, ORACLE, SELECTION)
