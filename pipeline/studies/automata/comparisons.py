"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

Accuracies are shares of tokens. Arms are paired by seeds where models of equal number start from the same weights and
read the same data: where they have one shape, one stream and one dataset. A best of twenty published models says that
about one model in twenty gets there; `measures.arms.learned` says which models count as ones that learned.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.kit.comparisons import CORRELATION, MEAN, MEAN_DIFFERENCE, OWN, SHARE, Arm, Comparison, Declared
from pipeline.kit.conditions import Condition, above, at_least, at_most, below
from pipeline.studies.automata.names import (
    ARMS,
    ATTENTION,
    C2,
    C2_CELL,
    DEPTHS,
    DYCK,
    POSITIONS,
    SHOWN,
    cell,
    hidden,
    seen,
    shown,
)
from schemas.automata.tasks import TASKS
from schemas.comparisons import MODELS, NOTHING, SEEDS

ACCURACY, SOLVED = "accuracy", 0.99
UNIT = (0.0, 1.0)
LAYERS = {1: "one layer", 2: "two layers", 4: "four layers"}
DECLARED = Declared()

# --- what depth learns (of all models: how much they learn is what is asked) --------------------------------------

DEPTH = "automata-accuracy"


def _layers(task: str, depth: int) -> Arm:
    return Arm(f"{shown(task)}, {LAYERS[depth]}", cell(task, depth))


def _every_depth(*tasks: str) -> tuple[Arm, ...]:
    return tuple(Arm("", *(cell(task, depth) for depth in DEPTHS)) for task in tasks)


GAIN = {
    (task, high): DECLARED(
        Comparison(
            f"gain-{task}-{high}",
            ACCURACY,
            MEAN_DIFFERENCE,
            DEPTH,
            (_layers(task, high), _layers(task, 1)),
            learned=False,
        )
    )
    for task, high in (("dyck42", 2), ("grid9", 2), ("d8", 4), ("q8", 4), ("s5", 4))
}
TREND = {
    task: DECLARED(
        Comparison(
            f"trend-{task}",
            f"layers and accuracy on {shown(task)}",
            CORRELATION,
            DEPTH,
            _every_depth(task),
            learned=False,
        )
    )
    for task in ("d8", "q8", "s5")
}
HARDER = {
    (easy, hard, depth): DECLARED(
        Comparison(
            f"harder-{easy}-{hard}-{depth}",
            ACCURACY,
            MEAN_DIFFERENCE,
            DEPTH,
            (_layers(easy, depth), _layers(hard, depth)),
            learned=False,
        )
    )
    for depth in (2, 4)
    for easy, hard in (("dyck42", "d8"), ("grid9", "d8"), ("d8", "q8"))
}
REACHED = {
    (task, depth): DECLARED(
        Comparison(
            f"reached-{task}-{depth}",
            ACCURACY,
            SHARE,
            DEPTH,
            (_layers(task, depth),),
            learned=False,
            hits=at_least(SOLVED),
        )
    )
    for task, depth in (("dyck42", 1), ("grid4", 1), ("grid9", 2))
}
MISSED = DECLARED(
    Comparison("missed-grid9-1", ACCURACY, SHARE, DEPTH, (_layers("grid9", 1),), learned=False, hits=below(SOLVED))
)
DYCK_TWO = DECLARED(
    Comparison("accuracy-dyck42-2", ACCURACY, MEAN, DEPTH, (_layers("dyck42", 2),), learned=False, span=UNIT)
)
SOME_DEPTH = {
    task: DECLARED(
        Comparison(
            f"some-depth-{task}",
            f"accuracy on {shown(task)} at the best depth",
            SHARE,
            DEPTH,
            _every_depth(task),
            learned=False,
            hits=at_least(SOLVED),
        )
    )
    for task in TASKS
}
# Of models of equal number, at all depths; those that no depth solves come after the deepest.
FIRST = f"layers to reach an accuracy of {SOLVED:g}"
SHARED = "of the depths that all of these tasks have"
ORDER = DECLARED(
    Comparison(
        "first-shared-depths",
        f"mean {FIRST}, {SHARED}, and the published number of layers, over tasks",
        CORRELATION,
        DEPTH,
        _every_depth(*TASKS),
        unit="task",
        learned=False,
    )
)
LATER = {
    (easy, hard): DECLARED(
        Comparison(
            f"later-shared-{'-'.join(easy)}-{'-'.join(hard)}",
            f"{FIRST}, {SHARED}, fewest on {' and '.join(map(shown, hard))} minus most on "
            f"{' and '.join(map(shown, easy))}",
            MEAN,
            DEPTH,
            _every_depth(*easy, *hard),
            learned=False,
        )
    )
    for easy, hard in ((("d8",), ("d6", "q8")), (("d6", "q8"), ("a4",)), (("a4",), ("s4", "s5")))
}
GROUPLESS = ("dyck42", "grid4", "grid9")
WITHOUT_GROUPS = DECLARED(
    Comparison(
        "without-groups",
        f"largest number of {FIRST} on Dyck (4, 2) and both gridworlds",
        SHARE,
        DEPTH,
        _every_depth(*GROUPLESS),
        learned=False,
        hits=at_most(2.0),
    )
)
CELLS = DECLARED(
    Comparison(
        "published-cells",
        "rank correlation of mean accuracy and the published best one, over the tasks and depths that both have",
        OWN,
        DEPTH,
        unit="task",
        learned=False,
        span=(-1.0, 1.0),
    )
)
UNSTABLE = (4, 6, 8)  # layers of C2 where the published best is far above the median
BEST_C2 = {
    depth: DECLARED(
        Comparison(
            f"best-c2-{depth}",
            ACCURACY,
            SHARE,
            DEPTH,
            (Arm(f"C2, {depth} layers", cell("c2", depth)),),
            learned=False,
            hits=at_least(SOLVED),
        )
    )
    for depth in UNSTABLE
}
LOW_C2 = {
    depth: DECLARED(
        Comparison(
            f"low-c2-{depth}",
            ACCURACY,
            SHARE,
            DEPTH,
            (Arm(f"C2, {depth} layers", cell("c2", depth)),),
            learned=False,
            hits=below(0.95),
        )
    )
    for depth in UNSTABLE
}
NOISE = DECLARED(
    Comparison(
        "evaluation-noise",
        "standard deviation of one model's accuracy over evaluation sets",
        OWN,
        DEPTH,
        (Arm("C2, four layers", C2_CELL),),
        unit="evaluation set",
        span=(0.0, 1.0),
    )
)

