"""What the code of the Dyck study names: its runs, the words of its tables, and what was published."""

from __future__ import annotations

import itertools
from typing import Any

# Runs: members of the entries of params/dyck/

STANDARD = "dyck-standard"  # M1
LINEAR = "dyck-linear-position"  # M2
WIDE = "dyck-wide"  # M3
MINIMAL = "dyck-minimal"  # M4, learning rate 1e-2
MINIMAL_SLOW = "dyck-minimal-lr3e-3"  # M4, learning rate 3e-3
MINIMAL_SUM = "dyck-minimal-sum"  # M5, eq. (16)
MINIMAL_ANGLE = "dyck-minimal-angle"  # M6, eq. (17)
THEORY_LAYERS = "dyck-theory-standard"  # M9 (appendix C.7)
PRUNING_TARGET = "dyck-theory-target"  # M9, small: what a random parent is pruned to (DYCK-TH6)
UNIFORM = {"complete": "dyck-uniform-complete", "prefix": "dyck-uniform-prefix"}  # M7, by training data
# Trained on prefixes (appendix D.2), with the loss at closing brackets or at all positions.
PREFIX_STANDARD, PREFIX_STANDARD_ALL = "dyck-prefix-standard", "dyck-prefix-standard-all"  # M1
PREFIX_LINEAR, PREFIX_LINEAR_ALL = "dyck-prefix-linear", "dyck-prefix-linear-all"  # M2
PREFIX_MINIMAL = "dyck-prefix-minimal"  # M4
PREFIX_MINIMAL_SUM = "dyck-prefix-minimal-sum"  # M5
PREFIX_MINIMAL_ANGLE = "dyck-prefix-minimal-angle"  # M6
COMPLETE, PREFIX = "complete", "prefix"
# M4, by the length of the prefixes that it was trained on (DYCK-TH5).
PREFIX_LENGTHS = {14: "dyck-prefix-n14", 28: PREFIX_MINIMAL, 56: "dyck-prefix-n56", 112: "dyck-prefix-n112"}
ARMS = {  # of Figures 3 and 10, by training data
    COMPLETE: {"standard": "dyck-minimal-own-corpus", "contrastive": "dyck-minimal-contrastive"},
    PREFIX: {"standard": "dyck-prefix-own-corpus", "contrastive": "dyck-prefix-contrastive"},
}
ARM_OF = {run: (data, arm) for data, arms in ARMS.items() for arm, run in arms.items()}
# Two families of maps, by where they look most (appendix D.2), and the runs whose maps are sorted into them.
FAMILIES = ("current position", "first position")
FAMILY_RUNS = (PREFIX_STANDARD, PREFIX_STANDARD_ALL, PREFIX_LINEAR, PREFIX_LINEAR_ALL)
HEADS = "dyck-heads"  # M1 with four heads (DYCK-E11)
# M10, by layers and heads, or by how the one layer lets tokens pass; the first are those of claim 21.
COPY_DEEP, COPY_HEADS, COPY_SHALLOW = "dyck-copy-l4", "dyck-copy-l4-heads4", "dyck-copy-l1"
COPY_NO_SKIP, COPY_STRIPPED = "dyck-copy-l1-no-skip", "dyck-copy-l1-stripped"
COPY_NAMES = {  # whether the paper's model of one layer had a residual stream is not stated
    COPY_DEEP: "4 layers",
    COPY_HEADS: "4 layers, 4 heads",
    COPY_SHALLOW: "1 layer",
    COPY_NO_SKIP: "1 layer, no skip connection around the MLP",
    COPY_STRIPPED: "1 layer, attention alone",
}

MODELS = {
    STANDARD: "M1",
    LINEAR: "M2",
    WIDE: "M3",
    MINIMAL: "M4",
    MINIMAL_SLOW: "M4, learning rate 0.003",
    MINIMAL_SUM: "M5",
    MINIMAL_ANGLE: "M6",
}
PREFIX_MODELS = {
    PREFIX_STANDARD: "M1, closing brackets",
    PREFIX_STANDARD_ALL: "M1, all positions",
    PREFIX_LINEAR: "M2, closing brackets",
    PREFIX_LINEAR_ALL: "M2, all positions",
    PREFIX_MINIMAL: "M4",
    PREFIX_MINIMAL_SUM: "M5",
    PREFIX_MINIMAL_ANGLE: "M6",
}

# What was published

