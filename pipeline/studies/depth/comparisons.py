"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`), all at the chosen rates.

None is of paired arms but the two that share their start and data: attention that is frozen, and Adam. Layers and heads
change what is drawn, so that replica r of two such runs starts from other weights.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.kit.comparisons import CORRELATION, MEDIAN, OWN, RATIO, SHARE, SHIFT, Arm, Comparison, Declared
from pipeline.kit.conditions import at_least
from pipeline.studies.depth.names import (
    CONTEXT,
    CONTEXTUAL,
    CONTEXTUAL_ADAM,
    CONTEXTUAL_PUBLISHED,
    EXAMPLES,
    FROZEN,
    GENERALIZATION,
    HEADS,
    JUDGED,
    MEMORIZATION,
    ONE_HEAD,
    ONE_LAYER,
    OUTPUTS,
    REASONING,
    SIZES,
    TWO_LAYERS_HEADS,
)
from schemas.comparisons import MODELS, NOTHING, SEEDS

DECLARED = Declared()
EXP_1, CONTROLS, SETTINGS = "depth-exp-1", "depth-controls", "depth-settings"
EXP_2, EXP_3 = "depth-exp-2", "depth-exp-3"
LEARNED, LEARNED_IN_CONTEXT = 0.99, 0.95  # accuracies from which claims 1 to 4 call a task learned
STEPS = "steps to 95% (never: one more than training has)"

# How accurate the models of a run end, whether they learned or not: by run, split and what the largest score is of.
_MANY = "accuracy on more training sequences than the width"
_UNSEEN = "accuracy on unseen combinations of tokens"
_FRESH = "accuracy on fresh contexts"
_PICKED = "accuracy among the context's answers"
_ENDINGS = [
    (MEMORIZATION[1], "train", OUTPUTS, EXP_1, "accuracy on the training sequences", "one layer"),
    (
        FROZEN[MEMORIZATION[1]],
        "train",
        OUTPUTS,
        EXP_1,
        "accuracy on the training sequences",
        "one layer with attention frozen at its start",
    ),
    (SIZES, "train", OUTPUTS, CONTROLS, _MANY, "one layer"),
    (FROZEN[SIZES], "train", OUTPUTS, CONTROLS, _MANY, "one layer with attention frozen at its start"),
    (REASONING[2], JUDGED["ic_qa"], OUTPUTS, EXP_1, "accuracy on fresh questions", "two layers"),
    (ONE_LAYER["ic_qa"], JUDGED["ic_qa"], CONTEXT, CONTROLS, _PICKED, "one layer on reasoning, uniform start"),
    (GENERALIZATION[2], JUDGED["tm"], OUTPUTS, EXP_1, _UNSEEN, "two layers"),
    (
        GENERALIZATION[2],
        "unseen_repetition",
        OUTPUTS,
        EXP_1,
        "accuracy on AAA of tokens seen in other templates alone",
        "two layers",
    ),
    (GENERALIZATION[2], "unseen_token", OUTPUTS, EXP_1, "accuracy on tokens that training never showed", "two layers"),
    (ONE_LAYER["tm"], JUDGED["tm"], OUTPUTS, CONTROLS, _UNSEEN, "one layer, uniform start"),
    (CONTEXTUAL[3], JUDGED["ic_tm"], OUTPUTS, EXP_1, _FRESH, "three layers from a classifier that starts small"),
    (CONTEXTUAL[2], JUDGED["ic_tm"], CONTEXT, EXP_1, _PICKED, "two layers from a classifier that starts small"),
    (CONTEXTUAL_PUBLISHED[3], JUDGED["ic_tm"], OUTPUTS, SETTINGS, _FRESH, "three layers from the published start"),
    (CONTEXTUAL_PUBLISHED[2], JUDGED["ic_tm"], CONTEXT, SETTINGS, _PICKED, "two layers from the published start"),
    (TWO_LAYERS_HEADS, JUDGED["ic_tm"], CONTEXT, SETTINGS, _PICKED, "two layers with 2l heads in the last"),
    (
        ONE_LAYER["ic_tm"],
        JUDGED["ic_tm"],
        CONTEXT,
        CONTROLS,
        _PICKED,
        "one layer on contextual generalization, uniform start",
    ),
]
ENDED = {
    (run, split, among): DECLARED(
        Comparison(
            f"ended-{run}-{split}-{among}".replace("_", "-"),
            measure,
            MEDIAN,
            experiment,
            (Arm(arm, run),),
            learned=False,
            span=(0.0, 1.0),
        )
    )
    for run, split, among, experiment, measure, arm in _ENDINGS
}