# --- dropout, and moving averages of weights ----------------------------------------------------------------------

STABILISERS = "automata-stabilisers"
AVERAGED = ("dyck42", "grid9", "d8", "q8")  # of the chapter's EXP-STAB


def _plain(name: str, task: str) -> Arm:
    return Arm(name, cell(task, 2), cell(task, 6))  # of the depth of the models with dropout


DROPOUT = {
    task: DECLARED(
        Comparison(
            f"dropout-{task}",
            f"accuracy on {shown(task)}",
            MEAN_DIFFERENCE,
            STABILISERS,
            (Arm("dropout 0.1", f"automata-{task}-dropout1"), _plain("none", task)),
            in_common=SEEDS,
            learned=False,
        )
    )
    for task in ("d8", "q8", "dyck42", "grid9")
}
AVERAGE = {
    task: DECLARED(
        Comparison(
            f"average-{task}",
            f"accuracy on {shown(task)}",
            MEAN_DIFFERENCE,
            STABILISERS,
            (_plain("moving average of the weights, decay 0.9", task), _plain("the weights", task)),
            in_common=MODELS,
            learned=False,
        )
    )
    for task in AVERAGED
}
DECAY = {
    task: DECLARED(
        Comparison(
            f"decay-{task}",
            f"accuracy of moving averages on {shown(task)}",
            MEAN_DIFFERENCE,
            STABILISERS,
            (_plain("decay 0.95", task), _plain("decay 0.85", task)),
            in_common=MODELS,
            learned=False,
        )
    )
    for task in AVERAGED
}

# --- other inputs than in training, of models that learned theirs --------------------------------------------------

SHIFTS = "automata-shifts"
MODEL: Mapping[str, Mapping[str, tuple[str, ...]]] = {"c2": C2, "dyck42": DYCK}


def _of(task: str, arm: str, condition: str = "") -> Arm:
    return Arm(condition or f"{shown(task)}, {ARMS[arm]}", *MODEL[task][arm])


def _lost(key: str, measure: str, task: str, first: str, second: str) -> Comparison:
    """Return a difference between two conditions of the plain Transformers of a task."""
    return DECLARED(
        Comparison(
            key,
            f"{measure} of Transformers on {shown(task)}",
            MEAN_DIFFERENCE,
            SHIFTS,
            (_of(task, "gpt", first), _of(task, "gpt", second)),
            in_common=MODELS,
        )
    )


