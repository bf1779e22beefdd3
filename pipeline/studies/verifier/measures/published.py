"""What Li 2025, chapter 3, prints: the numbers of its tables as constants, each with what its row is of.

Nothing here is computed. ``spread`` is what follows the sign ±, which the captions call standard errors.
Accuracies of test cases are shares of 800; errors are counts of 10,000 prompts, the mean of five runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

RUNS = 5  # "The experiment was repeated 5 times" (Tables 3.3, 3.6, 3.9 to 3.17)
PROMPTS = 10_000  # of Tables 3.3 and 3.16
REQUESTED = 800  # test cases (section 3.2.2.1)
COMPLETIONS, TOKENS = 100, 384  # of a run, and at most in each (section 3.2.2.1)
MOST_CALLS = COMPLETIONS * TOKENS  # "the max C is 38400 unless block best-of-n is used"
DIVERSITY_PROMPTS, COMPLETED = 100, 10  # of Table 3.5


@dataclass(frozen=True)
class Cell:
    """A printed number: its table, its row, what it measures, and what stands behind the sign ±."""

    table: str
    row: dict[str, Any]
    metric: str
    value: float
    spread: float | None = None
    note: str = field(default="")

    @property
    def key(self) -> str:
        """Return the row as JSON, its names in order."""
        return json.dumps(self.row, sort_keys=True)


FORCED = {0: 0.331, 1: 0.366, 2: 0.438, 4: 0.591, 8: 0.790}  # Table 3.1, by B; 0: nucleus sampling alone
GREEDY = 0.334  # Tables 3.1 and 3.2, argmax
BACKTRACKED = {  # Table 3.2, by Q and B
    (1, 2): 0.421,
    (1, 4): 0.500,
    (1, 6): 0.604,
    (2, 2): 0.457,
    (2, 4): 0.634,
    (2, 6): 0.762,
    (4, 2): 0.518,
    (4, 4): 0.762,
    (4, 6): 0.921,
}
ERRORS = {  # Table 3.3, by top_p, Q and B
    (0.9, 0, 0): (240.0, 5.177),
    (0.9, 4, 4): (179.4, 1.020),
    (1.0, 0, 0): (461.8, 8.304),
    (1.0, 4, 4): (200.0, 3.225),
}
NECESSARY = {  # Table 3.4, by Q and B: backtracks, accuracy of nucleus sampling, of argmax
    (1, 2): (163, 0.313, 0.344),
    (1, 4): (163, 0.337, 0.319),
    (1, 6): (163, 0.331, 0.288),
    (2, 2): (311, 0.347, 0.328),
    (2, 4): (297, 0.357, 0.349),
    (2, 6): (286, 0.374, 0.373),
    (4, 2): (600, 0.371, 0.353),
    (4, 4): (532, 0.419, 0.404),
    (4, 6): (489, 0.509, 0.523),
}
DIVERSITY = {(4, 4, 1.0): (5.52, 3.28), (0, 0, 0.9): (5.47, 3.06), (0, 0, 1.0): (5.84, 3.29)}  # Table 3.5
REFILL = {"Algorithm 1": (179.4, 1.020), "no argmax": (245.8, 8.658)}  # Table 3.16

# Figure 3.2: of 225 mistakes; the probability of the generated token in each of the 23 rows, the last but
# one E
MISTAKES = {"INCORRECT_CLOSING_BRACKET": 222, "END_INCORRECT": 3}
QUOTA_USED_UP = 225
GENERATED = (
    0.998425,
    0.901743,
    0.684750,
    0.699475,
    0.994803,
    0.987031,
    0.869623,
    0.782469,
    0.802167,
    0.941579,
    0.997442,
    0.965299,
    0.523672,
    0.638692,
    0.995885,
    0.928873,
    0.802617,
    0.864548,
    0.722893,
    0.963540,
    0.932594,
    0.975265,
    0.975087,
)

# Table 3.6: Q, B, top_p, temperature, candidates of block best-of-n; accuracy
MAIN = (
    (4, 4, 0.95, 1.0, None, 0.714, 0.011),
    (0, None, 0.95, 1.0, 2, 0.684, 0.038),
    (0, None, 0.95, 1.0, None, 0.660, 0.042),
    (0, None, 0.95, 1.0, 4, 0.623, 0.036),
    (0, None, 0.95, 1.0, 8, 0.559, 0.038),
    (4, 4, 1.0, 1.0, None, 0.639, 0.061),
    (4, 10, 1.0, 1.0, None, 0.622, 0.046),
    (0, None, 1.0, 1.0, None, 0.504, 0.025),
    (4, 4, 1.0, 1.2, None, 0.440, 0.026),
    (0, None, 1.0, 1.2, None, 0.269, 0.025),
    (0, None, 0.0, 1.0, None, 0.013, 0.000),
)

# Table 3.13: Q, B, layer, threshold, top_p, temperature, candidates; accuracy; calls
FULL: tuple[Any, ...] = (
    (4, 4, 27, 0.1, 0.95, 1.0, None, 0.714, 0.011, 39443, 235),
    (4, 4, 31, 0.5, 0.95, 1.0, None, 0.688, 0.028, 39629, 135),
    (0, None, 27, None, 0.95, 1.0, 2, 0.684, 0.038, 39364, 1252),
    (4, 4, 31, 0.1, 0.95, 1.0, None, 0.677, 0.033, 39546, 98),
    (4, 4, 27, 0.5, 0.95, 1.0, None, 0.676, 0.019, 38555, 140),
    (0, None, None, None, 0.95, 1.0, None, 0.660, 0.042, 38231, 165),
    (4, 4, 27, 0.1, 1.0, 1.0, None, 0.639, 0.061, 31274, 1559),
    (0, None, None, None, 0.9, 1.0, None, 0.634, 0.023, 38393, 14),
    (0, None, None, None, 0.9, 1.2, None, 0.630, 0.028, 38005, 232),
    (0, None, None, None, 0.8, 1.2, None, 0.627, 0.015, 38343, 90),
    (0, None, 27, None, 0.95, 1.0, 4, 0.623, 0.036, 65496, 7638),
    (4, 10, 27, 0.1, 1.0, 1.0, None, 0.622, 0.046, 32923, 1772),
    (4, 4, 27, 0.5, 1.0, 1.0, None, 0.604, 0.047, 31091, 968),
    (4, 10, 27, 0.5, 1.0, 1.0, None, 0.604, 0.030, 27287, 7580),
    (0, None, None, None, 0.95, 1.2, None, 0.584, 0.027, 36601, 535),
    (0, None, None, None, 1.0, 0.8, None, 0.562, 0.021, 36610, 669),
    (0, None, 27, None, 0.95, 1.0, 8, 0.559, 0.038, 122933, 3832),
    (0, None, None, None, 0.7, 1.2, None, 0.531, 0.035, 38400, 0),
    (0, None, None, None, 0.95, 0.8, None, 0.523, 0.029, 38386, 28),
    (0, None, None, None, 0.8, 1.0, None, 0.511, 0.028, 38400, 0),
    (0, None, None, None, 1.0, 1.0, None, 0.504, 0.025, 30754, 1272),
    (0, None, None, None, 0.9, 0.8, None, 0.466, 0.032, 38400, 0),
    (4, 4, 27, 0.1, 1.0, 1.2, None, 0.440, 0.026, 24916, 954),
    (0, None, None, None, 1.0, 0.6, None, 0.399, 0.070, 38320, 73),
    (0, None, None, None, 0.7, 1.0, None, 0.353, 0.021, 38400, 0),
    (0, None, None, None, 0.8, 0.8, None, 0.351, 0.039, 38400, 0),
    (0, None, None, None, 0.95, 0.6, None, 0.337, 0.053, 38400, 0),
    (4, 4, 27, 0.5, 1.0, 1.2, None, 0.334, 0.013, 24217, 1214),
    (0, None, None, None, 0.9, 0.6, None, 0.284, 0.044, 38400, 0),
    (0, None, None, None, 1.0, 1.2, None, 0.269, 0.025, 21906, 1780),
    (0, None, None, None, 0.7, 0.8, None, 0.239, 0.019, 38400, 0),
    (0, None, None, None, 0.8, 0.6, None, 0.212, 0.011, 38400, 0),
    (0, None, None, None, 1.0, 0.4, None, 0.207, 0.029, 38400, 0),
    (0, None, None, None, 0.95, 0.4, None, 0.176, 0.013, 38400, 0),
    (0, None, None, None, 0.9, 0.4, None, 0.147, 0.013, 38400, 0),
    (0, None, None, None, 0.7, 0.6, None, 0.101, 0.028, 38400, 0),
    (0, None, None, None, 1.0, 0.2, None, 0.080, 0.020, 38400, 0),
    (0, None, None, None, 0.8, 0.4, None, 0.074, 0.027, 38400, 0),
    (0, None, None, None, 0.95, 0.2, None, 0.057, 0.018, 38400, 0),
    (0, None, None, None, 0.9, 0.2, None, 0.029, 0.015, 38400, 0),
    (0, None, None, None, 0.7, 0.4, None, 0.025, 0.016, 38400, 0),
    (0, None, None, None, 0.8, 0.2, None, 0.021, 0.014, 38400, 0),
    (0, None, None, None, 0.7, 0.2, None, 0.018, 0.011, 38400, 0),
    (0, None, None, None, 0.0, 1.0, None, 0.013, 0.000, 38400, 0),
)

# Table 3.9, by layer, in the order of its rows
LAYERS = {
    27: (0.714, 0.011),
    28: (0.711, 0.016),
    26: (0.708, 0.018),
    30: (0.706, 0.036),
    24: (0.701, 0.033),
    31: (0.688, 0.028),
    29: (0.676, 0.021),
    25: (0.672, 0.030),
    23: (0.709, 0.017),
    3: (0.700, 0.028),
    15: (0.700, 0.028),
    19: (0.692, 0.028),
    7: (0.691, 0.031),
    11: (0.650, 0.041),
}
RANDOM_VERIFIER, BASELINE = (0.663, 0.027), (0.660, 0.042)  # Tables 3.9, 3.11, 3.12

# Table 3.10: Q, B, top_p, temperature, threshold as printed; accuracy
THRESHOLDS = (
    (4, 4, 0.95, 1.0, 0.1, 0.714, 0.011),
    (4, 4, 0.95, 1.0, 0.5, 0.676, 0.019),
    (4, 4, 1.0, 1.0, 0.1, 0.639, 0.061),
    (4, 4, 1.0, 1.0, 0.5, 0.604, 0.047),
    (4, 4, 1.0, 1.2, 0.1, 0.440, 0.026),
    (4, 4, 1.0, 1.2, 0.5, 0.334, 0.013),
    (4, 10, 1.0, 1.0, 0.1, 0.622, 0.046),
    (4, 10, 1.0, 1.0, 0.1, 0.604, 0.030),
)
DEPTHS = {1: (0.96, 0.714, 0.011), 4: (0.97, 0.699, 0.038), 2: (0.97, 0.687, 0.035), 8: (0.97, 0.684, 0.015)}
# Table 3.12: verifier, Q, B; accuracy
VERIFIERS = (
    ("groundtruth", 4, 4, 0.719, 0.022),
    ("groundtruth", 10, 4, 0.717, 0.015),
    ("trained", 4, 4, 0.714, 0.011),
    ("trained", 10, 4, 0.692, 0.025),
    ("random", 4, 4, 0.663, 0.027),
    ("none", 0, 0, 0.660, 0.042),
    ("trained", 4, 10, 0.622, 0.046),
)
# Table 3.15: Q, threshold; accuracy in distribution, out of it
NAMES = (
    (4, 0.1, 0.714, 0.011, 0.710, 0.029),
    (4, 0.5, 0.676, 0.019, 0.687, 0.024),
    (0, None, 0.660, 0.042, 0.606, 0.034),
)
# Table 3.17: refill, threshold; accuracy
CODE_REFILL = (
    ("argmax", 0.1, 0.714, 0.011),
    ("no argmax", 0.1, 0.711, 0.032),
    ("argmax", 0.5, 0.676, 0.019),
    ("no argmax", 0.5, 0.663, 0.023),
)

# Numbers of the text
OOD_ACCURACY = 0.9423  # section 3.2.1.1, nucleus sampling 0.9 on prompts out of distribution
VALIDATION = (0.93, 0.039)  # section 3.2.1.2, "93% (with standard error 3.9%)", 10 repetitions
COLLECTED = 441  # section 3.2.1.2, strings with a mistake


def cells() -> Iterator[Cell]:
    """Yield every printed number."""
    for B, accuracy in FORCED.items():
        row = {"decoder": "nucleus", "top_p": 0.9, "B": B}
        yield Cell("T3.1", row, "accuracy", accuracy)
    yield Cell("T3.1", {"decoder": "argmax", "B": 0}, "accuracy", GREEDY)
    for (Q, B), accuracy in BACKTRACKED.items():
        yield Cell("T3.2", {"Q": Q, "B": B, "top_p": 0.9}, "accuracy", accuracy)
    yield Cell("T3.2", {"Q": 0, "B": 0, "top_p": 0.9}, "accuracy", FORCED[0])
    yield Cell("T3.2", {"Q": 0, "B": 0, "decoder": "argmax"}, "accuracy", GREEDY)
    for (top_p, Q, B), (errors, spread) in ERRORS.items():
        yield Cell("T3.3", {"top_p": top_p, "Q": Q, "B": B}, "errors", errors, spread)
    for (Q, B), (backtracks, nucleus, argmax) in NECESSARY.items():
        row = {"Q": Q, "B": B}
        yield Cell("T3.4", row, "backtracks", backtracks)
        yield Cell("T3.4", row, "accuracy, nucleus", nucleus)
        yield Cell("T3.4", row, "accuracy, argmax", argmax)
    for (Q, B, top_p), (distinct, spread) in DIVERSITY.items():
        yield Cell("T3.5", {"Q": Q, "B": B, "top_p": top_p}, "distinct completions", distinct, spread)
    for name, (errors, spread) in REFILL.items():
        yield Cell("T3.16", {"sampler": name, "top_p": 0.9, "Q": 4, "B": 4}, "errors", errors, spread)
    yield from _figure()
    yield from _code()
    yield Cell("3.2.1.1", {"decoder": "nucleus", "top_p": 0.9}, "accuracy, prompts out of distribution", OOD_ACCURACY)
    yield Cell("3.2.1.2", {"verifier": "one linear layer"}, "validation accuracy", *VALIDATION)
    yield Cell("3.2.1.2", {"set": "X_error"}, "strings", COLLECTED)


def _figure() -> Iterator[Cell]:
    for kind, count in MISTAKES.items():
        yield Cell("F3.2", {"error": kind}, "mistakes", count)
    yield Cell("F3.2", {"quota left": 0}, "mistakes", QUOTA_USED_UP)
    for i, chance in enumerate(GENERATED):
        yield Cell("F3.2", {"row": i}, "probability of the generated token", chance)


def _code() -> Iterator[Cell]:
    for Q, B, top_p, temperature, n, accuracy, spread in MAIN:
        row = {"Q": Q, "B": B, "top_p": top_p, "temperature": temperature, "n": n}
        yield Cell("T3.6", row, "accuracy", accuracy, spread)
    for layer, (accuracy, spread) in LAYERS.items():
        yield Cell("T3.9", {"layer": layer}, "accuracy", accuracy, spread)
    for Q, B, top_p, temperature, threshold, accuracy, spread in THRESHOLDS:
        # Two rows of the table are printed alike; the last is told apart by its place.
        row = {"Q": Q, "B": B, "top_p": top_p, "temperature": temperature, "threshold": threshold}
        last = (B, spread) == (10, 0.030)
        note = "printed with the threshold of the row before it" if last else ""
        yield Cell("T3.10", row | ({"place": "last"} if last else {}), "accuracy", accuracy, spread, note)
    for depth, (validation, accuracy, spread) in DEPTHS.items():
        yield Cell("T3.11", {"layers of the verifier": depth}, "validation accuracy", validation)
        yield Cell("T3.11", {"layers of the verifier": depth}, "accuracy", accuracy, spread)
    yield Cell("T3.11", {"verifier": "random"}, "validation accuracy", 0.50)
    for verifier, Q, B, accuracy, spread in VERIFIERS:
        yield Cell("T3.12", {"verifier": verifier, "Q": Q, "B": B}, "accuracy", accuracy, spread)
    for table in ("T3.9", "T3.11"):
        yield Cell(table, {"verifier": "random", "Q": 4, "B": 4}, "accuracy", *RANDOM_VERIFIER)
        yield Cell(table, {"verifier": "none"}, "accuracy", *BASELINE)
    for Q, B, layer, threshold, top_p, temperature, n, accuracy, spread, calls, more in FULL:
        row = {"Q": Q, "B": B, "layer": layer, "threshold": threshold}
        row |= {"top_p": top_p, "temperature": temperature, "n": n}
        yield Cell("T3.13", row, "accuracy", accuracy, spread)
        yield Cell("T3.13", row, "calls", calls, float(more))
    for Q, at, here, spread, ood, more in NAMES:
        row = {"Q": Q, "threshold": at}
        yield Cell("T3.15", row, "accuracy, in distribution", here, spread)
        yield Cell("T3.15", row, "accuracy, out of distribution", ood, more)
    for refill, threshold, accuracy, spread in CODE_REFILL:
        yield Cell("T3.17", {"refill": refill, "threshold": threshold}, "accuracy", accuracy, spread)
