"""Numbers that were read from graphics of the source (Liu 2024): errors of reading are 0.003 to 0.01."""

from __future__ import annotations

# Figure 4.4, right: accuracy of students with 8 heads after a quarter, a half, all and twice of the 8,000 steps of
# their teacher, on whole strings of cfg3b; and of models of the teacher's size that learn from labels for as long.
SHARES = (0.25, 0.5, 1.0, 2.0)
STEPS = 8000
ACCURACIES = {
    "label": (0.910, 0.960, 0.970, 0.980),
    "prog": (0.803, 0.921, 0.958, 0.962),
    "one-shot": (0.768, 0.901, 0.927, 0.953),
    "ce": (0.745, 0.866, 0.926, 0.927),
}
# Figure 4.7, right: accuracy of students with 8 heads after 4,000 steps, by the step of the checkpoint that they learn
# from before the last one; the last of them is that one itself.
BY_CHECKPOINT = {
    400: 0.851,
    800: 0.895,
    1000: 0.925,
    1200: 0.919,
    1600: 0.905,
    2000: 0.899,
    3000: 0.889,
    4000: 0.887,
    5000: 0.885,
    6000: 0.887,
    7000: 0.873,
    8000: 0.87,
}
INFLECTION = 1000