HALF = "half of the symbols ones"
MORE_ONES = _lost("more-ones", ACCURACY, "c2", HALF, "0.95 of them ones")
FEWER_ONES = _lost("fewer-ones", ACCURACY, "c2", HALF, "0.05 of them ones")
WORST = DECLARED(
    Comparison(
        "worst-probability",
        "smallest accuracy at inner probabilities of a one minus that at the worse end",
        SHARE,
        SHIFTS,
        (_of("c2", "gpt"),),
        hits=at_least(0.01),
    )
)
LOW_COUNTS = _lost("low-counts", ACCURACY, "c2", "low numbers of ones", "high ones")
OUTER_COUNTS = _lost("outer-counts", ACCURACY, "c2", "middle numbers of ones", "outer ones")
LONGER = {task: _lost(f"longer-{task}", ACCURACY, task, "training length", "twice that") for task in ("c2", "dyck42")}
RISE = DECLARED(
    Comparison(
        "rise",
        "largest change of accuracy from a length to the next, from the training length on",
        MEAN,
        SHIFTS,
        (_of("c2", "gpt"),),
    )
)
# By number of models that are right everywhere; the recurrent ones are to be.
EVERY_P = {
    arm: DECLARED(
        Comparison(
            f"every-probability-{arm}",
            "smallest accuracy over probabilities of a one",
            SHARE,
            SHIFTS,
            (_of("c2", arm),),
            hits=at_least(0.999),
        )
    )
    for arm in ("lstm", "recency")
}
EVERY_LENGTH = {
    arm: DECLARED(
        Comparison(
            f"every-length-{arm}",
            "smallest accuracy over lengths",
            SHARE,
            SHIFTS,
            (_of("c2", arm),),
            hits=at_least(0.999),
        )
    )
    for arm in ("lstm", "recency")
}
TWICE = "accuracy at twice the training length"
SCRATCHPAD = DECLARED(Comparison("twice-scratchpad", TWICE, MEAN, SHIFTS, (_of("c2", "scratchpad"),), span=UNIT))
DYCK_LSTM = DECLARED(
    Comparison("twice-dyck42-lstm", TWICE, SHARE, SHIFTS, (_of("dyck42", "lstm"),), hits=at_least(0.995))
)
AGAINST_PLAIN = {
    arm: DECLARED(
        Comparison(
            f"plain-{arm}",
            TWICE,
            MEAN_DIFFERENCE,
            SHIFTS,
            (_of("c2", arm), _of("c2", "gpt") if arm == "scratchpad" else Arm("Transformer", C2["gpt"][0])),
            in_common=NOTHING if arm == "scratchpad" else SEEDS,  # a scratchpad's embedding has another shape
        )
    )
    for arm in ("scratchpad", "shift", "none")
}
BOTH, ALONE = "position and count", "count alone"
COVERED = {
    variant: DECLARED(
        Comparison(
            f"coverage-{variant.replace(' ', '-')}",
            "root mean squared error of predicted accuracies by number of ones minus that of the best constant",
            MEAN,
            SHIFTS,
            (Arm(f"coverage of {variant}", *C2["gpt"]),),
        )
    )
    for variant in (BOTH, ALONE)
}

# --- less supervision ---------------------------------------------------------------------------------------------

