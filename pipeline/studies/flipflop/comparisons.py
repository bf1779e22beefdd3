"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

Replica r of two runs of one stream has the same initial weights where their parameters have the same shapes, and the
same data where they train on the same language for as many steps: such arms are paired, all others are independent.
"""

from __future__ import annotations

from itertools import pairwise, product

from pipeline.kit.comparisons import (
    CLAIMS,
    CORRELATION,
    MEAN,
    MEAN_DIFFERENCE,
    MEDIAN,
    OWN,
    SHARE,
    SHARE_DIFFERENCE,
    SHIFT,
    Arm,
    Comparison,
    Declared,
)
from pipeline.kit.conditions import above, at_least, at_most, below, within
from pipeline.studies.flipflop import names
from schemas.comparisons import MODELS, SEEDS

DECLARED = Declared()
RECURRENT, ERRORS, SIMULATION = "flipflop-recurrent", "flipflop-errors", "flipflop-simulation"
AUTOPSY, STORIES = "flipflop-autopsy", "flipflop-language-models"
OUT = ("sparse", "dense")  # the sets on which glitches show
KINDS = tuple(names.SHARP)
FORMS = {"linear positions": names.LINEAR_ARMS, "learned positions": names.ONE_ARMS}
RISING = {"linear positions": names.LINEAR_RISING, "learned positions": names.ONE_RISING}
BAD = 0.01  # error on the training distribution above which a minimum is bad (chapter section 6, claim 20)

CANONICAL, LSTMS = Arm("canonical models", names.BASE), Arm("LSTMs", names.LSTM)
MIDDLE = Arm("middle-sized models", names.MIDDLE)
WITHOUT, GENERATIVE = Arm("no penalty", names.BASE), Arm("models of all next tokens", names.GENERATIVE)
MIXED = Arm("the mixture, all models", names.MIXTURE)


def _slug(*parts: str) -> str:
    return "-".join(part.removeprefix("flipflop-").replace(" ", "-") for part in parts)


def _decades(name: str) -> str:
    return f"log error on the {name} set, in decades"


# --- E1: LSTMs -------------------------------------------------------------------------------------

LSTM_CLEAN = DECLARED(
    Comparison(
        "lstm-clean", "number of wrong answers on all sets", SHARE, RECURRENT, (LSTMS,), learned=False, hits=at_most(0)
    )
)
LSTM_LONG_CLEAN = DECLARED(
    Comparison(
        "lstm-long-clean",
        "number of wrong answers on all sets",
        SHARE,
        RECURRENT,
        (Arm("LSTMs of the published length and rate, where others train on shorter strings", names.LSTM_LONG),),
        learned=False,
        hits=at_most(0),
    )
)
LSTM_LONGER_CLEAN = DECLARED(
    Comparison(
        "lstm-longer-clean",
        "number of wrong answers on sets of longer strings than those of training",
        SHARE,
        RECURRENT,
        (LSTMS,),
        learned=False,
        hits=at_most(0),
    )
)

# --- E2 to E4: who errs, and how differently -------------------------------------------------------

FITTED = DECLARED(
    Comparison("fitted", "share of models that learned the training language", OWN, ERRORS, (CANONICAL,), learned=False)
)
GLITCHES = {
    run: DECLARED(
        Comparison(
            _slug("glitches", run),
            "number of wrong answers on the sparse and the dense set",
            SHARE,
            ERRORS,
            (arm,),
            hits=at_least(1),
        )
    )
    for run, arm in ((names.BASE, CANONICAL), (names.GENERATIVE, GENERATIVE), (names.MIDDLE, MIDDLE))
}
ERROR = {
    name: DECLARED(Comparison(_slug("error", name), f"error on the {name} set", MEDIAN, ERRORS, (CANONICAL,)))
    for name in OUT
}
GAP = DECLARED(Comparison("gap-dense", "error on the dense set", SHIFT, CLAIMS, (CANONICAL, LSTMS)))
SPREAD = {
    name: DECLARED(
        Comparison(
            _slug("spread", name),
            f"factor by which errors on the {name} set vary: 10 to the standard deviation of "
            "their decimal logarithms, of models that err there",
            OWN,
            ERRORS,
            (CANONICAL,),
        )
    )
    for name in OUT
}
UNSTEADY = DECLARED(
    Comparison(
        "unsteady",
        "number of sets on which the error rises again by two standard errors once it has learned",
        SHARE,
        ERRORS,
        (CANONICAL,),
        hits=at_least(1),
    )
)
ERRING = DECLARED(
    Comparison(
        "configurations", "number of models that learned and err", SHARE, ERRORS, unit="configuration", hits=at_least(1)
    )
)
SEED_RATIO = {
    seed: DECLARED(
        Comparison(
            _slug("variance", seed),
            f"unbiased variance component of {seed} seeds over that of the rest, log errors on the dense set",
            OWN,
            ERRORS,
            (Arm("initial weights that learned with every order of data", names.FACTORIAL),),
            unit=f"{seed} seed",
        )
    )
    for seed in ("data", "model")
}

# --- loss on all tokens ----------------------------------------------------------------------------

EXCESS = DECLARED(
    Comparison(
        "generative-excess",
        "cross-entropy on held-out strings less its least possible value, as a share of that",
        MEAN,
        ERRORS,
        (GENERATIVE,),
        learned=False,
    )
)
GENERATIVE_ERROR = DECLARED(
    Comparison("generative-error", "error on the training language", MEDIAN, ERRORS, (GENERATIVE,), learned=False)
)

# --- E5 to E12: what changes errors ----------------------------------------------------------------

# Both sets are of languages that the mixture trains on: there its models all count, those of one language if they
# learned that.
REMOVED = {
    name: DECLARED(
        Comparison(
            _slug("mixture", name),
            _decades(name),
            SHIFT,
            ERRORS,
            (MIXED, Arm("one language for as many steps", names.BASE, names.FRESH)),
        )
    )
    for name in OUT
}
MIXTURE_CLEAN = DECLARED(
    Comparison(
        "mixture-clean",
        "number of wrong answers on the sets of its languages",
        SHARE,
        ERRORS,
        (MIXED,),
        learned=False,
        hits=at_most(0),
    )
)
MIXTURE_LEAD = DECLARED(
    Comparison(
        "mixture-lead",
        "share of models without an error on the sparse and the dense set, less that of the family of "
        "other configurations in which it is largest",
        OWN,
        ERRORS,
        (MIXED,),
        learned=False,
    )
)
AMOUNTS = {names.FRESH_10: "ten times the data", names.EPOCHS_10: "ten epochs"}
MORE = {
    (run, name, beside): DECLARED(
        Comparison(
            _slug(run, name, beside),
            _decades(name),
            SHIFT,
            ERRORS,
            (Arm(what, run), MIXED if beside == "mixture" else CANONICAL),
        )
    )
    for (run, what), name, beside in product(AMOUNTS.items(), OUT, ("base", "mixture"))
}
SIZE = {
    (name, field): DECLARED(
        Comparison(
            _slug("size", name, field),
            f"the log error on the {name} set with {what}, everything else the same",
            CORRELATION,
            ERRORS,
            (Arm("", names.BASE, *runs),),
        )
    )
    for name, (field, (what, runs)) in product(OUT, names.SIZES.items())
}
DROPPED = DECLARED(
    Comparison(
        "dropout-sparse",
        _decades("sparse"),
        SHIFT,
        ERRORS,
        (Arm("embedding dropout of one half", names.EMBED_HALF), CANONICAL),
        SEEDS,
    )
)
DROPPED_CLEAN = DECLARED(
    Comparison(
        "dropout-clean",
        "number of wrong answers on the sparse set",
        SHARE,
        ERRORS,
        (Arm("embedding dropout of one half", names.EMBED_HALF),),
        hits=at_most(0),
    )
)
FIXED = (names.SINE, names.ALIBI, names.NO_POSITIONS)
POSITIONS = {
    gate: DECLARED(
        Comparison(
            _slug("positions", gate),
            "error on the dense set",
            SHIFT,
            ERRORS,
            (Arm("learned positions", names.BASE), Arm(what, *runs)),
        )
    )
    for gate, what, runs in (
        ("sinusoidal", "sine codes", (names.SINE,)),
        (
            "best of three",
            "of sine codes, linear biases and none what errs least in half of the models, in the other half",
            FIXED,
        ),
    )
}
PENALISED = {
    (kind, name): DECLARED(
        Comparison(
            _slug("penalty", kind, name), _decades(name), SHIFT, ERRORS, (Arm(f"{kind} penalty", run), WITHOUT), SEEDS
        )
    )
    for (kind, run), name in product(names.SHARP.items(), OUT)
}
BEST_PENALTY = DECLARED(
    Comparison(
        "penalty-best-sparse",
        _decades("sparse"),
        SHIFT,
        ERRORS,
        (Arm("the penalty that errs least in half of the models, in the other half", *names.SHARP.values()), WITHOUT),
        SEEDS,
    )
)
SHARPER = {
    kind: DECLARED(
        Comparison(
            _slug("sharper", kind),
            "largest weight of attention, in models that read strings",
            MEAN_DIFFERENCE,
            ERRORS,
            (Arm(f"{kind} penalty", run), WITHOUT),
            SEEDS,
        )
    )
    for kind, run in names.SHARP.items()
}
ALL_SHARPER = DECLARED(
    Comparison(
        "sharper-all",
        "mean rise of the largest weight of attention",
        SHARE,
        ERRORS,
        (Arm("penalties from 0.1 on, models that read strings", *names.SHARP.values()),),
        unit="setting",
        hits=above(0.0),
    )
)
OPTIMISED = DECLARED(
    Comparison(
        "optimiser",
        "largest change of the median log error, in decades",
        SHARE,
        ERRORS,
        (Arm("optimisers with which most models learn", *names.OPTIMISERS),),
        unit="setting",
        hits=below(0.5),
    )
)

# --- middle-sized models, on strings long enough for errors on sparse ones -------------------------

MIDDLE_FITTED = DECLARED(
    Comparison(
        "fitted-middle", "share of models that learned the training language", OWN, ERRORS, (MIDDLE,), learned=False
    )
)
MIDDLE_ERROR = {
    name: DECLARED(Comparison(_slug("error-middle", name), f"error on the {name} set", MEDIAN, ERRORS, (MIDDLE,)))
    for name in OUT
}
MIDDLE_CHANGED = {
    (run, name): DECLARED(Comparison(_slug(run, name), _decades(name), SHIFT, ERRORS, (Arm(what, run), MIDDLE)))
    for run, what, name in (
        (names.MIDDLE_MIXTURE, "middle-sized models of the mixture", "sparse"),
        (names.MIDDLE_MIXTURE, "middle-sized models of the mixture", "dense"),
        (names.MIDDLE_SINE, "middle-sized models with sine codes", "dense"),
        (names.MIDDLE_EMBED_HALF, "middle-sized models with embedding dropout of one half", "sparse"),
        (names.MIDDLE_SHARP, "middle-sized models with the entropy penalty", "sparse"),
    )
}

# --- E13 to E15: the automaton ---------------------------------------------------------------------

# What a penalty does to models that learn: one that rises while they train. Bad minima: of one that is there from the
# start.
WEIGHTS, RARE_ERROR, MINIMA = (
    {(form, kind): DECLARED(make(form, kind)) for form, kind in product(FORMS, KINDS)}
    for make in (
        lambda form, kind: Comparison(
            _slug("weights", form, kind),
            f"largest weight of attention, {form}",
            MEAN_DIFFERENCE,
            SIMULATION,
            (Arm(f"{kind} penalty", RISING[form][kind]), Arm("no penalty", FORMS[form]["0.5"][0])),
            SEEDS,
        ),
        lambda form, kind: Comparison(
            _slug("rare", form, kind),
            f"error at 98 % of no-ops, {form}",
            MEAN_DIFFERENCE,
            SIMULATION,
            (Arm("no penalty", FORMS[form]["0.5"][0]), Arm(f"{kind} penalty", RISING[form][kind])),
            SEEDS,
        ),
        lambda form, kind: Comparison(
            _slug("minima", form, kind),
            f"error on inputs as in training, {form} and the {kind} penalty,",
            SHARE_DIFFERENCE,
            SIMULATION,
            (
                Arm("half of no-ops in training", FORMS[form]["0.5"][1][kind]),
                Arm("nine tenths", FORMS[form]["0.9"][1][kind]),
            ),
            learned=False,
            hits=above(BAD),
        ),
    )
)
PERSISTS = DECLARED(
    Comparison(
        "persists",
        "largest error at 98 % of no-ops, at either length,",
        SHARE,
        SIMULATION,
        (Arm("linear positions, entropy penalty", names.LINEAR_SHARP),),
        hits=above(0.0),
    )
)
LEAVES = DECLARED(
    Comparison(
        "drift-leaves",
        "share of models whose last query looks most elsewhere than at the last write",
        OWN,
        SIMULATION,
        (Arm("linear positions, no penalty", names.LINEAR),),
    )
)
LINEAR_RUNS = [
    *(run for plain, sharp in names.LINEAR_ARMS.values() for run in (plain, *sharp.values())),
    *names.LINEAR_RISING.values(),
]
# Runs of one seed have the same initial weights, so that a seed counts once, with all its models.
FORETOLD = DECLARED(
    Comparison(
        "drift-foretold",
        "share of seeds of whose models, with every penalty, attention leaves the write exactly "
        "where their weights predict it",
        OWN,
        SIMULATION,
        (Arm("linear positions", *LINEAR_RUNS),),
        unit="seed",
        learned=False,
    )
)
VALUED = DECLARED(
    Comparison(
        "valued",
        "share of rightly answered no-ops whose largest weight is on a write of the right value",
        MEAN_DIFFERENCE,
        SIMULATION,
        (Arm("weighted by values", names.ONE), Arm("raw weights", names.ONE)),
        MODELS,
    )
)
SEVERAL = Arm("no penalty", names.MANY)
ALL_LAYERS, FIRST_LAYER = (
    Arm("entropy penalty", names.MANY_SHARP),
    Arm("penalty on the first layer", names.MANY_FIRST),
)
SPARSER = DECLARED(
    Comparison(
        "many-sparser",
        "largest weight of attention, several layers",
        MEAN_DIFFERENCE,
        SIMULATION,
        (ALL_LAYERS, SEVERAL),
        SEEDS,
    )
)
LATER = DECLARED(
    Comparison(
        "many-later",
        "largest weight of attention of later layers",
        MEAN_DIFFERENCE,
        SIMULATION,
        (FIRST_LAYER, SEVERAL),
        SEEDS,
    )
)
IDEAL = DECLARED(
    Comparison(
        "many-ideal",
        "number of heads of the first layer that look at the last write from all no-ops of the probe",
        SHARE,
        SIMULATION,
        (ALL_LAYERS,),
        hits=within(1, 0),
    )
)
NORMS = {
    run: DECLARED(
        Comparison(
            _slug("norms", run),
            "log norm of the matrices, several layers",
            MEAN_DIFFERENCE,
            SIMULATION,
            (arm, SEVERAL),
            SEEDS,
        )
    )
    for run, arm in ((names.MANY_SHARP, ALL_LAYERS), (names.MANY_FIRST, FIRST_LAYER))
}

# --- autopsies, our own ----------------------------------------------------------------------------

WRONG, RIGHT = Arm("wrong answers", names.BASE), Arm("right ones", names.BASE)
MENDED, KEPT, VOTES, ON_WRITE = (
    {name: DECLARED(make(name)) for name in OUT}
    for make in (
        lambda name: Comparison(
            _slug("mended", name),
            f"share of wrong answers on the {name} set that are right once all attention of the "
            "last layer is on the last write",
            MEAN,
            AUTOPSY,
            (CANONICAL,),
            span=(0, 1),
        ),
        lambda name: Comparison(
            _slug("kept", name),
            f"share of right answers on the {name} set that stay right once all attention of the "
            "last layer is on the last write",
            MEAN,
            AUTOPSY,
            (CANONICAL,),
            span=(0, 1),
        ),
        lambda name: Comparison(
            _slug("votes", name),
            f"share of reads of the {name} set at which weights times lengths of values of the "
            "last layer add up to more for the wrong bit",
            MEAN_DIFFERENCE,
            AUTOPSY,
            (WRONG, RIGHT),
            MODELS,
            span=(-1, 1),
        ),
        lambda name: Comparison(
            _slug("on-write", name),
            f"weight of the last layer on the last write, reads of the {name} set",
            MEAN_DIFFERENCE,
            AUTOPSY,
            (WRONG, RIGHT),
            MODELS,
            span=(-1, 1),
        ),
    )
)

# --- E16: stories ----------------------------------------------------------------------------------

STORY_LENGTH = {
    run: DECLARED(
        Comparison(
            _slug("length", run),
            f"accuracy of stand-ins, {label}",
            MEAN_DIFFERENCE,
            STORIES,
            (Arm("longest strings", run), Arm("shortest", run)),
            MODELS,
        )
    )
    for run, label in names.STANDINS.items()
}
STORY_SIZE = {
    (small, large): DECLARED(
        Comparison(
            _slug("size", large),
            "accuracy of stand-ins over all lengths",
            MEAN_DIFFERENCE,
            STORIES,
            (Arm(names.STANDINS[large], large), Arm(names.STANDINS[small], small)),
        )
    )
    for small, large in pairwise(names.STANDINS)
}
PRETRAINED_LENGTH, PRETRAINED_SIZE = (
    DECLARED(
        Comparison(
            _slug(names.PRETRAINED, key),
            measure,
            SHARE,
            STORIES,
            (Arm("pretrained models", elsewhere=True),),
            hits=hits,
            learned=False,
        )
    )
    for key, measure, hits in (
        ("length", "accuracy at the longest strings less that at the shortest", at_most(0.0)),
        ("size", "accuracy less that of the next smaller model", at_least(0.0)),
    )
)