# Attention variation on D4 over 40 initialisations (Wen et al. 2023, section 4.1). The published values for
# random attention stand in the theory checks ``published-<N>``.
PUBLISHED_VARIATION = {STANDARD: 2.27, LINEAR: 2.20, MINIMAL: 0.24}
# The same for models trained on prefixes, on a sentence that is not stated (appendix D.2).
PUBLISHED_PREFIX_VARIATION = {"M1": 14.51, "M2": 11.92, "M4": 0.34}
# Table 1 (Wen et al. 2023; Li 2025, Table 2.6): variation on 40 sentences of length 19, mean and standard
# deviation over the sentences, for each layer of the models of (k, D, layers); and that of random attention.
PUBLISHED_TABLE_1 = {
    (2, 4, 2): [(0.047, 0.006), (7.721, 0.908)],
    (2, 4, 3): [(0.070, 0.013), (5.072, 0.645), (24.063, 1.166)],
    (2, 8, 2): [(0.087, 0.012), (7.583, 0.961)],
    (2, 8, 3): [(0.059, 0.011), (5.560, 0.714), (23.590, 0.829)],
    (3, 4, 2): [(0.182, 0.024), (9.313, 0.815)],
    (3, 4, 3): [(0.225, 0.032), (8.426, 0.877), (25.749, 0.897)],
    (3, 8, 2): [(0.178, 0.028), (7.000, 0.884)],
    (3, 8, 3): [(0.154, 0.036), (6.280, 0.711), (25.451, 0.871)],
}
PUBLISHED_TABLE_1_RANDOM = 3.33
TABLE_1 = {cell: "dyck-table1-k{}-d{}-l{}".format(*cell) for cell in PUBLISHED_TABLE_1}  # M8
# The factorial (DYCK-A4): types of bracket, depth, block, training data, length of training -> run. Its factors, by
# the place of their level in the cell, and their levels.
FACTORS: dict[str, tuple[Any, Any]] = {
    "types of bracket": (2, 3),
    "depth": (4, 8),
    "block": ("gpt", "resln"),
    "training data": (COMPLETE, PREFIX),
    "length of training": ("short", "long"),
}
BLOCKS = {"gpt": "block of GPT (M1)", "resln": "block of Table 1 (M8)"}
STRINGS = {COMPLETE: "complete strings", PREFIX: "prefixes"}
ALL_CELLS = "all cells"  # scope of an effect over the whole factorial
OWN_KIND = ", strings of its own kind"  # end of the scope of effects on other strings than D5
STACK_CELLS = {cell: "dyck-stack-{2}-{3}-k{0}-d{1}-{4}".format(*cell) for cell in itertools.product(*FACTORS.values())}
# Cells that other runs train, for longer.
LONGER_CELLS = {
    (k, depth, "resln", PREFIX, "longer"): run for (k, depth, layers), run in TABLE_1.items() if layers == 2
} | {(2, 4, "gpt", COMPLETE, "longer"): STANDARD, (2, 4, "gpt", PREFIX, "longer"): PREFIX_STANDARD}
# Trainings of M1 that differ in their length; the short ones also in initialisation and corpus.
TRAINING_LENGTHS = (
    STACK_CELLS[2, 4, "gpt", COMPLETE, "short"],
    STACK_CELLS[2, 4, "gpt", COMPLETE, "long"],
    STANDARD,
    "dyck-standard-double",
)
# The second arm of Table 1; its two-layer rows are cells of the factorial.
TABLE_1_COMPLETE = {
    (k, depth, layers): f"{run}-complete" if layers > 2 else STACK_CELLS[k, depth, "resln", COMPLETE, "long"]
    for (k, depth, layers), run in TABLE_1.items()
}
THREE_LAYERS = TABLE_1[2, 4, 3]  # Li 2025, Figure 2.18

# What the texts leave open: choice -> reading -> run, the recommended reading first (chapter sections 3 and 4).
READINGS = {
    "loss positions, M1": {"closing brackets": STANDARD, "all": "dyck-standard-all"},
    "loss positions, M4": {"closing brackets": MINIMAL, "all": "dyck-minimal-all"},
    "T_max of the position code, M2": {"6000": LINEAR, "28": "dyck-linear-position-t28"},
    "width, M4": {"50": MINIMAL, "500": "dyck-minimal-width500"},
    "corpora of the balance study": {"one per replica": ARMS[COMPLETE]["standard"], "shared": MINIMAL},
    "prefix of the contrastive term": {
        "nested pairs": ARMS[COMPLETE]["contrastive"],
        "authors' release": "dyck-minimal-contrastive-release",
    },
    "objective, M9": {"cross-entropy": THEORY_LAYERS, "squared error": "dyck-theory-squared"},
    "length of training, M1": {"recommended": STANDARD, "double": "dyck-standard-double"},
}

# The words of the tables

PROBE = "probe16"  # D4
TABLE_1_PROBE = "probe19"  # D5
LONG_PROBE = "probe28"  # as long as the training data, for Figure 8
START_SIGN = "·"  # the start token, where sequences are shown
TARGET, PARENT, PRUNED = "target", "parent", "pruned"
UNIFORM_MODE = "uniform"
ALL_QUERIES, CURRENT, SAME = "all", "current position", "same token"
BRACKETS = ["[", "]", "(", ")", "{", "}", "<", ">"]
STACK_LIKE = 0.9  # DYCK-A4: a map is stack-like from this stack_argmax on
# DYCK-A6: a map is interpretable if the lift of some bracket is beyond these; it misleads if uniform attention in
# its place changes accuracy by less than a point.
LIFTS_READ = (0.25, 2.0)
MISLEADING_BELOW = 0.01

# The maps that figures show: run -> on which probes.
MAPPED = (
    dict.fromkeys([*MODELS, *PREFIX_MODELS], (PROBE,))
    | {PREFIX_STANDARD_ALL: (PROBE, LONG_PROBE)}
    | {THREE_LAYERS: (TABLE_1_PROBE,)}
)


def cell_name(k: int, depth: int, layers: int) -> str:
    """Return what a row of Table 1 is called."""
    return f"k={k}, D={depth}, {layers} layers"


# What params/dyck/ must hold

RUNS = tuple(
    dict.fromkeys(
        [
            *MODELS,
            *PREFIX_MODELS,
            *UNIFORM.values(),
            *ARM_OF,
            *TABLE_1.values(),
            *TABLE_1_COMPLETE.values(),
            *STACK_CELLS.values(),
            *PREFIX_LENGTHS.values(),
            *(run for readings in READINGS.values() for run in readings.values()),
            THEORY_LAYERS,
            PRUNING_TARGET,
            HEADS,
            COPY_DEEP,
            COPY_HEADS,
            COPY_SHALLOW,
            COPY_NO_SKIP,
            COPY_STRIPPED,
        ]
    )
)
DATASETS: tuple[str, ...] = ()  # the analysis goes by their splits
THEORY: tuple[str, ...] = ()  # figures and claims go by the groups and claims of checks
