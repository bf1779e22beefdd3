"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

A unit is a sample of the target, to which all numbers of masked positions are fitted, or a run of a sampler.
"""

from __future__ import annotations

from itertools import pairwise

from pipeline.kit.comparisons import MEAN_DIFFERENCE, SHARE, Arm, Comparison, Declared
from pipeline.kit.conditions import above, at_least
from pipeline.studies.parallel import translation_comparisons
from pipeline.studies.parallel.names import FITS, FLAT, HITTING, MASKING, MODES, SIZES
from schemas.comparisons import SEEDS

DECLARED = Declared()
SAMPLE, GROUP, RUN = "sample", "group of ten samples", "run"
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
for _each in translation_comparisons.ALL:
    DECLARED(_each)
