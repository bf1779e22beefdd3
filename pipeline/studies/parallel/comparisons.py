"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

A unit is a sample of the target, to which all numbers of masked positions are fitted, or a run of a sampler.
"""

from __future__ import annotations

from itertools import pairwise

from pipeline.kit.comparisons import MEAN, MEAN_DIFFERENCE, SHARE, Arm, Comparison, Declared
from pipeline.kit.conditions import above, at_least
from pipeline.studies.parallel import translation_comparisons
from pipeline.studies.parallel.names import FITS, FLAT, HITTING, LEARNING, MASKED, MASKING, MODES, SIZES
from schemas.comparisons import MODELS, SEEDS
from schemas.parallel.tables import ALIGNED, ALL, MISALIGNED, PAIRS, SINGLES

DECLARED = Declared()
SAMPLE, GROUP, RUN = "sample", "ten-sample group", "run"
STEPS = list(pairwise(SIZES))  # of k: 1 and 2, 2 and 3, 3 and 4
NAMES = {FLAT: "J = 0.05", MODES: "J = 0.3"}
LEAST = 1000  # samples from which the order of errors is judged
STRONG = 6.0  # coupling from which masks smaller than the clique are stuck
MASKS = ("k = 1", "k = 2", "k = 4", "k > 4")

ORDER = {
    (target, k): DECLARED(
        Comparison(
            f"order-{target}-{k}",
            f"n times the squared error, mean over n of {LEAST} and more, {name}",
            MEAN_DIFFERENCE,
            MASKING,
            (Arm(f"k = {k}"), Arm(f"k = {more}")),
            in_common=SEEDS,
            unit=SAMPLE,
        )
    )
    for target, name in NAMES.items()
    for k, more in STEPS
}
PUBLISHED = {
    (target, k): DECLARED(
        Comparison(
            f"published-{target}-{k}",
            f"n times the squared error by gradient descent, mean over n of {LEAST} and more, {name}",
            MEAN_DIFFERENCE,
            MASKING,
            (Arm(f"k = {k}", FITS[target, k]), Arm(f"k = {more}", FITS[target, more])),
            in_common=SEEDS,
            unit=SAMPLE,
            learned=False,
        )
    )
    for target, name in NAMES.items()
    for k, more in STEPS
}
# The same ten samples for both k, and others: the order is much surer where the samples are the same.
TOGETHER, APART = "the same samples", "other samples"
TEN = {
    (target, k, which): DECLARED(
        Comparison(
            f"ten-{target}-{k}-{which.split()[-2]}",
            f"mean squared error with k = {k} minus that with k = {more}, {which}, largest n, {name},",
            SHARE,
            MASKING,
            unit=GROUP,
            hits=above(0.0),
            span=(0.0, 1.0),
        )
    )
    for target, name in NAMES.items()
    for k, more in STEPS
    for which in (TOGETHER, APART)
}
# Whether sharing samples is what tells the last two: by group, of ten samples each
SURER = {
    target: DECLARED(
        Comparison(
            f"ten-{target}-surer",
            f"share of right rankings of k = {STEPS[-1][0]} and {STEPS[-1][1]} by ten samples, largest n, {name}",
            MEAN_DIFFERENCE,
            MASKING,
            (Arm(TOGETHER), Arm(APART)),
            in_common=SEEDS,
            unit=GROUP,
            span=(-1.0, 1.0),
        )
    )
    for target, name in NAMES.items()
}
ARRIVES = {
    J: DECLARED(
        Comparison(
            f"independent-{J:g}",
            f"number of arrivals at R_1 within the budget, independent parallel sampling, J = {J:g},",
            SHARE,
            HITTING,
            unit=RUN,
            hits=at_least(1),
            span=(0.0, 1.0),
        )
    )
    for J in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
}
REACHES = {
    masks: DECLARED(
        Comparison(
            f"gibbs-{masks.replace(' ', '').replace('=', '').replace('>', 'above')}",
            f"number of arrivals at R_1 within the budget, k-Gibbs with {masks}, J >= {STRONG:g},",
            SHARE,
            HITTING,
            unit=RUN,
            hits=at_least(1),
            span=(0.0, 1.0),
        )
    )
    for masks in MASKS
}

# Beyond the source: masked Transformers. A unit is a repetition, with a sample and initial weights for each law: all
# that is said of it is a mean, or a correlation, over laws.
REPETITION = "repetition"
TRAINED = tuple(MASKED.values())
EQUAL_STATES, EQUAL_PREDICTIONS = "equal states", "equal predictions"
ALL_LAWS, COUPLED_PAIRS = "all laws", "two coupled pairs"
STRONG_PAIR = 1.0  # coupling within pairs that divides the weak from the strong


def _worse(key: str, first: str, second: str, laws: str, budget: str) -> Comparison:
    return DECLARED(
        Comparison(
            f"learning-{key}",
            f"logarithm of the Transformer's divergence from the law, mean over {laws}, {budget}",
            MEAN_DIFFERENCE,
            LEARNING,
            (Arm(first, *TRAINED), Arm(second, *TRAINED)),
            in_common=SEEDS,
            unit=REPETITION,
            learned=False,
        )
    )


# The same number of masked positions: masking more says nothing of these
SAME_SIZE = {
    (MISALIGNED, ALIGNED): _worse("misaligned-aligned", MISALIGNED, ALIGNED, COUPLED_PAIRS, EQUAL_STATES),
    (MISALIGNED, PAIRS): _worse("misaligned-pairs", MISALIGNED, PAIRS, COUPLED_PAIRS, EQUAL_STATES),
    (PAIRS, ALIGNED): _worse("pairs-aligned", PAIRS, ALIGNED, COUPLED_PAIRS, EQUAL_STATES),
}
WEAK, COUPLED = "J_in < 1", "J_in >= 1"
BY_COUPLING = {
    which: _worse(f"misaligned-aligned-{key}", MISALIGNED, ALIGNED, f"{COUPLED_PAIRS}, {which}", EQUAL_STATES)
    for which, key in ((WEAK, "weak"), (COUPLED, "strong"))
}
MORE = {
    (SINGLES, PAIRS): _worse("singles-pairs", SINGLES, PAIRS, ALL_LAWS, EQUAL_STATES),
    (PAIRS, ALL): _worse("pairs-all", PAIRS, ALL, ALL_LAWS, EQUAL_STATES),
}
AS_MANY = {
    (SINGLES, PAIRS): _worse("singles-pairs-predictions", SINGLES, PAIRS, ALL_LAWS, EQUAL_PREDICTIONS),
    (PAIRS, ALL): _worse("pairs-all-predictions", PAIRS, ALL, ALL_LAWS, EQUAL_PREDICTIONS),
}
# What may predict the order: logarithms, less their mean over the sets of masks of a law
CONSTANT, OVER_MODES, TRACE, ALONE = (
    *("Poincaré constant", "sum over all modes"),
    *("trace of the Ising model's covariance", "constant of independent spins, N / k"),
)
ONLY_PAIRS, EVERY = "sets of pairs", "all sets of masks"
FOLLOWS = {
    (predictor, sets): DECLARED(
        Comparison(
            f"follows-{key}",
            f"correlation within laws of the logarithms of divergence and {predictor}, {sets}",
            MEAN,
            LEARNING,
            (Arm("", *TRAINED),),
            unit=REPETITION,
            learned=False,
            span=(-1.0, 1.0),
        )
    )
    for predictor, sets, key in (
        (CONSTANT, ONLY_PAIRS, "constant-pairs"),
        (CONSTANT, EVERY, "constant-all"),
        (OVER_MODES, ONLY_PAIRS, "modes-pairs"),
    )
}
AHEAD = {
    (first, second, sets): DECLARED(
        Comparison(
            f"ahead-{key}",
            f"correlation within laws of the logarithms of divergence and what predicts it, {sets}",
            MEAN_DIFFERENCE,
            LEARNING,
            (Arm(first, *TRAINED), Arm(second, *TRAINED)),
            in_common=MODELS,
            unit=REPETITION,
            learned=False,
        )
    )
    for first, second, sets, key in (
        (CONSTANT, ALONE, EVERY, "constant-alone"),
        (CONSTANT, TRACE, ONLY_PAIRS, "constant-trace"),
        (OVER_MODES, CONSTANT, EVERY, "modes-constant"),
    )
}
# Asymptotics speak of samples in which whatever masks can leave is seen. As is usual for counts, that is asked for by
# an expected count. Where all positions are masked there is one context and nothing to mix: those cells are left out.
SEEN_OFTEN = 5.0
SHOWN = "all laws", "where each context is expected five times and more"
WHOLE, SEEN = SHOWN
_RATIO = "2 n times the divergence over the sum over all modes"


def _expected(key: str, measure: str, cells: str) -> Comparison:
    return DECLARED(
        Comparison(
            f"learning-{key}",
            f"{measure}, mean over laws and sets of masks that leave a context, {cells}, {EQUAL_STATES}",
            MEAN,
            LEARNING,
            (Arm("", *TRAINED),),
            unit=REPETITION,
            learned=False,
        )
    )


EXPECTED, SLOWEST = (
    {cells: _expected(f"{key}-{'all' if cells == WHOLE else 'seen'}", measure, cells) for cells in SHOWN}
    for key, measure in (
        ("expected", _RATIO),
        ("slowest", "n times the squared error along the slowest mode over the Poincaré constant"),
    )
)
# A mean may hide cells that cancel: the same for the cells that mix faster than the median one, and for the others
FASTER, SLOWER = "faster half by C", "slower half by C"
HALVES = {half: _expected(f"expected-{half.split()[0]}", _RATIO, f"{SEEN}, {half}") for half in (FASTER, SLOWER)}
UNTRAINED = DECLARED(
    Comparison(
        "learning-untrained",
        "divergence before training over that after it",
        SHARE,
        LEARNING,
        (Arm("", *TRAINED),),
        learned=False,
        hits=at_least(10.0),
        span=(0.0, 1.0),
    )
)
for _each in translation_comparisons.ALL:
    DECLARED(_each)
