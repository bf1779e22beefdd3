"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

A teacher of a parity has learned it if it ends with the accuracy ``solved`` of the parameters (`lessons.learned`). With
``learned`` only teachers that have, and students of these, stand in a comparison, whether such a student learns or not:
that is what is asked. Students of labels have no teacher, and no accuracy says that a model of sentences has learned
its task, so that comparisons of these take all.

Students of one number have the same teacher and read the same inputs, but start from weights of their own. They are
paired where both have a teacher.
"""

from __future__ import annotations

from pipeline.kit.comparisons import (
    CLAIMS,
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
from pipeline.kit.conditions import Condition, at_least, at_most
from pipeline.studies.distillation.names import (
    ATTENDING,
    ATTENTION,
    BERT,
    CHECKED,
    CHOOSERS,
    ENDINGS_PUPILS,
    GPT,
    HEADS,
    NARROW,
    OF_SPANS,
    OTHER_PUPILS,
    OTHER_WIDER,
    OTHERS,
    PLATEAU,
    PUPILS,
    SPANS,
    SWEEP,
    TEACHER,
    TEXT_PUPILS,
    TREE_STUDENTS,
    TREE_TEACHER,
    WARM_CHECKED,
    WARMER,
    WIDE,
    WIDER,
)
from schemas.comparisons import MODELS, NOTHING, SEEDS, TEACHERS

DECLARED = Declared()
FINAL = "final accuracy"
LATE = "steps to an accuracy of 0.9"
TO_80 = "the number of heads and the steps to 80 % of the last accuracy, of models of labels and of equal length"
PROGRESSIVE = "progressive students"
HALF = "progressive students at double speed"
OF_LABELS = "students of labels"
ONE_SHOT = "one-shot students"
BETTER = "one-shot students at the better temperature"
TAUGHT = {"prog": PROGRESSIVE, "half": HALF, "one-shot": BETTER, "ce": OF_LABELS, "os": ONE_SHOT}

# --- MLPs on sparse parity (E1, E2) ---

_ACCELERATION, _CURRICULUM = "distillation-acceleration", "distillation-curriculum"
ACCELERATED = {"narrow": NARROW, "wide": WIDE}
DONE = "accuracy when the teacher has learned"
DELAY = {
    size: DECLARED(
        Comparison(
            f"{size}-delay",
            LATE,
            RATIO,
            _ACCELERATION,
            (Arm(f"{size} progressive students", run), Arm("their teachers", TEACHER)),
            TEACHERS,
        )
    )
    for size, run in ACCELERATED.items()
}
AHEAD = {
    (size, base): DECLARED(
        Comparison(
            f"{size}-ahead-{base}",
            DONE,
            MEAN_DIFFERENCE,
            _ACCELERATION,
            (Arm(f"{size} progressive students", run), Arm(TAUGHT[base], run)),
            TEACHERS if base == "one-shot" else NOTHING,
        )
    )
    for size, run in ACCELERATED.items()
    for base in ("ce", "one-shot")
}
LEFT_BEHIND = {
    base: DECLARED(Comparison(f"narrow-{base}", DONE, MEAN, _ACCELERATION, (Arm(f"narrow {TAUGHT[base]}", NARROW),)))
    for base in ("ce", "one-shot")
}
EARLIER = DECLARED(
    Comparison(
        "width-and-steps",
        f"the width and the {LATE}, which one that never has it counts as reaching at its last step",
        CORRELATION,
        _ACCELERATION,
        (Arm("MLPs", *SWEEP, TEACHER),),
        learned=False,
    )
)

TRANSITION = (0.52, 0.97)  # accuracies between which a teacher learns (chapter section 6, C12)
WHERE = {"before": "before the transition", "middle": "in the transition", "behind": "behind the transition"}
TEMPERATURES = {"cool": 0.0001, "mild": 0.01}  # arms of students that learn from the checkpoint in the transition
OF_CHECKED = dict(zip(("narrow", "wide"), CHECKED, strict=True))
OF_WARM_CHECKED = dict(zip(("narrow", "wide"), WARM_CHECKED, strict=True))


def _checked(size: str, run: str, arm: str) -> Arm:
    return Arm(f"{size} students of a checkpoint {WHERE[arm]}", run)


CHECKPOINT = {
    (size, arm): DECLARED(Comparison(f"{size}-{arm}", FINAL, MEDIAN, _CURRICULUM, (_checked(size, run, arm),)))
    for size, run in OF_CHECKED.items()
    for arm in WHERE
}
BEST_INSIDE = {
    (size, arm): DECLARED(
        Comparison(
            f"{size}-middle-less-{arm}",
            FINAL,
            SHIFT,
            _CURRICULUM,
            (_checked(size, run, "middle"), _checked(size, run, arm)),
            TEACHERS,
        )
    )
    for size, run in OF_CHECKED.items()
    for arm in ("before", "behind")
}
WARM_BEST_INSIDE = {
    (size, arm): DECLARED(
        Comparison(
            f"warm-{size}-middle-less-{arm}",
            f"{FINAL}, of a teacher at a higher rate",
            SHIFT,
            _CURRICULUM,
            (_checked(size, run, "middle"), _checked(size, run, arm)),
            TEACHERS,
        )
    )
    for size, run in OF_WARM_CHECKED.items()
    for arm in ("before", "behind")
}
AT_SWITCH, AFTER_SWITCH = (
    {
        size: DECLARED(Comparison(f"{size}-{key}", measure, MEAN, _CURRICULUM, (_checked(size, run, "middle"),)))
        for size, run in OF_CHECKED.items()
    }
    for key, measure in (
        ("at-switch", "distance of the accuracy at the switch from the checkpoint's"),
        ("after-switch", "rise of the final accuracy above the checkpoint's"),
    )
)
TOP_CLASS = "students of the top class"
SOFTER = {
    (size, arm): DECLARED(
        Comparison(
            f"{size}-{arm}-less-middle",
            FINAL,
            SHIFT,
            _CURRICULUM,
            (Arm(f"{size} students at temperature {tau}", run), Arm(TOP_CLASS, run)),
            TEACHERS,
        )
    )
    for size, run in OF_CHECKED.items()
    for arm, tau in TEMPERATURES.items()
}
HOT = {
    size: DECLARED(
        Comparison(
            f"{size}-hot-less-middle",
            "accuracy at the switch",
            MEAN_DIFFERENCE,
            _CURRICULUM,
            (Arm(f"{size} students at temperature 1", run), Arm(TOP_CLASS, run)),
            TEACHERS,
        )
    )
    for size, run in OF_CHECKED.items()
}
SOFTNESS = {
    arm: DECLARED(
        Comparison(
            f"softness-{arm}",
            f"probability beside the top class at temperature {tau}, at the checkpoint in the transition",
            MEAN,
            _CURRICULUM,
            (Arm("teachers", TEACHER),),
        )
    )
    for arm, tau in TEMPERATURES.items()
}
PEAK, PEAK_SIGNS, END, INSIDE = (
    DECLARED(Comparison(key, measure, statistic, _CURRICULUM, (Arm("teachers", TEACHER),), hits=hits))
    for key, measure, statistic, hits in (
        ("peak", "largest SEP in the transition", MEDIAN, ()),
        ("peak-signs", "largest SEP of single signs in the transition", MEDIAN, ()),
        ("end", "SEP at the last step", MEDIAN, ()),
        ("inside", "accuracy where SEP is largest", SHARE, (*at_least(TRANSITION[0]), *at_most(TRANSITION[1]))),
    )
)
EARLY_SIGNS = DECLARED(
    Comparison(
        "before-transition",
        "largest SEP at the checkpoint before the transition",
        MEDIAN,
        _CURRICULUM,
        (Arm("teachers", TEACHER),),
    )
)
HIGHER_DEGREE = DECLARED(
    Comparison(
        "degree",
        "degree of the largest SEP",
        SHARE,
        _CURRICULUM,
        (Arm("teachers at the higher rate", WARMER),),
        hits=at_least(2),
    )
)
SINGLE_SIGNS = DECLARED(
    Comparison(
        "single-signs",
        "largest SEP of single signs",
        SHIFT,
        _CURRICULUM,
        (Arm("teachers at the higher rate", WARMER), Arm("wider ones at the ordinary rate", TEACHER)),
    )
)
# Mean correlations of signs at the checkpoints in the transition and behind it, by whether they matter.
CORRELATED = {
    (arm, inside): DECLARED(
        Comparison(
            f"correlation-{arm}-{'inside' if inside else 'outside'}",
            f"correlation of single signs that {'matter' if inside else 'do not matter'}, {WHERE[arm]}",
            MEAN,
            _CURRICULUM,
            (Arm("teachers", TEACHER),),
        )
    )
    for arm, inside in (("middle", True), ("middle", False), ("behind", True))
}

CORRELATED_MORE = DECLARED(
    Comparison(
        "correlation-middle",
        f"mean correlation of single signs, {WHERE['middle']}",
        MEAN_DIFFERENCE,
        _CURRICULUM,
        (Arm("signs that matter", TEACHER), Arm("signs that do not", TEACHER)),
        in_common=MODELS,
    )
)

# --- Transformers on sparse parity (E3, E4) ---

_TRANSFORMERS = "distillation-transformers"
ATTENDING_END = {
    arm: DECLARED(
        Comparison(f"attending-{arm}", FINAL, MEDIAN, _TRANSFORMERS, (Arm(who, ATTENDING),), learned=arm != "ce")
    )
    for arm, who in (
        ("ce", OF_LABELS),
        ("os", "students of the last checkpoint"),
        ("between", "students of a checkpoint between the peaks of SEP, then of the last one"),
    )
}
BY_PEAK = DECLARED(
    Comparison(
        "attending-peak",
        FINAL,
        SHARE,
        _TRANSFORMERS,
        (Arm("students of the checkpoint with the largest SEP of single signs, then of the last one", ATTENDING),),
        hits=at_least(0.95),
    )
)
ATTENTION_PEAK, ATTENTION_END, VALLEY = (
    DECLARED(Comparison(key, measure, MEDIAN, _TRANSFORMERS, (Arm("teachers", ATTENTION),)))
    for key, measure in (
        ("attention-peak", "largest SEP of single signs"),
        ("attention-end", "SEP of single signs at the last step"),
        ("attention-valley", "SEP of single signs at the checkpoint between the peaks"),
    )
)
ATTENDING_DELAY = DECLARED(
    Comparison(
        "attending-delay",
        LATE,
        RATIO,
        _TRANSFORMERS,
        (Arm(PROGRESSIVE, ATTENDING), Arm("their teachers", ATTENTION)),
        TEACHERS,
    )
)
WHOLE = "distillation-heads-4"  # whose width is that of the group of one width, cut into heads
GROUPS = {
    group: [run for run, (own, _) in HEADS.items() if own == group or (group == "hidden" and run == WHOLE)]
    for group in dict.fromkeys(group for group, _ in HEADS.values())
}
MORE_HEADS = {
    group: DECLARED(
        Comparison(
            f"{group}-and-steps",
            f"the number of heads and the {LATE}, which one that never has it counts as reaching at its last step",
            CORRELATION,
            "distillation-heads",
            (Arm("Transformers", *runs),),
            learned=False,
        )
    )
    for group, runs in GROUPS.items()
}

# --- hierarchical parity (E6) ---

_TREES = "distillation-trees"
BEST_PAIR = DECLARED(Comparison("best-pair", FINAL, MEAN, _TREES, (Arm("students of the best pair", TREE_STUDENTS),)))
PAIR_LESS_SINGLE = DECLARED(
    Comparison(
        "best-pair-less-single",
        FINAL,
        MEAN_DIFFERENCE,
        _TREES,
        (Arm("students of the best pair", TREE_STUDENTS), Arm("students of the best single checkpoint", TREE_STUDENTS)),
        TEACHERS,
    )
)
APART = DECLARED(
    Comparison(
        "peaks-apart",
        "steps from the first to the last of the peaks of SEP of the three parities, as a share of those to learn",
        MEDIAN,
        _TREES,
        (Arm("teachers", TREE_TEACHER),),
    )
)

# --- BERTs on masked tokens (E7, E8, E9) ---

_MASKED, _FEATURES, _ABLATIONS = "distillation-masked", "distillation-features", "distillation-ablations"
LENGTHS = tuple(f"the {which} of four lengths of training" for which in ("shortest", "second", "third", "longest"))


def _sentences(
    key: str, measure: str, statistic: str, experiment: str, *arms: Arm, in_common: str = NOTHING
) -> Comparison:
    """Declare a comparison of models of sentences, of which all count."""
    return DECLARED(Comparison(key, measure, statistic, experiment, arms, in_common, learned=False))


def _pair(first: str, second: str, *runs: str) -> tuple[Arm, Arm]:
    return Arm(TAUGHT.get(first, first), *runs), Arm(TAUGHT.get(second, second), *runs)


LESSON = {
    (arm, place): _sentences(
        f"lesson-{arm}-{place}", f"{FINAL} at {LENGTHS[place - 1]}", MEAN, _MASKED, Arm(TAUGHT[arm], run)
    )
    for arm in ("prog", "one-shot", "ce")
    for place, run in enumerate(PUPILS, 1)
}
GAIN = {
    (arm, base): _sentences(
        f"gain-{arm}-{base}",
        f"{FINAL} at {LENGTHS[0]}",
        MEAN_DIFFERENCE,
        _MASKED,
        *_pair(arm, base, PUPILS[0]),
        in_common=TEACHERS if base == "one-shot" else NOTHING,
    )
    for arm in ("half", "prog")
    for base in ("one-shot", "ce")
}
NARROWING = {
    arm: _sentences(
        f"narrowing-{arm}",
        f"gain in {FINAL} of {TAUGHT[arm]} over {BETTER}",
        MEAN_DIFFERENCE,
        _MASKED,
        Arm("shortest length of training", PUPILS[0]),
        Arm("longest", *PUPILS[1:]),
        in_common=TEACHERS,
    )
    for arm in ("half", "prog")
}
HALF_LESS_EVEN = {
    place: _sentences(
        f"half-less-even-{place}",
        f"{FINAL} at {LENGTHS[place - 1]}",
        MEAN_DIFFERENCE,
        _MASKED,
        *_pair("half", "students that split their own steps equally among the checkpoints", run),
        in_common=TEACHERS,
    )
    for place, run in enumerate(PUPILS, 1)
}
ON_PLATEAU = _sentences("plateau", "loss on the plateau, in nats", MEAN, _MASKED, Arm("models of cfg3b", PLATEAU, BERT))
BERTS_HEADS = _sentences("heads-and-t80", TO_80, CORRELATION, _MASKED, Arm("BERTs", BERT, *PUPILS, *WIDER))
ASKED = DECLARED(Comparison("asked", "held-out tokens that are asked for", OWN, _MASKED, unit="token", learned=False))
WITHIN_REACH = DECLARED(
    Comparison(
        "within-reach",
        "accuracy minus that of the best predictor, in standard errors,",
        SHARE,
        CLAIMS,
        (Arm("masked language models on cfg3b", BERT, *PUPILS, *WIDER, *CHOOSERS),),
        learned=False,
        hits=at_most(3),
    )
)

AT_INFLECTION = "L_robust(3) at the inflection over its largest"
FLAT = _sentences("at-inflection", AT_INFLECTION, MEDIAN, _FEATURES, Arm("teachers", BERT))
SHORT_LEFT = _sentences(
    "short-left", "L_robust(3) at the end over its largest", MEDIAN, _FEATURES, Arm("teachers", BERT)
)
LONG_LEFT = _sentences(
    "long-left",
    "L_close of the widest window at the end over that at the inflection",
    MEDIAN,
    _FEATURES,
    Arm("teachers", BERT),
)
READ_EARLY = _sentences(
    "read-early",
    "accuracy of the probe in the middle of the fast phase over its last one",
    MEDIAN,
    _FEATURES,
    Arm("teachers", BERT),
)
NEAREST = {
    base: _sentences(
        f"nearest-less-{base}",
        FINAL,
        MEAN_DIFFERENCE,
        _FEATURES,
        Arm("students of the checkpoint nearest the inflection", *CHOOSERS),
        Arm(who, *CHOOSERS),
        in_common=TEACHERS,
    )
    for base, who in (
        ("one-shot", "students of the last one alone"),
        ("plateau", "students of a checkpoint on the plateau"),
    )
}
BEST_OFF = _sentences(
    "best-off",
    "kept checkpoints between the best one and that nearest the inflection",
    MEDIAN,
    _FEATURES,
    Arm("students", *CHOOSERS),
)
LEANING = {
    name: _sentences(
        f"students-{name}",
        measure,
        MEAN_DIFFERENCE,
        _FEATURES,
        *_pair(PROGRESSIVE, "os", PUPILS[1]),
        in_common=TEACHERS,
    )
    for name, measure in (
        ("robust", "L_robust(3)"),
        ("close", "L_close of the widest window"),
        ("probe", "accuracy of the probe on the highest levels"),
    )
}

COLD, WARM = "one-shot students at temperature 0", "one-shot students at temperature 1"
ALL_PUPILS = {"smaller": {"cfg3b": PUPILS, **OTHER_PUPILS}, "larger": {"cfg3b": WIDER, **OTHER_WIDER}}
BY_TAU = {
    (size, place, arm): _sentences(
        f"{size}-{place}-{arm}",
        f"{FINAL}, {size} students at {LENGTHS[place - 1]}",
        MEAN_DIFFERENCE,
        _ABLATIONS,
        *_pair("half", COLD if arm == "os" else WARM, run),
        in_common=TEACHERS,
    )
    for size, groups in ALL_PUPILS.items()
    for place, run in enumerate(groups["cfg3b"], 1)
    for arm in ("os", "warm")
}
ON_OTHERS = {
    (size, kind): _sentences(
        f"{size}-{kind}",
        f"{FINAL}, {size} students at the shortest length of training, {OTHERS[kind]}",
        MEAN_DIFFERENCE,
        _ABLATIONS,
        *_pair("half", COLD, groups[kind][0]),
        in_common=TEACHERS,
    )
    for size, groups in ALL_PUPILS.items()
    for kind in OTHERS
}
# The shares of masked tokens on cfg3b, by what groups of students are called.
MASKS = {"cfg3b": "30 % of tokens masked", "rate15": OTHERS["rate15"], "rate45": OTHERS["rate45"]}
SHRINKING = {
    (size, kind): _sentences(
        f"{size}-{kind}-shrinking",
        f"gain of {HALF} over {COLD} as a share of the accuracy of these, {size} students, {what}",
        MEAN_DIFFERENCE,
        _ABLATIONS,
        Arm("shortest length of training", groups[kind][0]),
        Arm("longest", *groups[kind][1:]),
        in_common=TEACHERS,
    )
    for size, groups in ALL_PUPILS.items()
    for kind, what in MASKS.items()
}
CFG3I_END = _sentences(
    "cfg3i-end",
    f"{FINAL} at the longest length of training on cfg3i",
    MEAN,
    _ABLATIONS,
    Arm(HALF, OTHER_PUPILS["cfg3i"][-1]),
)
CFG3I_SOON = _sentences(
    "cfg3i-soon",
    f"{FINAL} of {HALF} on cfg3i",
    MEAN_DIFFERENCE,
    _ABLATIONS,
    Arm("shortest length of training", OTHER_PUPILS["cfg3i"][0]),
    Arm("longest", *OTHER_PUPILS["cfg3i"][1:]),
    in_common=TEACHERS,
)

# --- GPT-2s on next tokens (E10), and BERTs on a text (E11) ---

_ENDINGS, _TEXT = "distillation-endings", "distillation-text"
GAIN_ENDS = f"gain in {FINAL} of {HALF} over {COLD}"
LEVELS = _sentences(
    "levels",
    f"{GAIN_ENDS}, mean over lengths of training",
    MEAN_DIFFERENCE,
    _ENDINGS,
    Arm(SPANS["4"], *ENDINGS_PUPILS["4"]),
    Arm(SPANS["2"], *ENDINGS_PUPILS["2"]),
    in_common=SEEDS,
)
LONGEST = {
    spans: _sentences(
        f"longest-{spans}",
        f"{FINAL} at the longest length of training, {SPANS[spans]}",
        MEAN,
        _ENDINGS,
        Arm(HALF, *ENDINGS_PUPILS[spans]),
    )
    for spans in ("3", "3g")
}
BEYOND = _sentences(
    "beyond-3g",
    f"{GAIN_ENDS}, mean over lengths of training beyond the shortest",
    MEAN,
    _ENDINGS,
    Arm(SPANS["3g"], *ENDINGS_PUPILS["3g"]),
)
ENDINGS_HEADS = {
    spans: _sentences(
        f"{spans}-heads-and-t80", TO_80, CORRELATION, _ENDINGS, Arm(f"GPT-2s, {SPANS[spans]}", *OF_SPANS[run])
    )
    for run, spans in list(GPT.items())[:3]
}
ENDINGS_FLAT = {
    run: _sentences(f"{spans}-at-inflection", AT_INFLECTION, MEDIAN, _ENDINGS, Arm(f"teachers, {SPANS[spans]}", run))
    for run, spans in list(GPT.items())[:2]
}
TEXT_ORDER = {
    (run, first, second): _sentences(
        f"text-{run[-1]}-{first}-{second}",
        f"{FINAL}, {LENGTHS[place]}",
        MEAN_DIFFERENCE,
        _TEXT,
        *_pair(first, second, run),
        in_common=NOTHING if second == "ce" else TEACHERS,
    )
    for place, run in enumerate(TEXT_PUPILS)
    for first, second in (("prog", "os"), ("os", "ce"))
}
TEXT_LABELS = {run: _sentences(f"text-{run[-1]}-ce", FINAL, MEAN, _TEXT, Arm(OF_LABELS, run)) for run in TEXT_PUPILS}
COMMON = DECLARED(Comparison("common", "share of the most frequent word", OWN, _TEXT, unit="word", learned=False))

# --- the theory of sparse parity, simulated ---

_TWO_STAGES = "distillation-two-stages"
REPLICA = "replica"
KS = (4, 6)  # coordinates of the support of students that go through both stages
ENDS = ("smallest", "largest")  # of the numbers of neurons


def _simulated(key: str, measure: str, statistic: str, arm: str = "", hits: tuple[Condition, ...] = ()) -> Comparison:
    arms = (Arm(arm),) if arm else ()
    return DECLARED(Comparison(key, measure, statistic, _TWO_STAGES, arms, unit=REPLICA, learned=False, hits=hits))


IN_BOUNDS = "in units of the printed 1/8k"
ALIGNED, PRINTED = "aligned start", "printed start"
ALIGNED_LEAST, ALIGNED_OUTSIDE = (
    {end: _simulated(f"{key}-{end}", measure, MEAN, f"{ALIGNED}, {end} number of neurons") for end in ENDS}
    for key, measure in (
        ("aligned-least", f"least correlation inside the support, {IN_BOUNDS}"),
        ("aligned-outside", "largest correlation outside the support over the least inside"),
    )
)
PRINTED_MEAN, PRINTED_SIGNAL = (
    _simulated(key, measure, MEAN, f"{PRINTED}, largest number of neurons")
    for key, measure in (
        ("printed-mean", f"absolute correlation inside the support, {IN_BOUNDS}"),
        ("printed-signal", "share of the output's mean square that is due to the support's coordinates"),
    )
)
PRINTED_SLOPE = _simulated(
    "printed-slope", "exponent of the number of neurons in the mean correlation inside the support", OWN, PRINTED
)
SLOPE = {
    mode: _simulated(
        f"slope-{mode}", "exponent of d in the samples at which nine of ten neurons show the support", OWN, what
    )
    for mode, what in (("aligned", "stage-one teacher"), ("labels", "labels"))
}
TARGETS_RATIO = _simulated(
    "labels-over-aligned",
    "samples from labels over samples from the stage-one teacher, at the largest d that both have",
    OWN,
)
PRINTED_TENFOLD = _simulated(
    "printed-tenfold",
    "share of neurons that show the support with ten times the samples that suffice from the aligned start",
    SHARE,
    PRINTED,
    at_least(0.9),
)
TARGETS = {
    "aligned": ("stage-one teacher", at_least(0.99)),
    "labels": ("final teacher without an error", at_most(0.55)),
    "final": ("raw outputs of a trained final teacher", at_most(0.55)),
    "iid": ("stage-one teacher from the printed start", at_least(0.99)),
}
BOTH_STAGES = {
    (target, k): _simulated(
        f"both-stages-{target}-{k}", "accuracy behind both stages", SHARE, f"students of: {what}, k = {k}", hits
    )
    for target, (what, hits) in TARGETS.items()
    for k in KS
}
SECOND_STAGE = {
    column: _simulated(f"second-stage-{column}", f"best {what} in stage two", SHARE, "networks of all sizes", hits)
    for column, what, hits in (("hinge", "hinge loss", at_most(0.01)), ("accuracy", "accuracy", at_least(1.0)))
}
