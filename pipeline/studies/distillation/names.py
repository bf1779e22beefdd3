"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

TEACHER = "distillation-teacher"
NARROW, WIDE = "distillation-narrow", "distillation-wide"
TREES = "distillation-trees"

# How students are taught, as the figures and the page call it.
ARMS = {
    "label": "teacher, from labels",
    "ce": "student, from labels",
    "os": "one-shot",
    "warm": "one-shot, temperature 1",
    "prog": "progressive",
}

# Parameters that lack one of these are refused at the start.
RUNS = (TEACHER, NARROW, WIDE)
DATASETS = ("distillation-parity",)
THEORY = (TREES,)