SUPERVISION = "automata-supervision"
# The published maximum where states are seen through a map, per cent (the table of Figure 3.18).
INDIRECT = {
    "dyck48-top": 100.0,
    "grid9-boundary": 100.0,
    "s5-first": 99.6,
    "c4-zero": 99.9,
    "d8-location": 100.0,
    "abab1": 100.0,
    "abab2": 100.0,
}
SHARES = {
    "s3": (1.0, 0.3, 0.1),
    "s5": (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01),
    "c2": (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01),
}
HIDDEN = {
    task: DECLARED(
        Comparison(
            f"hidden-{task}",
            f"accuracy of Transformers on {shown(task)}",
            MEAN_DIFFERENCE,
            SUPERVISION,
            (Arm("all labels", hidden(task, "gpt", 1.0)), Arm("a tenth", hidden(task, "gpt", 0.1))),
            in_common=SEEDS,
        )
    )
    for task in ("s3", "s5", "c2")
}
HIDDEN_LSTM = {
    task: DECLARED(
        Comparison(
            f"hidden-{task}-lstm",
            f"smallest accuracy on {shown(task)} over shares of labels",
            SHARE,
            SUPERVISION,
            (Arm("LSTM", *(hidden(task, "lstm", share) for share in SHARES[task])),),
            learned=False,
            hits=at_least(SOLVED),
        )
    )
    for task in ("s3", "s5")
}
BY_POSITION = ("abab1",)  # labels follow from positions, which both arms read
CLOSED = {
    task: DECLARED(
        Comparison(
            f"closed-{task}",
            "part that is closed of the gap between the best label at each position and perfect accuracy",
            MEAN,
            SUPERVISION,
            (Arm(f"{name}, Transformer", seen(task, "gpt")),),
            learned=False,
            span=(-float("inf"), 1.0),
        )
    )
    for task, name in SHOWN.items()
    if task not in BY_POSITION
}
SEEN_BEST = {
    task: DECLARED(
        Comparison(
            f"best-{task}",
            ACCURACY,
            SHARE,
            SUPERVISION,
            (Arm(f"{name}, Transformer", seen(task, "gpt")),),
            learned=False,
            hits=at_least(round(INDIRECT[task] / 100 - 0.01, 6)),
        )
    )
    for task, name in SHOWN.items()
}
SEEN_LSTM = {
    task: DECLARED(
        Comparison(
            f"lstm-{task}",
            ACCURACY,
            SHARE,
            SUPERVISION,
            (Arm(f"{name}, LSTM", seen(task, "lstm")),),
            learned=False,
            hits=at_least(SOLVED),
        )
    )
    for task, name in SHOWN.items()
}
AHEAD = {
    task: DECLARED(
        Comparison(
            f"ahead-{task}",
            f"accuracy on {name}",
            MEAN_DIFFERENCE,
            SUPERVISION,
            (Arm("LSTM", seen(task, "lstm")), Arm("Transformer", seen(task, "gpt"))),
            learned=False,
        )
    )
    for task, name in SHOWN.items()
    if task not in BY_POSITION
}

# --- what heads of gridworld models look at -----------------------------------------------------------------------

HEADS = "automata-maps"
EVEN = 0.9  # from which a head spreads evenly
EVENNESS = "entropy over that of uniform attention, largest of {}"
# Heads of the first layer see symbols and places, and no states: they say what the measure is without a detector.
LOOKS = (
    "weight on visits to a boundary over that of the same head blind to states, largest of a layer's heads, smaller of "
    "the two boundaries"
)
BOUNDARY = DECLARED(
    Comparison(
        "boundary",
        LOOKS,
        MEAN_DIFFERENCE,
        HEADS,
        (Arm("last layer", ATTENTION), Arm("first layer", ATTENTION)),
        in_common=MODELS,
    )
)
BOUNDARY_UNTRAINED = DECLARED(
    Comparison(
        "boundary-untrained",
        LOOKS,
        MEAN_DIFFERENCE,
        HEADS,
        (Arm("last layer of trained models", ATTENTION), Arm("of untrained ones", ATTENTION)),
    )
)


def _heads(key: str, measure: str, hits: tuple[Condition, ...], trained: bool = True) -> Comparison:
    arm = Arm("trained" if trained else "untrained", ATTENTION)
    return DECLARED(Comparison(key, measure, SHARE, HEADS, (arm,), learned=trained, hits=hits))


UNIFORM = _heads("uniform", EVENNESS.format("all heads"), above(EVEN))
UNIFORM_FIRST = _heads("uniform-first", EVENNESS.format("the heads in the first layer"), above(EVEN))
UNIFORM_UNTRAINED = _heads("uniform-untrained", EVENNESS.format("all heads"), at_most(EVEN), False)
BEFORE = _heads(
    "before",
    "weight before the last visit to a boundary over that of the same head blind to states, of the head in the last "
    "layer that looks most at one",
    below(0.5),
)

# --- position codes -----------------------------------------------------------------------------------------------

CODES = "automata-positions"


def _codes(key: str, measure: str, task: str, learned: bool) -> Comparison:
    arms = Arm("sinusoidal", *POSITIONS[task, "sin"]), Arm("linear", *POSITIONS[task, "linear"])
    return DECLARED(
        Comparison(key, f"{measure} on {shown(task)}", MEAN_DIFFERENCE, CODES, arms, in_common=SEEDS, learned=learned)
    )


LOST = "accuracy that is lost at twice the training length"
GRID_TWICE = _codes("grid9-twice", TWICE, "grid9", True)
GRID_LOST = _codes("grid9-lost", LOST, "grid9", True)
# That linear positions learn it less well is what is said, so that models which did not learn it count.
ABAB_ONCE = _codes("abab2-once", "accuracy at the training length", "abab2", False)
ABAB_LOST = _codes("abab2-lost", LOST, "abab2", False)
