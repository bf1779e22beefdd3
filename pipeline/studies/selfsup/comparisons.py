"""The comparisons that this study measures and judges (`pipeline.kit.comparisons`).

Of hidden Markov models a unit is a model that was drawn, with a sample of its own; nothing is trained to learn a task
but the tables of E8 (c), whose distance is what is asked, so that all of them count.
"""

from __future__ import annotations

from functools import partial

from pipeline.kit import comparisons
from pipeline.kit.comparisons import MEAN, MEDIAN, Arm, Declared
from pipeline.studies.selfsup import diffusion_comparisons
from pipeline.studies.selfsup.names import DETECTION, FITS, GAUSSIAN, HMM_RUNS, RECOVERY

DECLARED = Declared()
Comparison = partial(comparisons.Comparison, learned=False)

# --- hidden Markov models ----------------------------------------------------------------------------

CASES = {1: "first token shown", 2: "middle token shown", 3: "last token shown"}
METHODS = {"jennrich": "Jennrich", "als": "Jennrich and ALS"}
TASKS = {
    "pair": "x2 from x1",
    "allpair": "all four tasks of one token",
    "triple1": "x2 and x3 from x1",
    "triple2": "x1 and x3 from x2",
}
NORMS = (1.0, 3.0)
TESTS = ("likelihood ratio", "Pearson")
ERROR_O = "Frobenius error of O"
SLOPE = "slope of log {} against log N, model by model"

FALLS = {
    (case, method): DECLARED(
        Comparison(f"recovery-slope-{case}-{method}", SLOPE.format(ERROR_O), MEAN, RECOVERY, (Arm(f"{shown}, {name}"),))
    )
    for case, shown in CASES.items()
    for method, name in METHODS.items()
}
RECOVERED = {
    case: DECLARED(
        Comparison(
            f"recovery-last-{case}",
            f"{ERROR_O} at the largest sample, Jennrich and ALS",
            MEDIAN,
            RECOVERY,
            (Arm(shown),),
        )
    )
    for case, shown in CASES.items()
}
LEARNED = {
    case: DECLARED(
        Comparison(
            f"recovery-table-{case}",
            "distance of a trained table from the shares of its sample, over that of the shares from the law",
            MEDIAN,
            RECOVERY,
            (Arm(CASES[case], run),),
        )
    )
    for case, run in zip(CASES, HMM_RUNS, strict=True)
}
FITTED_ERROR = {
    task: DECLARED(
        Comparison(
            f"fits-error-{task}",
            "parameter error of the starts that converge, their median model by model",
            MEDIAN,
            FITS,
            (Arm(name),),
        )
    )
    for task, name in TASKS.items()
}
CONVERGED = {
    task: DECLARED(
        Comparison(
            f"fits-converged-{task}",
            "share of starts that converge, model by model",
            MEAN,
            FITS,
            (Arm(name),),
            span=(0.0, 1.0),
        )
    )
    for task, name in TASKS.items()
}
GAUSSIAN_FALLS, GAUSSIAN_T_FALLS = (
    {
        norm: DECLARED(
            Comparison(
                f"gaussian-slope-{key}{norm:g}",
                SLOPE.format(f"Frobenius error of {letter}"),
                MEAN,
                GAUSSIAN,
                (Arm(f"means of norm {norm:g}"),),
            )
        )
        for norm in NORMS
    }
    for letter, key in (("M", ""), ("T", "T-"))
)
GAUSSIAN_LAST = {
    norm: DECLARED(
        Comparison(
            f"gaussian-last-{norm:g}",
            "Frobenius error of M over the norm of means, at the largest sample",
            MEDIAN,
            GAUSSIAN,
            (Arm(f"means of norm {norm:g}"),),
        )
    )
    for norm in NORMS
}
DETECTION_FALLS = {
    test: DECLARED(
        Comparison(
            f"detection-slope-{test.lower().replace(' ', '-')}",
            "slope of the log of the triples that are needed against log of the angle, model by model",
            MEAN,
            DETECTION,
            (Arm(test),),
        )
    )
    for test in TESTS
}
POWER_APART = {
    test: DECLARED(
        Comparison(
            f"detection-power-{test.lower().replace(' ', '-')}",
            "power in simulation less that of theory, mean over angles, model by model",
            MEAN,
            DETECTION,
            (Arm(test),),
        )
    )
    for test in TESTS
}
LEVEL = {
    test: DECLARED(
        Comparison(
            f"detection-level-{test.lower().replace(' ', '-')}",
            "share of samples of the model itself that are told apart, mean over angles, model by model",
            MEAN,
            DETECTION,
            (Arm(test),),
            span=(0.0, 1.0),
        )
    )
    for test in TESTS
}
# By what counts of two tokens tell: twins have one law of any two, so that this checks the twins and the test's level.
NEIGHBOURS, ENDS = "neighbours", "first and last token"
PAIRS_TOLD = {
    (test, which): DECLARED(
        Comparison(
            f"detection-pairs-{which.split()[0]}-{test.lower().replace(' ', '-')}",
            f"share of the twin's samples that counts of pairs tell ({which}), mean over angles, model by model",
            MEAN,
            DETECTION,
            (Arm(f"as many samples as {test} needs"),),
            span=(0.0, 1.0),
        )
    )
    for test in TESTS
    for which in (NEIGHBOURS, ENDS)
}

# --- diffusions --------------------------------------------------------------------------------------

for _each in diffusion_comparisons.ALL:
    DECLARED(_each)
