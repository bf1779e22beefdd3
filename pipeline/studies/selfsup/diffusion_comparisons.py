"""The comparisons of the experiments on diffusions (section 2.1), which `comparisons` declares.

The unit of most is a trajectory. Trajectories of one number are the same for every law of noise, every interval and
every sample size (shorter ones begin longer ones), and so are the labels of their pairs: arms are paired by them.
Errors of different trajectories differ by factors, so that laws of noise are compared by geometric means.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from pipeline.kit import comparisons
from pipeline.kit.comparisons import MEAN, MEDIAN, OWN, RATIO, Arm
from pipeline.studies.selfsup.names import CLOSENESS, KERNELS, LOGCOSH_RUNS, NETWORK, SPAN
from schemas.comparisons import NOTHING, SEEDS

TRAJECTORY, INDEPENDENT = "trajectory", "independent"
GEOMETRIC, QUOTIENT = "geometric mean of", "the first over the second"
Comparison = partial(comparisons.Comparison, unit=TRAJECTORY, learned=False)

# E2. The noise that has the law of the process, and the others by the distance of their mean from it
STATIONARY = "N(0, 1)"
SHIFTS = (0, 1, 2, 3)
QUANTITIES = {"kl": "KL(p* | p)", "exc": "excess risk", "l1": "L1 error"}
RATES = {
    name: Comparison(f"rate-{name}", f"slope of log {words} against log m, q = {STATIONARY}", MEAN, KERNELS)
    for name, words in QUANTITIES.items()
}
NEIGHBOURS = {
    (far, near): Comparison(
        f"kl-shift-{far}-over-{near}",
        f"{GEOMETRIC} KL(p* | p) at the largest m, {QUOTIENT}",
        OWN,
        KERNELS,
        (Arm(f"q = N({far}, 1)"), Arm(f"q = N({near}, 1)")),
        SEEDS,
    )
    for near, far in pairwise(SHIFTS)
}
ENDS = {
    name: Comparison(
        f"{name}-shift-{SHIFTS[-1]}-over-0",
        f"{GEOMETRIC} {QUANTITIES[name]} at the largest m, {QUOTIENT}",
        OWN,
        KERNELS,
        (Arm(f"q = N({SHIFTS[-1]}, 1)"), Arm(f"q = {STATIONARY}")),
        SEEDS,
    )
    for name in ("kl", "exc")
}
SLOPE_SIZES = (8000, 32000)
SLOPE_ERROR = {
    m: Comparison(f"slope-error-{m}", f"error of the slope of E[z' | z], q = {STATIONARY}, m = {m}", MEDIAN, KERNELS)
    for m in SLOPE_SIZES
}

# E3
FINE, COARSE, DRIFT_SPAN = 0.0625, 0.5, 8000.0
DRIFT = Comparison(
    "drift-fine-over-coarse",
    f"error of the drift at T = {DRIFT_SPAN:g}",
    RATIO,
    SPAN,
    (Arm(f"eta = {FINE:g}"), Arm(f"eta = {COARSE:g}")),
    SEEDS,
)
DRIFT_CONTROL = Comparison(
    "drift-fine-over-coarse-independent",
    f"error of the drift by independent pairs, as many as at T = {DRIFT_SPAN:g}",
    RATIO,
    SPAN,
    (Arm(f"eta = {FINE:g}"), Arm(f"eta = {COARSE:g}")),
)

# E4
GAP_ETAS = (0.0625, 0.25, 1.0)
GAP_SPANS = (100.0, 400.0, 1600.0, 6400.0)
GAP_RATE = {
    eta: Comparison(f"gap-rate-{eta:g}", f"slope of log mean Phi against log T, eta = {eta:g}", OWN, SPAN)
    for eta in GAP_ETAS
}
_WIDEST = tuple(Arm(f"eta = {eta:g}") for eta in (GAP_ETAS[-1], GAP_ETAS[0]))


def _quotients(key: str, measure: str, in_common: str) -> dict[float, comparisons.Comparison]:
    """Declare a quotient of mean Phi of two intervals at every time span, which texts name as ``{span}``."""
    return {
        span: Comparison(
            key.format(span=f"{span:g}"),
            f"{measure.format(span=f'{span:g}')}, the first over the second",
            OWN,
            SPAN,
            _WIDEST,
            in_common,
        )
        for span in GAP_SPANS
    }


GAP_RATIO = _quotients("gap-ratio-{span}", "mean Phi at T = {span}", SEEDS)
GAP_APART = _quotients(
    "gap-ratio-{span}-independent", "mean Phi of independent pairs, as many as at T = {span}", NOTHING
)
# At each T the quotient of means over trajectories, over all T its geometric mean.
DEPENDENCE = {
    eta: Comparison(
        f"gap-dependence-{eta:g}",
        f"mean Phi at eta = {eta:g}, the first over the second, over time spans",
        OWN,
        SPAN,
        (Arm("pairs of a trajectory"), Arm("as many independent pairs")),
        SEEDS,
    )
    for eta in GAP_ETAS
}
MORE_DEPENDENT = Comparison(
    "gap-dependence-fine-over-coarse",
    "mean Phi of pairs of a trajectory over that of independent ones, over time spans: the first over the second",
    OWN,
    SPAN,
    (Arm(f"eta = {GAP_ETAS[0]:g}"), Arm(f"eta = {GAP_ETAS[-1]:g}")),
    SEEDS,
)
COMPLEXITY_RATE = Comparison(
    "complexity-rate", "slope of log empirical Rademacher complexity against log m, eta = 1", OWN, SPAN
)

# E5: models of one seed learn from one trajectory, from weights that are the same at the start
Models = partial(comparisons.Comparison, unit=comparisons.MODEL, learned=False)
EULER_SIZES = {m: run for m, run in LOGCOSH_RUNS.items() if m <= 64000}
ENOUGH = 4000  # pairs, from which on a network is asked to be better
AGAINST_EULER = {
    m: Models(f"euler-{m}", f"KL(p* | p) over that of Euler's kernel, m = {m}", MEDIAN, NETWORK, (Arm("", run),))
    for m, run in EULER_SIZES.items()
}
# The control: a classifier whose kernels are normal, with a mean that is linear in z
AGAINST_QUADRATIC = {
    m: Models(
        f"network-over-quadratic-{m}",
        f"KL(p* | p), m = {m}",
        RATIO,
        NETWORK,
        (Arm("network", run), Arm("log-quadratic classifier of the same pairs")),
        SEEDS,
    )
    for m, run in EULER_SIZES.items()
}
MORE_PAIRS = {
    (more, fewer): Models(
        f"network-{more}-over-{fewer}",
        "KL(p* | p)",
        RATIO,
        NETWORK,
        (Arm(f"m = {more}", LOGCOSH_RUNS[more]), Arm(f"m = {fewer}", LOGCOSH_RUNS[fewer])),
        SEEDS,
    )
    for fewer, more in pairwise(m for m in LOGCOSH_RUNS if m <= 64000)
}
MOST_PAIRS = max(LOGCOSH_RUNS)
CLOSE = Models(
    f"network-{MOST_PAIRS}", f"KL(p* | p), m = {MOST_PAIRS}", MEDIAN, NETWORK, (Arm("", LOGCOSH_RUNS[MOST_PAIRS]),)
)

# Beyond the source
WIDE, MATCHED_TO = 3.0, 2.0
HARMLESS = Comparison(
    "closeness-wide",
    f"{GEOMETRIC} KL(p* | p), {QUOTIENT}",
    OWN,
    CLOSENESS,
    (Arm(f"q = N(0, {WIDE**2:g})"), Arm(f"q = {STATIONARY}")),
    SEEDS,
)
EQUALLY_CLOSE = Comparison(
    "closeness-matched",
    f"{GEOMETRIC} KL(p* | p), two laws of one two-sided c_q, {QUOTIENT}",
    OWN,
    CLOSENESS,
    (Arm("shifted"), Arm(f"q = N(0, {MATCHED_TO**2:g})")),
    SEEDS,
)
LAW = Comparison(
    "closeness-law",
    "slope of log(KL/excess risk) against the log of the one-sided closeness, over laws of noise",
    MEAN,
    CLOSENESS,
)
MISSED = "root mean square error of log(KL/excess risk) of a law that the line was not fitted to"
ONE_SIDED, TWO_SIDED, DIVERGENCE = "one-sided closeness", "two-sided closeness", "KL(p* | q)"
PREDICTS = {
    rival: Comparison(
        f"closeness-against-{key}",
        f"{MISSED}, by what it is predicted from: the first minus the second",
        OWN,
        CLOSENESS,
        (Arm(ONE_SIDED), Arm(rival)),
        SEEDS,
    )
    for key, rival in (("two-sided", TWO_SIDED), ("divergence", DIVERGENCE))
}
NARROW = 0.7  # narrower than the kernel
BENDS = {
    shift: Comparison(
        f"closeness-narrow-{shift}",
        f"log(KL/excess risk) of N({shift}, {NARROW**2:g}) in the limit, less what the line of the wider laws says",
        MEAN,
        CLOSENESS,
    )
    for shift in SHIFTS
}
LIMIT_SLOPE = Comparison(
    "closeness-limit-slope", "slope of log KL against its limit law, over laws of noise", MEAN, CLOSENESS
)
LIMIT_OFFSET = Comparison(
    "closeness-limit-offset", "log KL minus its mean under the limit law, over laws of noise", MEAN, CLOSENESS
)

ALL = [
    *RATES.values(),
    *NEIGHBOURS.values(),
    *ENDS.values(),
    *SLOPE_ERROR.values(),
    DRIFT,
    DRIFT_CONTROL,
    *GAP_RATE.values(),
    *GAP_RATIO.values(),
    *GAP_APART.values(),
    *DEPENDENCE.values(),
    MORE_DEPENDENT,
    COMPLEXITY_RATE,
    *AGAINST_EULER.values(),
    *AGAINST_QUADRATIC.values(),
    *MORE_PAIRS.values(),
    CLOSE,
    HARMLESS,
    EQUALLY_CLOSE,
    LAW,
    *PREDICTS.values(),
    *BENDS.values(),
    LIMIT_SLOPE,
    LIMIT_OFFSET,
]
