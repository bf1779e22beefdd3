"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

Runs of one stream start alike and see their strings in one order, so that arms of one stream and one kind of data are
paired: the contrastive term (claims 8 to 11), the blocks, and the lengths of training (claim 24). All others are
independent.
"""

from __future__ import annotations

import math

from pipeline.kit.comparisons import (
    CORRELATION,
    MEAN,
    MEAN_DIFFERENCE,
    MEDIAN,
    OWN,
    RATIO,
    SHARE,
    SHIFT,
    Arm,
    Comparison,
    Declared,
)
from pipeline.kit.conditions import at_least
from pipeline.studies.dyck.names import (
    ARMS,
    BLOCKS,
    COMPLETE,
    COPY_DEEP,
    COPY_HEADS,
    COPY_NAMES,
    FACTORS,
    HEADS,
    LIFTS_READ,
    LINEAR,
    LONGER_CELLS,
    MINIMAL,
    MISLEADING_BELOW,
    MODELS,
    PREFIX,
    PREFIX_LENGTHS,
    PREFIX_MINIMAL,
    PREFIX_MODELS,
    PREFIX_STANDARD,
    PREFIX_STANDARD_ALL,
    PUBLISHED_TABLE_1,
    STACK_CELLS,
    STACK_LIKE,
    STANDARD,
    STRINGS,
    TABLE_1,
    THEORY_LAYERS,
    THREE_LAYERS,
    TRAINING_LENGTHS,
    UNIFORM,
    WIDE,
    cell_name,
)
from schemas.comparisons import MODELS as SAME_MODELS
from schemas.comparisons import NOTHING, SEEDS

DECLARED = Declared()
ATTENTION, TABLES, STACK, ON_PREFIXES = "dyck-attention", "dyck-table1", "dyck-stack", "dyck-prefix"
BALANCE = {COMPLETE: "dyck-balance", PREFIX: ON_PREFIXES}
READINGS, COPYING, WITHOUT_HEADS = "dyck-readings", "dyck-copying", "dyck-heads"

# Columns of tables in words: a closer is a closing bracket.
ACCURACIES = {
    "acc_close": "share of closers that are predicted",
    "acc_thr80": "share of closers with more than 0.8 of the probability of all closers",
}
IMPORTANCES = {"importance_fixed": "all else left as it is", "importance_adapt": "trained further without it"}
# Where statistics can lie.
UNIT, CORRELATIONS, POSITIVE, EVERYWHERE = (0.0, 1.0), (-1.0, 1.0), (0.0, math.inf), (-math.inf, math.inf)


def _slug(*parts: str | int) -> str:
    return "-".join(str(part).removeprefix("dyck-").replace("_", "-") for part in parts)


def _convention(start: bool) -> str:
    return "start token " + ("included" if start else "omitted")


# In distribution: accuracy, and stack scores

STUDIED = {run: name for run, name in MODELS.items() if run != WIDE}  # claim 3
STUDIED |= {run: f"M8, {cell_name(*cell)}" for cell, run in TABLE_1.items()}
NAMES = STUDIED | {run: f"M7, {data} data" for data, run in UNIFORM.items()} | {THEORY_LAYERS: "M9"}
_LENGTHS = dict(zip(TRAINING_LENGTHS, ("M1, short", "M1, long", "M1", "M1, double"), strict=True))  # of training
_EXPERIMENTS = (
    dict.fromkeys([*MODELS, UNIFORM[COMPLETE]], ATTENTION)
    | dict.fromkeys(TABLE_1.values(), TABLES)
    | dict.fromkeys(STACK_CELLS.values(), STACK)
    | {UNIFORM[PREFIX]: ON_PREFIXES, THEORY_LAYERS: READINGS, TRAINING_LENGTHS[-1]: READINGS}
)
_LIKE_TRAINING = "on strings like their training data"

ACCURACY = {
    run: DECLARED(
        Comparison(
            _slug("accuracy", run),
            f"{ACCURACIES['acc_close']} {_LIKE_TRAINING}",
            MEDIAN,
            _EXPERIMENTS[run],
            (Arm(name, run),),
            learned=False,
            span=UNIT,
        )
    )
    for run, name in (NAMES | _LENGTHS).items()
}
UNSEEN = {
    run: DECLARED(
        Comparison(
            _slug("unseen", run),
            f"{ACCURACIES['acc_close']} {_LIKE_TRAINING} that are not among it",
            MEDIAN,
            _EXPERIMENTS[run],
            (Arm(name, run),),
            learned=False,
            span=UNIT,
        )
    )
    for run, name in STUDIED.items()
}
UNLIKE_A_STACK = {run: MODELS[run] for run in (STANDARD, LINEAR)}  # claim 4
UNLIKE_A_STACK |= {run: NAMES[run] for cell, run in TABLE_1.items() if cell[-1] == 2}
_SCORE = "last-layer stack score"
STACK_SHARE = {
    run: DECLARED(
        Comparison(
            _slug("stack-share", run),
            _SCORE,
            SHARE,
            _EXPERIMENTS[run],
            (Arm(NAMES[run], run),),
            hits=at_least(STACK_LIKE),
            span=UNIT,
        )
    )
    for run in (*UNLIKE_A_STACK, THEORY_LAYERS)
}
STACK_MEAN = {
    run: DECLARED(
        Comparison(_slug("stack-mean", run), _SCORE, MEAN, _EXPERIMENTS[run], (Arm(NAMES[run], run),), span=UNIT)
    )
    for run in (*UNLIKE_A_STACK, THEORY_LAYERS)
}
FIRST_LAYER = DECLARED(  # of the models that Figure 11 shows
    Comparison(
        "first-layer",
        "divergence of first-layer attention from uniform, in nats",
        MEAN,
        TABLES,
        (Arm(NAMES[THREE_LAYERS], THREE_LAYERS),),
        span=POSITIVE,
    )
)

# The factorial: all models count, because not all of them have learned by then


def _cell_words(cell: tuple[object, ...]) -> str:
    k, depth, block, data, length = cell
    return f"{BLOCKS[str(block)]}, trained {length} on {STRINGS[str(data)]}, k={k}, D={depth}"


ON_SENTENCES = {
    cell: DECLARED(
        Comparison(
            _slug("d5", *cell), f"{_SCORE} on D5", MEAN, STACK, (Arm(_cell_words(cell), run),), learned=False, span=UNIT
        )
    )
    for cell, run in (STACK_CELLS | LONGER_CELLS).items()
}


def _level(factor: int, level: object) -> Arm:
    """Return the cells of the factorial at one level of a factor."""
    name = {**BLOCKS, **STRINGS}.get(str(level), f"{[*FACTORS][factor]} {level}")
    return Arm(name, *(run for cell, run in STACK_CELLS.items() if cell[factor] == level))


EFFECTS = {
    factor: DECLARED(
        Comparison(
            _slug("effect", *factor.split()),
            "mean last-layer stack score on D5 over all cells, the first minus the second",
            OWN,
            STACK,
            (_level(place, high), _level(place, low)),
            in_common=SEEDS if factor in ("block", "length of training") else NOTHING,
            learned=False,
            span=CORRELATIONS,
        )
    )
    for place, (factor, (low, high)) in enumerate(FACTORS.items())
}

# Variation of attention between models: a mean over pairs of them

VARIATION = {
    (run, start): DECLARED(
        Comparison(
            _slug("variation", run, "start" if start else "plain"),
            f"variation on D4, last layer, {_convention(start)}",
            OWN,
            ATTENTION,
            (Arm(MODELS[run], run),),
        )
    )
    for run, start in ((STANDARD, False), (LINEAR, False), (MINIMAL, False), (MINIMAL, True))
}
OVER_RANDOM = {
    run: DECLARED(
        Comparison(
            _slug("over-random", run),
            "variation on D4 over that of random causal maps",
            OWN,
            ATTENTION,
            (Arm(MODELS[run], run),),
        )
    )
    for run in (STANDARD, LINEAR)
}
_RATIOS = [(MINIMAL, STANDARD, ATTENTION)]
_RATIOS += [(run, PREFIX_MINIMAL, ON_PREFIXES) for run in (PREFIX_STANDARD, PREFIX_STANDARD_ALL)]
VARIATION_RATIO = {
    (first, second, start): DECLARED(
        Comparison(
            _slug("variation-ratio", first, "over", second, "start" if start else "plain"),
            f"variation on D4, {_convention(start)}, of the first over that of the second",
            OWN,
            experiment,
            tuple(Arm((MODELS | PREFIX_MODELS)[run], run) for run in (first, second)),
        )
    )
    for first, second, experiment in _RATIOS
    for start in (False, True)
}
BY_LAYER = {
    (cell, layer): DECLARED(
        Comparison(
            _slug("d5", run, "layer", layer), f"variation of layer {layer} on D5", OWN, TABLES, (Arm(NAMES[run], run),)
        )
    )
    for cell, run in TABLE_1.items()
    for layer in range(1, 1 + len(PUBLISHED_TABLE_1[cell]))
}
LAYER_RATIO = {
    cell: DECLARED(
        Comparison(
            _slug("layer-ratio", run),
            "variation of layer 3 on D5 over that of layer 2",
            OWN,
            TABLES,
            (Arm(NAMES[run], run),),
            in_common=SAME_MODELS,
        )
    )
    for cell, run in TABLE_1.items()
    if cell[-1] == 3
}

# Balance against length generalisation, with and without the contrastive term

_ON = {COMPLETE: "", PREFIX: " of models trained on prefixes"}
_BOTH = {data: tuple(Arm(arm, ARMS[data][arm]) for arm in ("contrastive", "standard")) for data in ARMS}


def _compared(data: str, key: str, measure: str, statistic: str, span: tuple[float, float] = EVERYWHERE) -> Comparison:
    """Return what compares both arms of one kind of data."""
    return DECLARED(
        Comparison(_slug(key, data), measure, statistic, BALANCE[data], _BOTH[data], in_common=SEEDS, span=span)
    )


VIOLATION_RATIO = {data: _compared(data, "violation-ratio", f"balance violation{_ON[data]}", RATIO) for data in ARMS}
VIOLATION_SHIFT = {data: _compared(data, "violation-shift", f"balance violation{_ON[data]}", SHIFT) for data in ARMS}
GAINED = {
    (data, name): _compared(data, f"gained-{name}", f"{words} at length{_ON[data]}", MEAN_DIFFERENCE, span=CORRELATIONS)
    for data in ARMS
    for name, words in ACCURACIES.items()
}


def _of_violation(data: str, name: str) -> str:
    return f"balance violation and {ACCURACIES[name]} at length{_ON[data]}"


RANK = {
    (data, arm, name): DECLARED(
        Comparison(
            _slug("rank", data, arm, name),
            _of_violation(data, name),
            CORRELATION,
            BALANCE[data],
            (Arm(arm, run),),
            span=CORRELATIONS,
        )
    )
    for data, arms in ARMS.items()
    for arm, run in arms.items()
    for name in ACCURACIES
}
RANK_WITHIN, RANK_POOLED = (
    {
        (data, name): _compared(
            data,
            f"rank-{key}-{name}",
            f"rank correlation of {_of_violation(data, name)}, {how}",
            OWN,
            span=CORRELATIONS,
        )
        for data in ARMS
        for name in ACCURACIES
    }
    for key, how in (("within", "ranks taken within each arm"), ("pooled", "both arms pooled"))
)
VIOLATION_BY_LENGTH = {  # what is held out is of another length, so that no model counts as one that learned
    length: DECLARED(
        Comparison(
            _slug("violation-n", length),
            "balance violation",
            MEAN,
            ON_PREFIXES,
            (Arm(f"M4, trained on prefixes of {length} tokens", run),),
            learned=False,
            span=POSITIVE,
        )
    )
    for length, run in PREFIX_LENGTHS.items()
}

# Models that copy, and models without a head

COPIED = {
    run: DECLARED(
        Comparison(
            _slug("copied", run),
            "accuracy of copying held-out strings",
            MEDIAN,
            COPYING,
            (Arm(name, run),),
            learned=False,
            span=UNIT,
        )
    )
    for run, name in COPY_NAMES.items()
}
_LOW, _HIGH = LIFTS_READ
MISLEADING = {
    run: DECLARED(
        Comparison(
            _slug("misleading", run),
            f"number of maps where the lift of some bracket is at most {_LOW} or at least {_HIGH:g}, and uniform "
            f"attention in their place changes accuracy by less than {MISLEADING_BELOW},",
            SHARE,
            COPYING,
            (Arm(COPY_NAMES[run], run),),
            hits=at_least(1),
            span=UNIT,
        )
    )
    for run in (COPY_DEEP, COPY_HEADS)
}
HEAD_RANK = {
    name: DECLARED(
        Comparison(
            _slug("heads", name),
            f"rank correlation, over the heads of a model, of stack score and accuracy lost without the head, {sense}",
            MEAN,
            WITHOUT_HEADS,
            (Arm("", HEADS),),
            span=CORRELATIONS,
        )
    )
    for name, sense in IMPORTANCES.items()
}