def _solved(run: str, task: str, bar: float) -> Comparison:
    """Declare how many starts of a run solve the task. A model that diverged has not."""
    ended = ENDED[run, JUDGED[task], OUTPUTS]
    return DECLARED(replace(ended, key=f"solved-{run}", statistic=SHARE, hits=at_least(bar)))


SOLVED = {
    REASONING[2]: _solved(REASONING[2], "ic_qa", LEARNED),
    GENERALIZATION[2]: _solved(GENERALIZATION[2], "tm", LEARNED),
    CONTEXTUAL[3]: _solved(CONTEXTUAL[3], "ic_tm", LEARNED_IN_CONTEXT),
    CONTEXTUAL_PUBLISHED[3]: _solved(CONTEXTUAL_PUBLISHED[3], "ic_tm", LEARNED_IN_CONTEXT),
}

# Steps to 95%. All models count: one that never gets there is later than any that does.
FROZEN_STEPS = {
    trained: DECLARED(
        Comparison(
            f"steps-{frozen}",
            f"{STEPS}{where}",
            RATIO,
            experiment,
            (Arm("attention that learns", trained), Arm("attention frozen at its start", frozen)),
            in_common=SEEDS,
            learned=False,
        )
    )
    for (trained, frozen), experiment, where in zip(
        FROZEN.items(), (EXP_1, CONTROLS), ("", " on more training sequences than the width"), strict=True
    )
}


def _sooner(key: str, first: tuple[str, str], second: tuple[str, str], in_common: str = NOTHING) -> Comparison:
    """Declare how many steps the first (words, run) takes to 95% over those of the second."""
    arms = (Arm(*first), Arm(*second))
    return DECLARED(Comparison(key, STEPS, RATIO, EXP_3, arms, in_common=in_common, learned=False))


# Figure 7.
FOUR_LAYERS = _sooner(
    "four-layers", ("four layers", CONTEXTUAL[4]), ("three layers, contextual generalization", CONTEXTUAL[3])
)
FOUR_LAYERS_PUBLISHED = _sooner(
    "four-layers-published",
    ("four layers", CONTEXTUAL_PUBLISHED[4]),
    ("three layers, published start", CONTEXTUAL_PUBLISHED[3]),
)
ADAM = _sooner(
    "adam",
    ("three layers with Adam", CONTEXTUAL_ADAM[3]),
    ("three layers with SGD, contextual generalization", CONTEXTUAL[3]),
    SEEDS,
)
MORE_HEADS = {
    (k, heads): _sooner(
        f"heads-k{k}-{heads.replace(', ', '')}", (f"heads {heads}", run), (f"heads 1, 1, 1, k = {k}", runs["1, 1, 1"])
    )
    for k, runs in EXAMPLES.items()
    for heads, run in runs.items()
    if heads != "1, 1, 1"
}

# Figures 4 to 6.
_BY_HEADS = Arm("one layer", *HEADS["sc"].values())
HEADS_STEPS = DECLARED(Comparison("heads-steps", f"heads and {STEPS}", CORRELATION, EXP_2, (_BY_HEADS,), learned=False))
HEADS_P = DECLARED(
    Comparison(
        "heads-p",
        "p-value of the rank correlation of heads and steps to 95%, 1 where steps do not fall with heads",
        OWN,
        EXP_2,
        (_BY_HEADS,),
        learned=False,
    )
)
HEADS_ACCURACY = {
    (task, heads): DECLARED(
        Comparison(
            f"heads-{task}-{heads.replace(', ', '')}".replace("_", "-"),
            f"final accuracy on {words}",
            SHIFT,
            EXP_2,
            (Arm(f"heads {heads}", run), Arm(f"heads {ONE_HEAD}", HEADS[task][ONE_HEAD])),
            learned=False,
        )
    )
    for task, words in (("ic_qa", "reasoning"), ("tm", "generalization"))
    for heads, run in HEADS[task].items()
    if heads != ONE_HEAD
}

# Section 6.2, of models that solve their task.
RIGHT_PAIR = DECLARED(
    Comparison(
        "right-pair",
        "share of fresh questions whose largest key in layer 2, its own pair aside, lies in the right pair",
        MEDIAN,
        EXP_1,
        (Arm("two layers", REASONING[2]),),
        span=(0.0, 1.0),
    )
)
LIKENESS = {
    layer: DECLARED(
        Comparison(
            f"likeness-{layer}",
            f"cosine of attention in layer {layer} with the construction on templates",
            SHIFT,
            EXP_1,
            (Arm("trained", GENERALIZATION[2]), Arm("at the start", GENERALIZATION[2])),
            in_common=MODELS,
        )
    )
    for layer in (1, 2)
}
